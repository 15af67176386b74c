/* SPDX-License-Identifier: Apache-2.0 */
/* For people: a row for each zone, then where policies differ, with the first keys for which they do. */
#include "deploy/weir/backtest/report.h"
#include "deploy/weir/terminal/readable.h"

#include <string.h>

enum { NAME_COLUMNS_MOST = 24, EXAMPLES_SHOWN = 3 };

/* The columns that names take: those of the longest, up to a bound. */
struct columns {
	int policy, zone;
};

static int at_least(int columns, const char *name)
{
	size_t own = strlen(name);
	own = own < NAME_COLUMNS_MOST ? own : NAME_COLUMNS_MOST;
	return (int)own > columns ? (int)own : columns;
}

static struct columns name_columns(const struct report *report)
{
	struct columns columns = {(int)strlen("policy"), (int)strlen("zone")};
	const struct backtest_policies *policies = report->policies;
	for (uint32_t i = 0; i < policies->zone_count; i++) {
		columns.policy = at_least(columns.policy, policies->at[policies->owners[i]].name);
		columns.zone = at_least(columns.zone, policies_zone(policies, i)->name);
	}
	return columns;
}

/* Of a longer name the end is shown, by which paths differ. */
static void put_name(struct weir_text *text, const char *name, int columns)
{
	size_t length = strlen(name);
	if (length > (size_t)columns)
		name += length - (size_t)columns;
	while (((unsigned char)*name & 0xC0) == 0x80) /* behind the beginning of a character */
		name++;
	weir_text_printf(text, "  %-*s", columns, name);
}

static void put_count(struct weir_text *text, uint64_t number, int columns)
{
	struct weir_text digits = {0};
	words_count(&digits, number);
	weir_text_printf(text, " %*.*s", columns, (int)digits.length, digits.at);
	weir_text_deinit(&digits);
}

static void put_share(struct weir_text *text, uint64_t part, uint64_t whole, int columns)
{
	if (whole == 0)
		weir_text_printf(text, " %*s", columns, "-");
	else
		weir_text_printf(text, " %*.3f%%", columns - 1, 100 * (double)part / (double)whole);
}

static void put_unknown(struct weir_text *text, int columns)
{
	weir_text_printf(text, " %*s", columns, "unknown");
}

/* Of a zone: all that have made a request, and those that were blocked. */
static void put_keys(struct weir_text *text, const struct report *report, uint32_t place)
{
	const struct figures_zone *zone = figures_zone(report->figures, place);
	if (figures_know_keys(report->figures, place)) {
		put_count(text, zone->keys, 11);
		put_count(text, zone->blocked_keys, 10);
	} else {
		put_unknown(text, 11);
		put_unknown(text, 10);
	}
	if (figures_lack_keys(report->figures))
		put_unknown(text, 9);
	else
		put_share(text, zone->blocked_keys, zone->keys, 9);
}

static void put_zone(struct weir_text *text, const struct report *report, uint32_t place, struct columns columns)
{
	const struct figures_zone *zone = figures_zone(report->figures, place);
	const struct weir_zone *known = policies_zone(report->policies, place);
	put_name(text, report->policies->at[report->policies->owners[place]].name, columns.policy);
	put_name(text, known->name, columns.zone);
	put_count(text, zone->passed + zone->blocked, 12);
	put_count(text, zone->passed, 12);
	put_count(text, zone->blocked, 12);
	put_share(text, zone->blocked, zone->passed + zone->blocked, 9);
	put_count(text, zone->decisions, 10);
	put_keys(text, report, place);
	weir_text_puts(text, known->mode == WEIR_SHADOW ? "  (shadow)\n" : "\n");
}

static void put_zones(struct weir_text *text, const struct report *report)
{
	struct columns columns = name_columns(report);
	weir_text_printf(text, "\n  %-*s  %-*s %12s %12s %12s %9s %10s %11s %10s %9s\n", columns.policy, "policy",
	                 columns.zone, "zone", "requests", "passed", "blocked", "of them", "decisions", "keys", "blocked",
	                 "of them");
	for (uint32_t i = 0; i < report->policies->zone_count; i++)
		put_zone(text, report, i, columns);
}

static void put_difference(struct weir_text *text, const struct report *report, uint32_t number)
{
	const struct figures_pair *pair = &report->policies->pairs[number];
	const struct figures_difference *difference = figures_difference(report->figures, number);
	const char *base = report->policies->at[report->policies->owners[pair->base]].name;
	const char *other = report->policies->at[report->policies->owners[pair->zone]].name;
	weir_text_printf(text, "\n  %s against %s, zone %s: ", other, base,
	                 policies_zone(report->policies, pair->zone)->name);
	if (difference->requests == 0) {
		weir_text_puts(text, "the same verdicts\n");
		return;
	}
	if (figures_know_difference(report->figures, number)) {
		words_amount(text, difference->keys, "key");
		weir_text_puts(text, " and ");
	}
	words_amount(text, difference->requests, "request");
	weir_text_puts(text, " differ; where they begin to:\n");
	for (uint32_t i = 0; i < difference->example_count && i < EXAMPLES_SHOWN; i++) {
		const struct figures_example *example = &difference->examples[i];
		weir_text_puts(text, "    ");
		words_time_ms(text, example->at_ms);
		weir_text_puts(text, "  ");
		words_key(text, weir_text_span(&example->key));
		weir_text_printf(text, "  blocked by %s alone\n", example->base_blocks ? base : other);
	}
}

/* Zones of other policies that have no counterpart in the first. */
static void put_unpaired(struct weir_text *text, const struct report *report)
{
	const struct backtest_policies *policies = report->policies;
	uint32_t first_count = policies->at[0].config->policy->zone_count;
	for (uint32_t place = first_count; place < policies->zone_count; place++) {
		bool paired = false;
		for (uint32_t i = 0; i < policies->pair_count; i++)
			paired = paired || policies->pairs[i].zone == place;
		if (!paired)
			weir_text_printf(
				text, "\n  %s, zone %s: %s has no zone of this name with the same key to compare it with\n",
				policies->at[policies->owners[place]].name, policies_zone(policies, place)->name, policies->at[0].name);
	}
}

/* Logs out of order are judged as a live weir would have judged them, which may not be what was meant. */
static void put_late(struct weir_text *text, const struct report *report)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < report->policies->zone_count; i++)
		most = figures_zone(report->figures, i)->late > most ? figures_zone(report->figures, i)->late : most;
	if (most == 0)
		return;
	weir_text_puts(text, "\n  Events that are out of order came too late for some limit, up to ");
	words_count(text, most);
	weir_text_puts(text, report->from_log ? " of a zone.\n" : " of a zone: --sort judges in the order of time.\n");
}

void report_words(struct weir_text *text, const struct report *report)
{
	uint64_t malformed = record_counts_malformed(&report->counts);
	weir_text_puts(text, report->finished ? "weir backtest: " : "weir backtest, stopped by a signal after ");
	words_count(text, report->policies->count);
	weir_text_puts(text, report->policies->count == 1 ? " policy" : " policies");
	weir_text_puts(text, report->finished ? " on " : ", ");
	uint64_t amount = report->from_log ? report->counts.records : report->counts.lines;
	words_amount(text, amount, report->from_log ? "event" : "line");
	weir_text_puts(text, report->from_log ? " of the log" : "");
	if (report->seconds > 0) {
		weir_text_puts(text, " (");
		words_count(text, (uint64_t)((double)amount / report->seconds));
		weir_text_printf(text, " a second, %.2f s)", report->seconds);
	}
	weir_text_puts(text, "\n");
	if (malformed > 0) {
		weir_text_puts(text, "  malformed: ");
		words_amount(text, malformed, "line");
		weir_text_puts(text, "; weir validate shows the first of them\n");
	}
	put_zones(text, report);
	put_late(text, report);
	if (figures_lack_keys(report->figures))
		weir_text_puts(
			text,
			"\n  There are more keys than limiter.memory can hold: the numbers of keys are the least that "
			"they can be, or unknown.\n  Give --memory more for all of them. Requests and decisions are exact.\n");
	for (uint32_t i = 0; i < report->policies->pair_count; i++)
		put_difference(text, report, i);
	put_unpaired(text, report);
}
