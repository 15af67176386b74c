/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The archiver: a thread that reads judged frames and decisions of its
 * partitions, and stores the resulting rows.
 *
 * One transaction stores everything that a partition's topics gave since the last
 * one, together with the offsets up to which they were read, and likewise for
 * other partitions. So a crash at any moment loses nothing and counts nothing
 * twice. The interval between transactions is short enough for people who watch,
 * and grows with the time that a transaction takes, so that a slow store gets
 * fewer and larger batches. While the store is down, or memory is full, messages
 * stay in the topics: nothing is received until the last attempt has succeeded.
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
	const struct weir_config *config; /* borrowed, like all that follows */
	struct weir_bus *bus;
	struct weir_key_hash *hash;         /* hashes keys; NULL: they are stored in clear */
	uint32_t writers;                   /* connections over which it stores in parallel, at least one */
	struct weir_assignment *assignment; /* the partitions that it has */
	/* Log and store belong to this process alone, and the log is trimmed only up to what its readers consumed. */
	bool standalone;
	/* Opens a store for one thread, after weir_key_hash_settle(). WEIR_END: asked to stop meanwhile. */
	enum weir_status (*open_store)(void *context, struct weir_store **store, struct weir_error *error);
	/* Opens another one for another thread, without waiting long; may be NULL if writers is 1. */
	enum weir_status (*open_another)(void *context, struct weir_store **store, struct weir_error *error);
	void *context;
	const struct weir_log *log;
};

/** @param options  copied */
WEIR_MUST_USE enum weir_status archiver_start(const struct archiver_options *options, struct archiver **archiver,
                                              struct weir_error *error);

/** Asks the archiver to end. With `drain` it first reads all that the topics have now. Then it stores. @thread any */
void archiver_stop(struct archiver *archiver, bool drain);
/** Whether its thread has ended; before archiver_stop() that is a failure. @thread any */
bool archiver_ended(const struct archiver *archiver);
/** Waits for the end and frees. @return WEIR_OK; otherwise why it failed or did not store all (the topics have it) */
WEIR_MUST_USE enum weir_status archiver_join(struct archiver *archiver, struct weir_error *error);

/* ---- what metrics and pages show; read by any thread ---- */

struct archiver_stats {
	struct weir_counter frames, events, repeated, malformed, decisions, shadow_decisions;
	struct weir_counter rows, commits, fenced, taken, given_up;
	struct weir_counter waiting_rows, waiting_bytes, partitions, parked, unfed; /* gauges */
	struct weir_counter oldest_ms; /* monotonic: when the oldest message not yet stored came; 0: nothing waits */
	struct weir_histogram commit;  /* seconds */
	struct weir_counter store_failures;
	struct weir_counter store_tries;  /* those that failed, too; 0: it has not been opened yet */
	struct weir_counter store_fails;  /* 1: the last one failed */
	struct weir_counter shadow_fails; /* 1: decisions in shadow mode cannot be read from their topic */
};
const struct archiver_stats *archiver_stats(const struct archiver *archiver);

enum { ARCHIVER_REASON_BYTES = WEIR_ERROR_TEXT_BYTES };

/** Why a partition is parked. @return false: it is not @thread any */
bool archiver_parked(struct archiver *archiver, uint32_t partition, char text[ARCHIVER_REASON_BYTES]);
/** Why the store failed at the last attempt. @return false: it did not @thread any */
bool archiver_store_failed(struct archiver *archiver, char text[ARCHIVER_REASON_BYTES]);

/**
 * Up to where a partition of the topic of judged frames, or of decisions, has been read; false: it is not archived
 * here.
 *
 * @param clock_ms  set for judged: the highest sending time so far; 0 otherwise
 */
bool archiver_place(const struct archiver *archiver, enum weir_topic topic, uint32_t partition, uint64_t *next_offset,
                    int64_t *clock_ms);

#endif
