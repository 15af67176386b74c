/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collector, workers, checkpoint I/O, the archiver and the decisions file over the local bus, in one
 * process. They meet only at the bus and the store, as they would on several
 * machines; this file starts them in order and ends them in order.
 */
#include "deploy/weir/run/follow.h"

#include "archiver/api/api.h"
#include "archiver/arming/arming.h"
#include "archiver/page/page.h"
#include "archiver/work/archiver_metrics.h"
#include "collector/follow/collector.h"
#include "collector/follow/inputs.h"
#include "collector/source/decisions/source_decisions.h"
#include "collector/source/kinds/source_kinds.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/stop.h"
#include "common/bus/local/bus_local.h"
#include "common/cluster/policy_note.h"
#include "common/cluster/policy_recall.h"
#include "common/daemon/daemon.h"
#include "common/daemon/notify.h"
#include "common/exempt/exempt_fetch.h"
#include "common/exempt/exempt_watch.h"
#include "common/files/file_place.h"
#include "common/store/sqlite/store_sqlite.h"
#include "deploy/gateways/gateway/gateways.h"
#include "deploy/weir/backend/policy_apply.h"
#include "deploy/weir/backend/run_note.h"
#include "deploy/weir/backend/state_directory.h"
#include "deploy/weir/command.h"
#include "deploy/weir/explain/why.h"
#include "deploy/weir/overrides/override_control.h"
#include "deploy/weir/run/blocks_kept.h"
#include "deploy/weir/run/monitor.h"
#include "deploy/weir/run/run_check.h"
#include "deploy/weir/run/sink.h"
#include "deploy/weir/run/summary.h"
#include "deploy/weir/run/unmatched.h"
#include "deploy/weir/terminal/readable.h"
#include "limiter/daemon/late_note.h"
#include "limiter/daemon/limiter_checks.h"
#include "limiter/daemon/limiter_metrics.h"
#include "limiter/daemon/memory_note.h"
#include "limiter/worker/announcements.h"
#include "limiter/worker/worker.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WATCH_PERIOD_MS = 50, TAKE_PERIOD_MS = 2, GATEWAYS_WAIT_MS = 10000, STATE_PERIOD_MS = 1000 };

struct follow {
	struct run_options *options; /* borrowed; a reload puts another configuration in */
	const struct weir_log *log;
	struct progress *progress; /* borrowed */
	struct state_directory state;
	struct weir_bus *bus;
	struct policy_registry *registry;
	uint64_t policy_version;
	bool earlier; /* the state is of an earlier run */
	struct source_memory *memory;
	struct weir_line_file *dead_file;
	struct checkpoint_io *checkpoint_writer, *checkpoint_reader;
	struct weir_assignment *assignment;
	struct placement *placement;
	struct limiter_checks *checks; /* NULL: none are asked */
	struct worker **workers;
	uint32_t worker_count;
	struct sink *decisions, *shadow;
	struct weir_key_hash *hash; /* NULL: keys are kept in clear */
	struct archiver *archiver;  /* NULL: none is asked for */
	struct arming *arming;      /* likewise */
	struct api *api;            /* likewise */
	struct why *why;            /* of the API */
	struct blocks_kept *blocks;
	struct gateways *gateways;
	struct collector *collector;
	struct monitor_options monitored;
	struct monitor *monitor;
	struct override_control overrides;
	struct control *control;
	struct weir_fault bus_fault, state_fault;
	int64_t state_look_ms; /* monotonic: when it is looked at again */
	struct weir_exempt_watch exempt;
	int64_t started_ms;
};

static enum weir_status open_store(void *context, struct weir_store **store, struct weir_error *error)
{
	return state_directory_open_another(context, store, error);
}

static enum weir_status open_state(struct follow *follow, struct weir_error *error)
{
	const struct weir_config *config = follow->options->config;
	const char *path = follow->options->state_directory;
	char log_path[WEIR_PATH_BYTES];
	enum weir_status status = state_directory_open(&follow->state, path, "follow", error);
	if (status == WEIR_OK)
		status = weir_path_format(log_path, error, "%s/log", path);
	struct weir_bus_local_options bus = {
		.partitions = (uint32_t)config->bus.partitions,
		.segment_bytes = config->bus.segment_bytes,
		.retention_bytes = config->bus.retention_bytes,
		.explain_bytes = config->bus.explain_bytes,
		.sync_delay_ms = config->bus.sync_delay_ms,
	};
	if (status == WEIR_OK)
		status = weir_bus_local_open(log_path, &bus, &follow->bus, error);
	if (status == WEIR_OK)
		state_directory_note_log(&follow->state);
	if (status == WEIR_OK)
		status = source_memory_open(path, &follow->memory, error);
	if (status == WEIR_OK)
		status = run_note_put(follow->state.store, config, follow->options->decisions_path,
		                      follow->options->shadow_path, error);
	return status;
}

/* Whether every partition is taken. */
static bool all_live(const struct follow *follow)
{
	for (uint32_t partition = 0; partition < follow->bus->partitions; partition++) {
		struct worker_partition look;
		worker_view(follow->workers[placement_of(follow->placement, partition)], partition, &look);
		if (look.state != WORKER_LIVE)
			return false;
	}
	return true;
}

/* Waits until all partitions are taken: what goes wrong with one is the start's failure. */
static enum weir_status await_partitions(const struct follow *follow, struct weir_error *error)
{
	while (!atomic_load(weir_stop_flag()) && !all_live(follow)) {
		for (uint32_t i = 0; i < follow->worker_count; i++)
			if (worker_ended(follow->workers[i]))
				return worker_join(follow->workers[i], error);
		nanosleep(&(struct timespec){.tv_nsec = TAKE_PERIOD_MS * 1000000L}, NULL);
	}
	return WEIR_OK;
}

static enum weir_status start_workers(struct follow *follow, struct weir_error *error)
{
	uint64_t seed;
	uint32_t count = (uint32_t)follow->options->config->limiter.threads;
	enum weir_status status = state_directory_seed(&follow->state, &seed, error);
	if (status == WEIR_OK)
		status = checkpoint_io_start(open_store, &follow->state, follow->log, &follow->checkpoint_writer, error);
	if (status == WEIR_OK)
		status = checkpoint_io_start(open_store, &follow->state, follow->log, &follow->checkpoint_reader, error);
	if (status == WEIR_OK)
		status = limiter_checks_new(follow->options->config, follow->options->lists, count, NULL, follow->log,
		                            &follow->checks, error);
	follow->assignment = weir_assignment_of_all(follow->bus->partitions);
	follow->placement = placement_new(follow->bus->partitions, count);
	follow->workers = weir_alloc(count, sizeof(struct worker *));
	for (uint32_t i = 0; status == WEIR_OK && i < count; i++) {
		struct worker_options options = {
			.config = follow->options->config,
			.bus = follow->bus,
			.registry = follow->registry,
			.first_policy = 1, /* an empty partition meets every policy in its log, from the first one on */
			.seed = seed,
			.swap_directory = follow->options->state_directory,
			.number = i,
			.placement = follow->placement,
			.assignment = follow->assignment,
			.standalone = true,
			.remind_ms = BLOCKS_REMIND_MS,
			.checkpoint_writer = follow->checkpoint_writer,
			.checkpoint_reader = follow->checkpoint_reader,
			.checks = limiter_checks_options(follow->checks),
			.log = follow->log,
		};
		status = worker_new(&options, &follow->workers[i], error);
		if (status == WEIR_OK) {
			follow->worker_count++;
			status = worker_start(follow->workers[i], error);
		}
	}
	return status == WEIR_OK ? await_partitions(follow, error) : status;
}

static enum weir_status start_sink(struct follow *follow, enum weir_topic topic, const char *path, struct sink **sink,
                                   struct weir_error *error)
{
	if (path == NULL)
		return sink_forget(follow->bus, follow->state.store, topic, error);
	const struct weir_config *config = follow->options->config;
	struct sink_options options = {
		.bus = follow->bus,
		.topic = topic,
		.path = path,
		.rotate_bytes = config->decisions.rotate_bytes,
		.keep = (uint32_t)config->decisions.keep,
		.words = run_options_words(follow->options) && topic == WEIR_TOPIC_DECISIONS,
		.coloured = words_coloured(STDOUT_FILENO),
		.log = follow->log,
		.progress = weir_file_descriptor_of(path) == STDOUT_FILENO && isatty(STDOUT_FILENO) ? follow->progress : NULL,
	};
	enum weir_status status = weir_store_sqlite_open(follow->state.path, &options.store, error);
	if (status == WEIR_OK)
		status = sink_start(&options, sink, error);
	if (status == WEIR_IO)
		run_output_fault(follow->options, path, error);
	return status;
}

/* What the API says of this process. @thread any */
static void write_figures(void *context, struct weir_text *members)
{
	const struct follow *follow = context;
	struct limiter_parts parts = {
		.workers = follow->workers, .worker_count = follow->worker_count, .registry = follow->registry};
	limiter_figures(&parts, members);
	weir_text_puts(members, ",");
	archiver_figures(archiver_stats(follow->archiver), members);
}

/* ---- zones that wait in shadow ---- */

static bool always(void *context)
{
	(void)context;
	return true;
}

/* In the thread that puts reloaded zones in force, too: neither can come between the other's steps. */
static enum weir_status apply_armed(void *context, struct weir_store *store, uint64_t behind,
                                    struct weir_policy *policy, struct weir_error *error)
{
	struct follow *follow = context;
	uint64_t newest = policy_registry_newest(follow->registry);
	(void)store;
	if (newest != behind && strcmp(policy_registry_policy(follow->registry, newest)->text, policy->text) != 0)
		return WEIR_AGAIN;
	enum weir_status status = policy_log_apply(follow->state.store, follow->registry, follow->bus, policy,
	                                           WEIR_POLICY_AUTHOR_SELF, weir_wall_ms(), &follow->policy_version, error);
	if (status != WEIR_OK)
		return status;
	collector_set_policy(follow->collector, policy_registry_policy(follow->registry, follow->policy_version));
	weir_log(follow->log, WEIR_LOG_INFO, "policy", "policy %llu is in force",
	         (unsigned long long)follow->policy_version);
	return WEIR_OK;
}

static void start_arming(struct follow *follow)
{
	follow->arming = arming_new(&(struct arming_options){.bus = follow->bus,
	                                                     .log = follow->log,
	                                                     .open_store = open_store,
	                                                     .store_context = &follow->state,
	                                                     .is_mine = always,
	                                                     .apply = apply_armed,
	                                                     .context = follow});
}

/* Zones of the configuration that wait in shadow there, and what the log made of them. */
static void tell_armed(const struct follow *follow, uint64_t before, const struct weir_policy *policy)
{
	const struct weir_policy *was = policy_registry_policy(follow->registry, before);
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		const struct weir_zone *zone = &policy->zones[i];
		const struct weir_zone *old = weir_policy_zone_named(was, weir_span_of(zone->name));
		if (zone->arming.armed != NULL)
			weir_log(follow->log, WEIR_LOG_INFO, "shadow", "zone \"%s\" enforces, as weir armed it: %s", zone->name,
			         zone->arming.armed);
		else if (weir_zone_waits(zone) && old != NULL && old->arming.armed != NULL)
			weir_log(
				follow->log, WEIR_LOG_WARNING, "shadow",
				"zone \"%s\" goes back into shadow mode and blocks nobody: its match, sources, limits or count have "
				"changed since it was armed",
				zone->name);
	}
}

static enum weir_status open_policy(struct follow *follow, struct weir_error *error)
{
	struct weir_policies_recalled recalled;
	follow->registry = policy_registry_new();
	/* A database that was restored without the log that is beside it lacks policies by which the log was judged. */
	enum weir_status status = weir_policy_recall(follow->state.store, follow->bus, &recalled, error);
	if (status == WEIR_OK)
		status = weir_policy_check_checkpoints(follow->state.store, follow->bus->partitions, error);
	if (status == WEIR_OK && recalled.last > 0)
		weir_log(
			follow->log, WEIR_LOG_WARNING, "policy",
			"the state had lost policies %llu to %llu, and has them again from its log (runbook: store-failed-over)",
			(unsigned long long)recalled.first, (unsigned long long)recalled.last);
	if (status == WEIR_OK)
		status = state_directory_policies(&follow->state, follow->registry, error);
	uint64_t before = policy_registry_newest(follow->registry);
	follow->earlier = before != 0;
	if (status == WEIR_OK)
		status = policy_log_apply(follow->state.store, follow->registry, follow->bus, follow->options->config->policy,
		                          NULL, weir_wall_ms(), &follow->policy_version, error);
	if (status == WEIR_OK)
		tell_armed(follow, before, follow->options->config->policy);
	return status;
}

/* Where none is asked for, one that there was before holds back the log no more. */
static enum weir_status start_archiver(struct follow *follow, struct weir_error *error)
{
	if (!follow->options->config->archiver.enabled) {
		static const enum weir_topic topics[] = {WEIR_TOPIC_JUDGED, WEIR_TOPIC_DECISIONS, WEIR_TOPIC_SHADOW};
		enum weir_status status = WEIR_OK;
		for (size_t i = 0; i < sizeof topics / sizeof *topics && status == WEIR_OK; i++)
			status = weir_bus_local_forget(follow->bus, topics[i], "archiver", error);
		return status;
	}
	enum weir_status status = weir_key_hash_open(follow->options->config->archiver.hash_keys, &follow->hash, error);
	if (status == WEIR_OK)
		status = weir_key_hash_settle(follow->hash, follow->state.store, error);
	if (status != WEIR_OK)
		return status;
	struct archiver_options options = {
		.config = follow->options->config,
		.bus = follow->bus,
		.hash = follow->hash,
		.writers = 1,
		.assignment = follow->assignment,
		.standalone = true,
		.open_store = open_store,
		.context = &follow->state,
		.log = follow->log,
	};
	status = archiver_start(&options, &follow->archiver, error);
	if (status == WEIR_OK)
		start_arming(follow);
	return status;
}

static enum weir_status start_api(struct follow *follow, struct weir_error *error)
{
	if (follow->archiver == NULL)
		return WEIR_OK;
	follow->why = why_new(follow->state.path, follow->bus->partitions);
	struct api_options api = {
		.config = follow->options->config,
		.hash = follow->hash,
		.log = follow->log,
		.open_store = open_store,
		.context = &follow->state,
		.figures = write_figures,
		.figures_context = follow,
		.troubles = monitor_troubles,
		.troubles_context = &follow->monitored,
		.why = why_answer,
		.why_context = follow->why,
		.files = page_files,
		.file_count = page_file_count,
	};
	return api_start(&api, &follow->api, error);
}

/* A source of decisions that there was before holds back the log no more. */
static enum weir_status settle_decisions(struct follow *follow, struct weir_error *error)
{
	const struct weir_config *config = follow->options->config;
	for (size_t i = 0; i < config->source_count; i++) {
		struct weir_json source = weir_json_element(&config->sources, i);
		if (source_kind(&source) == &source_decisions_ops)
			return WEIR_OK;
	}
	enum weir_status status = weir_bus_local_forget(follow->bus, WEIR_TOPIC_DECISIONS, SOURCE_DECISIONS_READER, error);
	return status == WEIR_OK ? weir_bus_local_forget(follow->bus, WEIR_TOPIC_SHADOW, SOURCE_DECISIONS_READER, error)
	                         : status;
}

/* The lists stand as they stood, before a new line is read: whoever was blocked stays so. */
static enum weir_status start_gateways(struct follow *follow, struct weir_error *error)
{
	enum weir_status status = blocks_kept_start(follow->bus, follow->log, &follow->blocks, error);
	if (status == WEIR_OK)
		status = gateways_start(&follow->options->gateways, follow->bus, follow->log, &follow->gateways, error);
	if (status == WEIR_OK)
		gateways_wait(follow->gateways, GATEWAYS_WAIT_MS, weir_stop_flag());
	return status;
}

static enum weir_status start_collector(struct follow *follow, struct weir_error *error)
{
	const struct weir_config *config = follow->options->config;
	struct weir_line_file_options dead = {.path = follow->options->dead_letters_path,
	                                      .rotate_bytes = config->deadletter.rotate_bytes,
	                                      .keep = (uint32_t)config->deadletter.keep,
	                                      .log = follow->log};
	enum weir_status status = weir_line_file_open(&dead, &follow->dead_file, error);
	if (status == WEIR_IO)
		run_output_fault(follow->options, dead.path, error);
	if (status != WEIR_OK)
		return status;
	struct collector_options options = {
		.config = config,
		.bus = follow->bus,
		.memory = follow->memory,
		.dead_file = follow->dead_file,
		.policy = policy_registry_policy(follow->registry, follow->policy_version),
		.lists = follow->options->lists,
		.stays = weir_config_takes_checks(config), /* gateways ask, whatever logs there are */
		.log = follow->log,
	};
	status = collector_new(&options, &follow->collector, error);
	return status == WEIR_OK ? collector_start(follow->collector, error) : status;
}

/* API and pages come last: all that they show is there, and stays. */
static enum weir_status start_pages(struct follow *follow, struct weir_error *error)
{
	const struct run_options *options = follow->options;
	struct monitor_options *of = &follow->monitored;
	*of = (struct monitor_options){
		.host = options->config->listen.http_host,
		.port = options->config->listen.http_port,
		.tls = weir_daemon_tls(options->config),
		.config = options->config,
		.log = follow->log,
		.collector = follow->collector,
		.workers = follow->workers,
		.worker_count = follow->worker_count,
		.registry = follow->registry,
		.checks = follow->checks,
		.archiver = follow->archiver,
		.arming = follow->arming,
		.gateways = follow->gateways,
		.fetch = options->fetch,
		.hosts = weir_exempt_lists_hosts(options->lists),
		.bus = follow->bus,
		.state = &follow->state,
		.decisions = follow->decisions,
		.shadow = follow->shadow,
		.checkpoint_writer = follow->checkpoint_writer,
		.checkpoint_reader = follow->checkpoint_reader,
	};
	enum weir_status status = start_api(follow, error);
	of->api = follow->api;
	return status == WEIR_OK && of->host != NULL ? monitor_start(of, &follow->monitor, error) : status;
}

static enum weir_status start(struct follow *follow, struct weir_error *error)
{
	const struct run_options *options = follow->options;
	enum weir_status status = open_state(follow, error);
	if (status == WEIR_OK)
		status = run_options_fetch(options, options->config->policy, error);
	if (status == WEIR_OK)
		status = open_policy(follow, error);
	if (status == WEIR_OK)
		status = start_workers(follow, error);
	if (status == WEIR_OK)
		status = start_sink(follow, WEIR_TOPIC_DECISIONS, options->decisions_path, &follow->decisions, error);
	if (status == WEIR_OK)
		status = start_sink(follow, WEIR_TOPIC_SHADOW, options->shadow_path, &follow->shadow, error);
	if (status == WEIR_OK)
		status = start_archiver(follow, error);
	if (status == WEIR_OK)
		status = start_gateways(follow, error);
	if (status == WEIR_OK)
		status = settle_decisions(follow, error);
	if (status == WEIR_OK)
		status = start_collector(follow, error);
	if (status == WEIR_OK)
		status = start_pages(follow, error);
	follow->overrides = (struct override_control){.bus = follow->bus, .registry = follow->registry, .log = follow->log};
	if (status == WEIR_OK)
		status = control_start(follow->state.path, override_control_answer, &follow->overrides, follow->log,
		                       &follow->control, error);
	return status;
}

/* Whether two configurations differ in more than their policies. */
static bool others_changed(const struct weir_config *running, const struct weir_config *next)
{
	static const char *const of_policy[] = {"zones", "exempt"};
	const json_t *one = weir_json_root(running->document).value, *other = weir_json_root(next->document).value;
	json_t *a = json_copy((json_t *)(uintptr_t)one), *b = json_copy((json_t *)(uintptr_t)other);
	for (size_t i = 0; i < sizeof of_policy / sizeof *of_policy; i++) {
		json_object_del(a, of_policy[i]);
		json_object_del(b, of_policy[i]);
	}
	bool changed = json_equal(a, b) == 0;
	json_decref(a);
	json_decref(b);
	return changed;
}

/* Lists change what zones match; what gateways find is of the policy alone. */
static void tell_doubts(struct follow *follow, const struct weir_policy *policy, bool changed)
{
	unmatched_tell(follow->options->config, policy, follow->options->lists, NULL, follow->log);
	if (changed)
		gateway_list_tell_misses(&follow->options->gateways, policy, follow->log);
}

/* Checks have changed lists also where the configuration is no good. What cannot be read is told, and stays as it was. */
static void refresh_lists(const struct follow *follow)
{
	struct weir_error ignored;
	(void)!weir_exempt_lists_refresh(follow->options->lists,
	                                 policy_registry_policy(follow->registry, follow->policy_version), &ignored);
}

/* A changed configuration: its zones are put in force; a bad file leaves the running policy, says so and gives false. */
static bool reload(struct follow *follow)
{
	struct weir_error error;
	sink_reopen(follow->decisions);
	if (follow->shadow != NULL)
		sink_reopen(follow->shadow);
	collector_reopen(follow->collector);
	if (follow->options->config_path == NULL)
		return true;
	struct weir_config *next;
	uint64_t before = follow->policy_version;
	bool others = false;
	if (collector_policy_version(follow->collector) == before)
		weir_exempt_lists_prune(follow->options->lists, policy_registry_policy(follow->registry, before));
	enum weir_status status = weir_config_load(follow->options->config_path, &next, &error);
	if (status == WEIR_OK) {
		status = run_check_next(follow->options, next, follow->state.store, &error);
		if (status == WEIR_OK)
			weir_exempt_fetch_set(follow->options->fetch, next->policy, WEIR_EXEMPT_FETCH_WAIT_MS, weir_stop_flag());
		/* the sources that run go on, and must be able to give what the new zones ask for */
		if (status == WEIR_OK)
			status = inputs_check_policy(follow->options->config, next->policy, follow->options->lists, &error);
		if (status == WEIR_OK)
			status = policy_log_apply(follow->state.store, follow->registry, follow->bus, next->policy, NULL,
			                          weir_wall_ms(), &follow->policy_version, &error);
		if (status == WEIR_OK && follow->policy_version != before)
			tell_armed(follow, before, next->policy);
		if (status == WEIR_OK)
			weir_exempt_watch_set(&follow->exempt, next->policy, follow->options->lists, weir_monotonic_ms());
		others = others_changed(follow->options->config, next);
		weir_config_free(next);
	}
	if (status != WEIR_OK) {
		weir_log(follow->log, WEIR_LOG_ERROR, "policy", "%s; policy %llu stays in force", error.text,
		         (unsigned long long)before);
		follow->policy_version = before;
		weir_exempt_fetch_set(follow->options->fetch, policy_registry_policy(follow->registry, before), 0,
		                      weir_stop_flag());
		return false;
	}
	const struct weir_policy *policy = policy_registry_policy(follow->registry, follow->policy_version);
	if (follow->policy_version != before || weir_policy_has_lists(policy)) {
		collector_set_policy(follow->collector, policy);
		tell_doubts(follow, policy, follow->policy_version != before);
	}
	weir_log(follow->log, WEIR_LOG_INFO, "policy", "policy %llu is in force%s",
	         (unsigned long long)follow->policy_version, follow->policy_version == before ? ", unchanged" : "");
	if (others)
		weir_log(follow->log, WEIR_LOG_WARNING, "policy",
		         "sections other than \"zones\" and \"exempt\" have changed too: they take effect at a restart");
	return true;
}

static bool part_failed(const struct follow *follow)
{
	for (uint32_t i = 0; i < follow->worker_count; i++)
		if (worker_ended(follow->workers[i]))
			return true;
	if ((follow->archiver != NULL && archiver_ended(follow->archiver)) || gateways_ended(follow->gateways))
		return true;
	return sink_ended(follow->decisions) || (follow->shadow != NULL && sink_ended(follow->shadow));
}

/* The log on disk goes on trying by itself; that it has to is for people to know. @return whether it has to */
static bool log_bus_problem(struct follow *follow)
{
	char words[WEIR_ERROR_TEXT_BYTES];
	bool some = follow->bus->ops->problem(follow->bus, words, sizeof words);
	if (some)
		weir_fault_raise_at(&follow->bus_fault, follow->log, WEIR_LOG_ERROR, "log",
		                    "%s. Reading waits, and new lines are not judged; they stay in their logs. Trying again by "
		                    "itself: make room, or see to the disk of %s (runbook: positions-unsaved)",
		                    words, follow->options->state_directory);
	else
		weir_fault_clear(&follow->bus_fault, follow->log, "log");
	return some;
}

/* Files that somebody takes away are written on, and nothing fails before the next start. */
static void log_state_problem(struct follow *follow)
{
	struct weir_text why = {0};
	int64_t now_ms = weir_monotonic_ms();
	if (now_ms < follow->state_look_ms)
		return;
	follow->state_look_ms = now_ms + STATE_PERIOD_MS;
	if (state_directory_stands(&follow->state, &why)) {
		weir_fault_over(&follow->state_fault, follow->log, "state",
		                "the state in %s is there again, and takes what is stored", follow->state.path);
	} else {
		weir_text_append(&why, "", 1);
		why.at[strcspn(why.at, "\n")] = '\0';
		weir_fault_raise_at(
			&follow->state_fault, follow->log, WEIR_LOG_ERROR, "state",
			"%s. Judging goes on, but nothing of it can be kept: the next start would not know it, nor who "
			"is blocked. Move it back, and all goes on; if it is lost, restart this process: what a copy of "
			"the state does not have, it begins anew (runbook: positions-unsaved)",
			why.at);
	}
	weir_text_deinit(&why);
}

static void announce(struct announcements *announcements, const struct follow *follow)
{
	for (uint32_t i = 0; i < follow->bus->partitions; i++) {
		struct worker_partition look;
		worker_view(follow->workers[placement_of(follow->placement, i)], i, &look);
		announcements_look(announcements, i, &look, true, NULL, NULL);
	}
	announcements_tell(announcements);
}

static void show_progress(struct follow *follow)
{
	if (!progress_due(follow->progress))
		return;
	struct record_counts counts;
	collector_counts(follow->collector, &counts);
	struct progress_numbers numbers = {
		.lines = counts.lines, .events = counts.records, .lag_bytes = collector_lag_bytes(follow->collector)};
	for (uint32_t i = 0; i < follow->worker_count; i++)
		numbers.decisions += weir_counter_read(&worker_stats(follow->workers[i])->decisions);
	progress_draw_endless(follow->progress, &numbers);
}

static void watch(struct follow *follow)
{
	struct late_note late = {0};
	struct memory_note memory = {0};
	struct announcements announcements;
	const struct limiter_parts parts = {
		.workers = follow->workers, .worker_count = follow->worker_count, .registry = follow->registry};
	announcements_init(&announcements, follow->bus->partitions, follow->log);
	weir_exempt_watch_set(&follow->exempt, follow->options->config->policy, follow->options->lists,
	                      weir_monotonic_ms());
	while (!atomic_load(weir_stop_flag()) && !collector_ended(follow->collector) && !part_failed(follow)) {
		bool exempt = weir_exempt_watch_changed(&follow->exempt, weir_monotonic_ms());
		bool asked = !exempt && weir_stop_take_reload();
		if (asked)
			gateways_rewrite(follow->gateways);
		if (exempt)
			refresh_lists(follow);
		if ((exempt || asked) && !reload(follow) && exempt)
			weir_exempt_watch_again(&follow->exempt, weir_monotonic_ms());
		if (follow->arming != NULL)
			arming_step(follow->arming);
		if (!log_bus_problem(follow)) /* a disk that hangs would hold this thread up, too */
			log_state_problem(follow);
		announce(&announcements, follow);
		late_note_watch(&late, &parts, follow->log);
		memory_note_watch(&memory, &parts, follow->options->config->limiter.memory_bytes, follow->log);
		limiter_checks_look(follow->checks, NULL);
		show_progress(follow);
		nanosleep(&(struct timespec){.tv_nsec = WATCH_PERIOD_MS * 1000000L}, NULL);
	}
	announcements_deinit(&announcements);
	weir_exempt_watch_deinit(&follow->exempt);
	progress_clear(follow->progress);
}

static void note_failure(const struct follow *follow, const char *part, enum weir_status status,
                         const struct weir_error *error, bool *failed)
{
	if (status == WEIR_OK)
		return;
	weir_log(follow->log, WEIR_LOG_ERROR, part, "%s", error->text);
	*failed = true;
}

static void print_summary(const struct follow *follow)
{
	struct summary summary = {
		.policy = policy_registry_policy(follow->registry, follow->policy_version),
		.seconds = (double)(weir_monotonic_ms() - follow->started_ms) / 1000.0,
		.decisions = follow->options->decisions_path,
		.dead_letters = follow->options->dead_letters_path,
		.state = follow->options->state_directory,
		.follows = true,
		.earlier = follow->earlier,
		.finished = true,
	};
	struct lane **lanes = weir_alloc(follow->bus->partitions, sizeof(struct lane *));
	for (uint32_t i = 0; i < follow->worker_count; i++)
		summary.lane_count += worker_lanes(follow->workers[i], lanes + summary.lane_count);
	summary.lanes = lanes;
	collector_counts(follow->collector, &summary.counts);
	collector_dead_letters(follow->collector, &summary.dead_letters_written, &summary.dead_letters_dropped);
	summary.lines_here = summary.counts.lines;
	struct weir_text text = {0};
	if (follow->options->summary_json)
		summary_json(&text, &summary);
	else
		summary_words(&text, &summary);
	fwrite(text.at, 1, text.length, stderr);
	weir_text_deinit(&text);
	free(lanes);
}

/*
 * In the order in which events flow, so that each part finds everything that the one before it gave. Where the start
 * failed, a worker's failure has been said as that.
 */
static bool stop(struct follow *follow, bool started)
{
	struct weir_error error;
	bool failed = false;
	control_stop(follow->control);
	monitor_stop(follow->monitor);
	api_stop(follow->api);
	why_free(follow->why);
	arming_free(follow->arming);
	if (follow->collector != NULL) {
		bool ended = started && !atomic_load(weir_stop_flag()) && collector_ended(follow->collector);
		collector_stop(follow->collector);
		note_failure(follow, "collector", collector_join(follow->collector, &error), &error, &failed);
		if (ended && !failed)
			weir_log(follow->log, WEIR_LOG_INFO, "run",
			         "every source has been read to its end; one with \"follow\": true would be waited for");
	}
	for (uint32_t i = 0; i < follow->worker_count; i++)
		worker_stop(follow->workers[i], !failed);
	for (uint32_t i = 0; i < follow->worker_count; i++) {
		enum weir_status status = worker_join(follow->workers[i], &error);
		if (started)
			note_failure(follow, "limiter", status, &error, &failed);
	}
	if (follow->archiver != NULL) {
		archiver_stop(follow->archiver, !failed);
		note_failure(follow, "archiver", archiver_join(follow->archiver, &error), &error, &failed);
	}
	checkpoint_io_stop(follow->checkpoint_writer);
	checkpoint_io_stop(follow->checkpoint_reader);
	if (follow->decisions != NULL)
		note_failure(follow, "decisions", sink_stop(follow->decisions, &error), &error, &failed);
	if (follow->shadow != NULL)
		note_failure(follow, "decisions", sink_stop(follow->shadow, &error), &error, &failed);
	blocks_kept_stop(follow->blocks);
	note_failure(follow, "gateways", gateways_stop(follow->gateways, &error), &error, &failed);
	return !failed;
}

static void close_all(struct follow *follow)
{
	struct weir_error error;
	collector_free(follow->collector);
	for (uint32_t i = 0; i < follow->worker_count; i++)
		worker_free(follow->workers[i]);
	free(follow->workers);
	limiter_checks_free(follow->checks);
	placement_free(follow->placement);
	weir_assignment_free(follow->assignment);
	if (follow->dead_file != NULL && weir_line_file_close(follow->dead_file, &error) != WEIR_OK)
		weir_log(follow->log, WEIR_LOG_ERROR, "dead letter", "%s", error.text);
	source_memory_free(follow->memory);
	if (follow->bus != NULL)
		follow->bus->ops->close(follow->bus);
	policy_registry_free(follow->registry);
	weir_key_hash_free(follow->hash);
	state_directory_close(&follow->state);
}

enum weir_exit run_follow(struct run_options *options, const struct weir_log *log, struct progress *progress)
{
	struct follow follow = {.options = options, .log = log, .progress = progress, .started_ms = weir_monotonic_ms()};
	struct weir_error error;
	enum weir_status status = start(&follow, &error);
	if (status != WEIR_OK) {
		weir_log(log, WEIR_LOG_ERROR, "run", "%s", error.text);
	} else {
		weir_log(log, WEIR_LOG_INFO, "run", "following %zu source%s; policy %llu; state in %s",
		         options->config->source_count, options->config->source_count == 1 ? "" : "s",
		         (unsigned long long)follow.policy_version, options->state_directory);
		weir_notify("READY=1\nSTATUS=following its sources");
		watch(&follow);
	}
	weir_notify("STOPPING=1");
	bool good = stop(&follow, status == WEIR_OK) && status == WEIR_OK;
	if (good && (!options->quiet || options->summary_json))
		print_summary(&follow);
	close_all(&follow);
	return good ? WEIR_EXIT_DONE : status == WEIR_INVALID ? WEIR_EXIT_USAGE : WEIR_EXIT_FAILED;
}
