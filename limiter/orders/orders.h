/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders: operators' commands that are in force for keys of one partition. They are
 * kept beside the buckets and are part of the shard's state: only commands in the log
 * change them, and only the log's clock ends them.
 *
 * For one key there may be a block or an allow (the later command counts), and
 * beside it an override of its rates; for a prefix of joined keys an override.
 *
 *   a block or an allow is for events whose time is before its end, whenever
 *   they come; it is forgotten once the clock is past that and the lateness
 *   an override is for what is judged while the clock is before its end, as a
 *   policy is for what comes behind it: so that an event out of order does not
 *   change a key's limits to and fro
 *
 * Bounded in number and bytes. One thread touches them.
 */
#ifndef LIMITER_ORDERS_H
#define LIMITER_ORDERS_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "limiter/orders/order_command.h"

enum {
	ORDERS_MAX = 10000,                 /* keys and prefixes of one partition */
	ORDERS_BYTES_MAX = 4 * 1024 * 1024, /* of their keys and words: they are in every checkpoint */
};

/* One command that holds. */
struct order_term {
	bool holds;
	int64_t at_ms;    /* when it was given */
	int64_t until_ms; /* exclusive; ORDER_NO_END */
	uint64_t offset;  /* of the record that gave it, which its decision's id is made of */
	char *by, *reason;
};

/* What holds for a key, or a prefix of keys, in a zone. */
struct order {
	uint32_t zone_id;
	bool prefix;
	struct weir_span key; /* joined; owned */
	uint64_t hash;
	struct order_term block, allow, rate; /* block and allow never both */
	uint32_t thousandths;                 /* of the rate */
};

struct orders {
	int64_t lateness_ms; /* < 0: blocks and allows are never forgotten */
	struct order **list; /* in the order of their first commands */
	uint32_t count, room;
	uint32_t *index; /* place in the list + 1 by hash, linear probing; 0: free */
	uint32_t index_room;
	size_t bytes;
	int64_t next_end_ms; /* the clock at which some term ends; INT64_MAX: none does */
	uint32_t prefix_count;
	uint16_t *prefix_lengths; /* that there are, each once, the longest first */
	uint32_t prefix_length_count;
};

void orders_init(struct orders *orders, int64_t lateness_ms);
void orders_deinit(struct orders *orders);

static inline bool orders_any(const struct orders *orders)
{
	return orders->count > 0;
}

/** Whether anything may hold for a key. */
bool orders_touch(const struct orders *orders, uint32_t zone_id, struct weir_span key);

/* What holds for a key at an event. */
struct order_effect {
	bool blocked, allowed;
	uint32_t thousandths; /* 1000: its rates are the policy's */
};

struct order_effect orders_effect(const struct orders *orders, uint32_t zone_id, struct weir_span key, int64_t t);

/** The block of a key that ends after a time, NULL if there is none; valid until the next command or purge. */
const struct order_term *orders_block_after(const struct orders *orders, uint32_t zone_id, struct weir_span key,
                                            int64_t at_ms);

/**
 * Changes the orders as a command says.
 *
 * @param at_ms  when it was given
 * @return WEIR_OK; WEIR_FULL: there are too many orders, nothing was changed: words in error
 */
WEIR_MUST_USE enum weir_status orders_apply(struct orders *orders, uint32_t zone_id,
                                            const struct order_command *command, int64_t at_ms,
                                            struct weir_error *error);

/** Forgets what has ended by the clock. */
void orders_purge(struct orders *orders, int64_t clock_ms);

/** Drops the orders of zones that are not in force. */
void orders_keep_zones(struct orders *orders, bool (*in_force)(const void *context, uint32_t zone_id),
                       const void *context);

/* ---- as bytes, little-endian; orders_blob.c says which ---- */

void orders_export(const struct orders *orders, struct weir_text *bytes);

/** Takes the place of what is there. @return false: the bytes are no orders, and there are none */
bool orders_import(struct orders *orders, struct weir_span bytes);

/* ---- for orders_blob.c ---- */

/** An order of a key, made if there is none yet. */
struct order *orders_make(struct orders *orders, uint32_t zone_id, bool prefix, struct weir_span key);
void orders_set_term(struct orders *orders, struct order_term *term, int64_t at_ms, int64_t until_ms, uint64_t offset,
                     const char *by, const char *reason);
/** To be called when orders were made or changed. */
void orders_settle(struct orders *orders);

#endif
