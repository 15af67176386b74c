/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The obvious shard: a list of buckets, each with its zone and key as bytes and
 * for every limit a plain list of times or plain numbers. What the real one
 * must give, event for event, in any order of snapshots, loads and evictions.
 * It forgets, and switches policies, by the words of the specification alone.
 */
#ifndef TESTS_UNIT_SHARD_MODEL_H
#define TESTS_UNIT_SHARD_MODEL_H

#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "common/frame/frame.h"
#include "limiter/shard/shard.h"
#include "tests/unit/limit_model.h"
#include "tests/unit/override_model.h"

#include <stdlib.h>

struct model_bucket {
	uint32_t zone_id;
	char *key;
	uint32_t key_length;
	int64_t blocked_at, blocked_until; /* -1: never */
	uint32_t nth;                      /* which block of the key that is */
	int64_t forgive_ms;                /* of its zone's list, 0: it has none */
	int64_t clock_s;
	int64_t memory_ms; /* of its zone as of its last event or policy */
	uint32_t limit_count;
	struct model_limit limits[WEIR_ZONE_LIMITS_MAX];
	int64_t thousandths; /* that its rates were multiplied by when it was judged last */
	struct weir_limit policy[WEIR_ZONE_LIMITS_MAX], own[WEIR_ZONE_LIMITS_MAX]; /* its limits, and those multiplied */
	struct model_bucket *next;
};

enum { MODEL_CHAINS = 1 << 16, MODEL_SOURCES = 64, MODEL_RESERVATIONS = 1 << 15, MODEL_PAIRS = 1 << 10 };

/* What a settlement corrects. */
struct model_correction {
	bool found;
	int64_t t, cost, more;
};

struct model {
	int64_t lateness_ms;
	bool count_events;
	const struct weir_policy *policy;
	int64_t clock_ms;
	uint64_t events;
	struct model_bucket *chains[MODEL_CHAINS];
	uint8_t sources[MODEL_SOURCES][WEIR_SOURCE_ID_BYTES];
	uint64_t positions[MODEL_SOURCES];
	uint32_t source_count;
	struct model_overrides overrides;
	struct model_reservation {
		uint8_t id[WEIR_RESERVATION_ID_BYTES];
		uint32_t zone_id;
		char key[32];
		int64_t t, cost, ends_ms, thousandths;
		bool counts;
	} reservations[MODEL_RESERVATIONS];
	uint32_t reservation_count;
	struct model_correction made[MODEL_PAIRS]; /* of the last frame's settlements, by pair */
};

static inline struct model_reservation *model_reserved(struct model *model, const uint8_t *id)
{
	for (uint32_t i = 0; i < model->reservation_count; i++)
		if (memcmp(model->reservations[i].id, id, WEIR_RESERVATION_ID_BYTES) == 0)
			return &model->reservations[i];
	return NULL;
}

static inline void model_unreserve(struct model *model, const uint8_t *id)
{
	struct model_reservation *one = model_reserved(model, id);
	if (one != NULL)
		*one = model->reservations[--model->reservation_count];
}

static inline void model_reserve(struct model *model, const struct model_reservation *one)
{
	model_unreserve(model, one->id);
	if (model->reservation_count == MODEL_RESERVATIONS)
		abort();
	model->reservations[model->reservation_count++] = *one;
}

/* @param key  of all keys of the zone, if NULL */
static inline void model_void(struct model *model, uint32_t zone_id, const struct weir_span *key)
{
	for (uint32_t i = 0; i < model->reservation_count; i++) {
		struct model_reservation *one = &model->reservations[i];
		if (one->zone_id == zone_id && (key == NULL || weir_span_equal(weir_span_of(one->key), *key)))
			one->counts = false;
	}
}

static inline struct model *model_new(const struct weir_policy *policy, int64_t lateness_ms, bool count_events)
{
	struct model *model = weir_alloc(1, sizeof *model);
	model->policy = policy;
	model->lateness_ms = lateness_ms;
	model->count_events = count_events;
	return model;
}

/* The zone's limits, multiplied as the bucket's are. */
static inline void model_adopt(struct model_bucket *bucket, const struct weir_zone *zone)
{
	bucket->limit_count = zone->limit_count;
	bucket->forgive_ms = zone->block_list_count > 0 ? zone->forgive_after_ms : 0;
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		bucket->policy[i] = zone->limits[i];
		bucket->own[i] = model_scaled(&zone->limits[i], bucket->thousandths);
		bucket->limits[i].limit = &bucket->own[i];
	}
	bucket->memory_ms = model_memory_ms(bucket->own, bucket->limit_count);
}

static inline void model_empty(struct model_bucket *bucket, const struct weir_zone *zone)
{
	for (uint32_t i = 0; i < bucket->limit_count; i++)
		model_limit_free(&bucket->limits[i]);
	memset(bucket->limits, 0, sizeof bucket->limits);
	bucket->blocked_at = bucket->blocked_until = -1;
	bucket->nth = 0;
	bucket->thousandths = 1000;
	model_adopt(bucket, zone);
}

/* Under another factor than before: limits that are not the same start empty. */
static inline void model_rescale(struct model_bucket *bucket, int64_t thousandths)
{
	bucket->thousandths = thousandths;
	for (uint32_t i = 0; i < bucket->limit_count; i++) {
		struct weir_limit scaled = model_scaled(&bucket->policy[i], thousandths);
		if (weir_limit_equal(&scaled, &bucket->own[i]))
			continue;
		model_limit_free(&bucket->limits[i]);
		bucket->own[i] = scaled;
		bucket->limits[i] = (struct model_limit){.limit = &bucket->own[i]};
	}
	bucket->memory_ms = model_memory_ms(bucket->own, bucket->limit_count);
}

static inline void model_bucket_free(struct model_bucket *bucket)
{
	for (uint32_t i = 0; i < bucket->limit_count; i++)
		model_limit_free(&bucket->limits[i]);
	free(bucket->key);
	free(bucket);
}

static inline void model_free(struct model *model)
{
	for (uint32_t i = 0; i < MODEL_CHAINS; i++) {
		while (model->chains[i] != NULL) {
			struct model_bucket *bucket = model->chains[i];
			model->chains[i] = bucket->next;
			model_bucket_free(bucket);
		}
	}
	free(model);
}

static inline bool model_forgotten(const struct model *model, const struct model_bucket *bucket)
{
	if (model->lateness_ms < 0)
		return false;
	int64_t quiet = 1000 * bucket->clock_s + bucket->memory_ms + model->lateness_ms;
	int64_t blocked = bucket->blocked_until;
	if (blocked > 0 && bucket->forgive_ms > 0)
		blocked += bucket->forgive_ms + model->lateness_ms;
	return model->clock_ms > (quiet > blocked ? quiet : blocked);
}

/* As it is, even if it is forgotten; an empty one if there is none. */
static inline struct model_bucket *model_look(struct model *model, const struct weir_zone *zone, struct weir_span key)
{
	uint64_t hash = weir_hash64(key.at, key.length) + zone->id * 7919u;
	struct model_bucket **chain = &model->chains[hash % MODEL_CHAINS];
	for (struct model_bucket *bucket = *chain; bucket != NULL; bucket = bucket->next) {
		struct weir_span own = {.at = bucket->key, .length = bucket->key_length};
		if (bucket->zone_id == zone->id && weir_span_equal(own, key))
			return bucket;
	}
	struct model_bucket *bucket = weir_alloc(1, sizeof *bucket);
	bucket->zone_id = zone->id;
	bucket->key = weir_copy(key.at, key.length);
	bucket->key_length = key.length;
	bucket->next = *chain;
	*chain = bucket;
	model_empty(bucket, zone);
	return bucket;
}

static inline struct model_bucket *model_find(struct model *model, const struct weir_zone *zone, struct weir_span key)
{
	struct model_bucket *bucket = model_look(model, zone, key);
	if (model_forgotten(model, bucket))
		model_empty(bucket, zone);
	return bucket;
}

struct model_verdict {
	unsigned bits;
	bool decided;
	enum bucket_decision kind;
	uint32_t limit, nth;
	int64_t at, until, count;
};

/* An open block ends when the limits say so, as something was freed. @param verdict  limit: of the first that was */
static inline struct model_verdict model_freed(struct model_bucket *bucket, const struct weir_zone *zone, int64_t t,
                                               int64_t held_until, bool any, struct model_verdict verdict)
{
	bool over = false;
	bool is_open = bucket->blocked_until > bucket->blocked_at && t < bucket->blocked_until;
	if (!any || !is_open || zone->block_for_ms > 0)
		return verdict;
	verdict.at = verdict.until = t > bucket->blocked_at ? t : bucket->blocked_at;
	for (uint32_t i = 0; i < bucket->limit_count; i++) {
		const struct model_limit *limit = &bucket->limits[i];
		if (model_late(limit, verdict.at))
			return verdict;
		if (!model_over(limit, verdict.at, 1))
			continue;
		over = true;
		if (model_reset(limit, verdict.at) > verdict.until) {
			verdict.until = model_reset(limit, verdict.at);
			verdict.limit = i;
		}
	}
	if (verdict.until >= bucket->blocked_until || (over && verdict.until == verdict.at))
		return verdict;
	int64_t was_until = bucket->blocked_until;
	bucket->blocked_until = over ? verdict.until : bucket->blocked_at;
	if (held_until >= was_until)
		return verdict;
	if (verdict.until < held_until)
		verdict.until = held_until;
	verdict.decided = true;
	verdict.kind = verdict.until > verdict.at ? BUCKET_SHORTENS : BUCKET_LIFTS;
	verdict.count = model_held(&bucket->limits[verdict.limit], verdict.at);
	return verdict;
}

/*
 * What a done record does, once what has left by its time is gone: it takes an entry out of each queue, and an open block
 * ends when the limits say so from then on.
 */
static inline struct model_verdict model_judge_done(struct model_bucket *bucket, const struct weir_zone *zone,
                                                    int64_t t, int64_t held_until)
{
	struct model_verdict verdict = {.bits = WEIR_VERDICT_NONE};
	bool any = false;
	for (uint32_t i = bucket->limit_count; i-- > 0;)
		if (model_done(&bucket->limits[i])) {
			any = true;
			verdict.limit = i;
		}
	return model_freed(bucket, zone, t, held_until, any, verdict);
}

static inline struct model_verdict model_correct(struct model_bucket *bucket, const struct weir_zone *zone, int64_t t,
                                                 const struct model_correction *correction, int64_t held_until)
{
	struct model_verdict verdict = {.bits = WEIR_VERDICT_NONE};
	bool any = false;
	if (correction->more == 0)
		return verdict;
	for (uint32_t i = 0; i < bucket->limit_count; i++)
		model_leave(&bucket->limits[i], t);
	for (uint32_t i = bucket->limit_count; correction->more < 0 && i-- > 0;)
		if (model_give_back(&bucket->limits[i], correction->t, correction->cost, -correction->more)) {
			any = true;
			verdict.limit = i;
		}
	for (uint32_t i = 0; correction->more > 0 && i < bucket->limit_count; i++)
		if (!model_late(&bucket->limits[i], t))
			model_record(&bucket->limits[i], t, correction->more, zone->count_all);
	return model_freed(bucket, zone, t, held_until, any, verdict);
}

/* @param answer  of a check: what was answered; -1: it is none */
static inline struct model_verdict model_judge(struct model_bucket *bucket, const struct weir_zone *zone, int64_t t,
                                               int64_t c, int64_t sent, bool done, int64_t barred_until, int answer)
{
	struct model_verdict verdict = {0};
	for (uint32_t i = 0; i < bucket->limit_count; i++)
		model_leave(&bucket->limits[i], t);
	if (done)
		return model_judge_done(bucket, zone, t, barred_until);
	bool barred = barred_until != 0;
	bool late[WEIR_ZONE_LIMITS_MAX], breached[WEIR_ZONE_LIMITS_MAX] = {false}, any = false;
	bool blocked = barred || (zone->block_for_ms > 0 && bucket->blocked_until >= 0 && bucket->blocked_at <= t &&
	                          t < bucket->blocked_until);
	for (uint32_t i = 0; i < bucket->limit_count; i++) {
		late[i] = model_late(&bucket->limits[i], t);
		if (late[i])
			verdict.bits |= WEIR_VERDICT_LATE;
		else if (model_over(&bucket->limits[i], t, c))
			blocked = true;
	}
	if (answer >= 0)
		blocked = answer & WEIR_VERDICT_BLOCK;
	for (uint32_t i = 0; blocked && !barred && i < bucket->limit_count; i++) {
		if (bucket->blocked_until < 0 || t >= bucket->blocked_until || bucket->blocked_until == bucket->blocked_at)
			breached[i] = !late[i] && model_over(&bucket->limits[i], t, 1);
		any |= breached[i];
	}
	for (uint32_t i = 0; i < bucket->limit_count; i++)
		if (!late[i] && (model_penalizes(bucket->limits[i].limit) || (c > 0 && (zone->count_all || !blocked))))
			model_record(&bucket->limits[i], t, c, zone->count_all);
	if (blocked)
		verdict.bits |= WEIR_VERDICT_BLOCK;
	if (!any)
		return verdict;
	verdict.bits |= WEIR_VERDICT_DECIDED;
	verdict.decided = true;
	verdict.at = t;
	verdict.until = -1;
	for (uint32_t i = 0; i < bucket->limit_count; i++) {
		int64_t reset = breached[i] ? model_reset(&bucket->limits[i], t) : -1;
		if (reset > verdict.until) {
			verdict.until = reset;
			verdict.limit = i;
		}
	}
	verdict.count = model_held(&bucket->limits[verdict.limit], t);
	int64_t least = zone->block_for_ms;
	bool repeats = bucket->blocked_until >= 0 && t < bucket->blocked_until + zone->forgive_after_ms;
	bucket->nth = zone->block_list_count > 0 && repeats ? bucket->nth + 1 : 1;
	if (zone->block_list_count > 0) {
		uint32_t last = zone->block_list_count;
		least = zone->block_list_ms[(bucket->nth > last ? last : bucket->nth) - 1];
		verdict.nth = bucket->nth;
	}
	int64_t from = least > 0 && sent > t + 5000 && sent <= t + 3600000 ? sent : t;
	if (verdict.until < from + least)
		verdict.until = from + least;
	bucket->blocked_at = t;
	bucket->blocked_until = verdict.until;
	return verdict;
}

/* What settling does to a reservation of the key: it is gone then. */
static inline struct model_correction model_settle(struct model *model, const uint8_t *id, uint32_t zone_id,
                                                   struct weir_span key, int64_t t, int64_t cost,
                                                   const struct model_effect *effect)
{
	const struct model_reservation *one = model_reserved(model, id);
	if (one == NULL || one->zone_id != zone_id || !weir_span_equal(weir_span_of(one->key), key) || t >= one->ends_ms)
		return (struct model_correction){.found = false};
	struct model_correction correction = {.found = true, .t = one->t, .cost = one->cost, .more = cost - one->cost};
	bool gives_back = one->counts && one->thousandths == effect->thousandths;
	if (correction.more < 0 ? !gives_back : effect->allowed)
		correction.more = 0;
	model_unreserve(model, id);
	return correction;
}

static inline void model_open(struct model *model, const uint8_t *id, const struct weir_zone *zone,
                              struct weir_span key, int64_t t, int64_t cost, int64_t ttl,
                              const struct model_effect *effect, bool blocked)
{
	struct model_reservation one = {.zone_id = zone->id,
	                                .t = t,
	                                .cost = !effect->allowed && (!blocked || zone->count_all) ? cost : 0,
	                                .ends_ms = t + ttl,
	                                .thousandths = effect->thousandths,
	                                .counts = true};
	memcpy(one.id, id, sizeof one.id);
	memcpy(one.key, key.at, key.length);
	model_reserve(model, &one);
}

static inline uint64_t *model_position(struct model *model, const uint8_t *source)
{
	for (uint32_t i = 0; i < model->source_count; i++)
		if (memcmp(model->sources[i], source, WEIR_SOURCE_ID_BYTES) == 0)
			return &model->positions[i];
	memcpy(model->sources[model->source_count], source, WEIR_SOURCE_ID_BYTES);
	return &model->positions[model->source_count++];
}

static inline const struct weir_zone *model_zone(const struct weir_policy *policy, uint32_t id)
{
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (policy->zones[i].id == id)
			return &policy->zones[i];
	return NULL;
}

static inline const struct weir_frame_reservation *model_named(const struct weir_frame *frame, uint32_t event)
{
	for (uint32_t i = 0; i < frame->reservation_count; i++)
		if (frame->reservations[i].event == event)
			return &frame->reservations[i];
	return NULL;
}

/**
 * Judges a frame.
 *
 * @param verdicts   one byte a pair
 * @param decisions  room for one a pair; zone is left NULL
 * @return decisions made
 */
static inline uint32_t model_frame(struct model *model, const struct weir_frame *frame, uint64_t offset,
                                   uint8_t *verdicts, struct shard_decision *decisions)
{
	uint32_t pair = 0, decided = 0;
	uint64_t *position = model_position(model, frame->source), held = *position;
	if (frame->sending_time_ms > model->clock_ms)
		model->clock_ms = frame->sending_time_ms;
	model_overrides_advance(&model->overrides, frame->sending_time_ms, model->lateness_ms);
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		bool taken = event->position > held;
		for (uint32_t j = 0; j < set->count; j++, pair++) {
			const struct weir_zone *zone = model_zone(model->policy, set->zones[j].id);
			verdicts[pair] = WEIR_VERDICT_NONE;
			if (!taken || zone == NULL)
				continue;
			struct weir_span key = frame->keys[event->key];
			struct model_effect effect = model_effect(&model->overrides, zone->id, key, event->time_ms,
			                                          model->overrides.clock_ms, model->lateness_ms);
			const struct weir_frame_reservation *named = model_named(frame, i);
			uint8_t id[WEIR_RESERVATION_ID_BYTES];
			weir_reservation_id(frame->source, event->position, id);
			if (named != NULL && set->zones[j].done) {
				struct model_correction correction =
					model_settle(model, named->id, zone->id, key, event->time_ms, event->cost, &effect);
				model->made[pair] = correction;
				if (!correction.found)
					continue;
				struct model_bucket *settled = model_find(model, zone, key);
				if (correction.more != 0 && settled->thousandths != effect.thousandths)
					model_rescale(settled, effect.thousandths);
				settled->clock_s = (model->clock_ms + 999) / 1000;
				struct model_verdict freed =
					model_correct(settled, zone, event->time_ms, &correction,
				                  model_blocks_key(&model->overrides, zone->id, key, event->time_ms,
				                                   model->overrides.clock_ms, model->lateness_ms));
				if (freed.decided)
					decisions[decided++] =
						(struct shard_decision){.event = i,
					                            .pair = pair,
					                            .id_offset = model->count_events ? model->events : offset,
					                            .id_index = model->count_events ? j : pair,
					                            .kind = freed.kind,
					                            .limit = freed.limit,
					                            .key = key,
					                            .at_ms = freed.at,
					                            .until_ms = freed.until,
					                            .count = freed.count};
				continue;
			}
			int answer = frame->kind == WEIR_FRAME_CHECKS ? (int)weir_verdict_of(frame->verdicts, pair) : -1;
			if (effect.allowed && !set->zones[j].done) {
				verdicts[pair] = (uint8_t)(answer > 0 ? answer : 0);
				if (named != NULL)
					model_open(model, id, zone, key, event->time_ms, event->cost, named->ttl_ms, &effect, answer > 0);
				continue;
			}
			struct model_bucket *bucket = model_find(model, zone, key);
			if (bucket->thousandths != effect.thousandths)
				model_rescale(bucket, effect.thousandths);
			bucket->clock_s = (model->clock_ms + 999) / 1000;
			bool done = set->zones[j].done;
			int64_t barred_until = effect.blocked;
			if (done)
				barred_until = model_blocks_key(&model->overrides, zone->id, key, event->time_ms,
				                                model->overrides.clock_ms, model->lateness_ms);
			struct model_verdict verdict = model_judge(bucket, zone, event->time_ms, event->cost,
			                                           frame->sending_time_ms, done, barred_until, answer);
			verdicts[pair] = (uint8_t)verdict.bits;
			if (named != NULL)
				model_open(model, id, zone, key, event->time_ms, event->cost, named->ttl_ms, &effect,
				           verdict.bits & WEIR_VERDICT_BLOCK);
			if (verdict.decided)
				decisions[decided++] =
					(struct shard_decision){.event = i,
				                            .pair = pair,
				                            .id_offset = model->count_events ? model->events : offset,
				                            .id_index = model->count_events ? j : pair,
				                            .kind = verdict.kind,
				                            .limit = verdict.limit,
				                            .key = frame->keys[event->key],
				                            .at_ms = verdict.at,
				                            .until_ms = verdict.until,
				                            .count = verdict.count,
				                            .nth = verdict.nth};
		}
		model->events += taken;
		*position = event->position > *position ? event->position : *position;
	}
	return decided;
}

/* The next policy: unchanged limits keep their state, wherever they stand in the zone now. */
static inline void model_set_policy(struct model *model, const struct weir_policy *policy)
{
	for (uint32_t i = 0; i < MODEL_CHAINS; i++) {
		struct model_bucket **at = &model->chains[i];
		while (*at != NULL) {
			struct model_bucket *bucket = *at;
			const struct weir_zone *zone = model_zone(policy, bucket->zone_id);
			if (zone == NULL || model_forgotten(model, bucket)) {
				*at = bucket->next;
				model_bucket_free(bucket);
				continue;
			}
			/* What was decided in shadow mode, no gateway was told. */
			if (model_zone(model->policy, zone->id)->mode == WEIR_SHADOW && zone->mode == WEIR_ENFORCE)
				bucket->blocked_at = bucket->blocked_until = -1;
			if (bucket->blocked_until < 0)
				bucket->nth = 0;
			struct model_limit before[WEIR_ZONE_LIMITS_MAX];
			struct weir_limit policy_before[WEIR_ZONE_LIMITS_MAX];
			uint32_t count = bucket->limit_count;
			memcpy(before, bucket->limits, sizeof before);
			memcpy(policy_before, bucket->policy, sizeof policy_before);
			memset(bucket->limits, 0, sizeof bucket->limits);
			model_adopt(bucket, zone);
			for (uint32_t j = 0; j < zone->limit_count; j++)
				for (uint32_t k = 0; k < count; k++)
					if (before[k].limit != NULL && weir_limit_equal(&policy_before[k], &zone->limits[j])) {
						bucket->limits[j] = before[k];
						bucket->limits[j].limit = &bucket->own[j];
						before[k].limit = NULL;
						break;
					}
			for (uint32_t k = 0; k < count; k++)
				if (before[k].limit != NULL)
					model_limit_free(&before[k]);
			at = &bucket->next;
		}
	}
	for (uint32_t i = 0; i < model->policy->zone_count; i++) {
		const struct weir_zone *zone = &model->policy->zones[i], *next = model_zone(policy, zone->id);
		bool same = next != NULL && zone->limit_count == next->limit_count;
		for (uint32_t j = 0; same && j < zone->limit_count; j++)
			same = weir_limit_equal(&zone->limits[j], &next->limits[j]);
		if (!same)
			model_void(model, zone->id, NULL);
	}
	model->policy = policy;
	for (uint32_t i = 0; i < model->overrides.count; i++)
		if (model_zone(policy, model->overrides.all[i].zone_id) == NULL)
			model->overrides.all[i].block_until = model->overrides.all[i].allow_until =
				model->overrides.all[i].rate_until = 0;
}

/* ---- operators ---- */

/* What a command publishes. */
struct model_published {
	bool any, lift;
	int64_t at, until;
};

static inline struct model_published model_command(struct model *model, const struct weir_zone *zone,
                                                   const struct override_command *command, int64_t at)
{
	struct weir_span key = override_key(command);
	struct model_override *override = model_override_of(&model->overrides, zone->id, command->scope, key);
	struct model_published published = {.lift = command->kind != OVERRIDE_BLOCK, .at = at, .until = at};
	if (at > model->clock_ms)
		model->clock_ms = at;
	model_overrides_advance(&model->overrides, at, model->lateness_ms);
	bool was_blocked = at < override->block_until;
	if (command->kind == OVERRIDE_BLOCK || (command->kind == OVERRIDE_ALLOW && command->until_ms > at) ||
	    (command->kind == OVERRIDE_RATE && command->thousandths != 1000))
		model->overrides.clock_ms = at;
	if (command->kind == OVERRIDE_RATE) {
		model_void(model, zone->id, command->scope == OVERRIDE_OF_KEY ? &key : NULL);
		override->rate_until = command->thousandths == 1000 ? 0 : command->until_ms;
		override->thousandths = command->thousandths;
		return published;
	}
	/* A command for a network is about no bucket. */
	struct model_bucket nobody = {.blocked_at = -1, .blocked_until = -1};
	struct model_bucket *bucket = command->scope == OVERRIDE_OF_NETWORK ? &nobody : model_find(model, zone, key);
	switch (command->kind) {
	case OVERRIDE_BLOCK:
		override->block_until = command->until_ms;
		override->allow_until = 0;
		published.any = true;
		published.until = command->until_ms > bucket->blocked_until ? command->until_ms : bucket->blocked_until;
		break;
	case OVERRIDE_LIFT:
		override->block_until = 0;
		if (command->scope == OVERRIDE_OF_KEY)
			model_void(model, zone->id, &key);
		uint32_t nth = zone->block_list_count > 0 ? bucket->nth : 0;
		int64_t began = bucket->blocked_at;
		if (nth > 0 && bucket->blocked_until > began)
			nth--;
		if (bucket != &nobody)
			model_empty(bucket, zone);
		if (nth > 0) {
			bucket->nth = nth;
			bucket->blocked_at = bucket->blocked_until = began;
			bucket->clock_s = (model->clock_ms + 999) / 1000;
		}
		published.any = true;
		break;
	default:
		override->allow_until = command->until_ms > at ? command->until_ms : 0;
		if (override->allow_until == 0)
			break;
		override->block_until = 0;
		published.any = was_blocked || bucket->blocked_until > at;
		if (bucket->blocked_until > at)
			bucket->blocked_until = bucket->blocked_at > at ? bucket->blocked_at : at;
		break;
	}
	return published;
}

#endif
