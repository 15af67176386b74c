/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archiver was away for longer than its topics keep what is in them, or one of
 * them was made anew: what is gone is missing from the archive, and a person says
 * that it continues with the rest. Nothing is counted twice by that: frames count
 * by the number of the record that they judge.
 *
 * Taking the partition raises its epoch, which fences an archiver that holds it;
 * one that stands at the gap sees the new row, and takes the partition again.
 */
#include "deploy/weir/inspect/recover_archive.h"

#include "archiver/ledger/ledger.h"
#include "common/cluster/connect.h"

#include <stdio.h>

enum { WAIT_MS = 10000, ATTEMPTS = 10 };

/* A topic that the partition is archived from. */
struct place {
	enum weir_topic topic;
	uint64_t *next;
	struct weir_mark *last;
	bool gap;
};

/* Moves the place behind a gap, or to the first message of a topic that was made anew. */
static enum weir_status step_over(struct weir_bus *bus, struct place *place, uint32_t partition,
                                  struct weir_error *error)
{
	uint64_t first, end;
	struct weir_error why;
	const char *name = weir_topic_name(place->topic);
	enum weir_status status = bus->ops->extent(bus, place->topic, partition, &first, &end, error);
	if (status != WEIR_OK)
		return status;
	status = weir_bus_verify(bus, place->topic, partition, *place->next, place->last, WAIT_MS, &why);
	place->gap = status == WEIR_ANEW || status == WEIR_INVALID;
	if (status == WEIR_ANEW)
		printf("partition %u, archive: %s: its %llu messages are archived from the first one on\n", partition, why.text,
		       (unsigned long long)(end - first));
	else if (status == WEIR_INVALID)
		printf("partition %u, archive: it continues at offset %llu of %s, which begins at %llu: %llu messages are "
		       "missing from the archive\n",
		       partition, (unsigned long long)*place->next, name, (unsigned long long)first,
		       (unsigned long long)(first - *place->next));
	else if (status != WEIR_OK)
		*error = why;
	if (!place->gap)
		return status;
	*place->next = first;
	*place->last = (struct weir_mark){0};
	status = weir_bus_read_mark(bus, place->topic, partition, first, WAIT_MS, place->last, error);
	return status == WEIR_END ? WEIR_OK : status; /* it is empty */
}

static enum weir_status look_at(const struct backend *backend, struct place *place, uint32_t partition,
                                struct weir_error *error)
{
	struct weir_bus *bus = NULL;
	if (backend->kind == BACKEND_STATE)
		return step_over(backend->bus, place, partition, error);
	enum weir_status status =
		weir_connect_topic(backend->config, "weir", place->topic, WAIT_MS, &backend->log, &bus, error);
	if (status == WEIR_END) /* the topic is not there */
		error->status = status = WEIR_INVALID;
	if (status == WEIR_OK)
		status = step_over(bus, place, partition, error);
	if (bus != NULL)
		bus->ops->close(bus);
	return status;
}

/* @return WEIR_FENCED: an archiver has stored rows, or taken the partition, since it was looked at */
static enum weir_status commit(const struct backend *backend, struct ledger *ledger, struct weir_error *error)
{
	struct weir_store *store = backend->store;
	struct weir_partition_state taken, row;
	struct weir_text extra = {0};
	enum weir_status status = store->ops->take(store, WEIR_STORE_ROLE_ARCHIVER, ledger->partition, &taken, error);
	if (status == WEIR_OK && taken.checkpoint != ledger->checkpoint)
		status = weir_fail(error, WEIR_FENCED, "partition %u, archive: an archiver has stored rows meanwhile",
		                   ledger->partition);
	if (status == WEIR_OK) {
		ledger->epoch = taken.epoch;
		ledger_state(ledger, &row, &extra);
		status = store->ops->commit(store, WEIR_STORE_ROLE_ARCHIVER, &row, 1, NULL, NULL, 0, error);
	}
	if (status == WEIR_OK)
		printf("partition %u, archive: it continues at offset %llu of judged and %llu of decisions\n",
		       ledger->partition, (unsigned long long)ledger->judged_next, (unsigned long long)ledger->decisions_next);
	weir_text_deinit(&extra);
	return status;
}

static enum weir_status recover_ledger(const struct backend *backend, struct ledger *ledger, bool yes, bool *gap,
                                       struct weir_error *error)
{
	struct weir_partition_state state;
	struct place judged = {WEIR_TOPIC_JUDGED, &ledger->judged_next, &ledger->judged_last, false};
	struct place decisions = {WEIR_TOPIC_DECISIONS, &ledger->decisions_next, &ledger->decisions_last, false};
	uint32_t partition = ledger->partition;
	enum weir_status status =
		backend->store->ops->inspect(backend->store, WEIR_STORE_ROLE_ARCHIVER, partition, &state, error);
	if (status == WEIR_OK)
		status = ledger_restore(ledger, &state, error);
	if (status != WEIR_OK || ledger->fresh) /* one that was never stored begins where the topics begin */
		return status;
	status = look_at(backend, &judged, partition, error);
	if (status == WEIR_OK)
		status = look_at(backend, &decisions, partition, error);
	if (status != WEIR_OK)
		return status;
	*gap = judged.gap || decisions.gap;
	if (!*gap)
		printf("partition %u, archive: no gap\n", partition);
	return *gap && yes ? commit(backend, ledger, error) : WEIR_OK;
}

enum weir_status recover_archive(const struct backend *backend, uint32_t partition, bool yes, bool *gap,
                                 struct weir_error *error)
{
	enum weir_status status = WEIR_FENCED;
	*gap = false;
	/* Each attempt takes the partition from an archiver that stores rows, so that one of them is alone with it. */
	for (int i = 0; status == WEIR_FENCED && i < ATTEMPTS; i++) {
		struct ledger *ledger = ledger_new(partition);
		if (i > 0)
			printf("%s: looking at it again\n", error->text);
		status = recover_ledger(backend, ledger, yes, gap, error);
		ledger_free(ledger);
	}
	return status;
}
