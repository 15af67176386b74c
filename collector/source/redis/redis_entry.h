/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry of a stream as a line, and its id as a position. Strangers write entries: a line is bounded whatever one holds.
 *
 * @thread one owner
 */
#ifndef COLLECTOR_SOURCE_REDIS_ENTRY_H
#define COLLECTOR_SOURCE_REDIS_ENTRY_H

#include "common/base/text.h"

enum { REDIS_ID_BYTES = 40, REDIS_SEQUENCE_BITS = 21, REDIS_TIME_BITS = 42 };

/** "1700000000000-3". @return false: it is no id, or out of the range of positions (until the year 2109, 2^21 a ms) */
bool redis_id_position(struct weir_span id, uint64_t *position);
void redis_position_id(uint64_t position, char id[REDIS_ID_BYTES]);
/** The number behind an id's time, up to 2^59. @return false: it is no such id */
bool redis_id_number(struct weir_span id, uint64_t *number);
/** An id of a position's time with that number. */
void redis_number_id(uint64_t position, uint64_t number, char id[REDIS_ID_BYTES]);
/** Unix ms of an entry. */
static inline int64_t redis_position_ms(uint64_t position)
{
	return (int64_t)(position >> REDIS_SEQUENCE_BITS);
}

/* A line that is being made. */
struct redis_entry {
	const char *field; /* whose value is the line; NULL: all fields are, as a JSON object */
	size_t line_max;
	struct weir_text text;
	bool found;     /* with `field`: it was there */
	bool wanted;    /* the next value belongs to the line */
	bool full;      /* it is longer than line_max: the rest is left out */
	int64_t second; /* of `stamp`, Unix */
	char stamp[24]; /* "2026-11-26T13:25:42." */
	char names[64]; /* the first fields' names, for words */
};

/** Begins an entry's line: for JSON with "_stream", "_id" and "time". */
void redis_entry_begin(struct redis_entry *entry, struct weir_span key, uint64_t position);
void redis_entry_name(struct redis_entry *entry, struct weir_span name);
/** @param whole  bytes of the value, of which `value` may be the first */
void redis_entry_value(struct redis_entry *entry, struct weir_span value, uint64_t whole);
void redis_entry_end(struct redis_entry *entry);
/** The line of an entry that left its stream. */
void redis_entry_departed(struct redis_entry *entry, struct weir_span key, int64_t now_ms);

#endif
