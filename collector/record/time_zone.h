/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a local time is in UTC: a fixed offset, or the history and rules of an
 * IANA zone from the system's tzdata.
 *
 * Where a clock was set back, a local time exists twice: the earlier of the two
 * is meant. Where it was set forward, a local time may not exist: it is read
 * with the offset that held before. Both follow from one rule: an offset holds
 * until the later of the two local readings of the moment that ended it.
 */
#ifndef COLLECTOR_TIME_ZONE_H
#define COLLECTOR_TIME_ZONE_H

#include "common/base/span.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { TIME_ZONE_OFFSET_MAX_S = 26 * 3600 };

struct time_zone; /* immutable: any thread */

/* Local times from, to (exclusive) that have one offset. */
struct time_zone_span {
	int64_t from_s, to_s; /* local time, seconds since 1970-01-01 00:00 there */
	int32_t offset_s;     /* UTC = local - offset */
	bool twice;           /* they exist twice, and the offset is that of the earlier ones */
};

/**
 * "UTC", "Z", "+02:00" ("-0330", "+02"), or an IANA name such as "Europe/Berlin".
 *
 * IANA names are files below $TZDIR, or /usr/share/zoneinfo.
 *
 * @param zone   returned: time_zone_free()
 * @param error  words that name the zone; without a configuration's path
 */
WEIR_MUST_USE enum weir_status time_zone_new(const char *name, struct time_zone **zone, struct weir_error *error);
void time_zone_free(struct time_zone *zone);

/**
 * What a name in a log means, such as "CEST": the zone's own name for one of its offsets, or one of those that RFC 5322
 * knows ("EST" to "PDT"). Where the zone is only an offset, as "+08:00" is, every name means that.
 *
 * @param now_s  the zone's offset at the time that the name stands with: it is meant where the name is one of its names,
 *               else the newest offset of that name
 * @return false: nobody here knows it
 */
bool time_zone_named(const struct time_zone *zone, struct weir_span name, int32_t now_s, int32_t *offset_s);

/** The span that a local time lies in: callers keep it while their times stay within. */
struct time_zone_span time_zone_find(const struct time_zone *zone, int64_t local_s);

#endif
