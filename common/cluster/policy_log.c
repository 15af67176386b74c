/* SPDX-License-Identifier: Apache-2.0 */
/* See policy_log.h for the order of writing. Policies are small and change rarely, so they are sent one at a time. */
#include "common/cluster/policy_log.h"

#include "common/base/alloc.h"
#include "common/base/stop.h"
#include "common/bus/bus_wait.h"
#include "common/cluster/policy_feed.h"
#include "common/cluster/put_if_absent.h"
#include "common/frame/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APPENDED_NOTE "policy-appended"

enum { POLL_MS = 200, DELIVERIES = 64, READ_MS = 5000 };

/* ---- earlier policies ---- */

struct loading {
	struct weir_policy_history *history;
	struct weir_error *error;
};

static enum weir_status add_policy(void *context, uint64_t version, struct weir_span text)
{
	struct loading *loading = context;
	struct weir_policy_history *history = loading->history;
	struct weir_policy *policy;
	enum weir_status status = weir_policy_decode(version, text.at, text.length, &policy, loading->error);
	if (status != WEIR_OK)
		return status;
	history->policies = weir_realloc(history->policies, history->count + 1, sizeof(struct weir_policy *));
	history->policies[history->count++] = policy;
	return WEIR_OK;
}

enum weir_status weir_policy_history_load(struct weir_store *store, struct weir_policy_history *history,
                                          struct weir_error *error)
{
	struct loading loading = {.history = history, .error = error};
	*history = (struct weir_policy_history){0};
	enum weir_status status = store->ops->policy_each(store, 1, add_policy, &loading, error);
	if (status != WEIR_OK)
		weir_policy_history_deinit(history);
	return status;
}

void weir_policy_history_deinit(struct weir_policy_history *history)
{
	for (size_t i = 0; i < history->count; i++)
		weir_policy_free(history->policies[i]);
	free(history->policies);
	*history = (struct weir_policy_history){0};
}

enum weir_status weir_policy_number(struct weir_store *store, const struct weir_policy *const *history, size_t count,
                                    struct weir_policy *policy, uint64_t *version, struct weir_error *error)
{
	enum weir_status status = weir_policy_follow(policy, history, count, error);
	*version = count > 0 ? history[count - 1]->version : 0;
	if (status == WEIR_OK && count > 0 && strcmp(history[count - 1]->text, policy->text) == 0)
		return WEIR_OK;
	++*version;
	if (status != WEIR_OK || store == NULL)
		return status;
	status = store->ops->policy_put(store, *version, weir_span_of(policy->text), error);
	if (status == WEIR_INVALID) /* it has the number with another text */
		return weir_fail(
			error, WEIR_AGAIN,
			"weir itself or somebody else put policy %llu in force meanwhile: see `weir policy history`, and "
			"apply again",
			(unsigned long long)*version);
	return status;
}

/* ---- into the log ---- */

enum weir_status weir_policy_topic_newest(struct weir_bus *bus, uint64_t *version, struct weir_error *error)
{
	struct weir_policy_feed *feed;
	enum weir_status status = weir_policy_feed_read(bus, READ_MS, &feed, error);
	if (status != WEIR_OK)
		return status;
	const struct weir_policy *newest = weir_policy_feed_newest(feed);
	*version = newest != NULL ? newest->version : 0;
	weir_policy_feed_free(feed);
	return WEIR_OK;
}

enum weir_status weir_policy_appended(struct weir_store *store, struct weir_bus *bus, uint64_t *version,
                                      struct weir_error *error)
{
	char *note;
	size_t length;
	uint64_t newest;
	struct weir_error unknown;
	enum weir_status status = store->ops->note_get(store, APPENDED_NOTE, &note, &length, error);
	*version = status == WEIR_OK && note != NULL ? strtoull(note, NULL, 10) : 0;
	if (status == WEIR_OK)
		free(note);
	/* A topic that was made anew has what was appended since, and a crash may have ended that early. */
	if (*version > 0 && bus != NULL && weir_policy_topic_newest(bus, &newest, &unknown) == WEIR_OK && newest < *version)
		*version = newest;
	return status;
}

static enum weir_status wait_deliveries(struct weir_bus *bus, struct weir_producer *producer, uint32_t waiting,
                                        int64_t wait_ms, struct weir_error *error)
{
	struct weir_bus_wait wait = weir_bus_wait_begin(wait_ms);
	enum weir_status status = WEIR_OK;
	while (waiting > 0 && status == WEIR_OK) {
		struct weir_delivery deliveries[DELIVERIES];
		size_t count = bus->ops->poll(producer, deliveries, DELIVERIES, POLL_MS);
		for (size_t i = 0; i < count; i++)
			if (deliveries[i].status != WEIR_OK)
				return weir_fail(error, deliveries[i].status, "the bus rejected the policy: %s, partition %u: %s",
				                 weir_topic_name(deliveries[i].topic), deliveries[i].partition, deliveries[i].why);
		waiting -= (uint32_t)count;
		if (count == 0 && atomic_load(weir_stop_flag()))
			return weir_fail(error, WEIR_IO, "a signal ended the wait for the bus to acknowledge the policy");
		if (count == 0)
			status = weir_bus_wait_on(&wait, bus, "the policy", error);
	}
	return status;
}

/* Sends one message to every partition of a topic, and waits until it is durable. */
static enum weir_status send_everywhere(struct weir_bus *bus, struct weir_producer *producer, enum weir_topic topic,
                                        struct weir_span key, struct weir_span payload, int64_t wait_ms,
                                        struct weir_error *error)
{
	uint32_t waiting = 0, partitions = weir_topic_partitions(topic, bus->partitions);
	for (uint32_t i = 0; i < partitions; i++) {
		enum weir_status status;
		while ((status = bus->ops->send(producer, topic, i, key, payload, 0, error)) == WEIR_FULL) {
			status = wait_deliveries(bus, producer, waiting, wait_ms, error);
			if (status != WEIR_OK)
				return status;
			waiting = 0;
		}
		if (status != WEIR_OK)
			return status;
		waiting++;
	}
	return wait_deliveries(bus, producer, waiting, wait_ms, error);
}

struct appending {
	struct weir_store *store;
	struct weir_bus *bus;
	struct weir_producer *producer;
	int64_t now_ms, wait_ms;
	struct weir_error *error;
};

/* A policy to append. They are collected first, as a store's callback must not call the store. */
struct pending {
	uint64_t version;
	char *text;
};

struct pending_list {
	struct pending *all;
	size_t count;
	uint64_t last;
};

static enum weir_status keep_pending(void *context, uint64_t version, struct weir_span text)
{
	struct pending_list *list = context;
	if (version > list->last)
		return WEIR_OK;
	list->all = weir_realloc(list->all, list->count + 1, sizeof *list->all);
	list->all[list->count++] = (struct pending){.version = version, .text = weir_copy(text.at, text.length)};
	return WEIR_OK;
}

char *weir_policy_message(const struct weir_policy *policy, struct weir_span text, int64_t now_ms, size_t *length)
{
	char *message = weir_frame_control(WEIR_FRAME_POLICY, now_ms, policy->version, text, length);
	if (weir_policy_is_extended(policy))
		weir_frame_extend(message, *length);
	return message;
}

static enum weir_status append_one(const struct appending *appending, const struct pending *pending)
{
	size_t length;
	char version[24];
	struct weir_policy *policy;
	snprintf(version, sizeof version, "%llu", (unsigned long long)pending->version);
	if (weir_policy_decode(pending->version, pending->text, strlen(pending->text), &policy, appending->error) !=
	    WEIR_OK)
		return WEIR_INVALID;
	char *message = weir_policy_message(policy, weir_span_of(pending->text), appending->now_ms, &length);
	weir_policy_free(policy);
	struct weir_span payload = {.at = message, .length = (uint32_t)length}, no_key = {0};
	enum weir_status status = send_everywhere(appending->bus, appending->producer, WEIR_TOPIC_EVENTS, no_key, payload,
	                                          appending->wait_ms, appending->error);
	if (status == WEIR_OK)
		status = send_everywhere(appending->bus, appending->producer, WEIR_TOPIC_POLICY, weir_span_of(version), payload,
		                         appending->wait_ms, appending->error);
	free(message);
	if (status != WEIR_OK)
		return status;
	/* Somebody who was slower with an older one may be about to note it. */
	return weir_put_if_higher(appending->store, APPENDED_NOTE, pending->version, appending->error);
}

enum weir_status weir_policy_append(struct weir_store *store, struct weir_bus *bus, uint64_t version, int64_t now_ms,
                                    int64_t wait_ms, struct weir_error *error)
{
	uint64_t appended = 0;
	enum weir_status status = weir_policy_appended(store, bus, &appended, error);
	if (status != WEIR_OK || appended >= version)
		return status;
	struct appending appending = {.store = store, .bus = bus, .now_ms = now_ms, .wait_ms = wait_ms, .error = error};
	struct pending_list list = {.last = version};
	status = store->ops->policy_each(store, appended + 1, keep_pending, &list, error);
	if (status == WEIR_OK)
		status = bus->ops->producer_new(bus, &appending.producer, error);
	for (size_t i = 0; status == WEIR_OK && i < list.count; i++)
		status = append_one(&appending, &list.all[i]);
	if (appending.producer != NULL)
		bus->ops->producer_free(appending.producer);
	for (size_t i = 0; i < list.count; i++)
		free(list.all[i].text);
	free(list.all);
	return status;
}
