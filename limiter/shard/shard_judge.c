/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a frame's events in order, each in its zones. A bucket is changed in
 * place, for which it may get a larger block first; or, if its form must change,
 * in a copy that then gets a new block.
 */
#include "limiter/bucket/bucket_fast.h"
#include "limiter/shard/shard_copies.h"
#include "limiter/shard/shard_frame.h"
#include "limiter/shard/shard_reserve.h"

#include <assert.h>

void shard_look_closer(struct shard *shard, struct lookup *lookup)
{
	if (lookup->bucket == NULL || lookup->bucket->low != lookup->low || lookup->bucket->high != lookup->high) {
		lookup->ref = shard_find_ref(shard, lookup->low, lookup->high);
		lookup->bucket = lookup->ref == 0 ? NULL : slab_at(&shard->slab, lookup->ref);
	}
	if (lookup->bucket != NULL && shard_is_forgotten(shard, lookup->bucket, shard->work.clock_ms))
		lookup->bucket = NULL;
}

static void take_block(struct shard *shard, struct lookup *lookup, uint32_t ref)
{
	lookup->ref = ref;
	lookup->bucket = slab_at(&shard->slab, ref);
}

/* The first event of an empty bucket passes if its cost is 1, whatever the limits. */
static void record_first(struct shard *shard, struct lookup *lookup, int64_t t)
{
	struct bucket header = {.low = lookup->low,
	                        .high = lookup->high & WEIR_FINGERPRINT_HIGH_MASK,
	                        .newest_ms = (uint64_t)t & WEIR_TIME_MASK,
	                        .layout = lookup->zone->layout->id & LAYOUT_NUMBER_MASK};
	take_block(shard, lookup, shard_place_single(shard, &header, lookup->ref));
}

/*
 * A frame from another writer may have a key twice in its dictionary, and so two lookups of one bucket. Judging one may
 * have moved the bucket that the other found (its old block no longer matches), or created it.
 */
static inline void settle(struct shard *shard, struct lookup *lookup)
{
	if (lookup->state == LOOKUP_GUESSED)
		shard_make_sure(shard, lookup);
	else if (lookup->bucket != NULL && __builtin_expect(lookup->bucket->low != lookup->low, 0))
		shard_look_closer(shard, lookup);
}

/*
 * The slow path.
 *
 * @param barred_ms  when the block ends by which an operator blocks the key, of a done record: this very key; 0: he does
 *                   not
 * @return whether the bucket changed
 */
static __attribute__((noinline)) bool judge_whole(struct shard *shard, struct lookup *lookup,
                                                  const struct layout *layout, int64_t t, int64_t c, bool done,
                                                  int64_t barred_ms, enum bucket_answer answer,
                                                  struct bucket_verdict *verdict)
{
	struct bucket_work work;
	verdict->bits = 0;
	if (lookup->bucket == NULL)
		shard_look_closer(shard, lookup); /* see settle() */
	if (lookup->bucket == NULL && done)
		return false;
	if (lookup->bucket == NULL && c == 1 && barred_ms == 0 && answer != ANSWER_BLOCK && layout->scale == SCALE_ONE) {
		record_first(shard, lookup, t);
		return true;
	}
	shard_open(shard, lookup->bucket, lookup->low, lookup->high, layout, c, &work);
	work.sent_ms = shard->work.frame->sending_time_ms;
	if (done)
		bucket_done(&work, lookup->zone->zone, t, barred_ms, verdict);
	else
		bucket_judge(&work, lookup->zone->zone, t, c, barred_ms != 0, answer, verdict);
	if (work.moved && work.changed)
		take_block(shard, lookup, shard_place(shard, work.view.bucket, work.view.layout, lookup->ref));
	return work.changed;
}

enum whole { WHOLE_SAME, WHOLE_CHANGED, WHOLE_UNTOUCHED };

/* The slow path of a key that an operator's override may apply to. */
static __attribute__((noinline)) enum whole judge_overridden(struct shard *shard, struct lookup *lookup,
                                                             const struct weir_frame_event *event, bool done,
                                                             enum bucket_answer answer, struct bucket_verdict *verdict)
{
	const struct compiled_zone *zone = lookup->zone;
	struct weir_span key = shard->work.frame->keys[event->key];
	struct override_effect effect =
		overrides_effect(&shard->overrides, zone->zone->id, key, event->time_ms, shard->overrides.clock_ms);
	verdict->bits = answer == ANSWER_BLOCK ? WEIR_VERDICT_BLOCK : 0;
	if (effect.allowed && !done)
		return WHOLE_UNTOUCHED;
	const struct layout *layout = shard_layout(shard, zone->layout->id, effect.thousandths);
	int64_t barred_ms = effect.blocked ? OVERRIDE_NO_END : 0;
	if (done) {
		const struct override_setting *block =
			overrides_block_after(&shard->overrides, zone->zone->id, OVERRIDE_OF_KEY, key, event->time_ms);
		barred_ms = block != NULL ? block->until_ms : 0;
	}
	bool changed = judge_whole(shard, lookup, layout, event->time_ms, event->cost, done, barred_ms, answer, verdict);
	return changed ? WHOLE_CHANGED : WHOLE_SAME;
}

/* The short way. What was answered must be what it says, else nothing is changed. */
static inline enum bucket_fast judge_fast(struct shard *shard, struct bucket *bucket, const struct compiled_zone *zone,
                                          int64_t t, enum bucket_answer answer)
{
	if (answer == ANSWER_BLOCK)
		return bucket_fast_is_blocked(bucket, zone->layout, zone->zone, t) ? FAST_BLOCKED : FAST_NOT;
	enum bucket_fast fast = bucket_fast(bucket, zone->layout, zone->zone, &shard->paces[zone->order].windows, t);
	return answer == ANSWER_PASS && fast == FAST_BLOCKED ? FAST_NOT : fast;
}

/* The short way after all, in a larger block. @return FAST_NOT: a second event that is over; the whole way is left */
static __attribute__((noinline)) enum bucket_fast judge_grown(struct shard *shard, struct lookup *lookup,
                                                              const struct compiled_zone *zone, int64_t t,
                                                              enum bucket_answer answer)
{
	take_block(shard, lookup, shard_place(shard, lookup->bucket, zone->layout, lookup->ref));
	shard_set_dirty(shard, lookup->bucket, lookup->ref);
	enum bucket_fast fast = judge_fast(shard, lookup->bucket, zone, t, answer);
	return fast == FAST_PASSED ? FAST_PASSED : FAST_NOT;
}

/* Judges one event in one zone. */
static inline __attribute__((always_inline)) void judge_pair(struct shard *shard, struct lookup *lookup,
                                                             const struct compiled_zone *zone,
                                                             const struct weir_frame_event *event, bool done,
                                                             enum bucket_answer answer, uint32_t clock_s,
                                                             struct bucket_verdict *verdict)
{
	struct bucket *bucket = lookup->bucket;
	/* What a frame has brought into memory was not used there yet. */
	bool is_known = bucket != NULL && !lookup->recalled;
	enum bucket_fast fast = FAST_NOT;
	if (bucket != NULL && event->cost == 1 && !done && bucket->layout == zone->layout->id && !lookup->overridden)
		fast = judge_fast(shard, bucket, zone, event->time_ms, answer);
	if (__builtin_expect(fast == FAST_GROW, 0)) {
		fast = judge_grown(shard, lookup, zone, event->time_ms, answer);
		bucket = lookup->bucket;
	}
	bool changed = fast == FAST_PASSED;
	verdict->bits = fast == FAST_BLOCKED ? WEIR_VERDICT_BLOCK : 0;
	if (__builtin_expect(fast == FAST_NOT, 0)) {
		enum whole whole = WHOLE_SAME;
		if (__builtin_expect(lookup->overridden, 0))
			whole = judge_overridden(shard, lookup, event, done, answer, verdict);
		else
			changed = judge_whole(shard, lookup, zone->layout, event->time_ms, event->cost, done, 0, answer, verdict);
		if (whole == WHOLE_UNTOUCHED)
			return;
		changed |= whole == WHOLE_CHANGED;
		bucket = lookup->bucket;
		if (bucket == NULL)
			return; /* there was no bucket, and none is needed */
	}
	if (!(bucket->flags & BUCKET_DIRTY) && (changed || bucket->clock_s != clock_s))
		shard_set_dirty(shard, bucket, lookup->ref);
	bucket->clock_s = clock_s;
	if (__builtin_expect(is_known, 1))
		bucket->flags |= BUCKET_USED;
}

static __attribute__((noinline)) void add_decision(struct shard *shard, uint32_t event, uint32_t pair, uint32_t place,
                                                   const struct lookup *lookup, const struct bucket_verdict *verdict)
{
	struct shard_frame *work = &shard->work;
	const struct weir_frame_event *judged = &work->frame->events[event];
	bool by_event = shard->options.count_events;
	work->decisions = shard_room_for(work, work->decisions, &work->room_decisions, work->decision_count + 1u,
	                                 sizeof *work->decisions);
	work->decisions[work->decision_count++] =
		(struct shard_decision){.event = event,
	                            .pair = pair,
	                            .id_offset = by_event ? shard->events + event - work->first_event : work->offset,
	                            .id_index = by_event ? place : pair,
	                            .kind = verdict->kind,
	                            .zone = lookup->zone,
	                            .limit = verdict->limit,
	                            .rule = verdict->rule,
	                            .key = work->frame->keys[judged->key],
	                            .at_ms = verdict->at_ms,
	                            .until_ms = verdict->until_ms,
	                            .count = verdict->count,
	                            .nth = verdict->nth};
}

/* Sets a pair's verdict. All are zero at first. */
static inline void put_verdict(uint8_t *verdicts, uint32_t pair, unsigned bits)
{
	verdicts[pair / 2] |= (uint8_t)(bits << (pair % 2 * 4));
}

/* The first lookup of an event. */
static inline uint32_t first_lookup(const struct shard_frame *work, const struct weir_frame_event *event, bool one_set)
{
	uint32_t first = work->key_first[event->key];
	if (one_set)
		return first - 1;
	while (work->runs[first].zone_set != event->zone_set)
		first = work->runs[first].next;
	return work->runs[first].first;
}

/* A settlement: no event, and without a verdict. */
static __attribute__((noinline)) void judge_settlement(struct shard *shard, struct lookup *lookup, uint32_t event,
                                                       uint32_t pair, const struct weir_frame_reservation *named)
{
	const struct weir_frame_event *settling = &shard->work.frame->events[event];
	struct bucket_correction correction;
	struct bucket_verdict verdict;
	bool found = shard_settle(shard, lookup, settling, named, &correction, &verdict);
	put_verdict(shard->work.verdicts, pair, WEIR_VERDICT_NONE);
	if (verdict.bits & WEIR_VERDICT_DECIDED)
		add_decision(shard, event, pair, 0, lookup, &verdict);
	if (found && lookup->copied)
		shard_follow_settlement(shard, lookup, settling, &correction);
}

/* Judges all events but repeats. @param pair  the number of their first pair */
static inline __attribute__((always_inline)) void judge_events(struct shard *shard, uint32_t pair, bool one_set,
                                                               bool answered)
{
	struct shard_frame *work = &shard->work;
	const struct weir_frame *frame = work->frame;
	uint32_t clock_s = shard_noted_clock(work->clock_ms), next_reservation = 0;
	for (uint32_t i = work->first_event; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_reservation *named =
			answered ? weir_frame_reservation(frame, i, &next_reservation) : NULL;
		const struct weir_frame_zone_set *set = &frame->zone_sets[one_set ? 0 : event->zone_set];
		uint32_t first = first_lookup(work, event, one_set);
		for (uint32_t j = 0; j < set->count; j++, pair++) {
			shard_look_ahead(shard, first + j);
			struct lookup *lookup = &work->lookups[first + j];
			if (lookup->alias != NO_LOOKUP)
				lookup = &work->lookups[lookup->alias];
			settle(shard, lookup);
			if (lookup->state == LOOKUP_NONE) {
				put_verdict(work->verdicts, pair, WEIR_VERDICT_NONE);
				continue;
			}
			bool done = set->zones[j].done;
			struct bucket_verdict verdict;
			if (__builtin_expect(lookup->outdated, 0))
				shard_renew_copy(shard, lookup, frame->keys[event->key]);
			if (answered && done) {
				judge_settlement(shard, lookup, i, pair, named);
				continue;
			}
			judge_pair(shard, lookup, lookup->zone, event, done,
			           answered ? bucket_answer(weir_verdict_of(frame->verdicts, pair)) : ANSWER_NONE, clock_s,
			           &verdict);
			if (__builtin_expect(lookup->copied, 0))
				shard_follow(shard, lookup, event, done, verdict.bits);
			if (answered && named != NULL)
				shard_open_reservation(shard, lookup, event, named->ttl_ms, verdict.bits,
				                       shard_is_own_frame(shard, frame));
			put_verdict(work->verdicts, pair, done ? WEIR_VERDICT_NONE : verdict.bits);
			if (verdict.bits & WEIR_VERDICT_DECIDED)
				add_decision(shard, i, pair, j, lookup, &verdict);
		}
	}
}

/* The same for frames of one zone: one lookup per event, and the zone is read once. */
static inline __attribute__((always_inline)) void judge_in_zone(struct shard *shard, uint32_t pair,
                                                                const struct compiled_zone *zone, bool follow)
{
	struct shard_frame *work = &shard->work;
	const struct weir_frame_event *events = work->frame->events;
	const uint32_t *key_first = work->key_first;
	struct lookup *lookups = work->lookups;
	uint8_t *verdicts = work->verdicts;
	uint32_t clock_s = shard_noted_clock(work->clock_ms), end = work->frame->event_count;
	for (uint32_t i = work->first_event; i < end; i++, pair++) {
		uint32_t place = key_first[events[i].key] - 1;
		struct lookup *lookup = &lookups[place];
		struct bucket_verdict verdict;
		shard_look_ahead(shard, place);
		settle(shard, lookup);
		if (follow && __builtin_expect(lookup->outdated, 0))
			shard_renew_copy(shard, lookup, work->frame->keys[events[i].key]);
		judge_pair(shard, lookup, zone, &events[i], false, ANSWER_NONE, clock_s, &verdict);
		if (follow && lookup->copied)
			shard_follow(shard, lookup, &events[i], false, verdict.bits);
		put_verdict(verdicts, pair, verdict.bits);
		if (__builtin_expect((verdict.bits & WEIR_VERDICT_DECIDED) != 0, 0))
			add_decision(shard, i, pair, 0, lookup, &verdict);
	}
}

/* Functions of their own: what a log without checks goes through stays as it would be without them. */
static __attribute__((noinline)) void judge_checks(struct shard *shard, uint32_t pair)
{
	judge_events(shard, pair, shard->work.frame->zone_set_count == 1, true);
}

static __attribute__((noinline)) void judge_beside_checks(struct shard *shard, uint32_t pair,
                                                          const struct compiled_zone *zone)
{
	judge_in_zone(shard, pair, zone, true);
}

/* Judges the frame's events. @param pair  the number of the first pair that is not a repeat */
static inline void judge_all(struct shard *shard, uint32_t pair)
{
	const struct shard_frame *work = &shard->work;
	const struct weir_frame *frame = work->frame;
	const struct compiled_zone *only_zone = shard_only_zone(work);
	bool is_plain = only_zone != NULL && !frame->zone_sets[0].zones[0].done;
	if (frame->kind == WEIR_FRAME_CHECKS)
		judge_checks(shard, pair);
	else if (is_plain && shard_has_copies(shard))
		judge_beside_checks(shard, pair, only_zone);
	else if (is_plain)
		judge_in_zone(shard, pair, only_zone, false);
	else if (frame->zone_set_count == 1)
		judge_events(shard, pair, true, false);
	else
		judge_events(shard, pair, false, false);
}

/* Sets the verdicts of repeated events. @return how many pairs they have */
static uint32_t pass_over_repeated(struct shard_frame *work)
{
	uint32_t pair = 0;
	for (uint32_t i = 0; i < work->first_event; i++)
		for (uint32_t zones = work->frame->zone_sets[work->frame->events[i].zone_set].count; zones > 0; zones--)
			put_verdict(work->verdicts, pair++, WEIR_VERDICT_NONE);
	return pair;
}

void shard_frame_judge(struct shard *shard, struct shard_result *result)
{
	struct shard_frame *work = &shard->work;
	const struct weir_frame *frame = work->frame;
	assert(frame != NULL);
	shard->clock_ms = work->clock_ms;
	uint64_t blocks_before = shard->slab.blocks;
	size_t verdict_bytes = frame->pair_count / 2 + 1u;
	work->verdicts = shard_room_for(work, work->verdicts, &work->room_pairs, verdict_bytes, 1);
	memset(work->verdicts, 0, verdict_bytes);
	uint32_t pair = pass_over_repeated(work), taken = frame->event_count - work->first_event;
	bool is_own = shard_is_own_frame(shard, frame);
	if (!is_own && shard_has_copies(shard))
		shard_mark_copied(shard);
	judge_all(shard, pair);
	if (is_own && pair < frame->pair_count)
		pending_pop(shard->checks, frame->pair_count - pair);
	shard->events += taken;
	if (taken > 0) {
		struct source_position *source = shard_source(shard, frame->source, shard->clock_ms);
		source->position = frame->events[frame->event_count - 1].position;
	}
	bool is_shared = false;
	if (frame->event_count > 0) {
		struct source_position *source = shard_source(shard, frame->source, shard->clock_ms);
		source->used_ms = shard->clock_ms;
		is_shared = weir_sender_is_shared(&source->watch, frame, shard->clock_ms);
	}
	work->frame = NULL;
	*result = (struct shard_result){.verdicts = work->verdicts,
	                                .pair_count = frame->pair_count,
	                                .decisions = work->decisions,
	                                .decision_count = work->decision_count,
	                                .events_taken = taken,
	                                .events_repeated = work->first_event,
	                                .is_shared = is_shared,
	                                .first_event = shard->events - taken,
	                                .buckets_made = (uint32_t)(shard->slab.blocks - blocks_before)};
	shard_tidy(shard);
}
