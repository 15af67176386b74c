/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: where checkpoints live, so that state and offset are one.
 *
 * A partition's state is a set of blobs by segment, each written under a
 * checkpoint number, and one row that makes a checkpoint current. Blobs of a
 * checkpoint that never became current are invisible and are overwritten or
 * removed later. SQLite, and MySQL or MariaDB, behind the same functions.
 */
#ifndef WEIR_COMMON_STORE_H
#define WEIR_COMMON_STORE_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/store/archive.h"

enum {
	WEIR_STORE_ROLE_LIMITER = 1,
	WEIR_STORE_ROLE_ARCHIVER = 2,
	WEIR_STORE_ROLE_ALL = 3, /* partition 0 alone: its epoch guards notes that are made once, by whoever is first */
};

/* The row that makes a checkpoint current. */
struct weir_partition_state {
	uint32_t partition;
	uint64_t epoch;          /* set by take(); commits with an older one are refused */
	uint64_t checkpoint;     /* 0: none yet */
	uint64_t next_offset;    /* the first offset not contained in it */
	int64_t clock_ms;        /* the highest sending time so far */
	uint64_t policy_version; /* in force at next_offset */
	struct weir_span extra;  /* the role's own: source positions, counters */
};

struct weir_segment_blob {
	uint32_t segment;
	uint64_t checkpoint;
	bool base; /* else a delta on top of the base and earlier deltas */
	struct weir_span bytes;
};

struct weir_store;

struct weir_store_ops {
	const char *name;

	/**
	 * Becomes the partition's owner: raises its epoch. Blobs that the owner before wrote and never made current are
	 * gone. state->extra is in memory of the store, valid until its next call.
	 */
	enum weir_status (*take)(struct weir_store *store, int role, uint32_t partition, struct weir_partition_state *state,
	                         struct weir_error *error);
	/** Reads the same without becoming the owner; epoch 0: it never had one. */
	enum weir_status (*inspect)(struct weir_store *store, int role, uint32_t partition,
	                            struct weir_partition_state *state, struct weir_error *error);
	/**
	 * Writes blobs of a checkpoint that is not current yet: one small transaction. A base written under checkpoint c
	 * replaces, once c is current, everything older of that segment. A blob of the same segment and checkpoint is
	 * replaced: a try that failed is made again. They are sure to outlive the machine only once the checkpoint is
	 * current: where that commit fails they are to be written again with it.
	 *
	 * @return WEIR_OK; WEIR_FENCED; WEIR_INVALID: that checkpoint is current already; WEIR_IO: nothing was written
	 */
	enum weir_status (*write_segments)(struct weir_store *store, uint32_t partition, uint64_t epoch,
	                                   const struct weir_segment_blob *blobs, size_t count, struct weir_error *error);
	/**
	 * Makes checkpoints current, and puts notes, in one transaction: all or nothing.
	 *
	 * @param states  one a partition (the standalone --once commits all of them as one cut), each numbered one higher
	 *                than what is current
	 * @param names, values  notes to set with it; a value with at NULL removes
	 * @return WEIR_OK; WEIR_FENCED: some epoch is not the stored one, or the checkpoint before it is not there, as a
	 *         server that replaces another may have lost it: nothing was written; WEIR_IO: nothing was written,
	 *         unless a server's answer was lost. The same commit made again gives WEIR_OK either way, though the blobs
	 *         of a checkpoint that had become current can no more be written: WEIR_INVALID
	 */
	enum weir_status (*commit)(struct weir_store *store, int role, const struct weir_partition_state *states,
	                           size_t count, const char *const *names, const struct weir_span *values,
	                           size_t note_count, struct weir_error *error);
	/**
	 * The blobs of some segments as of the checkpoint that is current now, all of one moment: for each segment its
	 * newest base and the deltas after, in order. An older checkpoint cannot be asked for: what only it needs may be
	 * gone.
	 *
	 * @param epoch     that the partition is read under
	 * @param at_least  the checkpoint that the caller knows to have become current; 0: any
	 * @param each      called for every blob: segments in the order of `segments`, base first, oldest delta first; bytes
	 *                  borrowed until it returns; anything but WEIR_OK ends the reading and is passed on
	 * @return WEIR_OK; WEIR_FENCED: another owner took the partition, and what is current is not the caller's, or an
	 *         older checkpoint is current, as a server shows that lags behind another, or has lost one; WEIR_IO
	 */
	enum weir_status (*read_segments)(struct weir_store *store, uint32_t partition, uint64_t epoch, uint64_t at_least,
	                                  const uint32_t *segments, size_t count,
	                                  enum weir_status (*each)(void *context, const struct weir_segment_blob *blob),
	                                  void *context, struct weir_error *error);
	/**
	 * Which segments have blobs as of the checkpoint that is current, and how many deltas and bytes each: for a new
	 * owner.
	 *
	 * @param checkpoint  that the caller takes for the current one
	 * @return WEIR_OK; WEIR_FENCED: another owner took the partition, or another checkpoint is current; WEIR_IO
	 */
	enum weir_status (*list_segments)(struct weir_store *store, uint32_t partition, uint64_t epoch, uint64_t checkpoint,
	                                  void (*each)(void *context, uint32_t segment, uint32_t deltas,
	                                               uint64_t base_bytes, uint64_t delta_bytes),
	                                  void *context, struct weir_error *error);
	/** Removes blobs that the current checkpoint does not need: a bounded number, but all that 32 checkpoints add. */
	enum weir_status (*clean)(struct weir_store *store, uint32_t partition, uint64_t epoch, struct weir_error *error);

	/** Every policy, numbered. put is idempotent for the same text; another text under a taken number is refused. */
	enum weir_status (*policy_put)(struct weir_store *store, uint64_t version, struct weir_span text,
	                               struct weir_error *error);
	/** Calls each in order of version, from `first` on. */
	enum weir_status (*policy_each)(struct weir_store *store, uint64_t first,
	                                enum weir_status (*each)(void *context, uint64_t version, struct weir_span text),
	                                void *context, struct weir_error *error);

	/** A note by name: returned, the caller frees; *value NULL if there is none. */
	enum weir_status (*note_get)(struct weir_store *store, const char *name, char **value, size_t *length,
	                             struct weir_error *error);
	enum weir_status (*note_put)(struct weir_store *store, const char *name, struct weir_span value,
	                             struct weir_error *error);

	/**
	 * A commit that also adds what was archived: all or nothing.
	 *
	 * @param states  each with a checkpoint above its current one. Where they are current already the batch has been
	 *                added, by a try whose answer was lost: nothing is done. So a try after WEIR_IO is to be with the
	 *                same rows; partitions that are not the caller's any more may be left out, with theirs
	 * @return as commit
	 */
	enum weir_status (*archive)(struct weir_store *store, int role, const struct weir_archive_batch *batch,
	                            const struct weir_partition_state *states, size_t count, const char *const *names,
	                            const struct weir_span *values, size_t note_count, struct weir_error *error);
	/**
	 * Removes rows of the archive that are too old, in bounded steps, and on servers that partition by time makes the
	 * partitions of the days to come. For any number of callers.
	 *
	 * @param keep_ms  by enum weir_archive_table; 0: forever
	 * @param more     set: there may be more to remove; call again
	 * @return WEIR_AGAIN: somebody else is about it
	 */
	enum weir_status (*keep)(struct weir_store *store, const int64_t keep_ms[WEIR_ARCHIVE_TABLES], int64_t now_ms,
	                         bool *more, struct weir_error *error);
	/**
	 * Removes the rows that the archive has of a bucket, and what check_velocity has of it, in bounded steps.
	 *
	 * @param removed  added to
	 * @param more     set: there may be more to remove; call again
	 */
	enum weir_status (*forget)(struct weir_store *store, const struct weir_archive_bucket *bucket,
	                           struct weir_archive_removed *removed, bool *more, struct weir_error *error);
	/**
	 * Runs SQL that reads, all of one moment; what takes too long, some 10 s, is ended: WEIR_IO.
	 *
	 * @param each  called for every row
	 */
	enum weir_status (*query)(struct weir_store *store, const char *sql, const struct weir_sql_value *parameters,
	                          unsigned count, weir_sql_row *each, void *context, struct weir_error *error);
	void (*close)(struct weir_store *store);
};

/** A handle belongs to one thread at a time; open one for each thread that needs it. */
struct weir_store {
	const struct weir_store_ops *ops;
};

#endif
