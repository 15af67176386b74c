/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a stored position is outside what the topic has, only a person can say that it goes on: the partition stands
 * until then. One finding for all partitions of a fault.
 */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/diagnosis/server_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_MS = 3000, POLL_MS = 200, BATCH = 256, NAMED_MOST = 8 };

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

/* Asks about all that are known, in the time that is left. @return how many those are */
static size_t ask(const struct weir_check *check, struct weir_bus *bus, const struct weir_check_positions *positions,
                  struct weir_position *asked)
{
	size_t count = 0;
	for (uint32_t i = 0; i < positions->partitions; i++)
		if (positions->known[i])
			asked[count++] =
				(struct weir_position){.partition = i, .next = positions->next[i], .mark = positions->marks[i]};
	int64_t left_ms = check->end_ms - weir_monotonic_ms();
	weir_bus_verify_all(bus, positions->topic, asked, count, left_ms > 0 ? (int)left_ms : 0);
	return count;
}

/* Partitions of which nothing is known. */
struct unasked {
	size_t late, failed;
	const char *why; /* of the first that failed */
};

static void tell_unasked(const struct weir_check *check, const struct weir_check_positions *positions, size_t count,
                         const struct unasked *unasked)
{
	if (unasked->failed > 0)
		weir_findings_add(check->findings, WEIR_SEVERITY_TICKET, "partitions",
		                  "%s: %s\nWhether partitions are at a gap is not known\nrun the command again (runbook: "
		                  "broker-away)",
		                  positions->role, unasked->why);
	if (unasked->late == 0)
		return;
	char name[WEIR_BUS_KAFKA_TOPIC_BYTES];
	weir_bus_kafka_topic_name(check->config->bus.prefix, positions->topic, name);
	check->findings->unasked = true;
	weir_findings_add(check->findings, WEIR_SEVERITY_NOTE, "partitions",
	                  "%s: there was no time left to ask about %zu of %zu partitions of %s\nWhether these are at a gap "
	                  "is not known\nrun the command again where the servers are nearer, or less is running",
	                  positions->role, unasked->late, count, name);
}

void weir_check_positions(const struct weir_check *check, struct weir_bus *bus, struct weir_check_positions *positions)
{
	struct gaps gap = {0}, anew = {0};
	struct unasked unasked = {0};
	bool *waits = weir_alloc(positions->partitions, sizeof *waits);
	struct weir_position *asked = weir_alloc(positions->partitions, sizeof *asked);
	size_t count = ask(check, bus, positions, asked);
	uint32_t waiting = 0;
	positions->oldest_ms = -1;
	for (size_t i = 0; i < count; i++) {
		const struct weir_position *at = &asked[i];
		bool ahead = at->status == WEIR_OK && at->next < at->end;
		waits[at->partition] = ahead;
		waiting += ahead;
		positions->behind += ahead ? at->end - at->next : 0;
		if (at->status == WEIR_ANEW)
			add_gap(&anew, at->partition, 0, at->why.text);
		else if (at->status == WEIR_INVALID)
			add_gap(&gap, at->partition, at->first > at->next ? at->first - at->next : 0, at->why.text);
		else if (at->status == WEIR_AGAIN)
			unasked.late++;
		else if (at->status != WEIR_OK && unasked.failed++ == 0)
			unasked.why = at->why.text;
	}
	positions->asked = unasked.late + unasked.failed == 0;
	positions->stuck = gap.count + anew.count;
	tell_unasked(check, positions, count, &unasked);
	if (weir_monotonic_ms() < check->end_ms)
		measure(bus, positions, waits, waiting);
	tell(check, positions, &gap, &anew);
	weir_text_deinit(&gap.numbers);
	weir_text_deinit(&anew.numbers);
	free(waits);
	free(asked);
}
