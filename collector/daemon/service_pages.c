/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics, /healthz, /readyz: also while there is no collector yet. */
#include "collector/daemon/internal.h"

#include "common/bus/kafka/bus_kafka.h"

enum { POLICY_VERSION, DEAD_LETTERS, DEAD_LETTERS_DROPPED, METRIC_COUNT };

static const struct weir_metric metrics[METRIC_COUNT] = {
	[POLICY_VERSION] = {"weir_policy_version", WEIR_GAUGE, "version", WEIR_NO_LABELS,
                        "Version of the policy that records are matched against; 0 while there is none."},
	[DEAD_LETTERS] = {"weir_collector_dead_letters_total", WEIR_COUNTER, "lines", WEIR_NO_LABELS,
                      "Malformed lines that were kept on the dead-letter topic."},
	[DEAD_LETTERS_DROPPED] =
		{"weir_collector_dead_letters_dropped_total", WEIR_COUNTER, "lines", WEIR_NO_LABELS,
         "Malformed lines that were counted but not kept, because they exceeded deadletter.rate or "
         "deadletter.max_size."},
};

const struct weir_metric_table service_metric_table = {metrics, METRIC_COUNT};

static void show_metrics(void *context, struct weir_text *page)
{
	struct service *service = context;
	struct collector *collector = atomic_load(&service->collector);
	weir_metrics_gauge(page, &metrics[POLICY_VERSION],
	                   collector != NULL ? (double)collector_policy_version(collector) : 0);
	struct policies *policies = atomic_load(&service->policies);
	if (policies != NULL)
		policies_metrics(policies, page);
	weir_bus_kafka_metrics(atomic_load(&service->awaited), (uint32_t)service->daemon->config->bus.partitions, page);
	if (collector == NULL)
		return;
	collector_metrics(collector, page);
	uint64_t written, dropped;
	collector_dead_letters(collector, &written, &dropped);
	weir_metrics_counter(page, &metrics[DEAD_LETTERS], written);
	weir_metrics_counter(page, &metrics[DEAD_LETTERS_DROPPED], dropped);
}

static bool is_healthy(void *context, struct weir_text *why)
{
	struct service *service = context;
	const struct collector *collector = atomic_load(&service->collector);
	if (collector == NULL || !collector_ended(collector))
		return true;
	weir_text_puts(why, "the collector has stopped\n");
	return false;
}

static bool is_ready(void *context, struct weir_text *why)
{
	struct service *service = context;
	struct collector *collector = atomic_load(&service->collector);
	const struct policies *policies = atomic_load(&service->policies);
	struct weir_bus *bus = atomic_load(&service->bus);
	if (bus == NULL) {
		weir_bus_kafka_awaits(atomic_load(&service->awaited), why);
		return false;
	}
	bool ready = weir_bus_kafka_ready(bus, why);
	if (policies != NULL)
		ready &= policies_ready(policies, why);
	if (collector == NULL)
		return false;
	return is_healthy(service, why) && collector_ready(collector, why) && ready;
}

void service_pages(struct service *service)
{
	service->pages = (struct weir_daemon_pages){
		.context = service, .metrics = show_metrics, .healthy = is_healthy, .ready = is_ready};
}
