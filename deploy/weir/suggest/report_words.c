/* SPDX-License-Identifier: Apache-2.0 */
/* For people: what was read, a curve for each window, who would be blocked, and the zone. */
#include "common/json/units.h"
#include "deploy/weir/suggest/report.h"
#include "deploy/weir/terminal/readable.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DURATION_BYTES = 32, MS_IN_SECOND = 1000 };

bool suggest_is_longer(const struct suggest_report *report, uint32_t window)
{
	return report->trial->windows_ms[window] > report->seen->last_ms - report->seen->first_ms;
}

bool suggest_is_spared(const struct suggest_report *report, uint32_t window)
{
	int64_t peak = report->seen->spared[window].peak;
	return peak > 1 && report->trial->limits[window] == peak;
}

/* "in 1m", or of fixed windows "in each 1m" */
static void put_window_name(struct weir_text *text, const struct suggest_report *report, uint32_t window)
{
	char duration[DURATION_BYTES];
	weir_text_puts(text, strcmp(report->trial->algorithm, "fixed_window") == 0 ? "in each " : "in ");
	weir_text_puts(text, weir_format_duration(report->trial->windows_ms[window], duration, sizeof duration));
}

static void put_share(struct weir_text *text, uint64_t part, uint64_t whole)
{
	weir_text_printf(text, "%.3f%%", whole == 0 ? 0 : 100 * (double)part / (double)whole);
}

/* In whole seconds: the log's length is for people. */
static void put_span(struct weir_text *text, const struct suggest_report *report)
{
	char duration[DURATION_BYTES];
	int64_t span_ms = report->seen->last_ms - report->seen->first_ms;
	if (span_ms > MS_IN_SECOND)
		span_ms -= span_ms % MS_IN_SECOND;
	weir_text_puts(text, weir_format_duration(span_ms, duration, sizeof duration));
}

/* ---- the zone ---- */

/* "42 in 1m: 12 keys, 0.100%; 41 would block 13" */
static void put_origin(struct weir_text *text, const struct suggest_report *report, uint32_t window)
{
	const struct trial *trial = report->trial;
	const struct trial_zone *alone = trial_find(trial, TRIAL_ALONE, window, trial->limits[window]);
	const struct trial_zone *lower = trial_find(trial, TRIAL_LOWER, window, 0);
	uint64_t keys = alone != NULL ? alone->keys : 0;
	words_count(text, (uint64_t)trial->limits[window]);
	weir_text_puts(text, " ");
	put_window_name(text, report, window);
	weir_text_puts(text, " alone blocks ");
	words_amount(text, keys, "key");
	if (lower == NULL) {
		weir_text_puts(text, "; no limit is smaller");
	} else {
		weir_text_puts(text, "; with ");
		words_count(text, (uint64_t)lower->limit);
		weir_text_puts(text, " here, all limits would block ");
		words_amount(text, lower->keys, "key");
	}
	if (lower != NULL && suggest_is_spared(report, window)) {
		weir_text_puts(text, ", spared ");
		words_key(text, weir_text_span(&report->seen->spared[window].key));
		weir_text_puts(text, " among them");
	}
	if (suggest_is_longer(report, window))
		weir_text_puts(text, "; the window is longer than the log");
	weir_text_puts(text, "\n");
}

static void put_head(struct weir_text *text, const struct suggest_report *report)
{
	const struct trial_zone *together = trial_find(report->trial, TRIAL_TOGETHER, 0, 0);
	weir_text_puts(text, "\t// From ");
	words_amount(text, report->seen->requests, "request");
	weir_text_puts(text, " of ");
	words_amount(text, report->table->keys, "key");
	weir_text_puts(text, " in ");
	put_span(text, report);
	weir_text_puts(text, ": it would have blocked ");
	words_amount(text, together->keys, "key");
	weir_text_puts(text, " (");
	put_share(text, together->keys, report->table->keys);
	weir_text_printf(text, " of them, asked for were at most %s) and ", report->share);
	words_amount(text, together->requests, "request");
	weir_text_puts(text, ".\n");
}

static void put_member(struct weir_text *text, const char *name, const json_t *value)
{
	char *words = json_dumps(value, JSON_ENCODE_ANY);
	weir_text_puts(text, "\t");
	weir_text_json(text, weir_span_of(name));
	weir_text_printf(text, ": %s,\n", words);
	free(words);
}

void suggest_zone(struct weir_text *text, const struct suggest_report *report)
{
	const char *member;
	json_t *value, *limits = trial_limits(report->trial, report->trial->limits);
	size_t i;
	weir_text_puts(text, "{\n");
	put_head(text, report);
	weir_text_puts(text, "\t\"name\": ");
	weir_text_json(text, weir_span_of(setting_name(report->setting)));
	weir_text_puts(text, ",\n\t\"mode\": \"shadow\", // it decides, and blocks nobody until this is \"enforce\"\n");
	json_object_foreach(report->setting->zone, member, value)
	{
		put_member(text, member, value);
	}
	weir_text_puts(text, "\t\"limits\": [\n");
	json_array_foreach(limits, i, value)
	{
		char *words = json_dumps(value, 0);
		weir_text_puts(text, "\t\t// ");
		put_origin(text, report, (uint32_t)i);
		weir_text_printf(text, "\t\t%s%s\n", words, i + 1 < json_array_size(limits) ? "," : "");
		free(words);
	}
	weir_text_puts(text, "\t]\n}\n");
	json_decref(limits);
}

/* ---- the tables ---- */

static void put_count(struct weir_text *text, uint64_t number, int columns)
{
	struct weir_text digits = {0};
	words_count(&digits, number);
	weir_text_printf(text, " %*.*s", columns, (int)digits.length, digits.at);
	weir_text_deinit(&digits);
}

/* What is to be known of a point. */
static void put_remark(struct weir_text *text, const struct suggest_report *report, const struct trial_zone *zone)
{
	const struct trial *trial = report->trial;
	if (zone->limit == trial->limits[zone->window])
		weir_text_puts(text, "  <- suggested");
	if (zone->limit == report->alone[zone->window] && trial->window_count > 1)
		weir_text_puts(text, "  <- if it were the only window");
	if (zone->limit == limit_at_knee(report->table, zone->window))
		weir_text_puts(text, "  (knee: then the widest gap)");
}

static void put_point(struct weir_text *text, const struct suggest_report *report, const struct trial_zone *zone)
{
	weir_text_puts(text, "  ");
	put_count(text, (uint64_t)zone->limit, 13);
	put_count(text, zone->keys, 12);
	weir_text_printf(text, " %10.3f%% ", 100 * (double)zone->keys / (double)report->table->keys);
	put_count(text, zone->requests, 14);
	weir_text_printf(text, " %10.3f%%", 100 * (double)zone->requests / (double)report->seen->requests);
	put_remark(text, report, zone);
	weir_text_puts(text, "\n");
}

static void put_notes(struct weir_text *text, const struct suggest_report *report, uint32_t window)
{
	const struct spared_peak *spared = &report->seen->spared[window];
	if (suggest_is_longer(report, window)) {
		weir_text_puts(text, "  The window is longer than the log, which is of ");
		put_span(text, report);
		weir_text_puts(text, ": the limit is one of all that a key did in it.\n");
	}
	if (report->unspared[window] < report->trial->limits[window]) {
		weir_text_puts(text, "  Spared ");
		words_key(text, weir_text_span(&spared->key));
		weir_text_puts(text, " had ");
		words_count(text, (uint64_t)spared->peak);
		weir_text_puts(text, ": without spared keys the limit would be ");
		words_count(text, (uint64_t)report->unspared[window]);
		weir_text_puts(text, ".\n");
	}
	if (report->seen->late[window] > 0) {
		weir_text_puts(text, "  ");
		words_amount(text, report->seen->late[window], "request");
		weir_text_puts(text, " came too late to be judged: --sort judges in the order of time.\n");
	}
}

static void put_windows(struct weir_text *text, const struct suggest_report *report)
{
	for (uint32_t window = 0; window < report->trial->window_count; window++) {
		weir_text_puts(text, "\n  ");
		put_window_name(text, report, window);
		weir_text_printf(text, "\n  %14s %12s %11s  %14s %11s\n", "limit", "keys blocked", "of keys", "requests",
		                 "of requests");
		for (uint32_t i = 0; i < report->trial->count; i++)
			if (report->trial->zones[i].kind == TRIAL_ALONE && report->trial->zones[i].window == window)
				put_point(text, report, &report->trial->zones[i]);
		put_notes(text, report, window);
	}
}

static void put_top(struct weir_text *text, const struct suggest_report *report)
{
	const struct trial_zone *together = trial_find(report->trial, TRIAL_TOGETHER, 0, 0);
	weir_text_puts(text, "\n  The zone below would have blocked ");
	words_amount(text, together->keys, "key");
	weir_text_puts(text, " (");
	put_share(text, together->keys, report->table->keys);
	weir_text_puts(text, ") and ");
	words_amount(text, together->requests, "request");
	weir_text_puts(text, " (");
	put_share(text, together->requests, report->seen->requests);
	weir_text_puts(text, report->top_count > 0 ? "), most of all:\n" : ").\n");
	for (uint32_t i = 0; i < report->top_count; i++) {
		put_count(text, report->top[i].requests, 15);
		weir_text_puts(text, "  ");
		words_key(text, report->top[i].key);
		weir_text_puts(text, "\n");
	}
	weir_text_puts(text, "\n");
}

void suggest_words(struct weir_text *text, const struct suggest_report *report)
{
	uint64_t malformed = record_counts_malformed(&report->counts);
	weir_text_puts(text, "weir suggest: ");
	words_amount(text, report->seen->requests, "request");
	weir_text_puts(text, " of ");
	words_amount(text, report->table->keys, "key");
	weir_text_puts(text, " in ");
	put_span(text, report);
	weir_text_printf(text, "; at most %s of the keys are ", report->share);
	words_count(text, report->allowed);
	if (report->spares) {
		weir_text_puts(text, "; spared: ");
		words_amount(text, report->seen->spared_keys, "key");
	}
	weir_text_puts(text, "\n");
	if (malformed > 0) {
		weir_text_puts(text, "  malformed: ");
		words_amount(text, malformed, "line");
		weir_text_puts(text, "; weir validate shows the first of them\n");
	}
	put_windows(text, report);
	put_top(text, report);
	suggest_zone(text, report);
}
