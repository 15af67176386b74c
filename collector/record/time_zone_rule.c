/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the POSIX TZ rule that ends a tzdata file, and finds the moments of its changes.
 *
 * A small recursive-descent reader: each take_* function advances the cursor past what it read, or gives false.
 */
#include "collector/record/time_zone_rule.h"

#include "collector/record/time_civil.h"

#include <stddef.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool take_char(const char **at, char wanted)
{
	if (**at != wanted)
		return false;
	(*at)++;
	return true;
}

static bool take_number(const char **at, int32_t least, int32_t most, int32_t *out)
{
	int32_t value = 0;
	const char *p = *at;
	while (is_digit(*p) && value <= 1000)
		value = value * 10 + (*p++ - '0');
	if (p == *at || is_digit(*p) || value < least || value > most)
		return false;
	*at = p;
	*out = value;
	return true;
}

/* "CET" or "<+0330>": the name says nothing about the offset and is skipped. */
static bool take_name(const char **at)
{
	const char *p = *at;
	if (*p == '<') {
		while (*p != '>' && *p != '\0')
			p++;
		if (*p == '\0')
			return false;
		*at = p + 1;
		return true;
	}
	while (is_letter(*p))
		p++;
	if (p - *at < 3)
		return false;
	*at = p;
	return true;
}

/* [+-]h[h[h]][:mm[:ss]] */
static bool take_time(const char **at, int32_t hours_max, int32_t *seconds)
{
	int32_t hours = 0, minutes = 0, rest = 0;
	bool negative = take_char(at, '-');
	if (!negative)
		take_char(at, '+');
	if (!take_number(at, 0, hours_max, &hours))
		return false;
	if (take_char(at, ':')) {
		if (!take_number(at, 0, 59, &minutes))
			return false;
		if (take_char(at, ':') && !take_number(at, 0, 59, &rest))
			return false;
	}
	int32_t total = hours * 3600 + minutes * 60 + rest;
	*seconds = negative ? -total : total;
	return true;
}

static bool take_change(const char **at, struct time_zone_change *change)
{
	*change = (struct time_zone_change){.time_s = 2 * 3600};
	if (take_char(at, 'M')) {
		change->kind = CHANGE_MONTH_WEEK_DAY;
		if (!take_number(at, 1, 12, &change->month) || !take_char(at, '.') || !take_number(at, 1, 5, &change->week) ||
		    !take_char(at, '.') || !take_number(at, 0, 6, &change->day))
			return false;
	} else if (take_char(at, 'J')) {
		change->kind = CHANGE_JULIAN;
		if (!take_number(at, 1, 365, &change->day))
			return false;
	} else {
		change->kind = CHANGE_DAY_OF_YEAR;
		if (!take_number(at, 0, 365, &change->day))
			return false;
	}
	return !take_char(at, '/') || take_time(at, 167, &change->time_s);
}

bool time_zone_rule_parse(const char *text, struct time_zone_rule *rule)
{
	*rule = (struct time_zone_rule){0};
	int32_t west_s;
	if (!take_name(&text) || !take_time(&text, 24, &west_s))
		return false;
	rule->standard_s = -west_s;
	if (*text == '\0')
		return true;

	rule->has_daylight = true;
	rule->daylight_s = rule->standard_s + 3600;
	if (!take_name(&text))
		return false;
	if (*text != ',') {
		if (!take_time(&text, 24, &west_s))
			return false;
		rule->daylight_s = -west_s;
	}
	return take_char(&text, ',') && take_change(&text, &rule->start) && take_char(&text, ',') &&
	       take_change(&text, &rule->end) && *text == '\0';
}

static int64_t change_day(const struct time_zone_change *change, int32_t year)
{
	switch (change->kind) {
	case CHANGE_JULIAN: /* February 29 is never counted */
		return civil_days(year, 1, change->day) + (civil_is_leap(year) && change->day >= 60);
	case CHANGE_DAY_OF_YEAR: return civil_days(year, 1, change->day + 1);
	case CHANGE_MONTH_WEEK_DAY: break;
	}
	int64_t first = civil_days(year, change->month, 1);
	int64_t day = first + (change->day - civil_weekday(first) + 7) % 7 + (change->week - 1) * 7;
	while (day >= first + civil_month_days(year, change->month))
		day -= 7;
	return day;
}

int64_t time_zone_change_at(const struct time_zone_change *change, int32_t year, int32_t offset_before_s)
{
	return change_day(change, year) * DAY_SECONDS + change->time_s - offset_before_s;
}
