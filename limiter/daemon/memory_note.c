/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket that only the store has still costs its place in the index, which no
 * ceiling bounds: whoever has far more keys than memory judges from the store.
 */
#include "limiter/daemon/memory_note.h"

#include "common/base/clock.h"
#include "common/base/text.h"

#include <stddef.h>

enum { LOOK_PERIOD_MS = 1000, ENOUGH = 4 /* times the index: then most of the memory is for buckets */ };

/* Nothing where there is room. @return whether it is too small: the index takes more than half of it */
static bool put_words(struct weir_text *text, const struct limiter_parts *parts, int64_t memory_bytes)
{
	uint64_t index = limiter_sum(parts, offsetof(struct worker_stats, index_bytes));
	uint64_t spilled = limiter_sum(parts, offsetof(struct worker_stats, spilled));
	if (spilled == 0 || index <= (uint64_t)memory_bytes / 2)
		return false;
	weir_text_puts(text, "limiter.memory, ");
	weir_text_size(text, (uint64_t)memory_bytes);
	weir_text_puts(text, ", is too small: what finds the buckets takes ");
	weir_text_size(text, index);
	weir_text_printf(text,
	                 ", as the store alone has %llu of them. Verdicts are right, but wait for the store. Raise it to ",
	                 (unsigned long long)spilled);
	weir_text_size(text, ENOUGH * index);
	weir_text_puts(text, ", or add a limiter");
	return true;
}

void memory_note_watch(struct memory_note *note, const struct limiter_parts *parts, int64_t memory_bytes,
                       const struct weir_log *log)
{
	int64_t now_ms = weir_monotonic_ms();
	if (now_ms < note->look_ms)
		return;
	note->look_ms = now_ms + LOOK_PERIOD_MS;
	struct weir_text words = {0};
	if (!put_words(&words, parts, memory_bytes)) {
		weir_fault_over(&note->fault, log, "memory", "most of limiter.memory is for buckets again");
	} else {
		weir_fault_raise(&note->fault, log, "memory", "%.*s (runbook: memory)", (int)words.length, words.at);
	}
	weir_text_deinit(&words);
}
