/* SPDX-License-Identifier: Apache-2.0 */
/* Words for terminals; nothing here is read by a program. */
#include "deploy/weir/terminal/readable.h"

#include "common/base/words.h"
#include "common/frame/frame.h"
#include "common/json/json.h"
#include "common/json/units.h"
#include "deploy/weir/terminal/local_zone.h"

#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

static void put_time(struct weir_text *text, int64_t time_ms, bool with_ms)
{
	time_t seconds = (time_t)(time_ms / 1000);
	struct tm parts;
	char day[40];
	if (localtime_r(&seconds, &parts) == NULL || strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &parts) == 0)
		return;
	weir_text_puts(text, day);
	if (with_ms)
		weir_text_printf(text, ".%03d", (int)(time_ms % 1000));
	weir_text_printf(text, " %s", local_zone(&parts));
}

void words_time(struct weir_text *text, int64_t time_ms)
{
	put_time(text, time_ms, false);
}

void words_time_ms(struct weir_text *text, int64_t time_ms)
{
	put_time(text, time_ms, true);
}

bool words_coloured(int fd)
{
	const char *plain = getenv("NO_COLOR"), *kind = getenv("TERM");
	return isatty(fd) && (plain == NULL || plain[0] == '\0') && kind != NULL && strcmp(kind, "dumb") != 0;
}

void words_amount(struct weir_text *text, uint64_t number, const char *one)
{
	words_count(text, number);
	weir_text_printf(text, " %s%s", one, number == 1 ? "" : "s");
}

void words_count(struct weir_text *text, uint64_t number)
{
	if (number >= 1000) {
		words_count(text, number / 1000);
		weir_text_printf(text, ",%03u", (unsigned)(number % 1000));
	} else {
		weir_text_uint(text, number);
	}
}

void words_key(struct weir_text *text, struct weir_span key)
{
	if (key.length == 0)
		weir_text_puts(text, "(everyone)");
	for (size_t i = 0; i < key.length;) {
		const char *at = key.at + i;
		size_t bytes = weir_utf8_sequence(at, key.length - i);
		i += bytes > 0 ? bytes : 1;
		if (bytes > 0 && !weir_is_unseen(weir_utf8_code(at, bytes))) {
			weir_text_append(text, at, bytes);
			continue;
		}
		for (const char *end = key.at + i; at < end; at++)
			weir_text_printf(text, "\\x%02x", (unsigned char)*at);
	}
}

/* How a terminal counts: some letters take two columns, and some stand upon the one before them. */
static locale_t letters;
static pthread_once_t letters_once = PTHREAD_ONCE_INIT;

static void find_letters(void)
{
	letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

size_t words_columns(struct weir_span words)
{
	pthread_once(&letters_once, find_letters);
	locale_t before = letters != (locale_t)0 ? uselocale(letters) : (locale_t)0;
	size_t columns = 0;
	for (size_t i = 0; i < words.length;) {
		const char *at = words.at + i;
		size_t bytes = weir_utf8_sequence(at, words.length - i);
		int width = bytes > 1 && before != (locale_t)0 ? wcwidth((wchar_t)weir_utf8_code(at, bytes)) : 1;
		columns += width >= 0 ? (size_t)width : 1;
		i += bytes > 0 ? bytes : 1;
	}
	if (before != (locale_t)0)
		uselocale(before);
	return columns;
}

void words_pad(struct weir_text *text, size_t from, size_t columns)
{
	size_t used = words_columns((struct weir_span){text->at + from, (uint32_t)(text->length - from)});
	for (; used < columns; used++)
		weir_text_puts(text, " ");
}

void words_key_value(struct weir_text *text, struct weir_span value)
{
	if (value.length == 0)
		weir_text_puts(text, "\"\"");
	else
		words_key(text, value);
}

void words_text(struct weir_text *text, const char *string)
{
	words_bytes(text, weir_span_of(string), 0);
}

/* "\x1b", or "\u202e" of what Unicode has beyond C1. */
static void put_control(struct weir_text *text, unsigned code)
{
	weir_text_printf(text, code > 0xFF ? "\\u%04x" : "\\x%02x", code);
}

/* So that no byte of it moves a terminal's cursor. */
void words_bytes(struct weir_text *text, struct weir_span bytes, unsigned columns)
{
	struct weir_text valid = {0};
	unsigned used = 0;
	weir_text_utf8(&valid, bytes);
	for (size_t i = 0; i < valid.length;) {
		const char *at = valid.at + i;
		size_t control = weir_control_bytes(at, valid.length - i), bytes_here = 1;
		unsigned width = control == 0 ? 1 : weir_utf8_code(at, control) > 0xFF ? 6 : 4;
		if (columns > 0 && used + width > columns - 1) {
			weir_text_puts(text, "…");
			break;
		}
		if (control > 0) {
			put_control(text, weir_utf8_code(at, control));
			bytes_here = control;
		} else {
			bytes_here = weir_utf8_sequence(at, valid.length - i);
			weir_text_append(text, at, bytes_here);
		}
		used += width;
		i += bytes_here;
	}
	weir_text_deinit(&valid);
}

/* "55s", "2h 5m": two units at most, seconds rounded up. */
static void words_span(struct weir_text *text, int64_t span_ms)
{
	int64_t seconds = (span_ms + 999) / 1000;
	static const struct {
		int64_t seconds;
		char letter;
	} units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	int written = 0;
	for (int i = 0; i < 4 && written < 2; i++) {
		if (seconds < units[i].seconds)
			continue;
		weir_text_printf(text, "%s%lld%c", written > 0 ? " " : "", (long long)(seconds / units[i].seconds),
		                 units[i].letter);
		seconds %= units[i].seconds;
		written++;
	}
	if (written == 0)
		weir_text_puts(text, "0s");
}

/* The start of the line: when, where, who. */
static void words_decision_head(struct weir_text *text, int64_t at_ms, const char *zone)
{
	words_time(text, at_ms);
	weir_text_printf(text, "  %s  ", zone);
}

/* Who is out is red, who is in again green. */
static void put_verb(struct weir_text *text, bool blocked, bool coloured)
{
	weir_text_puts(text, "  ");
	if (coloured)
		weir_text_puts(text, blocked ? "\033[31m" : "\033[32m");
	weir_text_puts(text, blocked ? "blocked" : "lifted");
	if (coloured)
		weir_text_puts(text, "\033[0m");
}

/* What a limit has decided. @param span_ms  of a block; -1: it lifted one, as something that waited is done */
static void put_limited(struct weir_text *text, const struct weir_limit *limit, int64_t span_ms, int64_t count,
                        bool coloured)
{
	put_verb(text, span_ms >= 0, coloured);
	if (span_ms >= 0) {
		weir_text_puts(text, " for ");
		words_span(text, span_ms);
		weir_text_puts(text, ": over ");
	} else {
		weir_text_printf(text, ": a place is free, %lld of ", (long long)count);
	}
	weir_limit_brief(text, limit);
}

void words_decision(struct weir_text *text, const struct shard_decision *decision, bool coloured)
{
	const struct weir_zone *zone = decision->zone->zone;
	words_decision_head(text, decision->at_ms, zone->name);
	words_key(text, decision->key);
	put_limited(text, decision->rule, decision->kind == BUCKET_LIFTS ? -1 : decision->until_ms - decision->at_ms,
	            decision->count, coloured);
}

bool words_limit_json(struct weir_text *text, const json_t *json)
{
	struct weir_limit limit;
	if (!weir_limit_read(json, &limit))
		return false;
	weir_limit_brief(text, &limit);
	return true;
}

/* What an operator has commanded, or the end of a block. */
static void put_override(struct weir_text *text, const json_t *json, bool blocked, int64_t at_ms)
{
	const char *by = json_string_value(json_object_get(json, "by"));
	const char *reason = json_string_value(json_object_get(json, "reason"));
	int64_t until_ms = json_integer_value(json_object_get(json, "until"));
	if (blocked && until_ms >= WEIR_TIME_END_MS) {
		weir_text_puts(text, " until it is lifted");
	} else if (blocked) {
		weir_text_puts(text, " for ");
		words_span(text, until_ms - at_ms);
	}
	if (by != NULL) {
		weir_text_puts(text, " by ");
		words_text(text, by);
	}
	if (reason != NULL && reason[0] != '\0') {
		weir_text_puts(text, ": ");
		words_text(text, reason);
	}
}

bool words_decision_json(struct weir_text *text, struct weir_span bytes, bool coloured)
{
	json_t *json = json_loadb(bytes.at, bytes.length, JSON_ALLOW_NUL, NULL);
	const char *zone = json_string_value(json_object_get(json, "zone"));
	const char *action = json_string_value(json_object_get(json, "action"));
	if (zone == NULL || action == NULL) {
		json_decref(json);
		return false;
	}
	int64_t at_ms = json_integer_value(json_object_get(json, "at"));
	const json_t *key = json_object_get(json, "key");
	words_decision_head(text, at_ms, zone);
	if (json_is_null(key) || json_array_size(key) == 0)
		weir_text_puts(text, "(everyone)");
	for (size_t i = 0; i < json_array_size(key); i++) {
		const json_t *value = json_array_get(key, i);
		weir_text_puts(text, i > 0 ? "|" : "");
		words_key_value(text, json_is_string(value)
		                          ? (struct weir_span){json_string_value(value), (uint32_t)json_string_length(value)}
		                          : weir_span_of("?"));
	}
	struct weir_limit limit;
	bool blocked = strcmp(action, "block") == 0;
	if (weir_limit_read(json_object_get(json, "limit"), &limit)) {
		put_limited(text, &limit, blocked ? json_integer_value(json_object_get(json, "until")) - at_ms : -1,
		            json_integer_value(json_object_get(json, "count")), coloured);
	} else {
		put_verb(text, blocked, coloured);
		put_override(text, json, blocked, at_ms);
	}
	json_decref(json);
	return true;
}
