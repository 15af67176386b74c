/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of several parallel writers: it stores some partitions' rows in one
 * transaction over its own connection. Several are faster, because a server inserts
 * the rows of one connection on one processor, and is idle while they are prepared.
 *
 * Only the archiver's thread calls these functions. The writer's own thread, if it
 * has one, only stores.
 */
#ifndef ARCHIVER_WRITER_H
#define ARCHIVER_WRITER_H

#include "archiver/work/batch.h"

struct writer;

/**
 * @param store     borrowed; if threaded, nothing else may use it until writer_free()
 * @param hash      hashes keys, borrowed; NULL: they stay as they are
 * @param threaded  whether it stores in a thread of its own; false: writer_finish() stores
 * @param most      how many ledgers it may be given at once
 */
WEIR_MUST_USE enum weir_status writer_new(struct weir_store *store, struct weir_key_hash *hash, bool threaded,
                                          uint32_t most, struct writer **writer, struct weir_error *error);
/** NULL is fine. */
void writer_free(struct writer *writer);

/** Gives it a ledger to store. It is borrowed, and must not change until writer_finish(). */
void writer_give(struct writer *writer, struct ledger *ledger);
/** Begins to store what it was given, in one attempt. */
void writer_start(struct writer *writer);

struct writer_result {
	enum weir_status status; /* of the store's archive(); WEIR_OK if nothing was given */
	struct weir_error error;
	struct ledger *const *ledgers; /* the ones it was given; borrowed until it is given more */
	size_t count, rows;
	int64_t took_ms;
};
/** Waits until storing has ended. After that it has no ledgers. */
struct writer_result writer_finish(struct writer *writer);

#endif
