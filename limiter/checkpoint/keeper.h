/*
 * A keeper: a thread with a store of its own that takes partitions, saves
 * checkpoints, or loads segments, while workers go on judging.
 *
 * A worker submits a job and finds it again in its own reply queue when it is
 * done. Jobs of one keeper are done in order, those that nobody waits for after
 * all others. One that fails for a passing reason is tried again each second
 * until it succeeds or the keeper stops; those of its partition wait for it, and
 * no others.
 */
#ifndef LIMITER_KEEPER_H
#define LIMITER_KEEPER_H

#include "common/cluster/share.h"
#include "common/log/log.h"
#include "limiter/checkpoint/checkpoint.h"

#include <pthread.h>

enum keeper_kind {
	KEEPER_SAVE,     /* a cut */
	KEEPER_LOAD,     /* segments */
	KEEPER_TAKE,     /* a partition: its epoch, its checkpoint, and the policies that the book does not have */
	KEEPER_POLICIES, /* those alone */
	KEEPER_SAY,      /* that a partition is about to go, or has gone */
};

/* Done jobs of one worker. */
struct keeper_replies {
	pthread_mutex_t lock;
	struct keeper_job *first, **last;
	_Atomic uint32_t count; /* asked without the lock */
};

struct keeper_job {
	enum keeper_kind kind;
	uint32_t partition;
	struct keeper_replies *replies;
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
	struct rulebook *book;    /* borrowed */
	struct weir_share *share; /* borrowed, or NULL: if it has the partition no more, the outcome is WEIR_END */
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
	/* the keeper's */
	uint64_t number; /* of all its jobs */
	bool lags;
	int64_t began_ms, refused_ms, due_ms; /* monotonic: first tried, first refused, to be tried again */
	struct keeper_job *next;
};

struct keeper;

/** @param open  gives the keeper's thread its own store; context is borrowed */
WEIR_MUST_USE enum weir_status keeper_start(enum weir_status (*open)(void *context, struct weir_store **store,
                                                                     struct weir_error *error),
                                            void *context, const struct weir_log *log, struct keeper **keeper,
                                            struct weir_error *error);

/** Does a job with a store: one try, on the caller's thread. */
WEIR_MUST_USE enum weir_status keeper_do(struct keeper_job *job, struct weir_store *store);

/** Takes the job; it comes back through its reply queue. @thread any */
void keeper_submit(struct keeper *keeper, struct keeper_job *job);

/** Whether its store did not answer, and jobs wait to be tried again. @thread any */
bool keeper_in_trouble(const struct keeper *keeper);

/** Does what was submitted, gives up retries, joins and frees. */
void keeper_stop(struct keeper *keeper);

void keeper_replies_init(struct keeper_replies *replies);
/** The next done job, or NULL; then the caller's: keeper_job_free(). */
struct keeper_job *keeper_replies_take(struct keeper_replies *replies);
/** Frees jobs that nobody took. */
void keeper_replies_deinit(struct keeper_replies *replies);
/** Frees a job and all that it owns (a cut is finished with checkpoint_finish() before). */
void keeper_job_free(struct keeper_job *job);

#endif
