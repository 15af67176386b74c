/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A progress line on a terminal: rewritten in place, removed at the end.
 *
 * What else goes to the terminal takes it off first: the log by itself where its `unfinished` is the line's `drawn`,
 * other output by asking here.
 */
#ifndef DEPLOY_WEIR_TERMINAL_PROGRESS_H
#define DEPLOY_WEIR_TERMINAL_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { PROGRESS_SAMPLES = 5 }; /* the oldest is a second old */

struct progress_sample {
	int64_t at_ms;
	uint64_t lines;
};

struct progress {
	bool shown;           /* standard error is a terminal */
	_Atomic bool drawn;   /* it stands there; for struct weir_log */
	pthread_mutex_t lock; /* of all that follows, and of the line */
	bool away;
	int64_t started_ms, drawn_ms, next_ms;            /* monotonic */
	struct progress_sample samples[PROGRESS_SAMPLES]; /* of a work without an end: a ring */
	unsigned sample_count;
};

void progress_init(struct progress *progress, bool quiet);

/** Whether it is time to draw again: asked often, cheap. */
bool progress_due(struct progress *progress);

/** Draws: lines so far, rate, share of the bytes, estimated time left. all_bytes 0: not known. */
void progress_draw(struct progress *progress, uint64_t lines, uint64_t done_bytes, uint64_t all_bytes);

/* How far a work is that has no end. */
struct progress_numbers {
	uint64_t lines, events, decisions;
	uint64_t lag_bytes; /* known and not yet read */
};

/** Draws them, and the rate of the last second. */
void progress_draw_endless(struct progress *progress, const struct progress_numbers *numbers);

/** Takes the line off the screen, for others: it is due again soon. @thread any */
void progress_clear(struct progress *progress);

/** Takes it off and keeps it away until it may come back: while another thread writes. @thread any, one at a time */
void progress_leave(struct progress *progress);
void progress_return(struct progress *progress);

#endif
