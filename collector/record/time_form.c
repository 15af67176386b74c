/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles a form into letters and bytes, and reads a text along them, from left to right and never back.
 */
#include "collector/record/time_form.h"

#include "common/base/alloc.h"

#include <stdlib.h>

enum { STEPS_MAX = 64, DIGITS_MAX = 18 };

/* A letter behind a percent sign, or, with letter NUL, a byte that stands for itself. */
struct step {
	char letter, byte;
};

struct time_form {
	uint32_t count;
	struct step steps[STEPS_MAX];
};

/* What is known while a text is read. */
struct reading {
	struct time_cursor cursor;
	struct time_written *written;
	int32_t hour, minute, second, day_of_year;
	bool afternoon, twelve;
	int64_t fraction_ms;
};

bool time_take_month(struct time_cursor *cursor, int32_t *month)
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

/* ---- compiling ---- */

static const char letters[] = "YymbBhdejaAHkIlpMSfzZs";

static enum weir_status add(struct time_form *form, char letter, char byte, struct weir_error *error)
{
	if (form->count == STEPS_MAX)
		return weir_fail(error, WEIR_INVALID, "is longer than %d letters", STEPS_MAX);
	form->steps[form->count++] = (struct step){.letter = letter, .byte = byte};
	return WEIR_OK;
}

static enum weir_status compile(struct time_form *form, const char *text, struct weir_error *error)
{
	static const struct {
		char letter;
		const char *means;
	} shorts[] = {{'T', "%H:%M:%S"}, {'F', "%Y-%m-%d"}, {'D', "%m/%d/%y"}, {'R', "%H:%M"}};
	for (; *text != '\0'; text++) {
		enum weir_status status = WEIR_OK;
		if (*text != '%') {
			status = add(form, '\0', *text, error);
		} else if (*++text == '%') {
			status = add(form, '\0', '%', error);
		} else if (*text != '\0' && strchr(letters, *text) != NULL) {
			status = add(form, *text, '\0', error);
		} else {
			const char *means = NULL;
			for (size_t i = 0; i < sizeof shorts / sizeof *shorts; i++)
				means = *text != '\0' && shorts[i].letter == *text ? shorts[i].means : means;
			if (means == NULL)
				return weir_fail(error, WEIR_INVALID,
				                 "has \"%%%.1s\", which is unknown; known are %%%% and %% with one of %sTFDR", text,
				                 letters);
			status = compile(form, means, error);
		}
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

static bool has(const struct time_form *form, const char *any)
{
	for (uint32_t i = 0; i < form->count; i++)
		if (form->steps[i].letter != '\0' && strchr(any, form->steps[i].letter) != NULL)
			return true;
	return false;
}

enum weir_status time_form_new(const char *text, struct time_form **made, struct weir_error *error)
{
	struct time_form *form = weir_alloc(1, sizeof *form);
	enum weir_status status = compile(form, text, error);
	bool whole = has(form, "s") || (has(form, "HkIl") && has(form, "M") &&
	                                ((has(form, "mbBh") && has(form, "de")) || (has(form, "j") && has(form, "Yy"))));
	if (status == WEIR_OK && !whole)
		status = weir_fail(error, WEIR_INVALID,
		                   "must have a day and a time of day, such as \"%%d.%%m.%%Y %%H:%%M:%%S\", or \"%%s\"");
	if (status != WEIR_OK) {
		free(form);
		return status;
	}
	*made = form;
	return WEIR_OK;
}

void time_form_free(struct time_form *form)
{
	free(form);
}

/* ---- reading ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* One to `most` digits: how many; 0: none. */
static int take_number(struct time_cursor *cursor, int most, int64_t *number)
{
	int count = 0;
	*number = 0;
	for (; count < most && cursor->at < cursor->end && is_digit(*cursor->at); count++)
		*number = *number * 10 + (*cursor->at++ - '0');
	return count;
}

static bool take_between(struct time_cursor *cursor, int most, int32_t low, int32_t high, int32_t *number)
{
	int64_t value;
	if (take_number(cursor, most, &value) == 0 || value < low || value > high)
		return false;
	*number = (int32_t)value;
	return true;
}

static void skip_letters(struct time_cursor *cursor)
{
	while (cursor->at < cursor->end && is_letter(*cursor->at))
		cursor->at++;
}

static void skip_blanks(struct time_cursor *cursor)
{
	while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\t'))
		cursor->at++;
}

static bool take_zone(struct time_cursor *cursor, struct time_written *written)
{
	int64_t hours, minutes = 0;
	written->has_zone = true;
	if (cursor->at < cursor->end && (*cursor->at == 'Z' || *cursor->at == 'z')) {
		cursor->at++;
		return true;
	}
	if (cursor->at == cursor->end || (*cursor->at != '+' && *cursor->at != '-'))
		return false;
	bool west = *cursor->at++ == '-';
	if (take_number(cursor, 2, &hours) != 2)
		return false;
	bool colon = cursor->at < cursor->end && *cursor->at == ':';
	cursor->at += colon;
	int digits = take_number(cursor, 2, &minutes);
	if ((digits != 2 && (digits != 0 || colon)) || hours > 23 || minutes > 59)
		return false;
	written->offset_s = (int32_t)(hours * 60 + minutes) * (west ? -60 : 60);
	return true;
}

/* "UTC", "GMT", "UT" and "Z" are zones by themselves; what another name means depends on the format's own zone. */
bool time_take_zone_name(struct time_cursor *cursor, struct time_written *written)
{
	static const char *const universal[] = {"UTC", "GMT", "UT", "Z"};
	struct weir_span name = {.at = cursor->at};
	skip_letters(cursor);
	name.length = (uint32_t)(cursor->at - name.at);
	bool found = written->has_zone;
	for (size_t i = 0; i < sizeof universal / sizeof *universal; i++)
		found |= weir_span_equal(name, weir_span_of(universal[i]));
	written->has_zone = found;
	written->zone_name = found ? (struct weir_span){0} : name;
	return name.length > 0;
}

static bool take_fraction(struct reading *reading)
{
	int64_t worth = 100;
	struct time_cursor *cursor = &reading->cursor;
	const char *from = cursor->at;
	for (; cursor->at < cursor->end && is_digit(*cursor->at); cursor->at++, worth /= 10)
		reading->fraction_ms += worth * (*cursor->at - '0');
	return cursor->at > from;
}

static bool take_half(struct reading *reading)
{
	struct time_cursor *cursor = &reading->cursor;
	if (cursor->end - cursor->at < 2 || (cursor->at[1] | 0x20) != 'm')
		return false;
	char half = (char)(cursor->at[0] | 0x20);
	reading->afternoon = half == 'p';
	cursor->at += 2;
	return half == 'a' || half == 'p';
}

static bool take_year(struct reading *reading, char letter)
{
	int64_t year;
	int digits = take_number(&reading->cursor, letter == 'Y' ? 4 : 2, &year);
	if (digits != (letter == 'Y' ? 4 : 2))
		return false;
	if (letter == 'y')
		year += year < 69 ? 2000 : 1900;
	reading->written->year = (int32_t)year;
	return year > 0;
}

static bool take_letter(struct reading *reading, char letter)
{
	struct time_cursor *cursor = &reading->cursor;
	struct time_written *written = reading->written;
	switch (letter) {
	case 'Y':
	case 'y': return take_year(reading, letter);
	case 'm': return take_between(cursor, 2, 1, 12, &written->month);
	case 'b':
	case 'h':
	case 'B':
		if (!time_take_month(cursor, &written->month))
			return false;
		if (letter == 'B')
			skip_letters(cursor);
		return true;
	case 'd':
	case 'e': skip_blanks(cursor); return take_between(cursor, 2, 1, 31, &written->day);
	case 'j': return take_between(cursor, 3, 1, 366, &reading->day_of_year);
	case 'a':
	case 'A': skip_letters(cursor); return true;
	case 'k':
	case 'H': skip_blanks(cursor); return take_between(cursor, 2, 0, 24, &reading->hour);
	case 'l':
	case 'I':
		skip_blanks(cursor);
		reading->twelve = true;
		return take_between(cursor, 2, 1, 12, &reading->hour);
	case 'p': return take_half(reading);
	case 'M': return take_between(cursor, 2, 0, 59, &reading->minute);
	case 'S': return take_between(cursor, 2, 0, 60, &reading->second);
	case 'f': return take_fraction(reading);
	case 'z': return take_zone(cursor, written);
	case 'Z': return time_take_zone_name(cursor, written);
	default: written->has_unix = true; return take_number(cursor, DIGITS_MAX, &written->unix_s) > 0;
	}
}

/* @return false: the clock never shows that */
static bool finish(struct reading *reading)
{
	struct time_written *written = reading->written;
	if (reading->twelve)
		reading->hour = reading->hour % 12 + (reading->afternoon ? 12 : 0);
	written->of_day_ms = reading->fraction_ms;
	written->leap_second = reading->second == 60;
	if (!written->has_unix)
		written->of_day_ms += ((int64_t)reading->hour * 3600 + reading->minute * 60 + reading->second) * 1000;
	if (reading->day_of_year > 0) { /* days go on counting from the first of January */
		written->month = 1;
		written->day = reading->day_of_year;
	}
	return reading->hour < 24 || reading->minute + reading->second + reading->fraction_ms == 0;
}

bool time_form_read(const struct time_form *form, struct weir_span text, struct time_written *written)
{
	struct reading reading = {.cursor = {.at = text.at, .end = text.at + text.length}, .written = written};
	struct time_cursor *cursor = &reading.cursor;
	*written = (struct time_written){0};
	for (uint32_t i = 0; i < form->count; i++) {
		const struct step *step = &form->steps[i];
		if (step->letter != '\0') {
			if (!take_letter(&reading, step->letter))
				return false;
		} else if (step->byte == ' ') {
			skip_blanks(cursor);
		} else if (cursor->at == cursor->end || *cursor->at++ != step->byte) {
			return false;
		}
	}
	return finish(&reading) && cursor->at == cursor->end;
}
