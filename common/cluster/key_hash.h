/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes of keys, for archiver.hash_keys.
 *
 * A key's hash is the first half of the HMAC-SHA256 of its joined values, as 32
 * lower-case hexadecimal digits: 128 bits, so that no two keys ever meet, and a
 * text that people can copy. The secret comes from a file. Without it nobody can
 * tell which key a hash is of, not even by trying all addresses.
 *
 * The store remembers which secret its keys are hashed by, or that they are not:
 * one table of keys hashed in two ways would count nobody right.
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
 * Reads a secret: the bytes of a file but one newline at its end.
 *
 * @param path  archiver.hash_keys; NULL: *hash is NULL, and keys stay as they are
 * @return WEIR_OK: weir_key_hash_free(); WEIR_INVALID: it cannot be read, everybody may read it, or it is too short or
 *         too long: the words say what to do
 */
WEIR_MUST_USE enum weir_status weir_key_hash_open(const char *path, struct weir_key_hash **hash,
                                                  struct weir_error *error);
/** NULL is fine. */
void weir_key_hash_free(struct weir_key_hash *hash);

/**
 * A key as the store has it.
 *
 * @param hash    NULL: the key itself is returned
 * @param digits  where its hash is written: what is returned lies there
 * @thread any
 */
struct weir_span weir_key_hash(struct weir_key_hash *hash, struct weir_span key, char digits[WEIR_KEY_HASH_BYTES]);

/**
 * Whether the store's keys are as this secret, or none, makes them. One that has no keys yet remembers it from now on.
 *
 * @return WEIR_OK; WEIR_INVALID: they are not, and what to do; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_key_hash_settle(struct weir_key_hash *hash, struct weir_store *store,
                                                    struct weir_error *error);
/** The same for those who only look: nothing is remembered. */
WEIR_MUST_USE enum weir_status weir_key_hash_check(struct weir_key_hash *hash, struct weir_store *store,
                                                   struct weir_error *error);

#endif
