/* SPDX-License-Identifier: Apache-2.0 */
/* Zones are compared as texts, in which files and defaults are filled in. */
#include "deploy/weir/backtest/log_zones.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

static void add_carried(struct log_zones *zones, const struct weir_zone *logged, uint32_t number,
                        const struct backtest_policies *policies)
{
	char *text = weir_zone_records_text(logged);
	for (uint32_t place = 0; place < policies->zone_count; place++) {
		char *own = weir_zone_records_text(policies_zone(policies, place));
		if (strcmp(own, text) == 0) {
			zones->places[number][zones->counts[number]++] = place;
			zones->lacks[place] = false;
		}
		free(own);
	}
	free(text);
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
	for (uint32_t i = 0; i < count; i++)
		add_carried(zones, &policy->zones[i], i, policies);
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
