/* SPDX-License-Identifier: Apache-2.0 */
/* Who is blocked now: from the newest published decision of each bucket, and on one machine from the state too. */
#ifndef DEPLOY_WEIR_OVERRIDES_LIST_BLOCKS_H
#define DEPLOY_WEIR_OVERRIDES_LIST_BLOCKS_H

#include "deploy/gateways/table/block_table.h"
#include "deploy/weir/backend/backend.h"

struct list_filter {
	const char *zone;     /* NULL: all */
	struct weir_span key; /* joined; at is NULL: all */
};

/* A bucket that is blocked and whose key nobody named, but for a key of the filter: then it is that one. */
struct list_unnamed {
	const struct weir_zone *zone;
	struct weir_fingerprint print;
	uint32_t partition;
	int64_t at_ms, until_ms;
	char *key; /* that was asked for, as the zone has it, of key_bytes; NULL: none was. Owned */
	uint32_t key_bytes;
};

struct list_blocks {
	struct block_table *table;
	struct policy_registry *registry;   /* what zones point into */
	const struct block_entry **entries; /* by zone, then by when they began */
	uint32_t count;
	struct list_unnamed *unnamed; /* of a state directory */
	uint32_t unnamed_count;
	uint64_t unnamed_left_out; /* more of them than are kept */
	uint64_t damaged;          /* messages that are no decisions */
	uint64_t unread; /* places of the local log that cannot be read: who is blocked by what is there is not known */
};

/** Whether the newest policy has a zone of that name; NULL is fine. @return WEIR_INVALID: not so */
WEIR_MUST_USE enum weir_status list_blocks_check_zone(const struct backend *backend, const char *zone,
                                                      struct weir_error *error);

/** @param now_ms  what ends later is blocked */
WEIR_MUST_USE enum weir_status list_blocks_read(struct backend *backend, const struct list_filter *filter,
                                                int64_t now_ms, struct list_blocks *blocks, struct weir_error *error);
void list_blocks_deinit(struct list_blocks *blocks);

#endif
