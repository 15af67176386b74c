/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The archiver's process: the servers, the group's membership and the archiver's thread, in the order in which they
 * start and end. The membership's thread learns which partitions are ours, the archiver's thread takes them: they share
 * the assignment.
 */
#include "archiver/daemon/process.h"

#include "archiver/api/api.h"
#include "archiver/arming/arming.h"
#include "archiver/arming/arming_policy.h"
#include "archiver/daemon/archiver_check.h"
#include "archiver/page/page.h"
#include "archiver/work/archiver.h"
#include "archiver/work/archiver_metrics.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/stop.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/cluster/connect.h"
#include "common/cluster/lag.h"
#include "common/cluster/membership.h"
#include "common/cluster/store_claim.h"
#include "common/cluster/store_metrics.h"
#include "common/daemon/daemon_check.h"
#include "common/daemon/notify.h"

#include <stdio.h>
#include <time.h>

static const int64_t FOR_EVER_MS = INT64_C(366) * 86400000;

enum process_phase { PROCESS_CONNECTING, PROCESS_WORKING, PROCESS_STOPPING };

/* Of the events only how many partitions they have: the consumer group gives those. */
static const bool needed_topics[WEIR_TOPIC_COUNT] = {
	[WEIR_TOPIC_EVENTS] = true, [WEIR_TOPIC_JUDGED] = true, [WEIR_TOPIC_DECISIONS] = true, [WEIR_TOPIC_SHADOW] = true};

struct process {
	struct weir_daemon *daemon;
	struct weir_daemon_pages pages;
	_Atomic int phase;          /* from PROCESS_WORKING on all that follows is there, and stays */
	struct weir_key_hash *hash; /* NULL: keys are kept in clear */
	_Atomic(struct weir_bus *)
		awaited; /* while it connects: the bus before its topics are there; else NULL, or that bus */
	struct weir_bus *bus;
	struct weir_assignment *assignment;
	struct weir_membership *membership;
	struct archiver *archiver;
	struct arming *arming;
	struct weir_lag *lag;
	struct api *api;       /* NULL: none is configured */
	_Atomic bool stopping; /* as a flag for who waits in a thread of the process */
};

enum { WATCH_PERIOD_MS = 50, SHORT_WAIT_MS = 2000, APPEND_WAIT_MS = 10000 };

/* ---- starting ---- */

/* A worker of the API does not wait long: whoever asked is told to try again. */
static enum weir_status open_for_api(void *context, struct weir_store **store, struct weir_error *error)
{
	const struct weir_daemon *daemon = context;
	return weir_connect_store(daemon->config, SHORT_WAIT_MS, weir_stop_flag(), NULL, store, error);
}

/* What /healthz and /readyz say. */
static void tell_troubles(void *context, struct weir_text *lines)
{
	const struct weir_daemon_pages *pages = context;
	(void)pages->healthy(pages->context, lines);
	(void)pages->ready(pages->context, lines);
}

/* What the API says of this process. */
static void write_figures(void *context, struct weir_text *members)
{
	const struct process *process = context;
	uint64_t messages;
	double seconds;
	archiver_figures(archiver_stats(process->archiver), members);
	if (weir_lag_read(process->lag, &messages, &seconds))
		weir_text_printf(members, ",\"%s\":%llu,\"%s\":%.3f", archiver_daemon_metrics[ARCHIVER_LAG_MESSAGES].name,
		                 (unsigned long long)messages, archiver_daemon_metrics[ARCHIVER_LAG_SECONDS].name, seconds);
}

static enum weir_status start_api(struct process *process, struct weir_error *error)
{
	struct api_options options = {
		.config = process->daemon->config,
		.hash = process->hash,
		.log = &process->daemon->log,
		.open_store = open_for_api,
		.context = process->daemon,
		.figures = write_figures,
		.figures_context = process,
		.troubles = tell_troubles,
		.troubles_context = &process->pages,
		.files = page_files,
		.file_count = page_file_count,
	};
	return api_start(&options, &process->api, error);
}

static enum weir_status connect_store(const struct process *process, int64_t wait_ms, const struct weir_log *log,
                                      struct weir_store **store, struct weir_error *error)
{
	enum weir_status status =
		weir_connect_store(process->daemon->config, wait_ms, &process->stopping, log, store, error);
	return status != WEIR_OK && atomic_load(&process->stopping) ? WEIR_END : status;
}

static enum weir_status open_store(void *context, struct weir_store **store, struct weir_error *error)
{
	const struct process *process = context;
	enum weir_status status = connect_store(process, FOR_EVER_MS, &process->daemon->log, store, error);
	if (status != WEIR_OK)
		return status;
	status = weir_store_claim(*store, process->daemon->config, error);
	if (status == WEIR_OK)
		status = weir_key_hash_settle(process->hash, *store, error);
	if (status != WEIR_OK)
		(*store)->ops->close(*store);
	return status;
}

/* Behind one that is open: whoever asks says what it means to him that there is none. */
static enum weir_status open_another(void *context, struct weir_store **store, struct weir_error *error)
{
	return connect_store(context, SHORT_WAIT_MS, NULL, store, error);
}

static bool inspect_partition(void *context, enum weir_topic topic, uint32_t partition, struct weir_lag_place *place)
{
	const struct process *process = context;
	return archiver_place(process->archiver, topic, partition, &place->next_offset, &place->clock_ms);
}

static enum weir_status start_lag(struct process *process, struct weir_error *error)
{
	static const enum weir_topic topics[] = {WEIR_TOPIC_JUDGED, WEIR_TOPIC_DECISIONS};
	const struct weir_lag_options options = {process->bus, topics, 2, inspect_partition, process};
	return weir_lag_start(&options, &process->lag, error);
}

/* ---- zones that wait in shadow ---- */

static bool has_first_partition(void *context)
{
	const struct process *process = context;
	uint64_t next;
	int64_t clock_ms;
	return archiver_place(process->archiver, WEIR_TOPIC_JUDGED, 0, &next, &clock_ms);
}

static enum weir_status apply(void *context, struct weir_store *store, uint64_t behind, struct weir_policy *policy,
                              struct weir_error *error)
{
	const struct process *process = context;
	uint64_t version;
	enum weir_status status = arming_policy_put(store, process->bus, behind, policy, APPEND_WAIT_MS, &version, error);
	if (status == WEIR_OK)
		weir_log(&process->daemon->log, WEIR_LOG_INFO, "shadow", "policy %llu is in the whole log",
		         (unsigned long long)version);
	return status;
}

static void start_arming(struct process *process)
{
	process->arming = arming_new(&(struct arming_options){.bus = process->bus,
	                                                      .log = &process->daemon->log,
	                                                      .open_store = open_another,
	                                                      .store_context = process,
	                                                      .is_mine = has_first_partition,
	                                                      .apply = apply,
	                                                      .context = process});
}

/*
 * Before it joins the group, where the store answers at once: another cluster's is refused for good, and a start again would
 * say the same. Where it does not answer, whoever opens it looks.
 */
static enum weir_status check_claim(const struct weir_config *config, struct weir_error *error)
{
	struct weir_store *store = NULL;
	struct weir_text missing = {0};
	struct weir_error ignored;
	enum weir_status status = weir_connect_existing_store(config, 0, NULL, NULL, &missing, &store, &ignored);
	weir_text_deinit(&missing);
	if (status != WEIR_OK || store == NULL)
		return WEIR_OK;
	status = weir_store_check_claim(store, config, error);
	store->ops->close(store);
	return status == WEIR_INVALID ? status : WEIR_OK;
}

static enum weir_status start(void *self, struct weir_error *error)
{
	struct process *process = self;
	struct weir_daemon *daemon = process->daemon;
	enum weir_status status = weir_connect_bus(daemon->config, daemon->name, &process->awaited, FOR_EVER_MS,
	                                           weir_stop_flag(), &daemon->log, &process->bus, error);
	if (status != WEIR_OK)
		return atomic_load(weir_stop_flag()) ? WEIR_END : status;
	weir_bus_kafka_use(process->bus, needed_topics);
	weir_bus_kafka_only_read(process->bus, WEIR_TOPIC_SHADOW);
	status = check_claim(daemon->config, error);
	if (status != WEIR_OK)
		return status;
	process->assignment = weir_assignment_new(process->bus->partitions);
	struct archiver_options options = {
		.config = daemon->config,
		.bus = process->bus,
		.hash = process->hash,
		.writers = (uint32_t)daemon->config->archiver.threads,
		.assignment = process->assignment,
		.open_store = open_store,
		.open_another = open_another,
		.context = process,
		.log = &daemon->log,
	};
	status = archiver_start(&options, &process->archiver, error);
	if (status == WEIR_OK)
		start_arming(process);
	if (status == WEIR_OK)
		status = start_lag(process, error);
	if (status == WEIR_OK)
		status = start_api(process, error);
	if (status == WEIR_OK)
		status = weir_membership_start(process->bus, "archiver", process->assignment, &daemon->log,
		                               &process->membership, error);
	if (status != WEIR_OK)
		return status;
	atomic_store(&process->phase, PROCESS_WORKING);
	weir_log(&daemon->log, WEIR_LOG_INFO, "archiver", "archiving topic %s.%s, %u partitions",
	         daemon->config->bus.prefix, "judged", process->bus->partitions);
	weir_notify("READY=1");
	return WEIR_OK;
}

/* ---- working, ending ---- */

static enum weir_status watch(void *self, struct weir_error *error)
{
	struct process *process = self;
	(void)error; /* a part that has failed says why when it is joined */
	while (!atomic_load(weir_stop_flag()) && !archiver_ended(process->archiver) &&
	       !weir_membership_failed(process->membership)) {
		if (weir_stop_take_reload())
			weir_daemon_reload(process->daemon);
		arming_step(process->arming);
		nanosleep(&(struct timespec){.tv_nsec = WATCH_PERIOD_MS * 1000000L}, NULL);
	}
	return WEIR_OK;
}

/* Stores what has come, then leaves the group. */
static bool stop(void *self)
{
	struct process *process = self;
	const struct weir_log *log = &process->daemon->log;
	bool good = atomic_load(weir_stop_flag());
	struct weir_error error;
	atomic_store(&process->phase, PROCESS_STOPPING);
	atomic_store(&process->stopping, true); /* the archiver may still wait for its store */
	weir_notify("STOPPING=1");
	weir_daemon_silence(process->daemon);
	api_stop(process->api);
	weir_lag_leave(process->lag);
	arming_free(process->arming);
	process->arming = NULL;
	archiver_stop(process->archiver, false);
	if (archiver_join(process->archiver, &error) != WEIR_OK) {
		weir_log(log, WEIR_LOG_ERROR, "archiver", "%s", error.text);
		good = false;
	}
	if (!weir_membership_leave(process->membership))
		weir_log(
			log, WEIR_LOG_WARNING, "group",
			"the consumer group's coordinator does not answer, so this archiver could not leave it. Its partitions "
			"are given to others after session.timeout.ms (10 s): nothing is lost");
	weir_log(log, WEIR_LOG_INFO, "archiver", "stopped");
	return good;
}

/* What clients of the API will refuse. */
static enum weir_status check_api(const struct weir_config *config, struct weir_error *error)
{
	struct weir_text doubts = {0};
	enum weir_status status = api_check(config, &doubts, error);
	if (doubts.length > 0)
		printf("API: %.*s\n", (int)doubts.length, doubts.at);
	weir_text_deinit(&doubts);
	return status;
}

/* What `weir doctor` would find of an archiver. */
static enum weir_status check_state(const struct process *process, const bool missing[WEIR_TOPIC_COUNT],
                                    struct weir_store *store, struct weir_error *error)
{
	struct weir_findings findings = {0};
	struct weir_check shared = weir_daemon_check_begin(process->daemon, &findings);
	bool good[WEIR_TOPIC_COUNT];
	int64_t oldest_ms;
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		good[topic] = !missing[topic];
	if (store != NULL) {
		weir_check_writes(&shared, store, false, true);
		archiver_check_state(&shared, process->bus, good, store, &oldest_ms);
	}
	return weir_daemon_check_end(process->daemon, &shared, WEIR_SEVERITY_TICKET, error);
}

static enum weir_status check(void *self, struct weir_error *error)
{
	struct process *process = self;
	struct weir_store *store = NULL;
	bool missing[WEIR_TOPIC_COUNT];
	printf("%s: no mistake in the configuration\n", process->daemon->config_path);
	enum weir_status status = check_api(process->daemon->config, error);
	if (status == WEIR_OK)
		status = weir_daemon_check_bus(process->daemon, missing, &process->bus, error);
	if (status == WEIR_OK)
		status = weir_daemon_check_store(process->daemon, &store, error);
	if (status == WEIR_OK && store != NULL)
		status = weir_key_hash_check(process->hash, store, error);
	if (status == WEIR_OK && store != NULL)
		printf("store: database \"%s\" exists\n", process->daemon->config->store.database);
	else if (status == WEIR_OK)
		printf("none of its tables exists yet\n");
	if (status == WEIR_OK)
		status = check_state(process, missing, store, error);
	if (store != NULL)
		store->ops->close(store);
	return status;
}

/* ---- pages ---- */

static bool healthy(void *context, struct weir_text *why)
{
	const struct process *process = context;
	if (atomic_load(&process->phase) != PROCESS_WORKING)
		return true; /* it waits for its servers, which are not its fault: not ready, but well */
	if (archiver_ended(process->archiver) || weir_membership_failed(process->membership)) {
		weir_text_puts(why, "one of its threads has stopped\n");
		return false;
	}
	char reason[ARCHIVER_REASON_BYTES];
	for (uint32_t partition = 0; partition < process->bus->partitions; partition++)
		if (archiver_parked(process->archiver, partition, reason))
			weir_text_printf(why, "partition %u is stopped: %s\n", partition, reason);
	return why->length == 0;
}

static bool ready(void *context, struct weir_text *why)
{
	const struct process *process = context;
	int phase = atomic_load(&process->phase);
	if (phase == PROCESS_CONNECTING) {
		weir_bus_kafka_awaits(atomic_load(&process->awaited), why);
		return false;
	}
	if (phase != PROCESS_WORKING) {
		weir_text_puts(why, "stopping\n");
		return false;
	}
	uint32_t given = 0;
	const struct archiver_stats *stats = archiver_stats(process->archiver);
	uint64_t live = weir_counter_read(&stats->partitions), parked = weir_counter_read(&stats->parked);
	char reason[ARCHIVER_REASON_BYTES];
	bool good = weir_bus_kafka_ready(process->bus, why);
	if (archiver_store_failed(process->archiver, reason))
		weir_text_printf(why, "nothing is stored meanwhile, and the topics keep what comes: %s\n", reason);
	if (!good)
		return false;
	if (weir_counter_read(&stats->store_tries) == 0)
		weir_text_puts(why, "the store has not answered yet\n");
	else if (weir_assignment_get(process->assignment, NULL, &given) == 0)
		weir_text_puts(why, "the consumer group has not assigned partitions yet\n");
	else if (parked > 0)
		weir_text_printf(why, "%llu of %u assigned partitions are stopped: /healthz says why\n",
		                 (unsigned long long)parked, given);
	else if (live < given)
		weir_text_printf(why, "%llu of %u assigned partitions are live\n", (unsigned long long)live, given);
	return why->length == 0;
}

static void metrics(void *context, struct weir_text *page)
{
	const struct process *process = context;
	int phase = atomic_load(&process->phase);
	weir_metrics_gauge(page, &archiver_daemon_metrics[ARCHIVER_IS_WORKING], phase == PROCESS_WORKING);
	weir_bus_kafka_metrics(atomic_load(&process->awaited), (uint32_t)process->daemon->config->bus.partitions, page);
	if (phase == PROCESS_CONNECTING)
		return;
	uint32_t given;
	weir_assignment_get(process->assignment, NULL, &given);
	weir_metrics_gauge(page, &archiver_daemon_metrics[ARCHIVER_PARTITIONS_GIVEN], given);
	const struct archiver_stats *stats = archiver_stats(process->archiver);
	bool up = weir_counter_read(&stats->store_tries) > 0 && weir_counter_read(&stats->store_fails) == 0;
	weir_store_metrics(true, up, weir_counter_read(&stats->store_failures), page);
	archiver_metrics(stats, process->daemon->config->archiver.memory_bytes, page);
	arming_metrics(process->arming, page);
	api_metrics(process->api, page);
	weir_lag_metrics(process->lag, page, &archiver_daemon_metrics[ARCHIVER_LAG_MESSAGES],
	                 &archiver_daemon_metrics[ARCHIVER_LAG_SECONDS]);
}

/* ---- the role ---- */

/* @return WEIR_INVALID: a secret that it uses is not there, or cannot serve, too */
static enum weir_status accept_config(const struct weir_config *config, const char *name, struct weir_error *error)
{
	enum weir_status status = weir_connect_check(config, name, error);
	struct weir_text doubts = {0};
	struct weir_key_hash *hash = NULL;
	if (status == WEIR_OK)
		status = api_check(config, &doubts, error);
	weir_text_deinit(&doubts); /* the API says them when it starts, and check() */
	if (status == WEIR_OK)
		status = weir_key_hash_open(config->archiver.hash_keys, &hash, error);
	weir_key_hash_free(hash);
	return status;
}

static enum weir_status prepare(struct weir_daemon *daemon, void **self, struct weir_error *error)
{
	struct process *process = weir_alloc(1, sizeof *process);
	process->daemon = daemon;
	process->pages =
		(struct weir_daemon_pages){.context = process, .metrics = metrics, .healthy = healthy, .ready = ready};
	*self = process;
	return weir_key_hash_open(daemon->config->archiver.hash_keys, &process->hash, error);
}

static const struct weir_daemon_pages *pages(void *self)
{
	const struct process *process = self;
	return &process->pages;
}

const struct weir_daemon_role archiver_role = {
	.log_name = "archiver",
	.accept = accept_config,
	.prepare = prepare,
	.check = check,
	.pages = pages,
	.start = start,
	.watch = watch,
	.stop = stop,
};
