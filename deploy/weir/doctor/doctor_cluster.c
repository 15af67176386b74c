/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brokers and store, then what limiters and archivers have stored against the topics, and who holds what.
 *
 * What follows from a fault that is told already is not told again: where the store takes no writes, checkpoints are old;
 * where no limiter runs, messages wait.
 */
#include "archiver/daemon/archiver_check.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/json/units.h"
#include "deploy/weir/doctor/internal.h"
#include "limiter/daemon/limiter_check.h"

#include <stdio.h>

enum { ARCHIVE_LATE_MS = 600000, ASK_MS = 4000, RUN_BYTES = 400 };

void doctor_check_brokers(struct doctor *doctor, const struct weir_check *check)
{
	struct weir_bus *bus;
	weir_check_bus(check, "weir-doctor", doctor->topics, &bus);
	doctor->bus = bus;
}

void doctor_check_store(struct doctor *doctor, const struct weir_check *check)
{
	struct weir_store *store;
	if (doctor->config->store.type != WEIR_STORE_MYSQL) {
		weir_findings_good(check->findings,
		                   "store: none is named, as a collector needs none: checkpoints were not asked");
		return;
	}
	doctor->store_silent = !weir_check_store(check, true, doctor->config->archiver.enabled, &store);
	doctor->store_writable = store != NULL && weir_findings_count(check->findings, WEIR_SEVERITY_PAGE) == 0;
	doctor->store = store;
}

/* ---- members ---- */

struct members {
	const struct weir_check *check;
	const char *role;
	size_t count;
	uint32_t given;
};

/* "0-3, 7" */
static void write_runs(const uint32_t *partitions, size_t count, char text[RUN_BYTES])
{
	size_t length = 0, begin = 0;
	text[0] = '\0';
	for (size_t i = 1; i <= count && length < RUN_BYTES - 32; i++) {
		if (i < count && partitions[i] == partitions[i - 1] + 1)
			continue;
		length += (size_t)snprintf(text + length, RUN_BYTES - length, begin + 1 == i ? "%s%u" : "%s%u-%u",
		                           length > 0 ? ", " : "", partitions[begin], partitions[i - 1]);
		begin = i;
	}
}

static void take_member(void *context, const char *client, const char *host, const uint32_t *partitions, size_t count)
{
	struct members *members = context;
	char runs[RUN_BYTES];
	members->count++;
	members->given += (uint32_t)count;
	write_runs(partitions, count, runs);
	weir_findings_good(members->check->findings, "%s on %s holds %s%s", client, host[0] == '/' ? host + 1 : host,
	                   count > 0 ? "partitions " : "no partition", runs);
}

/* @return whether the role is at work */
static bool check_members(struct doctor *doctor, const struct weir_check *check, const char *role,
                          enum weir_severity severity)
{
	struct members members = {.check = check, .role = role};
	struct weir_error error;
	uint32_t partitions = (uint32_t)doctor->config->bus.partitions;
	if (!doctor->topics[WEIR_TOPIC_EVENTS])
		return false;
	if (weir_bus_kafka_members(doctor->bus, role, ASK_MS, take_member, &members, &error) != WEIR_OK) {
		weir_findings_add(check->findings, WEIR_SEVERITY_TICKET, "members",
		                  "%s\nWhich %s holds which partition is not known\nrun the command again; the user of "
		                  "\"bus.kafka\" needs the right to describe the group (runbook: credentials)",
		                  error.text, role);
		return true;
	}
	if (members.count == 0 && doctor->store_silent)
		weir_findings_add(
			check->findings, severity, "members",
			"no %s is at work: consumer group %s.%s has no member\nNothing is judged, and nobody is newly "
			"blocked: a %s that starts while the store is away waits for it, outside of the group\nstart the "
			"store; those that wait go on by themselves. If none waits, systemctl start weir-%s (runbook: "
			"store-away)",
			role, doctor->config->bus.prefix, role, role, role);
	else if (members.count == 0)
		weir_findings_add(check->findings, severity, "members",
		                  "no %s is running: consumer group %s.%s has no member\n%s\nsystemctl start weir-%s, on the "
		                  "machines where it should run; its log says why it ended (runbook: process-down)",
		                  role, doctor->config->bus.prefix, role,
		                  severity == WEIR_SEVERITY_PAGE ? "Nothing is judged, and nobody is newly blocked"
		                                                 : "The archive stands still; verdicts go on",
		                  role);
	else if (members.given < partitions)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, "members",
			"%u of %u partitions are given to no %s\nIt passes if the group is only being shared anew; else "
			"they are not worked on\nrun the command again in a minute; then restart the %s that does not "
			"answer (runbook: process-suspended)",
			partitions - members.given, partitions, role, role);
	return members.count > 0;
}

/* ---- the roles ---- */

void doctor_check_limiters(struct doctor *doctor, const struct weir_check *check)
{
	struct limiter_state state;
	char age[24];
	if (doctor->bus == NULL)
		return;
	bool runs = check_members(doctor, check, "limiter", WEIR_SEVERITY_PAGE);
	if (doctor->topics[WEIR_TOPIC_EVENTS])
		weir_check_bus_clock(check, doctor->bus);
	if (doctor->store == NULL)
		return;
	limiter_check_state(check, doctor->bus, doctor->topics, doctor->store, &state);
	if (runs && doctor->store_writable && state.stuck == 0 && state.oldest_ms > limiter_check_late_ms(doctor->config))
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, "lag",
			"limiters are behind: %llu messages wait, the oldest for %s\nWho does too much is blocked that much "
			"later\nstart more limiters, or raise \"limiter.threads\"; weir top shows who asks so much (runbook: "
			"limiter-lag)",
			(unsigned long long)state.behind, weir_format_duration(state.oldest_ms / 1000 * 1000, age, sizeof age));
	else if (runs && state.stuck == 0)
		weir_findings_good(check->findings, "lag: %llu messages are not in a checkpoint yet",
		                   (unsigned long long)state.behind);
}

void doctor_check_archivers(struct doctor *doctor, const struct weir_check *check)
{
	int64_t oldest_ms;
	char age[24];
	if (!doctor->config->archiver.enabled || doctor->bus == NULL || doctor->store == NULL)
		return;
	bool runs = check_members(doctor, check, "archiver", WEIR_SEVERITY_TICKET);
	archiver_check_state(check, doctor->bus, doctor->topics, doctor->store, &oldest_ms);
	if (runs && doctor->store_writable && oldest_ms > ARCHIVE_LATE_MS)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, "lag",
			"the archive is behind: the oldest message that waits is %s old\nWhat waits longer than the topics "
			"keep it is missing from the archive\nraise \"archiver.threads\", or start another archiver "
			"(runbook: archive-behind)",
			weir_format_duration(oldest_ms / 1000 * 1000, age, sizeof age));
}
