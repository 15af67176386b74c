/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far this machine's clock is ahead of the brokers'.
 *
 * A message that was written and met at once shows it: this clock's time less the one
 * that the broker gave the message. A message that was late on its way shows too much,
 * and none shows too little, so that the least of a while is taken.
 */
#ifndef WEIR_COMMON_CLOCK_SKEW_H
#define WEIR_COMMON_CLOCK_SKEW_H

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_CLOCK_SKEW_WINDOW_MS = 30000 };

/* Zero-initialised: nothing is known. The caller locks. */
struct weir_clock_skew {
	int64_t end_ms; /* monotonic: when the present window ends; 0: none has begun */
	struct {
		uint32_t count;
		int64_t least_ms;
	} present, past; /* this window, and the one before it */
};

/**
 * Notes a message that was met soon after it was written.
 *
 * @param now_ms    monotonic
 * @param ahead_ms  this clock's time when it was met, less the time that the broker wrote; negative: behind
 */
void weir_clock_skew_note(struct weir_clock_skew *skew, int64_t now_ms, int64_t ahead_ms);

/** @param ahead_ms  set to it, at most two windows old. @return false: too few messages came to know it */
bool weir_clock_skew_read(struct weir_clock_skew *skew, int64_t now_ms, int64_t *ahead_ms);

#endif
