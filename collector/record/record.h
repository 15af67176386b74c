/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One parsed log record: its time, cost and the fields that some zone asks for.
 *
 * Which fields exist is fixed when the configuration is read: a field_table
 * maps names to small indexes, and a format fills only those. So a line costs
 * what its zones look at, not what it holds.
 */
#ifndef COLLECTOR_RECORD_H
#define COLLECTOR_RECORD_H

#include "common/base/span.h"
#include "common/frame/frame.h"

#include <stdbool.h>

enum {
	FIELD_IP,
	FIELD_USER,
	FIELD_METHOD,
	FIELD_PATH,
	FIELD_STATUS,
	FIELD_BYTES,
	FIELD_HOST,
	FIELD_AGENT,
	FIELD_STANDARD_COUNT, /* further names get the indexes from here on */
	FIELD_MAX = 64,
	FIELD_NONE = FIELD_MAX, /* a place in a record for what nobody wants */
};

/* Names that zones, formats and the cost use; the first eight are the standard ones. Immutable once built. */
struct field_table {
	uint32_t count;
	const char *names[FIELD_MAX]; /* owned */
	uint64_t wanted;              /* bit i: some zone (or cost, client_ip) uses field i; others need not be filled */
};

void field_table_init(struct field_table *table);
void field_table_deinit(struct field_table *table);

/**
 * Index of a name, added if it is new; marks it wanted.
 *
 * @return the index, or -1 when FIELD_MAX names are taken
 */
int field_table_want(struct field_table *table, const char *name);

/** Index of a name, or -1. */
int field_table_find(const struct field_table *table, struct weir_span name);

/* What a record's ip is, if it has one. */
enum record_ip {
	RECORD_IP_UNTOLD, /* nobody looked */
	RECORD_IP_PLAIN,  /* an address, canonical as it stands */
	RECORD_IP_WORD,   /* no address: a host name, say */
};

struct record {
	const char *source; /* the name of the source that it came from; NULL: it has none. Set by who reads sources */
	enum record_ip ip;
	bool by_name;    /* only zones that name the source take it; set by who reads sources */
	bool settled;    /* the ip and the path are in their one form: nothing is left for format_settle() */
	bool cut;        /* of a line that lacks its end: what would stand there is not known */
	int64_t time_ms; /* event time, Unix ms, UTC, 0 <= time < WEIR_TIME_END_MS */
	int64_t cost;    /* 0 .. WEIR_COST_MAX; 1 unless the format maps a cost */
	struct weir_span fields[FIELD_MAX + 1]; /* into the line or the format's scratch; valid until its next parse */
};

/* Why a line is no record; format_reason_text() gives the words that counters and the dead letter show. */
enum format_reason {
	FORMAT_OK = 0,
	FORMAT_SKIP, /* no record and nothing wrong: an empty line, a header, what a pattern is told to skip */
	FORMAT_NO_TIME,
	FORMAT_BAD_TIME,
	FORMAT_TIME_RANGE,
	FORMAT_LINE_TOO_LONG, /* the caller's: no format is asked */
	FORMAT_BAD_COST,
	FORMAT_NO_CLIENT,    /* a trusted proxy does not say for whom it asked */
	FORMAT_SEARCH_LIMIT, /* a pattern took too long, or too much memory */
	FORMAT_AMBIGUOUS,    /* the address stands in two places, and which of them a stranger wrote cannot be told */
	FORMAT_MALFORMED, /* from here on: not of the format, each kind of which has a number (struct format, malformed) */
	FORMAT_KINDS_MAX = 32,
	FORMAT_REASON_COUNT = FORMAT_MALFORMED + FORMAT_KINDS_MAX,
};

#endif
