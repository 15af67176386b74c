/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a stored position is outside what the topic has, only a person can say that it goes on: the partition stands
 * until then. One finding for all partitions of a fault.
 */
#include "common/base/clock.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/diagnosis/server_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_MS = 3000, POLL_MS = 200, BATCH = 256, NAMED_MOST = 8 };

struct gaps {
	struct weir_text numbers; /* "0, 3, 7" */
	uint32_t count;
	uint64_t lost, next, first, end; /* of the first of them but for `lost` */
};

static void add_gap(struct gaps *gaps, uint32_t partition, uint64_t next, uint64_t first, uint64_t end)
{
	if (gaps->count++ == 0) {
		gaps->next = next;
		gaps->first = first;
		gaps->end = end;
	}
	gaps->lost += first > next ? first - next : 0;
	if (gaps->count <= NAMED_MOST)
		weir_text_printf(&gaps->numbers, "%s%u", gaps->count > 1 ? ", " : "", partition);
	else if (gaps->count == NAMED_MOST + 1)
		weir_text_puts(&gaps->numbers, ", ...");
}

static const char *meaning(const struct weir_check_positions *positions)
{
	return strcmp(positions->role, "archiver") == 0
	           ? "The archive has stopped there; verdicts go on"
	           : "These partitions are stopped: their keys are not judged, and nobody is newly blocked there";
}

static enum weir_severity severity(const struct weir_check_positions *positions)
{
	return strcmp(positions->role, "archiver") == 0 ? WEIR_SEVERITY_TICKET : WEIR_SEVERITY_PAGE;
}

static void tell(const struct weir_check *check, const struct weir_check_positions *positions, struct gaps *gap,
                 struct gaps *anew)
{
	char name[WEIR_BUS_KAFKA_TOPIC_BYTES];
	weir_bus_kafka_topic_name(check->config->bus.prefix, positions->topic, name);
	if (gap->count > 0)
		weir_findings_add(check->findings, severity(positions), "partitions",
		                  "%s: %llu messages of %s were deleted before they were done, in partition%s %.*s (the first "
		                  "continues at offset %llu, its topic begins at %llu)\n%s\nweir recover --accept-gap %s --all "
		                  "--yes (runbook: gap)",
		                  positions->role, (unsigned long long)gap->lost, name, gap->count > 1 ? "s" : "",
		                  (int)gap->numbers.length, gap->numbers.at, (unsigned long long)gap->next,
		                  (unsigned long long)gap->first, meaning(positions), check->config_words);
	if (anew->count > 0)
		weir_findings_add(
			check->findings, severity(positions), "partitions",
			"%s: topic %s was recreated: partition%s %.*s (the first ends at offset %llu, its checkpoint is "
			"at %llu)\n%s\nweir recover --accept-gap %s --all --yes (runbook: topic-recreated)",
			positions->role, name, anew->count > 1 ? "s" : "", (int)anew->numbers.length, anew->numbers.at,
			(unsigned long long)anew->end, (unsigned long long)anew->next, meaning(positions), check->config_words);
}

/* How long the oldest message that waits has been waiting, by the log's own times. */
static void measure(struct weir_bus *bus, struct weir_check_positions *positions, const bool *waits, uint32_t waiting)
{
	struct weir_consumer *consumer;
	struct weir_message messages[BATCH];
	struct weir_error error;
	size_t count = 0;
	int64_t end_ms = weir_monotonic_ms() + READ_MS, now_ms = weir_wall_ms();
	if (waiting == 0 || bus->ops->consumer_new(bus, positions->topic, NULL, &consumer, &error) != WEIR_OK)
		return;
	for (uint32_t i = 0; i < positions->partitions; i++)
		if (waits[i] && bus->ops->assign(consumer, i, positions->next[i], &error) != WEIR_OK)
			waiting--;
	while (waiting > 0 && weir_monotonic_ms() < end_ms &&
	       bus->ops->receive(consumer, messages, BATCH, POLL_MS, &count, &error) == WEIR_OK)
		for (size_t i = 0; i < count; i++) {
			if (messages[i].offset != positions->next[messages[i].partition])
				continue;
			int64_t age_ms = messages[i].appended_ms > 0 ? now_ms - messages[i].appended_ms : 0;
			if (age_ms > positions->oldest_ms)
				positions->oldest_ms = age_ms;
			bus->ops->pause(consumer, messages[i].partition, true);
			waiting--;
		}
	bus->ops->consumer_free(consumer);
}

void weir_check_positions(const struct weir_check *check, struct weir_bus *bus, struct weir_check_positions *positions)
{
	struct gaps gap = {0}, anew = {0};
	struct weir_error error;
	bool waits[WEIR_BUS_PARTITIONS_MAX] = {false};
	uint32_t waiting = 0;
	positions->asked = true;
	positions->oldest_ms = -1;
	for (uint32_t i = 0; i < positions->partitions && positions->asked; i++) {
		uint64_t first, end, next = positions->next[i];
		if (!positions->known[i])
			continue;
		if (weir_monotonic_ms() >= check->end_ms)
			(void)weir_fail(&error, WEIR_IO, "there was no time left to ask for all partitions");
		else if (bus->ops->extent(bus, positions->topic, i, &first, &end, &error) == WEIR_OK) {
			if (next < first)
				add_gap(&gap, i, next, first, end);
			else if (next > end)
				add_gap(&anew, i, next, first, end);
			waits[i] = next >= first && next < end;
			waiting += waits[i];
			positions->behind += waits[i] ? end - next : 0;
			continue;
		}
		positions->asked = false;
		weir_findings_add(check->findings, WEIR_SEVERITY_TICKET, "partitions",
		                  "%s: %s\nWhether partitions are at a gap is not known\nrun the command again (runbook: "
		                  "broker-away)",
		                  positions->role, error.text);
	}
	positions->stuck = gap.count + anew.count;
	measure(bus, positions, waits, waiting);
	tell(check, positions, &gap, &anew);
	weir_text_deinit(&gap.numbers);
	weir_text_deinit(&anew.numbers);
}
