/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open reservations: checks whose real cost is told later. The shard's files alone.
 *
 * A reservation is counted when it is opened, at its estimate, like every check. What is kept of it says what to correct
 * once it is settled. It ends by itself when its time is over: then the estimate was the cost, and nothing changes, so
 * that no clock has to be watched. "Over" is told by the newest event that opens or settles one: the log's own time.
 *
 * Bounded: one that is opened beyond it, though what has ended is gone, is not kept. A key has at most the shard's part.
 */
#ifndef LIMITER_RESERVATIONS_H
#define LIMITER_RESERVATIONS_H

#include "common/base/span.h"
#include "common/base/text.h"
#include "common/bytes/hash.h"
#include "common/frame/frame.h"

enum {
	RESERVATIONS_MAX = 16384, /* of a partition */
	RESERVATIONS_OF_A_KEY_MAX = 4096,
	RESERVATION_CELLS = 1024, /* keys share them: what is counted of a key is perhaps too many */
};

struct reservation {
	uint8_t id[WEIR_RESERVATION_ID_BYTES];
	uint64_t low; /* the bucket's fingerprint */
	uint32_t high;
	int64_t t;    /* when it was opened */
	int64_t cost; /* that was counted: 0 where nothing was recorded */
	int64_t ends_ms;
	uint32_t zone_id;
	uint32_t thousandths; /* that an operator multiplied the rates by */
	bool counts;          /* its bucket still has what it took; else it gives nothing back */
};

struct reservations {
	struct reservation *held; /* open addressing by id; ends_ms 0: free */
	uint32_t count, room;
	uint16_t cells[RESERVATION_CELLS];
	int64_t first_end_ms; /* none ends before it */
	int64_t swept_ms;     /* when reservations_have_room() swept last */
};

void reservations_deinit(struct reservations *reservations);
/** @return NULL: there is none, or it has ended by t; borrowed until one is added or removed */
struct reservation *reservations_find(const struct reservations *reservations, const uint8_t *id, int64_t t);
/** Adds one; those that have ended by its time may go. @return false: there are too many, and it is not kept */
bool reservations_add(struct reservations *reservations, const struct reservation *one);
void reservations_remove(struct reservations *reservations, const uint8_t *id);
/** Whether one of a key may be added at t, beside `under_way` others. */
bool reservations_have_room(struct reservations *reservations, uint64_t low, int64_t t, uint32_t under_way);
/** A bucket was emptied: its reservations give nothing back. */
void reservations_void_bucket(struct reservations *reservations, uint64_t low, uint32_t high);
/** The same of all buckets of a zone. */
void reservations_void_zone(struct reservations *reservations, uint32_t zone_id);
/** Takes over what another has. */
void reservations_copy(struct reservations *to, const struct reservations *from);
size_t reservations_bytes(const struct reservations *reservations);

/** Appends them as bytes, by id. */
void reservations_export(const struct reservations *reservations, struct weir_text *bytes);
/** Reads what that wrote, and moves past it. @return false: it is damaged */
bool reservations_import(struct reservations *reservations, struct weir_span *bytes);

#endif
