/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The archiver: a thread that reads judged frames and decisions of its
 * partitions, and stores the resulting rows.
 *
 * Everything that a partition's topics gave since the last time, and how far
 * they were read, goes to the store in one transaction, with other partitions':
 * a crash at any moment loses nothing and counts nothing twice. It stores often
 * enough for people who look, and the less often the longer the store takes for
 * it, so that a slow store has fewer and larger batches. While the store is down
 * it reads on up to a bound, then waits: the topics keep the unread messages.
 */
#ifndef ARCHIVER_ARCHIVER_H
#define ARCHIVER_ARCHIVER_H

#include "common/bus/bus.h"
#include "common/cluster/assignment.h"
#include "common/cluster/key_hash.h"
#include "common/config/config.h"
#include "common/log/log.h"
#include "common/log/metrics.h"
#include "common/store/store.h"

struct archiver;

struct archiver_options {
	const struct weir_config *config; /* borrowed, as all that follows */
	struct weir_bus *bus;
	struct weir_key_hash *hash;         /* by which keys are hashed; NULL: they are kept in clear */
	uint32_t writers;                   /* connections, at least one, over which it stores side by side */
	struct weir_assignment *assignment; /* partitions that are its own by now */
	/* The log and the store are this process's alone: the log is trimmed behind its readers only. */
	bool standalone;
	/* Opens a store, whose keys are settled, for one thread. WEIR_END: asked to stop meanwhile. */
	enum weir_status (*open_store)(void *context, struct weir_store **store, struct weir_error *error);
	/* Likewise one more, for another thread, without much waiting; NULL where writers is 1. */
	enum weir_status (*open_another)(void *context, struct weir_store **store, struct weir_error *error);
	void *context;
	const struct weir_log *log;
};

/** @param options  copied */
WEIR_MUST_USE enum weir_status archiver_start(const struct archiver_options *options, struct archiver **archiver,
                                              struct weir_error *error);

/** Asks it to end: with `drain` it first takes all that the topics hold now; then it stores. @thread any */
void archiver_stop(struct archiver *archiver, bool drain);
/** Whether it has ended by itself, which is a failure. @thread any */
bool archiver_ended(const struct archiver *archiver);
/** Waits for the end and frees. @return WEIR_OK; else why it failed, or what could not be stored: nothing of it is lost */
WEIR_MUST_USE enum weir_status archiver_join(struct archiver *archiver, struct weir_error *error);

/* ---- what metrics and pages show; read by any thread ---- */

struct archiver_stats {
	struct weir_counter frames, events, repeated, malformed, decisions;
	struct weir_counter rows, commits, fenced, taken, given_up;
	struct weir_counter waiting_rows, waiting_bytes, partitions, parked; /* gauges */
	struct weir_counter oldest_ms; /* monotonic: when what has waited longest to be stored came; 0: nothing waits */
	struct weir_histogram commit;  /* seconds */
};
const struct archiver_stats *archiver_stats(const struct archiver *archiver);

/**
 * How far a partition of the topic judged, or decisions, has been taken; false: it is not archived here.
 *
 * @param clock_ms  set for judged: the highest sending time so far; 0 otherwise
 */
bool archiver_place(const struct archiver *archiver, enum weir_topic topic, uint32_t partition, uint64_t *next_offset,
                    int64_t *clock_ms);

#endif
