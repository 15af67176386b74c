/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which limiter answers the checks of which partition, and at which address: one table a process.
 *
 * Each limiter publishes its address with the epoch under which it took a partition, and reads what others published
 * (owners_feed.h). A row is believed while its epoch is the partition's in the store, and above every epoch under which
 * this process has had the partition. So no two tables can send an ask back and forth: one of them knows the higher epoch.
 *
 * Addresses are places, by number. There are OWNERS_PLACES_MAX; one that no partition has any more is given anew.
 */
#ifndef LIMITER_OWNERS_H
#define LIMITER_OWNERS_H

#include "common/base/span.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	OWNERS_PLACES_MAX = 64,
	OWNERS_INBOXES = 2 * OWNERS_PLACES_MAX, /* of mail (owners_inbox()) */
	OWNERS_HOST_BYTES = 256,
};

#define OWNERS_NONE UINT32_MAX /* as a place: this process itself, or nobody who is known */

struct owners_place {
	char host[OWNERS_HOST_BYTES];
	uint16_t port;
	uint32_t version; /* grows when the number is given to another address; 0: it was never given */
};

/*
 * The number among the places' inboxes of what a place is asked. A durable answer waits for the log; what is answered at once
 * must not wait behind it, and goes by an inbox and a connection of its own.
 */
static inline uint32_t owners_inbox(uint32_t place, bool durable)
{
	return durable ? OWNERS_PLACES_MAX + place : place;
}

struct owners;

/** @param host, port  where this process answers, as the others reach it */
struct owners *owners_new(uint32_t partitions, const char *host, uint16_t port);
/** NULL is fine. */
void owners_free(struct owners *owners);

uint32_t owners_partitions(const struct owners *owners);
/** Where this process answers. */
const struct owners_place *owners_self(const struct owners *owners);

/** This process has taken a partition. @param epoch  under which @thread any, of one partition one at a time */
void owners_took(struct owners *owners, uint32_t partition, uint64_t epoch);
/** It has left it. @thread the same */
void owners_left(struct owners *owners, uint32_t partition);

/** The epoch under which this process has a partition; 0: it does not. @thread any */
uint64_t owners_epoch(const struct owners *owners, uint32_t partition);

/** Whether the store says that another has taken a partition that this process has. @thread any */
bool owners_lost(const struct owners *owners, uint32_t partition);

/** The place of another limiter that answers for a partition, or OWNERS_NONE. Takes no lock. @thread any */
uint32_t owners_of(const struct owners *owners, uint32_t partition);

/** Where a place is. @return false: the number was never given @thread any */
bool owners_place(struct owners *owners, uint32_t number, struct owners_place *place);

/**
 * Whether another process publishes the address of this one as its own, as of the last reading: what that one has cannot be
 * asked. What stood there when this one first read may be of an earlier life of it, and is meant only if it still stands
 * OWNERS_SETTLED_MS later. So of two with one address the one that was there first knows soon. @thread any
 */
bool owners_share_address(const struct owners *owners);

/** Says that somebody who should answer for a partition does not: the store is read soon. @thread any */
void owners_doubt(struct owners *owners);
/** Whether there was a doubt since the last call. @thread the feed's */
bool owners_take_doubt(struct owners *owners);

/* ---- what the store says: the feed's thread ---- */

enum { OWNERS_SETTLED_MS = 60000 }; /* longer than any session of the consumer group's */

/** Begins a reading: partitions without owners_learn() before owners_read_end() have no known owner. @param now_ms  monotonic */
void owners_read_begin(struct owners *owners, int64_t now_ms);
/**
 * @param stored_epoch  of the partition in the store
 * @param row           what was published: "EPOCH HOST:PORT", HOST an IPv6 address in brackets
 */
void owners_learn(struct owners *owners, uint32_t partition, uint64_t stored_epoch, struct weir_span row);
void owners_read_end(struct owners *owners);

/** The row that this process publishes of a partition. @param row  OWNERS_ROW_BYTES */
enum { OWNERS_ROW_BYTES = OWNERS_HOST_BYTES + 64 };
struct weir_span owners_row(const struct owners *owners, uint64_t epoch, char *row);

#endif
