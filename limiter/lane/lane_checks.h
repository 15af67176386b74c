/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answering checks for a lane: names of zones become zones, answers become frames.
 *
 *   lane_checks_open     gives the marker, a check frame without events, to append to the partition's log
 *   (the marker comes back through lane_offer(): all that was in the log is judged, and LANE_CHECKS_READY)
 *   lane_check           answers; the events are in the open frame
 *   lane_checks_frame    closes it, to append, in this order and without a gap
 *
 * Whoever takes the partition next has a higher epoch, and its marker ends this: LANE_CHECKS_OVER. The lane's thread.
 */
#ifndef LIMITER_LANE_CHECKS_H
#define LIMITER_LANE_CHECKS_H

#include "limiter/check/check.h"
#include "limiter/lane/check_clock.h"
#include "limiter/lane/lane.h"

enum lane_checks_state {
	LANE_CHECKS_OFF,     /* lane_checks_open() was not called, or it was closed */
	LANE_CHECKS_OPENING, /* the marker is under way */
	LANE_CHECKS_READY,
	LANE_CHECKS_OVER, /* another has taken the partition */
};

/**
 * Begins: from LANE_CHECKS_OFF or LANE_CHECKS_OVER.
 *
 * @param source  16 random bytes, new at each call
 * @param epoch   under which the partition was taken
 * @return the marker's message; borrowed until the next call of a function here
 */
struct weir_span lane_checks_open(struct lane *lane, const uint8_t source[WEIR_SOURCE_ID_BYTES], uint64_t epoch,
                                  int64_t now_ms);

/**
 * Has it prove again that no other has the partition: as at first, nothing is answered until this marker comes back. What
 * was answered stays. Of LANE_CHECKS_READY or LANE_CHECKS_OPENING, with an empty open frame.
 *
 * @return as lane_checks_open()
 */
struct weir_span lane_checks_again(struct lane *lane, int64_t now_ms);

/** Ends it. What is in the open frame and was not taken by lane_checks_frame() is lost: take it first. */
void lane_checks_close(struct lane *lane);

enum lane_checks_state lane_checks_state(const struct lane *lane);

/**
 * Answers some of the asks, of keys in this partition.
 *
 * CHECK_UNAVAILABLE unless LANE_CHECKS_READY ("loading"; "moving" if another has taken it), or if too many are pending
 * ("full"). CHECK_LATER: its bucket is in the store: load the segments of lane_checks_missing() by shard_load(), and
 * ask again, or give up; the ask is not kept here. An ask that was counted is in the open frame. Of `durable` nothing is
 * known here: whoever sends the frame holds the answer.
 *
 * @param places  which asks, and where their answers go; NULL: the first `count`
 * @param count   CHECK_GROUP_MAX at most
 */
void lane_check(struct lane *lane, const struct check_ask *asks, const uint32_t *places, uint32_t count,
                struct check_now now, struct check_answer *answers);

/** How far the time of its checks is before the clock, which somebody has set back or which is behind another's. */
int64_t lane_checks_ahead_ms(const struct lane *lane, int64_t wall_ms);

/** The segments that checks wait for. @param segments  room for SHARD_MISSING_MOST */
uint32_t lane_checks_missing(struct lane *lane, uint32_t *segments);
/** Says that no ask waits for segments any more. */
void lane_checks_give_up(struct lane *lane);

/** Events in the open frame. */
uint32_t lane_checks_gathered(const struct lane *lane);
/** Whether to send the open frame before more is asked: it is large, or of the policy before. */
bool lane_checks_due(const struct lane *lane);
/** Closes the open frame, of one event at least. @return its message, borrowed until the next call of a function here */
struct weir_span lane_checks_frame(struct lane *lane, int64_t now_ms);

/** The highest epoch of check frames that it has read, and the offset of the first one that has it. */
uint64_t lane_checks_highest(const struct lane *lane);
uint64_t lane_checks_highest_at(const struct lane *lane);
/** How many messages have come back from the log since it was opened, the marker among them. */
uint64_t lane_checks_returned(const struct lane *lane);

/** Checks that were answered and have not come back from the log. */
uint32_t lane_checks_pending(struct lane *lane);

#endif
