/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which zones a record may be in, so that a policy of a thousand zones does not cost a line a thousand questions.
 *
 * A zone takes a record by one of its filters: its match, or done of a queue. Of each filter, one field is looked up, by the
 * beginnings of its values up to their first `*`, or a status's first digit. A zone that was found may have another field of
 * one value: that is a guard, asked before the zone itself is touched. What is left is a superset: the filters
 * decide. A zone is among the found for every record if one of its filters says nothing that can be looked up: it has no
 * field, or fields that must not be something, or addresses, which are written in many ways.
 *
 * Memory: each value of the fields that are looked up costs at most WEIR_LITERAL_INDEX_BYTES and four bytes, a zone its guard and
 * two bits. A policy's text has a megabyte at most.
 */
#ifndef WEIR_ZONE_INDEX_H
#define WEIR_ZONE_INDEX_H

#include "common/matcher/literal_index.h"
#include "common/matcher/record_filter.h"

/* A zone's filter. */
struct weir_zone_filter {
	const struct weir_record_filter *filter;
	uint32_t zone;
};

enum { WEIR_GUARD_BYTES = 13 };

/* A field that must be there, and how it must begin: a zone's that takes records by one filter. */
struct weir_zone_guard {
	uint8_t field; /* WEIR_FIELD_NONE: there is none */
	bool whole;    /* it must be these bytes */
	uint8_t length;
	char bytes[WEIR_GUARD_BYTES];
};

/* Its scratch belongs to one thread. */
struct weir_zone_index {
	struct weir_literal_index literals[WEIR_FIELD_MAX]; /* of the fields that are looked up */
	uint64_t fields;                                    /* a bit each */
	struct weir_zone_guard *guards;                     /* of each zone */
	uint64_t *always, *found;                           /* a bit a zone */
	uint32_t words;                                     /* of 64 bits */
};

/**
 * @param filters  of zones 0 .. zone_count-1 in order, each of which has one at least; borrowed: must outlive the index
 * @return the caller's to free; NULL: there is nothing to look up, all zones are to be tried
 */
struct weir_zone_index *weir_zone_index_new(const struct weir_zone_filter *filters, uint32_t filter_count,
                                            uint32_t zone_count);
void weir_zone_index_free(struct weir_zone_index *index);

/** The zones that may take a record, if their guards say so too: a bit each in `words` words. Valid until the next call. */
const uint64_t *weir_zone_index_find(struct weir_zone_index *index, const struct weir_record *record);

static inline bool weir_zone_guard_passes(const struct weir_zone_guard *guard, const struct weir_record *record)
{
	struct weir_span value = record->fields[guard->field];
	if (guard->field == WEIR_FIELD_NONE)
		return true;
	return value.at != NULL && (guard->whole ? value.length == guard->length : value.length >= guard->length) &&
	       memcmp(value.at, guard->bytes, guard->length) == 0;
}

#endif
