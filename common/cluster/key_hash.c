/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only file that uses libcrypto. Preparing for a secret costs several times as
 * much as hashing a key, so it is done once, and threads that hash take turns.
 *
 * The store remembers the hash of a fixed word, which tells secrets apart and
 * reveals none.
 */
#include "common/cluster/key_hash.h"

#include "common/base/alloc.h"
#include "common/base/read_file.h"
#include "common/cluster/put_if_absent.h"

#include <assert.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#define NOTE "hash_keys"
#define IN_CLEAR "clear"
#define CHECK_WORD "weir archiver.hash_keys"

struct weir_key_hash {
	char *path;
	EVP_MAC *mac;
	EVP_MAC_CTX *context; /* with the secret */
	pthread_mutex_t lock; /* guards the context */
};

/* ---- the secret ---- */

static enum weir_status check_file(const char *path, struct weir_error *error)
{
	struct stat about;
	if (stat(path, &about) != 0)
		return weir_fail(error, WEIR_INVALID,
		                 "archiver.hash_keys: %s: %s; create it with: (umask 077; head -c 32 /dev/urandom > %s)", path,
		                 strerror(errno), path);
	if ((about.st_mode & (S_IROTH | S_IWOTH)) != 0)
		return weir_fail(error, WEIR_INVALID,
		                 "archiver.hash_keys: %s: every user on this machine can read or change it: run chmod o-rw %s",
		                 path, path);
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
	char *secret, digest[] = "SHA256";
	size_t length;
	*hash = NULL;
	if (path == NULL)
		return WEIR_OK;
	enum weir_status status = read_secret(path, &secret, &length, error);
	if (status != WEIR_OK)
		return status;
	struct weir_key_hash *made = weir_alloc(1, sizeof *made);
	OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
	                           OSSL_PARAM_construct_end()};
	made->path = weir_copy(path, strlen(path));
	pthread_mutex_init(&made->lock, NULL);
	made->mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	made->context = made->mac != NULL ? EVP_MAC_CTX_new(made->mac) : NULL;
	bool good =
		made->context != NULL && EVP_MAC_init(made->context, (const unsigned char *)secret, length, parameters) == 1;
	explicit_bzero(secret, length);
	free(secret);
	if (!good) {
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
	EVP_MAC_CTX_free(hash->context);
	EVP_MAC_free(hash->mac);
	pthread_mutex_destroy(&hash->lock);
	free(hash->path);
	free(hash);
}

/* ---- hashing ---- */

struct weir_span weir_key_hash(struct weir_key_hash *hash, struct weir_span key, char digits[WEIR_KEY_HASH_BYTES])
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	size_t length = 0;
	if (hash == NULL)
		return key;
	pthread_mutex_lock(&hash->lock);
	bool good = EVP_MAC_init(hash->context, NULL, 0, NULL) == 1 && /* begins anew with the same secret */
	            EVP_MAC_update(hash->context, (const unsigned char *)key.at, key.length) == 1 &&
	            EVP_MAC_final(hash->context, bytes, &length, sizeof bytes) == 1;
	pthread_mutex_unlock(&hash->lock);
	if (!good || length < WEIR_KEY_HASH_BYTES / 2)
		abort(); /* only if memory is exhausted: better than to store a key in clear */
	for (int i = 0; i < WEIR_KEY_HASH_BYTES; i++)
		digits[i] = "0123456789abcdef"[bytes[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15];
	return (struct weir_span){digits, WEIR_KEY_HASH_BYTES};
}

/* ---- what the store remembers ---- */

/* The archiver's keys in zone_txn have counts too; other keys there are check_velocity's, which are always in clear. */
static const char *const any_key[] = {
	"SELECT 1 FROM count_hourly LIMIT 1",
	"SELECT 1 FROM count_daily LIMIT 1",
	"SELECT 1 FROM decision_history WHERE bucket IS NOT NULL LIMIT 1",
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
