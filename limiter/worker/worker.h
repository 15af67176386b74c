/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: a thread that owns some partitions of the events topic, and judges
 * them.
 *
 * It receives frames, judges them in each partition's order, publishes
 * decisions and judged frames, and cuts checkpoints, which checkpoint I/O stores
 * meanwhile. No checkpoint is stored before everything that was published up to
 * its cut is acknowledged. A frame that needs evicted segments waits for them
 * while the other partitions continue.
 *
 * Its partitions come and go with the assignment while the others continue, from
 * and to other processes and other threads of its own: checkpoint I/O takes and
 * loads one that comes, and stores a last checkpoint of one that goes. A problem of
 * one partition (another owner took it, the log has a gap) does not fail the worker,
 * except in a standalone process.
 */
#ifndef LIMITER_WORKER_H
#define LIMITER_WORKER_H

#include "common/bus/bus.h"
#include "common/cluster/assignment.h"
#include "common/config/config.h"
#include "common/log/log.h"
#include "common/log/metrics.h"
#include "limiter/checkpoint/checkpoint_io.h"
#include "limiter/lane/policy_registry.h"
#include "limiter/overrides/override_command.h"
#include "limiter/worker/placement.h"

struct worker;

struct worker_options {
	const struct weir_config *config; /* borrowed, as all that follows */
	struct weir_bus *bus;
	struct policy_registry *registry;
	uint64_t first_policy; /* the version that empty partitions begin with */
	uint64_t seed;
	uint32_t number;                    /* this worker */
	struct placement *placement;        /* which partitions are its to take */
	struct weir_assignment *assignment; /* which of all partitions are the process's by now */
	/*
	 * The log and the store are this process's alone: a partition's error, which nobody else could go on with, ends the
	 * worker, and zones' counters continue from the checkpoints'.
	 */
	bool standalone;
	bool dead_letters;    /* messages that are no frames are kept in their topic, within deadletter.rate */
	int64_t age_limit_ms; /* a partition whose checkpoint is older waits for the next one; 0: none */
	int64_t remind_ms;    /* operators' blocks that outlast thrice that are published again so often; 0: never */
	struct checkpoint_io *checkpoint_writer, *checkpoint_reader;
	const struct weir_log *log;
};

/** Takes no partition yet. */
WEIR_MUST_USE enum weir_status worker_new(const struct worker_options *options, struct worker **worker,
                                          struct weir_error *error);
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
/** After checkpoint I/O has stopped. */
void worker_free(struct worker *worker);

/** The lanes that it had at its end; after join. */
struct lane *const *worker_lanes(const struct worker *worker, uint32_t *count);

/* ---- what metrics and pages show of a worker; read by any thread ---- */

struct worker_stats {
	struct weir_counter frames, events, repeated, malformed, decisions, checkpoints;
	struct weir_counter overrides[OVERRIDE_KIND_COUNT]; /* operators' commands that were carried out */
	struct weir_counter reminders;                      /* of their blocks, published again */
	struct weir_counter ahead;                          /* messages of a sender whose clock is ahead of the log's */
	struct weir_counter taken, given_up, fenced;        /* partitions that came, went, or were another's by then */
	struct weir_counter dead_letters, dead_letters_dropped;
	struct weir_histogram batch;      /* seconds from receiving a batch to its last verdict */
	struct weir_histogram checkpoint; /* seconds from the cut to stored */
	struct weir_histogram take;       /* seconds from asking for a partition to receiving its messages */
	struct weir_counter buckets, spilled, bytes, evicted_segments, evictions, loads,
		forgotten;                         /* gauges, set each second */
	struct weir_counter checkpoint_age_ms; /* of the oldest partition */
};
const struct worker_stats *worker_stats(const struct worker *worker);

/* A zone's counters: of its lanes, and of those that it had. One that is standalone goes on from the checkpoints'. */
struct worker_zone {
	uint64_t passed, blocked, late, decisions;
};
void worker_zone(struct worker *worker, uint32_t zone_id, struct worker_zone *numbers);

/* What others are told of a partition; worker/partition_state.h has the whole. */
enum worker_state {
	WORKER_EMPTY,   /* not its own */
	WORKER_TAKING,  /* checkpoint I/O takes it and reads its checkpoint */
	WORKER_LIVE,    /* messages are judged */
	WORKER_LEAVING, /* its last checkpoint is on its way */
	WORKER_DROPPED, /* only answers of checkpoint I/O are waited for */
	WORKER_PARKED,  /* it has another owner, or an error that a person must end */
	WORKER_STATE_COUNT,
};

/** "live", ... */
const char *worker_state_name(enum worker_state state);

struct worker_partition {
	enum worker_state state;
	uint64_t next_offset;     /* as of the last tenth of a second */
	int64_t clock_ms;         /* likewise: sending time of the newest frame judged */
	char error[256];          /* why it stands still until a person does something; "": it does not */
	uint64_t waiting;         /* messages of the log that are known to be there, as of the last tenth of a second */
	uint64_t messages, bytes; /* that this worker has received of it, ever */
};

/** What stands of a partition, as far as this worker has to do with it. */
void worker_view(struct worker *worker, uint32_t partition, struct worker_partition *look);

#endif
