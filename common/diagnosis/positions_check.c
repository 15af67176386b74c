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

enum { READ_MS = 3000, POLL_MS = 200, BATCH = 256, NAMED_MOST = 8, VERIFY_MS = 2000 };

/* Partitions that cannot go on. */
struct gaps {
	struct weir_text numbers; /* "0, 3, 7" */
	uint32_t count;
	char why[WEIR_ERROR_TEXT_BYTES]; /* of the first of them */
	uint64_t lost;
};

static void add_gap(struct gaps *gaps, uint32_t partition, uint64_t lost, const char *why)
{
	if (gaps->count++ == 0)
		snprintf(gaps->why, sizeof gaps->why, "%s", why);
	gaps->lost += lost;
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
	const char *details = strchr(anew->why, '('); /* what is before it has the topic's name without the prefix */
	weir_bus_kafka_topic_name(check->config->bus.prefix, positions->topic, name);
	if (gap->count > 0)
		weir_findings_add(
			check->findings, severity(positions), "partitions",
			"%s: topic %s lost %llu message%s before they were done, in partition%s %.*s\n%s\nweir recover "
			"--accept-gap %s --all --yes (runbook: gap)",
			positions->role, name, (unsigned long long)gap->lost, gap->lost == 1 ? "" : "s", gap->count > 1 ? "s" : "",
			(int)gap->numbers.length, gap->numbers.at, meaning(positions), check->config_words);
	if (anew->count > 0)
		weir_findings_add(
			check->findings, severity(positions), "partitions",
			"%s: topic %s was recreated or lost its newest messages, which stops partition%s %.*s %s\n%s\nweir recover --accept-gap %s --all "
			"--yes (runbook: topic-recreated)",
			positions->role, name, anew->count > 1 ? "s" : "", (int)anew->numbers.length, anew->numbers.at,
			details != NULL ? details : "", meaning(positions), check->config_words);
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

/* Asks about one. @return WEIR_OK, WEIR_INVALID, WEIR_ANEW: as weir_bus_verify(); WEIR_IO */
static enum weir_status ask(const struct weir_check *check, struct weir_bus *bus,
                            const struct weir_check_positions *positions, uint32_t partition, uint64_t *first,
                            uint64_t *end, struct weir_error *error)
{
	if (weir_monotonic_ms() >= check->end_ms)
		return weir_fail(error, WEIR_IO, "there was no time left to ask for all partitions");
	enum weir_status status = bus->ops->extent(bus, positions->topic, partition, first, end, error);
	return status == WEIR_OK ? weir_bus_verify(bus, positions->topic, partition, positions->next[partition],
	                                           &positions->marks[partition], VERIFY_MS, error)
	                         : status;
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
		enum weir_status status = ask(check, bus, positions, i, &first, &end, &error);
		if (status == WEIR_ANEW)
			add_gap(&anew, i, 0, error.text);
		else if (status == WEIR_INVALID)
			add_gap(&gap, i, first > next ? first - next : 0, error.text);
		positions->asked = status == WEIR_OK || status == WEIR_INVALID || status == WEIR_ANEW;
		waits[i] = status == WEIR_OK && next < end;
		waiting += waits[i];
		positions->behind += waits[i] ? end - next : 0;
	}
	if (!positions->asked)
		weir_findings_add(check->findings, WEIR_SEVERITY_TICKET, "partitions",
		                  "%s: %s\nWhether partitions are at a gap is not known\nrun the command again (runbook: "
		                  "broker-away)",
		                  positions->role, error.text);
	positions->stuck = gap.count + anew.count;
	measure(bus, positions, waits, waiting);
	tell(check, positions, &gap, &anew);
	weir_text_deinit(&gap.numbers);
	weir_text_deinit(&anew.numbers);
}
