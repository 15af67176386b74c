/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending, and its acknowledgement.
 *
 * The sending thread copies a message once and hashes it; the topic's thread only
 * adds the offset. The message comes back as its own delivery, and is freed where
 * it was allocated. A producer that is freed early remains until the last of its
 * messages has come back.
 */
#include "common/bus/local/bus_local_producer.h"

#include "common/base/alloc.h"
#include "common/base/deadline.h"
#include "common/base/wake.h"
#include "common/bytes/hash.h"

#include <stdlib.h>

struct weir_producer {
	struct weir_bus_journal *const *journals;
	uint64_t held_bytes; /* sent and not polled; only for the owner */
	bool broken;         /* a delivery failed; only for the owner */

	pthread_mutex_t lock;
	pthread_cond_t delivered;
	struct weir_bus_entries done;
	uint64_t away; /* how many messages topics' threads have */
	int wake;      /* written when `done` is no longer empty; -1: nothing is */
	bool abandoned;
};

struct weir_producer *weir_producer_new(struct weir_bus_journal *const *journals)
{
	struct weir_producer *producer = weir_alloc(1, sizeof *producer);
	producer->journals = journals;
	producer->wake = -1;
	pthread_mutex_init(&producer->lock, NULL);
	weir_condition_init(&producer->delivered);
	weir_bus_entries_init(&producer->done);
	return producer;
}

static void free_entries(struct weir_bus_entries *entries)
{
	for (struct weir_bus_entry *entry = entries->first, *next; entry != NULL; entry = next) {
		next = entry->next;
		free(entry);
	}
	weir_bus_entries_init(entries);
}

static void destroy(struct weir_producer *producer)
{
	free_entries(&producer->done);
	pthread_mutex_destroy(&producer->lock);
	pthread_cond_destroy(&producer->delivered);
	free(producer);
}

void weir_producer_wake(struct weir_producer *producer, int descriptor)
{
	pthread_mutex_lock(&producer->lock);
	producer->wake = descriptor;
	if (producer->done.first != NULL)
		weir_wake_up(descriptor);
	pthread_mutex_unlock(&producer->lock);
}

void weir_producer_free(struct weir_producer *producer)
{
	if (producer == NULL)
		return;
	pthread_mutex_lock(&producer->lock);
	producer->abandoned = true;
	producer->wake = -1;
	bool last = producer->away == 0;
	pthread_mutex_unlock(&producer->lock);
	if (last)
		destroy(producer);
}

enum weir_status weir_producer_send(struct weir_producer *producer, enum weir_topic topic, uint32_t partition,
                                    struct weir_span key, struct weir_span payload, uint64_t tag,
                                    struct weir_error *error)
{
	struct weir_bus_journal *journal = producer->journals[topic];
	uint32_t key_bytes = key.at != NULL ? key.length : 0;
	uint64_t body_bytes = (uint64_t)key_bytes + payload.length;
	if (producer->broken)
		return weir_fail(error, WEIR_IO, "an earlier message could not be delivered");
	if (partition >= journal->partitions)
		return weir_fail(error, WEIR_INVALID, "%s has no partition %u", weir_topic_name(topic), partition);
	if (body_bytes > WEIR_BUS_MESSAGE_MAX_BYTES)
		return weir_fail(error, WEIR_INVALID, "a message of %llu bytes is too large for %s",
		                 (unsigned long long)body_bytes, weir_topic_name(topic));
	uint32_t bytes = WEIR_BUS_RECORD_HEADER_BYTES + (uint32_t)body_bytes;
	if (producer->held_bytes > 0 && producer->held_bytes + bytes > WEIR_BUS_PRODUCER_MAX_BYTES)
		return weir_fail(error, WEIR_FULL, "the send buffer is full: %llu bytes are not delivered yet",
		                 (unsigned long long)producer->held_bytes);

	/* Not cleared, as every byte is written here or with the offset. */
	struct weir_bus_entry *entry = weir_realloc(NULL, 1, sizeof *entry + bytes);
	char *body = entry->encoded + WEIR_BUS_RECORD_HEADER_BYTES;
	if (key_bytes > 0)
		memcpy(body, key.at, key_bytes);
	if (payload.length > 0)
		memcpy(body + key_bytes, payload.at, payload.length);
	entry->producer = producer;
	entry->tag = tag;
	entry->topic = topic;
	entry->status = WEIR_AGAIN;
	entry->bytes = bytes;
	entry->record = (struct weir_bus_record){.partition = partition,
	                                         .has_key = key.at != NULL,
	                                         .key_bytes = key_bytes,
	                                         .body_bytes = (uint32_t)body_bytes,
	                                         .body_hash = weir_hash64(body, (size_t)body_bytes)};
	producer->held_bytes += bytes;
	pthread_mutex_lock(&producer->lock);
	producer->away++;
	pthread_mutex_unlock(&producer->lock);
	weir_bus_journal_send(journal, entry);
	return WEIR_OK;
}

void weir_producer_hurry(struct weir_producer *producer, enum weir_topic topic)
{
	weir_bus_journal_hurry(producer->journals[topic]);
}

size_t weir_producer_poll(struct weir_producer *producer, struct weir_delivery *deliveries, size_t most, int timeout_ms)
{
	struct weir_bus_entry *taken = NULL, **end = &taken;
	size_t count = 0;
	pthread_mutex_lock(&producer->lock);
	if (producer->done.first == NULL && timeout_ms > 0) {
		struct weir_deadline deadline = weir_deadline_in_ms(timeout_ms);
		while (producer->done.first == NULL && weir_condition_wait(&producer->delivered, &producer->lock, &deadline))
			;
	}
	while (count < most && producer->done.first != NULL) {
		struct weir_bus_entry *entry = producer->done.first;
		producer->done.first = entry->next;
		*end = entry;
		end = &entry->next;
		count++;
	}
	*end = NULL;
	if (producer->done.first == NULL)
		weir_bus_entries_init(&producer->done);
	pthread_mutex_unlock(&producer->lock);

	for (size_t i = 0; i < count; i++) {
		struct weir_bus_entry *entry = taken;
		taken = entry->next;
		deliveries[i] = (struct weir_delivery){.topic = entry->topic,
		                                       .partition = entry->record.partition,
		                                       .offset = entry->record.offset,
		                                       .tag = entry->tag,
		                                       .status = entry->status,
		                                       .why = "the bus is closing"};
		producer->broken |= entry->status != WEIR_OK;
		producer->held_bytes -= entry->bytes;
		free(entry);
	}
	return count;
}

void weir_producer_deliver(struct weir_bus_entries *entries)
{
	/* Adjacent messages of one producer are returned under one lock. */
	for (struct weir_bus_entry *entry = entries->first, *next; entry != NULL;) {
		struct weir_producer *producer = entry->producer;
		pthread_mutex_lock(&producer->lock);
		if (producer->done.first == NULL)
			weir_wake_up(producer->wake);
		for (; entry != NULL && entry->producer == producer; entry = next) {
			next = entry->next;
			weir_bus_entries_add(&producer->done, entry);
			producer->away--;
		}
		bool last = producer->abandoned && producer->away == 0;
		pthread_cond_signal(&producer->delivered);
		pthread_mutex_unlock(&producer->lock);
		if (last)
			destroy(producer);
	}
	weir_bus_entries_init(entries);
}
