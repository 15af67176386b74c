/* SPDX-License-Identifier: Apache-2.0 */
/* A command waits for servers a while, as people do, and says meanwhile what it waits for. */
#include "deploy/weir/backend/backend.h"

#include "common/bus/kafka/bus_kafka.h"
#include "common/bus/local/bus_local.h"
#include "common/bus/local/bus_local_scan.h"
#include "common/cluster/connect.h"
#include "common/cluster/store_claim.h"
#include "common/store/sqlite/store_sqlite.h"
#include "limiter/checkpoint/cluster_metadata.h"

#include <stdio.h>
#include <unistd.h>

#define LATENESS_DEFAULT_MS INT64_C(600000)

enum { WAIT_MS = 15000, LOOK_WAIT_MS = 3000 };

/* The cluster's metadata, if there was a limiter yet. */
static enum weir_status read_metadata(struct backend *backend, struct weir_error *error)
{
	enum weir_status status =
		cluster_metadata_read(backend->store, (uint32_t)backend->config->bus.partitions, &backend->seed, error);
	return status == WEIR_END ? WEIR_OK : status;
}

static enum weir_status open_existing_store(struct backend *backend, struct weir_error *error)
{
	struct weir_text missing = {0};
	enum weir_status status = weir_connect_existing_store(backend->config, backend->wait_ms, NULL, &backend->log,
	                                                      &missing, &backend->store, error);
	if (status == WEIR_OK && backend->store == NULL) {
		backend->absent = true;
		status = weir_fail(error, WEIR_INVALID, "no policy yet: run `weir policy apply %s`, which also creates %.*s",
		                   weir_config_zones_words(backend->config), (int)missing.length, missing.at);
	}
	weir_text_deinit(&missing);
	return status;
}

static enum weir_status open_topic(struct backend *backend, struct weir_error *error)
{
	enum weir_status status =
		weir_connect_topic(backend->config, "weir", backend->topic, WAIT_MS, &backend->log, &backend->bus, error);
	if (status != WEIR_END)
		return status;
	backend->absent = true;
	error->status = WEIR_INVALID;
	return WEIR_INVALID;
}

static enum weir_status open_existing_bus(struct backend *backend, struct weir_error *error)
{
	enum weir_status status = weir_bus_kafka_open_existing(backend->config, "weir", WAIT_MS, NULL, &backend->log,
	                                                       backend->missing, &backend->bus, error);
	if (status != WEIR_OK || !backend->missing[WEIR_TOPIC_EVENTS])
		return status;
	backend->absent = true;
	return weir_fail(error, WEIR_INVALID, "no topics with prefix \"%s\" yet: the first limiter creates them",
	                 backend->config->bus.prefix);
}

static enum weir_status open_cluster(struct backend *backend, const char *command, enum backend_need need,
                                     struct weir_error *error)
{
	backend->kind = BACKEND_CLUSTER;
	enum weir_status status = need == BACKEND_LOG ? weir_connect_check_bus(backend->config, command, error)
	                                              : weir_connect_check(backend->config, command, error);
	if (status == WEIR_OK && need == BACKEND_MAKES)
		status = weir_connect_store(backend->config, WAIT_MS, NULL, &backend->log, &backend->store, error);
	else if (status == WEIR_OK && need != BACKEND_LOG)
		status = open_existing_store(backend, error);
	if (status == WEIR_OK && need == BACKEND_MAKES)
		status = weir_store_claim(backend->store, backend->config, error);
	else if (status == WEIR_OK && need != BACKEND_LOG)
		status = weir_store_check_claim(backend->store, backend->config, error);
	if (status == WEIR_OK && need != BACKEND_LOG)
		status = read_metadata(backend, error);
	if (status == WEIR_OK && need == BACKEND_MAKES)
		status = weir_connect_bus(backend->config, "weir", NULL, WAIT_MS, NULL, &backend->log, &backend->bus, error);
	else if (status == WEIR_OK && (need == BACKEND_ALL || need == BACKEND_VIEWS))
		status = open_existing_bus(backend, error);
	else if (status == WEIR_OK && need != BACKEND_READS)
		status = open_topic(backend, error);
	return status;
}

/* The state as of this moment, beside whoever holds it. */
static enum weir_status look(struct backend *backend, struct weir_error *error)
{
	enum weir_status status =
		state_directory_open_read_only(&backend->state, backend->state_path, &backend->once, &backend->seed, error);
	backend->store = backend->state.store;
	if (backend->once)
		backend->lateness_ms = -1;
	return status;
}

static enum weir_status open_log(struct backend *backend, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	/* What is kept, weir run knows by its configuration: a command deletes nothing by another one's. */
	struct weir_bus_local_options options = {.retention_bytes = INT64_MAX, .explain_bytes = INT64_MAX};
	if (backend->config != NULL)
		options.segment_bytes = backend->config->bus.segment_bytes;
	enum weir_status status = weir_path_format(path, error, "%s/log", backend->state_path);
	if (status == WEIR_OK)
		status = weir_bus_scan_partitions(path, &options.partitions, error);
	return status == WEIR_OK ? weir_bus_local_open(path, &options, &backend->bus, error) : status;
}

static enum weir_status open_state(struct backend *backend, enum backend_need need, struct weir_error *error)
{
	backend->kind = BACKEND_STATE;
	enum weir_status status = look(backend, error);
	if (status != WEIR_OK || (need != BACKEND_APPENDS && need != BACKEND_ALL))
		return status;
	if (backend->once && need == BACKEND_APPENDS)
		return weir_fail(error, WEIR_INVALID, "%s is the state of a --once run, which has no log to append to",
		                 backend->state_path);
	state_directory_close(&backend->state);
	backend->store = NULL;
	status = state_directory_open(&backend->state, backend->state_path, backend->once ? "once" : "follow", error);
	if (status == WEIR_LOCKED && !backend->once) {
		backend->kind = BACKEND_RUNNING;
		state_directory_close(&backend->state);
		/* Its tables are as this program knows them: it has looked. */
		if (need == BACKEND_APPENDS)
			return look(backend, error);
		status = weir_store_sqlite_open(backend->state_path, &backend->state.store, error);
		backend->store = backend->state.store;
		return status;
	}
	backend->store = backend->state.store;
	return status == WEIR_OK && !backend->once ? open_log(backend, error) : status;
}

static enum weir_status open_any(struct backend *backend, const char *command, const char *state_path,
                                 enum backend_need need, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	backend->log = (struct weir_log){.fd = STDERR_FILENO, .level = WEIR_LOG_WARNING};
	backend->state_path = state_path;
	backend->lateness_ms = backend->config != NULL ? backend->config->limiter.lateness_ms : LATENESS_DEFAULT_MS;
	if (state_path == NULL && backend->config != NULL && backend->config->bus.type == WEIR_BUS_KAFKA)
		return open_cluster(backend, command, need, error);
	if (state_path == NULL) {
		status = state_directory_default(backend->state_default, error);
		backend->state_path = backend->state_default;
	}
	return status == WEIR_OK ? open_state(backend, need, error) : status;
}

enum weir_status backend_open(struct backend *backend, const char *command, const char *config_path,
                              const char *state_path, enum backend_need need, struct weir_error *error)
{
	enum weir_status status = config_path != NULL ? weir_config_load(config_path, &backend->config, error) : WEIR_OK;
	backend->wait_ms = WAIT_MS;
	return status == WEIR_OK ? open_any(backend, command, state_path, need, error) : status;
}

enum weir_status backend_look(struct backend *backend, const char *command, struct weir_config *config,
                              const char *state_path, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	backend->config = config;
	backend->config_borrowed = true;
	backend->wait_ms = LOOK_WAIT_MS;
	if (config->bus.type == WEIR_BUS_LOCAL) {
		enum weir_status status = WEIR_OK;
		if (state_path == NULL)
			status = state_directory_default(backend->state_default, error);
		if (status == WEIR_OK)
			status =
				weir_path_format(path, error, "%s/weir.db", state_path != NULL ? state_path : backend->state_default);
		backend->absent = status == WEIR_OK && access(path, F_OK) != 0;
		if (backend->absent)
			status = weir_fail(error, WEIR_INVALID, "there is no %s yet", path);
		if (status != WEIR_OK)
			return status;
	}
	return open_any(backend, command, state_path, BACKEND_READS, error);
}

/* How many partitions a store of one machine has: up to the first that nobody ever took. */
static enum weir_status count_taken(struct weir_store *store, uint32_t *count, struct weir_error *error)
{
	struct weir_partition_state state = {.epoch = 1};
	enum weir_status status = WEIR_OK;
	*count = 0;
	while (status == WEIR_OK && state.epoch > 0 && *count < WEIR_PARTITIONS_MAX) {
		status = store->ops->inspect(store, WEIR_STORE_ROLE_LIMITER, *count, &state, error);
		*count += status == WEIR_OK && state.epoch > 0;
	}
	return status;
}

enum weir_status backend_partitions(const struct backend *backend, uint32_t *count, struct weir_error *error)
{
	if (backend->kind != BACKEND_CLUSTER)
		return count_taken(backend->store, count, error);
	*count = (uint32_t)backend->config->bus.partitions;
	return WEIR_OK;
}

void backend_tell_ended(const struct backend *backend, const char *command)
{
	if (backend->kind != BACKEND_CLUSTER && !backend->once && backend->store != NULL &&
	    weir_directory_look(backend->state_path) == WEIR_DIRECTORY_FREE)
		fprintf(stderr, "%s: state %s: no weir run is running there; this is what it knew when it ended\n", command,
		        backend->state_path);
}

void backend_close(struct backend *backend)
{
	if (backend->bus != NULL)
		backend->bus->ops->close(backend->bus);
	if (backend->kind == BACKEND_CLUSTER && backend->store != NULL)
		backend->store->ops->close(backend->store);
	if (backend->kind != BACKEND_CLUSTER)
		state_directory_close(&backend->state);
	if (!backend->config_borrowed)
		weir_config_free(backend->config);
	*backend = (struct backend){0};
}
