/* SPDX-License-Identifier: Apache-2.0 */
/* Of a zone's limits the one that matters to whoever asked, with what else holds him up. */
#include "limiter/bucket/bucket_quota.h"

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t penalty_until(const struct bucket_view *view, const struct weir_zone *zone)
{
	return zone->block_for_ms > 0 && view->decided != NULL ? bucket_decided_until(view) : 0;
}

/* The limit that leaves the least, the first of them on a tie. @param least  set to what it leaves */
static uint32_t least_left(const struct bucket_view *view, int64_t t, int64_t *least)
{
	uint32_t found = 0;
	*least = INT64_MAX;
	for (uint32_t i = 0; i < view->layout->limit_count; i++) {
		int64_t left = view->limits[i].shape->ops->left(&view->limits[i], t);
		if (left < *least) {
			*least = left;
			found = i;
		}
	}
	return found;
}

/* The limit that an event of cost c has to wait for the longest, the first of them on a tie. */
static uint32_t longest_wait(const struct bucket_view *view, int64_t t, int64_t c)
{
	int64_t longest = -1;
	uint32_t found = 0;
	for (uint32_t i = 0; i < view->layout->limit_count; i++) {
		int64_t passes_ms = view->limits[i].shape->ops->passes(&view->limits[i], t, c);
		if (passes_ms == WEIR_LIMIT_NEVER)
			return i;
		if (passes_ms > longest) {
			longest = passes_ms;
			found = i;
		}
	}
	return found;
}

/* @param left  what the limit leaves */
static struct bucket_quota of_limit(const struct weir_limit_view *limit, int64_t t, int64_t c, bool blocked,
                                    int64_t left)
{
	const struct weir_limit_ops *ops = limit->shape->ops;
	int64_t passes_ms = blocked ? ops->passes(limit, t, c) : WEIR_LIMIT_NEVER;
	return (struct bucket_quota){.limit = limit->shape->capacity,
	                             .window_ms = weir_limit_capacity_ms(limit->shape),
	                             .remaining = left,
	                             .retry_after_ms = passes_ms == WEIR_LIMIT_NEVER ? -1 : passes_ms - t,
	                             .reset_after_ms = ops->passes(limit, t, limit->shape->capacity) - t};
}

/* Nothing is left before a penalty, or an operator's block, is over; of a block without end that is never. */
static void hold_up(struct bucket_quota *quota, int64_t held_ms, int64_t barred_until_ms)
{
	quota->remaining = 0;
	quota->reset_after_ms = barred_until_ms >= WEIR_TIME_END_MS ? -1 : later(quota->reset_after_ms, held_ms);
}

struct bucket_quota bucket_quota(const struct bucket_view *view, const struct weir_zone *zone, int64_t t, int64_t c,
                                 bool blocked, int64_t barred_until_ms)
{
	int64_t left;
	uint32_t tightest = blocked ? longest_wait(view, t, c) : least_left(view, t, &left);
	const struct weir_limit_view *limit = &view->limits[tightest];
	if (blocked)
		left = limit->shape->ops->left(limit, t);
	struct bucket_quota quota = of_limit(limit, t, c, blocked, left);
	int64_t held_ms = blocked ? later(penalty_until(view, zone), barred_until_ms) - t : 0;
	if (held_ms <= 0)
		return quota;
	hold_up(&quota, held_ms, barred_until_ms);
	if (barred_until_ms >= WEIR_TIME_END_MS)
		quota.retry_after_ms = -1; /* without end */
	else if (quota.retry_after_ms >= 0)
		quota.retry_after_ms = later(quota.retry_after_ms, held_ms);
	return quota;
}

struct bucket_quota bucket_quota_settled(const struct bucket_view *view, const struct weir_zone *zone, int64_t t,
                                         int64_t barred_until_ms)
{
	struct bucket_quota quota = bucket_quota(view, zone, t, 1, false, 0);
	bool punished = penalty_until(view, zone) > t && bucket_decided_at(view) <= t;
	int64_t held_ms = later(punished ? penalty_until(view, zone) : 0, barred_until_ms) - t;
	if (held_ms > 0)
		hold_up(&quota, held_ms, barred_until_ms);
	return quota;
}
