/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a topic of Kafka: partitions are assigned one by one, each at its
 * offset, without a group.
 *
 * librdkafka's simple consumer does just that, and all partitions share one queue.
 * A paused partition is still fetched: its messages are set aside, and only above
 * a bound fetching stops. So a short pause costs nothing, and a long one has
 * bounded memory. librdkafka's batch call waits for its whole timeout unless its
 * array fills; so the first message is waited for alone (take_batch()).
 *
 * auto.offset.reset=error: an offset that is not in the log is reported and stops
 * its partition. So do damaged bytes, which librdkafka by itself would skip.
 * librdkafka retries everything else.
 *
 * A topic that was made anew has other messages at the same offsets. So the last
 * message that was read is fetched once more, and compared, before what is behind
 * it counts: when a stored position is taken up, and after the brokers or the topic
 * were away. That costs no question of its own: fetching just begins one earlier.
 */
#include "common/bus/kafka/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
	BATCH_MESSAGES = 64,
	HELD_MESSAGES = 1024,          /* how many one receive returns at most */
	HELD_BYTES = 4 * 1024 * 1024,  /* a receive stops once it has this much */
	ASIDE_MESSAGES = 4096,         /* set aside for a paused partition before fetching stops */
	ASIDE_BYTES = 4 * 1024 * 1024, /* the same, in bytes */
	ASSIGN_ASK_MS = 1000,          /* how long assign asks for offsets; without an answer, receive reports problems */
};

struct assigned {
	bool on, paused, fetching;
	bool broken, told;     /* broken: it cannot be read on (`why`); told: receive has reported it */
	bool verifying;        /* what comes first is to be compared with `mark` */
	bool suspect;          /* it was found to be another topic: a resume waits for the answer */
	struct weir_mark mark; /* of the last message taken from librdkafka, or as given to resume */
	enum weir_status why;  /* if broken: WEIR_INVALID, WEIR_ANEW */
	uint64_t next;         /* the next offset to take from librdkafka */
	uint64_t end;          /* the partition's end when last reached; if above `next`, there is no message in between */
	uint64_t at_assign;    /* the partition's end when it was assigned; 0: not known */
	uint64_t met_end;      /* the end that was met last, + 1; 0: none */
	char *words;           /* if broken: why */
	/* Messages that came while it was paused, in order. */
	rd_kafka_message_t **aside;
	size_t aside_first, aside_count;
	uint64_t aside_bytes;
};

struct weir_consumer {
	struct bus_kafka *bus; /* borrowed */
	enum weir_topic topic;
	rd_kafka_t *handle;
	rd_kafka_topic_t *reads;
	rd_kafka_queue_t *queue;
	struct bus_kafka_bell bell; /* written by librdkafka when the queue is no longer empty */
	uint32_t partitions;
	struct assigned *assigned;               /* by partition */
	uint64_t found;                          /* bus->found, as last seen */
	bool met_end;                            /* this receive reached an end after offsets without a message */
	uint32_t aside_partitions;               /* how many have messages set aside */
	uint32_t broken_partitions;              /* how many are broken */
	rd_kafka_message_t *held[HELD_MESSAGES]; /* returned, and lent until the next receive */
	size_t held_count;
	uint64_t held_bytes;
};

static const struct weir_kafka_property properties[] = {
	{"enable.auto.commit", "false", false},
	{"enable.auto.offset.store", "false", false},
	{"auto.offset.reset", "error", false},
	{"isolation.level", "read_uncommitted", false},
	{"enable.partition.eof", "true", false}, /* reported only after a fetch that returned nothing: rare */
	{"allow.auto.create.topics", "false", false},
	/*
	 * Responses small enough for the allocator to reuse memory: larger ones would be mapped, and their pages cleared,
	 * each time anew. A single larger message is still received, up to the last of these limits.
	 */
	{"fetch.message.max.bytes", "1048576", false},
	{"fetch.max.bytes", "8388608", false},
	{"receive.message.max.bytes", "1000000000", false},
	{NULL, NULL, false},
};

enum weir_status weir_kafka_consumer_new(struct weir_bus *base, enum weir_topic topic, const char *reader,
                                         struct weir_consumer **consumer, struct weir_error *error)
{
	struct bus_kafka *bus = weir_bus_kafka_of(base);
	rd_kafka_t *handle;
	(void)reader; /* Kafka trims by time, whoever reads */
	enum weir_status status =
		weir_kafka_open(bus->kafka, RD_KAFKA_CONSUMER, weir_kafka_conf(bus->kafka, properties), &handle, error);
	if (status != WEIR_OK)
		return status;
	struct weir_consumer *made = weir_alloc(1, sizeof *made);
	made->bus = bus;
	made->topic = topic;
	made->handle = handle;
	made->partitions = weir_bus_kafka_partitions(bus, topic);
	made->assigned = weir_alloc(made->partitions, sizeof *made->assigned);
	made->reads = rd_kafka_topic_new(handle, bus->names[topic], NULL);
	made->queue = rd_kafka_queue_new(handle);
	weir_kafka_bell_init(&made->bell);
	weir_kafka_bell_hang(&made->bell, made->queue);
	made->found = atomic_load(&bus->found);
	*consumer = made;
	return WEIR_OK;
}

/* ---- one partition ---- */

static void stop_fetching(struct weir_consumer *consumer, uint32_t partition)
{
	struct assigned *at = &consumer->assigned[partition];
	if (at->fetching)
		rd_kafka_consume_stop(consumer->reads, (int32_t)partition);
	at->fetching = false;
}

/* Stops a partition, which returns nothing more until it is assigned again. */
static void break_off(struct weir_consumer *consumer, uint32_t partition, const struct weir_error *why)
{
	struct assigned *at = &consumer->assigned[partition];
	stop_fetching(consumer, partition);
	if (at->broken)
		return;
	at->broken = true;
	at->told = false;
	at->why = why->status;
	at->words = weir_copy(why->text, strlen(why->text));
	consumer->broken_partitions++;
}

/* The append time, by the clock of the partition's leader; 0 unless message.timestamp.type is LogAppendTime. */
static int64_t appended_ms(const rd_kafka_message_t *message)
{
	rd_kafka_timestamp_type_t type;
	int64_t at_ms = rd_kafka_message_timestamp(message, &type);
	return type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME ? at_ms : 0;
}

static struct weir_mark mark_of(const rd_kafka_message_t *message)
{
	struct weir_span payload = {.at = message->payload, .length = (uint32_t)message->len};
	return weir_mark_of(payload, (uint64_t)message->offset, appended_ms(message));
}

/* A message further on says nothing: the marked one has just been deleted. */
static bool is_another(const struct weir_mark *found, const struct weir_mark *mark)
{
	return found->offset == mark->offset && !weir_mark_equal(found, mark);
}

static void start_fetching(struct weir_consumer *consumer, uint32_t partition)
{
	struct assigned *at = &consumer->assigned[partition];
	struct weir_error words;
	uint64_t from = at->verifying && at->mark.offset < at->next ? at->mark.offset : at->next;
	at->fetching =
		rd_kafka_consume_start_queue(consumer->reads, (int32_t)partition, (int64_t)from, consumer->queue) == 0;
	if (at->fetching)
		return;
	(void)weir_fail(&words, WEIR_INVALID, "cannot read %s partition %u: %s", consumer->bus->names[consumer->topic],
	                partition, rd_kafka_err2str(rd_kafka_last_error()));
	break_off(consumer, partition, &words);
}

static void empty_aside(struct weir_consumer *consumer, struct assigned *at)
{
	if (at->aside == NULL)
		return;
	for (size_t i = at->aside_first; i < at->aside_count; i++)
		rd_kafka_message_destroy(at->aside[i]);
	free(at->aside);
	at->aside = NULL;
	at->aside_count = at->aside_first = 0;
	at->aside_bytes = 0;
	consumer->aside_partitions--;
}

/* Sets a message of a paused partition aside. Above the bounds fetching stops. */
static void put_aside(struct weir_consumer *consumer, uint32_t partition, rd_kafka_message_t *message)
{
	struct assigned *at = &consumer->assigned[partition];
	if (at->aside == NULL) {
		at->aside = weir_alloc(ASIDE_MESSAGES, sizeof(rd_kafka_message_t *));
		consumer->aside_partitions++;
	}
	at->aside[at->aside_count++] = message;
	at->aside_bytes += message->len + message->key_len;
	if (at->aside_count == ASIDE_MESSAGES || at->aside_bytes >= ASIDE_BYTES)
		stop_fetching(consumer, partition);
}

static void put_off(struct weir_consumer *consumer, uint32_t partition)
{
	struct assigned *at = &consumer->assigned[partition];
	stop_fetching(consumer, partition);
	empty_aside(consumer, at);
	consumer->broken_partitions -= at->broken;
	free(at->words);
	*at = (struct assigned){.suspect = at->suspect};
}

/* ---- assigning ---- */

static enum weir_status refuse_offset(const struct weir_consumer *consumer, uint32_t partition, uint64_t first,
                                      uint64_t next, uint64_t offset, struct weir_error *error)
{
	return weir_fail(error, WEIR_INVALID, "%s partition %u has offsets %llu to %llu, not %llu",
	                 consumer->bus->names[consumer->topic], partition, (unsigned long long)first,
	                 (unsigned long long)next, (unsigned long long)offset);
}

/* Fetches one message, from a partition that is not being read. @return whether it came in time */
static bool fetch_mark(struct weir_consumer *consumer, uint32_t partition, uint64_t offset, struct weir_mark *mark)
{
	int64_t end_ms = weir_monotonic_ms() + ASSIGN_ASK_MS;
	rd_kafka_queue_t *queue = rd_kafka_queue_new(consumer->handle);
	const struct bus_kafka_bell bell = {.own = -1, .lent = -1}; /* for once, naps will do */
	bool found = false;
	if (rd_kafka_consume_start_queue(consumer->reads, (int32_t)partition, (int64_t)offset, queue) == 0) {
		while (!found && weir_monotonic_ms() < end_ms) {
			rd_kafka_message_t *message = rd_kafka_consume_queue(queue, 0);
			if (message == NULL)
				weir_kafka_bell_wait(&bell, end_ms - weir_monotonic_ms());
			found = message != NULL && message->err == RD_KAFKA_RESP_ERR_NO_ERROR;
			if (found)
				*mark = mark_of(message);
			if (message != NULL)
				rd_kafka_message_destroy(message);
		}
		rd_kafka_consume_stop(consumer->reads, (int32_t)partition);
	}
	rd_kafka_queue_destroy(queue);
	return found;
}

enum weir_status weir_kafka_consumer_resume(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
                                            const struct weir_mark *mark, struct weir_error *error)
{
	const char *name = consumer->bus->names[consumer->topic];
	if (partition >= consumer->partitions)
		return weir_fail(error, WEIR_INVALID, "%s has no partition %u", name, partition);
	uint64_t first = 0, next = 0;
	struct assigned *at = &consumer->assigned[partition];
	bool known =
		weir_bus_kafka_extent(consumer->bus, consumer->topic, partition, ASSIGN_ASK_MS, &first, &next, NULL) == WEIR_OK;
	if (known && mark != NULL && (offset > next || (weir_mark_is_set(mark) && mark->offset >= next)))
		return weir_bus_ends_before(error, name, partition, next, offset);
	if (known && (offset < first || offset > next))
		return refuse_offset(consumer, partition, first, next, offset, error);
	put_off(consumer, partition);
	struct weir_mark found;
	if (at->suspect && known && weir_mark_is_set(mark) && mark->offset >= first &&
	    fetch_mark(consumer, partition, mark->offset, &found) && is_another(&found, mark))
		return weir_bus_has_another(error, name, partition, mark);
	*at = (struct assigned){.on = true, .suspect = at->suspect && mark != NULL, .next = offset, .at_assign = next};
	if (weir_mark_is_set(mark))
		at->mark = *mark;
	at->verifying = weir_mark_is_set(mark) && mark->offset >= first;
	start_fetching(consumer, partition);
	return WEIR_OK;
}

enum weir_status weir_kafka_consumer_assign(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
                                            struct weir_error *error)
{
	return weir_kafka_consumer_resume(consumer, partition, offset, NULL, error);
}

void weir_kafka_consumer_unassign(struct weir_consumer *consumer, uint32_t partition)
{
	if (partition < consumer->partitions && consumer->assigned[partition].on)
		put_off(consumer, partition);
}

void weir_kafka_consumer_pause(struct weir_consumer *consumer, uint32_t partition, bool paused)
{
	if (partition < consumer->partitions && consumer->assigned[partition].on)
		consumer->assigned[partition].paused = paused;
}

uint64_t weir_kafka_consumer_position(const struct weir_consumer *consumer, uint32_t partition)
{
	const struct assigned *at = partition < consumer->partitions ? &consumer->assigned[partition] : NULL;
	if (at == NULL || !at->on)
		return 0;
	if (at->aside != NULL)
		return (uint64_t)at->aside[at->aside_first]->offset;
	return at->end > at->next ? at->end : at->next;
}

uint64_t weir_kafka_consumer_waiting(const struct weir_consumer *consumer, uint32_t partition)
{
	int64_t first, met;
	if (partition >= consumer->partitions || !consumer->assigned[partition].on)
		return 0;
	uint64_t position = weir_kafka_consumer_position(consumer, partition),
			 end = consumer->assigned[partition].at_assign;
	if (rd_kafka_get_watermark_offsets(consumer->handle, consumer->bus->names[consumer->topic], (int32_t)partition,
	                                   &first, &met) == RD_KAFKA_RESP_ERR_NO_ERROR &&
	    met > (int64_t)end) /* negative before the first answer */
		end = (uint64_t)met;
	return end > position ? end - position : 0;
}

void weir_kafka_consumer_consumed(struct weir_consumer *consumer, uint32_t partition, uint64_t offset)
{
	(void)consumer, (void)partition, (void)offset; /* Kafka trims by time, and the store has the position */
}

/* ---- receiving ---- */

static void release_held(struct weir_consumer *consumer)
{
	for (size_t i = 0; i < consumer->held_count; i++)
		rd_kafka_message_destroy(consumer->held[i]);
	consumer->held_count = 0;
	consumer->held_bytes = 0;
}

void weir_kafka_consumer_wake(struct weir_consumer *consumer, int descriptor)
{
	consumer->bell.lent = descriptor;
	weir_kafka_bell_hang(&consumer->bell, consumer->queue);
}

void weir_kafka_consumer_free(struct weir_consumer *consumer)
{
	if (consumer == NULL)
		return;
	release_held(consumer);
	for (uint32_t partition = 0; partition < consumer->partitions; partition++)
		put_off(consumer, partition);
	weir_kafka_bell_leave(consumer->queue); /* the handle's end may take longer than this */
	rd_kafka_queue_destroy(consumer->queue);
	rd_kafka_topic_destroy(consumer->reads);
	weir_kafka_end(consumer->handle, BUS_KAFKA_END_MS);
	weir_kafka_bell_deinit(&consumer->bell);
	free(consumer->assigned);
	free(consumer);
}

static void hand_out(struct weir_consumer *consumer, rd_kafka_message_t *message, struct weir_message *out)
{
	consumer->held[consumer->held_count] = message;
	out[consumer->held_count++] = (struct weir_message){
		.topic = consumer->topic,
		.partition = (uint32_t)message->partition,
		.offset = (uint64_t)message->offset,
		.appended_ms = appended_ms(message),
		.key = {.at = message->key, .length = (uint32_t)message->key_len},
		.payload = {.at = message->payload, .length = (uint32_t)message->len},
	};
	consumer->held_bytes += message->len + message->key_len;
}

static bool has_room(const struct weir_consumer *consumer, size_t most)
{
	return consumer->held_count < most && consumer->held_count < HELD_MESSAGES && consumer->held_bytes < HELD_BYTES;
}

/* Returns messages that were set aside, of partitions no longer paused, before any newer ones. */
static void hand_out_aside(struct weir_consumer *consumer, struct weir_message *out, size_t most)
{
	for (uint32_t partition = 0; partition < consumer->partitions; partition++) {
		struct assigned *at = &consumer->assigned[partition];
		if (at->aside == NULL || at->paused)
			continue;
		while (at->aside_first < at->aside_count && has_room(consumer, most))
			hand_out(consumer, at->aside[at->aside_first++], out);
		if (at->aside_first < at->aside_count)
			return;
		empty_aside(consumer, at);
		if (!at->fetching && !at->broken)
			start_fetching(consumer, partition);
	}
}

/* Whether an error of librdkafka means that messages cannot be read, and would be skipped. */
static bool is_damage(rd_kafka_resp_err_t code)
{
	switch (code) {
	case RD_KAFKA_RESP_ERR__BAD_MSG:
	case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
	case RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED:
	case RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE:
	case RD_KAFKA_RESP_ERR__INVALID_TYPE:
	case RD_KAFKA_RESP_ERR_INVALID_MSG:
	case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
	case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE: return true;
	default: return false;
	}
}

/*
 * Handles an error from the queue. If a broker says that it does not have an offset, the ends are read once more: a
 * broker that has just become the leader may not have known its end yet.
 */
static enum weir_status take_error(struct weir_consumer *consumer, const rd_kafka_message_t *message,
                                   struct weir_error *error)
{
	const char *name = consumer->bus->names[consumer->topic];
	uint32_t partition = (uint32_t)message->partition;
	struct weir_error words;
	if (message->partition < 0 || partition >= consumer->partitions || !consumer->assigned[partition].on)
		return weir_fail(error, WEIR_IO, "%s: %s", name, rd_kafka_message_errstr(message));
	struct assigned *at = &consumer->assigned[partition];
	if (message->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET || message->err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE) {
		uint64_t first, next;
		enum weir_status status =
			weir_bus_kafka_extent(consumer->bus, consumer->topic, partition, BUS_KAFKA_ASK_MS, &first, &next, &words);
		if (status == WEIR_OK && (at->next < first || at->next > next)) {
			if (at->next > next && weir_mark_is_set(&at->mark))
				(void)weir_bus_ends_before(&words, name, partition, next, at->next);
			else
				(void)refuse_offset(consumer, partition, first, next, at->next, &words);
			break_off(consumer, partition, &words);
			return WEIR_AGAIN;
		}
		bool trimmed = status == WEIR_OK && at->verifying && at->mark.offset < first;
		at->verifying = at->verifying && !trimmed;
		if (at->fetching) { /* otherwise fetching starts again when there is room */
			stop_fetching(consumer, partition);
			start_fetching(consumer, partition);
		}
		if (trimmed) { /* what was read last was deleted since, and can be compared no more: nothing is wrong */
			at->mark = (struct weir_mark){0};
			at->suspect = false;
			return WEIR_OK;
		}
	} else if (is_damage(message->err)) {
		(void)weir_fail(&words, WEIR_INVALID, "%s partition %u is damaged at offset %llu: %s", name, partition,
		                (unsigned long long)at->next, rd_kafka_message_errstr(message));
		break_off(consumer, partition, &words);
		return WEIR_AGAIN;
	}
	atomic_store(&consumer->bus->suspect, true);
	return weir_fail(error, WEIR_IO, "%s partition %u: %s", name, partition, rd_kafka_message_errstr(message));
}

/* Stops a partition whose topic was made anew. Before it is read again, the topic is asked about the mark. */
static void find_anew(struct weir_consumer *consumer, uint32_t partition, const struct weir_error *why)
{
	break_off(consumer, partition, why);
	consumer->assigned[partition].suspect = true;
}

/* The end came before the message that was read last: either the topic was made anew, or its leader does not know yet. */
static void verify_end(struct weir_consumer *consumer, uint32_t partition)
{
	const char *name = consumer->bus->names[consumer->topic];
	uint64_t first, next, read = consumer->assigned[partition].next;
	struct weir_error why;
	if (weir_bus_kafka_extent(consumer->bus, consumer->topic, partition, BUS_KAFKA_ASK_MS, &first, &next, NULL) !=
	        WEIR_OK ||
	    read <= next) {
		atomic_store(&consumer->bus->suspect, true); /* it is verified again soon */
		return;
	}
	(void)weir_bus_ends_before(&why, name, partition, next, read);
	find_anew(consumer, partition, &why);
}

/* Notes a partition's end. It comes in order, so all messages before it were taken. */
static void take_end(struct weir_consumer *consumer, const rd_kafka_message_t *message)
{
	uint32_t partition = (uint32_t)message->partition;
	struct assigned *at = partition < consumer->partitions ? &consumer->assigned[partition] : NULL;
	if (at == NULL)
		return;
	at->met_end = (uint64_t)message->offset + 1;
	if (!at->fetching)
		return;
	if (at->verifying && (uint64_t)message->offset <= at->mark.offset) {
		verify_end(consumer, partition);
		return;
	}
	if ((uint64_t)message->offset <= at->next)
		return;
	at->end = (uint64_t)message->offset;
	consumer->met_end = true;
}

/* Compares the first message that was fetched with the mark. @return false: it is another topic's */
static bool verify(struct weir_consumer *consumer, uint32_t partition, const rd_kafka_message_t *message)
{
	struct assigned *at = &consumer->assigned[partition];
	struct weir_mark found = mark_of(message);
	struct weir_error why;
	if (found.offset < at->mark.offset)
		return true;
	at->verifying = at->suspect = false;
	if (!is_another(&found, &at->mark))
		return true;
	(void)weir_bus_has_another(&why, consumer->bus->names[consumer->topic], partition, &at->mark);
	find_anew(consumer, partition, &why);
	return false;
}

/* Takes one message from the queue: returns it, sets it aside, or drops it if it is outdated. */
static void take_message(struct weir_consumer *consumer, rd_kafka_message_t *message, struct weir_message *out)
{
	uint32_t partition = (uint32_t)message->partition;
	struct assigned *at = partition < consumer->partitions ? &consumer->assigned[partition] : NULL;
	bool wanted = at != NULL && at->fetching;
	if (wanted && at->verifying)
		wanted = verify(consumer, partition, message);
	if (!wanted || (uint64_t)message->offset < at->next) {
		rd_kafka_message_destroy(message);
		return;
	}
	if (at->met_end == (uint64_t)message->offset + 1 && !at->paused) /* it came after the end was met: it is new */
		weir_bus_kafka_note_append(consumer->bus, appended_ms(message));
	at->next = (uint64_t)message->offset + 1;
	at->mark = mark_of(message);
	if (at->paused)
		put_aside(consumer, partition, message);
	else
		hand_out(consumer, message, out);
}

/* After the brokers or a topic were lost and found: what was read last is fetched again, and compared. */
static void verify_all(struct weir_consumer *consumer)
{
	uint64_t found = atomic_load(&consumer->bus->found);
	if (found == consumer->found)
		return;
	consumer->found = found;
	for (uint32_t partition = 0; partition < consumer->partitions; partition++) {
		struct assigned *at = &consumer->assigned[partition];
		if (!at->on || at->broken || !weir_mark_is_set(&at->mark))
			continue;
		at->verifying = true;
		if (at->fetching) { /* otherwise fetching starts again when there is room */
			stop_fetching(consumer, partition);
			start_fetching(consumer, partition);
		}
	}
}

/* Reports a broken partition that was not reported yet, or (again) any. messages[0] gets its place. */
static enum weir_status report_broken(struct weir_consumer *consumer, bool again, struct weir_message *messages,
                                      struct weir_error *error)
{
	for (uint32_t partition = 0; partition < consumer->partitions; partition++) {
		struct assigned *at = &consumer->assigned[partition];
		if (!at->broken || at->paused || at->aside != NULL || (at->told && !again))
			continue;
		at->told = true;
		messages[0] = (struct weir_message){.topic = consumer->topic, .partition = partition, .offset = at->next};
		return weir_fail(error, at->why, "%s", at->words);
	}
	return WEIR_OK;
}

/* Takes what the queue has. @param end_ms  monotonic: until when the first message is waited for; 0: not at all */
static size_t take_batch(struct weir_consumer *consumer, int64_t end_ms, rd_kafka_message_t **batch, size_t most)
{
	for (;;) {
		weir_kafka_bell_clear(&consumer->bell);
		ssize_t count = rd_kafka_consume_batch_queue(consumer->queue, 0, batch, most);
		int64_t left_ms = count <= 0 && end_ms > 0 ? end_ms - weir_monotonic_ms() : 0;
		if (left_ms <= 0)
			return count > 0 ? (size_t)count : 0;
		weir_kafka_bell_wait(&consumer->bell, left_ms);
	}
}

/* Takes all messages of a batch. @return WEIR_OK; otherwise the status of the last error among them */
static enum weir_status take_all(struct weir_consumer *consumer, rd_kafka_message_t **batch, size_t count,
                                 struct weir_message *messages, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < count; i++) {
		if (batch[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
			take_message(consumer, batch[i], messages);
			continue;
		}
		if (batch[i]->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
			take_end(consumer, batch[i]);
		} else {
			enum weir_status told = take_error(consumer, batch[i], error);
			if (told != WEIR_OK)
				status = told;
		}
		rd_kafka_message_destroy(batch[i]);
	}
	return status;
}

enum weir_status weir_kafka_consumer_receive(struct weir_consumer *consumer, struct weir_message *messages, size_t most,
                                             int timeout_ms, size_t *count, struct weir_error *error)
{
	int64_t end_ms = timeout_ms > 0 ? weir_monotonic_ms() + timeout_ms : 0;
	enum weir_status status = WEIR_OK;
	*count = 0;
	consumer->met_end = false;
	release_held(consumer);
	if (most == 0)
		return WEIR_OK;
	verify_all(consumer);
	if (consumer->broken_partitions > 0 && (status = report_broken(consumer, false, messages, error)) != WEIR_OK)
		return status;
	if (consumer->aside_partitions > 0)
		hand_out_aside(consumer, messages, most);
	/* Without a timeout the queue is taken to its end, as it wakes nobody for what is left in it. */
	while (has_room(consumer, most) && status != WEIR_AGAIN && !(consumer->met_end && timeout_ms > 0)) {
		rd_kafka_message_t *batch[BATCH_MESSAGES];
		size_t room = (most < HELD_MESSAGES ? most : HELD_MESSAGES) - consumer->held_count;
		size_t some = take_batch(consumer, consumer->held_count == 0 ? end_ms : 0, batch,
		                         room < BATCH_MESSAGES ? room : BATCH_MESSAGES);
		if (some == 0)
			break;
		status = take_all(consumer, batch, some, messages, error);
	}
	*count = consumer->held_count;
	if (*count > 0)
		return WEIR_OK; /* a failure after them is reported by a later receive */
	if (consumer->broken_partitions > 0)
		return report_broken(consumer, true, messages, error);
	return status;
}
