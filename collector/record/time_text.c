/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the times of log lines.
 *
 * A form is told by the bytes at fixed places; each reader then takes its parts in order and must arrive at the end.
 * Two things are kept from time to time: the day of the last Common Log time, because logs are written day by day,
 * and the span of local times around the last one, in which the zone's offset is the same.
 */
#include "collector/record/time_text.h"

#include "collector/record/time_civil.h"

/* A time as it is written, before its zone is known. */
struct written {
	int32_t year, month, day;
	int64_t of_day_ms;
	bool leap_second;
	bool has_zone;
	int32_t offset_s;
};

/* What is left of a text. */
struct cursor {
	const char *at, *end;
};

void time_reader_init(struct time_reader *reader, struct time_zone *zone)
{
	*reader = (struct time_reader){.zone = zone, .unit = TIME_UNIT_S, .absent_ms = -1};
	reader->common.zone = UINT64_MAX;
	reader->span = time_zone_find(zone, 0);
}

void time_reader_deinit(struct time_reader *reader)
{
	time_zone_free(reader->zone);
	reader->zone = NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool take(struct cursor *cursor, char wanted)
{
	if (cursor->at == cursor->end || *cursor->at != wanted)
		return false;
	cursor->at++;
	return true;
}

/* Exactly `count` digits. */
static bool take_digits(struct cursor *cursor, int count, int32_t *number)
{
	int32_t value = 0;
	if (cursor->end - cursor->at < count)
		return false;
	for (int i = 0; i < count; i++) {
		if (!is_digit(cursor->at[i]))
			return false;
		value = value * 10 + (cursor->at[i] - '0');
	}
	cursor->at += count;
	*number = value;
	return true;
}

static bool take_time_of_day(struct cursor *cursor, struct written *written)
{
	if (cursor->end - cursor->at < 8)
		return false;
	written->of_day_ms = time_of_day_ms(cursor->at);
	written->leap_second = cursor->at[6] == '6';
	cursor->at += 8;
	return written->of_day_ms >= 0;
}

/* [.,] and digits, cut to the millisecond; none is fine. */
static bool take_fraction(struct cursor *cursor, int64_t *ms)
{
	if (!take(cursor, '.') && !take(cursor, ','))
		return true;
	const char *first = cursor->at;
	int64_t worth = 100;
	for (; cursor->at < cursor->end && is_digit(*cursor->at); cursor->at++, worth /= 10)
		*ms += worth * (*cursor->at - '0');
	return cursor->at > first;
}

static bool take_month_name(struct cursor *cursor, int32_t *month)
{
	static const char names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
	                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	if (cursor->end - cursor->at < 3)
		return false;
	for (int32_t i = 0; i < 12; i++) {
		if (memcmp(cursor->at, names[i], 3) == 0) {
			cursor->at += 3;
			*month = i + 1;
			return true;
		}
	}
	return false;
}

/* ±HH, ±HHMM or ±HH:MM; `full` leaves ±HHMM alone. */
static bool take_offset(struct cursor *cursor, bool full, struct written *written)
{
	int32_t hours, minutes = 0;
	bool west = take(cursor, '-');
	if ((!west && !take(cursor, '+')) || !take_digits(cursor, 2, &hours))
		return false;
	bool colon = !full && take(cursor, ':');
	if ((full || colon || cursor->at < cursor->end) && !take_digits(cursor, 2, &minutes))
		return false;
	if (hours > 23 || minutes > 59)
		return false;
	written->has_zone = true;
	written->offset_s = (hours * 60 + minutes) * (west ? -60 : 60);
	return true;
}

static bool date_exists(const struct written *written)
{
	return written->month >= 1 && written->month <= 12 && written->day >= 1 &&
	       written->day <= civil_month_days(written->year, written->month);
}

/* UTC of what was written, in its own zone or the reader's. */
static int64_t resolve(struct time_reader *reader, const struct written *written)
{
	int64_t local_ms = civil_days(written->year, written->month, written->day) * DAY_MS + written->of_day_ms;
	int64_t offset_s = written->offset_s;
	if (!written->has_zone) {
		/* A leap second belongs to the minute that it ends. */
		int64_t local_s = local_ms / 1000 - written->leap_second;
		if (local_s < reader->span.from_s || local_s >= reader->span.to_s)
			reader->span = time_zone_find(reader->zone, local_s);
		offset_s = reader->span.offset_s;
	}
	return local_ms - offset_s * 1000;
}

static enum format_reason in_range(int64_t ms, int64_t *time_ms)
{
	*time_ms = ms;
	return ms >= 0 && ms < WEIR_TIME_END_MS ? FORMAT_OK : FORMAT_TIME_RANGE;
}

/* 02/Jan/2006:15:04:05[fraction][ +0100] */
static enum format_reason read_common(struct time_reader *reader, struct cursor cursor, int64_t *time_ms)
{
	const char *text = cursor.at;
	struct written written = {0};
	int64_t fraction_ms = 0;
	if (!take_digits(&cursor, 2, &written.day) || !take(&cursor, '/') || !take_month_name(&cursor, &written.month) ||
	    !take(&cursor, '/') || !take_digits(&cursor, 4, &written.year) || !take(&cursor, ':') ||
	    !take_time_of_day(&cursor, &written) || !take_fraction(&cursor, &fraction_ms))
		return FORMAT_BAD_TIME;
	if (cursor.at < cursor.end && (!take(&cursor, ' ') || !take_offset(&cursor, true, &written)))
		return FORMAT_BAD_TIME;
	if (cursor.at < cursor.end || !date_exists(&written))
		return FORMAT_BAD_TIME;

	int64_t ms = resolve(reader, &written);
	if (written.has_zone && cursor.end - text == TIME_COMMON_BYTES) {
		int64_t midnight_ms = ms - written.of_day_ms;
		/* Only a day that is in range from end to end is remembered: its times need no further test. */
		if (midnight_ms >= 0 && midnight_ms < WEIR_TIME_END_MS - 2 * DAY_MS) {
			reader->common.date = time_load(text);
			reader->common.year = time_load_year(text);
			reader->common.zone = time_load_zone(text);
			reader->common.midnight_ms = midnight_ms;
		}
	}
	return in_range(ms + fraction_ms, time_ms);
}

/* 2006-01-02T15:04:05[fraction][zone], or 2006/01/02 */
static enum format_reason read_iso(struct time_reader *reader, struct cursor cursor, int64_t *time_ms)
{
	struct written written = {0};
	char separator = cursor.at[4];
	if (!take_digits(&cursor, 4, &written.year) || !take(&cursor, separator) ||
	    !take_digits(&cursor, 2, &written.month) || !take(&cursor, separator) ||
	    !take_digits(&cursor, 2, &written.day) || (!take(&cursor, 'T') && !take(&cursor, ' ') && !take(&cursor, 't')) ||
	    !take_time_of_day(&cursor, &written) || !take_fraction(&cursor, &written.of_day_ms))
		return FORMAT_BAD_TIME;
	if (take(&cursor, 'Z') || take(&cursor, 'z')) {
		written.has_zone = true;
	} else if (cursor.at < cursor.end) {
		take(&cursor, ' ');
		if (!take_offset(&cursor, false, &written))
			return FORMAT_BAD_TIME;
	}
	if (cursor.at < cursor.end || !date_exists(&written))
		return FORMAT_BAD_TIME;
	return in_range(resolve(reader, &written), time_ms);
}

/* "17", " 7" or "7". */
static bool take_day(struct cursor *cursor, int32_t *day)
{
	bool padded = take(cursor, ' ');
	return (!padded && take_digits(cursor, 2, day)) || take_digits(cursor, 1, day);
}

/* Jan  2 15:04:05: the year is the reader's. */
static enum format_reason read_syslog(struct time_reader *reader, struct cursor cursor, int64_t *time_ms)
{
	struct written written = {0};
	if (reader->first_year == 0 || !take_month_name(&cursor, &written.month) || !take(&cursor, ' ') ||
	    !take_day(&cursor, &written.day) || !take(&cursor, ' ') || !take_time_of_day(&cursor, &written) ||
	    cursor.at < cursor.end)
		return FORMAT_BAD_TIME;
	written.year = reader->first_year + (written.month < reader->first_month);
	if (!date_exists(&written))
		return FORMAT_BAD_TIME;
	return in_range(resolve(reader, &written), time_ms);
}

/* Digits and perhaps a fraction: seconds to nanoseconds since 1970, cut to the millisecond. */
static enum format_reason read_unix(struct time_reader *reader, struct cursor cursor, int64_t *time_ms)
{
	static const int below_ms[] = {[TIME_UNIT_S] = 0, [TIME_UNIT_MS] = 0, [TIME_UNIT_US] = 3, [TIME_UNIT_NS] = 6};
	bool negative = take(&cursor, '-');
	const char *first = cursor.at;
	int64_t fraction_ms = 0;
	while (cursor.at < cursor.end && is_digit(*cursor.at))
		cursor.at++;
	const char *last = cursor.at;
	if (last == first || (last < cursor.end && *last != '.') || !take_fraction(&cursor, &fraction_ms) ||
	    cursor.at < cursor.end)
		return FORMAT_BAD_TIME;
	if (negative)
		return FORMAT_TIME_RANGE;

	int64_t ms = 0;
	ptrdiff_t kept = last - first - below_ms[reader->unit];
	for (ptrdiff_t i = 0; i < kept && ms < WEIR_TIME_END_MS; i++)
		ms = ms * 10 + (first[i] - '0');
	if (reader->unit == TIME_UNIT_S)
		ms = ms * 1000 + fraction_ms;
	return in_range(ms, time_ms);
}

enum format_reason time_read(struct time_reader *reader, struct weir_span text, int64_t *time_ms)
{
	if (text.length == 0) {
		*time_ms = reader->absent_ms;
		return reader->absent_ms >= 0 ? FORMAT_OK : FORMAT_NO_TIME;
	}
	struct cursor cursor = {.at = text.at, .end = text.at + text.length};
	if (text.length > 4 && text.at[2] == '/')
		return read_common(reader, cursor, time_ms);
	if (text.length > 4 && (text.at[4] == '-' || text.at[4] == '/'))
		return read_iso(reader, cursor, time_ms);
	if (is_digit(text.at[0]) || text.at[0] == '-')
		return read_unix(reader, cursor, time_ms);
	return read_syslog(reader, cursor, time_ms);
}
