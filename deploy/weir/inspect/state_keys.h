/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for buckets: a limiter keeps fingerprints, not keys, so whoever wants to
 * see a key must bring it.
 *
 * A key is its values; each zone makes its own joined key of them, grouping
 * addresses and shortening long values as it does for records. It names the
 * buckets of every zone that has as many values in its key.
 */
#ifndef DEPLOY_WEIR_INSPECT_STATE_KEYS_H
#define DEPLOY_WEIR_INSPECT_STATE_KEYS_H

#include "common/bytes/hash.h"
#include "common/policy/policy.h"

struct state_keys;

struct state_keys *state_keys_new(void);
void state_keys_free(struct state_keys *keys);

/**
 * Adds a key.
 *
 * @param line  a JSON array of values, or values joined by | (with \ before a | or \ of their own); borrowed
 * @return WEIR_INVALID: an array of something else than strings
 */
WEIR_MUST_USE enum weir_status state_keys_add(struct state_keys *keys, struct weir_span line, struct weir_error *error);

/** Adds each line of a file, "-": of standard input. WEIR_INVALID: the words name file and line; WEIR_IO */
WEIR_MUST_USE enum weir_status state_keys_read(struct state_keys *keys, const char *path, struct weir_error *error);

/** Ready for finding: no key is added any more. @param seed  of the state's fingerprints */
void state_keys_index(struct state_keys *keys, const struct weir_policy *policy, uint64_t seed, uint32_t partitions);

/** Whether a bucket of some key may lie in this segment. */
bool state_keys_in_segment(const struct state_keys *keys, uint32_t partition, uint32_t segment);

/**
 * The joined key of a bucket.
 *
 * @param room  WEIR_KEY_MAX_BYTES, for the key
 * @return false: it is among no keys that were added
 */
bool state_keys_find(const struct state_keys *keys, struct weir_fingerprint fingerprint, char *room,
                     struct weir_span *key);

#endif
