/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bus over Kafka, which connects the roles of a cluster.
 *
 * Each producer and each consumer is a handle of librdkafka, with connections and
 * threads of its own, and belongs to one thread of ours. One more handle, which any
 * thread may use, is for queries (extents, settings, whether brokers answer). It is
 * a consumer that consumes nothing, because a producer's query for a topic would
 * create that topic, with the brokers' settings.
 */
#include "common/bus/kafka/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/deadline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	TRY_MS = 1000, /* how long the first attempt waits for an answer; each later one waits longer */
	NAP_MS = 50,
	PAUSE_MS = 250,    /* before another attempt, if a person has to do something */
	SETTLE_MS = 30000, /* how long to wait for topics that are being created, even if wait_ms is shorter */
};

/*
 * Asks for one end of a partition, by the call for offsets of times, with the special times for the first and the next
 * offset: in some versions, the call meant for the ends of partitions waits for ever once its broker is gone.
 */
static rd_kafka_resp_err_t ask_end(struct bus_kafka *bus, const char *name, uint32_t partition, int64_t which,
                                   int timeout_ms, uint64_t *offset)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_t *one = rd_kafka_topic_partition_list_add(list, name, (int32_t)partition);
	one->offset = which;
	rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(bus->control, list, timeout_ms);
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
		code = list->elems[0].err;
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR && list->elems[0].offset < 0)
		code = RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE;
	*offset = (uint64_t)list->elems[0].offset;
	rd_kafka_topic_partition_list_destroy(list);
	return code;
}

/* Whether the brokers only need a moment, as a partition was just created or moved. */
static bool is_passing(rd_kafka_resp_err_t code)
{
	switch (code) {
	case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
	case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
	case RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH:
	case RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH:
	case RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR__TRANSPORT:
	case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION: return true;
	default: return false;
	}
}

enum weir_status weir_bus_kafka_extent(struct bus_kafka *bus, enum weir_topic topic, uint32_t partition, int timeout_ms,
                                       uint64_t *first, uint64_t *next, struct weir_error *error)
{
	const char *name = bus->names[topic];
	int64_t end_ms = weir_monotonic_ms() + timeout_ms, left_ms = timeout_ms;
	rd_kafka_resp_err_t code;
	uint64_t low = 0, high = 0;
	if (partition >= weir_bus_kafka_partitions(bus, topic))
		return weir_fail(error, WEIR_INVALID, "%s has no partition %u", name, partition);
	for (;;) {
		code = ask_end(bus, name, partition, RD_KAFKA_OFFSET_BEGINNING, (int)left_ms, &low);
		if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
			code = ask_end(bus, name, partition, RD_KAFKA_OFFSET_END, (int)left_ms, &high);
		left_ms = end_ms - weir_monotonic_ms();
		if (!is_passing(code) || left_ms <= NAP_MS)
			break;
		nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
	}
	if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
		return weir_fail(error, WEIR_IO, "cannot read the offsets of %s partition %u: %s", name, partition,
		                 rd_kafka_err2str(code));
	*first = low;
	*next = high;
	return WEIR_OK;
}

enum weir_status weir_bus_kafka_offset_at(struct weir_bus *bus, enum weir_topic topic, uint32_t partition,
                                          int64_t time_ms, uint64_t *offset, struct weir_error *error)
{
	struct bus_kafka *kafka = weir_bus_kafka_of(bus);
	/* Below 0 it would be one of the words for the ends. */
	rd_kafka_resp_err_t code =
		ask_end(kafka, kafka->names[topic], partition, time_ms > 0 ? time_ms : 0, BUS_KAFKA_ASK_MS, offset);
	if (code == RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE)
		return WEIR_END;
	return code == RD_KAFKA_RESP_ERR_NO_ERROR
	           ? WEIR_OK
	           : weir_fail(error, WEIR_IO, "cannot read the offsets of %s partition %u: %s", kafka->names[topic],
	                       partition, rd_kafka_err2str(code));
}

static enum weir_status extent(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t *first,
                               uint64_t *next, struct weir_error *error)
{
	return weir_bus_kafka_extent(weir_bus_kafka_of(bus), topic, partition, BUS_KAFKA_ASK_MS, first, next, error);
}

static void bus_close(struct weir_bus *base)
{
	if (base == NULL)
		return;
	struct bus_kafka *bus = weir_bus_kafka_of(base);
	weir_bus_kafka_watch_stop(bus);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		if (bus->topics[topic] != NULL)
			rd_kafka_topic_destroy(bus->topics[topic]);
	weir_kafka_end(bus->control, BUS_KAFKA_END_MS);
	weir_kafka_free(bus->kafka);
	pthread_mutex_destroy(&bus->lock);
	pthread_cond_destroy(&bus->wake);
	free(bus);
}

static const struct weir_bus_ops operations = {
	.name = "kafka",
	.advice = "Look at that topic and its brokers (runbook: broker-away)",
	.producer_new = weir_kafka_producer_new,
	.send = weir_kafka_producer_send,
	.poll = weir_kafka_producer_poll,
	.wake_producer = weir_kafka_producer_wake,
	.producer_free = weir_kafka_producer_free,
	.consumer_new = weir_kafka_consumer_new,
	.assign = weir_kafka_consumer_assign,
	.resume = weir_kafka_consumer_resume,
	.unassign = weir_kafka_consumer_unassign,
	.pause = weir_kafka_consumer_pause,
	.receive = weir_kafka_consumer_receive,
	.position = weir_kafka_consumer_position,
	.waiting = weir_kafka_consumer_waiting,
	.consumed = weir_kafka_consumer_consumed,
	.wake_consumer = weir_kafka_consumer_wake,
	.consumer_free = weir_kafka_consumer_free,
	.extent = extent,
	.problem = weir_bus_kafka_problem,
	.close = bus_close,
};

static enum weir_status open_control(struct bus_kafka *bus, const bool *needed, struct weir_error *error)
{
	static const struct weir_kafka_property properties[] = {
		{"allow.auto.create.topics", "false", false},
		{"isolation.level", "read_uncommitted", false},
		{NULL, NULL, false},
	};
	enum weir_status status =
		weir_kafka_open(bus->kafka, RD_KAFKA_CONSUMER, weir_kafka_conf(bus->kafka, properties), &bus->control, error);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT && status == WEIR_OK; topic++) {
		if (needed != NULL && !needed[topic])
			continue;
		bus->topics[topic] = rd_kafka_topic_new(bus->control, bus->names[topic], NULL);
		assert(bus->topics[topic] != NULL);
	}
	return status;
}

/* One attempt to get all topics ready. */
static enum weir_status prepare(struct bus_kafka *bus, int timeout_ms, struct weir_error *error)
{
	enum weir_status status = weir_bus_kafka_make_topics(bus, timeout_ms, error);
	if (status == WEIR_OK)
		status = weir_bus_kafka_check_topics(bus, timeout_ms, error);
	return status;
}

/*
 * Only the first words, as those of brokers that are starting change from one attempt to the next. But words of what somebody must
 * mend take the place of those of a broker that was not there yet.
 */
static void tell_waiting(const struct bus_kafka *bus, struct weir_fault *fault, const struct weir_error *error)
{
	char ignored[WEIR_KAFKA_COMPLAINT_BYTES];
	const struct weir_kafka_cause *cause;
	bool complains = weir_kafka_complaint(bus->kafka, ignored, sizeof ignored, &cause);
	if (!complains && weir_kafka_cause(error->text)->stays) {
		complains = true;
		cause = weir_kafka_cause(error->text);
	}
	enum weir_log_level level = complains && cause->stays ? WEIR_LOG_ERROR : WEIR_LOG_WARNING;
	if (fault->on && level <= fault->level) {
		fault->times++;
		weir_fault_remind(fault, bus->log, "bus");
		return;
	}
	weir_fault_raise_at(fault, bus->log, level, "bus",
	                    "%s. This process reads and publishes nothing until then, and nothing is lost. Retrying. %s",
	                    error->text,
	                    complains ? cause->remedy : "Look at the brokers and their topics (runbook: broker-away)");
}

/* Tries until the topics are ready, for wait_ms at most. */
static enum weir_status wait_for_topics(struct bus_kafka *bus, int64_t wait_ms, const _Atomic bool *stop,
                                        struct weir_error *error)
{
	int64_t start_ms = weir_monotonic_ms();
	struct weir_fault fault = {0};
	struct weir_error words;
	for (int tries = 1;; tries++) {
		int timeout_ms = tries * TRY_MS < BUS_KAFKA_ASK_MS ? tries * TRY_MS : BUS_KAFKA_ASK_MS;
		enum weir_status status = prepare(bus, timeout_ms, &words);
		weir_bus_kafka_note_problem(bus, status == WEIR_OK ? "" : words.text);
		if (status == WEIR_OK) {
			weir_fault_over(&fault, bus->log, "bus", "%s answers, and has the topics", bus->config->bus.brokers);
			return WEIR_OK;
		}
		bool settles = status == WEIR_AGAIN && bus->absent != BUS_KAFKA_LOOK;
		int64_t patience_ms = settles && wait_ms < SETTLE_MS ? SETTLE_MS : wait_ms;
		bool final = status == WEIR_INVALID || status == WEIR_END;
		if (final || (stop != NULL && *stop) || weir_monotonic_ms() - start_ms >= patience_ms)
			return weir_fail(error, final ? status : WEIR_IO, "%s", words.text);
		if (status == WEIR_IO)
			tell_waiting(bus, &fault, &words);
		nanosleep(&(struct timespec){.tv_nsec = (status == WEIR_IO ? PAUSE_MS : NAP_MS) * 1000000L}, NULL);
	}
}

/* @param needed  by topic; NULL: all @param looks  of BUS_KAFKA_LOOK */
static enum weir_status open_bus(const struct weir_config *config, const char *client, enum bus_kafka_absent absent,
                                 const bool *needed, int64_t wait_ms, const _Atomic bool *stop,
                                 const struct weir_log *log, struct weir_bus_kafka_look *looks,
                                 _Atomic(struct weir_bus *) *early, struct bus_kafka **bus, struct weir_error *error)
{
	struct weir_kafka *kafka;
	enum weir_status status = weir_bus_kafka_properties(config, client, log, &kafka, error);
	if (status != WEIR_OK)
		return status;
	struct bus_kafka *opened = weir_alloc(1, sizeof *opened);
	opened->bus = (struct weir_bus){.ops = &operations, .partitions = (uint32_t)config->bus.partitions};
	opened->config = config;
	opened->kafka = kafka;
	opened->log = log;
	opened->absent = absent;
	opened->looks = looks;
	opened->sole = needed != NULL;
	pthread_mutex_init(&opened->lock, NULL);
	weir_condition_init(&opened->wake);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		weir_bus_kafka_topic_name(config->bus.prefix, (enum weir_topic)topic, opened->names[topic]);
	status = open_control(opened, needed, error);
	if (status == WEIR_OK && early != NULL)
		atomic_store(early, &opened->bus);
	else
		early = NULL;
	if (status == WEIR_OK && (status = wait_for_topics(opened, wait_ms, stop, error)) == WEIR_OK &&
	    absent != BUS_KAFKA_TRY && absent != BUS_KAFKA_LOOK)
		status = weir_bus_kafka_watch_start(opened, error);
	opened->looks = NULL;
	if (status == WEIR_OK)
		*bus = opened;
	else if (early == NULL)
		bus_close(&opened->bus);
	return status;
}

enum weir_status weir_bus_kafka_open(const struct weir_config *config, const char *client,
                                     _Atomic(struct weir_bus *) *awaited, int64_t wait_ms, const _Atomic bool *stop,
                                     const struct weir_log *log, struct weir_bus **bus, struct weir_error *error)
{
	struct bus_kafka *opened;
	enum weir_status status =
		open_bus(config, client, BUS_KAFKA_MAKE, NULL, wait_ms, stop, log, NULL, awaited, &opened, error);
	if (status == WEIR_OK)
		*bus = &opened->bus;
	return status;
}

enum weir_status weir_bus_kafka_open_existing(const struct weir_config *config, const char *client, int64_t wait_ms,
                                              const _Atomic bool *stop, const struct weir_log *log,
                                              bool missing[WEIR_TOPIC_COUNT], struct weir_bus **bus,
                                              struct weir_error *error)
{
	struct bus_kafka *opened;
	enum weir_status status =
		open_bus(config, client, BUS_KAFKA_TRY, NULL, wait_ms, stop, log, NULL, NULL, &opened, error);
	if (status != WEIR_OK)
		return status;
	memcpy(missing, opened->missing, sizeof opened->missing);
	*bus = &opened->bus;
	return WEIR_OK;
}

enum weir_status weir_bus_kafka_open_topic(const struct weir_config *config, const char *client, enum weir_topic topic,
                                           _Atomic(struct weir_bus *) *awaited, int64_t wait_ms,
                                           const _Atomic bool *stop, const struct weir_log *log, struct weir_bus **bus,
                                           struct weir_error *error)
{
	struct bus_kafka *opened;
	bool needed[WEIR_TOPIC_COUNT] = {false};
	needed[topic] = true;
	enum weir_status status = open_bus(config, client, awaited != NULL ? BUS_KAFKA_AWAIT : BUS_KAFKA_LEAVE, needed,
	                                   wait_ms, stop, log, NULL, awaited, &opened, error);
	if (status == WEIR_OK)
		*bus = &opened->bus;
	return status;
}

enum weir_status weir_bus_kafka_open_looking(const struct weir_config *config, const char *client, int64_t wait_ms,
                                             const struct weir_log *log,
                                             struct weir_bus_kafka_look looks[WEIR_TOPIC_COUNT], struct weir_bus **bus,
                                             struct weir_error *error)
{
	struct bus_kafka *opened;
	enum weir_status status =
		open_bus(config, client, BUS_KAFKA_LOOK, NULL, wait_ms, NULL, log, looks, NULL, &opened, error);
	if (status == WEIR_OK)
		*bus = &opened->bus;
	return status;
}
