/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy says and may not mean: a limit that another one keeps from ever
 * being reached, a block shorter than what the limit itself brings, windows
 * that cost kilobytes a user, turns that are no whole milliseconds.
 *
 * "Never" is shown by a bound: how many events at most pass one limit in any
 * window of another. Only where blocked events are not counted does a limit
 * hold what passed the others.
 */
#include "common/base/alloc.h"
#include "common/json/units.h"
#include "deploy/weir/validate/validate_report.h"

#include <stdio.h>
#include <string.h>

enum {
	COSTLY_BYTES = 1024,
	LOST_PERCENT = 1,
	LONG_MS = 100, /* a turn of it loses less */
	TRIED_MS = 100000,
};

/* Whether `limit` is never over where `other` is not; *most is what the other lets pass in its window. */
static bool is_never_reached(const struct weir_limit *limit, const struct weir_limit *other, int64_t *most)
{
	if (!limit->algorithm->is_window || other->algorithm->most_within == NULL)
		return false;
	*most = other->algorithm->most_within(other, limit);
	return *most <= limit->rate;
}

static void put_limit(struct weir_text *text, const struct weir_limit *limit)
{
	char window[24];
	weir_format_duration(limit->window_ms, window, sizeof window);
	weir_text_printf(text, "%lld in %s", (long long)limit->rate, window);
}

static void warn_limit(struct validate_report *report, uint32_t zone, uint32_t limit, struct weir_text *words)
{
	char path[64];
	snprintf(path, sizeof path, "zones[%u].limits[%u]", zone, limit);
	validate_warn(report, path, words);
}

static void check_reached(struct validate_report *report, uint32_t number)
{
	const struct weir_zone *zone = report->zones[number].zone;
	if (zone->count_all)
		return;
	for (uint32_t i = 0; i < zone->limit_count; i++)
		for (uint32_t j = 0; j < zone->limit_count; j++) {
			int64_t most, back;
			const struct weir_limit *limit = &zone->limits[i], *other = &zone->limits[j];
			/* Of two that say the same, the later one is too many. */
			if (i == j || !is_never_reached(limit, other, &most) || (i < j && is_never_reached(other, limit, &back)))
				continue;
			struct weir_text words = {0};
			weir_text_puts(&words, "can never be reached: limits[");
			weir_text_uint(&words, j);
			weir_text_puts(&words, "] (");
			put_limit(&words, other);
			weir_text_printf(&words, ") lets at most %lld pass in that time", (long long)most);
			warn_limit(report, number, i, &words);
			break;
		}
}

static void check_block(struct validate_report *report, uint32_t number)
{
	const struct weir_zone *zone = report->zones[number].zone;
	int64_t longest_ms = 0;
	char block[24], window[24], path[64];
	for (uint32_t i = 0; i < zone->limit_count; i++)
		if (zone->limits[i].algorithm->is_window && zone->limits[i].window_ms > longest_ms)
			longest_ms = zone->limits[i].window_ms;
	if (zone->block_for_ms == 0 || zone->block_for_ms >= longest_ms)
		return;
	struct weir_text words = {0};
	weir_text_printf(
		&words,
		"%s is shorter than the longest window, %s: a breach of that limit blocks until the next event would pass "
		"anyway, usually longer than this",
		weir_format_duration(zone->block_for_ms, block, sizeof block),
		weir_format_duration(longest_ms, window, sizeof window));
	snprintf(path, sizeof path, "zones[%u].block_for", number);
	validate_warn(report, path, &words);
}

/* The footprint if a limit were another one. */
static uint64_t full_with(const struct weir_zone *zone, uint32_t number, const struct weir_limit *limit)
{
	struct layout layout;
	struct weir_zone changed = *zone;
	changed.limits[number] = *limit;
	layout_init(&layout, 1, 1, &changed, NULL);
	return footprint_of(&layout).full;
}

static void check_limit_memory(struct validate_report *report, uint32_t number, uint32_t i, struct weir_text *member)
{
	const struct weir_zone *zone = report->zones[number].zone;
	struct weir_limit limit = zone->limits[i];
	if (limit.algorithm->economize == NULL || !limit.algorithm->economize(&limit, member))
		return;
	uint64_t full = report->zones[number].footprint.full, less = full_with(zone, i, &limit);
	if (full < less + COSTLY_BYTES)
		return;
	struct weir_text words = {0};
	weir_text_printf(&words, "keeps up to %lld times per user: %llu bytes for a user at the limit; with ",
	                 (long long)weir_limit_shape_of(&limit, zone->count_all).times.most, (unsigned long long)full);
	weir_text_append(&words, member->at, member->length);
	weir_text_printf(&words, " it would be %llu", (unsigned long long)less);
	warn_limit(report, number, i, &words);
}

static void check_memory(struct validate_report *report, uint32_t number)
{
	struct weir_text member = {0};
	for (uint32_t i = 0; i < report->zones[number].zone->limit_count; i++) {
		weir_text_clear(&member);
		check_limit_memory(report, number, i, &member);
	}
	weir_text_deinit(&member);
}

/* How many turns pass in TRIED_MS for one that asks in each millisecond, as time that nothing was free in is lost. */
static int64_t turns_that_pass(const struct weir_limit *limit)
{
	int64_t most = (limit->burst + 1) * limit->window_ms, ahead = most, pass = 0;
	for (int i = 0; i < TRIED_MS; i++) {
		ahead = ahead > limit->rate ? ahead - limit->rate : 0;
		int64_t now = (most - ahead) / limit->window_ms;
		ahead += now * limit->window_ms;
		pass += now;
	}
	return pass;
}

/* Times are whole milliseconds: without a burst of as many turns as one has, or of one, turns last longer than they say. */
static void check_turns(struct validate_report *report, uint32_t number)
{
	const struct weir_zone *zone = report->zones[number].zone;
	char window[24];
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		const struct weir_limit *limit = &zone->limits[i];
		int64_t burst = (limit->rate + limit->window_ms - 1) / limit->window_ms;
		if (strcmp(limit->algorithm->name, "gcra") != 0 || limit->burst >= burst ||
		    limit->window_ms / limit->rate >= LONG_MS)
			continue;
		int64_t passed = turns_that_pass(limit) * limit->window_ms, all = limit->rate * TRIED_MS;
		if ((all - passed) * 100 <= all * LOST_PERCENT)
			continue;
		struct weir_text words = {0};
		weir_text_printf(
			&words,
			"its turns end with whole milliseconds, and with a burst of %lld of %lld only %lld pass in %s; a "
			"burst of %lld evens that out",
			(long long)limit->burst, (long long)limit->rate, (long long)((passed + TRIED_MS / 2) / TRIED_MS),
			weir_format_duration(limit->window_ms, window, sizeof window), (long long)burst);
		warn_limit(report, number, i, &words);
	}
}

void validate_limits(struct validate_report *report)
{
	for (uint32_t i = 0; i < report->zone_count; i++) {
		check_reached(report, i);
		check_block(report, i);
		check_memory(report, i);
		check_turns(report, i);
	}
}
