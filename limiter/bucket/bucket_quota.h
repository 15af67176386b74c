/* SPDX-License-Identifier: Apache-2.0 */
/* What a bucket leaves: for whoever asks before they serve. */
#ifndef LIMITER_BUCKET_QUOTA_H
#define LIMITER_BUCKET_QUOTA_H

#include "limiter/bucket/bucket_judge.h"

/* Of the tightest limit: where an event passed the one with the least left, else the one that lasts longest. */
struct bucket_quota {
	int64_t limit;          /* what it lets pass at most */
	int64_t window_ms;      /* in which; 0: of an algorithm that has none */
	int64_t remaining;      /* how many events of cost 1 would pass now */
	int64_t retry_after_ms; /* until the event would pass if nothing else came; -1: it passed, or it never can */
	int64_t
		reset_after_ms; /* until nothing of what was recorded counts any more; -1: an operator blocks it without end */
};

/**
 * What is left behind an event at t of cost c, which was judged and recorded.
 *
 * @param blocked          its verdict
 * @param barred_until_ms  when an operator's block of the key ends; 0: there is none
 */
struct bucket_quota bucket_quota(const struct bucket_view *view, const struct weir_zone *zone, int64_t t, int64_t c,
                                 bool blocked, int64_t barred_until_ms);

/**
 * What is left behind a settlement at t, which is never refused: as behind an event that passed, but nothing while a
 * penalty runs, or an operator blocks the key.
 */
struct bucket_quota bucket_quota_settled(const struct bucket_view *view, const struct weir_zone *zone, int64_t t,
                                         int64_t barred_until_ms);

#endif
