/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One parsed log record: its time, cost and the fields that some zone asks for.
 *
 * Which fields exist is fixed when the configuration is read: a field_table
 * maps names to small indexes, and a format fills only those. So a line costs
 * what its zones look at, not what it holds.
 */
#ifndef WEIR_RECORD_H
#define WEIR_RECORD_H

#include "common/base/span.h"
#include "common/frame/frame.h"

#include <stdbool.h>

enum {
	WEIR_FIELD_IP,
	WEIR_FIELD_USER,
	WEIR_FIELD_METHOD,
	WEIR_FIELD_PATH,
	WEIR_FIELD_STATUS,
	WEIR_FIELD_BYTES,
	WEIR_FIELD_HOST,
	WEIR_FIELD_AGENT,
	WEIR_FIELD_STANDARD_COUNT, /* further names get the indexes from here on */
	WEIR_FIELD_MAX = 64,
	WEIR_FIELD_NONE = WEIR_FIELD_MAX, /* a place in a record for what nobody wants */
};

/* Names that zones, formats and the cost use; the first eight are the standard ones. Immutable once built. */
struct weir_field_table {
	uint32_t count;
	const char *names[WEIR_FIELD_MAX]; /* owned */
	uint64_t wanted; /* bit i: some zone (or cost, client_ip) uses field i; others need not be filled */
};

void weir_field_table_init(struct weir_field_table *table);
void weir_field_table_deinit(struct weir_field_table *table);

/**
 * Index of a name, added if it is new; marks it wanted.
 *
 * @return the index, or -1 when WEIR_FIELD_MAX names are taken
 */
int weir_field_table_want(struct weir_field_table *table, const char *name);

/** Index of a name, or -1. */
int weir_field_table_find(const struct weir_field_table *table, struct weir_span name);

/* What a record's ip is, if it has one. */
enum weir_record_ip {
	WEIR_RECORD_IP_UNTOLD, /* nobody looked */
	WEIR_RECORD_IP_PLAIN,  /* an address, canonical as it stands */
	WEIR_RECORD_IP_WORD,   /* no address: a host name, say */
};

struct weir_record {
	const char *source; /* the name of the source that it came from; NULL: it has none. Set by who reads sources */
	enum weir_record_ip ip;
	bool by_name;    /* only zones that name the source take it; set by who reads sources */
	bool asks;       /* a request that is asked for, no line: zones of log lines alone (`feed`) do not take it */
	bool settled;    /* the ip, the path, the host and the method are in their one form */
	bool cut;        /* of a line that lacks its end: what would stand there is not known */
	int64_t time_ms; /* event time, Unix ms, UTC, 0 <= time < WEIR_TIME_END_MS */
	int64_t cost;    /* 0 .. WEIR_COST_MAX; 1 unless the format maps a cost */
	uint32_t times;  /* how many records it stands for, all like it: see weir_record_parts(); 0 is 1 */
	struct weir_span fields[WEIR_FIELD_MAX + 1]; /* into the line or the format's scratch; valid until its next parse */
};

enum {
	WEIR_RECORD_TIMES_MAX = 1000000,
	WEIR_RECORD_PARTS_MAX = 64,
};

/** How many records some stand for that stand for several each. */
static inline uint32_t weir_record_times(uint32_t outer, uint32_t inner)
{
	uint64_t times = (uint64_t)outer * inner;
	return times < WEIR_RECORD_TIMES_MAX ? (uint32_t)times : WEIR_RECORD_TIMES_MAX;
}

/**
 * Divides a record that stands for several into events, of which none is blocked only for being many at once. Up to 32
 * are one each. Of more, half are the first event, half of what is left the next, and so on. So as many as a limit lets
 * pass add up from what passes, whatever is left of the limit; and the last one, alone, is over it if all were too many.
 *
 * @param parts  returned: for how many records each event stands, none above the one before it
 * @return how many parts
 */
uint32_t weir_record_parts(uint32_t times, uint32_t parts[WEIR_RECORD_PARTS_MAX]);

#endif
