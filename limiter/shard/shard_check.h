/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of a shard: events that are answered before they are in the log.
 *
 * A check is judged on a copy of its bucket, which has all checks that were answered and have not come back from the log
 * yet. It is in the log as it was answered, and the bucket itself changes when it comes back, as every bucket does: so
 * state stays a function of the log, and copies are in no checkpoint. What others do to a bucket meanwhile is recorded
 * in its copy too, as it was judged. A copy goes when the last check of it has come back.
 *
 * Bounded in number and bytes. Checks may be judged while a frame or a command waits, but not within shard_frame_judge().
 */
#ifndef LIMITER_SHARD_CHECK_H
#define LIMITER_SHARD_CHECK_H

#include "limiter/bucket/bucket_quota.h"
#include "limiter/check/check.h"
#include "limiter/shard/shard.h"

enum {
	SHARD_CHECKS_PENDING_MAX = 65536, /* answered, and not back from the log */
	SHARD_CHECKS_BYTES_MAX = 64 * 1024 * 1024,
	SHARD_CHECKS_WANTED_MAX = 256, /* that wait for segments */
};

enum shard_check_state {
	SHARD_CHECK_JUDGED,
	SHARD_CHECK_MISSING, /* its bucket may be in the store: load what shard_check_missing() lists, and judge it again */
	SHARD_CHECK_NO_RESERVATION, /* to settle: there is none of the id for the key, or it has ended */
	/* Too many checks are pending, or their copies too large, or, while a frame waits, memory is full: nothing was counted. */
	SHARD_CHECK_FULL,
};

/* When checks are asked, Unix ms. One that would be late for its bucket is asked at the time of the bucket's newest event. */
struct check_times {
	int64_t now_ms;
	int64_t going_ms; /* of a bucket whose newest event is after now_ms: at least that, and goes on (check_clock.h) */
};

struct shard_check {
	/* given */
	const struct compiled_zone *zone; /* in force */
	struct weir_span key;             /* joined */
	int64_t cost;
	bool peek;              /* counts nothing, and is not pending afterwards */
	bool tries;             /* becomes a peek where it is blocked */
	uint32_t beside;        /* of a peek: SHARD_CHECK_FULL unless so many checks would be taken; 0: none need be */
	bool reserves;          /* shard_reserve() follows, if it was told that it passes */
	const uint8_t *settles; /* the id of the reservation whose real cost `cost` is; NULL: none */
	/* returned */
	enum shard_check_state state;
	int64_t t;    /* its time, in the log too */
	bool blocked; /* the verdict, which the log gets, whatever the zone's mode */
	struct bucket_quota quota;
};

/**
 * Begins to take checks of a source: the next check is the first event of it.
 *
 * @param source  new: the log has no event of it
 */
void shard_checks_begin(struct shard *shard, const uint8_t source[WEIR_SOURCE_ID_BYTES]);

/** Drops all copies: nothing is asked any more, and what comes back of the source is applied like other frames. */
void shard_checks_end(struct shard *shard);

/**
 * Judges checks in order, each with those before it.
 *
 * @param count  CHECK_GROUP_MAX at most
 */
void shard_check_judge(struct shard *shard, struct shard_check *checks, uint32_t count, struct check_times times);

/**
 * Notes a reservation that a check has opened: it may be settled from now on.
 *
 * @param check  judged just now
 * @param id     weir_reservation_id() of its event
 */
void shard_reserve(struct shard *shard, const struct shard_check *check, int64_t ttl_ms, const uint8_t *id);

/**
 * Lists segments that checks wait for, with shard_load() for them as for frames.
 *
 * @param segments  room for `most` numbers
 */
uint32_t shard_check_missing(const struct shard *shard, uint32_t *segments, uint32_t most);

/** Says that no check waits any more. */
void shard_check_give_up(struct shard *shard);

/** Checks that were answered, and are not back from the log. */
uint32_t shard_checks_pending(const struct shard *shard);

#endif
