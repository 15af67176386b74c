/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of fixed columns. A line has one style as a whole, so that it can be
 * cut anywhere.
 */
#include "deploy/weir/top/top_view.h"

#include "common/json/units.h"
#include "deploy/weir/terminal/readable.h"

#include <string.h>

enum style { PLAIN, STRONG, HEAD, ALARM };
enum { KEY_WIDTH = 40 };

struct view {
	struct weir_text *text, line;
	const struct top_form *form;
};

/* How many of a text's bytes fill at most so many columns. */
static size_t cut(const struct weir_text *line, size_t columns)
{
	size_t at = 0;
	while (at < line->length) {
		size_t letter = weir_utf8_sequence(line->at + at, line->length - at);
		letter += letter == 0;
		size_t wide = words_columns((struct weir_span){line->at + at, (uint32_t)letter});
		if (wide > columns)
			break;
		columns -= wide;
		at += letter;
	}
	return at;
}

static void end_line(struct view *view, enum style style)
{
	static const char *const begins[] = {[STRONG] = "\033[1m", [HEAD] = "\033[7m", [ALARM] = "\033[31m"};
	const struct top_form *form = view->form;
	bool dressed = form->colours && style != PLAIN;
	weir_text_puts(view->text, dressed ? begins[style] : "");
	weir_text_append(view->text, view->line.at, form->screen ? cut(&view->line, form->columns) : view->line.length);
	weir_text_puts(view->text, dressed ? "\033[0m" : "");
	weir_text_puts(view->text, form->screen ? "\033[K\r\n" : "\n");
	weir_text_clear(&view->line);
}

static int64_t number_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

/* To the right of a column of 12. */
static void put_count(struct weir_text *line, const json_t *object, const char *name)
{
	struct weir_text number = {0};
	if (object == NULL || json_is_null(object))
		weir_text_puts(&number, "?");
	else
		words_count(&number, (uint64_t)number_of(object, name));
	words_pad(line, line->length, number.length < 12 ? 12 - number.length : 1);
	weir_text_append(line, number.at, number.length);
	weir_text_deinit(&number);
}

static void put_key(struct weir_text *line, const json_t *key)
{
	size_t from = line->length;
	if (json_is_string(key))
		words_key(line, (struct weir_span){json_string_value(key), (uint32_t)json_string_length(key)});
	else
		weir_text_puts(line, "(all)");
	words_pad(line, from, KEY_WIDTH);
}

/* A word of a server, which may be anyone's: without control characters; "?" where it is none. */
static void put_word(struct weir_text *line, const json_t *object, const char *name, size_t width)
{
	const char *word = json_string_value(json_object_get(object, name));
	size_t from = line->length;
	words_text(line, word != NULL ? word : "?");
	words_pad(line, from, width);
}

/* Whether a sample is of a span of time, not of what is now. */
static bool is_span(const json_t *sample)
{
	return json_object_get(sample, "from_ms") != NULL;
}

/* Of a zone, or of a decision. */
static bool is_shadow(const json_t *object)
{
	const char *mode = json_string_value(json_object_get(object, "mode"));
	return mode != NULL && strcmp(mode, "shadow") == 0;
}

/* Whether the zone whose keys are shown blocks nobody. */
static bool shows_shadow(const json_t *sample)
{
	const char *shown = json_string_value(json_object_get(sample, "zone"));
	size_t i;
	json_t *zone;
	json_array_foreach(json_object_get(sample, "zones"), i, zone)
	{
		const char *name = json_string_value(json_object_get(zone, "zone"));
		if (shown != NULL && name != NULL && strcmp(shown, name) == 0)
			return is_shadow(zone);
	}
	return false;
}

/* ---- the parts ---- */

/* Which time the sums are of: more than was asked for, as they are of whole hours or days. */
static void put_span(struct view *view, const json_t *sample)
{
	struct weir_text *line = &view->line;
	bool some = false;
	size_t i;
	json_t *zone;
	weir_text_puts(line, "counts of whole ");
	put_word(line, sample, "grain", 0);
	weir_text_puts(line, "s: ");
	words_time(line, number_of(sample, "from_ms"));
	weir_text_puts(line, " to ");
	words_time(line, number_of(sample, "to_ms"));
	json_array_foreach(json_object_get(sample, "zones"), i, zone)
	{
		some |= json_is_integer(json_object_get(zone, "first_ms"));
	}
	weir_text_puts(line, some ? "" : "; the archive has none of them");
	end_line(view, PLAIN);
}

/* Since when a zone has counts of a span: it may be younger than others, or its counts are kept for less. */
static void put_first(struct weir_text *line, const json_t *first)
{
	weir_text_puts(line, "  ");
	if (json_is_integer(first))
		words_time(line, json_integer_value(first));
	else
		weir_text_puts(line, "-");
}

static void put_zones(struct view *view, const json_t *sample)
{
	struct weir_text *line = &view->line;
	const char *shown = json_string_value(json_object_get(sample, "zone"));
	size_t i;
	json_t *zone;
	weir_text_printf(line, "%-*s%12s%12s%12s%12s", KEY_WIDTH, is_span(sample) ? "ZONE" : "ZONE (this hour)", "PASSED",
	                 "BLOCKED", "LATE", "A SECOND");
	weir_text_puts(line, is_span(sample) ? "  FIRST COUNT" : "");
	end_line(view, HEAD);
	json_array_foreach(json_object_get(sample, "zones"), i, zone)
	{
		const char *name = json_string_value(json_object_get(zone, "zone"));
		const json_t *rate = json_object_get(zone, "per_second");
		bool chosen = name != NULL && shown != NULL && strcmp(name, shown) == 0;
		weir_text_puts(line, chosen ? "> " : "  ");
		put_word(line, zone, "zone", 0);
		weir_text_puts(line, is_shadow(zone) ? " (shadow)" : "");
		words_pad(line, 0, KEY_WIDTH);
		put_count(line, zone, "passed");
		put_count(line, zone, "blocked");
		put_count(line, zone, "late");
		if (json_is_real(rate))
			weir_text_printf(line, "%12.1f", json_real_value(rate));
		else
			weir_text_printf(line, "%12s", "-");
		if (is_span(sample))
			put_first(line, json_object_get(zone, "first_ms"));
		end_line(view, chosen ? STRONG : PLAIN);
	}
}

static void put_top(struct view *view, const json_t *sample)
{
	struct weir_text *line = &view->line;
	bool shadow = shows_shadow(sample);
	size_t i;
	json_t *row;
	weir_text_puts(line, "KEY, by ");
	put_word(line, sample, "by", 0);
	weir_text_puts(line, is_span(sample) ? "" : " today");
	weir_text_puts(line, shadow ? ", in shadow mode" : "");
	words_pad(line, 0, KEY_WIDTH);
	if (is_span(sample))
		weir_text_printf(line, "%12s%12s%12s", "PASSED", "BLOCKED", "LATE");
	else
		weir_text_printf(line, "%12s%12s%12s%12s", "PASSED/H", "BLOCKED/H", "PASSED", "BLOCKED");
	end_line(view, HEAD);
	json_array_foreach(json_object_get(sample, "top"), i, row)
	{
		const json_t *hour = json_object_get(row, "hour");
		put_key(line, json_object_get(row, "key"));
		if (!is_span(sample)) {
			put_count(line, hour, "passed");
			put_count(line, hour, "blocked");
		}
		put_count(line, row, "passed");
		put_count(line, row, "blocked");
		if (is_span(sample))
			put_count(line, row, "late");
		bool blocked = number_of(is_span(sample) ? row : hour, "blocked") > 0;
		end_line(view, blocked && !shadow ? ALARM : PLAIN);
	}
}

/* "60 in 1h (held 60), block 2", or "by ann: scraping". */
static void put_cause(struct weir_text *line, const json_t *block)
{
	const json_t *limit = json_object_get(block, "limit");
	const char *by = json_string_value(json_object_get(block, "ordered_by"));
	const char *reason = json_string_value(json_object_get(block, "reason"));
	char window[24];
	if (by != NULL) {
		weir_text_puts(line, "by ");
		words_text(line, by);
		weir_text_puts(line, reason != NULL && reason[0] != '\0' ? ": " : "");
		words_text(line, reason != NULL ? reason : "");
	} else if (json_is_object(limit)) {
		put_word(line, limit, "algorithm", 0);
		weir_text_printf(line, ", %lld in %s (held %lld)", (long long)number_of(limit, "rate"),
		                 weir_format_duration(number_of(limit, "window_ms"), window, sizeof window),
		                 (long long)number_of(block, "held"));
		if (number_of(block, "nth") > 0)
			weir_text_printf(line, ", block %lld", (long long)number_of(block, "nth"));
	}
}

static void put_blocks(struct view *view, const json_t *sample)
{
	struct weir_text *line = &view->line;
	const json_t *blocks = json_object_get(sample, "blocks");
	size_t i;
	json_t *block;
	bool span = is_span(sample);
	if (span) {
		weir_text_puts(line, "BLOCKED from ");
		words_time(line, number_of(sample, "asked_from_ms"));
		weir_text_puts(line, " to ");
		words_time(line, number_of(sample, "asked_to_ms"));
		end_line(view, STRONG);
	}
	weir_text_printf(line, "%-*s  %-23s  %-16s  %s", KEY_WIDTH, span ? "KEY" : "BLOCKED NOW", span ? "AT" : "UNTIL",
	                 "ZONE", "LIMIT");
	end_line(view, HEAD);
	json_array_foreach(blocks, i, block)
	{
		put_key(line, json_object_get(block, "key"));
		weir_text_puts(line, "  ");
		size_t from = line->length;
		words_time(line, number_of(block, span ? "at_ms" : "until_ms"));
		words_pad(line, from, 23);
		weir_text_puts(line, "  ");
		put_word(line, block, "zone", 16);
		weir_text_puts(line, "  ");
		put_cause(line, block);
		end_line(view, PLAIN);
	}
	if (json_array_size(blocks) == 0)
		weir_text_puts(line, "nobody");
	else if (json_is_true(json_object_get(sample, "more_blocks")))
		weir_text_puts(line, "and more");
	if (line->length > 0)
		end_line(view, PLAIN);
}

void top_view_put(struct weir_text *text, const struct top_form *form, const char *source, const json_t *sample,
                  const char *note)
{
	struct view view = {.text = text, .form = form};
	weir_text_puts(&view.line, "weir top  ");
	words_text(&view.line, source);
	weir_text_puts(&view.line, "  ");
	words_time(&view.line, number_of(sample, "at_ms"));
	if (form->screen)
		weir_text_puts(&view.line, "  q quit, z zone, b blocked, t passed");
	end_line(&view, STRONG);
	if (note != NULL)
		words_text(&view.line, note);
	end_line(&view, ALARM);
	if (sample != NULL) {
		if (is_span(sample))
			put_span(&view, sample);
		put_zones(&view, sample);
		end_line(&view, PLAIN);
		put_top(&view, sample);
		end_line(&view, PLAIN);
		put_blocks(&view, sample);
	}
	weir_text_deinit(&view.line);
}
