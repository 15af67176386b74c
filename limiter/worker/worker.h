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
 * Partitions come from and go to other processes, and other threads of this one,
 * as the assignment and the placement say, while the others continue. Checkpoint
 * I/O takes and loads a partition that comes, and stores a last checkpoint of one
 * that goes. A problem of one partition (another owner took it, the log has a gap)
 * does not fail the worker, except in a standalone process.
 */
#ifndef LIMITER_WORKER_H
#define LIMITER_WORKER_H

#include "common/bus/bus.h"
#include "common/cluster/assignment.h"
#include "common/config/config.h"
#include "common/log/log.h"
#include "common/log/metrics.h"
#include "limiter/check/surface.h"
#include "limiter/checkpoint/checkpoint_io.h"
#include "limiter/lane/policy_registry.h"
#include "limiter/overrides/override_command.h"
#include "limiter/owners/owners.h"
#include "limiter/worker/mail.h"
#include "limiter/worker/placement.h"

struct worker;

/* How a process's workers take checks. One for all of them; borrowed while they live. */
struct worker_checks {
	struct mail *mail;
	uint32_t threads;      /* how many workers there are; behind their inboxes are OWNERS_INBOXES of places */
	struct owners *owners; /* NULL: all checks are answered here, or not at all */
	/** Makes the surface of a worker. @param judge  of this worker; copied */
	enum weir_status (*open)(void *context, uint32_t worker, const struct check_judge *judge,
	                         struct check_surface *surface, struct weir_error *error);
	/** The worker has all that it needs to serve it: it is freed with the worker, and not before. */
	void (*opened)(void *context, uint32_t worker);
	void *context;
};

struct worker_options {
	const struct weir_config *config; /* borrowed, like all that follows */
	struct weir_bus *bus;
	struct policy_registry *registry;
	uint64_t first_policy; /* the version that empty partitions begin with */
	uint64_t seed;
	const char *swap_directory;         /* for buckets that are not used; the process's own */
	uint32_t number;                    /* of this worker */
	struct placement *placement;        /* which partitions this worker should have */
	struct weir_assignment *assignment; /* which partitions the process has */
	/*
	 * The log and the store belong to this process alone. A partition's error ends the worker, as no other process
	 * could continue with the partition; and zones' counters continue from the checkpoints'.
	 */
	bool standalone;
	bool dead_letters;    /* malformed messages are published to the dead letter topic, within deadletter.rate */
	int64_t age_limit_ms; /* a partition whose checkpoint is older waits for the next one; 0: no limit */
	int64_t remind_ms;    /* operators' blocks longer than twice this are published again this often; 0: never */
	struct checkpoint_io *checkpoint_writer, *checkpoint_reader;
	const struct worker_checks *checks; /* NULL: none are asked */
	const struct weir_log *log;
};

/** Creates a worker, which takes no partition yet. */
WEIR_MUST_USE enum weir_status worker_new(const struct worker_options *options, struct worker **worker,
                                          struct weir_error *error);
WEIR_MUST_USE enum weir_status worker_start(struct worker *worker, struct weir_error *error);

/**
 * Asks the worker to end. With `drain` it first judges all that is in the log. Then it stores last checkpoints.
 *
 * @thread any
 */
void worker_stop(struct worker *worker, bool drain);

/**
 * Sets other values for these two options, as the topics' retention has changed. They hold from the next message on.
 *
 * @thread any
 */
void worker_set_limits(struct worker *worker, int64_t age_limit_ms, int64_t remind_ms);

/** Whether its thread has ended; before worker_stop() that is a failure. @thread any */
bool worker_ended(const struct worker *worker);

/** Waits for the end. @return WEIR_OK; otherwise why it failed */
WEIR_MUST_USE enum weir_status worker_join(struct worker *worker, struct weir_error *error);
/** Called after checkpoint I/O has stopped. */
void worker_free(struct worker *worker);

/** The lanes that it had at its end. Called after worker_join(). @param lanes  filled @return how many */
uint32_t worker_lanes(const struct worker *worker, struct lane **lanes);

/* ---- what metrics and pages show of a worker; read by any thread ---- */

struct worker_stats {
	struct weir_counter frames, events, repeated, malformed, decisions, checkpoints;
	struct weir_counter overrides[OVERRIDE_KIND_COUNT]; /* operators' commands carried out */
	struct weir_counter over;                           /* decisions that were over as they were made */
	struct weir_counter reminders;                      /* operators' blocks published again */
	struct weir_counter ahead;                          /* messages of senders whose clock is ahead of the log's */
	struct weir_counter shared;                         /* frames of sources that two collectors send as */
	struct weir_counter taken, given_up, fenced;        /* partitions taken, left, and found to have another owner */
	struct weir_counter unstored; /* partitions that the worker's end left without a last checkpoint */
	struct weir_counter dead_letters, dead_letters_dropped;
	struct weir_counter publish_failures, producer_restarts;
	struct weir_counter busy_us;      /* spent judging */
	struct weir_counter load_us;      /* that partitions waited for segments from the store, summed over partitions */
	struct weir_histogram batch;      /* seconds from receiving a batch to its last verdict */
	struct weir_histogram checkpoint; /* seconds that checkpoint I/O took to store one */
	struct weir_histogram take;       /* seconds from asking for a partition to receiving its messages */
	struct weir_histogram delay;      /* seconds from a line's time to its decision's acknowledgement */
	struct weir_counter buckets, spilled, bytes, index_bytes, evicted_segments, evictions, loads, recalls,
		swap_failures, swap_file_bytes, forgotten; /* gauges, set each second */
	struct weir_counter checks_passed, checks_blocked, checks_settled, checks_no_zone, checks_no_reservation;
	struct weir_counter checks_forwarded;                      /* to other processes */
	struct weir_counter checks_unavailable[CHECK_WHY_COUNT];   /* by enum check_why */
	struct weir_counter checks_pending, checks_unacknowledged; /* gauges, set each second */
	struct weir_histogram check;                               /* seconds from asking to the answer */
	struct weir_counter checkpoint_age_ms; /* gauge: longest time that something has been in no stored checkpoint */
	struct weir_counter clock_ms;          /* gauge: the highest clock of its partitions, Unix ms */
};
const struct worker_stats *worker_stats(const struct worker *worker);

/*
 * A zone's counters, over present and past lanes; each record is counted once, though it may be judged again. A
 * standalone worker's continue from the checkpoints'.
 */
struct worker_zone {
	uint64_t passed, blocked, late, decisions;
};
void worker_zone(struct worker *worker, uint32_t zone_id, struct worker_zone *numbers);

/* A partition's state as shown to others; worker/partition_state.h has all states. */
enum worker_state {
	WORKER_EMPTY,   /* not this worker's */
	WORKER_TAKING,  /* checkpoint I/O takes it and reads its checkpoint */
	WORKER_LIVE,    /* its messages are judged as they come */
	WORKER_PAUSED,  /* they have waited for a checkpoint, or for a policy, for WORKER_PAUSED_MS or longer */
	WORKER_LEAVING, /* its last checkpoint is being stored or announced */
	WORKER_DROPPED, /* only waiting for checkpoint I/O's outstanding answers */
	WORKER_PARKED, /* it has another owner, or an error that a person must fix; or a newer weir wrote the next message */
	WORKER_STATE_COUNT,
};

enum { WORKER_PAUSED_MS = 1000 };

/** "live", ... */
const char *worker_state_name(enum worker_state state);

struct worker_partition {
	enum worker_state state;
	uint64_t next_offset;     /* updated every tenth of a second */
	int64_t clock_ms;         /* likewise: sending time of the newest frame judged */
	char error[512];          /* why it is stopped until a person does something; "": it is not */
	uint64_t waiting;         /* messages known to wait in the log; updated every tenth of a second */
	uint64_t messages, bytes; /* received by this worker since it began */
	bool paused;              /* live, but nothing is judged until a checkpoint is stored: the last one is too old */
	uint32_t fenced;          /* how often another process took it within minutes */
};

/** Shows what this worker knows of a partition. @thread any */
void worker_view(struct worker *worker, uint32_t partition, struct worker_partition *look);

#endif
