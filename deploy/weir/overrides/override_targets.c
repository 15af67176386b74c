/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks are read first and closed, as the commands go to another topic. */
#include "deploy/weir/overrides/override_targets.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "deploy/weir/overrides/list_blocks.h"
#include "deploy/weir/overrides/override_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct override_target {
	size_t zone_at, key_at; /* in the text */
	uint32_t zone_length, key_length;
};

static void take_blocks(struct override_targets *targets, const struct list_blocks *blocks)
{
	targets->all = weir_alloc(blocks->count, sizeof *targets->all);
	for (uint32_t i = 0; i < blocks->count; i++) {
		struct weir_span zone = block_entry_zone(blocks->entries[i]), key = block_entry_key(blocks->entries[i]);
		struct override_target *target = &targets->all[targets->count++];
		*target = (struct override_target){.zone_at = targets->keys.length,
		                                   .key_at = targets->keys.length + zone.length,
		                                   .zone_length = zone.length,
		                                   .key_length = key.length};
		weir_text_append(&targets->keys, zone.at, zone.length);
		weir_text_append(&targets->keys, key.at, key.length);
	}
	targets->unread = blocks->unread;
	targets->unnamed = blocks->unnamed_count + block_table_left_out(blocks->table);
}

enum weir_status override_targets_read(const struct override_options *options, struct override_targets *targets,
                                       struct weir_error *error)
{
	struct backend backend = {.topic = WEIR_TOPIC_DECISIONS};
	struct list_filter filter = {.zone = options->zone};
	struct list_blocks blocks;
	*targets = (struct override_targets){0};
	enum weir_status status =
		backend_open(&backend, options->line->name, options->config_path, options->state_path, BACKEND_TOPIC, error);
	if (status == WEIR_OK) {
		status = list_blocks_check_zone(&backend, filter.zone, error);
		if (status == WEIR_OK) {
			unjudged_look(&backend, &targets->unjudged);
			status = list_blocks_read(&backend, &filter, weir_wall_ms(), &blocks, error);
			if (status == WEIR_OK)
				take_blocks(targets, &blocks);
			list_blocks_deinit(&blocks);
		}
	}
	backend_close(&backend);
	return status;
}

void override_targets_deinit(struct override_targets *targets)
{
	weir_text_deinit(&targets->keys);
	free(targets->all);
	*targets = (struct override_targets){0};
}

bool override_targets_take(const struct override_targets *targets, size_t place, const struct weir_policy *policy,
                           struct override_command *command)
{
	const struct override_target *target = &targets->all[place];
	if (target->zone_length >= sizeof command->zone || target->key_length > sizeof command->key)
		return false;
	memcpy(command->zone, targets->keys.at + target->zone_at, target->zone_length);
	command->zone[target->zone_length] = '\0';
	memcpy(command->key, targets->keys.at + target->key_at, target->key_length);
	command->key_length = target->key_length;
	const struct weir_zone *zone = weir_policy_zone_named(policy, weir_span_of(command->zone));
	if (zone != NULL)
		command->value_count = zone->key_count;
	if (zone != NULL)
		override_key_find_scope(command, zone);
	return zone != NULL;
}
