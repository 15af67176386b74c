/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times of log lines: text to Unix milliseconds.
 *
 * The form is known by its shape, nothing is trimmed, no clock is read:
 *
 *   02/Jan/2006:15:04:05[fraction][ +0100]       Common Log
 *   2006-01-02T15:04:05[fraction][zone]          ISO 8601; also 2006/01/02, a space for the T, zone Z ±HH ±HHMM ±HH:MM
 *   1136214245[.123][e+9]                        Unix, in the reader's unit
 *   Jan  2 15:04:05[fraction]                    syslog: the year is told, or inferred from when it was written
 *   Jan  2 2006 15:04:05, Mon Jan  2 15:04:05[fraction] 2006
 *
 * or as a described form says (time_form.h).
 *
 * A fraction is cut to the millisecond. Second 60 is the next minute's first, and 24:00:00 the next day's.
 */
#ifndef COLLECTOR_TIME_TEXT_H
#define COLLECTOR_TIME_TEXT_H

#include "collector/record/format_reason.h"
#include "collector/record/time_form.h"
#include "collector/record/time_zone.h"
#include "common/record/find.h"
#include "common/record/record.h"

enum time_unit { TIME_UNIT_S, TIME_UNIT_MS, TIME_UNIT_US, TIME_UNIT_NS, TIME_UNIT_ANY /* as the number's size says */ };

/* What would help to read a time. */
enum time_help {
	TIME_HELP_FORM,
	TIME_HELP_OTHER_FORM, /* there is a "time_format" */
	TIME_HELP_DATE,
	TIME_HELP_RANGE,
	TIME_HELP_YEAR,
	TIME_HELP_ZONE,
	TIME_HELP_OTHER_UNIT, /* there is a "unit" */
	TIME_HELP_UNIT,
	TIME_HELP_MS,
	TIME_HELP_US,
	TIME_HELP_NS,
};

enum { TIME_COMMON_BYTES = 26 }; /* "02/Jan/2006:15:04:05 +0100" */

/* How a format's times are read, and what was learnt from the last one. Owned by one thread. */
struct time_reader {
	struct time_zone *zone; /* owned; for times that name none */
	enum time_unit unit;    /* of Unix numbers */
	bool unit_given;        /* so that numbers may mean any time; else 2000 to 2100 */
	struct time_form *form; /* owned; NULL: by shape */
	const char *name;       /* the log's own name of the time, which help may name; borrowed; NULL: it has none */
	bool takes_form;        /* "unit" and "time_format" are options of the format, which help may name */
	bool takes_year;        /* and so is "year" */
	/*
	 * For times without a year: the month from which on twelve months are meant ("2024-11": November and December
	 * are of 2024, the rest of 2025); year 0: the reference says. What a line says so never depends on the
	 * lines before it, and a run that is cut and resumed gives the same.
	 */
	int32_t first_year, first_month;
	int64_t reference_ms;   /* when the lines were written, at the latest: what says their year then; -1: not known */
	int32_t reference_year; /* its year, from and to (exclusive) */
	int64_t year_from_ms, year_to_ms;
	bool local;          /* the newest time that was read whole names no zone: times of one log are alike */
	bool failed;         /* the last text could not be read */
	enum time_help help; /* for the last text that could not be read */
	int64_t absent_ms;   /* the time of what has none, known from elsewhere; -1: it must have one */

	struct time_zone_span span; /* the zone's offset at the last local time */
	/* The last Common Log date and zone, and the UTC time of that midnight: most lines are of the same day. */
	struct {
		uint64_t date; /* "02/Jan/2" */
		uint32_t year; /* "006:" */
		uint64_t zone; /* " +0100" in the lower 48 bits; above them before the first */
		int64_t midnight_ms;
	} common;
};

/** @param zone  taken */
void time_reader_init(struct time_reader *reader, struct time_zone *zone);
void time_reader_deinit(struct time_reader *reader);

/** @return FORMAT_OK, FORMAT_NO_TIME for an absent or empty text where no other time is known, FORMAT_BAD_TIME or FORMAT_TIME_RANGE */
enum format_reason time_read(struct time_reader *reader, struct weir_span text, int64_t *time_ms);

/** Says when the lines that follow were written, at the latest: for times without a year. */
void time_reader_set_reference(struct time_reader *reader, int64_t reference_ms);

/** What would help to read times like the last one that could not be read, for people. */
const char *time_help_words(const struct time_reader *reader);

static inline uint32_t time_load_year(const char *text)
{
	uint32_t word;
	memcpy(&word, text + 8, sizeof word);
	return word;
}

static inline uint64_t time_load_zone(const char *text)
{
	return weir_find_load_8(text + 18) >> 16;
}

/**
 * Milliseconds of "15:04:05" since midnight, all eight bytes at once; -1 where they are no time of day.
 *
 * With each byte less its least, digits are 0..9 and colons 0: adding what lacks to 128 shows in the high bits which
 * are more, and one multiplication by ten makes numbers of the pairs.
 */
static inline int64_t time_of_day_ms(const char *text)
{
	const uint64_t zeros = UINT64_C(0x30303a30303a3030), room = UINT64_C(0x76767f76767f7676);
	uint64_t digits = weir_find_load_8(text) ^ zeros;
	if ((((digits + room) | digits) & UINT64_C(0x8080808080808080)) != 0)
		return -1;
	uint64_t pairs = digits * 10 + (digits >> 8);
	uint32_t hour = pairs & 0xff, minute = (pairs >> 24) & 0xff, second = (pairs >> 48) & 0xff;
	if (hour > 23 || minute > 59 || second > 60)
		return -1;
	return (hour * 60 + minute) * INT64_C(60000) + second * INT64_C(1000);
}

/**
 * time_read() for what is most likely a Common Log time of the same day and zone as the last one.
 *
 * @param text  TIME_COMMON_BYTES readable
 * @return false: time_read() must decide
 */
static inline bool time_read_common(const struct time_reader *reader, const char *text, int64_t *time_ms)
{
	if (weir_find_load_8(text) != reader->common.date || time_load_year(text) != reader->common.year ||
	    time_load_zone(text) != reader->common.zone)
		return false;
	int64_t of_day_ms = time_of_day_ms(text + 12);
	*time_ms = reader->common.midnight_ms + of_day_ms;
	return of_day_ms >= 0;
}

#endif
