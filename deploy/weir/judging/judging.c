/* SPDX-License-Identifier: Apache-2.0 */
/* Each record is a frame of its own in its partitions, so that what it decides is known before the next one is taken. */
#include "deploy/weir/judging/judging.h"

#include "collector/send/framer.h"
#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "deploy/weir/decision_events/decision_events.h"

#include <stdlib.h>

struct judging {
	struct judging_options options;
	struct decision_events *events; /* NULL: nobody counts decisions */
	struct framer *framer;
	struct lane **lanes; /* by partition; NULL: nothing was of it yet */
	uint64_t records;
	enum weir_status status; /* of the newest record */
	struct weir_error *error;
};

struct lane *judging_lane(struct judging *judging, uint32_t partition)
{
	const struct judging_options *options = &judging->options;
	struct shard_options shard = {
		.partition = partition, .partitions = options->partitions, .lateness_ms = -1, .count_events = true};
	if (judging->lanes[partition] == NULL)
		judging->lanes[partition] = lane_new(&shard, options->registry, options->version);
	return judging->lanes[partition];
}

/* Nothing is ever evicted, so nothing is waited for. */
static enum weir_status offer(struct judging *judging, uint32_t partition, struct weir_span message,
                              struct weir_error *error)
{
	struct lane *lane = judging_lane(judging, partition);
	struct lane_result result;
	enum weir_status status = lane_offer(lane, message, lane_next_offset(lane), 0, &result, error);
	if (status != WEIR_OK)
		return status;
	for (uint32_t i = 0; judging->events != NULL && i < result.judged.decision_count; i++)
		decision_events_add(judging->events, partition, &result.judged.decisions[i]);
	if (judging->options.each != NULL)
		judging->options.each(judging->options.context, lane, &result);
	return WEIR_OK;
}

/* A framer_emit. */
static void judge_frame(void *context, uint32_t partition, struct weir_span frame)
{
	struct judging *judging = context;
	if (judging->status == WEIR_OK)
		judging->status = offer(judging, partition, frame, judging->error);
}

enum weir_status judging_new(const struct judging_options *options, struct judging **out, struct weir_error *error)
{
	struct judging *judging = weir_alloc(1, sizeof *judging);
	judging->options = *options;
	judging->framer = framer_new(options->partitions, judge_frame, judging);
	judging->lanes = weir_alloc(options->partitions, sizeof(struct lane *));
	const struct weir_policy *policy = policy_registry_policy(options->registry, options->version);
	enum weir_status status = decision_events_new(options->config, policy, options->fields, &judging->events, error);
	if (status != WEIR_OK) {
		judging_free(judging);
		return status;
	}
	*out = judging;
	return WEIR_OK;
}

void judging_free(struct judging *judging)
{
	if (judging == NULL)
		return;
	framer_free(judging->framer);
	for (uint32_t i = 0; i < judging->options.partitions; i++)
		lane_free(judging->lanes[i]);
	free(judging->lanes);
	decision_events_free(judging->events);
	free(judging);
}

bool judging_follows_decisions(const struct judging *judging)
{
	return judging->events != NULL;
}

enum weir_status judging_take(struct judging *judging, const struct weir_matched *matched,
                              const struct weir_record *record, struct weir_error *error)
{
	static const uint8_t merged_source[WEIR_SOURCE_ID_BYTES] = {0};
	judging->records++;
	if (matched->event_count == 0)
		return WEIR_OK;
	judging->status = WEIR_OK;
	judging->error = error;
	framer_add(judging->framer, merged_source, false, judging->options.version, matched, record, judging->records, 0);
	framer_flush(judging->framer, 0);
	return judging->status;
}

bool judging_next_decision(struct judging *judging, struct weir_record *record)
{
	return judging->events != NULL && decision_events_next(judging->events, record);
}

enum weir_status judging_command(struct judging *judging, const struct override_command *command, int64_t at_ms,
                                 struct weir_error *error)
{
	size_t length;
	uint32_t partitions = judging->options.partitions;
	char *message = override_command_message(command, judging->options.version, at_ms, &length);
	struct weir_span span = {.at = message, .length = (uint32_t)length};
	uint32_t own = weir_partition(weir_slot(override_key(command)), partitions);
	bool one = command->scope == OVERRIDE_OF_KEY;
	enum weir_status status = WEIR_OK;
	for (uint32_t p = one ? own : 0; status == WEIR_OK && p < (one ? own + 1 : partitions); p++)
		status = offer(judging, p, span, error);
	free(message);
	return status;
}
