/* SPDX-License-Identifier: Apache-2.0 */
/* The first sentence says it all to whoever reads no further: who, from when until when, and because of what. */
#include "deploy/weir/explain/answer.h"

#include "common/bytes/hex.h"
#include "common/json/json.h"
#include "deploy/weir/terminal/readable.h"

enum { EVENTS_SHOWN = 40, INDENT = 2 };

static void put_key(struct weir_text *text, const json_t *key)
{
	for (size_t i = 0; i < json_array_size(key); i++) {
		const char *value = json_string_value(json_array_get(key, i));
		weir_text_puts(text, i > 0 ? "|" : "");
		words_key_value(text, weir_span_of(value != NULL ? value : "?"));
	}
	if (json_array_size(key) == 0)
		weir_text_puts(text, "everyone");
}

/* "The sixth", "The 101st". */
static void put_ordinal(struct weir_text *text, int64_t number)
{
	static const char *const names[] = {"",        "first",  "second", "third", "fourth",   "fifth",  "sixth",
	                                    "seventh", "eighth", "ninth",  "tenth", "eleventh", "twelfth"};
	if (number >= 1 && number <= 12) {
		weir_text_puts(text, names[number]);
		return;
	}
	int64_t tens = number % 100, ones = number % 10;
	const char *ending = tens >= 11 && tens <= 13 ? "th"
	                     : ones == 1              ? "st"
	                     : ones == 2              ? "nd"
	                     : ones == 3              ? "rd"
	                                              : "th";
	words_count(text, (uint64_t)number);
	weir_text_puts(text, ending);
}

static bool is_plain(const struct question *question)
{
	for (size_t i = 0; i < question->event_count; i++)
		if (question->events[i].cost != 1)
			return false;
	return question->event_count > 0;
}

/* ", because of 5 events in 1m (policy 3). The sixth is one too many." */
static void put_limit(struct weir_text *text, const struct question *question, const json_t *decision)
{
	struct weir_limit limit;
	int64_t count = json_integer_value(json_object_get(decision, "count"));
	if (!weir_limit_read(json_object_get(decision, "limit"), &limit))
		return;
	if (json_is_true(json_object_get(decision, "freed")))
		weir_text_puts(text, json_integer_value(json_object_get(decision, "until")) >
		                             json_integer_value(json_object_get(decision, "at"))
		                         ? ", sooner than it was blocked before, as something that waited is done"
		                         : ", as something that waited is done");
	bool window =
		limit.algorithm->is_window && limit.algorithm->brief == NULL && is_plain(question) && count == limit.rate;
	weir_text_puts(text, window ? ", because of " : ", because at most ");
	if (window) { /* "10 in 1m" */
		struct weir_text brief = {0};
		weir_limit_brief(&brief, &limit);
		const char *space = memchr(brief.at, ' ', brief.length);
		size_t head = space != NULL ? (size_t)(space - brief.at) : brief.length;
		words_count(text, (uint64_t)count);
		weir_text_puts(text, count == 1 ? " event" : " events");
		weir_text_append(text, brief.at + head, brief.length - head);
		weir_text_deinit(&brief);
	} else {
		limit.algorithm->describe(text, &limit);
		weir_text_puts(text, " may pass");
	}
	if (question->policy_version > 0)
		weir_text_printf(text, " (policy %llu)", (unsigned long long)question->policy_version);
	weir_text_puts(text, ".");
	bool recorded =
		(int64_t)question->event_count + question->left_out == count; /* the one that decided was counted itself */
	if (window && !recorded) {
		weir_text_puts(text, " The ");
		put_ordinal(text, count + 1);
		weir_text_puts(text, " is one too many.");
	} else if (!window) {
		weir_text_printf(text, " It held %lld at that moment.", (long long)count);
	}
}

static void put_who(struct weir_text *text, const json_t *decision)
{
	const char *by = json_string_value(json_object_get(decision, "by"));
	const char *reason = json_string_value(json_object_get(decision, "reason"));
	if (by == NULL)
		return;
	weir_text_puts(text, ", as ");
	words_text(text, by);
	weir_text_puts(text, " commanded");
	if (reason != NULL && reason[0] != '\0') {
		weir_text_puts(text, ": ");
		words_text(text, reason);
	}
	weir_text_puts(text, ".");
}

static void put_verdict(struct weir_text *text, const struct question *question, const json_t *decision)
{
	const char *action = json_string_value(json_object_get(decision, "action"));
	const char *zone = json_string_value(json_object_get(decision, "zone"));
	const char *mode = json_string_value(json_object_get(decision, "mode"));
	int64_t until_ms = json_integer_value(json_object_get(decision, "until"));
	bool block = action != NULL && strcmp(action, "block") == 0, shadow = mode != NULL && strcmp(mode, "shadow") == 0;
	const json_t *key = json_object_get(decision, "key");
	weir_text_puts(text, block ? shadow ? "Would have blocked " : "Blocked " : "Lifted the block of ");
	if (json_is_null(key))
		weir_text_puts(text, "every key");
	else
		put_key(text, key);
	weir_text_puts(text, " in zone ");
	words_text(text, zone != NULL ? zone : "?");
	weir_text_puts(text, " ");
	weir_text_puts(text, block ? "from " : "at ");
	words_time(text, json_integer_value(json_object_get(decision, "at")));
	if (block && until_ms >= WEIR_TIME_END_MS) {
		weir_text_puts(text, " until it is lifted");
	} else if (block) {
		weir_text_puts(text, " until ");
		words_time(text, until_ms);
	}
	if (json_is_object(json_object_get(decision, "limit")))
		put_limit(text, question, decision);
	else if (json_object_get(decision, "by") != NULL)
		put_who(text, decision);
	else
		weir_text_printf(text, ", as policy %llu has no such zone, or has it in shadow mode.",
		                 (unsigned long long)question->policy_version);
	if (block && !shadow && question->shadow)
		weir_text_puts(text, " The zone is in shadow mode since: nobody is blocked.");
	weir_text_puts(text, "\n");
}

/* What an operator's command holds, where no decision says it. */
static void put_order(struct weir_text *text, const struct question *question)
{
	json_t *order = json_loadb(question->order.at, question->order.length, JSON_ALLOW_NUL, NULL);
	const char *kind = json_string_value(json_object_get(order, "order"));
	const char *zone = json_string_value(json_object_get(order, "zone"));
	const json_t *until = json_object_get(order, "until");
	bool allow = kind != NULL && strcmp(kind, "allow") == 0;
	words_key(text, (struct weir_span){.at = question->key.at, .length = (uint32_t)question->key.length});
	weir_text_puts(text, allow              ? " is allowed in zone "
	                     : question->shadow ? " would be blocked in zone "
	                                        : " is blocked in zone ");
	words_text(text, zone != NULL ? zone : "?");
	if (json_is_integer(until)) {
		weir_text_puts(text, " until ");
		words_time(text, json_integer_value(until));
	}
	if (json_is_true(json_object_get(order, "network"))) {
		weir_text_puts(text, ", as part of ");
		put_key(text, json_object_get(order, "key"));
	}
	put_who(text, order);
	weir_text_puts(text, "\n");
	if (question->held.length > 0)
		weir_text_printf(text,
		                 "Gateways keep it out all the same: they hold %.*s, which is blocked. To let it in, lift that "
		                 "and block smaller networks.\n",
		                 (int)question->held.length, question->held.at);
	json_decref(order);
}

static bool is_allowed(const struct question *question)
{
	static const char allow[] = "{\"order\":\"allow\"";
	return question->order.length >= sizeof allow && memcmp(question->order.at, allow, sizeof allow - 1) == 0;
}

/* ---- events ---- */

static bool has_ms(const struct question *question)
{
	for (size_t i = 0; i < question->event_count; i++)
		if (question->events[i].time_ms % 1000 != 0)
			return true;
	return false;
}

static void put_place(struct weir_text *text, const struct explained_event *event)
{
	const char *file = event->file != NULL ? event->file : event->stream;
	if (event->file != NULL) {
		words_text(text, event->file);
		weir_text_printf(text, ":%llu%s", (unsigned long long)event->offset,
		                 event->found == LINE_BY_TIME ? " (found by time)" : "");
		return;
	}
	char digits[2 * sizeof event->source];
	if (file != NULL) {
		words_text(text, file);
	} else {
		(void)weir_hex_put(digits, event->source, sizeof event->source);
		weir_text_append(text, digits, sizeof digits);
	}
	weir_text_printf(text, " position %llu", (unsigned long long)event->position);
}

static unsigned width_of(const char *at, size_t length)
{
	unsigned width = 0;
	for (size_t i = 0; i < length; i++)
		width += ((unsigned char)at[i] & 0xC0) != 0x80;
	return width;
}

static void put_event(struct weir_text *text, const struct explained_event *event, bool with_ms, unsigned columns)
{
	size_t begin = text->length;
	weir_text_puts(text, event->decided ? "> " : "  ");
	if (with_ms)
		words_time_ms(text, event->time_ms);
	else
		words_time(text, event->time_ms);
	weir_text_puts(text, "  ");
	if (event->cost != 1)
		weir_text_printf(text, "cost %lld  ", (long long)event->cost);
	put_place(text, event);
	weir_text_puts(text, "  ");
	unsigned used = width_of(text->at + begin, text->length - begin);
	struct weir_span shown = {.at = event->line, .length = event->line_length};
	if (event->line == NULL) {
		const char *words = event->fields != NULL ? "(line not found) kept: " : "(line not found)";
		weir_text_puts(text, words);
		used += width_of(words, strlen(words));
		shown = weir_span_of(event->fields != NULL ? event->fields : "");
	}
	if (columns > 0 && used + 20 > columns && shown.length > 0) { /* no room beside it */
		weir_text_puts(text, "\n    ");
		used = 4;
	}
	words_bytes(text, shown, columns > 0 ? columns - used : 0);
	weir_text_puts(text, "\n");
}

static void put_events(struct weir_text *text, const struct question *question, unsigned columns)
{
	size_t first = question->event_count > EVENTS_SHOWN ? question->event_count - EVENTS_SHOWN : 0;
	bool with_ms = has_ms(question);
	if (question->event_count == 0)
		return;
	weir_text_puts(text, "\n");
	if (first > 0) {
		weir_text_puts(text, "  ");
		words_count(text, first);
		weir_text_puts(text, " earlier events are shown with --json\n");
	}
	for (size_t i = first; i < question->event_count; i++)
		put_event(text, &question->events[i], with_ms, columns);
}

/* ---- all ---- */

static void put_missing(struct weir_text *text, const struct question *question)
{
	if (question->missing.length == 0)
		return;
	const char *at = question->missing.at, *end = at + question->missing.length;
	for (const char *newline; at < end; at = newline + 1) {
		newline = memchr(at, '\n', (size_t)(end - at));
		weir_text_puts(text, "Missing: ");
		words_bytes(text, (struct weir_span){.at = at, .length = (uint32_t)(newline - at)}, 0);
		weir_text_puts(text, "\n");
	}
}

static void put_judged(struct weir_text *text, const struct question *question)
{
	if (question_is_equal(question)) {
		weir_text_puts(text, "Judged again: the same decision, byte for byte.\n");
	} else if (question->again.length > 0 && question->published.length > 0) {
		weir_text_puts(text, "Judged again, the decision differs:\n  published ");
		words_bytes(
			text, (struct weir_span){.at = question->published.at, .length = (uint32_t)question->published.length}, 0);
		weir_text_puts(text, "\n  again     ");
		words_bytes(text, (struct weir_span){.at = question->again.at, .length = (uint32_t)question->again.length}, 0);
		weir_text_puts(text, "\n");
	}
}

void answer_words(struct weir_text *text, const struct question *question, unsigned columns)
{
	const struct weir_text *line = question->published.length > 0 ? &question->published : &question->again;
	if (question->order.length > 0 && (line->length == 0 || is_allowed(question)))
		put_order(text, question);
	if (line->length > 0) {
		json_t *decision = json_loadb(line->at, line->length, JSON_ALLOW_NUL, NULL);
		put_verdict(text, question, decision);
		json_decref(decision);
	}
	put_events(text, question, columns);
	if (question->event_count > 0)
		weir_text_puts(text, "\n");
	put_judged(text, question);
	put_missing(text, question);
}
