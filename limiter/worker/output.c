/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages in their final form. Each is sent for the partition that it belongs to,
 * whose checkpoints wait for its acknowledgement; the topic's partition may be
 * another one, as all dead letters go to partition 0.
 */
#include "limiter/worker/output.h"

#include "common/base/clock.h"
#include "common/frame/frame.h"
#include "common/json/json_writer.h"
#include "limiter/lane/decision.h"
#include "limiter/lane/policy_switch.h"
#include "limiter/overrides/overrides.h"

enum { DEAD_LETTER_MAX_BYTES = 1024 };

static struct worker_stats *stats_of(const struct output *output)
{
	return &output->publisher->core->stats;
}

void output_init(struct output *output, struct publisher *publisher)
{
	*output = (struct output){.publisher = publisher};
}

void output_deinit(struct output *output)
{
	weir_text_deinit(&output->text);
	weir_text_deinit(&output->key);
	weir_text_deinit(&output->judged);
}

static struct weir_span span_of_text(const struct weir_text *text)
{
	return (struct weir_span){.at = text->at, .length = (uint32_t)text->length};
}

/* ---- decisions ---- */

/* @param line_ms  the time of the line that breached a limit; 0: none did */
static void send_decision(struct output *output, uint32_t partition, const struct weir_zone *zone, struct weir_span key,
                          int64_t line_ms)
{
	weir_text_clear(&output->key);
	decision_message_key(&output->key, zone, key);
	publisher_send(output->publisher, partition, zone->mode == WEIR_SHADOW ? WEIR_TOPIC_SHADOW : WEIR_TOPIC_DECISIONS,
	               partition, span_of_text(&output->key), span_of_text(&output->text), line_ms);
	weir_counter_add(&stats_of(output)->decisions, 1);
}

static void send_override(struct output *output, uint32_t partition, uint64_t offset, uint32_t index,
                          const struct shard_override_decision *decision)
{
	weir_text_clear(&output->text);
	decision_override_json(&output->text, partition, offset, index, decision);
	send_decision(output, partition, decision->zone, decision->key, 0);
}

/* Publishes what a policy switch results in. */
static void send_change(struct output *output, uint32_t partition, const struct lane_result *result)
{
	const struct policy_switch *change = result->change;
	for (uint32_t i = 0; i < change->lifted_count; i++) {
		weir_text_clear(&output->text);
		decision_lift_json(&output->text, partition, result->number, i, change->lifted[i], result->at_ms);
		send_decision(output, partition, change->lifted[i], (struct weir_span){.at = "", .length = 0}, 0);
	}
	for (uint32_t i = 0; i < change->block_count; i++)
		send_override(output, partition, result->number, change->lifted_count + i, &change->blocks[i]);
}

void output_result(struct output *output, uint32_t partition, const struct lane_result *result,
                   struct weir_span message)
{
	for (uint32_t i = 0; i < result->judged.decision_count; i++) {
		const struct shard_decision *decision = &result->judged.decisions[i];
		weir_text_clear(&output->text);
		decision_json(&output->text, partition, decision);
		send_decision(output, partition, decision->zone->zone, decision->key, decision->at_ms);
		/* A frame that nobody sent, as in a run that reads to the end, is of no time. */
		bool is_block = decision->kind == BUCKET_BLOCKS;
		weir_counter_add(&stats_of(output)->over, is_block && result->at_ms > 0 && decision->until_ms <= result->at_ms);
	}
	if (result->change != NULL)
		send_change(output, partition, result);
	if (result->override != NULL)
		send_override(output, partition, result->number, 0, result->override);
	if (result->frame == NULL || !output->publisher->core->options.config->archiver.enabled)
		return;
	uint32_t pairs = result->judged.pair_count;
	weir_text_clear(&output->judged);
	char *out = weir_text_reserve(&output->judged, message.length + 8 + (pairs + 1) / 2);
	size_t length = weir_frame_judged(message, result->number, result->judged.verdicts, pairs, out);
	publisher_send(output->publisher, partition, WEIR_TOPIC_JUDGED, partition, (struct weir_span){0},
	               (struct weir_span){.at = out, .length = (uint32_t)length}, 0);
}

/* ---- reminders ---- */

/* Whether a block in force, one interval old, may outlast the topic's retention: it is longer than two intervals. */
static bool is_to_be_reminded(const struct override_setting *block, int64_t remind_ms, int64_t now_ms)
{
	return block->active && block->until_ms > now_ms && block->until_ms - block->at_ms > 2 * remind_ms &&
	       now_ms - block->at_ms >= remind_ms;
}

static void remind_of(struct output *output, const struct lane *lane, const struct override *override)
{
	const struct compiled_zone *zone = compiled_policy_zone(lane_compiled_policy(lane), override->zone_id);
	if (zone == NULL)
		return;
	const struct override_setting *block = &override->block;
	struct shard_override_decision decision = {.zone = zone->zone,
	                                           .key = override->key,
	                                           .at_ms = block->at_ms,
	                                           .until_ms = block->until_ms,
	                                           .by = block->by,
	                                           .reason = block->reason};
	send_override(output, lane_partition(lane), block->offset, 0, &decision);
	weir_counter_add(&stats_of(output)->reminders, 1);
}

void output_remind(struct output *output, struct lane *lane)
{
	int64_t now_ms = weir_wall_ms(), remind_ms = atomic_load(&output->publisher->core->remind_ms);
	const struct overrides *overrides = shard_overrides(lane_shard(lane));
	for (uint32_t i = 0; i < overrides->count; i++)
		if (is_to_be_reminded(&overrides->list[i]->block, remind_ms, now_ms) &&
		    overrides_publish(overrides, overrides->list[i]->scope, overrides->list[i]->key))
			remind_of(output, lane, overrides->list[i]);
}

/* ---- dead letters ---- */

/* Whether one more may be published and logged in this second. */
static bool dead_letter_allowed(struct output *output)
{
	int64_t most = output->publisher->core->options.config->deadletter.rate_per_second;
	int64_t second = weir_monotonic_ms() / 1000;
	if (second != output->dead_letters_second) {
		output->dead_letters_second = second;
		output->dead_letters = 0;
	}
	return most <= 0 || output->dead_letters++ < most;
}

void output_dead_letter(struct output *output, uint32_t partition, struct weir_span message, uint64_t offset,
                        const char *reason, bool counts)
{
	const struct worker_options *options = &output->publisher->core->options;
	uint64_t one = counts ? 1 : 0;
	weir_counter_add(&stats_of(output)->malformed, one);
	if (options->dead_letters && !dead_letter_allowed(output)) {
		weir_counter_add(&stats_of(output)->dead_letters_dropped, one);
		return;
	}
	weir_notice_log(
		&output->publisher->core->skipped, options->log, WEIR_LOG_ERROR, "limiter",
		"partition %u, offset %llu of %s.events cannot be judged: %s. It is skipped%s. A message that no collector "
		"wrote, or damage: find who writes to the topic (runbook: foreign-messages)",
		partition, (unsigned long long)offset, options->config->bus.prefix, reason,
		options->dead_letters ? ", and its start is in topic deadletter" : "");
	if (!options->dead_letters)
		return;
	struct weir_span start = {
		.at = message.at, .length = message.length < DEAD_LETTER_MAX_BYTES ? message.length : DEAD_LETTER_MAX_BYTES};
	struct weir_text *text = &output->text;
	weir_text_clear(text);
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "source", weir_topic_name(WEIR_TOPIC_EVENTS));
	weir_json_write_uint(&json, "partition", partition);
	weir_json_write_uint(&json, "position", offset);
	weir_json_write_words(&json, "reason", reason);
	weir_json_write_string(&json, "text", start);
	if (start.length < message.length)
		weir_json_write_bool(&json, "cut", true);
	weir_json_write_end(&json);
	publisher_send(output->publisher, partition, WEIR_TOPIC_DEADLETTER, 0, (struct weir_span){0}, span_of_text(text),
	               0);
	weir_counter_add(&stats_of(output)->dead_letters, one);
}
