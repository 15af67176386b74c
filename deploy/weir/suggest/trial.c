/* SPDX-License-Identifier: Apache-2.0 */
/* A zone is called by its number, and its id is one more: so the figures of its place are its own. */
#include "deploy/weir/suggest/trial.h"

#include "common/base/alloc.h"
#include "common/json/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MOST = 16, DURATION_BYTES = 32 };

static void add(struct trial *trial, enum trial_kind kind, uint32_t window, int64_t limit, uint64_t keys)
{
	trial->zones = weir_realloc(trial->zones, trial->count + (size_t)1, sizeof *trial->zones);
	trial->zones[trial->count++] = (struct trial_zone){.kind = kind, .window = window, .limit = limit, .keys = keys};
}

static int ascending(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
	return (a > b) - (a < b);
}

/* Powers of ten, what is suggested, the knee, and the smallest limit that blocks nobody. */
static void add_points(struct trial *trial, const struct peak_table *table, uint32_t window, int64_t alone)
{
	int64_t points[POINTS_MOST], highest = table->keys > 0 ? table->sorted[window][0] : 0, before = 0;
	size_t count = 0;
	for (int64_t power = 1; power < highest && power <= WEIR_RATE_MAX; power *= 10)
		points[count++] = power;
	points[count++] = alone;
	points[count++] = trial->limits[window];
	points[count++] = limit_at_knee(table, window);
	points[count++] = highest;
	qsort(points, count, sizeof *points, ascending);
	for (size_t i = 0; i < count; i++) {
		if (points[i] > before && points[i] <= WEIR_RATE_MAX)
			add(trial, TRIAL_ALONE, window, points[i], keys_above(table, window, points[i]));
		before = points[i];
	}
}

static void lower(const struct trial *trial, uint32_t window, int64_t limits[WEIR_ZONE_LIMITS_MAX])
{
	memcpy(limits, trial->limits, sizeof trial->limits);
	limits[window]--;
}

void trial_make(struct trial *trial, const struct peak_table *table, const int64_t *alone)
{
	int64_t limits[WEIR_ZONE_LIMITS_MAX];
	add(trial, TRIAL_TOGETHER, 0, 0, keys_above_any(table, trial->limits));
	for (uint32_t i = 0; i < trial->window_count; i++) {
		lower(trial, i, limits);
		if (limits[i] > 0)
			add(trial, TRIAL_LOWER, i, limits[i], keys_above_any(table, limits));
	}
	for (uint32_t i = 0; i < trial->window_count; i++)
		add_points(trial, table, i, alone[i]);
}

void trial_deinit(struct trial *trial)
{
	free(trial->zones);
}

static json_t *limit_json(const struct trial *trial, uint32_t window, int64_t limit)
{
	char duration[DURATION_BYTES];
	json_t *json = json_object();
	json_object_set_new(json, "algorithm", json_string(trial->algorithm));
	json_object_set_new(json, "rate", json_integer(limit));
	json_object_set_new(json, "window",
	                    json_string(weir_format_duration(trial->windows_ms[window], duration, sizeof duration)));
	return json;
}

json_t *trial_limits(const struct trial *trial, const int64_t *limits)
{
	json_t *all = json_array();
	for (uint32_t i = 0; i < trial->window_count; i++)
		json_array_append_new(all, limit_json(trial, i, limits[i]));
	return all;
}

static json_t *limits_of(const struct trial *trial, const struct trial_zone *zone)
{
	int64_t limits[WEIR_ZONE_LIMITS_MAX];
	if (zone->kind == TRIAL_ALONE) {
		json_t *one = json_array();
		json_array_append_new(one, limit_json(trial, zone->window, zone->limit));
		return one;
	}
	memcpy(limits, trial->limits, sizeof limits);
	if (zone->kind == TRIAL_LOWER)
		lower(trial, zone->window, limits);
	return trial_limits(trial, limits);
}

json_t *trial_zones(const struct trial *trial, const struct setting *setting)
{
	json_t *zones = json_array();
	char name[24];
	for (uint32_t i = 0; i < trial->count; i++) {
		snprintf(name, sizeof name, "%u", i);
		json_t *zone = setting_zone(setting, name, limits_of(trial, &trial->zones[i]));
		json_object_set_new(zone, "id", json_integer((json_int_t)i + 1));
		json_array_append_new(zones, zone);
	}
	return zones;
}

enum weir_status trial_end(struct trial *trial, const struct figures *figures, uint64_t requests,
                           struct weir_error *error)
{
	for (uint32_t i = 0; i < trial->count; i++) {
		const struct figures_zone *zone = figures_zone(figures, i);
		trial->zones[i].requests = zone->blocked;
		if (zone->passed + zone->blocked != requests)
			return weir_fail(error, WEIR_INVALID,
			                 "the logs have changed while they were read: they had %" PRIu64
			                 " requests at first, and %" PRIu64 " then. Name logs that nothing is written to",
			                 requests, zone->passed + zone->blocked);
		if (zone->blocked_keys != trial->zones[i].keys)
			return weir_fail(error, WEIR_INVALID,
			                 "the second reading blocks %" PRIu64 " keys where the first one gave %" PRIu64
			                 ": the logs have changed while they were read. Name logs that nothing is written to",
			                 zone->blocked_keys, trial->zones[i].keys);
	}
	return WEIR_OK;
}

const struct trial_zone *trial_find(const struct trial *trial, enum trial_kind kind, uint32_t window, int64_t limit)
{
	for (uint32_t i = 0; i < trial->count; i++) {
		const struct trial_zone *zone = &trial->zones[i];
		if (zone->kind == kind && zone->window == window && (limit == 0 || zone->limit == limit))
			return zone;
	}
	return NULL;
}
