/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the two servers, with timeouts short enough for someone at a terminal. */
#include "common/daemon/daemon_check.h"

#include "common/base/clock.h"
#include "common/base/stop.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/cluster/connect.h"
#include "common/cluster/store_claim.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHECK_WAIT_MS = 10000 };

enum weir_status weir_daemon_check_bus(const struct weir_daemon *daemon, bool missing[WEIR_TOPIC_COUNT],
                                       struct weir_bus **bus, struct weir_error *error)
{
	const struct weir_config *config = daemon->config;
	enum weir_status status = weir_bus_kafka_open_existing(config, daemon->name, CHECK_WAIT_MS, weir_stop_flag(),
	                                                       &daemon->log, missing, bus, error);
	if (status != WEIR_OK)
		return status;
	struct weir_text names = {0};
	if (weir_bus_kafka_topic_names(config->bus.prefix, missing, &names) == 0)
		printf("bus: %s: the topics with prefix \"%s\" exist, with %u partitions\n", config->bus.brokers,
		       config->bus.prefix, (*bus)->partitions);
	else
		printf("bus: %s: starting would create %.*s, with %u partitions\n", config->bus.brokers, (int)names.length,
		       names.at, (*bus)->partitions);
	weir_text_deinit(&names);
	return WEIR_OK;
}

enum weir_status weir_daemon_check_store(const struct weir_daemon *daemon, struct weir_store **store,
                                         struct weir_error *error)
{
	struct weir_text missing = {0};
	enum weir_status status = weir_connect_existing_store(daemon->config, CHECK_WAIT_MS, weir_stop_flag(), &daemon->log,
	                                                      &missing, store, error);
	if (status == WEIR_OK && *store == NULL)
		printf("store: starting would create %.*s; ", (int)missing.length, missing.at);
	weir_text_deinit(&missing);
	if (status != WEIR_OK || *store == NULL)
		return weir_daemon_of_server(status);
	status = weir_store_check_claim(*store, daemon->config, error);
	if (status != WEIR_OK) {
		(*store)->ops->close(*store);
		*store = NULL;
	}
	return status;
}

struct weir_check weir_daemon_check_begin(const struct weir_daemon *daemon, struct weir_findings *findings)
{
	return (struct weir_check){.config = daemon->config,
	                           .config_words = weir_config_words(daemon->config),
	                           .wait_ms = CHECK_WAIT_MS,
	                           .end_ms = weir_monotonic_ms() + CHECK_WAIT_MS,
	                           .log = &daemon->log,
	                           .findings = findings};
}

enum weir_status weir_daemon_check_end(const struct weir_daemon *daemon, struct weir_check *check,
                                       enum weir_severity hinders, struct weir_error *error)
{
	struct weir_findings *findings = check->findings;
	struct weir_text text = {0};
	size_t count = weir_findings_count(findings, hinders);
	bool unasked = findings->unasked;
	weir_findings_sort(findings);
	for (size_t i = 0; i < findings->count; i++)
		weir_finding_write(&text, &findings->at[i], false);
	printf("%.*s", (int)text.length, text.length > 0 ? text.at : "");
	weir_text_deinit(&text);
	weir_findings_deinit(findings);
	if (count > 0)
		return weir_fail(error, WEIR_IO, "%zu thing%s would keep it from working: see above", count,
		                 count == 1 ? "" : "s");
	printf(unasked ? "%s: nothing that could be asked in time keeps it from working\n"
	               : "%s: nothing keeps it from working\n",
	       daemon->name);
	return WEIR_OK;
}
