/* SPDX-License-Identifier: Apache-2.0 */
/* A zone whose settings or terms change waits anew; one that was away, or was armed, too. */
#include "archiver/arming/waiting.h"

#include "common/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_zones(struct waiting_zone *zones, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(zones[i].settings);
	free(zones);
}

const struct waiting_zone *waiting_find(const struct waiting *waiting, uint32_t id)
{
	for (size_t i = 0; i < waiting->count; i++)
		if (waiting->zones[i].id == id)
			return &waiting->zones[i];
	return NULL;
}

/* Keeps what is known of one that goes on waiting. */
static void fill(const struct waiting *waiting, const struct weir_zone *zone, uint64_t version,
                 struct waiting_zone *made)
{
	const struct waiting_zone *was = waiting_find(waiting, zone->id);
	char *settings = weir_zone_settings(zone);
	if (was != NULL && strcmp(was->settings, settings) == 0 && was->terms.share_ppm == zone->arming.share_ppm &&
	    was->terms.span_ms == zone->arming.span_ms)
		*made = *was;
	else
		*made = (struct waiting_zone){.id = zone->id,
		                              .terms = {.share_ppm = zone->arming.share_ppm, .span_ms = zone->arming.span_ms},
		                              .version = version};
	made->settings = settings;
	snprintf(made->name, sizeof made->name, "%s", zone->name);
}

void waiting_take(struct waiting *waiting, const struct weir_policy *policy)
{
	struct waiting_zone *zones = weir_alloc(policy->zone_count + 1u, sizeof *zones);
	size_t count = 0;
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (weir_zone_waits(&policy->zones[i]))
			fill(waiting, &policy->zones[i], policy->version, &zones[count++]);
	free_zones(waiting->zones, waiting->count);
	waiting->zones = zones;
	waiting->count = count;
}

void waiting_deinit(struct waiting *waiting)
{
	free_zones(waiting->zones, waiting->count);
	waiting->zones = NULL;
	waiting->count = 0;
}
