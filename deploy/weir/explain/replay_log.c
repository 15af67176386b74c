/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A partition is looked through first where it is not known which key a record is about, or, as its beginning was
 * deleted, which policy was in force there. Then it is judged from its beginning on.
 */
#include "deploy/weir/explain/replay_log.h"

#include "common/bus/kafka/bus_kafka.h"
#include "common/json/json.h"
#include "deploy/weir/explain/replay.h"
#include "deploy/weir/inspect/topic_read.h"
#include "limiter/lane/lane_place.h"

#include <inttypes.h>

/* One partition at work. */
struct part {
	const struct replay_log *log;
	struct question *questions;
	size_t count;
	uint32_t partition;
	uint64_t base;       /* a record's number is this plus its offset */
	uint64_t first;      /* the log's first offset of it */
	uint64_t from;       /* where judging begins */
	uint64_t last;       /* the last one that is asked about */
	uint64_t version;    /* of the policy in force at first */
	uint64_t damaged;    /* messages that could not be read */
	uint64_t damaged_at; /* the first of them */
	struct weir_frame_reader *reader;
};

static bool is_ours(const struct part *part, const struct question *question)
{
	return question->partition == part->partition;
}

static enum weir_status open_part(struct part *part, struct topic_read **read, struct weir_error *error)
{
	enum weir_status status = topic_read_open(part->log->bus, part->log->directory, WEIR_TOPIC_EVENTS, part->partition,
	                                          part->from, read, error);
	if (status == WEIR_OK)
		part->first = topic_read_first(*read, part->partition);
	if (status == WEIR_OK && part->from < part->first)
		part->from = part->first;
	return status;
}

/* The next message, with its record's number in place of its offset: decisions name it by that. */
static enum weir_status read_next(const struct part *part, struct topic_read *read, struct weir_message *message,
                                  struct weir_error *error)
{
	enum weir_status status = topic_read_next(read, message, error);
	if (status == WEIR_OK)
		message->offset += part->base;
	return status;
}

/* ---- looking through ---- */

/* Which key and zone the pair of a frame is about. */
static void resolve(const struct weir_frame *frame, struct question *question)
{
	uint64_t pair = 0;
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_zone_set *set = &frame->zone_sets[frame->events[i].zone_set];
		if (question->index >= pair + set->count) {
			pair += set->count;
			continue;
		}
		struct weir_span key = frame->keys[frame->events[i].key];
		weir_text_clear(&question->key);
		weir_text_append(&question->key, key.at, key.length);
		question->zone_id = set->zones[question->index - pair].id;
		question->key_known = true;
		return;
	}
}

static void resolve_all(struct part *part, const struct weir_message *message)
{
	struct weir_frame frame;
	struct weir_error error;
	for (size_t i = 0; i < part->count; i++) {
		struct question *question = &part->questions[i];
		if (is_ours(part, question) && question->by_id && !question->key_known && question->offset == message->offset &&
		    weir_frame_decode(part->reader, message->payload, &frame, &error) == WEIR_OK &&
		    weir_frame_is_of_events(&frame))
			resolve(&frame, question);
	}
}

/* The version of a policy record; 0: it is none. */
static uint64_t policy_of(const struct part *part, const struct weir_message *message)
{
	struct weir_frame frame;
	struct weir_error error;
	/* The kind is the fourth byte: most messages need not be read for this. */
	if (message->payload.length < 4 || message->payload.at[3] != WEIR_FRAME_POLICY ||
	    weir_frame_decode(part->reader, message->payload, &frame, &error) != WEIR_OK)
		return 0;
	return frame.policy_version;
}

static enum weir_status look_through(struct part *part, struct weir_error *error)
{
	struct topic_read *read;
	struct weir_message message;
	uint64_t policy = 0;
	enum weir_status status = open_part(part, &read, error);
	if (status != WEIR_OK)
		return status;
	while ((status = read_next(part, read, &message, error)) != WEIR_END && status != WEIR_IO) {
		if (status != WEIR_OK)
			continue;
		status = patience_check(part->log->patience, error);
		if (status != WEIR_OK)
			break;
		resolve_all(part, &message);
		policy = policy == 0 ? policy_of(part, &message) : policy;
		if (policy > 0 && message.offset >= part->last)
			break;
	}
	topic_read_free(read);
	if (policy > 1)
		part->version = policy - 1;
	return status == WEIR_IO ? status : WEIR_OK;
}

/*
 * What was in force at the beginning: before the first policy record, or, as there is none, what is in force. A log that
 * was made anew did not begin with the first policy.
 */
static enum weir_status find_version(struct part *part, struct weir_error *error)
{
	struct weir_store *store = part->log->store;
	struct weir_partition_state state = {0};
	struct lane_place place;
	enum weir_status status = store->ops->inspect(store, WEIR_STORE_ROLE_LIMITER, part->partition, &state, error);
	if (status == WEIR_OK)
		status = lane_place_read(&state.extra, &place, error);
	if (status != WEIR_OK)
		return status;
	part->base = place.base;
	if (part->from == 0 && part->base == 0)
		part->version = 1;
	else
		part->version = state.policy_version > 0 ? state.policy_version : policy_registry_newest(part->log->registry);
	return WEIR_OK;
}

/* ---- judging ---- */

static enum weir_status judge(struct part *part, struct weir_error *error)
{
	struct topic_read *read;
	struct weir_message message;
	struct replay_options options = {.registry = part->log->registry,
	                                 .version = part->version,
	                                 .partition = part->partition,
	                                 .partitions = part->log->partitions,
	                                 .lateness_ms = part->log->lateness_ms,
	                                 .whole = part->from == 0 && part->base == 0,
	                                 .questions = part->questions,
	                                 .question_count = part->count};
	enum weir_status status = open_part(part, &read, error);
	if (status != WEIR_OK)
		return status;
	struct replay *replay = replay_new(&options);
	while ((status = read_next(part, read, &message, error)) != WEIR_END && status != WEIR_IO) {
		if (status != WEIR_OK) {
			part->damaged++;
			continue;
		}
		if (message.offset > part->last)
			break;
		status = patience_check(part->log->patience, error);
		if (status == WEIR_OK)
			status = replay_message(replay, &message, error);
		if (status != WEIR_OK)
			break;
	}
	replay_free(replay);
	topic_read_free(read);
	if (status != WEIR_INVALID && status != WEIR_NEWER)
		return status == WEIR_IO ? status : WEIR_OK;
	for (size_t i = 0; i < part->count; i++)
		if (is_ours(part, &part->questions[i]))
			question_lacks(&part->questions[i], "The log was judged up to offset %" PRIu64 " alone: %s.",
			               message.offset - part->base, error->text);
	return WEIR_OK;
}

/* ---- what is missing ---- */

/* Why the record that caused a decision makes none now. */
static void tell_record(const struct part *part, struct question *question)
{
	if (question->offset < part->base)
		question_lacks(question,
		               "Record %" PRIu64
		               " of partition %u, which caused the decision, was in the topic before the topic "
		               "was recreated: it is not there any more.",
		               question->offset, part->partition);
	else if (question->offset - part->base < part->first)
		question_lacks(question,
		               "The log of partition %u begins at offset %" PRIu64 ": the record at offset %" PRIu64
		               " that caused the decision is not there any more.",
		               part->partition, part->first, question->offset - part->base);
	else
		question_lacks(question,
		               "Judging the log of partition %u again from offset %" PRIu64 " on, the record at offset %" PRIu64
		               " makes no such decision.",
		               part->partition, part->first, question->offset - part->base);
}

static void tell_missing(const struct part *part, struct question *question)
{
	bool trimmed = part->base > 0 || part->first > 0;
	if (part->damaged > 0)
		question_lacks(question, "%" PRIu64 " records of partition %u are damaged or gone.", part->damaged,
		               part->partition);
	if (question->again.length == 0 && question->by_id)
		tell_record(part, question);
	else if (question->again.length == 0)
		question_lacks(question, "The log of partition %u, from offset %" PRIu64 " on, has no decision of this key.",
		               part->partition, part->first);
	if (question->again.length > 0 && question->lacking > 0)
		question_lacks(question,
		               "%" PRId64 " of the counted events are not in the log, which begins at offset %" PRIu64 ".",
		               question->lacking, part->first);
	else if (question->again.length > 0 && question->may_lack)
		question_lacks(question,
		               "The level was never at rest since the log begins, at offset %" PRIu64
		               ": earlier events may have a share in it.",
		               part->first);
	else if (trimmed && question->published.length > 0 && question->again.length > 0 && !question_is_equal(question))
		question_lacks(question, "What was counted before offset %" PRIu64 ", where the log begins, is not known.",
		               part->first);
}

/* How far before a decision's time what counted for it can lie; < 0: that is not known. */
static int64_t reach_of(const struct part *part, const struct question *question)
{
	struct policy_registry *registry = part->log->registry;
	const struct weir_policy *policy = policy_registry_policy(registry, policy_registry_newest(registry));
	const struct weir_zone *zone = policy != NULL ? weir_policy_zone(policy, question->zone_id) : NULL;
	int64_t reach_ms = 0;
	if (zone == NULL)
		return -1;
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		int64_t memory_ms = weir_limit_memory_ms(&zone->limits[i]);
		reach_ms = memory_ms > reach_ms ? memory_ms : reach_ms;
	}
	return 2 * reach_ms + zone->block_for_ms + part->log->lateness_ms;
}

static int64_t time_of(const struct question *question)
{
	json_t *json = json_loadb(question->published.at, question->published.length, JSON_ALLOW_NUL, NULL);
	int64_t at_ms = json_integer_value(json_object_get(json, "at"));
	json_decref(json);
	return at_ms;
}

/*
 * A topic may hold days of a busy partition. Nothing is in it before it happened, so it is judged from the time on that
 * can matter; 0: that is not known of every question.
 */
static uint64_t find_start(const struct part *part)
{
	struct weir_error error;
	uint64_t from;
	int64_t since_ms = INT64_MAX;
	for (size_t i = 0; i < part->count; i++) {
		const struct question *question = &part->questions[i];
		int64_t reach_ms = is_ours(part, question) ? reach_of(part, question) : 0;
		if (!is_ours(part, question))
			continue;
		if (question->published.length == 0 || reach_ms < 0)
			return 0;
		int64_t own_ms = time_of(question) - reach_ms;
		since_ms = own_ms < since_ms ? own_ms : since_ms;
	}
	if (part->log->bus == NULL || weir_bus_kafka_offset_at(part->log->bus, WEIR_TOPIC_EVENTS, part->partition, since_ms,
	                                                       &from, &error) != WEIR_OK)
		return 0;
	return from;
}

/* Whether judging from a later start than the log's was enough. */
static bool is_enough(const struct part *part)
{
	for (size_t i = 0; i < part->count; i++) {
		const struct question *question = &part->questions[i];
		if (is_ours(part, question) && (!question_is_equal(question) || question->lacking > 0 || question->may_lack))
			return false;
	}
	return true;
}

static enum weir_status judge_from(struct part *part, uint64_t from, struct weir_error *error)
{
	struct topic_read *read;
	bool unknown = false;
	for (size_t i = 0; i < part->count; i++)
		unknown = unknown || (is_ours(part, &part->questions[i]) && !part->questions[i].key_known);
	part->from = from;
	part->damaged = 0;
	enum weir_status status = open_part(part, &read, error);
	if (status != WEIR_OK)
		return status;
	topic_read_free(read);
	status = find_version(part, error);
	if (status == WEIR_OK && (unknown || part->from > 0 || part->base > 0))
		status = look_through(part, error);
	if (status == WEIR_OK && policy_registry_policy(part->log->registry, part->version) == NULL)
		return weir_fail(error, WEIR_INVALID, "policy %" PRIu64 " is not known here", part->version);
	return status == WEIR_OK ? judge(part, error) : status;
}

static enum weir_status answer_partition(struct part *part, struct weir_error *error)
{
	part->last = 0;
	for (size_t i = 0; i < part->count; i++) {
		const struct question *question = &part->questions[i];
		uint64_t last = question->by_id ? question->offset : UINT64_MAX;
		if (is_ours(part, question) && last > part->last)
			part->last = last;
	}
	uint64_t from = find_start(part);
	enum weir_status status = judge_from(part, from, error);
	if (status == WEIR_OK && from > part->first && !is_enough(part)) {
		for (size_t i = 0; i < part->count; i++)
			if (is_ours(part, &part->questions[i]))
				question_reset(&part->questions[i]);
		status = judge_from(part, 0, error);
	}
	for (size_t i = 0; status == WEIR_OK && i < part->count; i++)
		if (is_ours(part, &part->questions[i]))
			tell_missing(part, &part->questions[i]);
	return status;
}

enum weir_status replay_log(const struct replay_log *log, struct question *questions, size_t count,
                            struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		bool done = false;
		for (size_t j = 0; j < i; j++)
			done = done || questions[j].partition == questions[i].partition;
		if (done)
			continue;
		struct part part = {.log = log, .questions = questions, .count = count, .partition = questions[i].partition};
		part.reader = weir_frame_reader_new();
		status = answer_partition(&part, error);
		weir_frame_reader_free(part.reader);
	}
	return status;
}
