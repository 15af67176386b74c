/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store remembers the hash of a fixed word, which tells secrets apart and
 * reveals none.
 */
#include "common/cluster/key_hash.h"

#include "common/base/alloc.h"
#include "common/base/read_file.h"
#include "common/base/shell.h"
#include "common/bytes/hmac.h"
#include "common/cluster/put_if_absent.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define NOTE "hash_keys"
#define IN_CLEAR "clear"
#define CHECK_WORD "weir archiver.hash_keys"

struct weir_key_hash {
	char *path;
	struct weir_hmac *hmac;
};

/* ---- the secret ---- */

static enum weir_status check_file(const char *path, struct weir_error *error)
{
	struct stat about;
	if (stat(path, &about) != 0)
		return weir_fail(error, WEIR_INVALID,
		                 "archiver.hash_keys: %s: %s; create it with: (umask 077; head -c 32 /dev/urandom > %s)", path,
		                 weir_errno_words(errno), weir_shell_word(path).text);
	if ((about.st_mode & (S_IROTH | S_IWOTH)) != 0)
		return weir_fail(error, WEIR_INVALID,
		                 "archiver.hash_keys: %s: every user on this machine can read or change it: run chmod o-rw %s",
		                 path, weir_shell_word(path).text);
	return WEIR_OK;
}

static enum weir_status read_secret(const char *path, char **secret, size_t *length, struct weir_error *error)
{
	struct weir_error words;
	enum weir_status status = check_file(path, error);
	if (status != WEIR_OK)
		return status;
	if (weir_read_file(path, WEIR_KEY_SECRET_MOST_BYTES, secret, length, &words) != WEIR_OK)
		return weir_fail(error, WEIR_INVALID, "archiver.hash_keys: %s", words.text);
	*length -= *length > 0 && (*secret)[*length - 1] == '\n';
	if (*length >= WEIR_KEY_SECRET_LEAST_BYTES)
		return WEIR_OK;
	free(*secret);
	return weir_fail(
		error, WEIR_INVALID,
		"archiver.hash_keys: %s: the secret must have at least %d bytes, not %zu: create one with head -c 32 /dev/urandom",
		path, WEIR_KEY_SECRET_LEAST_BYTES, *length);
}

enum weir_status weir_key_hash_open(const char *path, struct weir_key_hash **hash, struct weir_error *error)
{
	char *secret;
	size_t length;
	*hash = NULL;
	if (path == NULL)
		return WEIR_OK;
	enum weir_status status = read_secret(path, &secret, &length, error);
	if (status != WEIR_OK)
		return status;
	struct weir_key_hash *made = weir_alloc(1, sizeof *made);
	made->path = weir_copy(path, strlen(path));
	made->hmac = weir_hmac_new((struct weir_span){secret, (uint32_t)length});
	explicit_bzero(secret, length);
	free(secret);
	if (made->hmac == NULL) {
		weir_key_hash_free(made);
		return weir_fail(error, WEIR_INVALID, "archiver.hash_keys: libcrypto on this machine has no HMAC-SHA256");
	}
	*hash = made;
	return WEIR_OK;
}

void weir_key_hash_free(struct weir_key_hash *hash)
{
	if (hash == NULL)
		return;
	weir_hmac_free(hash->hmac);
	free(hash->path);
	free(hash);
}

/* ---- hashing ---- */

struct weir_span weir_key_hash(struct weir_key_hash *hash, struct weir_span key, char digits[WEIR_KEY_HASH_BYTES])
{
	if (hash == NULL)
		return key;
	weir_hmac_digits(hash->hmac, key, digits, WEIR_KEY_HASH_BYTES);
	return (struct weir_span){digits, WEIR_KEY_HASH_BYTES};
}

/* ---- what the store remembers ---- */

/* The archiver's keys in zone_txn have counts too; other keys there are check_velocity's, which are always in clear. */
static const char *const any_key[] = {
	"SELECT 1 FROM count_hourly LIMIT 1",
	"SELECT 1 FROM count_daily LIMIT 1",
	"SELECT 1 FROM decision_history WHERE bucket IS NOT NULL LIMIT 1",
	"SELECT 1 FROM shadow_history WHERE bucket IS NOT NULL LIMIT 1",
};

static enum weir_status take_row(void *context, const struct weir_sql_value *columns, unsigned count)
{
	(void)columns;
	(void)count;
	*(bool *)context = true;
	return WEIR_OK;
}

/* Whether the store has keys, although it has no note about them. */
static enum weir_status has_keys(struct weir_store *store, bool *any, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	*any = false;
	for (size_t i = 0; i < sizeof any_key / sizeof *any_key && status == WEIR_OK && !*any; i++)
		status = store->ops->query(store, any_key[i], NULL, 0, take_row, any, error);
	return status;
}

static enum weir_status refuse(const struct weir_key_hash *hash, bool in_clear, struct weir_error *error)
{
	if (hash == NULL)
		return weir_fail(
			error, WEIR_INVALID,
			"the archive's keys are hashed: set archiver.hash_keys to the file with the secret that hashed them");
	if (in_clear)
		return weir_fail(error, WEIR_INVALID,
		                 "archiver.hash_keys: the archive has keys in clear: remove the setting, or "
		                 "start with an empty archive in another database or state directory");
	return weir_fail(error, WEIR_INVALID,
	                 "archiver.hash_keys: %s is not the secret that hashed the archive's keys: restore that secret, "
	                 "because no key can be found with another one",
	                 hash->path);
}

/* @param check  how the store would remember this secret @return WEIR_END: the store remembers none yet */
static enum weir_status compare(struct weir_key_hash *hash, struct weir_store *store, struct weir_span check,
                                struct weir_error *error)
{
	char *note;
	size_t length;
	bool in_clear = false;
	enum weir_status status = store->ops->note_get(store, NOTE, &note, &length, error);
	if (status != WEIR_OK)
		return status;
	if (note == NULL) {
		status = hash != NULL ? has_keys(store, &in_clear, error) : WEIR_OK;
		if (status == WEIR_OK)
			status = in_clear ? refuse(hash, true, error) : WEIR_END;
		return status;
	}
	struct weir_span noted = {note, (uint32_t)length};
	in_clear = weir_span_equal(noted, weir_span_of(IN_CLEAR));
	status = weir_span_equal(noted, check) ? WEIR_OK : refuse(hash, in_clear, error);
	free(note);
	return status;
}

static struct weir_span check_of(struct weir_key_hash *hash, char digits[WEIR_KEY_HASH_BYTES])
{
	return hash != NULL ? weir_key_hash(hash, weir_span_of(CHECK_WORD), digits) : weir_span_of(IN_CLEAR);
}

enum weir_status weir_key_hash_settle(struct weir_key_hash *hash, struct weir_store *store, struct weir_error *error)
{
	char digits[WEIR_KEY_HASH_BYTES];
	const char *name = NOTE;
	struct weir_span check = check_of(hash, digits);
	enum weir_status status = compare(hash, store, check, error);
	if (status != WEIR_END)
		return status;
	status = weir_put_if_absent(store, &name, &check, 1, error);
	if (status == WEIR_OK)
		status = compare(hash, store, check, error); /* another process may have been sooner */
	assert(status != WEIR_END);
	return status;
}

enum weir_status weir_key_hash_check(struct weir_key_hash *hash, struct weir_store *store, struct weir_error *error)
{
	char digits[WEIR_KEY_HASH_BYTES];
	enum weir_status status = compare(hash, store, check_of(hash, digits), error);
	return status == WEIR_END ? WEIR_OK : status;
}

enum weir_status weir_key_hash_settled(struct weir_store *store, bool *settled, struct weir_error *error)
{
	char *note = NULL;
	size_t length;
	enum weir_status status = store->ops->note_get(store, NOTE, &note, &length, error);
	*settled = status == WEIR_OK && note != NULL;
	if (status == WEIR_OK)
		free(note);
	return status;
}
