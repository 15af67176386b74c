/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether two collectors have one identity: the newest messages of the events topic tell, as each collector's positions
 * only grow. Some partitions are enough, as a log's keys are in all of them.
 */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hex.h"
#include "common/frame/sender_watch.h"
#include "deploy/weir/doctor/internal.h"

#include <stdlib.h>
#include <string.h>

enum { LOOKED_AT = 8, MESSAGES = 128, SOURCES_MOST = 256, READ_MS = 3000, POLL_MS = 100, RECENT_MS = 30000 };

/* One source in one partition. */
struct sender {
	uint8_t source[WEIR_SOURCE_ID_BYTES];
	uint32_t partition;
	struct weir_sender_watch watch;
	int64_t shared_ms; /* when it was last seen to be sent by two; 0: never */
};

struct senders {
	struct weir_frame_reader *reader;
	struct sender all[SOURCES_MOST];
	size_t count;
};

static struct sender *find(struct senders *senders, uint32_t partition, const uint8_t *source)
{
	for (size_t i = 0; i < senders->count; i++)
		if (senders->all[i].partition == partition && memcmp(senders->all[i].source, source, WEIR_SOURCE_ID_BYTES) == 0)
			return &senders->all[i];
	if (senders->count == SOURCES_MOST)
		return NULL;
	struct sender *made = &senders->all[senders->count++];
	*made = (struct sender){.partition = partition};
	memcpy(made->source, source, WEIR_SOURCE_ID_BYTES);
	return made;
}

static void take(struct senders *senders, const struct weir_message *message)
{
	struct weir_frame frame;
	struct weir_error error;
	if (weir_frame_decode(senders->reader, message->payload, &frame, &error) != WEIR_OK ||
	    !weir_frame_is_of_events(&frame))
		return;
	int64_t at_ms = message->appended_ms > 0 ? message->appended_ms : frame.sending_time_ms;
	struct sender *sender = find(senders, message->partition, frame.source);
	if (sender != NULL && weir_sender_is_shared(&sender->watch, &frame, at_ms))
		sender->shared_ms = at_ms;
}

/* Where to begin and to end in a partition: its newest messages. @return whether there are some */
static bool assign(struct weir_bus *bus, struct weir_consumer *consumer, uint32_t partition, uint64_t *end)
{
	uint64_t first;
	struct weir_error error;
	if (bus->ops->extent(bus, WEIR_TOPIC_EVENTS, partition, &first, end, &error) != WEIR_OK || first >= *end)
		return false;
	uint64_t from = *end > first + MESSAGES ? *end - MESSAGES : first;
	return bus->ops->assign(consumer, partition, from, &error) == WEIR_OK;
}

static void read_newest(const struct weir_check *check, struct weir_bus *bus, struct senders *senders)
{
	struct weir_consumer *consumer;
	struct weir_message messages[MESSAGES];
	struct weir_error error;
	uint64_t ends[LOOKED_AT] = {0};
	uint32_t step = bus->partitions > LOOKED_AT ? bus->partitions / LOOKED_AT : 1, left = 0;
	if (bus->ops->consumer_new(bus, WEIR_TOPIC_EVENTS, NULL, &consumer, &error) != WEIR_OK)
		return;
	int64_t end_ms = weir_monotonic_ms() + READ_MS;
	end_ms = end_ms < check->end_ms ? end_ms : check->end_ms;
	for (uint32_t i = 0; i < LOOKED_AT && i * step < bus->partitions && weir_monotonic_ms() < end_ms; i++)
		left += assign(bus, consumer, i * step, &ends[i]);
	size_t count = 0;
	while (left > 0 && weir_monotonic_ms() < end_ms &&
	       bus->ops->receive(consumer, messages, MESSAGES, POLL_MS, &count, &error) == WEIR_OK)
		for (size_t i = 0; i < count; i++) {
			uint64_t end = ends[messages[i].partition / step];
			if (messages[i].offset < end)
				take(senders, &messages[i]);
			if (messages[i].offset + 1 == end) {
				bus->ops->pause(consumer, messages[i].partition, true);
				left--;
			}
		}
	bus->ops->consumer_free(consumer);
}

void doctor_check_collectors(struct doctor *doctor, const struct weir_check *check)
{
	if (doctor->bus == NULL || !doctor->topics[WEIR_TOPIC_EVENTS])
		return;
	struct senders *senders = weir_alloc(1, sizeof *senders);
	*senders = (struct senders){.reader = weir_frame_reader_new()};
	read_newest(check, doctor->bus, senders);
	int64_t now_ms = weir_wall_ms();
	const struct sender *shared = NULL;
	for (size_t i = 0; i < senders->count && shared == NULL; i++)
		if (senders->all[i].shared_ms > now_ms - RECENT_MS)
			shared = &senders->all[i];
	if (shared != NULL) {
		char name[2 * WEIR_SOURCE_ID_BYTES + 1];
		*weir_hex_put(name, shared->source, WEIR_SOURCE_ID_BYTES) = '\0';
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, "collectors",
			"two collectors have one identity: source %s goes back and forth in partition %u of the events "
			"topic\nEvents of one are dropped as repeated ones of the other, and are not judged unless both "
			"read the same files\nend the collector whose state directory was copied, and move its "
			"sources.json away (runbook: duplicate-collector)",
			name, shared->partition);
	} else if (senders->count > 0) {
		weir_findings_good(check->findings,
		                   "collectors: each source of a collector's own in the newest messages is sent by one");
	}
	weir_frame_reader_free(senders->reader);
	free(senders);
}
