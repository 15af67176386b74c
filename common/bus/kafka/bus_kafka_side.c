/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends to the topics that may be missed: dead letters, and decisions of zones in shadow mode.
 *
 * What such a topic does not take is dropped and counted, and reported among the deliveries: nothing that weir cannot do
 * without waits for it, or is sent again because of it. So these topics have a handle of their own, without the gapless
 * guarantee, which would end the whole producer at the first refusal.
 *
 * A topic that has refused a message gets no more, until it takes one: the newest that was dropped is sent again, every
 * few seconds. So a topic that nobody can write costs a request each few seconds, and is known to work again before the
 * next message comes.
 *
 * A topic may take less than is sent at once, as far as its max.message.bytes is known. What is larger is dropped by
 * itself, or cut, if it is a dead letter. Kafka counts what is sent together as one message: so no more is under way there
 * than it takes, and the rest waits.
 */
#include "common/bus/kafka/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/wake.h"

#include <stdlib.h>
#include <string.h>

enum {
	DROPS_MAX = 256,
	HELD_MAX_BYTES = 4 * 1024 * 1024, /* sent and not polled; a larger message is sent on its own */
	RETRY_MS = 5000,
	WAITING_MAX = 1024,
	TOGETHER_MOST_BYTES = 1 << 20, /* librdkafka sends no more than this together (batch.size) */
	BATCH_HEAD_BYTES = 72,         /* of max.message.bytes: what Kafka adds to messages that are sent together, */
	RECORD_HEAD_BYTES = 24,        /* and to each of them; a little more than it is */
};

enum trial {
	TRIAL_NONE,  /* the topic takes what is sent, as far as this producer knows */
	TRIAL_WAITS, /* `payload` is sent again once it is time */
	TRIAL_SENT,  /* and was; nothing else is under way there */
};

/* A message that is sent when there is room for it. */
struct waiting {
	uint32_t partition;
	bool has_key;
	uint32_t key_bytes;
	uint64_t tag;
	struct weir_text bytes; /* the key, and the payload behind it */
};

struct side_topic {
	rd_kafka_topic_t *handle; /* created at the first message */
	uint64_t in_flight;       /* sent and not reported, but for the trial */
	uint64_t together_bytes;  /* of these */
	struct waiting *waiting;  /* ring of WAITING_MAX; NULL: nothing has ever waited */
	size_t waiting_first, waiting_count;
	enum trial trial;
	int64_t retry_ms; /* monotonic: when it is sent */
	uint32_t partition;
	struct weir_text key, payload; /* the newest message that was dropped */
	bool has_key;
	struct weir_notice too_large, too_many; /* of messages that are dropped */
};

struct bus_kafka_side {
	struct bus_kafka *bus;             /* borrowed */
	const struct bus_kafka_bell *bell; /* borrowed; written by librdkafka when the queue is no longer empty */
	rd_kafka_t *handle;                /* NULL until the first message, and after it broke */
	rd_kafka_queue_t *queue;
	rd_kafka_event_t *reports; /* delivery reports being taken, or NULL */
	struct weir_notice lost;   /* the handle */
	uint64_t held_bytes;
	bool broken; /* it takes nothing more, and ends once everything is reported */
	struct side_topic topics[WEIR_TOPIC_COUNT];
	struct weir_delivery drops[DROPS_MAX]; /* dropped and not polled */
	size_t drop_count;
	struct weir_text cut; /* the last dead letter that was too large */
};

struct bus_kafka_side *weir_kafka_side_new(struct bus_kafka *bus, const struct bus_kafka_bell *bell)
{
	struct bus_kafka_side *side = weir_alloc(1, sizeof *side);
	side->bus = bus;
	side->bell = bell;
	return side;
}

static void purge(struct bus_kafka_side *side)
{
	rd_kafka_purge(side->handle, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

/* What has no handle is dropped and counted. */
static void tell_lost(struct bus_kafka_side *side, const char *words)
{
	weir_notice_log(
		&side->lost, side->bus->log, WEIR_LOG_WARNING, "bus",
		"dead letters and shadow decisions are dropped and counted (weir_topic_dropped_messages_total) until "
		"there is another connection for them: %s (runbook: broker-away)",
		words);
}

static void close_handle(struct bus_kafka_side *side)
{
	if (side->handle == NULL)
		return;
	if (side->reports != NULL)
		rd_kafka_event_destroy(side->reports);
	side->reports = NULL;
	purge(side);
	weir_kafka_bell_leave(side->queue); /* the handle's end may take longer than this */
	rd_kafka_queue_destroy(side->queue);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		if (side->topics[topic].handle != NULL)
			rd_kafka_topic_destroy(side->topics[topic].handle);
		side->topics[topic].handle = NULL;
	}
	weir_kafka_end(side->handle, BUS_KAFKA_END_MS);
	side->handle = NULL;
	side->broken = false;
}

void weir_kafka_side_free(struct bus_kafka_side *side)
{
	close_handle(side);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		weir_text_deinit(&side->topics[topic].key);
		weir_text_deinit(&side->topics[topic].payload);
		for (size_t i = 0; side->topics[topic].waiting != NULL && i < WAITING_MAX; i++)
			weir_text_deinit(&side->topics[topic].waiting[i].bytes);
		free(side->topics[topic].waiting);
	}
	weir_text_deinit(&side->cut);
	free(side);
}

static bool open_handle(struct bus_kafka_side *side)
{
	if (side->handle != NULL)
		return true;
	char words[WEIR_ERROR_TEXT_BYTES / 2];
	struct weir_error error;
	rd_kafka_conf_t *conf = weir_kafka_conf(side->bus->kafka, weir_kafka_producer_properties);
	(void)rd_kafka_conf_set(conf, "enable.gapless.guarantee", "false", words, sizeof words);
	rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
	if (weir_kafka_open(side->bus->kafka, RD_KAFKA_PRODUCER, conf, &side->handle, &error) != WEIR_OK) {
		/* As the producer beside it was opened, there are too few threads or descriptors. */
		tell_lost(side, error.text);
		return false;
	}
	side->queue = rd_kafka_queue_get_main(side->handle);
	weir_kafka_bell_hang(side->bell, side->queue);
	return true;
}

void weir_kafka_side_wake(struct bus_kafka_side *side)
{
	if (side->handle != NULL)
		weir_kafka_bell_hang(side->bell, side->queue);
}

/* ---- what is dropped ---- */

static bool is_of_no_topic(rd_kafka_resp_err_t code)
{
	return code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
	       code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

/* Whether it is about the handle, or about a topic that is gone: the watch tells of those. */
static bool is_no_refusal(rd_kafka_resp_err_t code)
{
	return is_of_no_topic(code) || code == RD_KAFKA_RESP_ERR__FATAL || code == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
	       code == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT || code == RD_KAFKA_RESP_ERR__DESTROY;
}

static bool is_missed(const struct bus_kafka *bus, enum weir_topic topic)
{
	return atomic_load(&bus->gone[topic]) || atomic_load(&bus->denied[topic]);
}

static bool is_refused(const struct bus_kafka *bus, enum weir_topic topic)
{
	return atomic_load(&bus->refused[topic]) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Keeps a message for the next trial. */
static void keep(struct side_topic *at, uint32_t partition, struct weir_span key, struct weir_span payload)
{
	weir_text_clear(&at->key);
	weir_text_clear(&at->payload);
	weir_text_append(&at->payload, payload.at, payload.length);
	at->has_key = key.at != NULL;
	if (at->has_key)
		weir_text_append(&at->key, key.at, key.length);
	at->partition = partition;
	if (at->trial == TRIAL_NONE) {
		at->trial = TRIAL_WAITS;
		at->retry_ms = weir_monotonic_ms();
	}
}

static void refuse(struct bus_kafka_side *side, enum weir_topic topic, rd_kafka_resp_err_t code)
{
	if (code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
		atomic_store(&side->bus->settings_suspect, true);
	atomic_store(&side->bus->refused[topic], (int)code);
	side->topics[topic].retry_ms = weir_monotonic_ms() + RETRY_MS;
}

/* Takes a message only to report it. */
static enum weir_status drop(struct bus_kafka_side *side, enum weir_topic topic, uint32_t partition, uint64_t tag)
{
	side->drops[side->drop_count++] =
		(struct weir_delivery){.topic = topic, .partition = partition, .tag = tag, .status = WEIR_OK};
	atomic_fetch_add(&side->bus->dropped[topic], 1);
	weir_wake_up(side->bell->lent >= 0 ? side->bell->lent : side->bell->own);
	return WEIR_OK;
}

/* Drops a message that is larger than its topic takes. @param bytes  its key and payload */
static enum weir_status drop_too_large(struct bus_kafka_side *side, enum weir_topic topic, uint32_t partition,
                                       uint64_t tag, uint64_t bytes)
{
	weir_notice_log(
		&side->topics[topic].too_large, side->bus->log, WEIR_LOG_WARNING, "bus",
		"a message of %llu bytes is larger than topic %s takes (max.message.bytes %lld), and was dropped and "
		"counted (weir_topic_dropped_messages_total). Raise max.message.bytes of that topic; `weir doctor` says "
		"how (runbook: retention)",
		(unsigned long long)bytes, side->bus->names[topic], (long long)atomic_load(&side->bus->message_bytes[topic]));
	return drop(side, topic, partition, tag);
}

/* Drops a message as too many wait for their topic already. */
static enum weir_status drop_unwaited(struct bus_kafka_side *side, enum weir_topic topic, uint32_t partition,
                                      uint64_t tag)
{
	weir_notice_log(
		&side->topics[topic].too_many, side->bus->log, WEIR_LOG_WARNING, "bus",
		"%d messages wait for topic %s already: another was dropped and counted "
		"(weir_topic_dropped_messages_total), as the topic takes few at once (max.message.bytes %lld). Raise "
		"max.message.bytes of that topic; `weir doctor` says how (runbook: retention)",
		WAITING_MAX, side->bus->names[topic], (long long)atomic_load(&side->bus->message_bytes[topic]));
	return drop(side, topic, partition, tag);
}

/* @return how many there were, `most` at most */
static size_t take_drops(struct bus_kafka_side *side, struct weir_delivery *deliveries, size_t most)
{
	size_t count = side->drop_count < most ? side->drop_count : most;
	memcpy(deliveries, side->drops, count * sizeof *deliveries);
	side->drop_count -= count;
	memmove(side->drops, side->drops + count, side->drop_count * sizeof *side->drops);
	return count;
}

/* The handle takes nothing more. What it has is reported as purged, and so dropped. */
static void break_off(struct bus_kafka_side *side)
{
	if (side->broken)
		return;
	side->broken = true;
	char words[WEIR_ERROR_TEXT_BYTES / 2] = "its broker refuses it for good";
	rd_kafka_fatal_error(side->handle, words, sizeof words);
	tell_lost(side, words);
	purge(side);
}

/* ---- what fits ---- */

/* What a message takes of what is sent together. */
static uint64_t bytes_of(struct weir_span key, struct weir_span payload)
{
	return (uint64_t)(key.at != NULL ? key.length : 0) + payload.length + RECORD_HEAD_BYTES;
}

/* How many such bytes a topic takes together; UINT64_MAX: more than is ever sent so. */
static uint64_t room_of(const struct bus_kafka_side *side, enum weir_topic topic)
{
	int64_t most = atomic_load(&side->bus->message_bytes[topic]);
	if (most <= 0 || most > TOGETHER_MOST_BYTES)
		return UINT64_MAX;
	return most > BATCH_HEAD_BYTES ? (uint64_t)most - BATCH_HEAD_BYTES : 0;
}

/* The payload as it fits, if it can be made to: valid until the next. */
static struct weir_span fit(struct bus_kafka_side *side, enum weir_topic topic, struct weir_span key,
                            struct weir_span payload)
{
	uint64_t bytes = bytes_of(key, payload), room = room_of(side, topic);
	if (topic != WEIR_TOPIC_DEADLETTER || bytes <= room || bytes - room >= payload.length)
		return payload;
	bool good = weir_kafka_letter_cut(payload, (size_t)(payload.length - (bytes - room)), &side->cut);
	return good ? weir_text_span(&side->cut) : payload;
}

/* Keeps a message until there is room for it. @return false: too many wait */
static bool wait_for_room(struct side_topic *at, uint32_t partition, struct weir_span key, struct weir_span payload,
                          uint64_t tag)
{
	if (at->waiting_count == WAITING_MAX)
		return false;
	if (at->waiting == NULL)
		at->waiting = weir_alloc(WAITING_MAX, sizeof *at->waiting);
	struct waiting *last = &at->waiting[(at->waiting_first + at->waiting_count++) % WAITING_MAX];
	last->partition = partition;
	last->has_key = key.at != NULL;
	last->key_bytes = key.at != NULL ? key.length : 0;
	last->tag = tag;
	weir_text_clear(&last->bytes);
	if (last->key_bytes > 0)
		weir_text_append(&last->bytes, key.at, key.length);
	weir_text_append(&last->bytes, payload.at, payload.length);
	return true;
}

/* ---- sending ---- */

static rd_kafka_resp_err_t produce(struct bus_kafka_side *side, enum weir_topic topic, uint32_t partition,
                                   struct weir_span key, struct weir_span payload, uint64_t tag)
{
	struct side_topic *at = &side->topics[topic];
	if (side->broken || !open_handle(side))
		return RD_KAFKA_RESP_ERR__FATAL;
	if (at->handle == NULL) {
		rd_kafka_topic_conf_t *conf = rd_kafka_default_topic_conf_dup(side->handle);
		rd_kafka_topic_conf_set_opaque(conf, (void *)(uintptr_t)topic);
		at->handle = rd_kafka_topic_new(side->handle, side->bus->names[topic], conf);
	}
	uint32_t key_bytes = key.at != NULL ? key.length : 0;
	/* librdkafka copies the payload; its parameter is not const, as it can also take ownership. */
	if (at->handle == NULL ||
	    rd_kafka_produce(at->handle, (int32_t)partition, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)payload.at,
	                     payload.length, key.at, key_bytes, (void *)(uintptr_t)tag) != 0) {
		rd_kafka_resp_err_t code = rd_kafka_last_error();
		if (code == RD_KAFKA_RESP_ERR__FATAL)
			break_off(side);
		return code;
	}
	side->held_bytes += (uint64_t)key_bytes + payload.length + BUS_KAFKA_MESSAGE_COST_BYTES;
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Sends the newest message that was dropped once more, where it is time. */
static void try_again(struct bus_kafka_side *side, enum weir_topic topic)
{
	struct side_topic *at = &side->topics[topic];
	if (at->trial != TRIAL_WAITS)
		return;
	if (!is_refused(side->bus, topic)) { /* another producer of this process has found out */
		at->trial = TRIAL_NONE;
		return;
	}
	if (at->in_flight > 0 || is_missed(side->bus, topic) || weir_monotonic_ms() < at->retry_ms)
		return;
	struct weir_span key = {.at = at->has_key ? at->key.at : NULL, .length = (uint32_t)at->key.length};
	struct weir_span payload = fit(side, topic, key, weir_text_span(&at->payload));
	bool of_size = atomic_load(&side->bus->refused[topic]) == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
	if (of_size &&
	    bytes_of(key, payload) > room_of(side, topic)) { /* that is known: it does not stop what is smaller */
		at->trial = TRIAL_NONE;
		atomic_store(&side->bus->refused[topic], RD_KAFKA_RESP_ERR_NO_ERROR);
		return;
	}
	rd_kafka_resp_err_t code = produce(side, topic, at->partition, key, payload, 0);
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
		at->trial = TRIAL_SENT;
	else
		at->retry_ms = weir_monotonic_ms() + RETRY_MS;
}

/*
 * Sends what fits beside what is under way.
 *
 * @return WEIR_OK: it was sent, or dropped; WEIR_FULL: too much is under way; WEIR_AGAIN: so it is for this topic
 */
static enum weir_status send_one(struct bus_kafka_side *side, enum weir_topic topic, uint32_t partition,
                                 struct weir_span key, struct weir_span payload, uint64_t tag)
{
	struct side_topic *at = &side->topics[topic];
	if (is_missed(side->bus, topic))
		return drop(side, topic, partition, tag);
	if (at->trial == TRIAL_SENT || is_refused(side->bus, topic)) {
		keep(at, partition, key, payload);
		return drop(side, topic, partition, tag);
	}
	payload = fit(side, topic, key, payload);
	uint64_t bytes = bytes_of(key, payload), room = room_of(side, topic);
	if (bytes > room)
		return drop_too_large(side, topic, partition, tag, bytes - RECORD_HEAD_BYTES);
	if (at->together_bytes > room - bytes)
		return WEIR_AGAIN;
	if (side->held_bytes > 0 && side->held_bytes + bytes + BUS_KAFKA_MESSAGE_COST_BYTES > HELD_MAX_BYTES)
		return WEIR_FULL;
	rd_kafka_resp_err_t code = produce(side, topic, partition, key, payload, tag);
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
		at->in_flight++;
		at->together_bytes += bytes;
		return WEIR_OK;
	}
	if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL)
		return WEIR_FULL;
	if (!is_no_refusal(code)) {
		keep(at, partition, key, payload);
		refuse(side, topic, code);
	}
	return drop(side, topic, partition, tag);
}

/* Sends what waits, as far as there is room. */
static void send_waiting(struct bus_kafka_side *side, enum weir_topic topic)
{
	struct side_topic *at = &side->topics[topic];
	while (at->waiting_count > 0 && side->drop_count < DROPS_MAX) {
		struct waiting *first = &at->waiting[at->waiting_first];
		struct weir_span key = {.at = first->has_key ? first->bytes.at : NULL, .length = first->key_bytes};
		struct weir_span payload = {.at = first->bytes.at + first->key_bytes,
		                            .length = (uint32_t)first->bytes.length - first->key_bytes};
		if (send_one(side, topic, first->partition, key, payload, first->tag) != WEIR_OK)
			return;
		at->waiting_first = (at->waiting_first + 1) % WAITING_MAX;
		at->waiting_count--;
	}
}

static void try_all(struct bus_kafka_side *side)
{
	bool reported = true;
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		try_again(side, (enum weir_topic)topic);
		send_waiting(side, (enum weir_topic)topic);
		reported &= side->topics[topic].in_flight == 0 && side->topics[topic].trial != TRIAL_SENT;
	}
	if (side->broken && reported)
		close_handle(side);
}

enum weir_status weir_kafka_side_send(struct bus_kafka_side *side, enum weir_topic topic, uint32_t partition,
                                      struct weir_span key, struct weir_span payload, uint64_t tag,
                                      struct weir_error *error)
{
	struct side_topic *at = &side->topics[topic];
	if (side->drop_count < DROPS_MAX)
		try_all(side);
	if (side->drop_count == DROPS_MAX)
		return weir_fail(error, WEIR_FULL, "%d dropped messages are not reported yet", DROPS_MAX);
	enum weir_status status = at->waiting_count > 0 ? WEIR_AGAIN : send_one(side, topic, partition, key, payload, tag);
	if (status == WEIR_AGAIN)
		return wait_for_room(at, partition, key, payload, tag) ? WEIR_OK : drop_unwaited(side, topic, partition, tag);
	if (status == WEIR_FULL)
		return weir_fail(error, WEIR_FULL, "the send buffer is full: %llu bytes are not delivered yet",
		                 (unsigned long long)side->held_bytes);
	return status;
}

/* ---- reports ---- */

/* The next delivery report; NULL: there is none now. */
static const rd_kafka_message_t *next_report(struct bus_kafka_side *side)
{
	while (side->handle != NULL) {
		if (side->reports != NULL) {
			const rd_kafka_message_t *report = rd_kafka_event_message_next(side->reports);
			if (report != NULL)
				return report;
			rd_kafka_event_destroy(side->reports);
			side->reports = NULL;
		}
		rd_kafka_event_t *event = rd_kafka_queue_poll(side->queue, 0);
		if (event == NULL)
			return NULL;
		if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR) {
			side->reports = event;
			continue;
		}
		if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR && rd_kafka_event_error_is_fatal(event))
			break_off(side);
		rd_kafka_event_destroy(event);
	}
	return NULL;
}

/* What became of the trial. */
static void settle_trial(struct bus_kafka_side *side, enum weir_topic topic, rd_kafka_resp_err_t code)
{
	struct side_topic *at = &side->topics[topic];
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
		at->trial = TRIAL_NONE;
		atomic_store(&side->bus->refused[topic], RD_KAFKA_RESP_ERR_NO_ERROR);
		return;
	}
	at->trial = TRIAL_WAITS;
	if (is_no_refusal(code))
		at->retry_ms = weir_monotonic_ms() + RETRY_MS;
	else
		refuse(side, topic, code);
}

/* @return whether it is to be reported: a trial's message was, when it was dropped */
static bool take_report(struct bus_kafka_side *side, const rd_kafka_message_t *report, struct weir_delivery *delivery)
{
	enum weir_topic topic = (enum weir_topic)(uintptr_t)rd_kafka_topic_opaque(report->rkt);
	struct side_topic *at = &side->topics[topic];
	side->held_bytes -= report->len + report->key_len + BUS_KAFKA_MESSAGE_COST_BYTES;
	if (at->trial == TRIAL_SENT && at->in_flight == 0) {
		settle_trial(side, topic, report->err);
		return false;
	}
	struct weir_span key = {.at = report->key, .length = (uint32_t)report->key_len};
	at->in_flight--;
	at->together_bytes -= bytes_of(key, (struct weir_span){.at = report->payload, .length = (uint32_t)report->len});
	bool taken = report->err == RD_KAFKA_RESP_ERR_NO_ERROR;
	if (!taken)
		atomic_fetch_add(&side->bus->dropped[topic], 1);
	if (!taken && !is_no_refusal(report->err)) {
		keep(at, (uint32_t)report->partition, key, (struct weir_span){report->payload, (uint32_t)report->len});
		refuse(side, topic, report->err);
	}
	*delivery = (struct weir_delivery){
		.topic = topic,
		.partition = (uint32_t)report->partition,
		.offset = taken && report->offset >= 0 ? (uint64_t)report->offset : 0,
		.tag = (uint64_t)(uintptr_t)report->_private,
		.status = WEIR_OK,
	};
	return true;
}

size_t weir_kafka_side_poll(struct bus_kafka_side *side, struct weir_delivery *deliveries, size_t most)
{
	const rd_kafka_message_t *report;
	try_all(side);
	size_t count = take_drops(side, deliveries, most);
	while (count < most && (report = next_report(side)) != NULL)
		count += take_report(side, report, &deliveries[count]);
	if (side->drop_count < DROPS_MAX)
		try_all(side); /* reports have made room */
	return count;
}
