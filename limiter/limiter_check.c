/*
 * --check: what a start would meet, within seconds. It only looks: a topic, a
 * database or a table that is missing is named, and made by the start itself.
 */
#include "common/bus_kafka.h"
#include "common/connect.h"
#include "common/stop.h"
#include "limiter/agreement.h"
#include "limiter/limiter_parts.h"

#include <stdio.h>

enum { CHECK_WAIT_MS = 10000 };

static enum weir_status check_bus(struct limiter *limiter, struct weir_error *error)
{
	const struct weir_daemon *daemon = limiter->daemon;
	const struct weir_config *config = daemon->config;
	bool missing[WEIR_TOPIC_COUNT];
	enum weir_status status = weir_bus_kafka_look(config, daemon->name, CHECK_WAIT_MS, weir_stop_flag(), &daemon->log,
	                                              missing, &limiter->bus, error);
	if (status != WEIR_OK)
		return status;
	struct weir_text names = {0};
	if (weir_bus_kafka_topic_names(config->bus.prefix, missing, &names) == 0)
		printf("bus: %s: the topics of \"%s\" are there, with %u partitions\n", config->bus.brokers, config->bus.prefix,
		       limiter->bus->partitions);
	else
		printf("bus: %s: a start would make %.*s, with %u partitions\n", config->bus.brokers, (int)names.length,
		       names.at, limiter->bus->partitions);
	weir_text_deinit(&names);
	return WEIR_OK;
}

static enum weir_status count_policy(void *context, uint64_t version, struct weir_span text)
{
	(void)text;
	*(uint64_t *)context = version;
	return WEIR_OK;
}

static enum weir_status check_contents(const struct limiter *limiter, struct weir_store *store,
                                       struct weir_error *error)
{
	uint64_t newest = 0, seed;
	enum weir_status status = agreement_find(store, limiter->bus->partitions, &seed, error);
	if (status == WEIR_OK || status == WEIR_END)
		status = store->ops->policy_each(store, 1, count_policy, &newest, error);
	if (status != WEIR_OK)
		return status;
	printf("store: database \"%s\" is there; ", limiter->daemon->config->store.database);
	if (newest > 0)
		printf("policy %llu is in force\n", (unsigned long long)newest);
	else
		printf("no policy yet: run `weir policy apply`\n");
	return WEIR_OK;
}

static enum weir_status check_store(const struct limiter *limiter, struct weir_error *error)
{
	const struct weir_daemon *daemon = limiter->daemon;
	struct weir_text missing = {0};
	struct weir_store *store;
	enum weir_status status =
		weir_connect_store_look(daemon->config, CHECK_WAIT_MS, weir_stop_flag(), &daemon->log, &missing, &store, error);
	if (status == WEIR_OK && store == NULL)
		printf("store: a start would make %.*s; no policy yet: run `weir policy apply`\n", (int)missing.length,
		       missing.at);
	weir_text_deinit(&missing);
	if (status != WEIR_OK || store == NULL)
		return status;
	status = check_contents(limiter, store, error);
	store->ops->close(store);
	return status;
}

int limiter_check(struct limiter *limiter)
{
	struct weir_error error;
	printf("%s: good\n", limiter->daemon->config_path);
	enum weir_status status = check_bus(limiter, &error);
	if (status == WEIR_OK)
		status = check_store(limiter, &error);
	if (status == WEIR_OK)
		return WEIR_EXIT_DONE;
	fprintf(stderr, "%s: %s\n", limiter->daemon->name, error.text);
	return WEIR_EXIT_FAILED;
}
