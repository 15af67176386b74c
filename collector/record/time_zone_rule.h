/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule at the end of a tzdata file (POSIX TZ, RFC 8536 §3.3): the zone's offsets after its last recorded change.
 */
#ifndef COLLECTOR_TIME_ZONE_RULE_H
#define COLLECTOR_TIME_ZONE_RULE_H

#include <stdbool.h>
#include <stdint.h>

/* One yearly change of the clock. */
struct time_zone_change {
	enum { CHANGE_MONTH_WEEK_DAY, CHANGE_JULIAN, CHANGE_DAY_OF_YEAR } kind;
	int32_t month, week, day; /* week 5 is the last; day: of the week (0 Sunday), or of the year */
	int32_t time_s;           /* local time before the change, seconds after midnight, may be negative or past a day */
};

struct time_zone_rule {
	int32_t standard_s; /* UTC offset, east positive */
	int32_t daylight_s;
	bool has_daylight;
	struct time_zone_change start, end; /* of daylight time */
};

/** "CET-1CEST,M3.5.0,M10.5.0/3"; false where text is no such rule. */
bool time_zone_rule_parse(const char *text, struct time_zone_rule *rule);

/** UTC seconds at which a change happens in a year, given the offset before it. */
int64_t time_zone_change_at(const struct time_zone_change *change, int32_t year, int32_t offset_before_s);

#endif
