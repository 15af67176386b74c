/* SPDX-License-Identifier: Apache-2.0 */
/* Two windows, so that the answer is never of a window that has just begun, and is forgotten when nothing comes. */
#include "common/bus/kafka/clock_skew.h"

enum { ENOUGH = 3 /* messages of one window */ };

static void turn(struct weir_clock_skew *skew, int64_t now_ms)
{
	if (skew->end_ms == 0)
		skew->end_ms = now_ms + WEIR_CLOCK_SKEW_WINDOW_MS;
	if (now_ms < skew->end_ms)
		return;
	bool next = now_ms < skew->end_ms + WEIR_CLOCK_SKEW_WINDOW_MS;
	skew->past.count = next ? skew->present.count : 0;
	skew->past.least_ms = skew->present.least_ms;
	skew->present.count = 0;
	skew->end_ms = now_ms + WEIR_CLOCK_SKEW_WINDOW_MS;
}

void weir_clock_skew_note(struct weir_clock_skew *skew, int64_t now_ms, int64_t ahead_ms)
{
	turn(skew, now_ms);
	if (skew->present.count == 0 || ahead_ms < skew->present.least_ms)
		skew->present.least_ms = ahead_ms;
	if (skew->present.count < ENOUGH)
		skew->present.count++;
}

bool weir_clock_skew_read(struct weir_clock_skew *skew, int64_t now_ms, int64_t *ahead_ms)
{
	turn(skew, now_ms);
	bool present = skew->present.count >= ENOUGH, past = skew->past.count >= ENOUGH;
	if (!present && !past)
		return false;
	*ahead_ms = !past || (present && skew->present.least_ms < skew->past.least_ms) ? skew->present.least_ms
	                                                                               : skew->past.least_ms;
	return true;
}
