/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of several parallel writers: it stores some partitions' rows in one
 * transaction over its own connection. A server adds the rows of one
 * connection on one processor, and waits while they are made ready.
 *
 * Used by one thread, the archiver's; its own, where it has one, only stores.
 */
#ifndef ARCHIVER_WRITER_H
#define ARCHIVER_WRITER_H

#include "archiver/work/batch.h"

struct writer;

/**
 * @param store     borrowed; NULL in a thread of its own: nothing else uses it from then on
 * @param hash      by which keys are hashed, borrowed; NULL: they stay as they are
 * @param threaded  false: it stores in the thread of whoever asks for its result
 * @param most      ledgers that it may be given at once
 */
WEIR_MUST_USE enum weir_status writer_new(struct weir_store *store, struct weir_key_hash *hash, bool threaded,
                                          uint32_t most, struct writer **writer, struct weir_error *error);
/** NULL is fine. */
void writer_free(struct writer *writer);

/** Gives it a ledger to be stored, which is borrowed and left alone until writer_finish(). */
void writer_give(struct writer *writer, struct ledger *ledger);
/** Begins to store what it was given: one try. */
void writer_start(struct writer *writer);

struct writer_result {
	enum weir_status status; /* as the store's archive() gives it; WEIR_OK where nothing was given */
	struct weir_error error;
	struct ledger *const *ledgers; /* that it was given; borrowed until it is given more */
	size_t count, rows;
	int64_t took_ms;
};
/** Waits for the end of what was started. It has been given nothing, then. */
struct writer_result writer_finish(struct writer *writer);

#endif
