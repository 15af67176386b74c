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
#include "common/cluster/store_claim.h"
#include "common/daemon/notify.h"
#include "limiter/checkpoint/cluster_metadata.h"
#include "limiter/worker/announcements.h"

static const int64_t FOR_EVER_MS = INT64_C(366) * 86400000;

enum { WATCH_PERIOD_MS = 50, ANNOUNCE_PERIOD_MS = 500, NO_POLICY_MS = 2000 };

static enum weir_status accept_config(const struct weir_config *config, const char *name, struct weir_error *error)
{
	enum weir_status status = weir_connect_check(config, name, error);
	if (status == WEIR_OK)
		status = limiter_checks_check(config, error);
	return status == WEIR_OK ? limiter_checks_check_secrets(config, error) : status;
}

static enum weir_status prepare(struct weir_daemon *daemon, void **self, struct weir_error *error)
{
	struct limiter *limiter = weir_alloc(1, sizeof *limiter);
	(void)error;
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

/* All that it reads or writes. The events, judged frames and decisions it cannot do without. */
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
	enum weir_status status = weir_connect_bus(daemon->config, daemon->name, &limiter->awaited, FOR_EVER_MS,
	                                           weir_stop_flag(), &daemon->log, &limiter->bus, error);
	if (status == WEIR_OK) {
		use_topics(limiter);
		atomic_store(&limiter->phase, LIMITER_OPENING);
		status = weir_daemon_of_server(open_store(limiter, &store, error));
	}
	if (status == WEIR_OK)
		status = weir_store_claim(store, daemon->config, error);
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
		.swap_directory = limiter->daemon->state,
		.number = number,
		.placement = limiter->placement,
		.assignment = limiter->assignment,
		.dead_letters = true,
		.age_limit_ms = age_limit_ms(limiter),
		.remind_ms = remind_ms(limiter),
		.checkpoint_writer = limiter->checkpoint_writer,
		.checkpoint_reader = limiter->checkpoint_reader,
		.checks = limiter_checks_options(limiter->checks),
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
	const struct limiter_checks_cluster cluster = {partitions, open_store, limiter, limiter->registry,
	                                               limiter->daemon->state};
	limiter->assignment = weir_assignment_new(partitions);
	limiter->worker_count = threads < partitions ? threads : partitions;
	limiter->placement = placement_new(partitions, limiter->worker_count);
	limiter->workers = weir_alloc(limiter->worker_count, sizeof(struct worker *));
	enum weir_status status = checkpoint_io_start(open_store, limiter, log, &limiter->checkpoint_writer, error);
	if (status == WEIR_OK)
		status = checkpoint_io_start(open_store, limiter, log, &limiter->checkpoint_reader, error);
	if (status == WEIR_OK) {
		checkpoint_io_recall_from(limiter->checkpoint_writer, limiter->bus);
		checkpoint_io_recall_from(limiter->checkpoint_reader, limiter->bus);
	}
	if (status == WEIR_OK)
		status = limiter_checks_new(limiter->daemon->config, NULL, limiter->worker_count, &cluster, log,
		                            &limiter->checks, error);
	for (uint32_t i = 0; status == WEIR_OK && i < limiter->worker_count; i++)
		status = start_worker(limiter, i, error);
	if (status == WEIR_OK)
		status = limiter_checks_start(limiter->checks, error);
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

/* Why no checkpoint is stored: the store, or the bus, as one is stored once what is before it is acknowledged. */
static void explain_pause(void *context, struct weir_text *text)
{
	const struct limiter *limiter = context;
	int64_t kept_ms = retention_ms(limiter, WEIR_TOPIC_EVENTS);
	char limit[WEIR_AGE_BYTES], kept[WEIR_AGE_BYTES], cause[WEIR_ERROR_TEXT_BYTES];
	weir_text_printf(
		text,
		"no checkpoint has been stored for %s, half of how long %s.events is kept (%s). Nothing is judged in them, "
		"so nobody new is blocked; their lines wait in the log, which deletes them after that time. Judging "
		"goes on with the next checkpoint. ",
		weir_age(age_limit_ms(limiter), limit), limiter->daemon->config->bus.prefix, weir_age(kept_ms, kept));
	if (checkpoint_io_fails(limiter->checkpoint_writer)) {
		checkpoint_io_failure(limiter->checkpoint_writer, cause, sizeof cause);
		weir_text_printf(text, "Mend the store: %s", cause);
	} else if (limiter->bus->ops->problem(limiter->bus, cause, sizeof cause)) {
		weir_text_printf(text, "Mend the bus: %s (runbook: broker-away)", cause);
	} else {
		weir_text_puts(text, "Look at the store and the brokers (runbook: store-away)");
	}
}

/* ---- what the log says of the partitions ---- */

static void announce(struct announcements *announcements, struct limiter *limiter, int64_t *due_ms)
{
	int64_t now_ms = weir_monotonic_ms();
	if (now_ms < *due_ms)
		return;
	*due_ms = now_ms + ANNOUNCE_PERIOD_MS;
	for (uint32_t i = 0; i < limiter->bus->partitions; i++) {
		struct worker_partition look;
		limiter_view(limiter, i, &look);
		bool is_ours = weir_assignment_has(limiter->assignment, i);
		announcements_look(announcements, i, &look, is_ours, explain_pause, limiter);
		live_watch_look(&limiter->live, i, is_ours && live_watch_awaits(look.state), now_ms);
	}
	announcements_tell(announcements);
}

/* Checkpoint I/O looks for one each second; whoever has none after two turns is told. */
static void log_policy(const struct limiter *limiter, struct weir_fault *fault, int64_t *since_ms)
{
	uint32_t given;
	weir_assignment_get(limiter->assignment, NULL, &given);
	if (given == 0 || *since_ms == 0)
		*since_ms = weir_monotonic_ms();
	if (policy_registry_newest(limiter->registry) > 0)
		weir_fault_over(fault, &limiter->daemon->log, "policy", "there is a policy");
	else if (weir_monotonic_ms() - *since_ms > NO_POLICY_MS)
		weir_fault_raise_at(
			fault, &limiter->daemon->log, WEIR_LOG_ERROR, "policy",
			"the store has no policy yet. Nothing is judged, and nobody is blocked. The store is asked each "
			"second: run `weir policy apply %s` (runbook: nothing-judged)",
			weir_config_zones_words(limiter->daemon->config));
}

static enum weir_status watch(void *self, struct weir_error *error)
{
	struct limiter *limiter = self;
	(void)error; /* a part that has failed says why when it is joined */
	struct weir_fault no_policy = {0};
	int64_t policy_since_ms = 0;
	struct late_note late = {0};
	struct memory_note memory = {0};
	struct announcements announcements;
	int64_t announce_ms = 0;
	announcements_init(&announcements, limiter->bus->partitions, &limiter->daemon->log);
	live_watch_init(&limiter->live, limiter->bus->partitions);
	const struct limiter_parts parts = {
		.workers = limiter->workers, .worker_count = limiter->worker_count, .registry = limiter->registry};
	while (!atomic_load(weir_stop_flag()) && !part_failed(limiter)) {
		if (weir_stop_take_reload())
			weir_daemon_reload(limiter->daemon);
		log_policy(limiter, &no_policy, &policy_since_ms);
		for (uint32_t i = 0; i < limiter->worker_count; i++)
			worker_set_limits(limiter->workers[i], age_limit_ms(limiter), remind_ms(limiter));
		limiter_checks_look(limiter->checks,
		                    policy_registry_policy(limiter->registry, policy_registry_newest(limiter->registry)));
		balance_turn(limiter->balance);
		announce(&announcements, limiter, &announce_ms);
		late_note_watch(&late, &parts, &limiter->daemon->log);
		memory_note_watch(&memory, &parts, limiter->daemon->config->limiter.memory_bytes, &limiter->daemon->log);
		nanosleep(&(struct timespec){.tv_nsec = WATCH_PERIOD_MS * 1000000L}, NULL);
	}
	announcements_deinit(&announcements);
	live_watch_deinit(&limiter->live);
	return WEIR_OK;
}

/* ---- ending ---- */

/* Of workers that have ended: a checkpoint that still waits is not stored any more. @return whether none does */
static bool all_stored(const struct limiter *limiter)
{
	char cause[WEIR_ERROR_TEXT_BYTES];
	uint64_t unstored = 0;
	for (uint32_t i = 0; i < limiter->worker_count; i++)
		unstored += weir_counter_read(&worker_stats(limiter->workers[i])->unstored);
	if (checkpoint_io_fails(limiter->checkpoint_writer))
		checkpoint_io_failure(limiter->checkpoint_writer, cause, sizeof cause);
	else if (unstored > 0)
		snprintf(cause, sizeof cause, "it or the brokers did not answer in time, for %llu partitions",
		         (unsigned long long)unstored);
	else
		return true;
	weir_log(
		&limiter->daemon->log, WEIR_LOG_ERROR, "limiter",
		"the last checkpoints were not stored. Nothing is lost: what was judged since those before is judged again. "
		"The store: %s",
		cause);
	return false;
}

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
	good = all_stored(limiter) && good;
	limiter_checks_stop(limiter->checks);
	if (!weir_membership_leave(limiter->membership))
		weir_log(log, WEIR_LOG_WARNING, "group",
		         "the consumer group's coordinator does not answer, so this limiter could not leave it. Its partitions "
		         "are given to others after session.timeout.ms (10 s), and judged from their last checkpoints: nothing "
		         "is lost");
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
	.accept = accept_config,
	.prepare = prepare,
	.check = limiter_check,
	.pages = pages,
	.start = start,
	.watch = watch,
	.stop = stop,
};
