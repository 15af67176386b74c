/*
 * A worker: a thread that owns some partitions of the events topic, and judges
 * them.
 *
 * It receives frames, judges them in each partition's order, publishes
 * decisions and judged frames, and cuts checkpoints, which keepers store
 * meanwhile. No checkpoint is stored before everything that was published up to
 * its cut is acknowledged. A frame that needs evicted segments waits for them
 * while the other partitions go on.
 */
#ifndef LIMITER_WORKER_H
#define LIMITER_WORKER_H

#include "common/bus.h"
#include "common/config.h"
#include "common/log.h"
#include "common/metrics.h"
#include "limiter/keeper.h"
#include "limiter/rulebook.h"

struct worker;

struct worker_options {
	const struct weir_config *config; /* borrowed, as all that follows */
	struct weir_bus *bus;
	struct rulebook *book;
	uint64_t first_policy; /* the version that empty partitions begin with */
	uint64_t seed;
	uint32_t number, count; /* this worker of so many: it owns the partitions p with p % count == number */
	struct keeper *saver, *loader;
	const struct weir_log *log;
};

/** Takes the partitions (raising their epochs) and restores them; `store` is used only within this call. */
WEIR_MUST_USE enum weir_status worker_new(const struct worker_options *options, struct weir_store *store,
                                          struct worker **worker, struct weir_error *error);
WEIR_MUST_USE enum weir_status worker_start(struct worker *worker, struct weir_error *error);

/**
 * Asks it to end: with `drain` it first judges all that is in the log now; then it stores a last checkpoint.
 *
 * @thread any
 */
void worker_stop(struct worker *worker, bool drain);

/** Whether it has ended by itself, which is a failure. @thread any */
bool worker_ended(const struct worker *worker);

/** Waits for the end. @return WEIR_OK; else why it failed */
WEIR_MUST_USE enum weir_status worker_join(struct worker *worker, struct weir_error *error);
/** After the keepers have stopped. */
void worker_free(struct worker *worker);

/** Its lanes: to be read for their tallies (any thread), or whole after join. */
struct lane *const *worker_lanes(const struct worker *worker, uint32_t *count);

/* What metrics show of a worker; read by any thread. */
struct worker_stats {
	struct weir_counter frames, events, repeated, malformed, decisions, checkpoints;
	struct weir_histogram batch;      /* seconds from receiving a batch to its last verdict */
	struct weir_histogram checkpoint; /* seconds from the cut to stored */
	struct weir_counter buckets, spilled, bytes, evicted_segments, evictions, loads,
		forgotten;                         /* gauges, set each second */
	struct weir_counter checkpoint_age_ms; /* of the oldest partition */
};
const struct worker_stats *worker_stats(const struct worker *worker);

#endif
