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

/* 2000 and 2100. */
#define NUMBER_FIRST_MS INT64_C(946684800000)
#define NUMBER_END_MS INT64_C(4102444800000)

enum { NUMBER_DIGITS_MAX = 40, NUMBER_EXPONENT_MAX = 1000 };

void time_reader_init(struct time_reader *reader, struct time_zone *zone)
{
	*reader = (struct time_reader){.zone = zone, .unit = TIME_UNIT_S, .absent_ms = -1, .reference_ms = -1};
	reader->common.zone = UINT64_MAX;
	reader->span = time_zone_find(zone, 0);
}

void time_reader_deinit(struct time_reader *reader)
{
	time_zone_free(reader->zone);
	time_form_free(reader->form);
	reader->form = NULL;
	reader->zone = NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool take(struct time_cursor *cursor, char wanted)
{
	if (cursor->at == cursor->end || *cursor->at != wanted)
		return false;
	cursor->at++;
	return true;
}

/* Exactly `count` digits. */
static bool take_digits(struct time_cursor *cursor, int count, int32_t *number)
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

/* Whether a fraction above zero stands there. */
static bool has_fraction(const char *at, const char *end)
{
	if (at == end || (*at != '.' && *at != ','))
		return false;
	for (at++; at < end && is_digit(*at); at++)
		if (*at != '0')
			return true;
	return false;
}

static bool take_time_of_day(struct time_cursor *cursor, struct time_written *written)
{
	if (cursor->end - cursor->at < 8)
		return false;
	bool is_end = memcmp(cursor->at, "24:00:00", 8) == 0 && !has_fraction(cursor->at + 8, cursor->end);
	written->of_day_ms = is_end ? DAY_MS : time_of_day_ms(cursor->at);
	written->leap_second = cursor->at[6] == '6';
	cursor->at += 8;
	return written->of_day_ms >= 0;
}

/* [.,] and digits, cut to the millisecond; none is fine. */
static bool take_fraction(struct time_cursor *cursor, int64_t *ms)
{
	if (!take(cursor, '.') && !take(cursor, ','))
		return true;
	const char *first = cursor->at;
	int64_t worth = 100;
	for (; cursor->at < cursor->end && is_digit(*cursor->at); cursor->at++, worth /= 10)
		*ms += worth * (*cursor->at - '0');
	return cursor->at > first;
}

/* ±HH, ±HHMM or ±HH:MM; `full` leaves ±HHMM alone. */
static bool take_offset(struct time_cursor *cursor, bool full, struct time_written *written)
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

static bool date_exists(const struct time_written *written)
{
	return written->month >= 1 && written->month <= 12 && written->day >= 1 &&
	       written->day <= civil_month_days(written->year, written->month);
}

static enum format_reason fail(struct time_reader *reader, enum time_help help, enum format_reason reason)
{
	reader->help = help;
	return reason;
}

/* UTC of what was written, in its own zone or the reader's; false: nobody knows the zone that it names. */
static bool resolve(struct time_reader *reader, const struct time_written *written, int64_t *ms)
{
	int64_t local_ms = civil_days(written->year, written->month, written->day) * DAY_MS + written->of_day_ms;
	int32_t offset_s = written->offset_s;
	if (!written->has_zone) {
		/* A leap second belongs to the minute that it ends. */
		int64_t local_s = local_ms / 1000 - written->leap_second;
		if (local_s < reader->span.from_s || local_s >= reader->span.to_s)
			reader->span = time_zone_find(reader->zone, local_s);
		offset_s = reader->span.offset_s;
		if (written->zone_name.length > 0 && !time_zone_named(reader->zone, written->zone_name, offset_s, &offset_s))
			return false;
	}
	reader->local = !written->has_zone && written->zone_name.length == 0;
	*ms = local_ms - offset_s * INT64_C(1000);
	return true;
}

static enum format_reason in_range(struct time_reader *reader, int64_t ms, int64_t *time_ms)
{
	*time_ms = ms;
	return ms >= 0 && ms < WEIR_TIME_END_MS ? FORMAT_OK : fail(reader, TIME_HELP_RANGE, FORMAT_TIME_RANGE);
}

/* What is written, if its date exists. */
static enum format_reason resolve_existing(struct time_reader *reader, const struct time_written *written, bool exists,
                                           int64_t *time_ms)
{
	if (!exists)
		return fail(reader, TIME_HELP_DATE, FORMAT_BAD_TIME);
	if (!resolve(reader, written, time_ms))
		return fail(reader, TIME_HELP_ZONE, FORMAT_BAD_TIME);
	return in_range(reader, *time_ms, time_ms);
}

/* 02/Jan/2006:15:04:05[fraction][ +0100] */
static enum format_reason read_common(struct time_reader *reader, struct time_cursor cursor, int64_t *time_ms)
{
	const char *text = cursor.at;
	struct time_written written = {0};
	int64_t fraction_ms = 0;
	if (!take_digits(&cursor, 2, &written.day) || !take(&cursor, '/') || !time_take_month(&cursor, &written.month) ||
	    !take(&cursor, '/') || !take_digits(&cursor, 4, &written.year) || !take(&cursor, ':') ||
	    !take_time_of_day(&cursor, &written) || !take_fraction(&cursor, &fraction_ms))
		return FORMAT_BAD_TIME;
	if (cursor.at < cursor.end && (!take(&cursor, ' ') || !take_offset(&cursor, true, &written)))
		return FORMAT_BAD_TIME;
	if (cursor.at < cursor.end)
		return FORMAT_BAD_TIME;

	int64_t ms;
	enum format_reason reason = resolve_existing(reader, &written, date_exists(&written), &ms);
	if (reason == FORMAT_BAD_TIME)
		return reason;
	if (written.has_zone && cursor.end - text == TIME_COMMON_BYTES) {
		int64_t midnight_ms = ms - written.of_day_ms;
		/* Only a day that is in range from end to end is remembered: its times need no further test. */
		if (midnight_ms >= 0 && midnight_ms < WEIR_TIME_END_MS - 2 * DAY_MS) {
			reader->common.date = weir_find_load_8(text);
			reader->common.year = time_load_year(text);
			reader->common.zone = time_load_zone(text);
			reader->common.midnight_ms = midnight_ms;
		}
	}
	return in_range(reader, ms + fraction_ms, time_ms);
}

/* 2006-01-02T15:04:05[fraction][zone], or 2006/01/02 */
static enum format_reason read_iso(struct time_reader *reader, struct time_cursor cursor, int64_t *time_ms)
{
	struct time_written written = {0};
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
	if (cursor.at < cursor.end)
		return FORMAT_BAD_TIME;
	return resolve_existing(reader, &written, date_exists(&written), time_ms);
}

/* "17", " 7" or "7". */
static bool take_day(struct time_cursor *cursor, int32_t *day)
{
	bool padded = take(cursor, ' ');
	return (!padded && take_digits(cursor, 2, day)) || take_digits(cursor, 1, day);
}

/* The time of what is written, in the year that it has by now; BAD_TIME: there is no such date. */
static enum format_reason resolve_date(struct time_reader *reader, const struct time_written *written, int64_t *time_ms)
{
	bool numbered = written->month == 1 && written->day > 31; /* "%j": the day of the year */
	bool exists = numbered ? written->day <= 365 + civil_is_leap(written->year) : date_exists(written);
	return resolve_existing(reader, written, exists, time_ms);
}

/*
 * The year of what has none: the reader's; or else the newest in which the time is not ahead of when it was written, by
 * more than a day, which is what zones and clocks may differ.
 */
static enum format_reason resolve_yearless(struct time_reader *reader, struct time_written *written, int64_t *time_ms)
{
	enum { YEARS_BACK = 8 }; /* a 29th of February is at most so far away */
	if (reader->first_year != 0) {
		written->year = reader->first_year + (written->month < reader->first_month);
		return resolve_date(reader, written, time_ms);
	}
	if (reader->reference_ms < 0)
		return fail(reader, TIME_HELP_YEAR, FORMAT_BAD_TIME);
	for (int32_t back = -1; back <= YEARS_BACK; back++) {
		written->year = reader->reference_year - back;
		if (written->year >= 1970 && resolve_date(reader, written, time_ms) == FORMAT_OK &&
		    *time_ms <= reader->reference_ms + DAY_MS)
			return FORMAT_OK;
	}
	return fail(reader, reader->help == TIME_HELP_ZONE ? TIME_HELP_ZONE : TIME_HELP_DATE, FORMAT_BAD_TIME);
}

void time_reader_set_reference(struct time_reader *reader, int64_t reference_ms)
{
	reader->reference_ms = reference_ms;
	if (reference_ms >= reader->year_from_ms && reference_ms < reader->year_to_ms)
		return;
	int32_t year = 1970 + (int32_t)(reference_ms / DAY_MS / 366); /* that or, by few leap days, the next */
	while (civil_days(year + 1, 1, 1) * DAY_MS <= reference_ms)
		year++;
	reader->reference_year = year;
	reader->year_from_ms = civil_days(year, 1, 1) * DAY_MS;
	reader->year_to_ms = civil_days(year + 1, 1, 1) * DAY_MS;
}

/* Jan  2 15:04:05[fraction][ UTC], or Jan  2 2006 15:04:05 */
static enum format_reason read_syslog(struct time_reader *reader, struct time_cursor cursor, int64_t *time_ms)
{
	struct time_written written = {0};
	if (!time_take_month(&cursor, &written.month) || !take(&cursor, ' ') || !take_day(&cursor, &written.day) ||
	    !take(&cursor, ' '))
		return FORMAT_BAD_TIME;
	struct time_cursor before = cursor;
	if (!take_digits(&cursor, 4, &written.year) || !take(&cursor, ' ')) {
		cursor = before;
		written.year = 0;
	}
	if (!take_time_of_day(&cursor, &written) || !take_fraction(&cursor, &written.of_day_ms))
		return FORMAT_BAD_TIME;
	bool ends = cursor.at == cursor.end || (take(&cursor, ' ') && time_take_zone_name(&cursor, &written));
	if (!ends || cursor.at < cursor.end)
		return FORMAT_BAD_TIME;
	return written.year > 0 ? resolve_date(reader, &written, time_ms) : resolve_yearless(reader, &written, time_ms);
}

/* Mon Jan  2 15:04:05[fraction] 2006, as ctime() and Apache's error log have it; the zone is the reader's. */
static enum format_reason read_ctime(struct time_reader *reader, struct time_cursor cursor, int64_t *time_ms)
{
	struct time_written written = {0};
	cursor.at += 4;
	if (!time_take_month(&cursor, &written.month) || !take(&cursor, ' ') || !take_day(&cursor, &written.day) ||
	    !take(&cursor, ' ') || !take_time_of_day(&cursor, &written) || !take_fraction(&cursor, &written.of_day_ms) ||
	    !take(&cursor, ' ') || !take_digits(&cursor, 4, &written.year) || cursor.at < cursor.end)
		return FORMAT_BAD_TIME;
	return resolve_date(reader, &written, time_ms);
}

static enum format_reason read_form(struct time_reader *reader, struct weir_span text, int64_t *time_ms)
{
	struct time_written written;
	if (!time_form_read(reader->form, text, &written))
		return fail(reader, TIME_HELP_OTHER_FORM, FORMAT_BAD_TIME);
	if (written.has_unix) {
		int64_t whole_s = written.unix_s < WEIR_TIME_END_MS / 1000 ? written.unix_s : WEIR_TIME_END_MS / 1000;
		return in_range(reader, whole_s * 1000 + written.of_day_ms, time_ms);
	}
	return written.year > 0 ? resolve_date(reader, &written, time_ms) : resolve_yearless(reader, &written, time_ms);
}

/* Which unit a number of so many digits must be in to lie between 2001 and 2100. */
static enum time_unit unit_of_digits(int64_t digits)
{
	return digits >= 18 ? TIME_UNIT_NS : digits >= 15 ? TIME_UNIT_US : digits >= 12 ? TIME_UNIT_MS : TIME_UNIT_S;
}

/* A number's digits, wherever its point stands: "1.7e9" has "17", and its point behind 10 digits. */
struct number {
	char digits[NUMBER_DIGITS_MAX];
	int64_t count, before; /* how many there are; how many stand before the point: the rest of those are zeros */
};

static bool take_exponent(struct time_cursor *cursor, int64_t *exponent)
{
	if (!take(cursor, 'e') && !take(cursor, 'E'))
		return true;
	bool negative = take(cursor, '-');
	if (!negative)
		take(cursor, '+');
	const char *first = cursor->at;
	for (; cursor->at < cursor->end && is_digit(*cursor->at); cursor->at++)
		if (*exponent < NUMBER_EXPONENT_MAX)
			*exponent = *exponent * 10 + (*cursor->at - '0');
	*exponent = negative ? -*exponent : *exponent;
	return cursor->at > first;
}

/* Digits, perhaps a fraction, perhaps an exponent, as JSON has numbers; digits behind those that are kept do not count. */
static bool take_number(struct time_cursor *cursor, struct number *number)
{
	int64_t exponent = 0;
	const char *point = NULL, *first = cursor->at;
	*number = (struct number){0};
	for (; cursor->at < cursor->end && (is_digit(*cursor->at) || (*cursor->at == '.' && point == NULL)); cursor->at++) {
		if (*cursor->at == '.') {
			point = cursor->at;
			continue;
		}
		bool leads = number->count == 0 && *cursor->at == '0'; /* such zeros are not kept */
		number->before += leads ? -(point != NULL) : point == NULL;
		if (!leads && number->count < NUMBER_DIGITS_MAX)
			number->digits[number->count++] = *cursor->at;
	}
	bool whole = cursor->at > first && first != point && (point == NULL || point + 1 < cursor->at);
	if (!whole || !take_exponent(cursor, &exponent) || cursor->at < cursor->end)
		return false;
	number->before += exponent;
	return true;
}

/* The number without what stands behind so many places before its point (3: thousands), or behind it (-3); bounded. */
static int64_t number_value(const struct number *number, int places)
{
	int64_t value = 0;
	for (int64_t i = 0; i < number->before - places && value < WEIR_TIME_END_MS; i++)
		value = value * 10 + (i < number->count ? number->digits[i] - '0' : 0);
	return value;
}

/* Seconds to nanoseconds since 1970, cut to the millisecond. */
static enum format_reason read_unix(struct time_reader *reader, struct time_cursor cursor, int64_t *time_ms)
{
	static const int places[] = {[TIME_UNIT_S] = -3, [TIME_UNIT_MS] = 0, [TIME_UNIT_US] = 3, [TIME_UNIT_NS] = 6};
	struct number number;
	bool negative = take(&cursor, '-');
	if (!take_number(&cursor, &number))
		return FORMAT_BAD_TIME;
	enum time_help help = reader->unit_given ? TIME_HELP_OTHER_UNIT : TIME_HELP_UNIT;
	if (negative)
		return fail(reader, help, FORMAT_TIME_RANGE);

	enum time_unit unit = reader->unit == TIME_UNIT_ANY ? unit_of_digits(number.before) : reader->unit;
	int64_t ms = number_value(&number, places[unit]);
	/* Any number is a time of some unit: without a word on which, only what is likely is taken. */
	if (!reader->unit_given && (ms < NUMBER_FIRST_MS || ms >= NUMBER_END_MS)) {
		static const enum time_help helps[] = {TIME_HELP_UNIT, TIME_HELP_MS, TIME_HELP_US, TIME_HELP_NS};
		return fail(reader, helps[unit_of_digits(number.before)], FORMAT_TIME_RANGE);
	}
	enum format_reason reason = in_range(reader, ms, time_ms);
	return reason == FORMAT_OK ? reason : fail(reader, help, reason);
}

static enum format_reason read_text(struct time_reader *reader, struct weir_span text, int64_t *time_ms)
{
	reader->help = TIME_HELP_FORM;
	if (text.length == 0) {
		*time_ms = reader->absent_ms;
		return reader->absent_ms >= 0 ? FORMAT_OK : FORMAT_NO_TIME;
	}
	if (reader->form != NULL)
		return read_form(reader, text, time_ms);
	struct time_cursor cursor = {.at = text.at, .end = text.at + text.length};
	if (text.length > 4 && text.at[2] == '/')
		return read_common(reader, cursor, time_ms);
	if (text.length > 4 && (text.at[4] == '-' || text.at[4] == '/'))
		return read_iso(reader, cursor, time_ms);
	if (is_digit(text.at[0]) || text.at[0] == '-')
		return read_unix(reader, cursor, time_ms);
	if (text.length > 8 && text.at[3] == ' ' && text.at[7] == ' ' && !is_digit(text.at[4]) && text.at[4] != ' ')
		return read_ctime(reader, cursor, time_ms);
	return read_syslog(reader, cursor, time_ms);
}

enum format_reason time_read(struct time_reader *reader, struct weir_span text, int64_t *time_ms)
{
	enum format_reason reason = read_text(reader, text, time_ms);
	reader->failed = reason != FORMAT_OK;
	return reason;
}

const char *time_help_words(const struct time_reader *reader)
{
	enum time_help help = reader->help;
	if (!reader->takes_form && help >= TIME_HELP_OTHER_UNIT)
		return "its times are numbers outside 2000 to 2100";
	if ((!reader->takes_form && help == TIME_HELP_FORM) || (!reader->takes_year && help == TIME_HELP_YEAR))
		return "its times have a form that this format does not have";
	switch (help) {
	case TIME_HELP_OTHER_FORM: return "its times do not have the form that \"time_format\" describes";
	case TIME_HELP_DATE: return "its times name a day or an hour that does not exist";
	case TIME_HELP_RANGE: return "its times are before 1970 or after 9999";
	case TIME_HELP_YEAR: return "its times have no year: say \"year\", such as 2024";
	case TIME_HELP_ZONE:
		return "its times name a zone that \"time_zone\" does not know: say \"time_zone\", such as \"Europe/Berlin\" for CET and "
			   "CEST, or \"+08:00\"";
	case TIME_HELP_OTHER_UNIT: return "its times are before 1970 or after 9999: is the \"unit\" right?";
	case TIME_HELP_UNIT:
		return "its times are numbers outside 2000 to 2100: say \"unit\", which is \"s\", \"ms\", \"us\" or \"ns\"";
	case TIME_HELP_MS: return "its times look like milliseconds: say \"unit\": \"ms\"";
	case TIME_HELP_US: return "its times look like microseconds: say \"unit\": \"us\"";
	case TIME_HELP_NS: return "its times look like nanoseconds: say \"unit\": \"ns\"";
	case TIME_HELP_FORM: break;
	}
	return "its times have an unknown form: describe it by \"time_format\", such as \"%d.%m.%Y %H:%M:%S\"";
}
