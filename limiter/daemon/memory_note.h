/* SPDX-License-Identifier: Apache-2.0 */
/* What is said where limiter.memory is too small for what finds the buckets: verdicts then wait for the store. */
#ifndef LIMITER_MEMORY_NOTE_H
#define LIMITER_MEMORY_NOTE_H

#include "common/log/log.h"
#include "limiter/daemon/limiter_metrics.h"

/* What a process has said. Zero-initialised; of the thread that watches. */
struct memory_note {
	struct weir_fault fault;
	int64_t look_ms;
};

/**
 * Logs it when it begins and when it is over: what is too small, what it means and what helps. Called often: it looks
 * once a second.
 */
void memory_note_watch(struct memory_note *note, const struct limiter_parts *parts, int64_t memory_bytes,
                       const struct weir_log *log);

#endif
