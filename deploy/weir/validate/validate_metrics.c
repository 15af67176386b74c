/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All metrics, by the programs whose pages have them: each module's own table.
 * A heading ends with the programs, in backticks; tests read them from there.
 */
#include "deploy/weir/validate/validate_metrics.h"

#include "archiver/api/api.h"
#include "archiver/arming/arming.h"
#include "archiver/work/archiver_metrics.h"
#include "collector/daemon/policies.h"
#include "collector/daemon/service.h"
#include "collector/follow/collector.h"
#include "collector/follow/inputs.h"
#include "collector/send/sender.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/cluster/store_metrics.h"
#include "common/daemon/certificate_metrics.h"
#include "common/daemon/process_metrics.h"
#include "common/exempt/exempt_fetch.h"
#include "common/exempt/verified_hosts.h"
#include "common/http/http.h"
#include "deploy/gateways/subscriber/subscriber.h"
#include "deploy/weir/run/monitor.h"
#include "limiter/daemon/limiter_checks.h"
#include "limiter/daemon/limiter_metrics.h"

#include <stddef.h>

static const char opening[] =
	"# Metrics\n"
	"\n"
	"What `/metrics` shows, for Prometheus: daemons and `weir run` serve it on `listen.http`, `weir "
	"subscribe` on `--http`.\n"
	"Counters start at 0 with the process; only those of zones continue where a `weir run` ended. A "
	"metric that is not\n"
	"here does not exist. `weir validate --metrics` prints this page.\n"
	"\n"
	"A limiter counts each message once, although it judges it again after it went back to a checkpoint (a failed\n"
	"delivery, a lost checkpoint): rates do not double in an outage. Another process cannot know what was counted: what a\n"
	"limiter had judged since its last checkpoint when it was killed, or lost its partitions, counts once more in the one\n"
	"that judges it next.\n"
	"\n"
	"Label values in backticks are a complete list. A `source` is one stream by its name in the log, "
	"such\n"
	"as a file's path. A histogram has samples `_bucket`, `_sum` and `_count`. The dashboard and the "
	"alerts in\n"
	"`deploy/grafana` show and watch what matters most.\n";

static const struct {
	const char *heading;
	void (*describe)(struct weir_text *text); /* appends what stands in no table, before those in tables */
	const struct weir_metric_table *tables[5];
} sections[] = {
	{"Collecting: `weir-collector`, `weir run`",
     inputs_metrics_describe,
     {&collector_metric_table, &sender_metric_table, NULL}},
	{"Lists of `exempt`, and robots: `weir-collector`, `weir-limiter`, `weir run`",
     NULL,
     {&weir_exempt_fetch_metric_table, &weir_verified_hosts_metric_table, NULL}},
	{"Collecting in a cluster: `weir-collector`", NULL, {&policies_metric_table, &service_metric_table, NULL}},
	{"Limiting: `weir-limiter`, `weir run`", NULL, {&limiter_metric_table, NULL}},
	{"Checks: `weir-limiter`, `weir run`", NULL, {&limiter_checks_metric_table, NULL}},
	{"Limiting in a cluster: `weir-limiter`", NULL, {&limiter_daemon_metric_table, NULL}},
	{"Archiving: `weir-archiver`, `weir run` with `archiver.enabled`",
     NULL,
     {&archiver_metric_table, &arming_metric_table, NULL}},
	{"Archiving in a cluster: `weir-archiver`", NULL, {&archiver_daemon_metric_table, NULL}},
	{"A gateway's list: `weir subscribe`, `weir run` with `gateways`", NULL, {&subscriber_metric_table, NULL}},
	{"The bus of a cluster: `weir-collector`, `weir-limiter`, `weir-archiver`, `weir subscribe`",
     NULL,
     {&weir_bus_kafka_metric_table, NULL}},
	{"The store of a cluster: `weir-limiter`, `weir-archiver`", NULL, {&weir_store_metric_table, NULL}},
	{"The state of one machine: `weir run`", NULL, {&monitor_metric_table, NULL}},
	{"The process: `weir-collector`, `weir-limiter`, `weir-archiver`, `weir run`, `weir subscribe`",
     NULL,
     {&weir_process_metric_table, NULL}},
	{"Certificates in files: `weir-collector`, `weir-limiter`, `weir-archiver`, `weir run`, `weir subscribe`",
     NULL,
     {&weir_certificate_metric_table, NULL}},
	{"These pages by TLS: `weir-collector`, `weir-limiter`, `weir-archiver`, `weir run`, `weir subscribe`",
     NULL,
     {&weir_http_metric_table, NULL}},
	{"The API by TLS: `weir-archiver`, `weir run`", NULL, {&api_metric_table, NULL}},
};

void validate_metrics(struct weir_text *text)
{
	weir_text_puts(text, opening);
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		weir_text_printf(text, "\n## %s\n\n", sections[i].heading);
		weir_text_puts(text, "| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n");
		if (sections[i].describe != NULL)
			sections[i].describe(text);
		for (size_t j = 0; sections[i].tables[j] != NULL; j++)
			weir_metrics_describe(text, sections[i].tables[j]);
	}
}
