/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Membership of a consumer group that fetches nothing.
 *
 * The member subscribes to the events and takes part in every rebalance, but
 * assigns itself an empty list, so librdkafka reads and commits nothing: what
 * the group gave is only told. Consumers of the bus read it, at the offsets of
 * checkpoints, and epochs in the store decide who may write. So a revocation
 * by itself is no news (eager rebalances revoke everything and give most of it
 * back a moment later); only the next assignment, or the loss of the
 * membership, changes what is owned.
 */
#include "common/bus/kafka/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OFTEN = 3, OFTEN_MS = 600000 }; /* losing the membership so often, each within the time */
enum { LEAVE_MS = 3000 };              /* and BUS_KAFKA_END_MS for the handle */

struct weir_group {
	struct bus_kafka *bus; /* borrowed */
	rd_kafka_t *handle;
	rd_kafka_queue_t *queue;
	bool *owned;               /* by partition: the last assignment */
	uint64_t spoken;           /* how many assignments there were */
	bool member;               /* whether the last one is still valid */
	int64_t lost_ms;           /* monotonic: when the membership was last lost */
	uint32_t losses;           /* times, each not long after the one before */
	struct weir_error failure; /* a failure of the group itself; its text is not empty while it lasts */
};

static const struct weir_kafka_property properties[] = {
	{"enable.auto.commit", "false", false},
	{"enable.auto.offset.store", "false", false},
	{"auto.offset.reset", "error", false},
	{"allow.auto.create.topics", "false", false},
	{"partition.assignment.strategy", "range", false},
	{NULL, NULL, false},
};

static enum weir_status subscribe(struct weir_group *group, struct weir_error *error)
{
	rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(topics, group->bus->names[WEIR_TOPIC_EVENTS], RD_KAFKA_PARTITION_UA);
	rd_kafka_resp_err_t code = rd_kafka_subscribe(group->handle, topics);
	rd_kafka_topic_partition_list_destroy(topics);
	return code == RD_KAFKA_RESP_ERR_NO_ERROR
	           ? WEIR_OK
	           : weir_fail(error, WEIR_INVALID, "cannot join the consumer group: %s", rd_kafka_err2str(code));
}

enum weir_status weir_group_join(struct weir_bus *base, const char *name, struct weir_group **group,
                                 struct weir_error *error)
{
	struct bus_kafka *bus = weir_bus_kafka_of(base);
	char id[WEIR_BUS_KAFKA_TOPIC_BYTES], words[WEIR_ERROR_TEXT_BYTES / 2];
	rd_kafka_t *handle;
	snprintf(id, sizeof id, "%s.%s", bus->config->bus.prefix, name);
	rd_kafka_conf_t *conf = weir_kafka_conf(bus->kafka, properties);
	(void)rd_kafka_conf_set(conf, "group.id", id, words, sizeof words);
	rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_ERROR);
	enum weir_status status = weir_kafka_open(bus->kafka, RD_KAFKA_CONSUMER, conf, &handle, error);
	if (status != WEIR_OK)
		return status;
	rd_kafka_poll_set_consumer(handle);
	struct weir_group *made = weir_alloc(1, sizeof *made);
	made->bus = bus;
	made->handle = handle;
	made->queue = rd_kafka_queue_get_consumer(handle);
	made->owned = weir_alloc(bus->bus.partitions, sizeof *made->owned);
	status = subscribe(made, error);
	if (status == WEIR_OK)
		*group = made;
	else
		weir_group_leave(made);
	return status;
}

/* It is usual after an outage of the brokers, and when the process was stopped. */
static void lose(struct weir_group *group, const char *why)
{
	int64_t now_ms = weir_monotonic_ms();
	group->losses = now_ms - group->lost_ms < OFTEN_MS ? group->losses + 1 : 1;
	group->lost_ms = now_ms;
	if (group->member && group->losses < OFTEN)
		weir_log(group->bus->log, WEIR_LOG_INFO, "bus",
		         "removed from the consumer group: %s. Joining again; nothing is lost", why);
	else if (group->member)
		weir_log(group->bus->log, WEIR_LOG_WARNING, "bus",
		         "removed from the consumer group again, for the %u. time within minutes: %s. Its partitions move each "
		         "time, so verdicts are late. Joining again. Look at the load of this machine, and the network to the "
		         "brokers (runbook: process-suspended)",
		         group->losses, why);
	group->member = false;
	memset(group->owned, 0, group->bus->bus.partitions * sizeof *group->owned);
}

static void take_assignment(struct weir_group *group, rd_kafka_event_t *event)
{
	const rd_kafka_topic_partition_list_t *given = rd_kafka_event_topic_partition_list(event);
	rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(0);
	rd_kafka_assign(group->handle, none);
	rd_kafka_topic_partition_list_destroy(none);
	memset(group->owned, 0, group->bus->bus.partitions * sizeof *group->owned);
	uint32_t count = 0; /* without any that were added to the topic since the start */
	for (int i = 0; given != NULL && i < given->cnt; i++)
		if (given->elems[i].partition >= 0 && (uint32_t)given->elems[i].partition < group->bus->bus.partitions) {
			group->owned[given->elems[i].partition] = true;
			count++;
		}
	group->spoken++;
	group->member = true;
	group->failure.text[0] = '\0';
	weir_log(group->bus->log, WEIR_LOG_INFO, "bus", "the consumer group assigned %u of %u partitions to this process",
	         count, group->bus->bus.partitions);
}

static void take_rebalance(struct weir_group *group, rd_kafka_event_t *event)
{
	if (rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
		take_assignment(group, event);
		return;
	}
	bool lost = rd_kafka_assignment_lost(group->handle) != 0; /* asked before it is given back, which resets this */
	rd_kafka_assign(group->handle, NULL);
	if (lost)
		lose(group, "no heartbeat reached the broker within session.timeout.ms");
}

/* Handles errors that concern this group. The bus's watch logs temporary failures of the brokers. */
static void take_error(struct weir_group *group, rd_kafka_event_t *event)
{
	rd_kafka_resp_err_t code = rd_kafka_event_error(event);
	const char *words = rd_kafka_event_error_string(event);
	if (rd_kafka_event_error_is_fatal(event) || code == RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED) {
		lose(group, words);
		return;
	}
	switch (code) {
	case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
	case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
		(void)weir_fail(&group->failure, WEIR_IO, "consumer group: %s", words);
		break;
	default: break;
	}
}

static bool serve(struct weir_group *group, rd_kafka_queue_t *queue, int timeout_ms)
{
	rd_kafka_event_t *event = weir_kafka_queue_poll(queue, timeout_ms);
	if (event == NULL)
		return false;
	if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
		take_rebalance(group, event);
	else if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR)
		take_error(group, event);
	rd_kafka_event_destroy(event);
	return true;
}

enum weir_status weir_group_poll(struct weir_group *group, int timeout_ms, bool *owned, uint64_t *generation,
                                 struct weir_error *error)
{
	char words[WEIR_ERROR_TEXT_BYTES];
	if (serve(group, group->queue, timeout_ms))
		while (serve(group, group->queue, 0))
			;
	memcpy(owned, group->owned, group->bus->bus.partitions * sizeof *owned);
	*generation = group->member ? group->spoken : 0;
	if (weir_bus_kafka_problem(&group->bus->bus, words, sizeof words))
		return weir_fail(error, WEIR_IO, "%s", words);
	return group->failure.text[0] != '\0' ? weir_fail(error, WEIR_IO, "%s", group->failure.text) : WEIR_OK;
}

void weir_group_leave(struct weir_group *group)
{
	if (group == NULL)
		return;
	int64_t end_ms = weir_monotonic_ms() + LEAVE_MS;
	rd_kafka_queue_destroy(group->queue);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(group->handle);
	rd_kafka_error_t *failed = rd_kafka_consumer_close_queue(group->handle, queue);
	while (failed == NULL && !rd_kafka_consumer_closed(group->handle) && weir_monotonic_ms() < end_ms)
		(void)serve(group, queue, 50);
	if (failed != NULL)
		rd_kafka_error_destroy(failed);
	rd_kafka_queue_destroy(queue);
	weir_kafka_end(group->handle, BUS_KAFKA_END_MS);
	free(group->owned);
	free(group);
}
