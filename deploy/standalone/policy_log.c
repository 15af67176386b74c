/*
 * Order of writing: the store first, so that a number never names two policies;
 * then the partitions; then a note that all of them have it. A crash between
 * leaves a policy that is appended again at the next start.
 */
#include "deploy/standalone/policy_log.h"

#include "common/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APPENDED_NOTE "policy-appended"

enum { TOLD_WAIT_MS = 1000, TRIES = 30 };

static enum weir_status add_policy(void *context, uint64_t version, struct weir_span text)
{
	struct weir_error error;
	return rulebook_add(context, version, text, &error);
}

enum weir_status policy_log_load(struct weir_store *store, struct rulebook *book, struct weir_error *error)
{
	return store->ops->policy_each(store, 1, add_policy, book, error);
}

/* The newest version that every partition has. */
static enum weir_status appended_version(struct weir_store *store, uint64_t *version, struct weir_error *error)
{
	char *note;
	size_t length;
	enum weir_status status = store->ops->note_get(store, APPENDED_NOTE, &note, &length, error);
	*version = status == WEIR_OK && note != NULL ? strtoull(note, NULL, 10) : 0;
	if (status == WEIR_OK)
		free(note);
	return status;
}

static enum weir_status wait_deliveries(struct weir_bus *bus, struct weir_producer *producer, uint32_t waiting,
                                        struct weir_error *error)
{
	for (int tries = 0; waiting > 0 && tries < TRIES; tries++) {
		struct weir_delivery deliveries[64];
		size_t count = bus->ops->poll(producer, deliveries, 64, TOLD_WAIT_MS);
		for (size_t i = 0; i < count; i++)
			if (deliveries[i].status != WEIR_OK)
				return weir_fail(error, deliveries[i].status, "the bus did not take the policy");
		waiting -= (uint32_t)count;
	}
	return waiting == 0 ? WEIR_OK : weir_fail(error, WEIR_IO, "the bus did not take the policy within %d s", TRIES);
}

/* One policy is small: a bus that has just been opened has room for it in every partition. */
static enum weir_status append(struct weir_bus *bus, uint64_t version, const char *text, int64_t now_ms,
                               struct weir_error *error)
{
	struct weir_producer *producer;
	enum weir_status status = bus->ops->producer_new(bus, &producer, error);
	if (status != WEIR_OK)
		return status;
	size_t length;
	char *message = weir_frame_control(WEIR_FRAME_POLICY, now_ms, version, weir_span_of(text), &length);
	struct weir_span payload = {.at = message, .length = (uint32_t)length}, no_key = {0};
	uint32_t waiting = 0;
	for (uint32_t i = 0; status == WEIR_OK && i < bus->partitions; i++) {
		while ((status = bus->ops->send(producer, WEIR_TOPIC_EVENTS, i, no_key, payload, 0, error)) == WEIR_FULL) {
			status = wait_deliveries(bus, producer, waiting, error);
			if (status != WEIR_OK)
				break;
			waiting = 0;
		}
		waiting += status == WEIR_OK;
	}
	if (status == WEIR_OK)
		status = bus->ops->send(producer, WEIR_TOPIC_POLICY, 0, no_key, payload, 0, error);
	if (status == WEIR_OK)
		status = wait_deliveries(bus, producer, waiting + 1, error);
	free(message);
	bus->ops->producer_free(producer);
	return status;
}

enum weir_status policy_log_apply(struct weir_store *store, struct rulebook *book, struct weir_bus *bus,
                                  const struct weir_policy *policy, int64_t now_ms, uint64_t *version,
                                  struct weir_error *error)
{
	uint64_t newest = rulebook_newest(book), appended = 0;
	const struct weir_policy *in_force = newest > 0 ? rulebook_policy(book, newest) : NULL;
	enum weir_status status = WEIR_OK;
	*version = newest;
	if (in_force == NULL || strcmp(in_force->text, policy->text) != 0) {
		/* every one there was: buckets of a zone that is gone may still be stored under its id */
		for (uint64_t earlier = newest; status == WEIR_OK && earlier > 0; earlier--)
			if (rulebook_policy(book, earlier) != NULL)
				status = weir_policy_check_successor(rulebook_policy(book, earlier), policy, error);
		*version = newest + 1;
		if (status == WEIR_OK && store != NULL)
			status = store->ops->policy_put(store, *version, weir_span_of(policy->text), error);
		if (status == WEIR_OK)
			status = rulebook_add(book, *version, weir_span_of(policy->text), error);
	}
	if (status != WEIR_OK || bus == NULL || store == NULL)
		return status;
	status = appended_version(store, &appended, error);
	if (status != WEIR_OK || appended >= *version)
		return status;
	status = append(bus, *version, policy->text, now_ms, error);
	if (status != WEIR_OK)
		return status;
	char note[24];
	snprintf(note, sizeof note, "%llu", (unsigned long long)*version);
	return store->ops->note_put(store, APPENDED_NOTE, weir_span_of(note), error);
}
