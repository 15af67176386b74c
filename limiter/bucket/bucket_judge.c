/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of judging (common/specification/semantics.md, Order of tests):
 * entries leave, every limit is asked, then the event is recorded, then a
 * decision is made by what the limits say after it. Asking changes nothing, so
 * only recording and deciding can find that the block must be laid out anew;
 * they continue where they stopped.
 */
#include "limiter/bucket/bucket_judge.h"

#include "common/base/alloc.h"
#include "common/frame/frame.h"

#include <stdlib.h>

enum { SCRATCH_LEAST_BYTES = 4096 };

/* An event that was sent so long after its time is overdue; after the longer time it is history. */
enum { OVERDUE_MS = 5000, HISTORY_MS = 3600 * 1000 };

void bucket_scratch_deinit(struct bucket_scratch *scratch)
{
	free(scratch->blocks[0]);
	free(scratch->blocks[1]);
	*scratch = (struct bucket_scratch){0};
}

/* The scratch block that is not in use, of at least so many bytes. */
static struct bucket *scratch_block(struct bucket_scratch *scratch, size_t bytes)
{
	unsigned which = scratch->next;
	scratch->next = 1 - which;
	if (scratch->bytes[which] < bytes) {
		free(scratch->blocks[which]);
		scratch->bytes[which] = bytes < SCRATCH_LEAST_BYTES ? SCRATCH_LEAST_BYTES : bytes + bytes / 4;
		scratch->blocks[which] = weir_alloc(1, scratch->bytes[which]);
	}
	return scratch->blocks[which];
}

static void open_scratch(struct bucket_work *work, const struct layout *layout, unsigned form, const uint32_t *rooms)
{
	struct bucket *block = scratch_block(work->scratch, bucket_bytes(layout, form, rooms));
	bucket_init(block, layout, form, rooms);
	bucket_open(&work->view, block, layout);
	work->moved = true;
}

/* The room that an event of cost c may need in limit i on top of `held` entries. */
static uint32_t room_for(const struct weir_limit_shape *shape, uint32_t held, int64_t c)
{
	uint64_t room = (uint64_t)held + (c > 1 ? (uint64_t)(c < shape->times.most ? c : shape->times.most) : 1);
	return room < shape->times.entries_max ? (uint32_t)room : shape->times.entries_max;
}

/* Lays the bucket out anew, with more in its form and room for an event of cost c. */
static void lay_out(struct bucket_work *work, unsigned more, int64_t c)
{
	struct bucket_view from = work->view;
	uint32_t rooms[WEIR_ZONE_LIMITS_MAX];
	bucket_rooms(&from, rooms);
	unsigned form = bucket_form(from.layout, (from.bucket->flags & BUCKET_FORM) | more);
	for (uint32_t i = 0; i < from.layout->limit_count; i++)
		if (from.layout->limits[i].has_times)
			rooms[i] = room_for(&from.layout->limits[i], rooms[i], form & BUCKET_RUNS ? 1 : c);
	open_scratch(work, from.layout, form, rooms);
	bucket_copy(&work->view, &from);
	/*
	 * In the middle of an event some limits have recorded it and some have not: the bucket's own time does not say
	 * what is theirs. An empty one that gets a time of its own starts without.
	 */
	for (uint32_t i = 0; i < from.layout->limit_count; i++) {
		struct weir_limit_view *limit = &work->view.limits[i];
		bool starts = work->view.own_times != NULL && limit->shape->ops->is_empty(limit);
		limit->newest_ms = starts ? 0 : from.limits[i].newest_ms;
	}
}

void bucket_work_open(struct bucket_work *work, struct bucket_scratch *scratch, struct bucket *bucket,
                      const struct layout *layout)
{
	work->scratch = scratch;
	work->moved = work->changed = false;
	work->sent_ms = 0;
	bucket_open(&work->view, bucket, layout);
}

void bucket_work_new(struct bucket_work *work, struct bucket_scratch *scratch, const struct layout *layout, int64_t c)
{
	uint32_t rooms[WEIR_ZONE_LIMITS_MAX] = {0};
	/* A cost that goes into plain times takes few; a larger one asks for runs, where it takes one. */
	for (uint32_t i = 0; i < layout->limit_count; i++)
		if (layout->limits[i].has_times)
			rooms[i] = room_for(&layout->limits[i], 1, c < WEIR_LIMIT_PLAIN_COST_MAX ? c : 1);
	work->scratch = scratch;
	work->changed = false;
	work->sent_ms = 0;
	open_scratch(work, layout, 0, rooms);
}

/* One layout on, or to another scale: what the next one does not have is dropped, what is new in it starts empty. */
static void step_layout(struct bucket_work *work, const struct layout *next)
{
	struct bucket_view from = work->view;
	uint32_t held[WEIR_ZONE_LIMITS_MAX], rooms[WEIR_ZONE_LIMITS_MAX] = {0};
	bool is_rescaled = layout_is_rescaled(next, from.layout);
	bucket_rooms(&from, held);
	for (uint32_t i = 0; i < next->limit_count; i++)
		if (is_rescaled)
			rooms[i] = layout_same_limit(next, from.layout, i) ? held[i] : 0;
		else if (next->before[i] >= 0)
			rooms[i] = held[next->before[i]];
	unsigned form = bucket_form(next, from.bucket->flags & BUCKET_FORM);
	if (next->ends_shadow && !is_rescaled)
		form &= ~(unsigned)(BUCKET_DECIDED | BUCKET_NTH);
	open_scratch(work, next, form, rooms);
	bucket_copy(&work->view, &from);
	bucket_refresh(&work->view);
}

void bucket_work_convert(struct bucket_work *work, struct bucket_scratch *scratch, struct bucket *bucket,
                         const struct layout *from, const struct layout *to, int64_t c)
{
	if (bucket->flags & BUCKET_SINGLE) {
		bucket_work_new(work, scratch, from, c);
		bucket_expand(&work->view, bucket);
		bucket_refresh(&work->view);
	} else {
		bucket_work_open(work, scratch, bucket, from);
	}
	while (work->view.layout->next != NULL)
		step_layout(work, work->view.layout->next);
	if (work->view.layout == to)
		return;
	step_layout(work, to);
	work->changed = true;
}

/* Records in one limit, laying the bucket out anew as often as that takes. */
static void record(struct bucket_work *work, uint32_t i, int64_t t, int64_t c, bool past)
{
	for (;;) {
		struct weir_limit_view *limit = &work->view.limits[i];
		switch (limit->shape->ops->record(limit, t, c, past)) {
		case WEIR_LIMIT_NEEDS_ROOM: lay_out(work, 0, c); continue;
		case WEIR_LIMIT_NEEDS_RUNS: lay_out(work, BUCKET_RUNS, c); continue;
		case WEIR_LIMIT_NEEDS_OWN_TIME:
			lay_out(work, BUCKET_OWN_TIMES, c);
			limit->newest_ms = 0; /* it has recorded nothing: the time was that of other limits */
			weir_time_put(work->view.own_times + (size_t)WEIR_TIME_BYTES * i, 0);
			continue;
		case WEIR_LIMIT_RECORDED: break;
		}
		if (t <= limit->newest_ms || limit->shape->ops->charged_by_all)
			return;
		limit->newest_ms = t;
		if (work->view.own_times != NULL)
			weir_time_put(work->view.own_times + (size_t)WEIR_TIME_BYTES * i, t);
		return;
	}
}

/* Which block of its key a decision at t makes: a first one after all that is forgiven, and where no list counts them. */
static uint32_t find_nth(const struct bucket_view *view, const struct weir_zone *zone, int64_t t)
{
	if (zone->block_list_count == 0 || view->decided == NULL ||
	    t >= bucket_decided_until(view) + zone->forgive_after_ms)
		return 1;
	uint32_t last = decided_nth(view->decided, view->bucket->flags);
	return last < NTH_MAX ? last + 1 : last;
}

/*
 * The end of a block of at least so long. Some logs have the time at which a request began, and some collectors were
 * away: a block that began with an overdue event would be over before it is published. Nobody is blocked for history.
 */
static int64_t least_until(const struct bucket_work *work, int64_t t, int64_t block_ms)
{
	int64_t overdue_ms = work->sent_ms - t;
	bool is_overdue = block_ms > 0 && overdue_ms > OVERDUE_MS && overdue_ms <= HISTORY_MS;
	return (is_overdue ? work->sent_ms : t) + block_ms;
}

static void note_decision(struct bucket_work *work, int64_t at_ms, int64_t until_ms, uint32_t nth)
{
	unsigned form = BUCKET_DECIDED | (nth > 1 ? BUCKET_NTH : 0);
	if ((work->view.bucket->flags & form) != form)
		lay_out(work, form, 0);
	weir_time_put(work->view.decided, at_ms);
	weir_time_put(work->view.decided + WEIR_TIME_BYTES, until_ms);
	if (work->view.bucket->flags & BUCKET_NTH)
		weir_bytes_put(work->view.decided + DECIDED_BYTES, NTH_BYTES, nth);
}

/* The decision of a breach: the limit with the latest reset among those in the mask, the first of them on a tie. */
static void decide(struct bucket_work *work, const struct weir_zone *zone, unsigned breached, int64_t t,
                   struct bucket_verdict *verdict)
{
	uint32_t nth = find_nth(&work->view, zone, t);
	int64_t latest = -1, least_ms = least_until(work, t, weir_zone_block_ms(zone, nth));
	for (uint32_t i = 0; i < work->view.layout->limit_count; i++) {
		if (!(breached >> i & 1))
			continue;
		const struct weir_limit_view *limit = &work->view.limits[i];
		int64_t reset = limit->shape->ops->reset(limit, t);
		if (reset > latest) {
			latest = reset;
			verdict->limit = i;
		}
	}
	const struct weir_limit_view *limit = &work->view.limits[verdict->limit];
	verdict->kind = BUCKET_BLOCKS;
	verdict->rule = &limit->shape->limit;
	verdict->count = limit->shape->ops->held(limit, t);
	verdict->at_ms = t;
	verdict->until_ms = latest > least_ms ? latest : least_ms;
	verdict->nth = zone->block_list_count > 0 ? nth : 0;
	verdict->bits |= WEIR_VERDICT_DECIDED;
	note_decision(work, t, verdict->until_ms, nth);
}

/*
 * Whether the last decision has not ended by t. One that was taken back lasted no time: it is over at any t, also before
 * it began, as the clocks of sources differ.
 */
static bool is_decided_at(const struct bucket_view *view, int64_t t)
{
	return view->decided != NULL && bucket_decided_at(view) < bucket_decided_until(view) &&
	       t < bucket_decided_until(view);
}

/* Limits that cost 1 would be over of, if a decision may be made at t at all. */
static unsigned find_breached(const struct bucket_work *work, unsigned over, int64_t t, int64_t c)
{
	if (is_decided_at(&work->view, t))
		return 0;
	if (c == 1)
		return over;
	unsigned breached = 0;
	for (uint32_t i = 0; i < work->view.layout->limit_count; i++) {
		const struct weir_limit_view *limit = &work->view.limits[i];
		if (limit->shape->ops->judge(limit, t, 1) & WEIR_LIMIT_OVER)
			breached |= 1u << i;
	}
	return breached;
}

static void leave(struct bucket_work *work, int64_t t)
{
	for (uint32_t i = 0; i < work->view.layout->limit_count; i++) {
		const struct weir_limit_view *limit = &work->view.limits[i];
		if (limit->shape->ops->leave != NULL && limit->shape->ops->leave(limit, t))
			work->changed = true;
	}
}

static bool has_penalty(const struct bucket_work *work, const struct weir_zone *zone, int64_t t)
{
	return zone->block_for_ms > 0 && work->view.decided != NULL && bucket_decided_at(&work->view) <= t &&
	       t < bucket_decided_until(&work->view);
}

void bucket_judge(struct bucket_work *work, const struct weir_zone *zone, int64_t t, int64_t c, bool barred,
                  enum bucket_answer answer, struct bucket_verdict *verdict)
{
	const struct layout *layout = work->view.layout;
	uint32_t count = layout->limit_count;
	unsigned late = 0, over = 0;
	if (layout->has_queue)
		leave(work, t);
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_limit_view *limit = &work->view.limits[i];
		unsigned judgement = limit->shape->ops->judge(limit, t, c);
		late |= (judgement & WEIR_LIMIT_LATE ? 1u : 0u) << i;
		over |= (judgement & WEIR_LIMIT_OVER ? 1u : 0u) << i;
	}
	bool blocked = answer == ANSWER_NONE ? barred || over != 0 || has_penalty(work, zone, t) : answer == ANSWER_BLOCK;
	bool recorded = c > 0 && (!blocked || zone->count_all);
	unsigned breached = blocked && !barred ? find_breached(work, over, t, c) : 0;
	if (recorded || layout->is_charged) {
		for (uint32_t i = 0; i < count; i++) {
			if (late >> i & 1 || !(recorded || layout->limits[i].ops->charged_by_all))
				continue;
			record(work, i, t, c, zone->count_all);
			work->changed = true;
		}
		if (recorded && t > (int64_t)work->view.bucket->newest_ms)
			work->view.bucket->newest_ms = (uint64_t)t & WEIR_TIME_MASK;
	}
	verdict->bits = (blocked ? WEIR_VERDICT_BLOCK : 0) | (late != 0 ? WEIR_VERDICT_LATE : 0);
	if (breached == 0)
		return;
	bucket_refresh(&work->view);
	decide(work, zone, breached, t, verdict);
	work->changed = true;
}

void bucket_work_detach(struct bucket_work *work)
{
	if (!work->moved)
		lay_out(work, 0, 0);
}

bool bucket_peek(struct bucket_work *work, const struct weir_zone *zone, int64_t t, int64_t c)
{
	bool blocked = has_penalty(work, zone, t);
	if (work->view.layout->has_queue)
		leave(work, t);
	for (uint32_t i = 0; i < work->view.layout->limit_count; i++) {
		const struct weir_limit_view *limit = &work->view.limits[i];
		blocked |= (limit->shape->ops->judge(limit, t, c) & WEIR_LIMIT_OVER) != 0;
	}
	return blocked;
}

void bucket_keep_blocks(struct bucket_work *work, int64_t at_ms, uint32_t count)
{
	note_decision(work, at_ms, at_ms, count);
}

/* An open block: published, not over, and one that limits alone hold up. */
static bool has_open_block(const struct bucket_work *work, const struct weir_zone *zone, int64_t t)
{
	return zone->block_for_ms == 0 && is_decided_at(&work->view, t);
}

/* What the limits say of an event of cost 1 at t. */
struct answer {
	bool is_late, is_over;
	uint32_t limit;   /* the one with the latest reset among those that are over, */
	int64_t reset_ms; /* and that; t where none is over */
};

static struct answer ask_limits(const struct bucket_view *view, int64_t t)
{
	struct answer answer = {.reset_ms = t};
	for (uint32_t i = 0; i < view->layout->limit_count; i++) {
		const struct weir_limit_view *limit = &view->limits[i];
		unsigned judgement = limit->shape->ops->judge(limit, t, 1);
		answer.is_late |= (judgement & WEIR_LIMIT_LATE) != 0;
		if (!(judgement & WEIR_LIMIT_OVER))
			continue;
		answer.is_over = true;
		int64_t reset_ms = limit->shape->ops->reset(limit, t);
		if (reset_ms > answer.reset_ms) {
			answer.reset_ms = reset_ms;
			answer.limit = i;
		}
	}
	return answer;
}

/*
 * A place was freed: the open block ends when the limits let an event pass now. A limit that cannot say, as the moment
 * is too old for it, leaves the block as it is; so does one that is over and names no later moment. Where an operator
 * blocks the key, too, what was published ends with the later of both: the bucket's block must not outlast his for what
 * is done meanwhile.
 */
static void end_sooner(struct bucket_work *work, uint32_t freed, int64_t t, int64_t held_until_ms,
                       struct bucket_verdict *verdict)
{
	const struct bucket_view *view = &work->view;
	int64_t decided_at_ms = bucket_decided_at(view), decided_until_ms = bucket_decided_until(view);
	int64_t at_ms = t > decided_at_ms ? t : decided_at_ms;
	struct answer answer = ask_limits(view, at_ms);
	if (answer.is_late || answer.reset_ms >= decided_until_ms || (answer.is_over && answer.reset_ms == at_ms))
		return;
	/* A block that was lifted lasted no time: the next breach makes a decision, whatever the clocks of other sources. */
	weir_time_put(view->decided + WEIR_TIME_BYTES, answer.is_over ? answer.reset_ms : decided_at_ms);
	if (held_until_ms >= decided_until_ms)
		return; /* the operator's block alone is what was published, and stays */
	verdict->until_ms = answer.reset_ms > held_until_ms ? answer.reset_ms : held_until_ms;
	verdict->kind = verdict->until_ms > at_ms ? BUCKET_SHORTENS : BUCKET_LIFTS;
	verdict->limit = answer.is_over ? answer.limit : freed;
	const struct weir_limit_view *limit = &view->limits[verdict->limit];
	verdict->rule = &limit->shape->limit;
	verdict->count = limit->shape->ops->held(limit, at_ms);
	verdict->at_ms = at_ms;
	verdict->nth = 0;
	verdict->bits |= WEIR_VERDICT_DECIDED;
}

void bucket_done(struct bucket_work *work, const struct weir_zone *zone, int64_t t, int64_t held_until_ms,
                 struct bucket_verdict *verdict)
{
	leave(work, t);
	uint32_t freed = UINT32_MAX;
	for (uint32_t i = work->view.layout->limit_count; i-- > 0;) {
		const struct weir_limit_view *limit = &work->view.limits[i];
		if (limit->shape->ops->done != NULL && limit->shape->ops->done(limit))
			freed = i;
	}
	verdict->bits = 0;
	if (freed == UINT32_MAX)
		return;
	work->changed = true;
	if (has_open_block(work, zone, t))
		end_sooner(work, freed, t, held_until_ms, verdict);
}

static void add_more(struct bucket_work *work, const struct weir_zone *zone, int64_t t, int64_t c)
{
	for (uint32_t i = 0; i < work->view.layout->limit_count; i++) {
		const struct weir_limit_view *limit = &work->view.limits[i];
		if (!(limit->shape->ops->judge(limit, t, c) & WEIR_LIMIT_LATE))
			record(work, i, t, c, zone->count_all);
	}
	if (t > (int64_t)work->view.bucket->newest_ms)
		work->view.bucket->newest_ms = (uint64_t)t & WEIR_TIME_MASK;
	work->changed = true;
}

void bucket_correct(struct bucket_work *work, const struct weir_zone *zone, int64_t t,
                    const struct bucket_correction *correction, int64_t held_until_ms, struct bucket_verdict *verdict)
{
	uint32_t freed = UINT32_MAX;
	verdict->bits = 0;
	if (work->view.layout->has_queue)
		leave(work, t);
	if (correction->more > 0)
		add_more(work, zone, t, correction->more);
	for (uint32_t i = work->view.layout->limit_count; correction->more < 0 && i-- > 0;) {
		const struct weir_limit_view *limit = &work->view.limits[i];
		if (limit->shape->ops->give_back(limit, correction->t, correction->cost, -correction->more))
			freed = i;
	}
	if (freed == UINT32_MAX)
		return;
	work->changed = true;
	if (has_open_block(work, zone, t))
		end_sooner(work, freed, t, held_until_ms, verdict);
}
