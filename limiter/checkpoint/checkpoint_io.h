/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoint I/O: a thread with a store of its own that takes partitions, saves
 * checkpoints, or loads segments, while workers continue judging.
 *
 * A worker submits a job, and finds it in its own reply queue when it is done. A
 * thread does its jobs in order, except that jobs with `later` come after all
 * others. A job that fails for a temporary reason is retried about every second
 * until it succeeds or the thread stops. Only jobs of the same partition wait for
 * it.
 */
#ifndef LIMITER_CHECKPOINT_IO_H
#define LIMITER_CHECKPOINT_IO_H

#include "common/bus/bus.h"
#include "common/cluster/assignment.h"
#include "common/log/log.h"
#include "limiter/checkpoint/checkpoint.h"

#include <pthread.h>

enum checkpoint_job_kind {
	CHECKPOINT_SAVE,     /* stores a cut */
	CHECKPOINT_LOAD,     /* reads segments */
	CHECKPOINT_TAKE,     /* takes a partition: its epoch, its checkpoint, and policies that the registry lacks */
	CHECKPOINT_POLICIES, /* reads the policies that the registry lacks */
	CHECKPOINT_ANNOUNCE, /* announces that this limiter is leaving a partition, or has left it */
	CHECKPOINT_STOPPED,  /* says why a partition is stopped */
};

/* One worker's jobs that are done. */
struct checkpoint_replies {
	pthread_mutex_t lock;
	struct checkpoint_job *first, **last;
	_Atomic uint32_t count; /* read without the lock */
	int wake;               /* an eventfd, written at each answer; -1: none */
};

struct checkpoint_job {
	enum checkpoint_job_kind kind;
	uint32_t partition;
	struct checkpoint_replies *replies;
	/* save */
	struct checkpoint_cut cut;
	/* load */
	uint64_t epoch;
	uint64_t at_least;  /* a checkpoint that is known to be stored */
	uint32_t *segments; /* owned by the job */
	uint32_t segment_count;
	bool later;                    /* nobody waits for it */
	bool checks;                   /* for the worker: checks wait for it */
	bool more;                     /* for the worker: what waits needs the next job's segments, too */
	uint64_t stored;               /* for the worker: how many checkpoints were stored when it was submitted */
	struct checkpoint_blobs blobs; /* the answer */
	/* save, take, policies */
	struct policy_registry *registry;   /* borrowed */
	struct weir_assignment *assignment; /* borrowed: if it no longer has the partition, the outcome is WEIR_END */
	struct checkpoint_partition *partition_stored; /* owned by the job: filled in */
	struct weir_partition_state state;             /* the answer */
	struct weir_text extra;                        /* the bytes of state.extra */
	int64_t asked_ms;                              /* monotonic: when the partition was first asked for */
	int64_t retry_ms;                              /* WEIR_AGAIN: how long to wait before asking again */
	uint64_t awaited;                              /* policies: the version that the log has and the registry lacks */
	/* announce */
	bool left; /* false: is leaving */
	/* stopped: why. Take: who publishes no judged frames of it; NULL: they are published */
	char *words; /* owned by the job */
	/* the outcome */
	enum weir_status status;
	struct weir_error error;
	bool lost; /* WEIR_FENCED: the partition is still ours, but a stored checkpoint is gone */
	int64_t took_ms;
	/* the thread's */
	uint64_t number;                      /* counts all its jobs, in the order of submission */
	bool lags;                            /* the store may only lag behind: retry */
	int64_t began_ms, refused_ms, due_ms; /* monotonic: first tried, first refused, next retry */
	struct checkpoint_job *next;
};

struct checkpoint_io;

/** @param open  opens the thread's own store, during this call; context is borrowed */
WEIR_MUST_USE enum weir_status checkpoint_io_start(enum weir_status (*open)(void *context, struct weir_store **store,
                                                                            struct weir_error *error),
                                                   void *context, const struct weir_log *log, struct checkpoint_io **io,
                                                   struct weir_error *error);

/** From where policies that the store has lost are put back; before the first job. @param bus  borrowed, outlives it */
void checkpoint_io_recall_from(struct checkpoint_io *io, struct weir_bus *bus);

/** Takes the job, which comes back through its reply queue. @thread any */
void checkpoint_io_submit(struct checkpoint_io *io, struct checkpoint_job *job);

/** Whether its store has failed, and jobs wait to be retried. @thread any */
bool checkpoint_io_fails(const struct checkpoint_io *io);
/** How often its store has failed. @thread any */
uint64_t checkpoint_io_failures(const struct checkpoint_io *io);
/** Why its store failed last. @thread any */
void checkpoint_io_failure(struct checkpoint_io *io, char *text, size_t bytes);

/** Does the jobs submitted so far, trying failed ones only once more; then joins the thread and frees. */
void checkpoint_io_stop(struct checkpoint_io *io);

/** Reads the policies that a registry lacks. @return WEIR_OK; WEIR_IO; else what one of them is that cannot be used */
WEIR_MUST_USE enum weir_status checkpoint_read_policies(struct weir_store *store, struct policy_registry *registry,
                                                        struct weir_error *error);

/** @param wake  an eventfd that outlives it, written at each answer; -1: none */
void checkpoint_replies_init(struct checkpoint_replies *replies, int wake);
/** The next job that is done, or NULL. Returned, the caller frees it with checkpoint_job_free(). */
struct checkpoint_job *checkpoint_replies_take(struct checkpoint_replies *replies);
/** Frees jobs that nobody took. */
void checkpoint_replies_deinit(struct checkpoint_replies *replies);
/** Frees a job and all that it owns, except a cut, which the caller has ended with checkpoint_finish(). */
void checkpoint_job_free(struct checkpoint_job *job);

#endif
