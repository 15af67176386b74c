/* One line on a terminal that says how far a long work is: rewritten in place, gone at the end. */
#ifndef DEPLOY_STANDALONE_PROGRESS_H
#define DEPLOY_STANDALONE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool shown; /* standard error is a terminal */
	bool drawn;
	int64_t started_ms, next_ms; /* monotonic */
};

void progress_init(struct progress *progress, bool quiet);

/** Whether it is time to draw again: asked often, cheap. */
bool progress_due(struct progress *progress);

/** Draws: lines so far, rate, share of the bytes, estimated time left. all_bytes 0: not known. */
void progress_draw(struct progress *progress, uint64_t lines, uint64_t done_bytes, uint64_t all_bytes);

/** Takes the line off the screen, for others: it is due again at once. */
void progress_clear(struct progress *progress);

#endif
