/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers take what the membership's thread says that the group gives; checkpoint
 * I/O brings it from the store and back. They meet only at the assignment, its
 * queues and the bus, so that this file but starts and ends them in order.
 */
#include "limiter/daemon/internal.h"
#include "limiter/daemon/late_note.h"
#include "limiter/daemon/memory_note.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/stop.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/cluster/connect.h"
#include "common/daemon/notify.h"
#include "limiter/checkpoint/cluster_metadata.h"

static const int64_t FOR_EVER_MS = INT64_C(366) * 86400000;

enum { WATCH_PERIOD_MS = 50, NO_POLICY_MS = 2000 };

static enum weir_status prepare(struct weir_daemon *daemon, void **self, struct weir_error *error)
{
	enum weir_status status = weir_connect_check(daemon->config, daemon->name, error);
	if (status != WEIR_OK)
		return status;
	struct limiter *limiter = weir_alloc(1, sizeof *limiter);
	limiter->daemon = daemon;
	limiter->registry = policy_registry_new();
	limiter_pages_init(limiter);
	*self = limiter;
	return WEIR_OK;
}

/* ---- connecting ---- */

static enum weir_status open_store(void *context, struct weir_store **store, struct weir_error *error)
{
	const struct limiter *limiter = context;
	return weir_connect_store(limiter->daemon->config, FOR_EVER_MS, weir_stop_flag(), &limiter->daemon->log, store,
	                          error);
}

/* All that it writes: a message that cannot be written stops those after it. */
static void use_topics(const struct limiter *limiter)
{
	const bool needed[WEIR_TOPIC_COUNT] = {
		[WEIR_TOPIC_EVENTS] = true,     [WEIR_TOPIC_JUDGED] = limiter->daemon->config->archiver.enabled,
		[WEIR_TOPIC_DECISIONS] = true,  [WEIR_TOPIC_SHADOW] = true,
		[WEIR_TOPIC_DEADLETTER] = true,
	};
	weir_bus_kafka_use(limiter->bus, needed);
}

/* Waits for servers that are not there yet. @return WEIR_END: asked to stop meanwhile */
static enum weir_status connect_servers(struct limiter *limiter, struct weir_error *error)
{
	const struct weir_daemon *daemon = limiter->daemon;
	struct weir_store *store = NULL;
	uint64_t policy;
	enum weir_status status = weir_connect_bus(daemon->config, daemon->name, FOR_EVER_MS, weir_stop_flag(),
	                                           &daemon->log, &limiter->bus, error);
	if (status == WEIR_OK) {
		use_topics(limiter);
		atomic_store(&limiter->phase, LIMITER_OPENING);
		status = weir_daemon_of_server(open_store(limiter, &store, error));
	}
	if (status == WEIR_OK)
		status = cluster_metadata_establish(store, limiter->bus->partitions, &limiter->seed, error);
	if (status == WEIR_OK)
		status = limiter_check_policy(limiter->bus, store, &policy, error);
	if (store != NULL)
		store->ops->close(store);
	return status != WEIR_OK && atomic_load(weir_stop_flag()) ? WEIR_END : status;
}

/* ---- starting ---- */

/* How long a topic keeps what it has: where the brokers say that it is less than is configured, they decide. */
static int64_t retention_ms(const struct limiter *limiter, enum weir_topic topic)
{
	int64_t configured_ms = limiter->daemon->config->bus.retention_ms;
	struct weir_bus_kafka_retention kept = weir_bus_kafka_retention(limiter->bus, topic);
	return kept.known && kept.ms >= 0 && kept.ms < configured_ms ? kept.ms : configured_ms;
}

/* By how long the topics keep their messages, which someone may change at any time. */
static int64_t age_limit_ms(const struct limiter *limiter)
{
	return retention_ms(limiter, WEIR_TOPIC_EVENTS) / 2;
}

static int64_t remind_ms(const struct limiter *limiter)
{
	int64_t decisions_ms = retention_ms(limiter, WEIR_TOPIC_DECISIONS);
	int64_t shadow_ms = retention_ms(limiter, WEIR_TOPIC_SHADOW);
	return (decisions_ms < shadow_ms ? decisions_ms : shadow_ms) / 3;
}

static enum weir_status start_worker(struct limiter *limiter, uint32_t number, struct weir_error *error)
{
	const struct weir_config *config = limiter->daemon->config;
	struct worker_options options = {
		.config = config,
		.bus = limiter->bus,
		.registry = limiter->registry,
		.first_policy = 1, /* an empty partition meets every policy in its log, from the first one on */
		.seed = limiter->seed,
		.number = number,
		.placement = limiter->placement,
		.assignment = limiter->assignment,
		.dead_letters = true,
		.age_limit_ms = age_limit_ms(limiter),
		.remind_ms = remind_ms(limiter),
		.checkpoint_writer = limiter->checkpoint_writer,
		.checkpoint_reader = limiter->checkpoint_reader,
		.log = &limiter->daemon->log,
	};
	struct worker **worker = &limiter->workers[number];
	enum weir_status status = worker_new(&options, worker, error);
	return status == WEIR_OK ? worker_start(*worker, error) : status;
}

void limiter_view(const struct limiter *limiter, uint32_t partition, struct worker_partition *look)
{
	worker_view(limiter->workers[placement_holder(limiter->placement, partition)], partition, look);
}

static void start_balance(struct limiter *limiter)
{
	const struct balance_options options = {
		.assignment = limiter->assignment,
		.placement = limiter->placement,
		.partitions = limiter->bus->partitions,
		.workers = limiter->workers,
		.worker_count = limiter->worker_count,
		.checkpoint_writer = limiter->checkpoint_writer,
		.checkpoint_reader = limiter->checkpoint_reader,
		.log = &limiter->daemon->log,
	};
	limiter->balance = balance_new(&options);
}

/* ---- how far behind ---- */

static bool inspect_partition(void *context, enum weir_topic topic, uint32_t partition, struct weir_lag_place *place)
{
	const struct limiter *limiter = context;
	struct worker_partition look;
	(void)topic;
	limiter_view(limiter, partition, &look);
	*place = (struct weir_lag_place){look.next_offset, look.clock_ms};
	/* One that stands still is behind, too; one without an error is another's. */
	return look.state == WORKER_LIVE || look.state == WORKER_PAUSED || look.state == WORKER_LEAVING ||
	       (look.state == WORKER_PARKED && look.error[0] != '\0');
}

static enum weir_status start_lag(struct limiter *limiter, struct weir_error *error)
{
	static const enum weir_topic topics[] = {WEIR_TOPIC_EVENTS};
	const struct weir_lag_options options = {limiter->bus, topics, 1, inspect_partition, limiter};
	return weir_lag_start(&options, &limiter->lag, error);
}

static enum weir_status start_threads(struct limiter *limiter, struct weir_error *error)
{
	const struct weir_log *log = &limiter->daemon->log;
	uint32_t threads = (uint32_t)limiter->daemon->config->limiter.threads, partitions = limiter->bus->partitions;
	limiter->assignment = weir_assignment_new(partitions);
	limiter->worker_count = threads < partitions ? threads : partitions;
	limiter->placement = placement_new(partitions, limiter->worker_count);
	limiter->workers = weir_alloc(limiter->worker_count, sizeof(struct worker *));
	enum weir_status status = checkpoint_io_start(open_store, limiter, log, &limiter->checkpoint_writer, error);
	if (status == WEIR_OK)
		status = checkpoint_io_start(open_store, limiter, log, &limiter->checkpoint_reader, error);
	for (uint32_t i = 0; status == WEIR_OK && i < limiter->worker_count; i++)
		status = start_worker(limiter, i, error);
	if (status == WEIR_OK)
		start_balance(limiter);
	if (status == WEIR_OK)
		status = start_lag(limiter, error);
	if (status == WEIR_OK)
		status = weir_membership_start(limiter->bus, "limiter", limiter->assignment, log, &limiter->membership, error);
	if (status != WEIR_OK)
		return status;
	atomic_store(&limiter->phase, LIMITER_WORKING);
	weir_log(log, WEIR_LOG_INFO, "limiter", "working on topic %s.%s, %u partitions, with %u thread%s",
	         limiter->daemon->config->bus.prefix, "events", partitions, limiter->worker_count,
	         limiter->worker_count == 1 ? "" : "s");
	weir_notify("READY=1");
	return WEIR_OK;
}

static enum weir_status start(void *self, struct weir_error *error)
{
	enum weir_status status = connect_servers(self, error);
	return status == WEIR_OK ? start_threads(self, error) : status;
}

/* ---- working ---- */

static bool part_failed(const struct limiter *limiter)
{
	for (uint32_t i = 0; i < limiter->worker_count; i++)
		if (worker_ended(limiter->workers[i]))
			return true;
	return weir_membership_failed(limiter->membership);
}

/* Checkpoint I/O looks for one each second; whoever has none after two turns is told. */
static void log_policy(const struct limiter *limiter, struct weir_fault *fault, int64_t *since_ms)
{
	uint32_t given;
	weir_assignment_get(limiter->assignment, NULL, &given);
	if (given == 0 || *since_ms == 0)
		*since_ms = weir_monotonic_ms();
	if (policy_registry_newest(limiter->registry) > 0)
		weir_fault_clear(fault, &limiter->daemon->log, "policy");
	else if (weir_monotonic_ms() - *since_ms > NO_POLICY_MS)
		weir_fault_raise(fault, &limiter->daemon->log, "policy", "no policy yet: run `weir policy apply`");
}

static enum weir_status watch(void *self, struct weir_error *error)
{
	struct limiter *limiter = self;
	(void)error; /* a part that has failed says why when it is joined */
	struct weir_fault no_policy = {0};
	int64_t policy_since_ms = 0;
	struct late_note late = {0};
	struct memory_note memory = {0};
	const struct limiter_parts parts = {
		.workers = limiter->workers, .worker_count = limiter->worker_count, .registry = limiter->registry};
	while (!atomic_load(weir_stop_flag()) && !part_failed(limiter)) {
		if (weir_stop_take_reload())
			weir_daemon_reload(limiter->daemon);
		log_policy(limiter, &no_policy, &policy_since_ms);
		for (uint32_t i = 0; i < limiter->worker_count; i++)
			worker_set_limits(limiter->workers[i], age_limit_ms(limiter), remind_ms(limiter));
		balance_turn(limiter->balance);
		late_note_watch(&late, &parts, &limiter->daemon->log);
		memory_note_watch(&memory, &parts, limiter->daemon->config->limiter.memory_bytes, &limiter->daemon->log);
		nanosleep(&(struct timespec){.tv_nsec = WATCH_PERIOD_MS * 1000000L}, NULL);
	}
	return WEIR_OK;
}

/* ---- ending ---- */

/* Last checkpoints, then out of the group, each within a bound. Threads of servers' libraries are left as they are. */
static bool stop(void *self)
{
	struct limiter *limiter = self;
	const struct weir_log *log = &limiter->daemon->log;
	bool good = !weir_membership_failed(limiter->membership);
	struct weir_error error;
	atomic_store(&limiter->phase, LIMITER_STOPPING);
	weir_notify("STOPPING=1");
	for (uint32_t i = 0; i < limiter->worker_count; i++)
		worker_stop(limiter->workers[i], false);
	for (uint32_t i = 0; i < limiter->worker_count; i++) {
		if (worker_join(limiter->workers[i], &error) == WEIR_OK)
			continue;
		weir_log(log, WEIR_LOG_ERROR, "limiter", "%s", error.text);
		good = false;
	}
	if (!weir_membership_leave(limiter->membership))
		weir_log(log, WEIR_LOG_WARNING, "group",
		         "cannot leave the consumer group; it will notice after session.timeout.ms");
	weir_log(log, WEIR_LOG_INFO, "limiter", "stopped");
	return good;
}

static const struct weir_daemon_pages *pages(void *self)
{
	const struct limiter *limiter = self;
	return &limiter->pages;
}

const struct weir_daemon_role limiter_role = {
	.log_name = "limiter",
	.prepare = prepare,
	.check = limiter_check,
	.pages = pages,
	.start = start,
	.watch = watch,
	.stop = stop,
};
