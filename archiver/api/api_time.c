/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A time in a query is a whole number, Unix ms as the answers have them, or ISO
 * 8601 as people write it. A + that the query's decoding made a space of is
 * taken for what it was.
 */
#include "archiver/api/api_time.h"

enum { MINUTE_MS = 60 * 1000, HOUR_MS = 60 * MINUTE_MS, NUMBER_DIGITS_MAX = 15 };

#define DAY_MS (INT64_C(24) * HOUR_MS)

struct reader {
	const char *at, *end;
};

static bool take(struct reader *reader, char wanted)
{
	if (reader->at == reader->end || *reader->at != wanted)
		return false;
	reader->at++;
	return true;
}

static bool take_digits(struct reader *reader, int count, int least, int most, int *number)
{
	*number = 0;
	for (int i = 0; i < count; i++, reader->at++) {
		if (reader->at == reader->end || *reader->at < '0' || *reader->at > '9')
			return false;
		*number = *number * 10 + (*reader->at - '0');
	}
	return *number >= least && *number <= most;
}

static bool read_number(struct reader reader, int64_t *time_ms)
{
	bool negative = take(&reader, '-');
	int64_t number = 0;
	if (reader.at == reader.end || reader.end - reader.at > NUMBER_DIGITS_MAX)
		return false;
	for (; reader.at < reader.end; reader.at++) {
		if (*reader.at < '0' || *reader.at > '9')
			return false;
		number = number * 10 + (*reader.at - '0');
	}
	*time_ms = negative ? -number : number;
	return true;
}

/* Days since 1970-01-01 in the Gregorian calendar: years are taken to begin in March, so that leap days come last. */
static int64_t days_of(int year, int month, int day)
{
	int64_t shifted = month > 2 ? year : year - 1;
	int64_t since_march = month > 2 ? month - 3 : month + 9;
	int64_t day_of_year = (153 * since_march + 2) / 5 + day - 1;
	return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719468;
}

static bool read_date(struct reader *reader, int64_t *time_ms)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int year, month, day;
	if (!take_digits(reader, 4, 1, 9999, &year) || !take(reader, '-') || !take_digits(reader, 2, 1, 12, &month) ||
	    !take(reader, '-') || !take_digits(reader, 2, 1, 31, &day))
		return false;
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	*time_ms = days_of(year, month, day) * DAY_MS;
	return day <= lengths[month - 1] + (month == 2 && leap);
}

/* ":SS" and a fraction, which is cut to the millisecond. */
static bool read_seconds(struct reader *reader, int64_t *time_ms)
{
	int seconds, weight = 100;
	if (!take(reader, ':'))
		return true;
	if (!take_digits(reader, 2, 0, 59, &seconds))
		return false;
	*time_ms += seconds * INT64_C(1000);
	if (!take(reader, '.') && !take(reader, ','))
		return true;
	const char *first = reader->at;
	for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++, weight /= 10)
		*time_ms += (int64_t)(*reader->at - '0') * weight;
	return reader->at > first;
}

static bool read_zone(struct reader *reader, int64_t *time_ms)
{
	int hours, minutes = 0;
	if (reader->at == reader->end || take(reader, 'Z') || take(reader, 'z'))
		return true;
	bool east = take(reader, '+') || take(reader, ' ');
	if ((!east && !take(reader, '-')) || !take_digits(reader, 2, 0, 23, &hours))
		return false;
	if (reader->at < reader->end) {
		take(reader, ':');
		if (!take_digits(reader, 2, 0, 59, &minutes))
			return false;
	}
	int64_t offset_ms = hours * (int64_t)HOUR_MS + minutes * (int64_t)MINUTE_MS;
	*time_ms += east ? -offset_ms : offset_ms;
	return true;
}

static bool read_iso(struct reader reader, int64_t *time_ms)
{
	int hour, minute;
	if (!read_date(&reader, time_ms))
		return false;
	if (reader.at == reader.end)
		return true;
	if (!take(&reader, 'T') && !take(&reader, 't') && !take(&reader, ' '))
		return false;
	if (!take_digits(&reader, 2, 0, 23, &hour) || !take(&reader, ':') || !take_digits(&reader, 2, 0, 59, &minute))
		return false;
	*time_ms += hour * (int64_t)HOUR_MS + minute * (int64_t)MINUTE_MS;
	return read_seconds(&reader, time_ms) && read_zone(&reader, time_ms) && reader.at == reader.end;
}

bool api_time_read(struct weir_span text, int64_t *time_ms)
{
	struct reader reader = {text.at, text.at + text.length};
	int64_t read_ms = 0;
	if (!read_number(reader, &read_ms) && !read_iso(reader, &read_ms))
		return false;
	*time_ms = read_ms;
	return read_ms >= API_TIME_LEAST_MS && read_ms <= API_TIME_MOST_MS;
}
