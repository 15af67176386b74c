/* SPDX-License-Identifier: Apache-2.0 */
/* A command waits for servers a while, as people do, and says meanwhile what it waits for. */
#include "deploy/weir/realm/realm.h"

#include "common/bus/kafka/bus_kafka.h"
#include "common/bus/local/bus_local.h"
#include "common/bus/local/bus_local_scan.h"
#include "common/cluster/connect.h"
#include "common/store/sqlite/store_sqlite.h"
#include "limiter/checkpoint/agreement.h"

#include <unistd.h>

#define LATENESS_DEFAULT_MS INT64_C(600000)

enum { WAIT_MS = 15000 };

/* What its limiters agreed on, if there was one yet. */
static enum weir_status read_agreement(struct realm *realm, struct weir_error *error)
{
	enum weir_status status =
		agreement_find(realm->store, (uint32_t)realm->config->bus.partitions, &realm->seed, error);
	return status == WEIR_END ? WEIR_OK : status;
}

static enum weir_status look_at_store(struct realm *realm, struct weir_error *error)
{
	struct weir_text missing = {0};
	enum weir_status status =
		weir_connect_store_look(realm->config, WAIT_MS, NULL, &realm->log, &missing, &realm->store, error);
	if (status == WEIR_OK && realm->store == NULL) {
		realm->absent = true;
		status = weir_fail(error, WEIR_INVALID, "no policy yet: run `weir policy apply`, which also creates %.*s",
		                   (int)missing.length, missing.at);
	}
	weir_text_deinit(&missing);
	return status;
}

static enum weir_status open_topic(struct realm *realm, struct weir_error *error)
{
	enum weir_status status =
		weir_connect_topic(realm->config, "weir", realm->topic, WAIT_MS, &realm->log, &realm->bus, error);
	if (status != WEIR_END)
		return status;
	realm->absent = true;
	error->status = WEIR_INVALID;
	return WEIR_INVALID;
}

static enum weir_status look_at_bus(struct realm *realm, struct weir_error *error)
{
	enum weir_status status =
		weir_bus_kafka_look(realm->config, "weir", WAIT_MS, NULL, &realm->log, realm->missing, &realm->bus, error);
	if (status != WEIR_OK || !realm->missing[WEIR_TOPIC_EVENTS])
		return status;
	realm->absent = true;
	return weir_fail(error, WEIR_INVALID, "no topics with prefix \"%s\" yet: the first limiter creates them",
	                 realm->config->bus.prefix);
}

static enum weir_status open_cluster(struct realm *realm, const char *command, enum realm_need need,
                                     struct weir_error *error)
{
	realm->kind = REALM_CLUSTER;
	enum weir_status status = weir_connect_check(realm->config, command, error);
	if (status == WEIR_OK && need == REALM_MAKES)
		status = weir_connect_store(realm->config, WAIT_MS, NULL, &realm->log, &realm->store, error);
	else if (status == WEIR_OK && need != REALM_LOG)
		status = look_at_store(realm, error);
	if (status == WEIR_OK && need != REALM_LOG)
		status = read_agreement(realm, error);
	if (status == WEIR_OK && need == REALM_MAKES)
		status = weir_connect_bus(realm->config, "weir", WAIT_MS, NULL, &realm->log, &realm->bus, error);
	else if (status == WEIR_OK && need == REALM_ALL)
		status = look_at_bus(realm, error);
	else if (status == WEIR_OK && need != REALM_READS)
		status = open_topic(realm, error);
	return status;
}

/* The state as of this moment, beside whoever holds it. */
static enum weir_status look(struct realm *realm, struct weir_error *error)
{
	enum weir_status status = state_directory_look(&realm->state, realm->state_path, &realm->once, &realm->seed, error);
	realm->store = realm->state.store;
	if (realm->once)
		realm->lateness_ms = -1;
	return status;
}

static enum weir_status open_log(struct realm *realm, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	struct weir_bus_local_options options = {0};
	enum weir_status status = weir_path_format(path, error, "%s/log", realm->state_path);
	if (status == WEIR_OK && realm->config != NULL)
		options = (struct weir_bus_local_options){.segment_bytes = realm->config->bus.segment_bytes,
		                                          .retention_bytes = realm->config->bus.retention_bytes};
	if (status == WEIR_OK)
		status = weir_bus_scan_partitions(path, &options.partitions, error);
	return status == WEIR_OK ? weir_bus_local_open(path, &options, &realm->bus, error) : status;
}

static enum weir_status open_state(struct realm *realm, enum realm_need need, struct weir_error *error)
{
	realm->kind = REALM_STATE;
	enum weir_status status = look(realm, error);
	if (status != WEIR_OK || (need != REALM_APPENDS && need != REALM_ALL))
		return status;
	if (realm->once && need == REALM_APPENDS)
		return weir_fail(error, WEIR_INVALID, "%s is the state of a --once run, which has no log to append to",
		                 realm->state_path);
	state_directory_close(&realm->state);
	realm->store = NULL;
	status = state_directory_open(&realm->state, realm->state_path, realm->once ? "once" : "follow", error);
	if (status == WEIR_LOCKED && !realm->once) {
		realm->kind = REALM_RUNNING;
		state_directory_close(&realm->state);
		/* Its tables are as this program knows them: it has looked. */
		if (need == REALM_APPENDS)
			return look(realm, error);
		status = weir_store_sqlite_open(realm->state_path, &realm->state.store, error);
		realm->store = realm->state.store;
		return status;
	}
	realm->store = realm->state.store;
	return status == WEIR_OK && !realm->once ? open_log(realm, error) : status;
}

enum weir_status realm_open(struct realm *realm, const char *command, const char *config_path, const char *state_path,
                            enum realm_need need, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	realm->log = (struct weir_log){.fd = STDERR_FILENO, .level = WEIR_LOG_WARNING};
	realm->state_path = state_path;
	if (config_path != NULL)
		status = weir_config_load(config_path, &realm->config, error);
	if (status != WEIR_OK)
		return status;
	realm->lateness_ms = realm->config != NULL ? realm->config->limiter.lateness_ms : LATENESS_DEFAULT_MS;
	if (state_path == NULL && realm->config != NULL && realm->config->bus.type == WEIR_BUS_KAFKA)
		return open_cluster(realm, command, need, error);
	if (state_path == NULL) {
		status = state_directory_default(realm->state_default, error);
		realm->state_path = realm->state_default;
	}
	return status == WEIR_OK ? open_state(realm, need, error) : status;
}

/* How many partitions a store of one machine has: up to the first that nobody ever took. */
static enum weir_status count_taken(struct weir_store *store, uint32_t *count, struct weir_error *error)
{
	struct weir_partition_state state = {.epoch = 1};
	enum weir_status status = WEIR_OK;
	*count = 0;
	while (status == WEIR_OK && state.epoch > 0 && *count < WEIR_PARTITIONS_MAX) {
		status = store->ops->look(store, WEIR_STORE_ROLE_LIMITER, *count, &state, error);
		*count += status == WEIR_OK && state.epoch > 0;
	}
	return status;
}

enum weir_status realm_partitions(const struct realm *realm, uint32_t *count, struct weir_error *error)
{
	if (realm->kind != REALM_CLUSTER)
		return count_taken(realm->store, count, error);
	*count = (uint32_t)realm->config->bus.partitions;
	return WEIR_OK;
}

void realm_close(struct realm *realm)
{
	if (realm->bus != NULL)
		realm->bus->ops->close(realm->bus);
	if (realm->kind == REALM_CLUSTER && realm->store != NULL)
		realm->store->ops->close(realm->store);
	if (realm->kind != REALM_CLUSTER)
		state_directory_close(&realm->state);
	weir_config_free(realm->config);
	*realm = (struct realm){0};
}
