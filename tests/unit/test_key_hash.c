/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as hashes: what they are, which secrets serve, and that an archive keeps to one of them. */
#include "archiver/work/batch.h"
#include "common/cluster/key_hash.h"
#include "common/store/sqlite/store_sqlite.h"
#include "scratch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { ARCHIVERS = 4 };

static struct weir_error error;

/* A file in the scratch directory; its path is valid until the next call. */
static const char *write_secret(const char *directory, const char *name, const char *bytes, size_t length, mode_t mode)
{
	static char path[512];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
	return path;
}

static struct weir_key_hash *hash_of(const char *directory, const char *secret)
{
	struct weir_key_hash *hash;
	if (weir_key_hash_open(write_secret(directory, "secret", secret, strlen(secret), 0600), &hash, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return hash;
}

/* Test case 1 of RFC 4231, with and without a newline behind the secret; and a key of no bytes. */
static void a_key_becomes_half_of_its_hmac(void **state)
{
	char secret[21], digits[WEIR_KEY_HASH_BYTES];
	memset(secret, 0x0b, 20);
	secret[20] = '\n';
	for (size_t length = 20; length <= 21; length++) {
		struct weir_key_hash *hash;
		assert_int_equal(weir_key_hash_open(write_secret(*state, "s", secret, length, 0640), &hash, &error), WEIR_OK);
		for (int times = 0; times < 2; times++) {
			struct weir_span hashed = weir_key_hash(hash, weir_span_of("Hi There"), digits);
			assert_ptr_equal(hashed.at, digits);
			assert_true(weir_span_equal(hashed, weir_span_of("b0344c61d8db38535ca8afceaf0bf12b")));
			hashed = weir_key_hash(hash, (struct weir_span){"", 0}, digits);
			assert_true(weir_span_equal(hashed, weir_span_of("999a901219f032cd497cadb5e6051e97")));
		}
		weir_key_hash_free(hash);
	}
	assert_true(weir_span_equal(weir_key_hash(NULL, weir_span_of("k"), digits), weir_span_of("k")));
}

static void assert_refused(const char *path, const char *words)
{
	struct weir_key_hash *hash;
	assert_int_equal(weir_key_hash_open(path, &hash, &error), WEIR_INVALID);
	assert_null(hash);
	if (strstr(error.text, "archiver.hash_keys") == NULL || strstr(error.text, words) == NULL)
		fail_msg("%s", error.text);
}

static void a_secret_that_is_none_is_refused(void **state)
{
	static char large[WEIR_KEY_SECRET_MOST_BYTES + 1];
	struct weir_key_hash *hash;
	assert_refused("/nowhere/secret", "umask 077");
	assert_refused(*state, "cannot read");
	assert_refused(write_secret(*state, "open", "0123456789abcdef", 16, 0604), "chmod o-rw");
	assert_refused(write_secret(*state, "open", "0123456789abcdef", 16, 0602), "chmod o-rw");
	assert_refused(write_secret(*state, "short", "0123456789abcde\n", 16, 0600), "at least 16 bytes, not 15");
	assert_refused(write_secret(*state, "empty", "", 0, 0600), "at least 16 bytes, not 0");
	assert_refused(write_secret(*state, "large", large, sizeof large, 0600), "larger than 4096 bytes");
	assert_int_equal(weir_key_hash_open(NULL, &hash, &error), WEIR_OK);
	assert_null(hash);
}

static void assert_settles(struct weir_key_hash *hash, struct weir_store *store, const char *refusal)
{
	enum weir_status wanted = refusal == NULL ? WEIR_OK : WEIR_INVALID;
	if (weir_key_hash_check(hash, store, &error) != wanted || weir_key_hash_settle(hash, store, &error) != wanted)
		fail_msg("%s", error.text);
	if (refusal != NULL && strstr(error.text, refusal) == NULL)
		fail_msg("%s", error.text);
}

static void an_archive_keeps_to_its_secret(void **state)
{
	struct weir_key_hash *own = hash_of(*state, "0123456789abcdef"), *other = hash_of(*state, "0123456789abcdeF");
	struct weir_store *store;
	char *note;
	size_t length;
	assert_int_equal(weir_store_sqlite_open(*state, &store, &error), WEIR_OK);
	assert_int_equal(weir_key_hash_check(own, store, &error), WEIR_OK); /* by which nothing is noted */
	assert_settles(other, store, NULL);
	assert_settles(other, store, NULL);
	assert_settles(own, store, "is not the secret");
	assert_settles(NULL, store, "are hashed");
	assert_int_equal(store->ops->note_get(store, "hash_keys", &note, &length, &error), WEIR_OK);
	assert_int_equal(length, WEIR_KEY_HASH_BYTES);
	free(note);
	store->ops->close(store);
	weir_key_hash_free(own);
	weir_key_hash_free(other);
}

static void an_archive_in_clear_stays_so(void **state)
{
	struct weir_key_hash *hash = hash_of(*state, "0123456789abcdef");
	struct weir_store *store;
	assert_int_equal(weir_store_sqlite_open(*state, &store, &error), WEIR_OK);
	assert_settles(NULL, store, NULL);
	assert_settles(hash, store, "keys in clear");
	assert_settles(NULL, store, NULL);
	store->ops->close(store);
	weir_key_hash_free(hash);
}

/* As it was kept by a weir that knew no hashes, and made no note. */
static void what_was_kept_in_clear_before_is_seen(void **state)
{
	struct weir_key_hash *hash = hash_of(*state, "0123456789abcdef");
	const struct weir_archive_count count = {.zone = 1, .bucket = weir_span_of("k"), .passed = 1};
	const struct weir_archive_batch batch = {.days = &count, .day_count = 1};
	struct weir_partition_state partition;
	struct weir_store *store;
	assert_int_equal(weir_store_sqlite_open(*state, &store, &error), WEIR_OK);
	assert_int_equal(store->ops->take(store, WEIR_STORE_ROLE_ARCHIVER, 0, &partition, &error), WEIR_OK);
	partition.checkpoint = 1;
	assert_int_equal(store->ops->archive(store, WEIR_STORE_ROLE_ARCHIVER, &batch, &partition, 1, NULL, NULL, 0, &error),
	                 WEIR_OK);
	assert_settles(hash, store, "keys in clear");
	store->ops->close(store);
	weir_key_hash_free(hash);
}

struct archiver_start {
	pthread_t thread;
	const char *directory;
	struct weir_key_hash *hash;
	enum weir_status status;
};

static void *settle(void *context)
{
	struct archiver_start *start = context;
	struct weir_store *store;
	start->status = weir_store_sqlite_open(start->directory, &store, NULL);
	if (start->status != WEIR_OK)
		return NULL;
	start->status = weir_key_hash_settle(start->hash, store, NULL);
	store->ops->close(store);
	return NULL;
}

/* Every one has a secret of its own: exactly one may go on. */
static void of_several_secrets_at_once_one_is_taken(void **state)
{
	struct archiver_start starts[ARCHIVERS];
	struct weir_store *store;
	int taken = 0;
	assert_int_equal(weir_store_sqlite_open(*state, &store, &error), WEIR_OK);
	store->ops->close(store);
	for (int i = 0; i < ARCHIVERS; i++) {
		char secret[] = "0123456789abcdef ";
		secret[16] = (char)('a' + i);
		starts[i] = (struct archiver_start){.directory = *state, .hash = i > 0 ? hash_of(*state, secret) : NULL};
	}
	for (int i = 0; i < ARCHIVERS; i++)
		assert_int_equal(pthread_create(&starts[i].thread, NULL, settle, &starts[i]), 0);
	for (int i = 0; i < ARCHIVERS; i++) {
		pthread_join(starts[i].thread, NULL);
		assert_true(starts[i].status == WEIR_OK || starts[i].status == WEIR_INVALID);
		taken += starts[i].status == WEIR_OK;
		weir_key_hash_free(starts[i].hash);
	}
	assert_int_equal(taken, 1);
}

static void add_decision(struct ledger *ledger, const char *key, bool shadow)
{
	struct decision_row row = {.row = {.zone = weir_span_of("site"), .bucket = {NULL, 0}}, .shadow = shadow};
	row.texts = key != NULL ? strdup(key) : NULL;
	if (key != NULL)
		row.row.bucket = weir_span_of(row.texts);
	ledger_decision(ledger, shadow ? WEIR_TOPIC_SHADOW : WEIR_TOPIC_DECISIONS, 0, &row);
}

/* One of a key, and one of a whole zone, which has none. */
static void assert_hashed(const struct weir_archive_decision *rows, size_t count, struct weir_span wanted)
{
	assert_int_equal(count, 2);
	assert_true(weir_span_equal(rows[0].bucket, wanted) != weir_span_equal(rows[1].bucket, wanted));
	assert_true(rows[0].bucket.at == NULL || rows[1].bucket.at == NULL);
}

/* Whatever goes to the store has a hash for a key, and lies in the order of the hashes. */
static void a_batch_has_no_key_in_clear(void **state)
{
	struct weir_key_hash *hash = hash_of(*state, "0123456789abcdef");
	struct ledger *ledger = ledger_new(0);
	struct batch *batch = batch_new(hash);
	char digits[WEIR_KEY_HASH_BYTES], name[8];
	for (int i = 0; i < 50; i++) {
		struct weir_span key = {name, (uint32_t)snprintf(name, sizeof name, "u%d", i)};
		counts_add(ledger->counts, 1, key, counts_hash(ledger->counts, key), 0, 1, 0, 0);
	}
	for (int shadow = 0; shadow < 2; shadow++) {
		add_decision(ledger, "u7", shadow);
		add_decision(ledger, NULL, shadow);
	}
	for (int times = 0; times < 2; times++) { /* as after a try that failed */
		const struct weir_archive_batch *rows = batch_fill(batch, &ledger, 1);
		struct weir_span wanted = weir_key_hash(hash, weir_span_of("u7"), digits);
		bool found = false;
		assert_int_equal(rows->hour_count, 50);
		for (size_t i = 0; i < rows->hour_count; i++) {
			assert_int_equal(rows->hours[i].bucket.length, WEIR_KEY_HASH_BYTES);
			assert_true(i == 0 || memcmp(rows->hours[i - 1].bucket.at, rows->hours[i].bucket.at, 32) < 0);
			found = found || weir_span_equal(rows->hours[i].bucket, wanted);
		}
		assert_true(found);
		assert_hashed(rows->decisions, rows->decision_count, wanted);
		assert_hashed(rows->shadows, rows->shadow_count, wanted);
	}
	batch_free(batch);
	ledger_free(ledger);
	weir_key_hash_free(hash);
}

#define scratch_test(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(a_key_becomes_half_of_its_hmac),        scratch_test(a_secret_that_is_none_is_refused),
		scratch_test(an_archive_keeps_to_its_secret),        scratch_test(an_archive_in_clear_stays_so),
		scratch_test(what_was_kept_in_clear_before_is_seen), scratch_test(of_several_secrets_at_once_one_is_taken),
		scratch_test(a_batch_has_no_key_in_clear),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
