/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which batches a spool has taken: their ids of the last hour, a million at most.
 *
 * An id is kept as a hash, beside one of the batch's lines: so an id that comes again with other lines is seen. Those of
 * batches that the spool still has are read from there at a start. Before a batch's file may go, its id is written to a
 * file here: ids-1, ids-2, ... of 48 bytes a record, of which the last five stay. That an id has ended is written there, too.
 *
 * @thread one at a time
 */
#ifndef COLLECTOR_SOURCE_PUSH_IDS_H
#define COLLECTOR_SOURCE_PUSH_IDS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PUSH_IDS_MOST = 1 << 20,
	PUSH_IDS_KEPT_MS = 3600 * 1000,
	PUSH_ID_HASH_BYTES = 16,
};

struct push_id {
	uint8_t hash[PUSH_ID_HASH_BYTES]; /* of the id */
	uint64_t body;                    /* a hash of its lines */
	int64_t at_ms;                    /* when it came, Unix ms */
	uint64_t offset;                  /* of its batch; below 2^63 */
	bool over;                        /* its sender knows that it is taken: what comes under it is another batch */
};

struct push_ids;

/**
 * Reads the files of a directory.
 *
 * @return WEIR_OK; WEIR_INVALID: one is damaged before its tail; WEIR_IO
 */
WEIR_MUST_USE enum weir_status push_ids_open(const char *directory, int64_t now_ms, struct push_ids **ids,
                                             struct weir_error *error);
/** What of the newest file may be damaged, and what that costs; "": nothing. Its next writing cuts it there. */
const char *push_ids_doubt(const struct push_ids *ids);
/** NULL is fine. Writes nothing. */
void push_ids_free(struct push_ids *ids);

/** NULL: it is not known. Borrowed until the next push_ids_add(). */
const struct push_id *push_ids_find(const struct push_ids *ids, const uint8_t hash[PUSH_ID_HASH_BYTES]);

/** Forgets those older than an hour. */
void push_ids_forget(struct push_ids *ids, int64_t now_ms);

/** Notes that an id's sender knows that its batch is taken. Lost where a crash comes before push_ids_save_ends(). */
void push_ids_end(struct push_ids *ids, const uint8_t hash[PUSH_ID_HASH_BYTES]);

/** Adds one that is not known, or is over; offsets grow. Forgets those older than an hour, and the oldest of too many. */
void push_ids_add(struct push_ids *ids, const struct push_id *id, int64_t now_ms);

/**
 * The same of one that is read back, unless it is too old or a newer batch of that id is known. Of one batch, it may be
 * read twice: it is over where either says so.
 */
void push_ids_learn(struct push_ids *ids, const struct push_id *id, int64_t now_ms);

size_t push_ids_count(const struct push_ids *ids);

/** Whether some below an offset are in no file yet. */
bool push_ids_unsaved(const struct push_ids *ids, uint64_t below);
/** Puts those below an offset on disk. @return WEIR_OK; WEIR_IO: tried again by the next call */
WEIR_MUST_USE enum weir_status push_ids_save(struct push_ids *ids, uint64_t below, int64_t now_ms,
                                             struct weir_error *error);

/** Whether some have ended of which no file says so. */
bool push_ids_unsaved_ends(const struct push_ids *ids);
/** Puts on disk which have ended; they need not be saved before. @return WEIR_OK; WEIR_IO: tried again by the next call */
WEIR_MUST_USE enum weir_status push_ids_save_ends(struct push_ids *ids, int64_t now_ms, struct weir_error *error);

#endif
