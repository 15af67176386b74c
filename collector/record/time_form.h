/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A described form of time, in strptime's letters: "%d.%m.%Y %H:%M:%S.%f".
 *
 *     %Y 2024  %y 24  %m 05  %b %B %h May  %d %e 7  %j 138  %a %A Fri
 *     %H %k 17  %I %l 5  %p PM  %M 04  %S 03  %f .133721 without its point  %T %H:%M:%S  %F %Y-%m-%d  %D %m/%d/%y  %R %H:%M
 *     %z +0200 +02:00 +02 Z  %Z UTC CEST  %s seconds since 1970  %% a percent sign
 *
 * A blank stands for any number of them, also none; all else for itself. Numbers may have fewer digits than shown, as
 * strptime has it, but %Y has four.
 */
#ifndef COLLECTOR_TIME_FORM_H
#define COLLECTOR_TIME_FORM_H

#include "common/base/span.h"
#include "common/base/status.h"

/* A time as it is written, before its zone is known. */
struct time_written {
	int32_t year, month, day; /* year 0: none was written */
	int64_t of_day_ms;
	bool leap_second;
	bool has_zone;
	int32_t offset_s;
	struct weir_span zone_name; /* such as "CEST"; absent: none was written, or has_zone says it all */
	bool has_unix;
	int64_t unix_s; /* since 1970, instead of all above; the fraction is in of_day_ms */
};

struct time_form; /* immutable: any thread */

/**
 * @param form   returned: time_form_free()
 * @param error  words that name what is wrong; without a configuration's path
 */
WEIR_MUST_USE enum weir_status time_form_new(const char *text, struct time_form **form, struct weir_error *error);
void time_form_free(struct time_form *form);

/** Reads a whole text; false: it is not of that form. Whether the date exists is not looked at. */
bool time_form_read(const struct time_form *form, struct weir_span text, struct time_written *written);

/* ---- what other forms are read with, too ---- */

struct time_cursor {
	const char *at, *end;
};

/** "Jan", of which the case counts. */
bool time_take_month(struct time_cursor *cursor, int32_t *month);
/** "UTC", "CEST": what it means may depend on the format's own zone. */
bool time_take_zone_name(struct time_cursor *cursor, struct time_written *written);

#endif
