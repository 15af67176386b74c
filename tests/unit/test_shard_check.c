/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks: random interleavings of asking, of frames on their way through the log, of other events, commands and
 * policies, against the obvious model of them: for each bucket that has checks under way a second bucket, to which the
 * same happens in the order of the process instead of the log's.
 */
#include "limiter/shard/shard_check.h"
#include "shard_scene.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { STEPS = 400, POLICIES = 8, PAIRS_MAX = SCENE_EVENTS * SCENE_SET_ZONES, RECORDS = STEPS * 2, OWN = 99 };

static uint64_t seen_passed, seen_blocked, seen_returned, seen_added, seen_peeked, seen_held;

/* One message of the log. */
struct record {
	uint32_t policy; /* 0: none */
	bool commanded;
	struct override_command command;
	int64_t at_ms;
	struct scene_frame frame;
	uint8_t verdicts[PAIRS_MAX];
};

/* A check under way, as the model keeps it. */
struct asked {
	const struct weir_zone *zone; /* as of when it was asked */
	char key[32];
	int64_t t, cost;
	int answer;
	struct model_correction correction; /* of a settlement */
	uint8_t id[WEIR_RESERVATION_ID_BYTES];
	bool stale; /* it counts otherwise now: the second bucket is made anew when it is asked for */
};

struct stage {
	struct scene scene;
	struct shard_options options;
	const struct weir_policy *policies[POLICIES];
	struct compiled_policy *compiled[POLICIES];
	uint32_t policy_count, policy; /* in the log; in force */
	uint32_t next_id;
	struct record *records;
	uint32_t record_count, next;
	struct scene_frame open; /* checks that were asked and are in no frame yet */
	uint64_t position;
	struct shard *shard;
	struct model *model;  /* what the log has made */
	struct model *copies; /* the second buckets; a bucket counts while `asked` has checks of it */
	struct asked asked[STEPS * 64];
	uint32_t asked_first, asked_count;
	int64_t asked_ms; /* the newest time of one since the newest command */
	bool alone;       /* nothing but checks: the model is asked at once, and must say the same */
	struct model *at_once;
};

static int64_t below(struct stage *stage, int64_t number)
{
	return scene_below(&stage->scene.random, number);
}

static bool is_of(const struct asked *asked, uint32_t zone_id, struct weir_span key)
{
	return asked->zone->id == zone_id && weir_span_equal(weir_span_of(asked->key), key);
}

static bool has_copy(const struct stage *stage, uint32_t zone_id, struct weir_span key)
{
	for (uint32_t i = stage->asked_first; i < stage->asked_count; i++)
		if (is_of(&stage->asked[i], zone_id, key))
			return true;
	return false;
}

/* Makes the second bucket what the first one is. */
static void copy_bucket(struct model_bucket *to, const struct model_bucket *from)
{
	for (uint32_t i = 0; i < to->limit_count; i++)
		model_limit_free(&to->limits[i]);
	struct model_bucket kept = *to;
	*to = *from;
	to->key = kept.key;
	to->next = kept.next;
	for (uint32_t i = 0; i < to->limit_count; i++) {
		struct model_limit *limit = &to->limits[i];
		limit->limit = &to->own[i];
		limit->times = limit->costs = NULL;
		if (from->limits[i].times != NULL)
			limit->times = (void *)weir_copy((char *)from->limits[i].times, from->limits[i].count * sizeof(int64_t));
		if (from->limits[i].costs != NULL)
			limit->costs = (void *)weir_copy((char *)from->limits[i].costs, from->limits[i].count * sizeof(int64_t));
	}
}

/* What operators have said: where checks count at once, rates end by the newest check's time, too. */
static struct model_effect effect_of(struct stage *stage, const struct model *model, const struct weir_zone *zone,
                                     struct weir_span key, int64_t t)
{
	const struct model *log = stage->model;
	int64_t log_ms = log->overrides.clock_ms,
			clock_ms = model != log && stage->asked_ms > log_ms ? stage->asked_ms : log_ms;
	struct model_effect effect = model_effect(&log->overrides, zone->id, key, t, log_ms, log->lateness_ms);
	effect.thousandths = model_effect(&log->overrides, zone->id, key, t, clock_ms, log->lateness_ms).thousandths;
	return effect;
}

/* An event in a bucket of a model. @return what was decided, or the answer */
static int model_event(struct stage *stage, struct model *model, const struct weir_zone *zone, struct weir_span key,
                       int64_t t, int64_t c, int64_t sent, bool done, int answer)
{
	struct model_effect effect = effect_of(stage, model, zone, key, t);
	if (effect.allowed && !done)
		return answer > 0 ? answer : 0;
	struct model_bucket *bucket = model_find(model, zone, key);
	if (bucket->thousandths != effect.thousandths)
		model_rescale(bucket, effect.thousandths);
	bucket->clock_s = (model->clock_ms + 999) / 1000;
	int64_t barred = effect.blocked;
	if (done)
		barred = model_blocks_key(&stage->model->overrides, zone->id, key, t, stage->model->overrides.clock_ms,
		                          stage->model->lateness_ms);
	return model_judge(bucket, zone, t, c, sent, done, barred, answer).bits & WEIR_VERDICT_BLOCK;
}

/* ---- asking ---- */

static void set_clock(struct stage *stage, int64_t t)
{
	stage->copies->clock_ms = stage->model->clock_ms > t ? stage->model->clock_ms : t;
	stage->asked_ms = stage->asked_ms > t ? stage->asked_ms : t;
}

/* A settlement in a bucket of a model. */
static void model_settlement(struct stage *stage, struct model *model, const struct weir_zone *zone,
                             struct weir_span key, int64_t t, const struct model_correction *correction)
{
	struct model_effect effect = effect_of(stage, model, zone, key, t);
	struct model_bucket *bucket = model_find(model, zone, key);
	if (bucket->thousandths != effect.thousandths)
		model_rescale(bucket, effect.thousandths);
	bucket->clock_s = (model->clock_ms + 999) / 1000;
	model_correct(bucket, zone, t, correction,
	              model_blocks_key(&stage->model->overrides, zone->id, key, t, stage->model->overrides.clock_ms,
	                               stage->model->lateness_ms));
}

/* What a check that has not come back is by then, in the second bucket. */
static void model_ask_again(struct stage *stage, const struct weir_zone *zone, struct weir_span key,
                            const struct asked *asked)
{
	struct model_correction correction = asked->correction;
	stage->copies->clock_ms = stage->model->clock_ms > asked->t ? stage->model->clock_ms : asked->t;
	if (!correction.found) {
		model_event(stage, stage->copies, zone, key, asked->t, asked->cost, asked->t, false, asked->answer);
		return;
	}
	struct model_effect effect = effect_of(stage, stage->copies, zone, key, asked->t);
	const struct model_reservation *one = model_reserved(stage->model, asked->id);
	bool is_void = one != NULL && asked->t < one->ends_ms && (!one->counts || one->thousandths != effect.thousandths);
	if (correction.more < 0 ? is_void : effect.allowed)
		correction.more = 0;
	model_settlement(stage, stage->copies, zone, key, asked->t, &correction);
}

/* Makes the second bucket anew: what the first one is by now, with what has not come back. */
static void copy_anew(struct stage *stage, const struct weir_zone *zone, struct weir_span key)
{
	int64_t clock_ms = stage->copies->clock_ms;
	copy_bucket(model_find(stage->copies, zone, key), model_find(stage->model, zone, key));
	for (uint32_t i = stage->asked_first; i < stage->asked_count; i++) {
		if (!is_of(&stage->asked[i], zone->id, key))
			continue;
		stage->asked[i].stale = false;
		model_ask_again(stage, zone, key, &stage->asked[i]);
	}
	struct model_bucket *bucket = model_find(stage->copies, zone, key);
	int64_t thousandths = effect_of(stage, stage->copies, zone, key, clock_ms).thousandths;
	if (bucket->thousandths != thousandths)
		model_rescale(bucket, thousandths);
	stage->copies->clock_ms = clock_ms;
}

/* The second bucket, if there is one, is what the first one is with what has not come back, under what is in force. */
static void renew(struct stage *stage, const struct weir_zone *zone, struct weir_span key)
{
	bool stale = false;
	if (!has_copy(stage, zone->id, key))
		return;
	for (uint32_t i = stage->asked_first; i < stage->asked_count; i++)
		stale |= stage->asked[i].stale && is_of(&stage->asked[i], zone->id, key);
	int64_t thousandths = effect_of(stage, stage->copies, zone, key, stage->copies->clock_ms).thousandths;
	const struct model_bucket *copy = model_look(stage->copies, zone, key);
	if (stale || (copy->thousandths != thousandths && !model_forgotten(stage->copies, copy)))
		copy_anew(stage, zone, key);
}

/* @param key  NULL: of all, whatever the zone */
static void outdate(struct stage *stage, uint32_t zone_id, const struct weir_span *key)
{
	for (uint32_t i = stage->asked_first; i < stage->asked_count; i++)
		stage->asked[i].stale |= key == NULL || is_of(&stage->asked[i], zone_id, *key);
}

/* What settling does; false: there is no such reservation. */
static bool model_ask_to_settle(struct stage *stage, const struct weir_zone *zone, struct weir_span key, int64_t t,
                                int64_t cost, const uint8_t *id)
{
	set_clock(stage, t);
	renew(stage, zone, key);
	struct model_effect effect = effect_of(stage, stage->copies, zone, key, t);
	struct model_correction correction = model_settle(stage->copies, id, zone->id, key, t, cost, &effect);
	if (!correction.found)
		return false;
	if (!has_copy(stage, zone->id, key))
		copy_bucket(model_find(stage->copies, zone, key), model_find(stage->model, zone, key));
	model_settlement(stage, stage->copies, zone, key, t, &correction);
	seen_returned += correction.more < 0;
	seen_added += correction.more > 0;
	struct asked *asked = &stage->asked[stage->asked_count++];
	*asked = (struct asked){.zone = zone, .t = t, .cost = cost, .correction = correction};
	memcpy(asked->key, key.at, key.length);
	memcpy(asked->id, id, sizeof asked->id);
	return true;
}

/* What the model answers; of a check it remembers it. */
static int model_ask(struct stage *stage, const struct weir_zone *zone, struct weir_span key, int64_t t, int64_t c)
{
	set_clock(stage, t);
	renew(stage, zone, key);
	if (!has_copy(stage, zone->id, key))
		copy_bucket(model_find(stage->copies, zone, key), model_find(stage->model, zone, key));
	int answer = model_event(stage, stage->copies, zone, key, t, c, t, false, -1);
	struct asked *asked = &stage->asked[stage->asked_count++];
	*asked = (struct asked){.zone = zone, .t = t, .cost = c, .answer = answer};
	memcpy(asked->key, key.at, key.length);
	return answer;
}

static void add_to_frame(struct stage *stage, uint32_t zone_id, bool done, struct weir_span key, int64_t t, int64_t c,
                         int answer)
{
	scene_add(&stage->open, zone_id, done, key,
	          (struct weir_frame_event){.time_ms = t, .cost = c, .position = ++stage->position}, answer);
}

static void send_checks(struct stage *stage)
{
	struct record *record = &stage->records[stage->record_count++];
	*record = (struct record){.frame = stage->open};
	int64_t sent_ms = stage->scene.now_ms > stage->scene.sent_ms ? stage->scene.now_ms : stage->scene.sent_ms;
	record->frame.frame.sending_time_ms = stage->alone ? stage->scene.now_ms : sent_ms;
	scene_close(&record->frame);
	memset(&stage->open, 0, sizeof stage->open);
	stage->open.frame.kind = WEIR_FRAME_CHECKS;
	stage->open.frame.verdicts = stage->open.answers;
	memset(stage->open.frame.source, OWN, sizeof stage->open.frame.source);
}

static void settle_at_once(struct stage *stage, const struct weir_zone *zone, struct weir_span key, int64_t t,
                           int64_t cost, const uint8_t *id)
{
	struct model_effect effect = effect_of(stage, stage->at_once, zone, key, t);
	stage->at_once->clock_ms = stage->copies->clock_ms;
	struct model_correction correction = model_settle(stage->at_once, id, zone->id, key, t, cost, &effect);
	assert_true(correction.found);
	model_settlement(stage, stage->at_once, zone, key, t, &correction);
}

/* The newest event of the open frame is a check that opens a reservation. */
static void reserve(struct stage *stage, const struct shard_check *check, int64_t t, int64_t ttl)
{
	struct weir_frame *open = &stage->open.frame;
	uint8_t id[WEIR_RESERVATION_ID_BYTES];
	const struct weir_zone *zone = check->zone->zone;
	struct model_effect effect = effect_of(stage, stage->copies, zone, check->key, t);
	stage->open.reservations[open->reservation_count++] =
		(struct weir_frame_reservation){.event = open->event_count - 1, .ttl_ms = ttl};
	weir_reservation_id(open->source, stage->position, id);
	shard_reserve(stage->shard, check, ttl, id);
	model_open(stage->copies, id, zone, check->key, t, check->cost, ttl, &effect, false);
	model_open(stage->at_once, id, zone, check->key, t, check->cost, ttl, &effect, false);
	scene_reserved(&stage->scene, open->source, stage->position, zone->id, check->key);
}

/* Makes a check one of the same bucket as the one before it, whose answer says what this one's is. */
static void follow_up(struct shard_check *check, const struct shard_check *before)
{
	check->zone = before->zone;
	check->key = before->key;
	check->cost = before->peek ? before->cost : 1;
	check->peek = check->reserves = false;
	check->settles = NULL;
}

/* Holds what was told of a peek, or of a settlement, against the check of its bucket that came next. */
static void compare_with_next(const struct shard_check *told, const struct shard_check *next)
{
	if (told->state != SHARD_CHECK_JUDGED)
		return;
	if (told->settles != NULL) {
		assert_false(next->blocked && told->quota.remaining > 0);
		seen_held += next->blocked;
		return;
	}
	assert_int_equal(told->blocked, next->blocked);
	if (!told->blocked || told->cost == 0)
		return;
	assert_int_equal(told->quota.limit, next->quota.limit);
	assert_int_equal(told->quota.remaining, next->quota.remaining);
	assert_int_equal(told->quota.retry_after_ms, next->quota.retry_after_ms);
	assert_int_equal(told->quota.reset_after_ms, next->quota.reset_after_ms);
	seen_peeked++;
}

static void ask(struct stage *stage)
{
	static const int64_t costs[] = {1, 1, 1, 1, 2, 3, 33, 0};
	const struct weir_policy *policy = stage->policies[stage->policy];
	struct shard_check checks[8];
	uint8_t ids[8][WEIR_RESERVATION_ID_BYTES];
	char keys[8][32];
	uint32_t count = 1 + (uint32_t)below(stage, SCENE_SETS);
	bool follows[8] = {false}; /* asks of the bucket of the one before it */
	if (stage->open.frame.event_count + count > SCENE_EVENTS || stage->open.frame.key_count + count > SCENE_KEYS ||
	    stage->open.frame.zone_set_count + count > SCENE_SETS)
		send_checks(stage);
	if (stage->alone && stage->open.frame.event_count > 0)
		send_checks(stage); /* at once: what is sent late may block for longer */
	if (below(stage, 3) == 0)
		stage->scene.now_ms += below(stage, stage->scene.spread_ms + 1);
	int64_t t = stage->scene.now_ms;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = (uint32_t)below(stage, policy->zone_count);
		int length = scene_key(below(stage, stage->scene.key_space), keys[i]);
		checks[i] = (struct shard_check){
			.zone = compiled_policy_zone_at(stage->compiled[stage->policy], place),
			.key = {.at = keys[i], .length = (uint32_t)length},
			.cost = stage->scene.costs ? scene_among(&stage->scene.random, costs, 8) : 1,
			.peek = below(stage, 6) == 0,
			.reserves = below(stage, 4) == 0,
		};
		follows[i] =
			i > 0 && !follows[i - 1] && (checks[i - 1].peek || checks[i - 1].settles != NULL) && below(stage, 2);
		if (follows[i]) {
			follow_up(&checks[i], &checks[i - 1]);
			continue;
		}
		const struct scene_reservation *settled = scene_settled(&stage->scene, checks[i].zone->zone->id, checks[i].key);
		if (settled == NULL || below(stage, 4) != 0)
			continue;
		memcpy(ids[i], settled->id, sizeof ids[i]);
		checks[i].settles = ids[i];
		checks[i].peek = checks[i].reserves = false;
	}
	shard_check_judge(stage->shard, checks, count, (struct check_times){t, t});
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_zone *zone = checks[i].zone->zone;
		if (checks[i].settles != NULL) {
			bool found = model_ask_to_settle(stage, zone, checks[i].key, t, checks[i].cost, checks[i].settles);
			assert_int_equal(checks[i].state, found ? SHARD_CHECK_JUDGED : SHARD_CHECK_NO_RESERVATION);
			if (!found)
				continue;
			if (stage->alone)
				settle_at_once(stage, zone, checks[i].key, t, checks[i].cost, checks[i].settles);
			add_to_frame(stage, zone->id, true, checks[i].key, t, checks[i].cost, 0);
			struct weir_frame *open = &stage->open.frame;
			struct weir_frame_reservation *named = &stage->open.reservations[open->reservation_count++];
			*named = (struct weir_frame_reservation){.event = open->event_count - 1};
			memcpy(named->id, checks[i].settles, sizeof named->id);
			continue;
		}
		assert_int_equal(checks[i].state, SHARD_CHECK_JUDGED);
		if (follows[i])
			compare_with_next(&checks[i - 1], &checks[i]);
		assert_true(checks[i].quota.remaining >= 0 && checks[i].quota.remaining <= checks[i].quota.limit);
		if (checks[i].peek) {
			set_clock(stage, t);
			renew(stage, zone, checks[i].key);
			continue;
		}
		int answer = model_ask(stage, zone, checks[i].key, t, checks[i].cost);
		assert_int_equal(checks[i].blocked, answer);
		if (stage->alone) {
			stage->at_once->clock_ms = stage->copies->clock_ms;
			assert_int_equal(model_event(stage, stage->at_once, zone, checks[i].key, t, checks[i].cost, t, false, -1),
			                 answer);
		}
		seen_passed += answer == 0;
		seen_blocked += answer != 0;
		add_to_frame(stage, zone->id, false, checks[i].key, t, checks[i].cost, answer);
		if (checks[i].reserves && answer == 0)
			reserve(stage, &checks[i], t, scene_ttl(&stage->scene.random));
	}
	assert_int_equal(shard_checks_pending(stage->shard), stage->asked_count - stage->asked_first);
}

/* ---- the log ---- */

static void append(struct stage *stage)
{
	struct record *record = &stage->records[stage->record_count++];
	*record = (struct record){.policy = 0};
	const struct weir_policy *newest = stage->policies[stage->policy_count - 1];
	if (stage->policy_count < POLICIES && below(stage, 20) == 0) {
		record->policy = stage->policy_count++;
		stage->policies[record->policy] = scene_next_policy(&stage->scene.random, newest, &stage->next_id);
		stage->compiled[record->policy] = compiled_policy_new(stage->policies, stage->policy_count);
	} else if (below(stage, 5) == 0) {
		record->commanded = true;
		scene_command(&stage->scene, newest, &record->command, &record->at_ms);
	} else {
		scene_fill(&stage->scene, newest, &record->frame);
		if (below(stage, 3) == 0) /* of whoever had the partition before */
			scene_answer(&stage->scene, &record->frame);
	}
}

/* What another has opened may be settled here, too. */
static void follow_opening(struct stage *stage, const struct weir_frame *frame, const struct weir_frame_event *event)
{
	uint8_t id[WEIR_RESERVATION_ID_BYTES];
	weir_reservation_id(frame->source, event->position, id);
	const struct model_reservation *one = model_reserved(stage->model, id);
	if (one != NULL) /* else the same frame settles it */
		model_reserve(stage->copies, one);
}

/* The same for the second buckets: what the log says of them, but for what they have already. */
static void follow_frame(struct stage *stage, const struct weir_frame *frame, const uint8_t *verdicts, uint64_t before)
{
	uint32_t pair = 0;
	set_clock(stage, 0);
	bool own = frame->source[0] == OWN;
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		for (uint32_t j = 0; j < set->count; j++, pair++) {
			const struct weir_zone *zone = model_zone(stage->policies[stage->policy], set->zones[j].id);
			const struct weir_frame_reservation *named = model_named(frame, i);
			struct weir_span key = frame->keys[event->key];
			bool taken = zone != NULL && event->position > before;
			if (own) {
				stage->asked_first++;
			} else if (named != NULL && set->zones[j].done) {
				const struct model_correction *made = &stage->model->made[pair];
				if (!taken || !made->found)
					continue;
				model_unreserve(stage->copies, named->id);
				if (has_copy(stage, zone->id, key))
					model_settlement(stage, stage->copies, zone, key, event->time_ms, made);
				continue;
			} else if (zone != NULL && event->position > before && has_copy(stage, zone->id, frame->keys[event->key]))
				model_event(stage, stage->copies, zone, frame->keys[event->key], event->time_ms, event->cost,
				            frame->sending_time_ms, set->zones[j].done, verdicts[pair] & WEIR_VERDICT_BLOCK);
			if (!own && taken && named != NULL)
				follow_opening(stage, frame, event);
		}
	}
}

/* Before a frame of others is judged. */
static void renew_for(struct stage *stage, const struct weir_frame *frame, uint64_t before)
{
	struct model *model = stage->model;
	model->clock_ms = frame->sending_time_ms > model->clock_ms ? frame->sending_time_ms : model->clock_ms;
	model_overrides_advance(&model->overrides, frame->sending_time_ms, model->lateness_ms);
	set_clock(stage, 0);
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		for (uint32_t j = 0; event->position > before && j < set->count; j++) {
			const struct weir_zone *zone = model_zone(stage->policies[stage->policy], set->zones[j].id);
			if (zone != NULL)
				renew(stage, zone, frame->keys[event->key]);
		}
	}
}

static void take_frame(struct stage *stage, struct record *record)
{
	const struct weir_frame *frame = &record->frame.frame;
	struct shard_decision decisions[PAIRS_MAX];
	uint32_t segments[SHARD_SEGMENTS];
	struct shard_result result;
	uint64_t before = *model_position(stage->model, frame->source);
	if (frame->source[0] != OWN)
		renew_for(stage, frame, before);
	uint32_t decided = model_frame(stage->model, frame, stage->next, record->verdicts, decisions);
	shard_frame_begin(stage->shard, frame, stage->next);
	assert_int_equal(shard_missing(stage->shard, segments), 0);
	shard_frame_judge(stage->shard, &result);
	assert_int_equal(result.decision_count, decided);
	for (uint32_t i = 0; i < frame->pair_count; i++)
		assert_int_equal(weir_verdict_of(result.verdicts, i), record->verdicts[i]);
	for (uint32_t i = 0; i < decided; i++)
		assert_int_equal(result.decisions[i].until_ms, decisions[i].until_ms);
	follow_frame(stage, frame, record->verdicts, before);
	assert_int_equal(shard_checks_pending(stage->shard), stage->asked_count - stage->asked_first);
}

/* What a command has done to a bucket is done to the second one by making it anew. */
static void take_command(struct stage *stage, const struct record *record)
{
	const struct shard_override_decision *decision;
	struct weir_error error;
	const struct weir_policy *policy = stage->policies[stage->policy];
	const struct weir_zone *zone = NULL;
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (strcmp(policy->zones[i].name, record->command.zone) == 0)
			zone = &policy->zones[i];
	if (zone == NULL)
		return;
	if (shard_command_begin(stage->shard, &record->command, record->at_ms, &error) != WEIR_OK)
		return;
	struct model_published wanted = model_command(stage->model, zone, &record->command, record->at_ms);
	if (stage->asked_ms > stage->model->overrides.clock_ms)
		stage->asked_ms = stage->model->overrides.clock_ms;
	assert_int_equal(shard_command_apply(stage->shard, &decision, &error), WEIR_OK);
	assert_int_equal(decision != NULL, wanted.any);
	struct weir_span of = override_key(&record->command);
	bool of_key = record->command.scope == OVERRIDE_OF_KEY;
	if (record->command.kind == OVERRIDE_RATE || (record->command.kind == OVERRIDE_LIFT && of_key))
		model_void(stage->copies, zone->id, of_key ? &of : NULL);
	if (record->command.kind == OVERRIDE_RATE)
		outdate(stage, zone->id, of_key ? &of : NULL);
	if (record->command.scope == OVERRIDE_OF_NETWORK)
		outdate(stage, 0, NULL);
	set_clock(stage, 0);
	if (of_key && record->command.kind != OVERRIDE_RATE && has_copy(stage, zone->id, of))
		copy_anew(stage, zone, of);
}

static void take_policy(struct stage *stage, uint32_t policy)
{
	stage->policy = policy;
	shard_set_policy(stage->shard, stage->compiled[policy]);
	model_set_policy(stage->model, stage->policies[policy]);
	outdate(stage, 0, NULL);
	set_clock(stage, 0);
	model_set_policy(stage->copies, stage->policies[policy]);
}

static void take(struct stage *stage)
{
	struct record *record = &stage->records[stage->next];
	if (record->policy != 0)
		take_policy(stage, record->policy);
	else if (record->commanded)
		take_command(stage, record);
	else
		take_frame(stage, record);
	stage->next++;
}

/* ---- runs ---- */

/* Whoever reads the log alone has the same buckets. */
static void replay(struct stage *stage)
{
	struct shard *again = shard_new(&stage->options, stage->compiled[0]);
	uint32_t policy = 0;
	struct shard_result result;
	struct weir_error error;
	const struct shard_override_decision *decision;
	for (uint32_t i = 0; i < stage->next; i++) {
		struct record *record = &stage->records[i];
		if (record->policy != 0) {
			policy = record->policy;
			shard_set_policy(again, stage->compiled[policy]);
		} else if (record->commanded) {
			if (shard_command_begin(again, &record->command, record->at_ms, &error) == WEIR_OK)
				assert_int_equal(shard_command_apply(again, &decision, &error), WEIR_OK);
		} else {
			shard_frame_begin(again, &record->frame.frame, i);
			shard_frame_judge(again, &result);
		}
	}
	for (uint32_t z = 0; z < stage->policies[policy]->zone_count; z++) {
		for (int64_t k = 0; k < stage->scene.key_space; k++) {
			char key[32];
			struct shard_bucket one, other;
			struct weir_span span = {.at = key, .length = (uint32_t)scene_key(k, key)};
			uint32_t zone_id = stage->policies[policy]->zones[z].id;
			bool there = shard_read(stage->shard, zone_id, span, &one);
			assert_int_equal(shard_read(again, zone_id, span, &other), there);
			if (!there)
				continue;
			assert_true(one.decided_at_ms == other.decided_at_ms && one.decided_until_ms == other.decided_until_ms);
			for (uint32_t i = 0; i < one.limit_count; i++) {
				assert_int_equal(one.limits[i].length, other.limits[i].length);
				if (one.limits[i].length > 0)
					assert_memory_equal(one.limits[i].at, other.limits[i].at, one.limits[i].length);
			}
			shard_bucket_deinit(&one);
			shard_bucket_deinit(&other);
		}
	}
	shard_free(again);
}

static struct stage *open_stage(uint64_t seed, bool alone)
{
	struct stage *stage = weir_alloc(1, sizeof *stage);
	stage->scene = scene_new(seed);
	stage->scene.key_space = below(stage, 3) == 0 ? 1 : 12;
	stage->next_id = 100;
	stage->policies[0] = scene_policy(&stage->scene.random, 1);
	stage->policy_count = 1;
	stage->compiled[0] = compiled_policy_new(stage->policies, 1);
	stage->options = (struct shard_options){.seed = seed, .lateness_ms = !alone && below(stage, 2) ? 3000 : -1};
	stage->alone = alone;
	stage->records = weir_alloc(RECORDS, sizeof *stage->records);
	stage->model = model_new(stage->policies[0], stage->options.lateness_ms, false);
	stage->copies = model_new(stage->policies[0], stage->options.lateness_ms, false);
	stage->at_once = model_new(stage->policies[0], stage->options.lateness_ms, false);
	stage->shard = shard_new(&stage->options, stage->compiled[0]);
	uint8_t source[WEIR_SOURCE_ID_BYTES];
	memset(source, OWN, sizeof source);
	shard_checks_begin(stage->shard, source);
	send_checks(stage); /* the marker */
	return stage;
}

static void close_stage(struct stage *stage)
{
	shard_free(stage->shard);
	model_free(stage->model);
	model_free(stage->copies);
	model_free(stage->at_once);
	for (uint32_t i = 0; i < stage->policy_count; i++) {
		compiled_policy_free(stage->compiled[i]);
		free(stage->policies[i]->zones);
		free((struct weir_policy *)stage->policies[i]);
	}
	free(stage->records);
	free(stage);
}

static void run_stage(uint64_t seed, bool alone)
{
	struct stage *stage = open_stage(seed, alone);
	for (uint32_t step = 0; step < STEPS; step++) {
		switch (below(stage, 6)) {
		case 0:
		case 1: ask(stage); break;
		case 2:
			if (stage->open.frame.event_count > 0)
				send_checks(stage);
			break;
		case 3:
			if (!alone)
				append(stage);
			break;
		default:
			if (stage->next < stage->record_count)
				take(stage);
			break;
		}
		if (below(stage, 8) == 0)
			shard_sweep(stage->shard, 100);
	}
	if (stage->open.frame.event_count > 0)
		send_checks(stage);
	while (stage->next < stage->record_count)
		take(stage);
	assert_int_equal(shard_checks_pending(stage->shard), 0);
	replay(stage);
	close_stage(stage);
}

static void run_stages(bool alone)
{
	const char *from = getenv("WEIR_SEED"), *count = getenv("WEIR_SCENES");
	uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
	uint64_t scenes = count != NULL ? strtoull(count, NULL, 10) : 150;
	for (uint64_t seed = first; seed < first + scenes; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		run_stage(seed, alone);
	}
}

static void answers_and_buckets_are_those_of_the_model(void **state)
{
	(void)state;
	run_stages(false);
	assert_true(seen_passed > 0 && seen_blocked > 0 && seen_returned > 0 && seen_added > 0);
	assert_true(seen_peeked > 0 && seen_held > 0);
}

static void alone_they_are_answered_as_if_nothing_was_under_way(void **state)
{
	(void)state;
	run_stages(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_and_buckets_are_those_of_the_model),
		cmocka_unit_test(alone_they_are_answered_as_if_nothing_was_under_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
