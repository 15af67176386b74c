/* SPDX-License-Identifier: Apache-2.0 */
/* Opens what the configuration names, with retries: a daemon may start before its servers. */
#include "common/cluster/connect.h"

#include "common/base/clock.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/store/mysql/store_mysql.h"

#include <stdlib.h>

enum { RETRY_MS = 1000, NAP_MS = 50 };

enum weir_status weir_connect_check_bus(const struct weir_config *config, const char *who, struct weir_error *error)
{
	struct weir_json root = weir_json_root(config->document);
	struct weir_json bus = weir_json_member(&root, "bus"), type = weir_json_member(&bus, "type");
	if (config->bus.type == WEIR_BUS_KAFKA)
		return weir_bus_kafka_check(config, error);
	return weir_json_fail(&type, error, "must be \"kafka\" for %s; only `weir run` works without a server", who);
}

static enum weir_status check_password(const struct weir_config *config, const char *who, struct weir_error *error)
{
	char *password = NULL;
	struct weir_error words;
	if (weir_json_secret(&config->store.password, &password, &words) != WEIR_OK)
		return weir_fail(error, WEIR_INVALID, "%s; %s needs it to log in to the store", words.text, who);
	free(password);
	return WEIR_OK;
}

enum weir_status weir_connect_check(const struct weir_config *config, const char *who, struct weir_error *error)
{
	struct weir_json root = weir_json_root(config->document);
	struct weir_json store = weir_json_member(&root, "store"), type = weir_json_member(&store, "type");
	enum weir_status status = weir_connect_check_bus(config, who, error);
	if (status != WEIR_OK)
		return status;
	if (config->store.type == WEIR_STORE_MYSQL)
		return check_password(config, who, error);
	return weir_json_fail(&type, error, "must be \"mysql\" for %s; only `weir run` works without a server", who);
}

enum weir_status weir_connect_bus(const struct weir_config *config, const char *client,
                                  _Atomic(struct weir_bus *) *awaited, int64_t wait_ms, const _Atomic bool *stop,
                                  const struct weir_log *log, struct weir_bus **bus, struct weir_error *error)
{
	return weir_bus_kafka_open(config, client, awaited, wait_ms, stop, log, bus, error);
}

enum weir_status weir_connect_topic(const struct weir_config *config, const char *client, enum weir_topic topic,
                                    int64_t wait_ms, const struct weir_log *log, struct weir_bus **bus,
                                    struct weir_error *error)
{
	return weir_bus_kafka_open_topic(config, client, topic, NULL, wait_ms, NULL, log, bus, error);
}

static bool wait_for_retry(int64_t end_ms, const _Atomic bool *stop)
{
	int64_t retry_ms = weir_monotonic_ms() + RETRY_MS;
	while (weir_monotonic_ms() < retry_ms) {
		if ((stop != NULL && *stop) || weir_monotonic_ms() >= end_ms)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
	}
	return true;
}

/* @param missing  NULL: creates tables that are missing */
static enum weir_status connect_store(const struct weir_config *config, int64_t wait_ms, const _Atomic bool *stop,
                                      const struct weir_log *log, struct weir_text *missing, struct weir_store **store,
                                      struct weir_error *error)
{
	int64_t end_ms = weir_monotonic_ms() + wait_ms;
	struct weir_fault fault = {0};
	enum weir_status status;
	while ((status = missing != NULL ? weir_store_mysql_open_existing(config, missing, store, error)
	                                 : weir_store_mysql_open(config, store, error)) == WEIR_IO) {
		if (log != NULL)
			weir_fault_raise(
				&fault, log, "store",
				"the store is not there yet. Nothing is judged or archived by this process until it is; the log "
				"keeps what comes. Retrying every second. The store: %s",
				error->text);
		if (!wait_for_retry(end_ms, stop))
			return status;
	}
	if (status == WEIR_OK && log != NULL)
		weir_fault_over(&fault, log, "store", "the store answers");
	return status;
}

enum weir_status weir_connect_store(const struct weir_config *config, int64_t wait_ms, const _Atomic bool *stop,
                                    const struct weir_log *log, struct weir_store **store, struct weir_error *error)
{
	return connect_store(config, wait_ms, stop, log, NULL, store, error);
}

enum weir_status weir_connect_existing_store(const struct weir_config *config, int64_t wait_ms,
                                             const _Atomic bool *stop, const struct weir_log *log,
                                             struct weir_text *missing, struct weir_store **store,
                                             struct weir_error *error)
{
	return connect_store(config, wait_ms, stop, log, missing, store, error);
}
