/*
 * What a policy says and may not mean: a limit that another one keeps from ever
 * being reached, a block shorter than what the limit itself brings, windows
 * that cost kilobytes a user.
 *
 * "Never" is shown by a bound: how many events at most pass one limit in any
 * window of another. Only where blocked events are not counted does a limit
 * hold what passed the others.
 */
#include "common/base/alloc.h"
#include "common/json/units.h"
#include "deploy/weir/validate/validate_report.h"

#include <stdio.h>

enum { COSTLY_BYTES = 1024, PRECISION_PARTS = 60 };

/* The most that a limit lets pass in any span of time: events of cost 1. */
static int64_t most_in(const struct weir_limit *limit, int64_t span_ms)
{
	if (limit->algorithm == WEIR_QUEUE) /* lets any number pass, one after another */
		return INT64_MAX;
	int64_t windows = (span_ms + limit->window_ms - 1) / limit->window_ms, most;
	bool over = false;
	switch (limit->algorithm) {
	case WEIR_SLIDING_WINDOW:
	case WEIR_UNIFORM: over = __builtin_mul_overflow(windows, limit->rate, &most); break;
	case WEIR_FIXED_WINDOW: /* a span may begin and end within windows */
		over = __builtin_mul_overflow(windows + 1, limit->rate, &most);
		break;
	case WEIR_TOKEN_BUCKET:
	case WEIR_GCRA: {
		__int128 refilled = (__int128)span_ms * limit->rate / limit->window_ms + 1;
		most = refilled > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)refilled;
		most += limit->burst + 1;
		over = limit->penalize;
		break;
	}
	default: over = true; break;
	}
	return over ? INT64_MAX : most;
}

/* A fixed window made of whole windows of another that begin together. */
static bool is_made_of(const struct weir_limit *whole, const struct weir_limit *part)
{
	return whole->algorithm == WEIR_FIXED_WINDOW && part->algorithm == WEIR_FIXED_WINDOW &&
	       whole->window_ms % part->window_ms == 0 && (whole->offset_ms - part->offset_ms) % part->window_ms == 0;
}

static bool is_window(const struct weir_limit *limit)
{
	return limit->algorithm == WEIR_SLIDING_WINDOW || limit->algorithm == WEIR_FIXED_WINDOW ||
	       limit->algorithm == WEIR_UNIFORM;
}

/* Whether `limit` is never over where `other` is not; *most is what the other lets pass in its window. */
static bool is_never_reached(const struct weir_limit *limit, const struct weir_limit *other, int64_t *most)
{
	*most = most_in(other, limit->window_ms);
	if (is_made_of(limit, other))
		*most -= other->rate;
	return is_window(limit) && *most <= limit->rate;
}

static void put_limit(struct weir_text *text, const struct weir_limit *limit)
{
	char window[24];
	weir_format_duration(weir_limit_window_ms(limit), window, sizeof window);
	weir_text_printf(text, "%lld in %s", (long long)weir_limit_rate(limit), window);
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
			weir_text_printf(&words, ") lets at most %lld pass in its time", (long long)most);
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
		if (is_window(&zone->limits[i]) && zone->limits[i].window_ms > longest_ms)
			longest_ms = zone->limits[i].window_ms;
	if (zone->block_for_ms == 0 || zone->block_for_ms >= longest_ms)
		return;
	struct weir_text words = {0};
	weir_text_printf(&words,
	                 "%s is shorter than the longest window, %s: a breach of that limit blocks until it would pass "
	                 "again, mostly longer than this",
	                 weir_format_duration(zone->block_for_ms, block, sizeof block),
	                 weir_format_duration(longest_ms, window, sizeof window));
	snprintf(path, sizeof path, "zones[%u].block_for", number);
	validate_warn(report, path, &words);
}

/* The footprint if a sliding window had a precision. */
static uint64_t full_with_precision(const struct weir_zone *zone, uint32_t limit, int64_t precision_ms)
{
	struct layout layout;
	struct weir_zone changed = *zone;
	changed.limits[limit].precision_ms = precision_ms;
	layout_init(&layout, 1, 1, &changed, NULL);
	return footprint_of(&layout).full;
}

/* A window's sixtieth, as people write it. */
static int64_t round_precision(int64_t window_ms)
{
	static const int64_t steps[] = {86400000, 21600000, 3600000, 600000, 60000, 10000, 1000, 100, 10, 1};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
		if (steps[i] <= window_ms / PRECISION_PARTS)
			return steps[i];
	return 1;
}

static void check_memory(struct validate_report *report, uint32_t number)
{
	const struct weir_zone *zone = report->zones[number].zone;
	uint64_t full = report->zones[number].footprint.full;
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		const struct weir_limit *limit = &zone->limits[i];
		int64_t precision_ms = round_precision(limit->window_ms);
		if (limit->algorithm != WEIR_SLIDING_WINDOW || limit->precision_ms >= precision_ms)
			continue;
		uint64_t less = full_with_precision(zone, i, precision_ms);
		if (full < less + COSTLY_BYTES)
			continue;
		char precision[24];
		struct weir_text words = {0};
		weir_text_printf(&words,
		                 "keeps up to %lld times a user: %llu bytes for one at the limit; with \"precision\": \"%s\" "
		                 "it would be %llu",
		                 (long long)limit->rate, (unsigned long long)full,
		                 weir_format_duration(precision_ms, precision, sizeof precision), (unsigned long long)less);
		warn_limit(report, number, i, &words);
	}
}

void validate_limits(struct validate_report *report)
{
	for (uint32_t i = 0; i < report->zone_count; i++) {
		check_reached(report, i);
		check_block(report, i);
		check_memory(report, i);
	}
}
