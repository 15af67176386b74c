/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues, a thread, a store. Its users bound the queues: a few jobs per partition. A job that fails waits in a queue of
 * its own while others are done: the failure may concern its partition alone, such as a locked row.
 */
#include "limiter/checkpoint/checkpoint_io.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/deadline.h"
#include "common/base/wake.h"
#include "common/cluster/partition_note.h"
#include "common/cluster/policy_note.h"
#include "limiter/checkpoint/handover.h"
#include "limiter/checkpoint/policy_keeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	NO_POLICY_WAIT_MS = 1000,
	HANDOVER_WAIT_MS = 20,
	RETRY_MS = 1000,
	RETRY_APART_MS = 20, /* between the retries of two jobs, so that not all hit a failing store at once */
	LAG_MS = 2000,       /* what a store does not show for so long counts as lost */
};

struct queue {
	struct checkpoint_job *first, **last;
};

struct checkpoint_io {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct queue soon, later;
	uint64_t submitted;   /* jobs so far */
	struct queue waiting; /* jobs to be retried, by due_ms; only the thread uses it */
	int64_t last_due_ms;  /* due_ms of its last job */
	bool retried;         /* the last job that was done was one of them: it is another's turn */
	_Atomic bool stopping, fails;
	struct weir_store *store;
	const struct weir_log *log; /* borrowed */
	struct weir_fault fault;
	struct policy_keeper keeper; /* its bus is set before the first job */
	_Atomic uint64_t failures;
	char failure[WEIR_ERROR_TEXT_BYTES]; /* the last one; under the lock */
};

static void put(struct queue *queue, struct checkpoint_job *job)
{
	job->next = NULL;
	*queue->last = job;
	queue->last = &job->next;
}

static struct checkpoint_job *get(struct queue *queue)
{
	struct checkpoint_job *job = queue->first;
	if (job != NULL && (queue->first = job->next) == NULL)
		queue->last = &queue->first;
	return job;
}

struct adding {
	struct policy_registry *registry;
	struct weir_error *error;
};

static enum weir_status add_policy(void *context, uint64_t version, struct weir_span text)
{
	struct adding *adding = context;
	return policy_registry_add(adding->registry, version, text, adding->error);
}

enum weir_status checkpoint_read_policies(struct weir_store *store, struct policy_registry *registry,
                                          struct weir_error *error)
{
	struct adding adding = {.registry = registry, .error = error};
	return store->ops->policy_each(store, policy_registry_newest(registry) + 1, add_policy, &adding, error);
}

/*
 * Policies are loaded last, so that every policy that the checkpoint names is among them. They are also loaded first,
 * as nothing is taken while there is no policy. What the store has lost is put back between.
 */
static enum weir_status take(struct checkpoint_io *io, struct checkpoint_job *job)
{
	struct weir_store *store = io->store;
	struct weir_error *error = &job->error;
	enum weir_status status = checkpoint_read_policies(store, job->registry, error);
	job->retry_ms = NO_POLICY_WAIT_MS;
	if (status == WEIR_OK && policy_registry_newest(job->registry) == 0)
		return weir_fail(error, WEIR_AGAIN, "no policy yet");
	if (status == WEIR_OK) {
		if (!weir_assignment_has(job->assignment, job->partition))
			return weir_fail(error, WEIR_END, "partition %u now has another owner", job->partition);
		job->retry_ms = HANDOVER_WAIT_MS;
		status = handover_ask(store, job->partition, weir_monotonic_ms() - job->asked_ms, error);
	}
	if (status == WEIR_OK)
		status = checkpoint_take(job->partition_stored, store, job->partition, &job->state, &job->extra, error);
	if (status == WEIR_OK && job->words != NULL)
		status = weir_partition_note_put(store, WEIR_PARTITION_UNARCHIVED, job->partition, job->partition_stored->epoch,
		                                 job->words, error);
	if (status != WEIR_OK)
		return status;
	uint64_t known = policy_registry_newest(job->registry);
	uint64_t saved = job->state.checkpoint > 0 ? job->state.policy_version : 0;
	policy_keeper_look(&io->keeper, store, job->registry, saved > known ? saved : known);
	return checkpoint_read_policies(store, job->registry, error);
}

/* For a partition whose log has a policy that the registry lacks. A store that has none either has lost it. */
static enum weir_status read_awaited(struct checkpoint_io *io, struct checkpoint_job *job)
{
	enum weir_status status = checkpoint_read_policies(io->store, job->registry, &job->error);
	if (status != WEIR_OK || policy_registry_newest(job->registry) >= job->awaited)
		return status;
	policy_keeper_look(&io->keeper, io->store, job->registry, job->awaited);
	return checkpoint_read_policies(io->store, job->registry, &job->error);
}

/* A checkpoint under a policy that the store lacks can be read by nobody. */
static enum weir_status save(struct checkpoint_io *io, struct checkpoint_job *job)
{
	if (job->registry != NULL)
		policy_keeper_look_sometimes(&io->keeper, io->store, job->registry, job->cut.state.policy_version);
	return checkpoint_store(io->store, &job->cut, 1, NULL, NULL, NULL, 0, &job->error);
}

static enum weir_status try_job(struct checkpoint_io *io, struct checkpoint_job *job)
{
	struct weir_store *store = io->store;
	switch (job->kind) {
	case CHECKPOINT_SAVE: return save(io, job);
	case CHECKPOINT_TAKE: return take(io, job);
	case CHECKPOINT_POLICIES: return read_awaited(io, job);
	case CHECKPOINT_ANNOUNCE: return handover_announce(store, job->partition, job->epoch, job->left, &job->error);
	case CHECKPOINT_STOPPED:
		return weir_partition_note_put(store, WEIR_PARTITION_STOPPED, job->partition, job->epoch, job->words,
		                               &job->error);
	default:
		checkpoint_blobs_deinit(&job->blobs);
		return checkpoint_read(store, job->partition, job->epoch, job->at_least, job->segments, job->segment_count,
		                       &job->blobs, &job->error);
	}
}

/*
 * Finds out why a job was refused. If the partition is still ours, the store does not have what was stored: a replica
 * that lags will show it soon; a server that has replaced another may have lost it.
 */
static void explain_refusal(struct checkpoint_job *job, struct weir_store *store, int64_t now_ms)
{
	struct weir_partition_state found;
	struct weir_error error;
	if (job->kind != CHECKPOINT_SAVE && job->kind != CHECKPOINT_LOAD)
		return;
	if (store->ops->inspect(store, WEIR_STORE_ROLE_LIMITER, job->partition, &found, &error) != WEIR_OK) {
		job->status = WEIR_IO;
		job->error = error;
		return;
	}
	if (job->refused_ms == 0)
		job->refused_ms = now_ms;
	job->lags = found.epoch <= job->epoch && now_ms - job->refused_ms < LAG_MS;
	job->lost = found.epoch == job->epoch;
}

static void give_back(struct checkpoint_job *job)
{
	struct checkpoint_replies *replies = job->replies;
	int wake = replies->wake; /* whoever takes the last answer may free them */
	job->next = NULL;
	pthread_mutex_lock(&replies->lock);
	*replies->last = job;
	replies->last = &job->next;
	atomic_fetch_add(&replies->count, 1);
	pthread_mutex_unlock(&replies->lock);
	weir_wake_up(wake);
}

static void wait_aside(struct checkpoint_io *io, struct checkpoint_job *job)
{
	int64_t due_ms = weir_monotonic_ms() + RETRY_MS, apart_ms = io->last_due_ms + RETRY_APART_MS;
	job->due_ms = io->last_due_ms = due_ms > apart_ms ? due_ms : apart_ms;
	put(&io->waiting, job);
}

/* What could not be done, and what waits for it. The store's own words name what to do. */
static void raise_fault(struct checkpoint_io *io, const struct checkpoint_job *job)
{
	static const struct {
		const char *attempt, *table, *effect;
	} words[] = {
		[CHECKPOINT_SAVE] = {"store a checkpoint of", "its row of partition_state",
	                         "Verdicts go on in memory, until the last checkpoint is half as old as the log keeps"},
		[CHECKPOINT_LOAD] = {"read the state of", "its rows of segment_state",
	                         "Its messages wait for it; nothing is lost"},
		[CHECKPOINT_TAKE] = {"take", "its row of partition_state",
	                         "It is judged once it is taken; until then the log keeps its messages"},
		[CHECKPOINT_ANNOUNCE] = {"hand over", "its row of note", "Its next owner takes it some seconds later"},
		[CHECKPOINT_STOPPED] = {"note the stop of", "its row of note",
	                            "`weir doctor` does not know the reason until then"},
		[CHECKPOINT_POLICIES] = {"read a policy for", "policy_version", "Its messages wait for it; nothing is lost"},
	};
	weir_fault_raise(&io->fault, io->log, "store",
	                 "cannot %s partition %u (%s). %s. Retrying every second. The store: %s", words[job->kind].attempt,
	                 job->partition, words[job->kind].table, words[job->kind].effect, job->error.text);
}

/* The newest policy, when the store had one that this process did not know: with who applied it, if that is known. */
static void tell_policy(const struct checkpoint_io *io, struct policy_registry *registry)
{
	uint64_t version = policy_registry_newest(registry);
	struct weir_policy_note note;
	struct weir_error ignored;
	uint32_t zones = policy_registry_policy(registry, version)->zone_count;
	char by[WEIR_POLICY_AUTHOR_BYTES + 64] = "";
	if (weir_policy_note_get(io->store, version, &note, &ignored) == WEIR_OK && note.at_ms > 0) {
		struct tm parts;
		time_t at = note.at_ms / 1000;
		size_t used = (size_t)snprintf(by, sizeof by, "; applied by %s", note.by[0] != '\0' ? note.by : "somebody");
		if (gmtime_r(&at, &parts) != NULL)
			strftime(by + used, sizeof by - used, " at %Y-%m-%dT%H:%M:%SZ", &parts);
	}
	weir_log(io->log, WEIR_LOG_INFO, "policy", "policy %llu is in force: %u zone%s%s", (unsigned long long)version,
	         zones, zones == 1 ? "" : "s", by);
}

static void note_failure(struct checkpoint_io *io, const char *words)
{
	atomic_store(&io->fails, true);
	atomic_fetch_add(&io->failures, 1);
	pthread_mutex_lock(&io->lock);
	snprintf(io->failure, sizeof io->failure, "%s", words);
	pthread_mutex_unlock(&io->lock);
}

static void do_job(struct checkpoint_io *io, struct checkpoint_job *job)
{
	int64_t now_ms = weir_monotonic_ms();
	if (job->began_ms == 0)
		job->began_ms = now_ms;
	job->lags = job->lost = false;
	struct weir_error before = job->error;
	uint64_t known = job->registry != NULL ? policy_registry_newest(job->registry) : 0;
	job->status = try_job(io, job);
	/* A save reads none: what is new to the registry meanwhile is told by the job of another thread that read it. */
	if (job->kind != CHECKPOINT_SAVE && job->registry != NULL && policy_registry_newest(job->registry) > known)
		tell_policy(io, job->registry);
	if (job->status == WEIR_FENCED)
		explain_refusal(job, io->store, now_ms);
	if (job->status == WEIR_IO) {
		note_failure(io, job->error.text);
		/* Several waiting jobs may fail in turn, for different reasons: each job logs a reason once. */
		if (strcmp(before.text, job->error.text) != 0)
			raise_fault(io, job);
		else
			weir_fault_remind(&io->fault, io->log, "store");
	} else if (io->waiting.first == NULL) {
		atomic_store(&io->fails, false);
		weir_fault_over(&io->fault, io->log, "store", "it works again, and the checkpoints that waited are stored");
	}
	if ((job->status == WEIR_IO || job->lags) && !atomic_load(&io->stopping)) {
		wait_aside(io, job);
		return;
	}
	job->took_ms = weir_monotonic_ms() - job->began_ms;
	give_back(job);
}

/* Whether an earlier job of the same partition waits. They are done in order: the last announcement must win. */
static bool is_behind(const struct checkpoint_io *io, const struct checkpoint_job *job)
{
	for (const struct checkpoint_job *other = io->waiting.first; other != NULL; other = other->next)
		if (other->partition == job->partition && other->number < job->number)
			return true;
	return false;
}

static void wait_for_more(struct checkpoint_io *io)
{
	if (io->waiting.first == NULL) {
		pthread_cond_wait(&io->more, &io->lock);
		return;
	}
	struct weir_deadline due = weir_deadline_at_ms(io->waiting.first->due_ms);
	(void)weir_condition_wait(&io->more, &io->lock, &due);
}

/* The next job that is due; NULL: stopping, and none is left. When stopping, waiting jobs are due at once. */
static struct checkpoint_job *next_job(struct checkpoint_io *io)
{
	struct checkpoint_job *job = NULL;
	pthread_mutex_lock(&io->lock);
	for (;;) {
		bool stopping = atomic_load(&io->stopping);
		const struct checkpoint_job *first = io->waiting.first;
		bool turn = io->retried && (io->soon.first != NULL || io->later.first != NULL);
		bool due = first != NULL && !turn && (stopping || first->due_ms <= weir_monotonic_ms());
		if (due)
			job = get(&io->waiting);
		else if ((job = get(&io->soon)) == NULL)
			job = get(&io->later);
		if (job != NULL && is_behind(io, job)) {
			job->due_ms = io->last_due_ms; /* it comes behind all that wait, and so behind the one before it */
			put(&io->waiting, job);
		} else if (job != NULL || stopping) {
			io->retried = due;
			break;
		} else {
			wait_for_more(io);
		}
	}
	pthread_mutex_unlock(&io->lock);
	return job;
}

static void *work(void *context)
{
	struct checkpoint_io *io = context;
	struct checkpoint_job *job;
	while ((job = next_job(io)) != NULL)
		do_job(io, job);
	return NULL;
}

enum weir_status checkpoint_io_start(enum weir_status (*open)(void *context, struct weir_store **store,
                                                              struct weir_error *error),
                                     void *context, const struct weir_log *log, struct checkpoint_io **out,
                                     struct weir_error *error)
{
	struct checkpoint_io *io = weir_alloc(1, sizeof *io);
	io->log = io->keeper.log = log;
	io->soon.last = &io->soon.first;
	io->later.last = &io->later.first;
	io->waiting.last = &io->waiting.first;
	enum weir_status status = open(context, &io->store, error);
	if (status != WEIR_OK) {
		free(io);
		return status;
	}
	pthread_mutex_init(&io->lock, NULL);
	weir_condition_init(&io->more);
	int failed = pthread_create(&io->thread, NULL, work, io);
	if (failed != 0) {
		io->store->ops->close(io->store);
		free(io);
		return weir_fail(error, WEIR_IO, "cannot start a thread for checkpoint I/O: %s", weir_errno_words(failed));
	}
	*out = io;
	return WEIR_OK;
}

void checkpoint_io_recall_from(struct checkpoint_io *io, struct weir_bus *bus)
{
	io->keeper.bus = bus;
}

void checkpoint_io_submit(struct checkpoint_io *io, struct checkpoint_job *job)
{
	pthread_mutex_lock(&io->lock);
	job->number = io->submitted++;
	put(job->later ? &io->later : &io->soon, job);
	pthread_cond_signal(&io->more);
	pthread_mutex_unlock(&io->lock);
}

bool checkpoint_io_fails(const struct checkpoint_io *io)
{
	return atomic_load(&io->fails);
}

uint64_t checkpoint_io_failures(const struct checkpoint_io *io)
{
	return atomic_load(&io->failures);
}

void checkpoint_io_failure(struct checkpoint_io *io, char *text, size_t bytes)
{
	pthread_mutex_lock(&io->lock);
	snprintf(text, bytes, "%s", io->failure);
	pthread_mutex_unlock(&io->lock);
}

void checkpoint_io_stop(struct checkpoint_io *io)
{
	if (io == NULL)
		return;
	pthread_mutex_lock(&io->lock);
	atomic_store(&io->stopping, true);
	pthread_cond_signal(&io->more);
	pthread_mutex_unlock(&io->lock);
	pthread_join(io->thread, NULL);
	io->store->ops->close(io->store);
	pthread_mutex_destroy(&io->lock);
	pthread_cond_destroy(&io->more);
	free(io);
}

void checkpoint_replies_init(struct checkpoint_replies *replies, int wake)
{
	replies->wake = wake;
	pthread_mutex_init(&replies->lock, NULL);
	replies->first = NULL;
	replies->last = &replies->first;
	atomic_store(&replies->count, 0);
}

struct checkpoint_job *checkpoint_replies_take(struct checkpoint_replies *replies)
{
	if (atomic_load(&replies->count) == 0)
		return NULL;
	pthread_mutex_lock(&replies->lock);
	struct checkpoint_job *job = replies->first;
	if (job != NULL) {
		if ((replies->first = job->next) == NULL)
			replies->last = &replies->first;
		atomic_fetch_sub(&replies->count, 1);
	}
	pthread_mutex_unlock(&replies->lock);
	return job;
}

void checkpoint_job_free(struct checkpoint_job *job)
{
	free(job->segments);
	free(job->words);
	checkpoint_blobs_deinit(&job->blobs);
	free(job->partition_stored);
	weir_text_deinit(&job->extra);
	free(job);
}

void checkpoint_replies_deinit(struct checkpoint_replies *replies)
{
	struct checkpoint_job *job;
	while ((job = checkpoint_replies_take(replies)) != NULL)
		checkpoint_job_free(job);
	pthread_mutex_destroy(&replies->lock);
}
