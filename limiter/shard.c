/*
 * A shard of plain lists: every bucket a node of a chain, every limit an array
 * of times or a few numbers.
 */
#include "limiter/shard.h"

#include "common/alloc.h"

#include <stdlib.h>

typedef __int128 model_wide;

static model_wide model_ceil_div(model_wide a, model_wide b)
{
	return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

static model_wide model_floor_div(model_wide a, model_wide b)
{
	return -model_ceil_div(-a, b);
}

/* ---- one limit's state ---- */

struct model_limit {
	const struct weir_limit *limit;
	bool recorded;
	int64_t *times; /* sliding_window, queue: sorted */
	size_t count;
	int64_t newest, current, previous; /* fixed_window */
	model_wide level;                  /* token_bucket: units; penalize: tokens; gcra: TAT */
	int64_t time;
};

static model_wide model_level(const struct model_limit *state, int64_t t)
{
	const struct weir_limit *limit = state->limit;
	model_wide full = (model_wide)limit->burst * limit->window_ms;
	if (!state->recorded)
		return full;
	int64_t gone = t > state->time ? t - state->time : 0;
	model_wide level = state->level + (model_wide)limit->rate * gone;
	return level < full ? level : full;
}

static model_wide model_penalized(const struct model_limit *state, int64_t t, int64_t c)
{
	const struct weir_limit *limit = state->limit;
	if (!state->recorded)
		return limit->burst - c < -1 ? -1 : limit->burst - c;
	int64_t gone = t > state->time ? t - state->time : 0;
	model_wide exact = (state->level - c) * limit->window_ms + (model_wide)limit->rate * gone;
	model_wide away = (2 * (exact < 0 ? -exact : exact) + limit->window_ms) / (2 * (model_wide)limit->window_ms);
	model_wide k = exact >= 0 ? away : -away;
	return k < -1 ? -1 : k > limit->burst ? limit->burst : k;
}

static model_wide model_tat(const struct model_limit *state, int64_t t)
{
	model_wide now = (model_wide)t * state->limit->rate;
	return state->recorded && state->level > now ? state->level : now;
}

static void model_leave(struct model_limit *state, int64_t t)
{
	if (state->limit->algorithm != WEIR_QUEUE)
		return;
	size_t kept = 0;
	for (size_t i = 0; i < state->count; i++)
		if (state->times[i] + state->limit->hold_ms > t)
			state->times[kept++] = state->times[i];
	state->count = kept;
}

static void model_done(struct model_limit *state)
{
	if (state->limit->algorithm == WEIR_QUEUE && state->count > 0)
		memmove(state->times, state->times + 1, --state->count * sizeof *state->times);
}

static bool model_late(const struct model_limit *state, int64_t t)
{
	const struct weir_limit *limit = state->limit;
	if (limit->algorithm == WEIR_SLIDING_WINDOW || limit->algorithm == WEIR_UNIFORM)
		return state->count > 0 && t <= state->times[state->count - 1] - limit->window_ms;
	if (limit->algorithm == WEIR_FIXED_WINDOW)
		return state->recorded && (t + limit->offset_ms) / limit->window_ms < state->newest - 1;
	return false;
}

static int64_t model_held(const struct model_limit *state, int64_t t)
{
	const struct weir_limit *limit = state->limit;
	int64_t held = 0;
	switch (limit->algorithm) {
	case WEIR_SLIDING_WINDOW:
	case WEIR_UNIFORM:
		for (size_t i = 0; i < state->count; i++)
			held += state->times[i] > t - limit->window_ms;
		return held;
	case WEIR_FIXED_WINDOW: {
		int64_t bucket = (t + limit->offset_ms) / limit->window_ms;
		if (!state->recorded)
			return 0;
		return bucket == state->newest ? state->current : bucket == state->newest - 1 ? state->previous : 0;
	}
	case WEIR_TOKEN_BUCKET:
		if (limit->penalize)
			return limit->burst - (int64_t)(state->level > 0 ? state->level : 0);
		return limit->burst - (int64_t)(model_level(state, t) / limit->window_ms);
	case WEIR_GCRA: {
		model_wide owed = model_ceil_div(state->level - (model_wide)t * limit->rate, limit->window_ms);
		if (!state->recorded || owed < 0)
			return 0;
		return (int64_t)(owed > limit->burst + 1 ? limit->burst + 1 : owed);
	}
	default: return (int64_t)state->count;
	}
}

static bool model_over(const struct model_limit *state, int64_t t, int64_t c)
{
	const struct weir_limit *limit = state->limit;
	switch (limit->algorithm) {
	case WEIR_SLIDING_WINDOW:
	case WEIR_UNIFORM:
	case WEIR_FIXED_WINDOW: return model_held(state, t) + c > limit->rate;
	case WEIR_TOKEN_BUCKET:
		if (limit->penalize)
			return model_penalized(state, t, c) == -1;
		return model_level(state, t) < (model_wide)c * limit->window_ms;
	case WEIR_GCRA:
		return model_tat(state, t) + (model_wide)c * limit->window_ms -
		           ((model_wide)limit->burst + 1) * limit->window_ms >
		       (model_wide)t * limit->rate;
	default: return (int64_t)state->count + c > limit->length;
	}
}

static void model_insert(struct model_limit *state, int64_t time, int64_t copies, int64_t most)
{
	if (copies > most)
		copies = most;
	state->times = weir_realloc(state->times, state->count + (size_t)copies, sizeof *state->times);
	size_t place = state->count;
	while (place > 0 && state->times[place - 1] > time)
		place--;
	memmove(state->times + place + copies, state->times + place, (state->count - place) * sizeof *state->times);
	for (int64_t i = 0; i < copies; i++)
		state->times[place + (size_t)i] = time;
	state->count += (size_t)copies;
	if (state->count > (size_t)most) {
		size_t oldest = state->count - (size_t)most;
		memmove(state->times, state->times + oldest, (size_t)most * sizeof *state->times);
		state->count = (size_t)most;
	}
}

static void model_count(struct model_limit *state, int64_t bucket, int64_t c)
{
	if (!state->recorded) {
		state->newest = bucket;
	} else if (bucket > state->newest) {
		state->previous = bucket == state->newest + 1 ? state->current : 0;
		state->current = 0;
		state->newest = bucket;
	}
	int64_t *count = bucket == state->newest ? &state->current : &state->previous;
	*count = *count + c > (INT64_C(1) << 62) ? INT64_C(1) << 62 : *count + c;
}

static void model_record(struct model_limit *state, int64_t t, int64_t c, bool blocked)
{
	const struct weir_limit *limit = state->limit;
	int64_t step = limit->precision_ms > 0 ? limit->precision_ms : 1;
	model_wide most = (model_wide)t * limit->rate + ((model_wide)limit->burst + 1) * limit->window_ms;
	switch (limit->algorithm) {
	case WEIR_SLIDING_WINDOW:
	case WEIR_UNIFORM: model_insert(state, (t + step - 1) / step * step, c, limit->rate); break;
	case WEIR_FIXED_WINDOW: model_count(state, (t + limit->offset_ms) / limit->window_ms, c); break;
	case WEIR_TOKEN_BUCKET:
		if (limit->penalize) {
			state->level = model_penalized(state, t, c);
		} else {
			state->level = model_level(state, t) - (model_wide)c * limit->window_ms;
			if (state->level < 0)
				state->level = 0;
		}
		state->time = state->recorded && state->time > t ? state->time : t;
		break;
	case WEIR_GCRA: {
		model_wide tat = model_tat(state, t) + (model_wide)c * limit->window_ms;
		if (blocked && tat > most)
			tat = most;
		if (!state->recorded || tat > state->level)
			state->level = tat;
		break;
	}
	default: model_insert(state, t, c, limit->length); break;
	}
	state->recorded = true;
}

static int64_t model_reset(const struct model_limit *state, int64_t t)
{
	const struct weir_limit *limit = state->limit;
	model_wide reset = t;
	switch (limit->algorithm) {
	case WEIR_SLIDING_WINDOW:
	case WEIR_UNIFORM:
		if (state->count >= (size_t)limit->rate)
			reset = state->times[state->count - (size_t)limit->rate] + limit->window_ms;
		break;
	case WEIR_FIXED_WINDOW:
		reset = ((t + limit->offset_ms) / limit->window_ms + 1) * limit->window_ms - limit->offset_ms;
		break;
	case WEIR_TOKEN_BUCKET:
		if (!state->recorded)
			break;
		if (limit->penalize)
			reset = state->time +
			        model_floor_div((model_wide)limit->window_ms * (1 - 2 * state->level), 2 * limit->rate) + 1;
		else
			reset = state->time + model_ceil_div(limit->window_ms - state->level, limit->rate);
		break;
	case WEIR_GCRA:
		reset = model_ceil_div(model_tat(state, t) - (model_wide)limit->burst * limit->window_ms, limit->rate);
		break;
	default:
		if (state->count >= (size_t)limit->length)
			reset = state->times[0] + limit->hold_ms;
		break;
	}
	return (int64_t)(reset > t ? reset : t);
}

static int64_t model_memory_ms(const struct weir_zone *zone)
{
	model_wide longest = 0;
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		const struct weir_limit *limit = &zone->limits[i];
		model_wide memory = 0;
		switch (limit->algorithm) {
		case WEIR_SLIDING_WINDOW: memory = limit->window_ms + limit->precision_ms; break;
		case WEIR_TOKEN_BUCKET:
			memory = model_ceil_div((model_wide)limit->burst * limit->window_ms, limit->rate);
			break;
		case WEIR_GCRA: memory = model_ceil_div(((model_wide)limit->burst + 1) * limit->window_ms, limit->rate); break;
		case WEIR_QUEUE: memory = limit->hold_ms; break;
		default: memory = limit->window_ms; break;
		}
		longest = memory > longest ? memory : longest;
	}
	return (int64_t)longest;
}

/* ---- buckets ---- */

struct model_bucket {
	uint32_t zone_id;
	char *key;
	uint32_t key_length;
	int64_t blocked_at, blocked_until; /* -1: never */
	int64_t clock_s;
	int64_t memory_ms; /* of its zone as of its last event or policy */
	uint32_t limit_count;
	struct model_limit limits[WEIR_ZONE_LIMITS_MAX];
	struct model_bucket *next;
};

enum { MODEL_CHAINS = 1 << 16, MODEL_SOURCES = 64 };

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
};

static struct model *model_new(const struct weir_policy *policy, int64_t lateness_ms, bool count_events)
{
	struct model *model = weir_alloc(1, sizeof *model);
	model->policy = policy;
	model->lateness_ms = lateness_ms;
	model->count_events = count_events;
	return model;
}

static void model_empty(struct model_bucket *bucket, const struct weir_zone *zone)
{
	for (uint32_t i = 0; i < bucket->limit_count; i++)
		free(bucket->limits[i].times);
	memset(bucket->limits, 0, sizeof bucket->limits);
	bucket->limit_count = zone->limit_count;
	for (uint32_t i = 0; i < zone->limit_count; i++)
		bucket->limits[i].limit = &zone->limits[i];
	bucket->blocked_at = bucket->blocked_until = -1;
	bucket->memory_ms = model_memory_ms(zone);
}

static void model_bucket_free(struct model_bucket *bucket)
{
	for (uint32_t i = 0; i < bucket->limit_count; i++)
		free(bucket->limits[i].times);
	free(bucket->key);
	free(bucket);
}

static void model_free(struct model *model)
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

static bool model_forgotten(const struct model *model, const struct model_bucket *bucket)
{
	if (model->lateness_ms < 0)
		return false;
	int64_t quiet = 1000 * bucket->clock_s + bucket->memory_ms + model->lateness_ms;
	return model->clock_ms > (quiet > bucket->blocked_until ? quiet : bucket->blocked_until);
}

static struct model_bucket *model_find(struct model *model, const struct weir_zone *zone, struct weir_span key)
{
	uint64_t hash = weir_hash64(key.at, key.length) + zone->id * 7919u;
	struct model_bucket **chain = &model->chains[hash % MODEL_CHAINS];
	for (struct model_bucket *bucket = *chain; bucket != NULL; bucket = bucket->next) {
		struct weir_span own = {.at = bucket->key, .length = bucket->key_length};
		if (bucket->zone_id == zone->id && weir_span_equal(own, key)) {
			if (model_forgotten(model, bucket))
				model_empty(bucket, zone);
			return bucket;
		}
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

struct model_verdict {
	unsigned bits;
	bool decided;
	uint32_t limit;
	int64_t until, count;
};

static struct model_verdict model_judge(struct model_bucket *bucket, const struct weir_zone *zone, int64_t t, int64_t c,
                                        bool done)
{
	struct model_verdict verdict = {0};
	for (uint32_t i = 0; i < bucket->limit_count; i++)
		model_leave(&bucket->limits[i], t);
	if (done) {
		for (uint32_t i = 0; i < bucket->limit_count; i++)
			model_done(&bucket->limits[i]);
		verdict.bits = WEIR_VERDICT_NONE;
		return verdict;
	}
	bool late[WEIR_ZONE_LIMITS_MAX], breached[WEIR_ZONE_LIMITS_MAX] = {false}, any = false;
	bool blocked =
		zone->block_for_ms > 0 && bucket->blocked_until >= 0 && bucket->blocked_at <= t && t < bucket->blocked_until;
	for (uint32_t i = 0; i < bucket->limit_count; i++) {
		late[i] = model_late(&bucket->limits[i], t);
		if (late[i])
			verdict.bits |= WEIR_VERDICT_LATE;
		else if (model_over(&bucket->limits[i], t, c))
			blocked = true;
	}
	for (uint32_t i = 0; blocked && i < bucket->limit_count; i++) {
		if (bucket->blocked_until < 0 || t >= bucket->blocked_until)
			breached[i] = !late[i] && model_over(&bucket->limits[i], t, 1);
		any |= breached[i];
	}
	for (uint32_t i = 0; i < bucket->limit_count; i++)
		if (!late[i] && (bucket->limits[i].limit->penalize || (c > 0 && (zone->count_all || !blocked))))
			model_record(&bucket->limits[i], t, c, blocked);
	if (blocked)
		verdict.bits |= WEIR_VERDICT_BLOCK;
	if (!any)
		return verdict;
	verdict.bits |= WEIR_VERDICT_DECIDED;
	verdict.decided = true;
	verdict.until = -1;
	for (uint32_t i = 0; i < bucket->limit_count; i++) {
		int64_t reset = breached[i] ? model_reset(&bucket->limits[i], t) : -1;
		if (reset > verdict.until) {
			verdict.until = reset;
			verdict.limit = i;
		}
	}
	verdict.count = model_held(&bucket->limits[verdict.limit], t);
	if (verdict.until < t + zone->block_for_ms)
		verdict.until = t + zone->block_for_ms;
	bucket->blocked_at = t;
	bucket->blocked_until = verdict.until;
	return verdict;
}

static uint64_t *model_position(struct model *model, const uint8_t *source)
{
	for (uint32_t i = 0; i < model->source_count; i++)
		if (memcmp(model->sources[i], source, WEIR_SOURCE_ID_BYTES) == 0)
			return &model->positions[i];
	memcpy(model->sources[model->source_count], source, WEIR_SOURCE_ID_BYTES);
	return &model->positions[model->source_count++];
}

static const struct weir_zone *model_zone(const struct weir_policy *policy, uint32_t id)
{
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (policy->zones[i].id == id)
			return &policy->zones[i];
	return NULL;
}

/**
 * Judges a frame.
 *
 * @param verdicts   one byte a pair
 * @param decisions  room for one a pair; zone is left NULL
 * @return decisions made
 */
static uint32_t model_frame(struct model *model, const struct weir_frame *frame, uint64_t offset, uint8_t *verdicts,
                            struct shard_decision *decisions)
{
	uint32_t pair = 0, decided = 0;
	uint64_t *position = model_position(model, frame->source), held = *position;
	if (frame->sending_time_ms > model->clock_ms)
		model->clock_ms = frame->sending_time_ms;
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		bool taken = event->position > held;
		for (uint32_t j = 0; j < set->count; j++, pair++) {
			const struct weir_zone *zone = model_zone(model->policy, set->zones[j].id);
			verdicts[pair] = WEIR_VERDICT_NONE;
			if (!taken || zone == NULL)
				continue;
			struct model_bucket *bucket = model_find(model, zone, frame->keys[event->key]);
			bucket->clock_s = (model->clock_ms + 999) / 1000;
			struct model_verdict verdict = model_judge(bucket, zone, event->time_ms, event->cost, set->zones[j].done);
			verdicts[pair] = (uint8_t)verdict.bits;
			if (verdict.decided)
				decisions[decided++] =
					(struct shard_decision){.event = i,
				                            .pair = pair,
				                            .id_offset = model->count_events ? model->events : offset,
				                            .id_index = model->count_events ? j : pair,
				                            .limit = verdict.limit,
				                            .key = frame->keys[event->key],
				                            .at_ms = event->time_ms,
				                            .until_ms = verdict.until,
				                            .count = verdict.count};
		}
		model->events += taken;
		*position = event->position > *position ? event->position : *position;
	}
	return decided;
}

/* The next policy: unchanged limits keep their state, wherever they stand in the zone now. */
static void model_set_policy(struct model *model, const struct weir_policy *policy)
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
			struct model_limit before[WEIR_ZONE_LIMITS_MAX];
			uint32_t count = bucket->limit_count;
			int64_t blocked_at = bucket->blocked_at, blocked_until = bucket->blocked_until;
			memcpy(before, bucket->limits, sizeof before);
			bucket->limit_count = 0;
			model_empty(bucket, zone);
			bucket->blocked_at = blocked_at;
			bucket->blocked_until = blocked_until;
			for (uint32_t j = 0; j < zone->limit_count; j++)
				for (uint32_t k = 0; k < count; k++)
					if (before[k].limit != NULL && weir_limit_equal(before[k].limit, &zone->limits[j])) {
						bucket->limits[j] = before[k];
						bucket->limits[j].limit = &zone->limits[j];
						before[k].limit = NULL;
						break;
					}
			for (uint32_t k = 0; k < count; k++)
				if (before[k].limit != NULL)
					free(before[k].times);
			at = &bucket->next;
		}
	}
	model->policy = policy;
}

struct shard {
	struct shard_options options;
	const struct rules *rules;
	struct weir_policy policy; /* the rules' zones */
	struct model *model;
	const struct weir_frame *frame;
	uint64_t offset;
	uint8_t *bytes, *verdicts;
	struct shard_decision *decisions;
};

static void take_zones(struct shard *shard, const struct rules *rules)
{
	free(shard->policy.zones);
	shard->rules = rules;
	shard->policy.zone_count = rules_zone_count(rules);
	shard->policy.zones = weir_alloc(shard->policy.zone_count, sizeof *shard->policy.zones);
	for (uint32_t i = 0; i < shard->policy.zone_count; i++)
		shard->policy.zones[i] = *rules_zone_at(rules, i)->zone;
}

struct shard *shard_new(const struct shard_options *options, const struct rules *rules)
{
	struct shard *shard = weir_alloc(1, sizeof *shard);
	shard->options = *options;
	take_zones(shard, rules);
	shard->model = model_new(&shard->policy, options->lateness_ms, options->count_events);
	return shard;
}

void shard_free(struct shard *shard)
{
	if (shard == NULL)
		return;
	model_free(shard->model);
	free(shard->policy.zones);
	free(shard->bytes);
	free(shard->verdicts);
	free(shard->decisions);
	free(shard);
}

void shard_frame_begin(struct shard *shard, const struct weir_frame *frame, uint64_t offset)
{
	shard->frame = frame;
	shard->offset = offset;
}

uint32_t shard_missing(struct shard *shard, uint32_t *segments)
{
	(void)shard;
	(void)segments;
	return 0;
}

enum weir_status shard_load(struct shard *shard, uint32_t segment, const struct weir_span *blobs, size_t count,
                            struct weir_error *error)
{
	(void)shard;
	(void)segment;
	(void)blobs;
	if (count > 0)
		return weir_fail(error, WEIR_INVALID, "a shard of plain lists reads no blobs");
	return WEIR_OK;
}

void shard_frame_judge(struct shard *shard, struct shard_result *result)
{
	const struct weir_frame *frame = shard->frame;
	shard->bytes = weir_realloc(shard->bytes, frame->pair_count + 1u, 1);
	shard->verdicts = weir_realloc(shard->verdicts, frame->pair_count / 2 + 1u, 1);
	shard->decisions = weir_realloc(shard->decisions, frame->pair_count + 1u, sizeof *shard->decisions);
	uint64_t before = shard->model->events;
	uint32_t decided = model_frame(shard->model, frame, shard->offset, shard->bytes, shard->decisions);
	memset(shard->verdicts, 0, frame->pair_count / 2 + 1u);
	for (uint32_t i = 0; i < frame->pair_count; i++)
		shard->verdicts[i / 2] |= (uint8_t)(shard->bytes[i] << (i % 2 * 4));
	for (uint32_t i = 0, pair = 0; i < decided; i++) {
		struct shard_decision *decision = &shard->decisions[i];
		const struct weir_frame_zone_set *set = NULL;
		for (uint32_t j = pair = 0; j <= decision->event; j++) {
			set = &frame->zone_sets[frame->events[j].zone_set];
			pair += set->count;
		}
		decision->zone = rules_zone(shard->rules, set->zones[decision->pair - (pair - set->count)].id);
	}
	uint32_t taken = (uint32_t)(shard->model->events - before);
	*result = (struct shard_result){.verdicts = shard->verdicts,
	                                .pair_count = frame->pair_count,
	                                .decisions = shard->decisions,
	                                .decision_count = decided,
	                                .events_taken = taken,
	                                .events_repeated = frame->event_count - taken};
	shard->frame = NULL;
}

void shard_set_rules(struct shard *shard, const struct rules *rules)
{
	take_zones(shard, rules);
	model_set_policy(shard->model, &shard->policy);
}

void shard_sweep(struct shard *shard, uint32_t budget)
{
	(void)shard;
	(void)budget;
}

void shard_snapshot(struct shard *shard, struct shard_snapshot *snapshot)
{
	(void)shard;
	*snapshot = (struct shard_snapshot){0};
}

void shard_snapshot_done(struct shard *shard, struct shard_snapshot *snapshot, bool stored)
{
	(void)shard;
	(void)snapshot;
	(void)stored;
}

size_t shard_dirty_bytes(const struct shard *shard)
{
	(void)shard;
	return 0;
}

bool shard_wants_checkpoint(const struct shard *shard)
{
	(void)shard;
	return false;
}

bool shard_is_full(const struct shard *shard)
{
	(void)shard;
	return false;
}

void shard_set_stored(struct shard *shard, uint32_t segment)
{
	(void)shard;
	(void)segment;
}

char *shard_export_extra(const struct shard *shard, size_t *length)
{
	(void)shard;
	*length = 0;
	return weir_alloc(1, 1);
}

enum weir_status shard_import_extra(struct shard *shard, struct weir_span extra, struct weir_error *error)
{
	(void)shard;
	(void)extra;
	(void)error;
	return WEIR_OK;
}

int64_t shard_clock_ms(const struct shard *shard)
{
	return shard->model->clock_ms;
}

void shard_set_clock_ms(struct shard *shard, int64_t clock_ms)
{
	shard->model->clock_ms = clock_ms;
}

void shard_stats(const struct shard *shard, struct shard_stats *stats)
{
	(void)shard;
	*stats = (struct shard_stats){0};
}
