/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The brokers do not tell the time, but they write it into each message of the events: a message of the future shows that
 * this machine's clock is behind. One that is old shows nothing, as it may be the last.
 */
#include "common/base/clock.h"
#include "common/diagnosis/server_checks.h"

enum { PARTITIONS_MOST = 16, READ_MS = 1500, POLL_MS = 200, BATCH = 64, SKEW_MOST_MS = 2000 };

/* Assigns the newest message of some partitions. @return of how many */
static uint32_t assign_newest(const struct weir_check *check, struct weir_bus *bus, struct weir_consumer *consumer)
{
	uint32_t waiting = 0;
	for (uint32_t i = 0; i < bus->partitions && i < PARTITIONS_MOST && weir_monotonic_ms() < check->end_ms; i++) {
		uint64_t first, next;
		struct weir_error error;
		if (bus->ops->extent(bus, WEIR_TOPIC_EVENTS, i, &first, &next, &error) == WEIR_OK && next > first &&
		    bus->ops->assign(consumer, i, next - 1, &error) == WEIR_OK)
			waiting++;
	}
	return waiting;
}

void weir_check_bus_clock(const struct weir_check *check, struct weir_bus *bus)
{
	struct weir_consumer *consumer;
	struct weir_message messages[BATCH];
	struct weir_error error;
	size_t count = 0;
	int64_t newest_ms = 0, end_ms = weir_monotonic_ms() + READ_MS;
	if (bus->ops->consumer_new(bus, WEIR_TOPIC_EVENTS, NULL, &consumer, &error) != WEIR_OK)
		return;
	uint32_t waiting = assign_newest(check, bus, consumer);
	while (waiting > 0 && weir_monotonic_ms() < end_ms &&
	       bus->ops->receive(consumer, messages, BATCH, POLL_MS, &count, &error) == WEIR_OK)
		for (size_t i = 0; i < count && waiting > 0; i++, waiting--)
			if (messages[i].appended_ms > newest_ms)
				newest_ms = messages[i].appended_ms;
	bus->ops->consumer_free(consumer);
	int64_t behind_ms = newest_ms - weir_wall_ms();
	if (behind_ms > SKEW_MOST_MS)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, "clocks",
			"this machine's clock is at least %lld s behind the brokers'\nTimes of lines and the age of blocks are "
			"judged wrongly where a clock is wrong\nchronyc tracking (or timedatectl) on both machines says which is "
			"wrong (runbook: clock)",
			(long long)behind_ms / 1000);
}
