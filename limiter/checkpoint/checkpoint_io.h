/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoint I/O: a thread with a store of its own that takes partitions, saves
 * checkpoints, or loads segments, while workers continue judging.
 *
 * A worker submits a job and finds it again in its own reply queue when it is
 * done. Jobs of one thread are done in order, those that nobody waits for after
 * all others. One that fails for a passing reason is retried each second
 * until it succeeds or the thread stops; those of its partition wait for it, and
 * no others.
 */
#ifndef LIMITER_CHECKPOINT_IO_H
#define LIMITER_CHECKPOINT_IO_H

#include "common/cluster/assignment.h"
#include "common/log/log.h"
#include "limiter/checkpoint/checkpoint.h"

#include <pthread.h>

enum checkpoint_job_kind {
	CHECKPOINT_SAVE,     /* a cut */
	CHECKPOINT_LOAD,     /* segments */
	CHECKPOINT_TAKE,     /* a partition: its epoch, its checkpoint, and the policies that the registry does not have */
	CHECKPOINT_POLICIES, /* those alone */
	CHECKPOINT_ANNOUNCE, /* that a partition is about to go, or has gone */
};

/* Done jobs of one worker. */
struct checkpoint_replies {
	pthread_mutex_t lock;
	struct checkpoint_job *first, **last;
	_Atomic uint32_t count; /* asked without the lock */
};

struct checkpoint_job {
	enum checkpoint_job_kind kind;
	uint32_t partition;
	struct checkpoint_replies *replies;
	/* save */
	struct checkpoint_cut cut;
	/* load */
	uint64_t epoch;
	uint64_t at_least;  /* the checkpoint that is known to be stored */
	uint32_t *segments; /* owned by the job */
	uint32_t segment_count;
	bool later;                    /* nobody waits for it */
	uint64_t stored;               /* the worker's: how many checkpoints were stored when it was submitted */
	struct checkpoint_blobs blobs; /* the answer */
	/* take, policies */
	struct policy_registry *registry;   /* borrowed */
	struct weir_assignment *assignment; /* borrowed: if it has the partition no more, the outcome is WEIR_END */
	struct checkpoint_partition *partition_stored; /* owned by the job: filled in */
	struct weir_partition_state state;             /* the answer */
	struct weir_text extra;                        /* bytes of state.extra */
	int64_t asked_ms;                              /* monotonic: when it was first asked for */
	int64_t retry_ms;                              /* WEIR_AGAIN: not before so long */
	/* say */
	bool left;
	/* the outcome */
	enum weir_status status;
	struct weir_error error;
	bool lost; /* WEIR_FENCED: the partition is still ours, but a checkpoint that was stored is gone */
	int64_t took_ms;
	/* the thread's */
	uint64_t number; /* of all its jobs */
	bool lags;
	int64_t began_ms, refused_ms, due_ms; /* monotonic: first tried, first refused, to be retried */
	struct checkpoint_job *next;
};

struct checkpoint_io;

/** @param open  gives the thread its own store; context is borrowed */
WEIR_MUST_USE enum weir_status checkpoint_io_start(enum weir_status (*open)(void *context, struct weir_store **store,
                                                                            struct weir_error *error),
                                                   void *context, const struct weir_log *log, struct checkpoint_io **io,
                                                   struct weir_error *error);

/** Takes the job; it comes back through its reply queue. @thread any */
void checkpoint_io_submit(struct checkpoint_io *io, struct checkpoint_job *job);

/** Whether its store did not answer, and jobs wait to be retried. @thread any */
bool checkpoint_io_fails(const struct checkpoint_io *io);

/** Does what was submitted, gives up retries, joins and frees. */
void checkpoint_io_stop(struct checkpoint_io *io);

void checkpoint_replies_init(struct checkpoint_replies *replies);
/** The next done job, or NULL; then the caller's: checkpoint_job_free(). */
struct checkpoint_job *checkpoint_replies_take(struct checkpoint_replies *replies);
/** Frees jobs that nobody took. */
void checkpoint_replies_deinit(struct checkpoint_replies *replies);
/** Frees a job and all that it owns (a cut is finished with checkpoint_finish() before). */
void checkpoint_job_free(struct checkpoint_job *job);

#endif
