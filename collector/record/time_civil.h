/* SPDX-License-Identifier: Apache-2.0 */
/* The calendar: days since 1970-01-01 of a date in the proleptic Gregorian calendar, and back. */
#ifndef COLLECTOR_TIME_CIVIL_H
#define COLLECTOR_TIME_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

enum { DAY_SECONDS = 86400, CIVIL_CYCLE_YEARS = 400, CIVIL_CYCLE_DAYS = 146097 };

#define DAY_MS INT64_C(86400000)

static inline bool civil_is_leap(int32_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/** Days in a month, 1..12. */
static inline int32_t civil_month_days(int32_t year, int32_t month)
{
	/* 31 days in odd months up to July and in even ones after it. */
	return month == 2 ? 28 + civil_is_leap(year) : 30 + ((month + (month >> 3)) & 1);
}

/**
 * Days from 1970-01-01 to a date.
 *
 * @param year   1..9999
 * @param month  1..12
 * @param day    1 and up: it need not lie within the month
 */
static inline int64_t civil_days(int32_t year, int32_t month, int32_t day)
{
	static const uint16_t before_month[12] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
	int32_t past = year - 1;
	int32_t leap_day = month > 2 && civil_is_leap(year);
	return (int64_t)past * 365 + past / 4 - past / 100 + past / 400 + before_month[month - 1] + leap_day + day - 1 -
	       719162;
}

/** Day of the week of a day count since 1970-01-01: 0 is Sunday. */
static inline int32_t civil_weekday(int64_t days)
{
	int64_t weekday = (days + 4) % 7;
	return (int32_t)(weekday < 0 ? weekday + 7 : weekday);
}

#endif
