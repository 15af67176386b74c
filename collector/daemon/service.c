/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of the daemon's life. It waits for brokers and a first policy without a time limit, serves its pages
 * meanwhile and logs the wait once: a machine may start before its servers.
 */
#include "collector/daemon/service.h"

#include "collector/daemon/internal.h"
#include "collector/follow/inputs.h"
#include "collector/follow/source_check.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/stop.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/cluster/connect.h"
#include "common/daemon/daemon_check.h"
#include "common/daemon/notify.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	POLL_MS = 100,
	CHECK_WAIT_MS = 10000, /* --check waits so long for the brokers, and again for the policy topic */
};

static const int64_t FOR_EVER_MS = INT64_C(366) * 86400000;

static bool stopping(void)
{
	return atomic_load(weir_stop_flag());
}

/* Refuses a configuration that no collector can work by: in its bus or its sources. */
static enum weir_status accept_config(const struct weir_config *config, const char *name, struct weir_error *error)
{
	enum weir_status status = weir_connect_check_bus(config, name, error);
	if (status == WEIR_OK && config->source_count == 0)
		status = weir_json_fail(&config->sources, error, "has no sources, so the collector has nothing to read");
	return status == WEIR_OK ? inputs_check(config, NULL, error) : status;
}

static enum weir_status prepare(struct weir_daemon *daemon, void **self, struct weir_error *error)
{
	struct service *service = weir_alloc(1, sizeof *service);
	(void)error;
	service->daemon = daemon;
	service_pages(service);
	*self = service;
	return WEIR_OK;
}

static enum weir_status open_bus(struct service *service, struct weir_error *error)
{
	struct weir_bus *bus;
	enum weir_status status = weir_connect_bus(service->daemon->config, service->daemon->name, &service->awaited,
	                                           FOR_EVER_MS, weir_stop_flag(), &service->daemon->log, &bus, error);
	static const bool needed[WEIR_TOPIC_COUNT] = {
		[WEIR_TOPIC_EVENTS] = true, [WEIR_TOPIC_POLICY] = true, [WEIR_TOPIC_DEADLETTER] = true};
	if (status != WEIR_OK)
		return status;
	weir_bus_kafka_use(bus, needed);
	atomic_store(&service->bus, bus);
	return WEIR_OK;
}

static enum weir_status open_policies(struct service *service, struct weir_error *error)
{
	struct policies *policies;
	const struct weir_daemon *daemon = service->daemon;
	char folder[WEIR_PATH_BYTES];
	enum weir_status status = weir_path_format(folder, error, "%s/" WEIR_EXEMPT_LISTS_FOLDER, daemon->state);
	if (status == WEIR_OK)
		status =
			policies_new(daemon->config, service->bus, daemon->check ? NULL : folder, &daemon->log, &policies, error);
	if (status == WEIR_OK)
		atomic_store(&service->policies, policies);
	return status;
}

/* Looks at the topics, and says which a start would make. */
static enum weir_status open_existing_bus(struct service *service, struct weir_error *error)
{
	bool missing[WEIR_TOPIC_COUNT];
	struct weir_bus *bus;
	enum weir_status status = weir_daemon_check_bus(service->daemon, missing, &bus, error);
	if (status != WEIR_OK)
		return status;
	atomic_store(&service->bus, bus);
	return missing[WEIR_TOPIC_POLICY] ? weir_fail(error, WEIR_AGAIN, "no policy yet: run `weir policy apply %s`",
	                                              weir_config_zones_words(service->daemon->config))
	                                  : WEIR_OK;
}

/* Whether the brokers answer and there is a policy, within seconds. */
static enum weir_status check(void *self, struct weir_error *error)
{
	struct service *service = self;
	printf("%s: no mistake in the configuration\n", service->daemon->config_path);
	enum weir_status status = open_existing_bus(service, error);
	if (status == WEIR_OK)
		status = open_policies(service, error);
	if (status != WEIR_OK)
		return status;
	int64_t end_ms = weir_monotonic_ms() + CHECK_WAIT_MS;
	const struct weir_policy *policy = NULL;
	while (policy == NULL && !policies_known(service->policies) && weir_monotonic_ms() < end_ms)
		policy = policies_poll(service->policies, POLL_MS);
	if (policy == NULL)
		return weir_fail(error, WEIR_AGAIN, "%s",
		                 policies_known(service->policies) ? "this collector cannot use any of the policies"
		                                                   : "cannot read the policy topic");
	printf("policy %llu is in force\n", (unsigned long long)policy->version);
	struct weir_findings findings = {0};
	struct weir_check shared = weir_daemon_check_begin(service->daemon, &findings);
	source_check(&shared, NULL, service->daemon->state);
	return weir_daemon_check_end(service->daemon, &shared, WEIR_SEVERITY_PAGE, error);
}

static enum weir_status open_memory(void *self, struct weir_error *error)
{
	struct service *service = self;
	return source_memory_open(service->daemon->state, &service->memory, error);
}

/* Waits for the brokers, then opens what needs them. */
static enum weir_status start(void *self, struct weir_error *error)
{
	struct service *service = self;
	weir_notify("STATUS=waiting for the brokers");
	enum weir_status status = open_bus(service, error);
	if (status != WEIR_OK && stopping())
		return WEIR_END;
	return status == WEIR_OK ? open_policies(service, error) : status;
}

/* From the first policy on the sources are read. */
static enum weir_status start_collector(struct service *service, const struct weir_policy *policy,
                                        struct weir_error *error)
{
	struct collector_options options = {
		.config = service->daemon->config,
		.bus = service->bus,
		.memory = service->memory,
		.dead_topic = true,
		.policy = policy,
		.lists = policies_lists(service->policies),
		.log = &service->daemon->log,
	};
	struct collector *collector;
	enum weir_status status = collector_new(&options, &collector, error);
	if (status != WEIR_OK)
		return status;
	status = collector_start(collector, error);
	if (status != WEIR_OK) {
		collector_free(collector);
		return status;
	}
	atomic_store(&service->collector, collector);
	weir_notify("STATUS=collecting");
	return WEIR_OK;
}

static enum weir_status take_policy(struct service *service, struct weir_error *error)
{
	struct collector *collector = service->collector;
	const struct weir_policy *policy = policies_poll(service->policies, POLL_MS);
	enum weir_status status = WEIR_OK;
	if (policy != NULL) {
		if (collector == NULL)
			status = start_collector(service, policy, error);
		else
			collector_set_policy(collector, policy);
		if (status == WEIR_OK)
			weir_log(&service->daemon->log, WEIR_LOG_INFO, "policy", "policy %llu is in force: %u zone%s",
			         (unsigned long long)policy->version, policy->zone_count, policy->zone_count == 1 ? "" : "s");
	}
	if (service->collector != NULL)
		policies_forget(service->policies, collector_policy_version(service->collector));
	return status;
}

static void reload(struct service *service)
{
	weir_daemon_reload(service->daemon);
	if (service->collector != NULL)
		collector_reopen(service->collector);
}

/* Hands policies on; from the first one on it collects. */
static enum weir_status watch(void *self, struct weir_error *error)
{
	struct service *service = self;
	enum weir_status status = WEIR_OK;
	weir_log(&service->daemon->log, WEIR_LOG_INFO, "collector", "%zu source%s; state in %s",
	         service->daemon->config->source_count, service->daemon->config->source_count == 1 ? "" : "s",
	         service->daemon->state);
	weir_notify("READY=1\nSTATUS=waiting for a policy");
	while (status == WEIR_OK && !stopping()) {
		if (service->collector != NULL && collector_ended(service->collector))
			break;
		if (weir_stop_take_reload())
			reload(service);
		status = take_policy(service, error);
	}
	return status;
}

/* What it has read is on the bus, or is read again by the next start. */
static bool stop(void *self)
{
	struct service *service = self;
	struct weir_error error;
	weir_notify("STOPPING=1");
	weir_daemon_silence(service->daemon);
	if (service->collector == NULL)
		return true;
	collector_stop(service->collector);
	if (collector_join(service->collector, &error) == WEIR_OK)
		return true;
	weir_log(&service->daemon->log, WEIR_LOG_ERROR, "collector", "%s", error.text);
	return false;
}

static void close_all(void *self)
{
	struct service *service = self;
	weir_daemon_silence(service->daemon);
	collector_free(service->collector);
	policies_free(service->policies);
	source_memory_free(service->memory);
	struct weir_bus *bus = atomic_load(&service->awaited); /* opened, or given up before its topics were there */
	if (bus == NULL)
		bus = atomic_load(&service->bus); /* of --check */
	if (bus != NULL)
		bus->ops->close(bus);
	free(service);
}

static const struct weir_daemon_pages *pages(void *self)
{
	const struct service *service = self;
	return &service->pages;
}

const struct weir_daemon_role collector_role = {
	.log_name = "collector",
	.accept = accept_config,
	.prepare = prepare,
	.check = check,
	.open = open_memory,
	.pages = pages,
	.start = start,
	.watch = watch,
	.stop = stop,
	.close = close_all,
};
