/* SPDX-License-Identifier: Apache-2.0 */
/* Segments come one at a time: what is read is in memory twice only for a moment. */
#include "deploy/weir/inspect/state_read.h"

#include "common/base/alloc.h"
#include "limiter/checkpoint/checkpoint.h"

#include <stdlib.h>

enum { TRIES = 5 };

struct segment_list {
	uint32_t numbers[SHARD_SEGMENTS];
	size_t count;
};

static void list_segment(void *context, uint32_t segment, uint32_t deltas, uint64_t base_bytes, uint64_t delta_bytes)
{
	struct segment_list *list = context;
	(void)deltas;
	(void)base_bytes;
	(void)delta_bytes;
	if (segment < SHARD_SEGMENTS && list->count < SHARD_SEGMENTS)
		list->numbers[list->count++] = segment;
}

static enum weir_status load_segments(const struct state_read *read, const struct weir_partition_state *state,
                                      struct lane *lane, struct weir_error *error)
{
	struct weir_store *store = read->store;
	struct checkpoint_blobs blobs = {0};
	struct segment_list list = {.count = 0};
	enum weir_status status =
		store->ops->list_segments(store, state->partition, state->epoch, state->checkpoint, list_segment, &list, error);
	for (size_t i = 0; status == WEIR_OK && i < list.count; i++) {
		if (read->only != NULL && !state_keys_in_segment(read->only, state->partition, list.numbers[i]))
			continue;
		status = checkpoint_read(store, state->partition, state->epoch, state->checkpoint, &list.numbers[i], 1, &blobs,
		                         error);
		if (status == WEIR_OK)
			status = checkpoint_load(lane, &list.numbers[i], 1, &blobs, error);
		checkpoint_blobs_deinit(&blobs);
	}
	return status;
}

struct giving {
	const struct state_read *read;
	uint32_t partition;
};

static void give(void *context, const struct shard_bucket *bucket)
{
	const struct giving *giving = context;
	giving->read->each(giving->read->context, giving->partition, bucket);
}

static enum weir_status read_lane(const struct state_read *read, const struct weir_partition_state *state,
                                  struct weir_error *error)
{
	struct giving giving = {.read = read, .partition = state->partition};
	struct shard_options options = {.partition = state->partition,
	                                .partitions = read->partitions,
	                                .seed = read->seed,
	                                .lateness_ms = read->lateness_ms};
	if (policy_registry_compiled(read->registry, state->policy_version) == NULL)
		return weir_fail(
			error, WEIR_INVALID,
			"partition %u was saved under policy %llu, which the store does not have (runbook: store-failed-over)",
			state->partition, (unsigned long long)state->policy_version);
	struct lane *lane = lane_new(&options, read->registry, state->policy_version);
	enum weir_status status = lane_restore(lane, state, error);
	if (status == WEIR_OK && read->each != NULL)
		status = load_segments(read, state, lane, error);
	if (status == WEIR_OK && read->each != NULL)
		shard_each(lane_shard(lane), give, &giving);
	if (status == WEIR_OK && read->overrides != NULL)
		read->overrides(read->context, state->partition, shard_overrides(lane_shard(lane)));
	lane_free(lane);
	return status;
}

enum weir_status state_read_partition(const struct state_read *read, uint32_t partition, struct weir_error *error)
{
	struct weir_partition_state state;
	struct weir_store *store = read->store;
	enum weir_status status = WEIR_FENCED;
	for (int i = 0; i < TRIES && status == WEIR_FENCED; i++) {
		status = store->ops->inspect(store, WEIR_STORE_ROLE_LIMITER, partition, &state, error);
		if (status != WEIR_OK || state.checkpoint == 0)
			return status;
		/* What the store lends is good until its next call. */
		char *extra = weir_copy(state.extra.at, state.extra.length);
		state.extra.at = extra;
		status = read_lane(read, &state, error);
		free(extra);
	}
	return status;
}
