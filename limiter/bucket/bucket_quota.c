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

/* Whether one limit is tighter than another: what a block waits for, or where less is left. */
static bool is_tighter(const struct bucket_quota *a, const struct bucket_quota *b, bool blocked)
{
	if (!blocked)
		return a->remaining < b->remaining;
	return b->retry_after_ms != -1 && (a->retry_after_ms == -1 || a->retry_after_ms > b->retry_after_ms);
}

static struct bucket_quota of_limit(const struct weir_limit_view *limit, int64_t t, int64_t c)
{
	const struct weir_limit_ops *ops = limit->shape->ops;
	int64_t passes_ms = ops->passes(limit, t, c);
	return (struct bucket_quota){.limit = limit->shape->capacity,
	                             .remaining = ops->left(limit, t),
	                             .retry_after_ms = passes_ms == WEIR_LIMIT_NEVER ? -1 : passes_ms - t,
	                             .reset_after_ms = ops->passes(limit, t, limit->shape->capacity) - t};
}

struct bucket_quota bucket_quota(const struct bucket_view *view, const struct weir_zone *zone, int64_t t, int64_t c,
                                 bool blocked, int64_t barred_until_ms)
{
	struct bucket_quota tightest = of_limit(&view->limits[0], t, c);
	tightest.window_ms = zone->limits[0].window_ms;
	for (uint32_t i = 1; i < view->layout->limit_count; i++) {
		struct bucket_quota quota = of_limit(&view->limits[i], t, c);
		quota.window_ms = zone->limits[i].window_ms;
		if (is_tighter(&quota, &tightest, blocked))
			tightest = quota;
	}
	if (!blocked) {
		tightest.retry_after_ms = -1;
		return tightest;
	}
	int64_t held_ms = later(penalty_until(view, zone), barred_until_ms) - t;
	if (held_ms <= 0)
		return tightest;
	tightest.remaining = 0;
	if (barred_until_ms >= WEIR_TIME_END_MS)
		tightest.retry_after_ms = -1; /* without end */
	else if (tightest.retry_after_ms >= 0)
		tightest.retry_after_ms = later(tightest.retry_after_ms, held_ms);
	tightest.reset_after_ms = later(tightest.reset_after_ms, held_ms);
	return tightest;
}
