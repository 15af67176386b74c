/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether two processes send as one source. A source's positions only grow, within a partition: where a collector starts
 * again, or its producer does, it sends again what was not acknowledged, and so goes back once. Two collectors of one
 * identity make the source go back all the time, as each of their frames is behind or before the other's.
 *
 * A stream that any number of collectors may read under one id (a topic's, Redis's, decisions) does so by design: their
 * frames say it (is_common), and are not looked at.
 */
#ifndef WEIR_COMMON_FRAME_SENDER_WATCH_H
#define WEIR_COMMON_FRAME_SENDER_WATCH_H

#include "common/frame/frame.h"

/* A collector that ends and is started again so often in a minute is in another trouble. */
enum { WEIR_SENDER_MINUTE_MS = 60000, WEIR_SENDER_BACKS_MOST = 5 };

/* Of one source in one partition; zeros at first. */
struct weir_sender_watch {
	uint64_t last; /* position of the last event, taken or not */
	int64_t since_ms;
	uint32_t backs; /* since then */
};

/**
 * Looks at the source's next frame.
 *
 * @param clock_ms  the partition's clock with this frame
 * @return whether the source is one collector's own, and sent by two: it went back more often within a minute than
 *         restarts explain
 */
static inline bool weir_sender_is_shared(struct weir_sender_watch *watch, const struct weir_frame *frame,
                                         int64_t clock_ms)
{
	if (frame->event_count == 0 || frame->is_common)
		return false;
	bool back = frame->events[0].position <= watch->last;
	watch->last = frame->events[frame->event_count - 1].position;
	if (!back)
		return false;
	if (watch->backs == 0 || clock_ms > watch->since_ms + WEIR_SENDER_MINUTE_MS) {
		watch->since_ms = clock_ms;
		watch->backs = 0;
	}
	return ++watch->backs > WEIR_SENDER_BACKS_MOST;
}

#endif
