/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each event is a frame of its own to the lane: so what its limits hold can be read before and after it. Those frames
 * have one source with positions that count up, as whether an event was taken before is decided here.
 */
#include "deploy/weir/explain/replay.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "deploy/weir/explain/counted.h"
#include "deploy/weir/explain/kept_fields.h"
#include "limiter/lane/decision.h"
#include "limiter/lane/lane.h"
#include "limiter/lane/policy_switch.h"

#include <inttypes.h>
#include <stdlib.h>

/* A bucket that is asked about, or another zone's of the same key. */
struct tracker {
	uint32_t zone_id;
	uint32_t limit_count;
	struct weir_limit rules[WEIR_ZONE_LIMITS_MAX]; /* that it was judged by last */
	struct counted limits[WEIR_ZONE_LIMITS_MAX];
	struct tracker *next;
};

struct watch {
	struct weir_span key; /* owned */
	uint64_t hash;
	struct tracker *trackers;
};

struct taken {
	uint8_t source[WEIR_SOURCE_ID_BYTES];
	uint64_t position;
};

/* A reservation, and under which step the lane has opened it: its id there is another. */
struct renamed {
	uint8_t id[WEIR_RESERVATION_ID_BYTES];
	uint64_t step;
};

struct replay {
	struct replay_options options;
	struct lane *lane;
	struct weir_frame_reader *reader;
	struct weir_frame_writer *writer;
	struct watch *watches; /* by open addressing, NULL keys are free */
	uint32_t watch_room;   /* a power of two, above twice their number */
	struct taken *taken;
	size_t taken_count;
	size_t taken_last; /* the source of the frame before: often that of the next one */
	uint64_t steps;    /* messages given to the lane */
	int64_t since_ms;  /* events of before this time may not be judged; INT64_MAX: no frame was read yet */
	struct weir_text line;
	struct renamed *renamed; /* reservations that were opened */
	size_t renamed_count;
	struct kept_fields kept; /* the fields of events that were judged */
};

static struct watch *find(const struct replay *replay, struct weir_span key, uint64_t hash)
{
	for (uint32_t place = (uint32_t)hash & (replay->watch_room - 1);; place = (place + 1) & (replay->watch_room - 1)) {
		struct watch *watch = &replay->watches[place];
		if (watch->key.at == NULL || (watch->hash == hash && weir_span_equal(watch->key, key)))
			return watch;
	}
}

static void watch_keys(struct replay *replay)
{
	const struct replay_options *options = &replay->options;
	replay->watch_room = 16;
	while (replay->watch_room < 2 * options->question_count)
		replay->watch_room *= 2;
	replay->watches = weir_alloc(replay->watch_room, sizeof *replay->watches);
	for (size_t i = 0; i < options->question_count; i++) {
		const struct question *question = &options->questions[i];
		if (question->partition != options->partition || !question->key_known)
			continue;
		struct weir_span key = {.at = question->key.length > 0 ? question->key.at : "",
		                        .length = (uint32_t)question->key.length};
		uint64_t hash = weir_hash64(key.at, key.length);
		struct watch *watch = find(replay, key, hash);
		if (watch->key.at == NULL)
			*watch = (struct watch){.key = {.at = weir_copy(key.at, key.length), .length = key.length}, .hash = hash};
	}
}

struct replay *replay_new(const struct replay_options *options)
{
	struct replay *replay = weir_alloc(1, sizeof *replay);
	struct shard_options shard = {
		.partition = options->partition, .partitions = options->partitions, .lateness_ms = options->lateness_ms};
	replay->options = *options;
	replay->since_ms = options->whole ? INT64_MIN : INT64_MAX;
	replay->lane = lane_new(&shard, options->registry, options->version);
	replay->reader = weir_frame_reader_new();
	replay->writer = weir_frame_writer_new();
	watch_keys(replay);
	return replay;
}

static void free_watch(struct watch *watch)
{
	for (struct tracker *tracker = watch->trackers, *next; tracker != NULL; tracker = next) {
		next = tracker->next;
		for (int i = 0; i < WEIR_ZONE_LIMITS_MAX; i++)
			counted_deinit(&tracker->limits[i]);
		free(tracker);
	}
	free((char *)(uintptr_t)watch->key.at);
}

void replay_free(struct replay *replay)
{
	if (replay == NULL)
		return;
	for (uint32_t i = 0; i < replay->watch_room; i++)
		free_watch(&replay->watches[i]);
	free(replay->watches);
	free(replay->taken);
	lane_free(replay->lane);
	weir_frame_reader_free(replay->reader);
	weir_frame_writer_free(replay->writer);
	weir_text_deinit(&replay->line);
	free(replay->renamed);
	kept_fields_deinit(&replay->kept);
	free(replay);
}

bool replay_wants(const struct replay *replay, struct weir_span key, uint64_t hash)
{
	return find(replay, key, hash)->key.at != NULL;
}

static struct tracker *tracker_of(struct watch *watch, uint32_t zone_id)
{
	struct tracker *tracker = watch->trackers;
	while (tracker != NULL && tracker->zone_id != zone_id)
		tracker = tracker->next;
	if (tracker == NULL) {
		tracker = weir_alloc(1, sizeof *tracker);
		tracker->zone_id = zone_id;
		tracker->next = watch->trackers;
		watch->trackers = tracker;
	}
	return tracker;
}

/*
 * Brings a tracker to the limits that its bucket is judged by now: those that are the same keep what they counted,
 * wherever they stand, each once and in order; a changed one, or one of another rate, starts empty.
 */
static void follow_rules(struct tracker *tracker, const struct weir_limit *rules, uint32_t count)
{
	bool same = count == tracker->limit_count;
	for (uint32_t i = 0; same && i < count; i++)
		same = weir_limit_equal(&tracker->rules[i], &rules[i]);
	if (same)
		return;
	struct counted before[WEIR_ZONE_LIMITS_MAX];
	bool used[WEIR_ZONE_LIMITS_MAX] = {false};
	memcpy(before, tracker->limits, sizeof before);
	bool was_known = tracker->limit_count > 0; /* then a limit that is new begins at rest */
	memset(tracker->limits, 0, sizeof tracker->limits);
	for (uint32_t i = 0; i < count; i++) {
		tracker->limits[i].rested = was_known;
		for (uint32_t j = 0; j < tracker->limit_count; j++) {
			if (used[j] || !weir_limit_equal(&tracker->rules[j], &rules[i]))
				continue;
			used[j] = true;
			tracker->limits[i] = before[j];
			break;
		}
	}
	for (uint32_t j = 0; j < tracker->limit_count; j++)
		if (!used[j])
			counted_deinit(&before[j]);
	memcpy(tracker->rules, rules, count * sizeof *rules);
	tracker->limit_count = count;
}

/* ---- answers ---- */

/* Calls for each question that a decision answers. @param key  NULL: of a whole zone */
static void answer(struct replay *replay, uint64_t offset, uint32_t index, uint32_t zone_id,
                   const struct weir_span *key,
                   void (*with)(struct replay *replay, struct question *question, const void *decision),
                   const void *decision)
{
	for (size_t i = 0; i < replay->options.question_count; i++) {
		struct question *question = &replay->options.questions[i];
		if (question->partition != replay->options.partition)
			continue;
		bool right = question->offset == offset && question->index == index;
		if (!question->by_id) {
			struct weir_span asked = {.at = question->key.at, .length = (uint32_t)question->key.length};
			right = key != NULL && question->zone_id == zone_id && weir_span_equal(asked, *key);
		}
		if (!right)
			continue;
		if (!question->by_id) {
			question->offset = offset;
			question->index = index;
		}
		weir_text_clear(&question->again);
		weir_text_append(&question->again, replay->line.at, replay->line.length);
		question->policy_version = lane_policy_version(replay->lane);
		question->zone_id = zone_id;
		question->has_limit = false;
		question_set_events(question, NULL, 0);
		if (with != NULL)
			with(replay, question, decision);
	}
}

/* What a limit's decision rests on. */
struct basis {
	const struct shard_decision *decision;
	const struct counted *counted;
	const struct explained_event *event;
};

/* What the zone keeps of each event's record, by the policy that the event was matched under; of the newest, if it is much. */
static void take_fields(struct replay *replay, struct question *question)
{
	size_t bytes = 0;
	question->fields_left_out = 0;
	for (size_t i = question->event_count; i-- > 0;) {
		struct explained_event *event = &question->events[i];
		event->fields_left_out |= event->kept.at != NULL && bytes > KEPT_FIELDS_MAX_BYTES;
		question->fields_left_out += event->fields_left_out;
		if (event->fields_left_out)
			event->kept = (struct weir_span){.at = NULL};
		const struct weir_policy *policy =
			event->kept.length > 0 ? policy_registry_policy(replay->options.registry, event->policy_version) : NULL;
		const struct weir_zone *zone = policy != NULL ? weir_policy_zone(policy, question->zone_id) : NULL;
		struct weir_text json = {0};
		if (zone != NULL && weir_fields_json(&json, event->kept, zone->history_fields, zone->history_field_count)) {
			weir_text_append(&json, "", 1);
			event->fields = json.at;
			bytes += json.length;
		}
		event->kept = (struct weir_span){.at = NULL};
	}
}

static void explain_limit(struct replay *replay, struct question *question, const void *context)
{
	const struct basis *basis = context;
	const struct shard_decision *decision = basis->decision;
	struct explained_event *events;
	question->has_limit = true;
	question->limit = *decision->rule;
	size_t count = counted_of(basis->counted, decision->rule, decision->at_ms, decision->count, question, &events);
	bool last = count > 0 && events[count - 1].position == basis->event->position &&
	            memcmp(events[count - 1].source, basis->event->source, WEIR_SOURCE_ID_BYTES) == 0;
	if (!last)
		events[count++] = *basis->event;
	events[count - 1].decided = true;
	question_set_events(question, events, count);
	take_fields(replay, question);
	free(events);
}

/* ---- events ---- */

/* One event in one zone: what its limits held before it is known. */
struct pair {
	uint32_t held_count;
	struct shard_held held[WEIR_ZONE_LIMITS_MAX];
};

static void take_pair(struct replay *replay, const struct replay_event *event, uint32_t number,
                      const struct pair *before, const struct lane_result *result, struct watch *watch,
                      const struct explained_event *shown)
{
	const struct weir_frame_zone *at = &event->zones[number];
	const struct compiled_zone *zone = compiled_policy_zone(lane_compiled_policy(replay->lane), at->id);
	if (zone == NULL)
		return;
	struct tracker *tracker = tracker_of(watch, at->id);
	struct pair after = {0};
	after.held_count = shard_read_held(lane_shard(replay->lane), at->id, event->key, event->time_ms, after.held);
	unsigned bits = weir_verdict_of(result->judged.verdicts, number);
	const struct overrides *overrides = shard_overrides(lane_shard(replay->lane));
	struct override_effect effect =
		overrides_effect(overrides, at->id, event->key, event->time_ms, overrides->clock_ms);
	struct weir_limit rules[WEIR_ZONE_LIMITS_MAX];
	for (uint32_t i = 0; i < zone->zone->limit_count; i++)
		rules[i] = effect.thousandths == WEIR_SCALE_ONE ? zone->zone->limits[i]
		                                                : weir_limit_scaled(&zone->zone->limits[i], effect.thousandths);
	if (!effect.allowed || at->done)
		follow_rules(tracker, rules, zone->zone->limit_count);
	for (uint32_t i = 0; i < tracker->limit_count; i++) {
		struct counted_step step = {
			.limit = &tracker->rules[i],
			.before = before->held_count > 0 ? before->held[i] : (struct shard_held){0},
			.after = after.held_count > 0 ? after.held[i] : (struct shard_held){0},
			.verdict = effect.allowed ? (unsigned)WEIR_VERDICT_NONE : bits,
			.records = (bits & WEIR_VERDICT_BLOCK) == 0 || zone->zone->count_all,
			.done = at->done,
			.since_ms = replay->since_ms,
		};
		counted_take(&tracker->limits[i], &step, shown);
	}
}

static void take_decisions(struct replay *replay, const struct replay_event *event, const struct lane_result *result,
                           struct watch *watch, const struct explained_event *shown)
{
	for (uint32_t i = 0; i < result->judged.decision_count; i++) {
		struct shard_decision decision = result->judged.decisions[i];
		uint32_t zone_id = decision.zone->zone->id;
		decision.id_offset = event->id_offset;
		decision.id_index = event->id_index + decision.pair;
		weir_text_clear(&replay->line);
		decision_json(&replay->line, replay->options.partition, &decision);
		struct basis basis = {
			.decision = &decision, .counted = &tracker_of(watch, zone_id)->limits[decision.limit], .event = shown};
		answer(replay, decision.id_offset, decision.id_index, zone_id, &decision.key, explain_limit, &basis);
	}
}

static void each_event(struct replay *replay, void (*visit)(struct explained_event *event))
{
	for (uint32_t i = 0; i < replay->watch_room; i++)
		for (struct tracker *tracker = replay->watches[i].trackers; tracker != NULL; tracker = tracker->next)
			for (uint32_t j = 0; j < tracker->limit_count; j++)
				for (size_t k = 0; k < tracker->limits[j].count; k++)
					visit(&tracker->limits[j].events[k]);
}

/* The reader's message goes; what the limits still count stays. */
static struct weir_span keep(struct replay *replay, struct weir_span fields)
{
	if (kept_fields_is_full(&replay->kept)) {
		each_event(replay, kept_fields_mark);
		if (kept_fields_sweep(&replay->kept)) {
			each_event(replay, kept_fields_let_go);
			kept_fields_drop(&replay->kept);
		}
	}
	return kept_fields_add(&replay->kept, fields);
}

static const uint8_t one_source[WEIR_SOURCE_ID_BYTES];

/* What the event opens or settles, under the lane's ids. */
static struct weir_frame_reservation under_lane_ids(struct replay *replay, const struct replay_event *event)
{
	struct weir_frame_reservation own = {.ttl_ms = event->reservation->ttl_ms};
	if (own.ttl_ms > 0) {
		replay->renamed = weir_realloc(replay->renamed, replay->renamed_count + 1, sizeof *replay->renamed);
		struct renamed *opened = &replay->renamed[replay->renamed_count++];
		opened->step = replay->steps;
		weir_reservation_id(event->source, event->position, opened->id);
		return own;
	}
	for (size_t i = 0; i < replay->renamed_count; i++) {
		if (memcmp(replay->renamed[i].id, event->reservation->id, WEIR_RESERVATION_ID_BYTES) != 0)
			continue;
		weir_reservation_id(one_source, replay->renamed[i].step, own.id);
		replay->renamed[i] = replay->renamed[--replay->renamed_count];
		break;
	}
	return own;
}

/* The message of the event alone. */
static struct weir_span finish(struct replay *replay, const struct replay_event *event)
{
	struct weir_frame_reservation own;
	uint8_t answers[WEIR_ZONE_SET_MAX / 2] = {0};
	if (event->answers == NULL)
		return weir_frame_finish(replay->writer, event->sent_ms);
	for (uint32_t i = 0; i < event->zone_count; i++)
		answers[i / 2] |= (uint8_t)(weir_verdict_of(event->answers, event->id_index + i) << (i % 2 * 4));
	if (event->reservation != NULL)
		own = under_lane_ids(replay, event);
	return weir_frame_finish_checks(replay->writer, event->sent_ms, 0, answers, &own, event->reservation != NULL);
}

enum weir_status replay_event(struct replay *replay, const struct replay_event *event, struct weir_error *error)
{
	struct watch *watch = find(replay, event->key, weir_hash64(event->key.at, event->key.length));
	struct pair *before = weir_alloc(event->zone_count + 1, sizeof *before);
	for (uint32_t i = 0; i < event->zone_count; i++)
		before[i].held_count =
			shard_read_held(lane_shard(replay->lane), event->zones[i].id, event->key, event->time_ms, before[i].held);
	uint64_t step = ++replay->steps;
	weir_frame_begin(replay->writer, one_source, event->policy_version, event->time_ms, step);
	enum weir_status status = weir_frame_add(replay->writer, event->key, watch->hash, event->time_ms, step, event->cost,
	                                         event->zones, event->zone_count);
	struct lane_result result = {0};
	if (status == WEIR_OK)
		status = lane_offer(replay->lane, finish(replay, event), step, event->appended_ms, &result, error);
	if (status == WEIR_OK && result.frame != NULL) {
		struct explained_event shown = {.time_ms = event->time_ms,
		                                .cost = event->cost,
		                                .position = event->position,
		                                .policy_version = event->policy_version,
		                                .kept = keep(replay, event->fields)};
		memcpy(shown.source, event->source, WEIR_SOURCE_ID_BYTES);
		for (uint32_t i = 0; i < event->zone_count; i++)
			take_pair(replay, event, i, &before[i], &result, watch, &shown);
		take_decisions(replay, event, &result, watch, &shown);
	}
	free(before);
	return status;
}

/* ---- messages ---- */

/* The highest position taken of a source. */
static uint64_t *position_of(struct replay *replay, const uint8_t source[WEIR_SOURCE_ID_BYTES])
{
	if (replay->taken_last < replay->taken_count &&
	    memcmp(replay->taken[replay->taken_last].source, source, WEIR_SOURCE_ID_BYTES) == 0)
		return &replay->taken[replay->taken_last].position;
	size_t place = 0;
	while (place < replay->taken_count && memcmp(replay->taken[place].source, source, WEIR_SOURCE_ID_BYTES) != 0)
		place++;
	replay->taken_last = place;
	if (place == replay->taken_count) {
		replay->taken = weir_realloc(replay->taken, ++replay->taken_count, sizeof *replay->taken);
		replay->taken[place] = (struct taken){.position = 0};
		memcpy(replay->taken[place].source, source, WEIR_SOURCE_ID_BYTES);
	}
	return &replay->taken[place].position;
}

/* Which of a frame's keys are asked about; NULL: none is. */
static bool *wanted_keys(const struct replay *replay, const struct weir_frame *frame)
{
	bool *wanted = NULL;
	for (uint32_t i = 0; i < frame->key_count; i++) {
		if (!replay_wants(replay, frame->keys[i], weir_hash64(frame->keys[i].at, frame->keys[i].length)))
			continue;
		if (wanted == NULL)
			wanted = weir_alloc(frame->key_count, sizeof *wanted);
		wanted[i] = true;
	}
	return wanted;
}

static enum weir_status take_events(struct replay *replay, const struct weir_message *message,
                                    const struct weir_frame *frame, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	uint64_t *position = position_of(replay, frame->source), before = *position, pair = 0;
	uint32_t run = 0, reservation = 0;
	bool *wanted = wanted_keys(replay, frame);
	if (replay->since_ms == INT64_MAX)
		replay->since_ms = frame->sending_time_ms;
	if (frame->event_count > 0 && frame->events[frame->event_count - 1].position > before)
		*position = frame->events[frame->event_count - 1].position;
	for (uint32_t i = 0; wanted != NULL && status == WEIR_OK && i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		struct replay_event one = {.key = frame->keys[event->key],
		                           .time_ms = event->time_ms,
		                           .cost = event->cost,
		                           .zones = set->zones,
		                           .zone_count = set->count,
		                           .source = frame->source,
		                           .position = event->position,
		                           .policy_version = frame->policy_version,
		                           .sent_ms = frame->sending_time_ms,
		                           .appended_ms = message->appended_ms,
		                           .fields = weir_frame_fields(frame, i, &run),
		                           .id_offset = message->offset,
		                           .id_index = (uint32_t)pair,
		                           .answers = frame->verdicts,
		                           .reservation = weir_frame_reservation(frame, i, &reservation)};
		if (wanted[event->key] && event->position > before)
			status = replay_event(replay, &one, error);
		pair += set->count;
	}
	free(wanted);
	shard_advance_clock(lane_shard(replay->lane), frame->sending_time_ms);
	return status;
}

static void answer_switch(struct replay *replay, uint64_t offset, const struct lane_result *result)
{
	const struct policy_switch *change = result->change;
	uint32_t partition = replay->options.partition, index = 0;
	for (uint32_t i = 0; i < change->lifted_count; i++, index++) {
		weir_text_clear(&replay->line);
		decision_lift_json(&replay->line, partition, offset, index, change->lifted[i], result->at_ms);
		answer(replay, offset, index, change->lifted[i]->id, NULL, NULL, NULL);
	}
	for (uint32_t i = 0; i < change->block_count; i++, index++) {
		weir_text_clear(&replay->line);
		decision_override_json(&replay->line, partition, offset, index, &change->blocks[i]);
		answer(replay, offset, index, change->blocks[i].zone->id, &change->blocks[i].key, NULL, NULL);
	}
}

/* A policy or a command. One that cannot be applied was refused at its place then, too. */
static enum weir_status take_control(struct replay *replay, const struct weir_message *message,
                                     const struct weir_frame *frame, struct weir_error *error)
{
	struct lane_result result;
	enum weir_status status =
		lane_offer(replay->lane, message->payload, ++replay->steps, message->appended_ms, &result, error);
	if (status == WEIR_AGAIN)
		return weir_fail(error, WEIR_INVALID, "policy %" PRIu64 " is in the log, but not known here",
		                 frame->policy_version);
	if (status != WEIR_OK)
		return frame->kind == WEIR_FRAME_POLICY ? status : WEIR_OK;
	if (result.change != NULL)
		answer_switch(replay, message->offset, &result);
	if (result.override != NULL) {
		weir_text_clear(&replay->line);
		decision_override_json(&replay->line, replay->options.partition, message->offset, 0, result.override);
		answer(replay, message->offset, 0, result.override->zone->id, &result.override->key, NULL, NULL);
	}
	return WEIR_OK;
}

enum weir_status replay_message(struct replay *replay, const struct weir_message *message, struct weir_error *error)
{
	struct weir_frame frame;
	enum weir_status status = weir_frame_decode(replay->reader, message->payload, &frame, error);
	if (status == WEIR_INVALID)
		return WEIR_OK; /* a limiter skips it, too */
	if (status != WEIR_OK)
		return status;
	(void)weir_frame_bound_times(replay->reader, &frame, message->appended_ms);
	if (weir_frame_is_of_events(&frame))
		return take_events(replay, message, &frame, error);
	return take_control(replay, message, &frame, error);
}
