/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes of keys, for archiver.hash_keys.
 *
 * A key's hash is the first half of the HMAC-SHA256 of its joined values, as 32
 * lower-case hexadecimal digits: 128 bits, so that no two keys collide, and a text
 * that people can copy. The secret is in a file. Without it nobody can tell which
 * key a hash is of, not even by trying all addresses.
 *
 * The store remembers with which secret its keys are hashed, or that they are not,
 * because counts would be wrong if a table had keys hashed in two ways.
 */
#ifndef WEIR_COMMON_KEY_HASH_H
#define WEIR_COMMON_KEY_HASH_H

#include "common/store/store.h"

enum {
	WEIR_KEY_HASH_BYTES = 32, /* digits */
	WEIR_KEY_SECRET_LEAST_BYTES = 16,
	WEIR_KEY_SECRET_MOST_BYTES = 4096,
};

struct weir_key_hash;

/**
 * Reads a secret: the bytes of a file, without one newline at its end.
 *
 * @param path  archiver.hash_keys; NULL: *hash is set to NULL, and keys stay as they are
 * @param hash  returned, the caller frees it with weir_key_hash_free()
 * @return WEIR_OK; WEIR_INVALID: it cannot be read, every user may read or change it, or it is too short or too long:
 *         the error says what to do
 */
WEIR_MUST_USE enum weir_status weir_key_hash_open(const char *path, struct weir_key_hash **hash,
                                                  struct weir_error *error);
/** NULL is fine. */
void weir_key_hash_free(struct weir_key_hash *hash);

/**
 * A key in the form that the store has.
 *
 * @param hash    NULL: the key itself is returned
 * @param digits  set to its hash; the returned span points there
 * @thread any
 */
struct weir_span weir_key_hash(struct weir_key_hash *hash, struct weir_span key, char digits[WEIR_KEY_HASH_BYTES]);

/**
 * Checks that the store's keys are hashed with this secret or, without one, are in clear. If the store remembers
 * neither, it remembers this one from then on.
 *
 * @return WEIR_OK; WEIR_INVALID: they are not: the error says what to do; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_key_hash_settle(struct weir_key_hash *hash, struct weir_store *store,
                                                    struct weir_error *error);
/** The same for programs that only read the store: it remembers nothing new. */
WEIR_MUST_USE enum weir_status weir_key_hash_check(struct weir_key_hash *hash, struct weir_store *store,
                                                   struct weir_error *error);
/** Whether the store remembers one, or that keys are in clear: then an archiver has been at work, whatever it found. */
WEIR_MUST_USE enum weir_status weir_key_hash_settled(struct weir_store *store, bool *settled, struct weir_error *error);

#endif
