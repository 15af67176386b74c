/* SPDX-License-Identifier: Apache-2.0 */
/* Zones are compared as canonical text, in which files and defaults are filled in. */
#include "deploy/weir/backtest/log_zones.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

static bool has_done(const json_t *zone, const json_t *done)
{
	const json_t *limits = json_object_get(zone, "limits");
	for (size_t i = 0; i < json_array_size(limits); i++)
		if (json_equal(json_object_get(json_array_get(limits, i), "done"), done))
			return true;
	return false;
}

/* Whether each "done" of a zone's queues is one of the other's, too. */
static bool done_are_in(const json_t *zone, const json_t *other)
{
	const json_t *limits = json_object_get(zone, "limits");
	for (size_t i = 0; i < json_array_size(limits); i++) {
		const json_t *done = json_object_get(json_array_get(limits, i), "done");
		if (done != NULL && !has_done(other, done))
			return false;
	}
	return true;
}

static bool is_same(const json_t *a, const json_t *b, const char *member)
{
	const json_t *left = json_object_get(a, member), *right = json_object_get(b, member);
	return left == right || json_equal(left, right);
}

static bool carries(const json_t *logged, const json_t *zone)
{
	static const char *const members[] = {"key", "match", "exempt", "sources", NULL};
	for (int i = 0; members[i] != NULL; i++)
		if (!is_same(logged, zone, members[i]))
			return false;
	return done_are_in(logged, zone) && done_are_in(zone, logged);
}

static void add_carried(struct log_zones *zones, const json_t *logged, const struct backtest_policy *policy)
{
	json_t *own = json_loads(policy->config->policy->text, 0, NULL);
	const json_t *list = json_object_get(own, "zones");
	for (uint32_t i = 0; i < zones->zone_count; i++)
		for (uint32_t k = 0; k < json_array_size(list); k++)
			if (carries(json_array_get(logged, i), json_array_get(list, k))) {
				zones->places[i][zones->counts[i]++] = policy->first + k;
				zones->lacks[policy->first + k] = false;
			}
	json_decref(own);
}

void log_zones_init(struct log_zones *zones, const struct weir_policy *policy, const struct backtest_policies *policies)
{
	uint32_t count = policy->zone_count;
	*zones = (struct log_zones){.version = policy->version,
	                            .zone_count = count,
	                            .ids = weir_alloc(count, sizeof *zones->ids),
	                            .places = weir_alloc(count, sizeof *zones->places),
	                            .counts = weir_alloc(count, sizeof *zones->counts),
	                            .lacks = weir_alloc(policies->zone_count, sizeof *zones->lacks)};
	memset(zones->lacks, true, policies->zone_count * sizeof *zones->lacks);
	for (uint32_t i = 0; i < count; i++) {
		zones->ids[i] = policy->zones[i].id;
		zones->places[i] = weir_alloc(policies->zone_count, sizeof *zones->places[i]);
	}
	json_t *root = json_loads(policy->text, 0, NULL);
	for (uint32_t i = 0; i < policies->count; i++)
		add_carried(zones, json_object_get(root, "zones"), &policies->at[i]);
	json_decref(root);
}

void log_zones_deinit(struct log_zones *zones)
{
	for (uint32_t i = 0; i < zones->zone_count; i++)
		free(zones->places[i]);
	free(zones->places);
	free(zones->ids);
	free(zones->counts);
	free(zones->lacks);
}

/* Adds a zone in the order of ids. One that is there already stays as it is: two of the log's zones carry it alike. */
static uint32_t insert(struct weir_frame_zone *carried, uint32_t count, uint32_t id, bool done)
{
	uint32_t at = count;
	while (at > 0 && carried[at - 1].id >= id)
		at--;
	if (at < count && carried[at].id == id)
		return count;
	memmove(&carried[at + 1], &carried[at], (count - at) * sizeof *carried);
	carried[at] = (struct weir_frame_zone){.id = id, .done = done};
	return count + 1;
}

uint32_t log_zones_carried(const struct log_zones *zones, const struct weir_frame_zone_set *set,
                           struct weir_frame_zone *carried)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < set->count; i++)
		for (uint32_t k = 0; k < zones->zone_count; k++)
			for (uint32_t p = 0; zones->ids[k] == set->zones[i].id && p < zones->counts[k]; p++)
				count = insert(carried, count, zones->places[k][p] + 1, set->zones[i].done);
	return count;
}
