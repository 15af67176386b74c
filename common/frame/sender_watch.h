/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether two processes send as one source. A source's positions only grow, within a partition: where a collector starts
 * again, or its producer does, it goes back, and sends again everything from there on, among it the last event that it had
 * sent before. That may happen many times in a row, as while the brokers refuse what it sends.
 *
 * Two collectors of one identity make the source go back all the time, as each of their frames is behind or before the
 * other's. The one that is ahead goes on without sending anything again: what lies between is missing, and so it is told
 * from a single one. Two that read the same files at the same pace send each frame twice, and nothing is missing: they are
 * told by how often the source goes back, which is more than a single producer can be made anew.
 *
 * A stream that any number of collectors may read under one id (a topic's, Redis's, decisions) does so by design: their
 * frames say it (is_common), and are not looked at.
 */
#ifndef WEIR_COMMON_FRAME_SENDER_WATCH_H
#define WEIR_COMMON_FRAME_SENDER_WATCH_H

#include "common/frame/frame.h"

enum {
	WEIR_SENDER_MINUTE_MS = 60000,
	WEIR_SENDER_LEAPS_MOST = 5, /* a policy that changes, or lines that are gone, may explain some */
	WEIR_SENDER_BACKS_MOST =
		24, /* a collector waits for up to 5 s before each new producer: it makes fewer in a minute */
};

/* Of one source in one partition; zeros at first. */
struct weir_sender_watch {
	uint64_t last; /* position of the last event, taken or not */
	uint64_t owed; /* a position that is sent again before anything above it, unless two send; 0: none is */
	int64_t since_ms;
	uint32_t backs, leaps; /* since then: how often it went back, and left out what it owed */
};

/* Whether an event of the frame has this position; its events are in the order of their positions. */
static inline bool weir_sender_has(const struct weir_frame *frame, uint64_t position)
{
	uint32_t i = 0;
	while (i < frame->event_count && frame->events[i].position < position)
		i++;
	return i < frame->event_count && frame->events[i].position == position;
}

/**
 * Looks at the source's next frame.
 *
 * @param clock_ms  the partition's clock with this frame
 * @return whether the source is one collector's own, and sent by two: within a minute it left out more often what a
 *         single one would have sent again, or went back more often, than one can
 */
static inline bool weir_sender_is_shared(struct weir_sender_watch *watch, const struct weir_frame *frame,
                                         int64_t clock_ms)
{
	if (frame->event_count == 0 || frame->is_common)
		return false;
	uint64_t first = frame->events[0].position, last = frame->events[frame->event_count - 1].position;
	bool back = first <= watch->last;
	if (back && watch->last > watch->owed)
		watch->owed = watch->last;
	watch->last = last;
	bool leap = watch->owed > 0 && last >= watch->owed && !weir_sender_has(frame, watch->owed);
	if (watch->owed > 0 && last >= watch->owed)
		watch->owed = 0;
	if (!back && !leap)
		return false;
	if (clock_ms > watch->since_ms + WEIR_SENDER_MINUTE_MS || watch->backs + watch->leaps == 0) {
		watch->since_ms = clock_ms;
		watch->backs = watch->leaps = 0;
	}
	watch->backs += back;
	watch->leaps += leap;
	return (leap && watch->leaps > WEIR_SENDER_LEAPS_MOST) || (back && watch->backs > WEIR_SENDER_BACKS_MOST);
}

#endif
