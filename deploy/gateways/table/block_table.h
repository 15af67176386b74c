/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live blocks, as the decisions read so far and the time say.
 *
 * Of each bucket the newest version counts, in whatever order versions come: a
 * limiter that was replaced may publish again what its successor has already
 * gone past. So a bucket that was let go early stays as a mark, without its
 * block, until no older block of it could still run.
 *
 * What has changed since the last `settle` is a list, each bucket once however
 * often it changed; the subscriber applies it to the gateway's list and
 * settles it, or copies the whole table.
 *
 * Bounded: with `max` entries in it, those that end first are left out.
 * Memory: about 130 bytes and the key an entry, and the decision's JSON where
 * that is kept.
 *
 * @thread one owner; block_table_count() any
 */
#ifndef DEPLOY_GATEWAYS_TABLE_BLOCK_TABLE_H
#define DEPLOY_GATEWAYS_TABLE_BLOCK_TABLE_H

#include "common/log/metrics.h"
#include "deploy/gateways/table/block_heap.h"
#include "deploy/gateways/table/decision_record.h"

enum {
	BLOCK_TABLE_MAX_DEFAULT = 1000000,
	BLOCK_TABLE_GUARD_MAX_MS = 24 * 3600 * 1000, /* how long a mark stays at most */
};

enum block_state {
	BLOCK_LIVE,
	BLOCK_ENDED,    /* its time came */
	BLOCK_LIFTED,   /* a newer decision ended it */
	BLOCK_LEFT_OUT, /* the table is full of such that end later */
};

/* Read only, for others than the table. */
struct block_entry {
	struct block_due due; /* of a live one when it ends, else when its mark goes */
	struct block_entry *next;
	uint64_t hash;
	enum block_state state;
	bool changed;     /* in the list of changes */
	bool told;        /* live at the last settle: whoever carries out changes has it */
	bool gone;        /* out of the table, and freed at the next settle */
	bool kept;        /* of a topic that was recreated: what the new one says of its bucket is newer */
	bool by_operator; /* what blocks it, or did last */
	uint32_t partition;
	struct decision_version version;
	int64_t at_ms;
	int64_t until_ms; /* live while the time is below it; DECISION_NO_END */
	int64_t guard_ms; /* until when some older version of it could still block */
	char *json;       /* the block's decision; NULL: not kept, or a mark that is settled */
	uint32_t json_length;
	uint32_t key_length;
	uint8_t zone_length;
	char bytes[]; /* zone, key */
};

static inline struct weir_span block_entry_zone(const struct block_entry *entry)
{
	return (struct weir_span){.at = entry->bytes, .length = entry->zone_length};
}

/** The values joined, as the message key has them. */
static inline struct weir_span block_entry_key(const struct block_entry *entry)
{
	return (struct weir_span){.at = entry->bytes + entry->zone_length, .length = entry->key_length};
}

static inline struct weir_span block_entry_json(const struct block_entry *entry)
{
	return (struct weir_span){.at = entry->json, .length = entry->json_length};
}

/** Whether it ended sooner than a list may know that was told of it: an end of its own, there, would be too late. */
static inline bool block_entry_was_cut(const struct block_entry *entry)
{
	return entry->state == BLOCK_ENDED && entry->told && entry->guard_ms > entry->until_ms;
}

struct block_table;

struct block_table_options {
	uint32_t partitions;
	uint32_t max; /* entries, marks included; at least 1 */
	bool keep_json;
	uint64_t seed; /* of the hash: secret, as keys are what clients make of them */
};

struct block_table *block_table_new(const struct block_table_options *options);
void block_table_free(struct block_table *table);

enum block_outcome {
	BLOCK_APPLIED, /* something changed */
	BLOCK_OLDER,   /* as new a version, or a newer one, is known */
	BLOCK_OVER,    /* nothing to do: it ended before now, or lifts what is not blocked */
	BLOCK_NO_ROOM, /* it would end before all that the full table holds */
};

/** Forgets all entries and marks, but not the newest version read of a partition: the topic is read from its start. */
void block_table_clear(struct block_table *table);

/**
 * The topic was recreated, or the clock was set back, and it is read from its start: each block stays until its end, or
 * until the topic says something of its bucket, in whatever version.
 */
void block_table_keep(struct block_table *table);

/** Takes in a decision. @param now_ms  Unix ms */
enum block_outcome block_table_apply(struct block_table *table, const struct decision_record *record, int64_t now_ms);

/** Ends what is over. @return when the next one ends; INT64_MAX: none will */
int64_t block_table_expire(struct block_table *table, int64_t now_ms);

/** What changed since the last settle, in the order of the first change. A bucket may stand twice, the later counts. */
struct block_entry *const *block_table_changes(const struct block_table *table, uint32_t *count);
/** Forgets the changes. */
void block_table_settle(struct block_table *table);

/** Live entries. @thread any */
uint32_t block_table_count(const struct block_table *table);
/** How many were left out, or put out for others that end later. @thread any */
uint64_t block_table_left_out(const struct block_table *table);

/** The live entry of a bucket; NULL: there is none. */
const struct block_entry *block_table_find(const struct block_table *table, struct weir_span zone,
                                           struct weir_span key);

/** The live entry of this key that ends last, of all zones; NULL: there is none. For lists that know keys alone. */
const struct block_entry *block_table_find_key(const struct block_table *table, struct weir_span key);

/** Whether an operator made a live entry of this key, in any zone: then lists hold it however wide it is. */
bool block_table_has_operators(const struct block_table *table, struct weir_span key);

/** Whether an entry of this key was live at the last settle, in any zone, but for those that are gone. */
bool block_table_was_told(const struct block_table *table, struct weir_span key);

/** The newest version read of a partition. */
struct decision_version block_table_seen(const struct block_table *table, uint32_t partition);

/* Goes over the live entries: zero-initialised is before the first. The table must not change meanwhile. */
struct block_walk {
	uint32_t slot;
	const struct block_entry *entry;
};

/** The next live entry; NULL: that was the last. */
const struct block_entry *block_table_next(const struct block_table *table, struct block_walk *walk);

#endif
