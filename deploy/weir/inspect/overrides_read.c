/* SPDX-License-Identifier: Apache-2.0 */
/* The limiter's own lane is given the commands and policies alone: no event changes what operators hold. */
#include "deploy/weir/inspect/overrides_read.h"

#include "common/base/clock.h"
#include "common/base/stop.h"
#include "common/frame/frame.h"
#include "deploy/weir/inspect/topic_read.h"
#include "limiter/lane/lane.h"

#include <inttypes.h>

static bool is_command_or_policy(struct weir_span payload)
{
	/* The kind is the fourth byte: no other message need be decoded. */
	return payload.length >= 4 && (payload.at[3] == WEIR_FRAME_COMMAND || payload.at[3] == WEIR_FRAME_POLICY);
}

/* What cannot be applied was refused at its place by the limiter, too. */
static enum weir_status take(struct lane *lane, const struct weir_message *message, struct weir_error *error)
{
	struct lane_result result;
	if (!is_command_or_policy(message->payload))
		return WEIR_OK;
	enum weir_status status = lane_offer(lane, message->payload, message->offset, message->appended_ms, &result, error);
	if (status == WEIR_AGAIN)
		return weir_fail(error, WEIR_INVALID, "a policy is in the log, but not known here");
	return status == WEIR_NEWER ? WEIR_INVALID : WEIR_OK;
}

static enum weir_status read_log(const struct overrides_read *read, uint32_t partition, uint64_t from,
                                 struct lane *lane, struct weir_error *error)
{
	struct topic_read *topic;
	struct weir_message message;
	enum weir_status status =
		topic_read_open(read->bus, read->directory, WEIR_TOPIC_EVENTS, partition, from, &topic, error);
	if (status != WEIR_OK)
		return status;
	if (topic_read_first(topic, partition) > from)
		status = weir_fail(error, WEIR_INVALID,
		                   "the log of partition %u begins at offset %" PRIu64 ", behind its checkpoint", partition,
		                   topic_read_first(topic, partition));
	while (status == WEIR_OK && (status = topic_read_next(topic, &message, error)) == WEIR_OK) {
		status = take(lane, &message, error);
		if (status == WEIR_OK && (weir_monotonic_ms() >= read->until_ms || atomic_load(weir_stop_flag())))
			status = weir_fail(error, WEIR_IO, "reading the log of partition %u takes too long", partition);
	}
	topic_read_free(topic);
	if (status == WEIR_NEWER)
		status = WEIR_INVALID;
	return status == WEIR_END ? WEIR_OK : status;
}

enum weir_status overrides_read(const struct overrides_read *read, uint32_t partition, struct weir_error *error)
{
	struct weir_partition_state state = {0};
	struct shard_options options = {
		.partition = partition, .partitions = read->partitions, .lateness_ms = read->lateness_ms};
	enum weir_status status = read->store->ops->inspect(read->store, WEIR_STORE_ROLE_LIMITER, partition, &state, error);
	if (status != WEIR_OK)
		return status;
	uint64_t version = state.checkpoint > 0 ? state.policy_version : 1;
	if (policy_registry_compiled(read->registry, version) == NULL)
		return weir_fail(error, WEIR_INVALID, "policy %" PRIu64 " is not known here", version);
	struct lane *lane = lane_new(&options, read->registry, version);
	status = lane_restore(lane, &state, error);
	if (status == WEIR_OK)
		status = read_log(read, partition, state.checkpoint > 0 ? state.next_offset : 0, lane, error);
	if (status == WEIR_OK)
		read->overrides(read->context, shard_overrides(lane_shard(lane)));
	lane_free(lane);
	return status;
}
