/* A queue, a thread, a store. What waits is bounded by its users: one save and one load a partition. */
#include "limiter/keeper.h"

#include "common/alloc.h"
#include "common/clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct keeper {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct keeper_job *first, **last;
	_Atomic bool stopping;
	struct weir_store *store;
	const struct weir_log *log; /* borrowed */
	struct weir_trouble trouble;
};

static enum weir_status try_job(struct keeper *keeper, struct keeper_job *job)
{
	if (job->kind == KEEPER_SAVE)
		return checkpoint_store(keeper->store, &job->cut, 1, NULL, NULL, 0, &job->error);
	checkpoint_blobs_deinit(&job->blobs);
	return checkpoint_read(keeper->store, job->partition, job->epoch, job->segments, job->segment_count, &job->blobs,
	                       &job->error);
}

/* A second, or less when the keeper is to stop. */
static void pause_retry(struct keeper *keeper)
{
	for (int i = 0; i < 20 && !atomic_load(&keeper->stopping); i++)
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

static void do_job(struct keeper *keeper, struct keeper_job *job)
{
	int64_t began_ms = weir_monotonic_ms();
	while ((job->status = try_job(keeper, job)) == WEIR_IO && !atomic_load(&keeper->stopping)) {
		weir_trouble_on(&keeper->trouble, keeper->log, "store", "%s; trying again each second", job->error.text);
		pause_retry(keeper);
	}
	if (job->status == WEIR_OK)
		weir_trouble_off(&keeper->trouble, keeper->log, "store");
	job->took_ms = weir_monotonic_ms() - began_ms;
	job->next = NULL;
	struct keeper_replies *replies = job->replies;
	pthread_mutex_lock(&replies->lock);
	*replies->last = job;
	replies->last = &job->next;
	atomic_fetch_add(&replies->count, 1);
	pthread_mutex_unlock(&replies->lock);
}

static void *work(void *context)
{
	struct keeper *keeper = context;
	for (;;) {
		pthread_mutex_lock(&keeper->lock);
		while (keeper->first == NULL && !atomic_load(&keeper->stopping))
			pthread_cond_wait(&keeper->more, &keeper->lock);
		struct keeper_job *job = keeper->first;
		if (job != NULL && (keeper->first = job->next) == NULL)
			keeper->last = &keeper->first;
		pthread_mutex_unlock(&keeper->lock);
		if (job == NULL)
			return NULL;
		do_job(keeper, job);
	}
}

enum weir_status keeper_start(enum weir_status (*open)(void *context, struct weir_store **store,
                                                       struct weir_error *error),
                              void *context, const struct weir_log *log, struct keeper **out, struct weir_error *error)
{
	struct keeper *keeper = weir_alloc(1, sizeof *keeper);
	keeper->log = log;
	keeper->last = &keeper->first;
	enum weir_status status = open(context, &keeper->store, error);
	if (status != WEIR_OK) {
		free(keeper);
		return status;
	}
	pthread_mutex_init(&keeper->lock, NULL);
	pthread_cond_init(&keeper->more, NULL);
	int failed = pthread_create(&keeper->thread, NULL, work, keeper);
	if (failed != 0) {
		keeper->store->ops->close(keeper->store);
		free(keeper);
		return weir_fail(error, WEIR_IO, "cannot start a keeper's thread: %s", strerror(failed));
	}
	*out = keeper;
	return WEIR_OK;
}

void keeper_submit(struct keeper *keeper, struct keeper_job *job)
{
	job->next = NULL;
	pthread_mutex_lock(&keeper->lock);
	*keeper->last = job;
	keeper->last = &job->next;
	pthread_cond_signal(&keeper->more);
	pthread_mutex_unlock(&keeper->lock);
}

void keeper_stop(struct keeper *keeper)
{
	if (keeper == NULL)
		return;
	pthread_mutex_lock(&keeper->lock);
	atomic_store(&keeper->stopping, true);
	pthread_cond_signal(&keeper->more);
	pthread_mutex_unlock(&keeper->lock);
	pthread_join(keeper->thread, NULL);
	keeper->store->ops->close(keeper->store);
	pthread_mutex_destroy(&keeper->lock);
	pthread_cond_destroy(&keeper->more);
	free(keeper);
}

void keeper_replies_init(struct keeper_replies *replies)
{
	pthread_mutex_init(&replies->lock, NULL);
	replies->first = NULL;
	replies->last = &replies->first;
	atomic_store(&replies->count, 0);
}

struct keeper_job *keeper_replies_take(struct keeper_replies *replies)
{
	if (atomic_load(&replies->count) == 0)
		return NULL;
	pthread_mutex_lock(&replies->lock);
	struct keeper_job *job = replies->first;
	if (job != NULL) {
		if ((replies->first = job->next) == NULL)
			replies->last = &replies->first;
		atomic_fetch_sub(&replies->count, 1);
	}
	pthread_mutex_unlock(&replies->lock);
	return job;
}

void keeper_job_free(struct keeper_job *job)
{
	free(job->segments);
	checkpoint_blobs_deinit(&job->blobs);
	free(job);
}

void keeper_replies_deinit(struct keeper_replies *replies)
{
	struct keeper_job *job;
	while ((job = keeper_replies_take(replies)) != NULL)
		keeper_job_free(job);
	pthread_mutex_destroy(&replies->lock);
}
