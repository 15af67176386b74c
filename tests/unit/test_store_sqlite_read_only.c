/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a store from beside its owner: one moment of it, and not a byte changed. */
#include "common/bytes/hash.h"
#include "common/files/durable_file.h"
#include "common/store/sqlite/store_sqlite.h"
#include "common/store/store.h"
#include "scratch.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { LIMITER = WEIR_STORE_ROLE_LIMITER };

static struct weir_error error;

static struct weir_store *open_by(enum weir_status (*open)(const char *directory, struct weir_store **store,
                                                           struct weir_error *error),
                                  const char *directory)
{
	struct weir_store *store = NULL;
	if (open(directory, &store, &error) != WEIR_OK || store == NULL) {
		fail_msg("%s", error.text);
		abort();
	}
	return store;
}

static struct weir_store *open_store(const char *directory)
{
	return open_by(weir_store_sqlite_open, directory);
}

static struct weir_store *open_existing_store(const char *directory)
{
	return open_by(weir_store_sqlite_open_read_only, directory);
}

/* A checkpoint whose one segment and note say its number. */
static void put_checkpoint(struct weir_store *store, struct weir_partition_state *state, uint64_t checkpoint)
{
	char text[24];
	snprintf(text, sizeof text, "%llu", (unsigned long long)checkpoint);
	struct weir_segment_blob blob = {7, checkpoint, true, weir_span_of(text)};
	const char *const names[] = {"newest"};
	const struct weir_span values[] = {weir_span_of(text)};
	assert_int_equal(WEIR_OK, store->ops->write_segments(store, 0, state->epoch, &blob, 1, &error));
	state->checkpoint = checkpoint;
	assert_int_equal(WEIR_OK, store->ops->commit(store, LIMITER, state, 1, names, values, 1, &error));
	assert_int_equal(WEIR_OK, store->ops->clean(store, 0, state->epoch, &error));
}

static enum weir_status collect(void *context, const struct weir_segment_blob *blob)
{
	snprintf(context, 24, "%.*s", (int)blob->bytes.length, blob->bytes.at);
	return WEIR_OK;
}

static void assert_sees(struct weir_store *store, uint64_t checkpoint)
{
	char expected[24], blob[24] = "", *note = NULL;
	size_t length;
	struct weir_partition_state state;
	const uint32_t segment = 7;
	snprintf(expected, sizeof expected, "%llu", (unsigned long long)checkpoint);
	assert_int_equal(WEIR_OK, store->ops->inspect(store, LIMITER, 0, &state, &error));
	assert_int_equal(checkpoint, state.checkpoint);
	assert_int_equal(1, state.epoch);
	assert_int_equal(WEIR_OK, store->ops->read_segments(store, 0, state.epoch, 0, &segment, 1, collect, blob, &error));
	assert_string_equal(expected, blob);
	assert_int_equal(WEIR_OK, store->ops->note_get(store, "newest", &note, &length, &error));
	assert_string_equal(expected, note);
	free(note);
}

static void one_moment_is_seen(void **state)
{
	struct weir_store *owner = open_store(*state);
	struct weir_partition_state partition;
	assert_int_equal(WEIR_OK, owner->ops->take(owner, LIMITER, 0, &partition, &error));
	put_checkpoint(owner, &partition, 1);
	struct weir_store *before = open_existing_store(*state);
	/* The owner goes on, and cleans up what nobody needs any more. */
	put_checkpoint(owner, &partition, 2);
	put_checkpoint(owner, &partition, 3);
	struct weir_store *after = open_existing_store(*state);
	assert_sees(before, 1);
	assert_sees(after, 3);
	assert_sees(before, 1);
	before->ops->close(before);
	put_checkpoint(owner, &partition, 4);
	owner->ops->close(owner);
	assert_sees(after, 3);
	after->ops->close(after);
	after = open_existing_store(*state);
	assert_sees(after, 4);
	after->ops->close(after);
}

static void nothing_can_be_written(void **state)
{
	struct weir_store *owner = open_store(*state);
	struct weir_partition_state partition, looked;
	assert_int_equal(WEIR_OK, owner->ops->take(owner, LIMITER, 0, &partition, &error));
	put_checkpoint(owner, &partition, 1);
	struct weir_store *store = open_existing_store(*state);
	struct weir_segment_blob blob = {7, 2, true, weir_span_of("x")};
	assert_int_equal(WEIR_IO, store->ops->take(store, LIMITER, 0, &looked, &error));
	assert_non_null(strstr(error.text, "open read-only"));
	assert_int_equal(WEIR_IO, store->ops->write_segments(store, 0, partition.epoch, &blob, 1, &error));
	assert_int_equal(WEIR_IO, store->ops->commit(store, LIMITER, &partition, 1, NULL, NULL, 0, &error));
	assert_int_equal(WEIR_IO, store->ops->clean(store, 0, partition.epoch, &error));
	assert_int_not_equal(WEIR_OK, store->ops->note_put(store, "newest", weir_span_of("x"), &error));
	assert_int_not_equal(WEIR_OK, store->ops->policy_put(store, 1, weir_span_of("{}"), &error));
	assert_sees(store, 1);
	store->ops->close(store);
	put_checkpoint(owner, &partition, 2); /* with the epoch that it had */
	owner->ops->close(owner);
}

static void nothing_is_made(void **state)
{
	char path[512];
	struct weir_store *store;
	assert_int_equal(WEIR_INVALID, weir_store_sqlite_open_read_only(*state, &store, &error));
	assert_non_null(strstr(error.text, "there is no state in"));
	snprintf(path, sizeof path, "%s/weir.db", (const char *)*state);
	assert_int_equal(-1, access(path, F_OK));
	/* An empty file is a database without tables. */
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(WEIR_IO, weir_store_sqlite_open_read_only(*state, &store, &error));
	assert_non_null(strstr(error.text, "this state is empty"));
	struct stat about;
	assert_int_equal(0, stat(path, &about));
	assert_int_equal(0, about.st_size);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("this is no database, but it is longer than a header of a hundred bytes would be, so it is looked at as one",
	      file);
	fclose(file);
	assert_int_equal(WEIR_INVALID, weir_store_sqlite_open_read_only(*state, &store, &error));
	assert_non_null(strstr(error.text, path));
}

/* Another process: it has the directory, and makes the store after a while. */
static void *start_late(void *context)
{
	struct weir_store *store;
	struct weir_error late;
	usleep(150 * 1000);
	return weir_store_sqlite_open(context, &store, &late) == WEIR_OK ? store : NULL;
}

static void what_is_just_being_made_is_waited_for(void **state)
{
	char path[512];
	struct weir_directory_lock lock;
	struct weir_store *store;
	for (int there = 0; there < 2; there++) {
		pthread_t thread;
		void *made;
		snprintf(path, sizeof path, "%s/%d", (const char *)*state, there);
		assert_int_equal(WEIR_OK, weir_directory_make(path, &error));
		assert_int_equal(WEIR_OK, weir_directory_lock(path, &lock, &error));
		char file[520];
		snprintf(file, sizeof file, "%s/weir.db", path);
		FILE *empty = there ? fopen(file, "w") : NULL;
		assert_true(!there || (empty != NULL && fclose(empty) == 0));
		assert_int_equal(0, pthread_create(&thread, NULL, start_late, path));
		assert_int_equal(WEIR_OK, weir_store_sqlite_open_read_only(path, &store, &error));
		store->ops->close(store);
		pthread_join(thread, &made);
		assert_non_null(made);
		((struct weir_store *)made)->ops->close(made);
		weir_directory_unlock(&lock);
	}
	/* Nobody waits for ever. */
	snprintf(path, sizeof path, "%s/never", (const char *)*state);
	assert_int_equal(WEIR_OK, weir_directory_make(path, &error));
	assert_int_equal(WEIR_OK, weir_directory_lock(path, &lock, &error));
	assert_int_equal(WEIR_IO, weir_store_sqlite_open_read_only(path, &store, &error));
	assert_non_null(strstr(error.text, "just being made"));
	weir_directory_unlock(&lock);
}

/* Copies a file, and gives its length; 0: there is none. */
static size_t copy_file(const char *from, const char *to, const char *name)
{
	static char bytes[8 << 20];
	char path[512];
	snprintf(path, sizeof path, "%s/%s", from, name);
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return 0;
	size_t length = fread(bytes, 1, sizeof bytes, file);
	assert_true(length < sizeof bytes);
	fclose(file);
	snprintf(path, sizeof path, "%s/%s", to, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(length, fwrite(bytes, 1, length, file));
	fclose(file);
	return length;
}

/* The hash of all names and bytes in a directory, and the number of its files. */
static uint64_t look_over(const char *directory, unsigned *count)
{
	static char bytes[8 << 20];
	struct dirent *entry;
	uint64_t sum = 0;
	DIR *opened = opendir(directory);
	assert_non_null(opened);
	*count = 0;
	while ((entry = readdir(opened)) != NULL) {
		char path[512];
		snprintf(path, sizeof path, "%s/%.200s", directory, entry->d_name);
		FILE *file = entry->d_name[0] != '.' ? fopen(path, "r") : NULL;
		if (file == NULL)
			continue;
		size_t length = fread(bytes, 1, sizeof bytes, file);
		fclose(file);
		sum += weir_hash64(bytes, length) ^ weir_hash64(entry->d_name, strlen(entry->d_name));
		++*count;
	}
	closedir(opened);
	return sum;
}

static void make_lock(const char *directory)
{
	char path[512];
	snprintf(path, sizeof path, "%.500s/lock", directory);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
}

static void what_nobody_has_open_stays_as_it_is(void **state)
{
	char crashed[512];
	unsigned before, after;
	snprintf(crashed, sizeof crashed, "%s/crashed", (const char *)*state);
	assert_int_equal(0, mkdir(crashed, 0700));
	struct weir_store *owner = open_store(*state);
	struct weir_partition_state partition;
	assert_int_equal(WEIR_OK, owner->ops->take(owner, LIMITER, 0, &partition, &error));
	put_checkpoint(owner, &partition, 1);
	put_checkpoint(owner, &partition, 2);
	/* As a crash leaves it: what was committed last is in the log alone. */
	assert_true(copy_file(*state, crashed, "weir.db") > 0);
	assert_true(copy_file(*state, crashed, "weir.db-wal") > 0);
	make_lock(crashed);
	uint64_t sum = look_over(crashed, &before);
	struct weir_store *stores[2] = {open_existing_store(crashed), open_existing_store(crashed)};
	for (int i = 0; i < 2; i++)
		assert_sees(stores[i], 2);
	assert_int_equal(sum, look_over(crashed, &after));
	for (int i = 0; i < 2; i++)
		stores[i]->ops->close(stores[i]);
	assert_int_equal(sum, look_over(crashed, &after));
	assert_int_equal(before, after);
	/* As an end leaves it. */
	owner->ops->close(owner);
	sum = look_over(*state, &before);
	stores[0] = open_existing_store(*state);
	assert_sees(stores[0], 2);
	assert_int_equal(sum, look_over(*state, &after));
	stores[0]->ops->close(stores[0]);
	assert_int_equal(sum, look_over(*state, &after));
	assert_int_equal(before, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_moment_is_seen, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(nothing_can_be_written, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(nothing_is_made, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(what_is_just_being_made_is_waited_for, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(what_nobody_has_open_stays_as_it_is, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
