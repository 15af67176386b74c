/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges checks on copies, and keeps copies in step with what comes from the log meanwhile.
 *
 * A copy is its bucket with all of its pending checks as they were answered. What comes from the log for the bucket is
 * recorded in both; what a command or a policy does to a bucket is not undone piece by piece, but copied again. For one that is
 * about a single bucket that is done at once. For the others it is done when the copy is needed, and its key and zone are at
 * hand: a policy that begins, an override of rates that begins, for a key or a prefix, a command for a network (the copy
 * is stale then), or an override that has ended with the time (its rates are not those of the check). Then pending checks
 * count under what is in force, as they will in the bucket.
 */
#include "limiter/bucket/bucket_fast.h"
#include "limiter/shard/shard_copies.h"
#include "limiter/shard/shard_frame.h"
#include "limiter/shard/shard_reserve.h"

#include "common/base/alloc.h"
#include "common/base/prefetch.h"

#include <assert.h>
#include <stdlib.h>

enum { TIDY_CHURN = 256 };

/* An event as a copy sees it. */
struct copy_event {
	const struct compiled_zone *zone;
	const struct layout *layout; /* the zone's, or scaled */
	int64_t t, cost, sent_ms;
	int64_t clock_ms; /* not behind a check: what is forgotten when it comes back is forgotten when it is judged */
	int64_t blocked_until_ms; /* as an operator blocks the key, or a network that it is in; 0: he does not */
	int64_t barred_until_ms;  /* the same; of what is done, whose key alone is published, of that */
	uint32_t thousandths;     /* of the zone's rates */
	bool allowed, done;
	const struct bucket_correction *correction; /* of a settlement; NULL: it is none */
	enum bucket_answer answer;
};

void shard_checks_begin(struct shard *shard, const uint8_t source[WEIR_SOURCE_ID_BYTES])
{
	shard_checks_end(shard);
	shard->checks = weir_alloc(1, sizeof *shard->checks);
	memcpy(shard->checks->source, source, WEIR_SOURCE_ID_BYTES);
	reservations_copy(&shard->checks->open, &shard->reserved);
}

void shard_checks_end(struct shard *shard)
{
	checks_free(shard->checks);
	shard->checks = NULL;
}

uint32_t shard_checks_pending(const struct shard *shard)
{
	return shard->checks == NULL ? 0 : shard->checks->pending_ring.count;
}

/*
 * The overrides' clock for copies: not behind any check, of which the log has the newest only later. Where it stood still, an
 * override would hold beyond its end as long as nobody asks.
 */
static int64_t checks_clock_ms(const struct shard *shard)
{
	int64_t clock_ms = shard->overrides.clock_ms;
	return clock_ms > shard->checks->asked_ms ? clock_ms : shard->checks->asked_ms;
}

void shard_checks_set_back(struct shard *shard)
{
	if (shard->checks != NULL && shard->checks->asked_ms > shard->overrides.clock_ms)
		shard->checks->asked_ms = shard->overrides.clock_ms;
}

/* What operators have said of the key. */
static void ask_operators(struct shard *shard, struct copy_event *event, struct weir_span key)
{
	uint32_t zone_id = event->zone->zone->id;
	event->layout = event->zone->layout;
	event->thousandths = SCALE_ONE;
	if (!overrides_any(&shard->overrides) || !overrides_touch(&shard->overrides, zone_id, key))
		return;
	struct override_effect effect = overrides_effect(&shard->overrides, zone_id, key, event->t, checks_clock_ms(shard));
	event->allowed = effect.allowed;
	event->thousandths = effect.thousandths;
	event->layout = shard_layout(shard, event->zone->layout->id, effect.thousandths);
	if (effect.blocked) {
		struct overrides_walk walk = {0};
		event->blocked_until_ms = overrides_next(&shard->overrides, zone_id, key, event->t, &walk)->block.until_ms;
	}
	event->barred_until_ms = event->blocked_until_ms;
	if (event->done) {
		const struct override_setting *block =
			overrides_block_after(&shard->overrides, zone_id, OVERRIDE_OF_KEY, key, event->t);
		event->barred_until_ms = block != NULL ? block->until_ms : 0;
	}
}

/* ---- a copy at an event ---- */

/* The short way, for what most checks are. */
static enum bucket_fast judge_fast(struct shard *shard, struct copy *copy, const struct copy_event *event)
{
	const struct compiled_zone *zone = event->zone;
	struct bucket *bucket = copy_bucket(copy);
	if (event->cost != 1 || event->done || event->answer == ANSWER_BLOCK || event->barred_until_ms != 0 ||
	    event->layout != zone->layout || (bucket != NULL && bucket->layout != zone->layout->id))
		return FAST_NOT;
	struct fast_windows *windows = &shard->paces[zone->order].windows;
	enum bucket_fast fast =
		bucket == NULL ? FAST_GROW : bucket_fast(bucket, zone->layout, zone->zone, windows, event->t);
	if (fast == FAST_GROW && copies_grow(shard->checks, copy, zone->layout))
		fast = bucket_fast(copy_bucket(copy), zone->layout, zone->zone, windows, event->t);
	return fast == FAST_GROW || (fast == FAST_BLOCKED && event->answer == ANSWER_PASS) ? FAST_NOT : fast;
}

static void correct_copy(struct bucket_work *work, const struct copy_event *event, struct bucket_verdict *verdict)
{
	if (event->correction->more != 0)
		bucket_correct(work, event->zone->zone, event->t, event->correction, event->barred_until_ms, verdict);
}

/*
 * Judges and records an event in a copy.
 *
 * @param view  set to what the bucket is now; valid until the shard judges again
 * @return the verdict's bits
 */
static unsigned judge_copy(struct shard *shard, struct copy *copy, const struct copy_event *event,
                           struct bucket_view *view)
{
	struct bucket_work work;
	struct bucket_verdict verdict = {.bits = 0};
	struct bucket *bucket = copy_bucket(copy);
	if (bucket != NULL && shard_is_forgotten(shard, bucket, event->clock_ms))
		copies_empty(shard->checks, copy);
	enum bucket_fast fast = judge_fast(shard, copy, event);
	bucket = copy_bucket(copy);
	if (fast != FAST_NOT) {
		bucket_open(view, bucket, event->layout);
		bucket->clock_s = shard_noted_clock(event->clock_ms);
		return fast == FAST_BLOCKED ? WEIR_VERDICT_BLOCK : 0;
	}
	int64_t recorded = event->correction == NULL     ? event->cost
	                   : event->correction->more > 0 ? event->correction->more
	                                                 : 1;
	shard_open(shard, bucket, copy->low, copy->high, event->layout, recorded, &work);
	work.sent_ms = event->sent_ms;
	if (event->correction != NULL)
		correct_copy(&work, event, &verdict);
	else if (event->done)
		bucket_done(&work, event->zone->zone, event->t, event->barred_until_ms, &verdict);
	else
		bucket_judge(&work, event->zone->zone, event->t, event->cost, event->barred_until_ms != 0, event->answer,
		             &verdict);
	*view = work.view;
	if (work.moved && work.changed) {
		copies_place(shard->checks, copy, work.view.bucket, work.view.layout);
		bucket = copy_bucket(copy);
		bucket_open(view, bucket, work.view.layout);
	}
	if (bucket != NULL)
		bucket->clock_s = shard_noted_clock(event->clock_ms);
	return verdict.bits;
}

/*
 * What a bucket would say of an event, without changing it: of a block what is told behind it, a decision that it would make
 * and all; of a pass, and of a block that is not to count, what is left before it. @return whether it is blocked
 */
static bool peek(struct shard *shard, struct bucket *bucket, const struct copy_event *event, bool counts,
                 struct bucket_view *view)
{
	struct bucket_work work;
	shard_open(shard, bucket, 0, 0, event->layout, event->cost, &work);
	bucket_work_detach(&work);
	work.sent_ms = event->sent_ms;
	bool barred = event->barred_until_ms != 0, over = bucket_peek(&work, event->zone->zone, event->t, event->cost);
	bool blocked = !event->allowed && (over || barred);
	if (blocked && counts && event->cost > 0) {
		struct bucket_verdict ignored = {.bits = 0};
		bucket_judge(&work, event->zone->zone, event->t, event->cost, barred, ANSWER_NONE, &ignored);
		bucket_open(&work.view, work.view.bucket, work.view.layout);
	}
	*view = work.view;
	return blocked;
}

/* Whether a limit would say nothing of an event, as it is late: then it passes, whatever was counted. */
static bool is_late(struct shard *shard, struct bucket *bucket, const struct copy_event *event)
{
	struct bucket_work work;
	shard_open(shard, bucket, 0, 0, event->layout, event->cost, &work);
	bucket_work_detach(&work);
	for (uint32_t i = 0; i < work.view.layout->limit_count; i++)
		if (work.view.limits[i].shape->ops->judge(&work.view.limits[i], event->t, 1) & WEIR_LIMIT_LATE)
			return true;
	return false;
}

/*
 * Sets the time at which a check is asked: the clock's, unless its bucket has been asked or told of what is later, by a log or
 * a limiter whose clock is ahead, or before this one was set back. Nobody passes for that.
 */
static void set_time(struct shard *shard, struct bucket *bucket, const struct check_times *times,
                     struct copy_event *event)
{
	event->t = times->now_ms;
	if (bucket == NULL || (int64_t)bucket->newest_ms <= times->now_ms)
		return;
	int64_t newest_ms = (int64_t)bucket->newest_ms;
	event->t = times->going_ms;
	if (newest_ms > event->t && is_late(shard, bucket, event))
		event->t = newest_ms;
}

/* ---- finding buckets ---- */

static struct bucket *find_bucket(struct shard *shard, uint64_t low, uint32_t high, int64_t clock_ms, bool *is_there)
{
	uint32_t ref = shard_find_ref(shard, low, high);
	if (ref == 0)
		ref = shard_recall(shard, low, high);
	*is_there = ref != 0;
	if (ref == 0)
		return NULL;
	struct bucket *bucket = slab_at(&shard->slab, ref);
	bucket->flags |= BUCKET_USED;
	return shard_is_forgotten(shard, bucket, clock_ms) ? NULL : bucket;
}

/* Those whose segments were loaded. Whoever waited has been asked again, or is told once more what to load. */
static void forget_loaded(struct shard_checks *checks)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < checks->wanted_count; i++)
		if (!checks->wanted[i].loaded)
			checks->wanted[kept++] = checks->wanted[i];
	checks->wanted_count = kept;
}

/* What is wanted of a bucket; a new entry if it is; NULL: there is none, and no room for one. */
static struct wanted_bucket *wanted(struct shard_checks *checks, uint64_t low, uint32_t high)
{
	for (uint32_t i = 0; i < checks->wanted_count; i++)
		if (checks->wanted[i].low == low && checks->wanted[i].high == high)
			return &checks->wanted[i];
	if (checks->wanted_count == SHARD_CHECKS_WANTED_MAX)
		forget_loaded(checks);
	if (checks->wanted_count == SHARD_CHECKS_WANTED_MAX)
		return NULL;
	struct wanted_bucket *made = &checks->wanted[checks->wanted_count++];
	*made = (struct wanted_bucket){.low = low, .high = high};
	return made;
}

/* Whether a bucket that is not in memory may be in the store. */
static enum shard_check_state look_in_store(struct shard *shard, uint64_t low, uint32_t high)
{
	const struct segment *segment = &shard->segments[table_segment_of(bucket_tag(low))];
	if (segment->residence == SEGMENT_WHOLE ||
	    (segment->residence == SEGMENT_PARTIAL && !filter_has(&segment->evicted, shard_filter_hash(low, high))))
		return SHARD_CHECK_JUDGED;
	struct wanted_bucket *want = wanted(shard->checks, low, high);
	if (want == NULL)
		return SHARD_CHECK_FULL;
	if (want->loaded && want->evictions == shard->evictions)
		return SHARD_CHECK_JUDGED;
	want->loaded = false; /* it was in memory, and has gone again */
	return SHARD_CHECK_MISSING;
}

uint32_t shard_check_missing(const struct shard *shard, uint32_t *segments, uint32_t most)
{
	uint32_t count = 0;
	for (uint32_t i = 0; shard->checks != NULL && i < shard->checks->wanted_count && count < most; i++) {
		const struct wanted_bucket *want = &shard->checks->wanted[i];
		uint32_t segment = shard_segment_of(want->low), j = 0;
		while (j < count && segments[j] != segment)
			j++;
		if (!want->loaded && j == count)
			segments[count++] = segment;
	}
	return count;
}

void shard_check_give_up(struct shard *shard)
{
	if (shard->checks != NULL)
		shard->checks->wanted_count = 0;
}

bool shard_check_wants(const struct shard *shard, uint64_t low, uint32_t high)
{
	for (uint32_t i = 0; shard->checks != NULL && i < shard->checks->wanted_count; i++)
		if (shard->checks->wanted[i].low == low && shard->checks->wanted[i].high == high)
			return true;
	return false;
}

void shard_check_loaded(struct shard *shard, uint32_t segment)
{
	for (uint32_t i = 0; shard->checks != NULL && i < shard->checks->wanted_count; i++) {
		struct wanted_bucket *want = &shard->checks->wanted[i];
		if (shard_segment_of(want->low) != segment)
			continue;
		want->loaded = true;
		want->evictions = shard->evictions;
	}
}

void shard_check_swap_lost(struct shard *shard)
{
	for (uint32_t i = 0; shard->checks != NULL && i < shard->checks->wanted_count; i++)
		shard->checks->wanted[i].loaded = false;
}

/* ---- asking ---- */

/* What the check needs of memory: its copy, or its bucket, or an empty one. */
struct found {
	uint32_t copy;         /* NO_COPY: there is none */
	struct bucket *bucket; /* of which there is no copy; NULL: an empty one */
};

/* Whether not so many more may be under way. @param each  how large the copies of all but the last are at most */
static bool is_full(const struct shard *shard, uint32_t more, size_t each)
{
	uint32_t most = shard->options.checks_max > 0 ? shard->options.checks_max : SHARD_CHECKS_PENDING_MAX;
	size_t copies = (more - 1) * each;
	return shard->checks->pending_ring.count + more > most ||
	       shard->checks->used_bytes + copies >= SHARD_CHECKS_BYTES_MAX;
}

/*
 * Whether a check would bring a bucket back from swap though memory has no room for it: nothing is evicted while a frame
 * waits. Those that count are bounded by how many may be pending; a peek, or what may turn out to be none, leaves no trace.
 */
static bool is_in_swap_for_want_of_room(struct shard *shard, const struct shard_check *check, uint64_t low,
                                        uint32_t high)
{
	bool is_bounded = !check->peek && !check->tries && check->settles == NULL;
	return shard->work.frame != NULL && !is_bounded && !shard_has_slack(shard) && shard_is_swapped(shard, low, high);
}

static enum shard_check_state find(struct shard *shard, const struct shard_check *check, uint64_t low, uint32_t high,
                                   int64_t clock_ms, struct found *found)
{
	bool is_there;
	found->bucket = NULL;
	found->copy = copies_find(shard->checks, low, high);
	uint32_t more = check->peek ? check->beside : 1;
	if (more > 0 && is_full(shard, more, COPY_LEAST_BYTES << (COPY_CLASSES - 1)))
		return SHARD_CHECK_FULL;
	if (check->reserves && !reservations_have_room(&shard->checks->open, low, clock_ms, CHECK_GROUP_MAX))
		return SHARD_CHECK_FULL;
	if (found->copy != NO_COPY) {
		found->bucket = copy_bucket(&shard->checks->copies[found->copy]);
		if (found->bucket != NULL && shard_is_forgotten(shard, found->bucket, clock_ms))
			found->bucket = NULL;
		return SHARD_CHECK_JUDGED;
	}
	if (is_in_swap_for_want_of_room(shard, check, low, high))
		return SHARD_CHECK_FULL;
	found->bucket = find_bucket(shard, low, high, clock_ms, &is_there);
	return is_there ? SHARD_CHECK_JUDGED : look_in_store(shard, low, high);
}

/*
 * As find(), of one that is looked at before several are counted: as large as its copy may become, so large those of the
 * others are taken for. So the largest of them finds room for all.
 */
static enum shard_check_state find_with_room(struct shard *shard, const struct shard_check *check, uint64_t low,
                                             uint32_t high, int64_t clock_ms, struct found *found)
{
	enum shard_check_state state = find(shard, check, low, high, clock_ms, found);
	if (state != SHARD_CHECK_JUDGED || !check->peek || check->beside < 2 || found->bucket == NULL)
		return state;
	size_t bytes = 2 * bucket_used(found->bucket, shard_layout_of(shard, found->bucket));
	return is_full(shard, check->beside, bytes) ? SHARD_CHECK_FULL : state;
}

/* Whether a copy is not what its bucket and its pending checks make now. @param layout  in force for its key */
static bool is_outdated(struct shard *shard, struct copy *copy, const struct layout *layout, int64_t clock_ms)
{
	const struct bucket *bucket = copy_bucket(copy);
	return copy->stale ||
	       (bucket != NULL && bucket_scale(bucket) != layout->scale && !shard_is_forgotten(shard, bucket, clock_ms));
}

/* What a settlement that has not come back will correct: what was voided since gives nothing back. */
static struct bucket_correction correction_now(const struct shard *shard, const struct pending_settlement *settlement,
                                               const struct copy_event *event)
{
	struct bucket_correction correction = settlement->correction;
	const struct reservation *found = reservations_find(&shard->reserved, settlement->id, event->t);
	bool is_void = found != NULL && (!found->counts || found->thousandths != event->thousandths);
	if (correction.more < 0 ? is_void : event->allowed)
		correction.more = 0;
	return correction;
}

/* Records in a copy a check, or settlement, that has not come back. */
static void record_pending(struct shard *shard, struct copy *copy, const struct pending_check *check,
                           const struct pending_settlement *settlement, const struct compiled_zone *zone,
                           struct weir_span key)
{
	struct bucket_view view;
	struct bucket_correction correction;
	struct copy_event event = {.zone = zone,
	                           .t = check->t,
	                           .cost = check->cost,
	                           .sent_ms = check->t,
	                           .clock_ms = shard->clock_ms > check->t ? shard->clock_ms : check->t,
	                           .done = check->settles,
	                           .answer = check->blocked ? ANSWER_BLOCK : ANSWER_PASS};
	ask_operators(shard, &event, key);
	if (settlement != NULL) {
		correction = correction_now(shard, settlement, &event);
		event.correction = &correction;
	}
	if (!event.allowed || check->settles)
		judge_copy(shard, copy, &event, &view);
}

/* Where no pending check was recorded, a copy is brought to the rates in force by itself, so that it is made but once. */
static void rescale(struct shard *shard, struct copy *copy, const struct compiled_zone *zone, struct weir_span key)
{
	struct bucket_work work;
	struct bucket *bucket = copy_bucket(copy);
	struct copy_event event = {.zone = zone, .t = shard->clock_ms};
	ask_operators(shard, &event, key);
	if (bucket == NULL || bucket_scale(bucket) == event.layout->scale)
		return;
	shard_open(shard, bucket, copy->low, copy->high, event.layout, 1, &work);
	copies_place(shard->checks, copy, work.view.bucket, work.view.layout);
}

/* Makes a copy what its bucket is with its pending checks. @param bucket  NULL: it is empty */
static void copy_anew(struct shard *shard, uint32_t number, const struct bucket *bucket,
                      const struct compiled_zone *zone, struct weir_span key)
{
	struct shard_checks *checks = shard->checks;
	struct copy *copy = &checks->copies[number];
	copy->stale = false;
	if (bucket == NULL)
		copies_empty(checks, copy);
	else
		copies_take(checks, copy, bucket, bucket_used(bucket, shard_layout_of(shard, bucket)));
	bool all = (int32_t)(copy->first_pending - checks->pending_ring.popped) >= 0; /* its first is still there */
	uint32_t i = all ? copy->first_pending - checks->pending_ring.popped : 0;
	uint32_t settled = all ? copy->first_settlement - checks->settlement_ring.popped : 0;
	for (uint32_t left = copy->pending; left > 0; i++) {
		const struct pending_check *check = &checks->pending[ring_at(&checks->pending_ring, i)];
		const struct pending_settlement *settlement =
			check->settles ? &checks->settlements[ring_at(&checks->settlement_ring, settled++)] : NULL;
		if (check->copy != number)
			continue;
		left--;
		record_pending(shard, copy, check, settlement, zone, key);
	}
	rescale(shard, copy, zone, key);
}

/* A check needs a copy that is outdated. @return as find(): its bucket may have left memory meanwhile */
static enum shard_check_state renew(struct shard *shard, const struct shard_check *check, uint64_t low, uint32_t high,
                                    int64_t clock_ms, struct found *found)
{
	bool is_there;
	struct bucket *bucket = find_bucket(shard, low, high, shard->clock_ms, &is_there);
	enum shard_check_state state = is_there ? SHARD_CHECK_JUDGED : look_in_store(shard, low, high);
	if (state != SHARD_CHECK_JUDGED)
		return state;
	copy_anew(shard, found->copy, bucket, check->zone, check->key);
	found->bucket = copy_bucket(&shard->checks->copies[found->copy]);
	if (found->bucket != NULL && shard_is_forgotten(shard, found->bucket, clock_ms))
		found->bucket = NULL;
	return SHARD_CHECK_JUDGED;
}

/* The copy of a bucket that was found; made where there is none. */
static struct copy *copy_of(struct shard *shard, struct found *found, uint64_t low, uint32_t high)
{
	if (found->copy == NO_COPY) {
		found->copy = copies_add(shard->checks, low, high);
		if (found->bucket != NULL)
			copies_take(shard->checks, &shard->checks->copies[found->copy], found->bucket,
			            bucket_used(found->bucket, shard_layout_of(shard, found->bucket)));
	}
	return &shard->checks->copies[found->copy];
}

/* A settlement: it is no event, and never refused. */
static void settle_one(struct shard *shard, struct shard_check *check, struct found *found, uint64_t low, uint32_t high,
                       const struct check_times *times, struct copy_event *event)
{
	struct shard_checks *checks = shard->checks;
	struct bucket_view view;
	struct pending_settlement settlement;
	set_time(shard, found->bucket, times, event);
	check->t = event->t;
	struct override_effect effect = {.allowed = event->allowed, .thousandths = event->thousandths};
	if (!shard_find_correction(&checks->open, check->settles, low, high, event->t, check->cost, &effect,
	                           &settlement.correction)) {
		check->state = SHARD_CHECK_NO_RESERVATION;
		return;
	}
	memcpy(settlement.id, check->settles, sizeof settlement.id);
	reservations_remove(&checks->open, check->settles);
	event->correction = &settlement.correction;
	struct copy *copy = copy_of(shard, found, low, high);
	(void)judge_copy(shard, copy, event, &view);
	event->correction = NULL; /* it ends with this function */
	event->done = false;
	event->cost = 1;
	/* Entries of a queue may have left that a settlement without a change did not meet. */
	(void)peek(shard, copy_bucket(copy), event, false, &view);
	check->blocked = false;
	check->quota = event->allowed ? bucket_quota(&view, check->zone->zone, event->t, 1, false, 0)
	                              : bucket_quota_settled(&view, check->zone->zone, event->t, event->blocked_until_ms);
	pending_push(checks, &(struct pending_check){.t = event->t, .cost = check->cost, .copy = found->copy}, &settlement);
}

static void judge_one(struct shard *shard, struct shard_check *check, uint64_t low, uint32_t high,
                      const struct check_times *times)
{
	struct shard_checks *checks = shard->checks;
	int64_t t = times->now_ms, clock_ms = shard->clock_ms > t ? shard->clock_ms : t;
	struct copy_event event = {.zone = check->zone, .t = t, .cost = check->cost, .sent_ms = t, .clock_ms = clock_ms};
	struct found found;
	struct bucket_view view;
	check->state = find_with_room(shard, check, low, high, clock_ms, &found);
	if (check->state != SHARD_CHECK_JUDGED)
		return;
	event.done = check->settles != NULL;
	ask_operators(shard, &event, check->key);
	if (found.copy != NO_COPY && is_outdated(shard, &checks->copies[found.copy], event.layout, clock_ms)) {
		check->state = renew(shard, check, low, high, clock_ms, &found);
		if (check->state != SHARD_CHECK_JUDGED)
			return;
	}
	if (check->settles != NULL) {
		settle_one(shard, check, &found, low, high, times, &event);
		return;
	}
	set_time(shard, found.bucket, times, &event);
	check->t = event.t;
	bool tried = check->tries && peek(shard, found.bucket, &event, false, &view);
	check->peek |= tried;
	if (!check->peek)
		(void)copy_of(shard, &found, low, high);
	if (tried)
		check->blocked = true;
	else if (check->peek || event.allowed)
		check->blocked = peek(shard, found.bucket, &event, true, &view);
	else
		check->blocked = judge_copy(shard, &checks->copies[found.copy], &event, &view) & WEIR_VERDICT_BLOCK;
	check->quota = bucket_quota(&view, check->zone->zone, event.t, check->cost, check->blocked, event.barred_until_ms);
	if (!check->peek)
		pending_push(
			checks,
			&(struct pending_check){.t = event.t, .cost = check->cost, .copy = found.copy, .blocked = check->blocked},
			NULL);
}

/* The checks of a group, each with where its bucket may be. What is read of each is prefetched as shard_frame.h says. */
struct looking {
	struct looked {
		uint64_t low; /* fingerprint */
		uint32_t high;
		const char *bucket; /* by its tag alone; NULL: there is none, or there is a copy */
	} at[CHECK_GROUP_MAX];
	uint32_t count, asked, guessed, fetched;
};

static uint32_t look_end(const struct looking *looking, uint32_t first)
{
	return first + AHEAD_GROUP < looking->count ? first + AHEAD_GROUP : looking->count;
}

static void ask_for_lines(const struct shard *shard, struct looking *looking)
{
	for (uint32_t end = look_end(looking, looking->asked); looking->asked < end; looking->asked++) {
		uint64_t low = looking->at[looking->asked].low;
		copies_prefetch(shard->checks, low);
		table_prefetch(&shard->table, bucket_tag(low));
	}
}

static void ask_for_blocks(const struct shard *shard, struct looking *looking)
{
	for (uint32_t end = look_end(looking, looking->guessed); looking->guessed < end; looking->guessed++) {
		struct looked *at = &looking->at[looking->guessed];
		at->bucket = NULL;
		if (copies_prefetch_found(shard->checks, at->low))
			continue;
		uint32_t ref = table_find(&shard->table, bucket_tag(at->low), 0);
		if (ref == 0)
			continue;
		at->bucket = slab_at(&shard->slab, ref);
		weir_prefetch_far(at->bucket);
	}
}

/* @param next  the check whose turn it is: those before it have taken their copies */
static void ask_for_rest(const struct shard *shard, struct looking *looking, uint32_t next)
{
	for (uint32_t end = look_end(looking, looking->fetched); looking->fetched < end; looking->fetched++) {
		const char *bucket = looking->at[looking->fetched].bucket;
		copies_prefetch_free(shard->checks, looking->fetched - next);
		if (bucket == NULL)
			continue;
		weir_prefetch_far(bucket + 63);
		weir_prefetch_far(bucket + 95);
	}
}

static void look_ahead(const struct shard *shard, struct looking *looking, uint32_t next)
{
	while (looking->asked < next + AHEAD_LINE && looking->asked < looking->count)
		ask_for_lines(shard, looking);
	while (looking->guessed < next + AHEAD_BLOCK && looking->guessed < looking->count)
		ask_for_blocks(shard, looking);
	while (looking->fetched < next + AHEAD_REST && looking->fetched < looking->count)
		ask_for_rest(shard, looking, next);
}

void shard_check_judge(struct shard *shard, struct shard_check *checks, uint32_t count, struct check_times times)
{
	struct looking looking;
	assert(shard->checks != NULL && count <= CHECK_GROUP_MAX);
	looking.count = count;
	looking.asked = looking.guessed = looking.fetched = 0;
	if (times.now_ms > shard->checks->asked_ms)
		shard->checks->asked_ms = times.now_ms;
	for (uint32_t i = 0; i < count; i++) {
		struct weir_fingerprint print = weir_fingerprint(shard->options.seed, checks[i].zone->zone->id, checks[i].key);
		looking.at[i].low = print.low;
		looking.at[i].high = print.high;
	}
	for (uint32_t i = 0; i < count; i++) {
		look_ahead(shard, &looking, i);
		judge_one(shard, &checks[i], looking.at[i].low, looking.at[i].high, &times);
	}
	if (shard->work.frame == NULL && shard->churn > TIDY_CHURN) /* what was asked for may have come into memory */
		shard_tidy(shard);
}

void shard_reserve(struct shard *shard, const struct shard_check *check, int64_t ttl_ms, const uint8_t *id)
{
	struct weir_fingerprint print = weir_fingerprint(shard->options.seed, check->zone->zone->id, check->key);
	struct copy_event event = {.zone = check->zone, .t = check->t};
	ask_operators(shard, &event, check->key);
	bool recorded = !event.allowed && (!check->blocked || check->zone->zone->count_all);
	struct reservation one = {
		.low = print.low,
		.high = print.high,
		.t = check->t,
		.cost = recorded ? check->cost : 0,
		.ends_ms = check->t + ttl_ms,
		.zone_id = check->zone->zone->id,
		.thousandths = event.thousandths,
		.counts = true,
	};
	memcpy(one.id, id, sizeof one.id);
	(void)reservations_add(&shard->checks->open, &one); /* there was room when it was judged */
}

/* ---- the log ---- */

void shard_mark_copied(struct shard *shard)
{
	struct shard_frame *work = &shard->work;
	for (uint32_t i = 0; i < work->lookup_count; i++) {
		struct lookup *lookup = &work->lookups[i];
		uint32_t number =
			lookup->state == LOOKUP_NONE ? NO_COPY : copies_find(shard->checks, lookup->low, lookup->high);
		lookup->copied = number != NO_COPY;
		if (number == NO_COPY)
			continue;
		struct copy *copy = &shard->checks->copies[number];
		const struct bucket *bucket = copy_bucket(copy);
		lookup->outdated =
			copy->stale || overrides_any(&shard->overrides) || (bucket != NULL && (bucket->layout & LAYOUT_SCALED));
	}
}

/* What an event of the waiting frame is to a bucket's copy. */
static struct copy_event followed(struct shard *shard, const struct lookup *lookup,
                                  const struct weir_frame_event *event, bool done)
{
	struct copy_event one = {.zone = lookup->zone,
	                         .t = event->time_ms,
	                         .cost = event->cost,
	                         .sent_ms = shard->work.frame->sending_time_ms,
	                         .clock_ms = shard->clock_ms,
	                         .done = done};
	ask_operators(shard, &one, shard->work.frame->keys[event->key]);
	return one;
}

static struct copy *copy_of_lookup(const struct shard *shard, const struct lookup *lookup)
{
	return &shard->checks->copies[copies_find(shard->checks, lookup->low, lookup->high)];
}

/* Whatever the frame needs is in memory by now. */
void shard_renew_copy(struct shard *shard, const struct lookup *lookup, struct weir_span key)
{
	struct copy_event event = {.zone = lookup->zone, .t = shard->clock_ms};
	uint32_t number = copies_find(shard->checks, lookup->low, lookup->high);
	ask_operators(shard, &event, key);
	if (!is_outdated(shard, &shard->checks->copies[number], event.layout, shard->clock_ms))
		return;
	uint32_t ref = shard_find_ref(shard, lookup->low, lookup->high);
	struct bucket *bucket = ref == 0 ? NULL : slab_at(&shard->slab, ref);
	bool is_forgotten = bucket != NULL && shard_is_forgotten(shard, bucket, shard->clock_ms);
	copy_anew(shard, number, is_forgotten ? NULL : bucket, lookup->zone, key);
}

void shard_follow(struct shard *shard, const struct lookup *lookup, const struct weir_frame_event *event, bool done,
                  unsigned bits)
{
	struct bucket_view view;
	struct copy_event one = followed(shard, lookup, event, done);
	struct copy *copy = copy_of_lookup(shard, lookup);
	one.answer = bucket_answer(bits);
	if ((one.allowed && !done) || (copy_bucket(copy) == NULL && done))
		return;
	judge_copy(shard, copy, &one, &view);
}

void shard_follow_settlement(struct shard *shard, const struct lookup *lookup, const struct weir_frame_event *event,
                             const struct bucket_correction *correction)
{
	struct bucket_view view;
	struct copy_event one = followed(shard, lookup, event, true);
	one.correction = correction;
	judge_copy(shard, copy_of_lookup(shard, lookup), &one, &view);
}

void shard_copy_again(struct shard *shard, const struct compiled_zone *zone, struct weir_span key)
{
	struct weir_fingerprint print = weir_fingerprint(shard->options.seed, zone->zone->id, key);
	uint32_t number = shard->checks == NULL ? NO_COPY : copies_find(shard->checks, print.low, print.high);
	bool is_there;
	if (number != NO_COPY)
		copy_anew(shard, number, find_bucket(shard, print.low, print.high, shard->clock_ms, &is_there), zone, key);
}
