/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over zones and overrides: policies change a few times a day. */
#include "limiter/lane/policy_switch.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

void policy_switch_deinit(struct policy_switch *change)
{
	free(change->lifted);
	free(change->blocks);
	*change = (struct policy_switch){0};
}

/* Lists the zones to lift: those removed, and those no longer enforced, of which gateways may still have blocks. */
static void find_lifted(struct policy_switch *change, const struct weir_policy *before, const struct weir_policy *after)
{
	change->lifted = weir_alloc(before->zone_count, sizeof(const struct weir_zone *));
	for (uint32_t i = 0; i < before->zone_count; i++) {
		const struct weir_zone *old = &before->zones[i], *zone = weir_policy_zone(after, old->id);
		if (zone == NULL || (old->mode != WEIR_SHADOW && zone->mode == WEIR_SHADOW))
			change->lifted[change->lifted_count++] = old;
	}
}

static int compare_blocks(const void *a, const void *b)
{
	const struct shard_override_decision *left = a, *right = b;
	if (left->zone != right->zone) /* both point into one array */
		return left->zone < right->zone ? -1 : 1;
	uint32_t common = left->key.length < right->key.length ? left->key.length : right->key.length;
	int order = memcmp(left->key.at, right->key.at, common);
	return order != 0 ? order : (left->key.length > right->key.length) - (left->key.length < right->key.length);
}

static void find_blocks(struct policy_switch *change, const struct weir_policy *before, const struct weir_policy *after,
                        const struct overrides *overrides, int64_t at_ms)
{
	change->blocks = weir_alloc(overrides->count, sizeof *change->blocks);
	for (uint32_t i = 0; i < overrides->count; i++) {
		const struct override *override = overrides->list[i];
		const struct weir_zone *old = weir_policy_zone(before, override->zone_id);
		const struct weir_zone *zone = weir_policy_zone(after, override->zone_id);
		if (old == NULL || old->mode != WEIR_SHADOW || zone == NULL || zone->mode == WEIR_SHADOW ||
		    !override->block.active || override->block.until_ms <= overrides->clock_ms ||
		    !overrides_publish(overrides, override->scope, override->key))
			continue;
		change->blocks[change->block_count++] = (struct shard_override_decision){.zone = zone,
		                                                                         .key = override->key,
		                                                                         .at_ms = at_ms,
		                                                                         .until_ms = override->block.until_ms,
		                                                                         .by = override->block.by,
		                                                                         .reason = override->block.reason};
	}
	qsort(change->blocks, change->block_count, sizeof *change->blocks, compare_blocks);
}

void policy_switch_find(struct policy_switch *change, const struct weir_policy *before, const struct weir_policy *after,
                        const struct overrides *overrides, int64_t at_ms)
{
	policy_switch_deinit(change);
	find_lifted(change, before, after);
	find_blocks(change, before, after, overrides, at_ms);
}
