/*
 * Compiles policies into what a shard works by. A zone is looked up once for
 * each zone set of a frame, so a sorted array serves.
 */
#include "limiter/rules.h"

#include "common/alloc.h"

#include <stdlib.h>

struct rules {
	uint64_t version;
	struct zone_rules *zones; /* in the policy's order */
	struct zone_rules **by_id;
	uint32_t zone_count;
};

static int compare_ids(const void *a, const void *b)
{
	const struct zone_rules *const *left = a, *const *right = b;
	return (*left)->zone->id < (*right)->zone->id ? -1 : (*left)->zone->id > (*right)->zone->id;
}

struct rules *rules_new(const struct weir_policy *const *policies, size_t count)
{
	const struct weir_policy *newest = policies[count - 1];
	struct rules *rules = weir_alloc(1, sizeof *rules);
	rules->version = newest->version;
	rules->zone_count = newest->zone_count;
	rules->zones = weir_alloc(newest->zone_count, sizeof *rules->zones);
	rules->by_id = weir_alloc(newest->zone_count, sizeof(struct zone_rules *));
	for (uint32_t i = 0; i < newest->zone_count; i++) {
		rules->zones[i] = (struct zone_rules){.zone = &newest->zones[i], .order = i};
		rules->by_id[i] = &rules->zones[i];
	}
	qsort(rules->by_id, rules->zone_count, sizeof(struct zone_rules *), compare_ids);
	return rules;
}

void rules_free(struct rules *rules)
{
	if (rules == NULL)
		return;
	free(rules->zones);
	free(rules->by_id);
	free(rules);
}

uint64_t rules_version(const struct rules *rules)
{
	return rules->version;
}

uint32_t rules_zone_count(const struct rules *rules)
{
	return rules->zone_count;
}

const struct zone_rules *rules_zone_at(const struct rules *rules, uint32_t order)
{
	return &rules->zones[order];
}

const struct zone_rules *rules_zone(const struct rules *rules, uint32_t id)
{
	uint32_t low = 0, high = rules->zone_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint32_t found = rules->by_id[middle]->zone->id;
		if (found == id)
			return rules->by_id[middle];
		if (found < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct layout *rules_layout(const struct rules *rules, uint32_t id)
{
	(void)rules;
	(void)id;
	return NULL;
}
