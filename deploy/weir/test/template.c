/* SPDX-License-Identifier: Apache-2.0 */
/* The forms are few, so that a line of JSON, which is full of braces, needs no escapes. */
#include "deploy/weir/test/template.h"

#include <string.h>
#include <time.h>

enum { FORM_BYTES = 64, TIME_BYTES = 256 };

static void put_form(struct weir_text *text, const char *form, int64_t time_ms)
{
	char written[TIME_BYTES];
	time_t seconds = (time_t)(time_ms / 1000);
	struct tm parts;
	if (gmtime_r(&seconds, &parts) != NULL)
		weir_text_append(text, written, strftime(written, sizeof written, form, &parts));
}

static void put_iso(struct weir_text *text, int64_t time_ms)
{
	put_form(text, "%Y-%m-%dT%H:%M:%S", time_ms);
	weir_text_printf(text, ".%03dZ", (int)(time_ms % 1000));
}

/* What stands between two braces. @return false: nothing that is known */
static bool put_place(struct weir_text *text, struct weir_span name, uint64_t number, int64_t time_ms)
{
	static const char with_form[] = "time:";
	enum { PREFIX = sizeof with_form - 1 };
	if (weir_span_equal(name, weir_span_of("n"))) {
		weir_text_uint(text, number);
		return true;
	}
	if (time_ms < 0)
		return false;
	if (weir_span_equal(name, weir_span_of("time")))
		put_iso(text, time_ms);
	else if (weir_span_equal(name, weir_span_of("time_s")))
		weir_text_int(text, time_ms / 1000);
	else if (weir_span_equal(name, weir_span_of("time_ms")))
		weir_text_int(text, time_ms);
	else if (name.length > PREFIX && name.length - PREFIX < FORM_BYTES && memcmp(name.at, with_form, PREFIX) == 0) {
		char form[FORM_BYTES] = "";
		memcpy(form, name.at + PREFIX, name.length - PREFIX);
		put_form(text, form, time_ms);
	} else {
		return false;
	}
	return true;
}

/* The name that begins behind an opening brace; at NULL: there is none. */
static struct weir_span place_at(struct weir_span pattern, uint32_t begin)
{
	struct weir_span none = {.at = NULL};
	if (pattern.at[begin] != '{')
		return none;
	const char *name = pattern.at + begin + 1;
	const char *end = memchr(name, '}', pattern.length - begin - 1);
	return end != NULL ? (struct weir_span){.at = name, .length = (uint32_t)(end - name)} : none;
}

void template_put(struct weir_text *text, struct weir_span pattern, uint64_t number, int64_t time_ms)
{
	for (uint32_t i = 0; i < pattern.length; i++) {
		struct weir_span name = place_at(pattern, i);
		if (name.at != NULL && put_place(text, name, number, time_ms))
			i += name.length + 1;
		else
			weir_text_append(text, pattern.at + i, 1);
	}
}

bool template_has_time(struct weir_span pattern)
{
	bool has = false;
	for (uint32_t i = 0; !has && i < pattern.length; i++) {
		struct weir_span name = place_at(pattern, i);
		struct weir_text ignored = {0};
		has = name.at != NULL && !weir_span_equal(name, weir_span_of("n")) && put_place(&ignored, name, 1, 0);
		weir_text_deinit(&ignored);
	}
	return has;
}
