/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: answers of checkpoint I/O, changes of the assignment, a batch of
 * messages, acknowledgements, checkpoints. partition.c has the states of each
 * partition; here is only the order of steps.
 */
#include "limiter/worker/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	RETRY_NS = 100000000,
	ANSWERS_MOST_MS =
		100, /* resuming a partition may wait for its leader; after this much, the other steps have their turn */
	REMIND_LOOK_MS = 50,
};

/* ---- steps ---- */

/* Adds the time since then to what the thread has spent judging. @return seconds */
static double be_busy(struct worker *worker, const struct timespec *began)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	double seconds = (double)(now.tv_sec - began->tv_sec) + (double)(now.tv_nsec - began->tv_nsec) / 1e9;
	weir_counter_add(&worker->core.stats.busy_us, (uint64_t)(seconds * 1e6));
	return seconds;
}

/* Takes answers for ANSWERS_MOST_MS at most; all of them once the worker has failed. */
static void take_answers(struct worker *worker)
{
	struct checkpoint_job *job;
	struct timespec began;
	bool any = false;
	clock_gettime(CLOCK_MONOTONIC, &began);
	int64_t end_ms = weir_monotonic_ms() + ANSWERS_MOST_MS;
	while ((worker->core.status != WEIR_OK || weir_monotonic_ms() < end_ms) &&
	       (job = checkpoint_replies_take(&worker->core.replies)) != NULL) {
		partition_take_answer(&worker->partitions[job->partition], job);
		checkpoint_job_free(job);
		any = true;
	}
	if (any) /* messages that waited for segments are judged here */
		(void)be_busy(worker, &began);
}

/* A broken producer may have lost messages after the last checkpoints, so every partition goes back to its last one. */
static void mend_publisher(struct worker *worker)
{
	if (worker->publisher.state == PUBLISHER_BROKEN) {
		int64_t retry_ms = publisher_close(&worker->publisher);
		for (uint32_t i = 0; i < worker->partition_count; i++)
			if (partition_state_works(worker->partitions[i].state))
				partition_drop(&worker->partitions[i], retry_ms);
	}
	if (worker->publisher.state == PUBLISHER_CLOSED)
		publisher_renew(&worker->publisher);
}

static void read_assignment(struct worker *worker)
{
	struct weir_assignment *assignment = worker->core.options.assignment;
	uint64_t version = weir_assignment_version(assignment);
	if (version == worker->assignment_version)
		return;
	uint32_t count;
	worker->assignment_version = version;
	worker->core.generation = weir_assignment_get(assignment, worker->given, &count);
	worker->core.ceiling_bytes = worker->core.options.config->limiter.memory_bytes / (count > 0 ? count : 1);
	for (uint32_t i = 0; i < worker->partition_count; i++)
		if (worker->partitions[i].lane != NULL)
			shard_set_ceiling(lane_shard(worker->partitions[i].lane), worker->core.ceiling_bytes);
}

/* Takes the partitions that this thread should have, and leaves the others; when ending, leaves all. */
static void follow_assignment(struct worker *worker)
{
	const struct worker_options *options = &worker->core.options;
	bool ending = worker->core.phase == WORKER_ENDING;
	if (!ending)
		read_assignment(worker);
	int64_t now_ms = weir_monotonic_ms();
	for (uint32_t i = 0; i < worker->partition_count; i++) {
		struct partition *partition = &worker->partitions[i];
		partition->wanted = !ending && worker->given[i] && placement_of(options->placement, i) == options->number;
		partition_step(partition, now_ms);
	}
}

static int wait_ms(const struct worker *worker)
{
	for (uint32_t i = 0; i < worker->partition_count; i++)
		if (partition_is_owed(&worker->partitions[i]))
			return WORKER_BUSY_WAIT_MS;
	return WORKER_WAIT_MS;
}

/* Handles a failure of receive, which may concern one partition. */
static void take_failure(struct worker *worker, const struct weir_message *at, struct weir_error *error)
{
	if (error->status == WEIR_IO) {
		if (weir_bus_failure_lasts(worker->core.options.bus, &worker->consumer_fails, worker->core.options.log))
			weir_fault_raise(
				&worker->consumer_fault, worker->core.options.log, "limiter",
				"cannot read the log: %s. Nothing is judged meanwhile, and nothing is lost while the log keeps "
				"it. Retrying. %s",
				error->text, worker->core.bus->advice);
		nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
	} else if (at->partition < worker->partition_count) {
		partition_meet_gap(&worker->partitions[at->partition], at, error);
	} else {
		core_fail(&worker->core, error->status, error);
	}
}

/*
 * Receives a batch, waiting if there is none. A worker that takes checks waits for its surface as well, by descriptors.
 * Without checks the bus alone is waited for, as it costs less.
 */
static enum weir_status receive(struct worker *worker, struct weir_message *messages, size_t *count,
                                struct weir_error *error)
{
	struct worker_core *core = &worker->core;
	bool checks = checking_is_on(&worker->checking);
	enum weir_status status =
		core->bus->receive(core->consumer, messages, WORKER_BATCH_MESSAGES, checks ? 0 : wait_ms(worker), count, error);
	if (!checks || status != WEIR_OK || *count > 0)
		return status;
	checking_wait(&worker->checking, wait_ms(worker));
	return core->bus->receive(core->consumer, messages, WORKER_BATCH_MESSAGES, 0, count, error);
}

static void take_messages(struct worker *worker)
{
	struct worker_core *core = &worker->core;
	struct weir_message messages[WORKER_BATCH_MESSAGES];
	messages[0] = (struct weir_message){.partition = UINT32_MAX};
	size_t count = 0;
	struct weir_error error;
	enum weir_status status = receive(worker, messages, &count, &error);
	if (status != WEIR_OK) {
		take_failure(worker, &messages[0], &error);
		return;
	}
	if (count == 0) /* no sign that a fault is over: the brokers may not have been asked again yet */
		return;
	weir_lasting_worked(&worker->consumer_fails);
	weir_fault_over(&worker->consumer_fault, core->options.log, "limiter", "messages arrive again");
	struct timespec began;
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (size_t i = 0; i < count && publisher_works(&worker->publisher); i++) {
		partition_take_message(&worker->partitions[messages[i].partition], &messages[i]);
		checking_serve(&worker->checking); /* callers wait for a message at most */
	}
	weir_histogram_observe(&core->stats.batch, &weir_latency_scale, be_busy(worker, &began));
}

static void checkpoint(struct worker *worker)
{
	int64_t now_ms = weir_monotonic_ms();
	for (uint32_t i = 0; i < worker->partition_count && publisher_works(&worker->publisher); i++)
		partition_checkpoint(&worker->partitions[i], now_ms);
}

static void remind(struct worker *worker)
{
	int64_t now_ms = weir_monotonic_ms();
	if (atomic_load(&worker->core.remind_ms) == 0 || now_ms < worker->remind_due_ms)
		return;
	worker->remind_due_ms = now_ms + REMIND_LOOK_MS;
	for (uint32_t i = 0; i < worker->partition_count && publisher_works(&worker->publisher); i++)
		partition_remind(&worker->partitions[i], now_ms);
}

static void turn(struct worker *worker)
{
	take_answers(worker);
	mend_publisher(worker);
	follow_assignment(worker);
	take_messages(worker);
	publisher_take_acknowledgements(&worker->publisher, 0);
	checking_step(&worker->checking);
	checkpoint(worker);
	remind(worker);
	worker_refresh(worker, false);
}

/* ---- the end ---- */

/* Whether every wanted partition is judged up to the log's end. @param judged  the sum of their offsets */
static bool is_drained(const struct worker *worker, uint64_t *judged)
{
	const struct worker_core *core = &worker->core;
	bool drained = true;
	*judged = 0;
	for (uint32_t i = 0; i < worker->partition_count; i++) {
		const struct partition *partition = &worker->partitions[i];
		uint64_t first, next, at = partition->lane != NULL ? lane_next_offset(partition->lane) : 0;
		struct weir_error error;
		if (!partition->wanted)
			continue;
		*judged += at;
		drained = drained && partition->lane != NULL && partition_checks_are_safe(&partition->checks) &&
		          core->bus->extent(core->options.bus, WEIR_TOPIC_EVENTS, i, &first, &next, &error) == WEIR_OK &&
		          at >= next;
	}
	return drained;
}

/* Judges what the log still has. Gives up after WORKER_STOP_LIMIT_MS without progress: a partition may wait in vain. */
static void drain(struct worker *worker)
{
	uint64_t before = UINT64_MAX, judged;
	int64_t end_ms = 0;
	worker->core.phase = WORKER_DRAINING;
	while (worker->core.status == WEIR_OK) {
		turn(worker);
		if (is_drained(worker, &judged))
			return;
		if (judged != before)
			end_ms = weir_monotonic_ms() + WORKER_STOP_LIMIT_MS;
		else if (weir_monotonic_ms() >= end_ms)
			return;
		before = judged;
	}
}

static bool has_left(const struct worker *worker)
{
	for (uint32_t i = 0; i < worker->partition_count; i++)
		if (partition_state_works(worker->partitions[i].state))
			return false;
	return true;
}

/* Stores last checkpoints, within a bound. What they miss, the next owner judges again. */
static void leave(struct worker *worker)
{
	int64_t end_ms = weir_monotonic_ms() + WORKER_STOP_LIMIT_MS;
	worker->core.phase = WORKER_ENDING;
	while (publisher_works(&worker->publisher) && !has_left(worker) && weir_monotonic_ms() < end_ms) {
		follow_assignment(worker);
		checkpoint(worker);
		publisher_take_acknowledgements(&worker->publisher, WORKER_BUSY_WAIT_MS);
		checking_step(&worker->checking);
		take_answers(worker);
	}
	for (uint32_t i = 0; i < worker->partition_count; i++)
		if (partition_is_unstored(&worker->partitions[i]))
			weir_counter_add(&worker->core.stats.unstored, 1);
}

static void *work(void *context)
{
	struct worker *worker = context;
	while (!core_is_to_end(&worker->core) && worker->core.status == WEIR_OK)
		turn(worker);
	checking_stop(&worker->checking);
	if (atomic_load(&worker->core.asked) == WORKER_DRAINING)
		drain(worker);
	leave(worker);
	checking_end(&worker->checking); /* the process' end may take longer: others leave, and the group is left */
	worker_refresh(worker, true);
	atomic_store(&worker->ended, true);
	return NULL;
}

/* ---- from outside ---- */

/* A bus without room holds up what is judged, and no check. */
static void answer_meanwhile(void *context, int timeout_ms)
{
	struct worker *worker = context;
	checking_wait(&worker->checking, timeout_ms);
	checking_step(&worker->checking);
}

enum weir_status worker_new(const struct worker_options *options, struct worker **out, struct weir_error *error)
{
	struct worker *worker = weir_alloc(1, sizeof *worker);
	struct worker_core *core = &worker->core;
	uint32_t partitions = options->bus->partitions;
	const struct worker_checks *checks = options->checks;
	int wake = checks != NULL ? mail_wake(checks->mail, options->number) : -1;
	core->options = *options;
	core->bus = options->bus->ops;
	core->ceiling_bytes = options->config->limiter.memory_bytes / partitions;
	worker_set_limits(worker, options->age_limit_ms, options->remind_ms);
	checkpoint_replies_init(&core->replies, wake);
	output_init(&worker->output, &worker->publisher);
	view_init(&worker->view, partitions);
	worker->tools = (struct partition_tools){
		.core = core, .publisher = &worker->publisher, .output = &worker->output, .view = &worker->view};
	if (checks != NULL) {
		answering_init(&worker->answering, core, checks->mail);
		worker->tools.answering = &worker->answering;
	}
	worker->partitions = weir_alloc(partitions, sizeof *worker->partitions);
	worker->partition_count = partitions;
	worker->given = weir_alloc(partitions, sizeof *worker->given);
	for (uint32_t i = 0; i < partitions; i++)
		partition_init(&worker->partitions[i], i, &worker->tools);
	checking_init(&worker->checking, core, &worker->publisher, &worker->answering, worker->partitions, partitions,
	              worker->given);
	enum weir_status status = publisher_init(&worker->publisher, core, wake, error);
	if (status == WEIR_OK)
		status = core->bus->consumer_new(options->bus, WEIR_TOPIC_EVENTS, "limiter", &core->consumer, error);
	if (status == WEIR_OK && wake >= 0) {
		core->bus->wake_consumer(core->consumer, wake);
		worker->publisher.idle = answer_meanwhile;
		worker->publisher.idle_context = worker;
	}
	if (status == WEIR_OK)
		status = checking_open(&worker->checking, error);
	if (status != WEIR_OK) {
		worker_free(worker);
		return status;
	}
	*out = worker;
	return WEIR_OK;
}

enum weir_status worker_start(struct worker *worker, struct weir_error *error)
{
	int failed = pthread_create(&worker->thread, NULL, work, worker);
	if (failed != 0)
		return weir_fail(error, WEIR_IO, "cannot start a worker thread: %s", weir_errno_words(failed));
	worker->started = true;
	return WEIR_OK;
}

void worker_stop(struct worker *worker, bool drain_first)
{
	atomic_store(&worker->core.asked, drain_first ? WORKER_DRAINING : WORKER_ENDING);
}

void worker_set_limits(struct worker *worker, int64_t age_limit_ms, int64_t remind_ms)
{
	atomic_store(&worker->core.age_limit_ms, age_limit_ms);
	atomic_store(&worker->core.remind_ms, remind_ms);
}

bool worker_ended(const struct worker *worker)
{
	return atomic_load(&worker->ended);
}

enum weir_status worker_join(struct worker *worker, struct weir_error *error)
{
	if (worker->started)
		pthread_join(worker->thread, NULL);
	worker->started = false;
	if (worker->core.status != WEIR_OK && error != NULL)
		*error = worker->core.error;
	return worker->core.status;
}

void worker_free(struct worker *worker)
{
	if (worker == NULL)
		return;
	if (worker->core.status == WEIR_OK)
		worker->core.status = WEIR_END; /* nothing continues, as checkpoint I/O has ended */
	take_answers(worker);               /* cuts that were being stored belong to lanes */
	for (uint32_t i = 0; i < worker->partition_count; i++)
		partition_deinit(&worker->partitions[i]);
	checking_deinit(&worker->checking);
	answering_deinit(&worker->answering);
	checkpoint_replies_deinit(&worker->core.replies);
	if (worker->core.consumer != NULL)
		worker->core.bus->consumer_free(worker->core.consumer);
	publisher_deinit(&worker->publisher);
	output_deinit(&worker->output);
	view_deinit(&worker->view);
	free(worker->partitions);
	free(worker->given);
	free(worker);
}
