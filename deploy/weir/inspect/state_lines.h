/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets as JSON lines: gathered, put in order, printed.
 *
 * {"zone":…,"key":[…],"partition":…,"blocked_at":…,"blocked_until":…,"limits":[…]}, in the order of the zones in the
 * policy and of the joined keys' bytes; after them, with "key_hash" for "key", those whose keys nobody named.
 */
#ifndef DEPLOY_WEIR_INSPECT_STATE_LINES_H
#define DEPLOY_WEIR_INSPECT_STATE_LINES_H

#include "common/base/text.h"
#include "limiter/shard/shard.h"

struct state_lines;

struct state_lines *state_lines_new(void);
void state_lines_free(struct state_lines *lines);

/**
 * Adds a bucket, unless it holds nothing.
 *
 * @param key  its joined key; at is NULL where it is not known
 */
void state_lines_add(struct state_lines *lines, const struct shard_bucket *bucket, struct weir_span key,
                     uint32_t partition);

/** Puts the lines in order. */
void state_lines_sort(struct state_lines *lines);

/** Writes the lines to a descriptor and forgets them. @return 0, or -1 with errno */
int state_lines_write(struct state_lines *lines, int fd);

#endif
