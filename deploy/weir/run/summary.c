/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the lanes: each key lives in one lane, so the top keys need no merging but the sorting. */
#include "deploy/weir/run/summary.h"

#include "common/base/alloc.h"
#include "common/json/json_writer.h"
#include "deploy/weir/terminal/readable.h"
#include "limiter/lane/decision.h"

#include <stdlib.h>
#include <string.h>

enum { TOP_SHOWN = 10, ZONES_SHOWN = 20 };

struct zone_sums {
	uint64_t passed, blocked, late, decisions;
};

static struct zone_sums sum_zone(const struct summary *summary, uint32_t zone_id)
{
	struct zone_sums sums = {0};
	for (uint32_t i = 0; i < summary->lane_count; i++) {
		const struct tally_zone *zone = tally_zone(lane_tally(summary->lanes[i]), zone_id);
		if (zone == NULL)
			continue;
		sums.passed += zone->passed;
		sums.blocked += zone->blocked;
		sums.late += zone->late;
		sums.decisions += zone->decisions;
	}
	return sums;
}

/* Most blocked first; among equals by zone and key, so that the order is the same every time. */
static int compare_keys(const void *left, const void *right)
{
	const struct top_key *a = *(const struct top_key *const *)left, *b = *(const struct top_key *const *)right;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	if (a->zone_id != b->zone_id)
		return a->zone_id < b->zone_id ? -1 : 1;
	uint32_t shorter = a->key_length < b->key_length ? a->key_length : b->key_length;
	int order = memcmp(a->key, b->key, shorter);
	return order != 0 ? order : a->key_length < b->key_length ? -1 : a->key_length > b->key_length;
}

/* The most blocked keys over all lanes; the caller frees. */
static const struct top_key **most_blocked(const struct summary *summary, size_t *count)
{
	const struct top_key **all = weir_alloc((size_t)summary->lane_count * TOP_KEYS, sizeof(const struct top_key *));
	size_t total = 0;
	for (uint32_t i = 0; i < summary->lane_count; i++) {
		const struct top_key *const *keys;
		size_t more = top_keys_list(tally_keys(lane_tally(summary->lanes[i])), &keys);
		for (size_t j = 0; j < more; j++)
			if (weir_policy_zone(summary->policy, keys[j]->zone_id) != NULL)
				all[total++] = keys[j];
	}
	qsort(all, total, sizeof(const struct top_key *), compare_keys);
	*count = total < TOP_SHOWN ? total : TOP_SHOWN;
	return all;
}

static void line(struct weir_text *text, const char *name, uint64_t number)
{
	weir_text_printf(text, "  %-11s", name);
	struct weir_text digits = {0};
	words_count(&digits, number);
	weir_text_printf(text, "%15.*s", (int)digits.length, digits.at);
	weir_text_deinit(&digits);
}

static void put_hint(struct weir_text *text, const struct record_hint *hint)
{
	if (hint->help[0] != '\0')
		weir_text_printf(text, "               %s; the first such line is:\n               %s\n", hint->help,
		                 hint->line);
}

static void malformed_words(struct weir_text *text, const struct record_counts *counts)
{
	line(text, "malformed", record_counts_malformed(counts));
	const char *before = "  (";
	for (int i = 0; i < FORMAT_REASON_COUNT; i++) {
		if (counts->malformed[i] == 0)
			continue;
		weir_text_printf(text, "%s%s ", before, format_reason_text((enum format_reason)i));
		words_count(text, counts->malformed[i]);
		before = ", ";
	}
	weir_text_puts(text, before[0] == ',' ? ")\n" : "\n");
	put_hint(text, &counts->unread);
}

static void zone_words(struct weir_text *text, const struct summary *summary)
{
	weir_text_printf(text, "\n  %-20s %14s %14s %14s %12s\n", "zone", "passed", "blocked", "late", "decisions");
	for (uint32_t i = 0; i < summary->policy->zone_count; i++) {
		const struct weir_zone *zone = &summary->policy->zones[i];
		struct zone_sums sums = sum_zone(summary, zone->id);
		weir_text_printf(text, "  %-20s", zone->name);
		uint64_t numbers[] = {sums.passed, sums.blocked, sums.late, sums.decisions};
		for (int j = 0; j < 4; j++) {
			struct weir_text digits = {0};
			words_count(&digits, numbers[j]);
			weir_text_printf(text, " %*.*s", j == 3 ? 12 : 14, (int)digits.length, digits.at);
			weir_text_deinit(&digits);
		}
		weir_text_puts(text, zone->mode == WEIR_SHADOW ? "  (shadow)\n" : "\n");
	}
	if (summary->earlier)
		weir_text_puts(text, "  (zones and keys: since the state began, in earlier runs too; lines: in this run)\n");
}

/* A short window slides and a long one does not where nobody said which: it is said here. */
static void limit_words(struct weir_text *text, const struct summary *summary)
{
	weir_text_puts(text, "\n  limits\n");
	for (uint32_t i = 0; i < summary->policy->zone_count && i < ZONES_SHOWN; i++) {
		const struct weir_zone *zone = &summary->policy->zones[i];
		weir_text_printf(text, "  %-20s ", zone->name);
		for (uint32_t k = 0; k < zone->limit_count; k++) {
			weir_text_puts(text, k > 0 ? ", " : "");
			zone->limits[k].algorithm->describe(text, &zone->limits[k]);
			weir_text_printf(text, " [%s]", zone->limits[k].algorithm->name);
		}
		weir_text_puts(text, "\n");
	}
	if (summary->policy->zone_count > ZONES_SHOWN)
		weir_text_puts(text, "  and more: weir validate has them all\n");
}

struct late_zone summary_late(const struct summary *summary)
{
	struct late_zone worst = {0};
	for (uint32_t i = 0; i < summary->policy->zone_count; i++) {
		struct zone_sums sums = sum_zone(summary, summary->policy->zones[i].id);
		late_zone_consider(&worst, &summary->policy->zones[i], sums.late, sums.passed + sums.blocked);
	}
	return worst;
}

static void late_words(struct weir_text *text, const struct summary *summary)
{
	struct late_zone worst = summary_late(summary);
	if (worst.zone == NULL)
		return;
	weir_text_puts(text, "  ");
	late_zone_words(text, &worst, !summary->follows);
	weir_text_puts(text, "\n");
}

static void top_words(struct weir_text *text, const struct summary *summary)
{
	size_t count;
	const struct top_key **keys = most_blocked(summary, &count);
	if (count > 0)
		weir_text_puts(text, "\n  most blocked\n");
	for (size_t i = 0; i < count; i++) {
		struct weir_text digits = {0};
		words_count(&digits, keys[i]->count);
		weir_text_printf(text, "  %14.*s%s  %s  ", (int)digits.length, digits.at, keys[i]->error > 0 ? "~" : " ",
		                 weir_policy_zone(summary->policy, keys[i]->zone_id)->name);
		words_key(text, (struct weir_span){.at = keys[i]->key, .length = keys[i]->key_length});
		weir_text_puts(text, "\n");
		weir_text_deinit(&digits);
	}
	free(keys);
}

void summary_words(struct weir_text *text, const struct summary *summary)
{
	weir_text_puts(text, summary->finished ? "\nweir: done\n" : "\nweir: stopped by a signal\n");
	line(text, "lines", summary->counts.lines);
	if (summary->seconds > 0) {
		weir_text_puts(text, "  (");
		words_count(text, (uint64_t)((double)summary->lines_here / summary->seconds));
		weir_text_printf(text, " a second, %.2f s)", summary->seconds);
	}
	weir_text_puts(text, "\n");
	line(text, "events", summary->counts.records);
	weir_text_puts(text, "\n");
	if (summary->counts.words > 0) {
		line(text, "no address", summary->counts.words);
		weir_text_puts(text, "  (events whose ip is no address: counted as it stands)\n");
	}
	if (summary->counts.cut > 0) {
		line(text, "cut", summary->counts.cut);
		weir_text_puts(text, "  (events whose line lacks its end: what is missing is absent)\n");
	}
	put_hint(text, &summary->counts.cut_off);
	malformed_words(text, &summary->counts);
	if (weir_policy_counts_by(summary->policy, "ip"))
		put_hint(text, &summary->counts.no_ip);
	put_hint(text, &summary->counts.forged);
	zone_words(text, summary);
	limit_words(text, summary);
	late_words(text, summary);
	top_words(text, summary);
	weir_text_printf(text, "\n  decisions    %s\n",
	                 strcmp(summary->decisions, "-") == 0 ? "standard output" : summary->decisions);
	if (summary->dead_letters != NULL && summary->dead_letters_written > 0)
		weir_text_printf(text, "  dead letter  %s (%llu kept, %llu only counted)\n", summary->dead_letters,
		                 (unsigned long long)summary->dead_letters_written,
		                 (unsigned long long)summary->dead_letters_dropped);
	if (summary->state != NULL)
		weir_text_printf(text, "  state        %s\n", summary->state);
}

static void json_malformed(struct weir_json_writer *json, const struct record_counts *counts)
{
	weir_json_write_object(json, "malformed");
	for (int i = 0; i < FORMAT_REASON_COUNT; i++)
		if (counts->malformed[i] > 0)
			weir_json_write_uint(json, format_reason_text((enum format_reason)i), counts->malformed[i]);
	weir_json_write_end(json);
}

static void json_zones(struct weir_json_writer *json, const struct summary *summary)
{
	weir_json_write_object(json, "zones");
	for (uint32_t i = 0; i < summary->policy->zone_count; i++) {
		const struct weir_zone *zone = &summary->policy->zones[i];
		struct zone_sums sums = sum_zone(summary, zone->id);
		weir_json_write_object(json, zone->name);
		weir_json_write_uint(json, "matched", sums.passed + sums.blocked);
		weir_json_write_uint(json, "passed", sums.passed);
		weir_json_write_uint(json, "blocked", sums.blocked);
		weir_json_write_uint(json, "late", sums.late);
		weir_json_write_uint(json, "decisions", sums.decisions);
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
}

static void json_top(struct weir_json_writer *json, const struct summary *summary)
{
	size_t count;
	const struct top_key **keys = most_blocked(summary, &count);
	weir_json_write_array(json, "top_blocked");
	for (size_t i = 0; i < count; i++) {
		const struct weir_zone *zone = weir_policy_zone(summary->policy, keys[i]->zone_id);
		weir_json_write_object(json, NULL);
		weir_json_write_words(json, "zone", zone->name);
		decision_key_json(weir_json_write_value(json, "key"), zone,
		                  (struct weir_span){.at = keys[i]->key, .length = keys[i]->key_length});
		weir_json_write_uint(json, "blocked", keys[i]->count);
		weir_json_write_uint(json, "error", keys[i]->error);
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
	free(keys);
}

void summary_json(struct weir_text *text, const struct summary *summary)
{
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_uint(&json, "lines", summary->counts.lines);
	weir_json_write_uint(&json, "events", summary->counts.records);
	weir_json_write_uint(&json, "ip_not_address", summary->counts.words);
	weir_json_write_uint(&json, "cut", summary->counts.cut);
	json_malformed(&json, &summary->counts);
	json_zones(&json, summary);
	json_top(&json, summary);
	weir_json_write_uint(&json, "dead_letters", summary->dead_letters_written);
	weir_json_write_uint(&json, "dead_letters_dropped", summary->dead_letters_dropped);
	weir_json_write_bool(&json, "finished", summary->finished);
	if (summary->seconds > 0) {
		weir_json_write_fixed(&json, "seconds", summary->seconds, 3);
		weir_json_write_fixed(&json, "lines_per_second", (double)summary->lines_here / summary->seconds, 0);
	}
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}
