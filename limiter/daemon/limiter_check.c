/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --check: what a start would find, within seconds. It changes nothing: a missing
 * topic, database or table is reported, and the start itself creates it.
 */
#include "common/bus/kafka/bus_kafka.h"
#include "common/daemon/daemon_check.h"
#include "limiter/checkpoint/cluster_metadata.h"
#include "limiter/daemon/internal.h"

#include <stdio.h>

struct newest {
	uint64_t version;
	struct weir_text text;
};

static enum weir_status keep_newest(void *context, uint64_t version, struct weir_span text)
{
	struct newest *newest = context;
	newest->version = version;
	weir_text_clear(&newest->text);
	weir_text_append(&newest->text, text.at, text.length);
	return WEIR_OK;
}

enum weir_status limiter_check_policy(const struct limiter *limiter, struct weir_store *store, uint64_t *version,
                                      struct weir_error *error)
{
	struct newest newest = {0};
	struct weir_policy *policy = NULL;
	struct weir_error unread;
	enum weir_status status = store->ops->policy_each(store, 1, keep_newest, &newest, error);
	*version = newest.version;
	if (status == WEIR_OK && newest.version > 0 &&
	    weir_policy_decode(newest.version, newest.text.at, newest.text.length, &policy, &unread) == WEIR_OK)
		status = weir_bus_kafka_check_policy(limiter->bus, policy, error);
	weir_policy_free(policy);
	weir_text_deinit(&newest.text);
	return status;
}

static enum weir_status check_contents(const struct limiter *limiter, struct weir_store *store,
                                       struct weir_error *error)
{
	uint64_t newest = 0, seed;
	enum weir_status status = cluster_metadata_read(store, limiter->bus->partitions, &seed, error);
	if (status == WEIR_OK || status == WEIR_END)
		status = limiter_check_policy(limiter, store, &newest, error);
	if (status != WEIR_OK)
		return status;
	printf("store: database \"%s\" exists; ", limiter->daemon->config->store.database);
	if (newest > 0)
		printf("policy %llu is in force\n", (unsigned long long)newest);
	else
		printf("no policy yet: run `weir policy apply`\n");
	return WEIR_OK;
}

static enum weir_status check_store(const struct limiter *limiter, struct weir_error *error)
{
	struct weir_store *store;
	enum weir_status status = weir_daemon_check_store(limiter->daemon, &store, error);
	if (status == WEIR_OK && store == NULL)
		printf("no policy yet: run `weir policy apply`\n");
	if (status != WEIR_OK || store == NULL)
		return status;
	status = check_contents(limiter, store, error);
	store->ops->close(store);
	return status;
}

enum weir_status limiter_check(void *self, struct weir_error *error)
{
	struct limiter *limiter = self;
	printf("%s: the configuration is valid\n", limiter->daemon->config_path);
	enum weir_status status = weir_daemon_check_bus(limiter->daemon, &limiter->bus, error);
	return status == WEIR_OK ? check_store(limiter, error) : status;
}
