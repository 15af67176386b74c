/* SPDX-License-Identifier: Apache-2.0 */
/* One producer for one command, which has succeeded or failed when this returns. */
#include "deploy/weir/overrides/override_append.h"

#include "common/base/alloc.h"
#include "common/bus/bus_wait.h"
#include "common/bytes/hash.h"

#include <stdlib.h>

enum { POLL_MS = 200, DELIVERIES = 64 };

/* Takes acknowledgements until none is owed. */
static enum weir_status wait_placed(struct weir_bus *bus, struct weir_producer *producer, uint32_t owed,
                                    int64_t wait_ms, struct override_place *places, uint32_t *count,
                                    struct weir_error *error)
{
	struct weir_bus_wait wait = weir_bus_wait_begin(wait_ms);
	struct weir_error why;
	while (*count < owed) {
		struct weir_delivery deliveries[DELIVERIES];
		size_t some = bus->ops->poll(producer, deliveries, DELIVERIES, POLL_MS);
		for (size_t i = 0; i < some; i++) {
			if (deliveries[i].status != WEIR_OK)
				return weir_fail(error, deliveries[i].status, "the log rejected the command in partition %u: %s",
				                 deliveries[i].partition, deliveries[i].why);
			places[(*count)++] = (struct override_place){deliveries[i].partition, deliveries[i].offset};
		}
		if (some == 0 && weir_bus_wait_on(&wait, bus, "the command", &why) != WEIR_OK)
			return weir_fail(error, WEIR_IO,
			                 "%.700s: it may or may not be in the log; run it again (running it twice does no harm)",
			                 why.text);
	}
	return WEIR_OK;
}

static int by_partition(const void *a, const void *b)
{
	const struct override_place *left = a, *right = b;
	return left->partition < right->partition ? -1 : left->partition > right->partition;
}

static enum weir_status send(struct weir_bus *bus, struct weir_producer *producer, uint32_t first, uint32_t end,
                             struct weir_span payload, int64_t wait_ms, struct override_place *places, uint32_t *count,
                             struct weir_error *error)
{
	struct weir_span no_key = {0};
	uint32_t sent = 0;
	for (uint32_t p = first; p < end; p++) {
		enum weir_status status;
		while ((status = bus->ops->send(producer, WEIR_TOPIC_EVENTS, p, no_key, payload, 0, error)) == WEIR_FULL) {
			status = wait_placed(bus, producer, sent, wait_ms, places, count, error);
			if (status != WEIR_OK)
				return status;
		}
		if (status != WEIR_OK)
			return status;
		sent++;
	}
	return wait_placed(bus, producer, sent, wait_ms, places, count, error);
}

enum weir_status override_append(struct weir_bus *bus, const struct weir_policy *policy,
                                 const struct override_command *command, int64_t now_ms, int64_t wait_ms,
                                 struct override_place *places, uint32_t *count, struct weir_error *error)
{
	const struct weir_zone *zone = weir_policy_find_zone(policy, weir_span_of(command->zone), error);
	struct weir_producer *producer;
	*count = 0;
	if (zone == NULL)
		return WEIR_INVALID;
	enum weir_status status = override_command_check(command, zone, error);
	if (status == WEIR_OK)
		status = bus->ops->producer_new(bus, &producer, error);
	if (status != WEIR_OK)
		return status;
	size_t length;
	char *message = override_command_message(command, policy->version, now_ms, &length);
	uint32_t partition = weir_partition(weir_slot(override_key(command)), bus->partitions);
	bool one = command->scope == OVERRIDE_OF_KEY;
	uint32_t first = one ? partition : 0, end = one ? partition + 1 : bus->partitions;
	status = send(bus, producer, first, end, (struct weir_span){.at = message, .length = (uint32_t)length}, wait_ms,
	              places, count, error);
	bus->ops->producer_free(producer);
	qsort(places, *count, sizeof *places, by_partition);
	free(message);
	return status;
}

void override_places_json(struct weir_json_writer *json, const struct override_place *places, uint32_t count)
{
	weir_json_write_array(json, "placed");
	for (uint32_t i = 0; i < count; i++) {
		weir_json_write_object(json, NULL);
		weir_json_write_uint(json, "partition", places[i].partition);
		weir_json_write_uint(json, "offset", places[i].offset);
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
}
