/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archiver was away for longer than its topics keep what is in them: what is
 * gone is missing from the archive, and a person says that it continues with the
 * rest. Nothing is counted twice by that: frames count by the offset of their
 * events.
 *
 * Taking the partition raises its epoch, which fences an archiver that holds it;
 * one that stands at the gap sees the new row, and takes the partition again.
 */
#include "deploy/weir/inspect/recover_archive.h"

#include "archiver/ledger/ledger.h"
#include "common/cluster/connect.h"

#include <stdio.h>

enum { WAIT_MS = 10000 };

/* What a topic has of the partition. */
struct extent {
	uint64_t first, next;
};

static enum weir_status ask_extent(const struct backend *backend, enum weir_topic topic, uint32_t partition,
                                   struct extent *extent, struct weir_error *error)
{
	struct weir_bus *bus = NULL;
	enum weir_status status = weir_connect_topic(backend->config, "weir", topic, WAIT_MS, &backend->log, &bus, error);
	if (status == WEIR_END) /* the topic is not there */
		error->status = status = WEIR_INVALID;
	if (status == WEIR_OK)
		status = bus->ops->extent(bus, topic, partition, &extent->first, &extent->next, error);
	if (bus != NULL)
		bus->ops->close(bus);
	return status;
}

/* Moves the next offset behind a gap. @return whether there is one */
static bool step_over(const struct extent *extent, enum weir_topic topic, uint32_t partition, uint64_t *next)
{
	unsigned long long at = *next, first = extent->first, end = extent->next;
	const char *name = weir_topic_name(topic);
	if (*next >= extent->first && *next <= extent->next)
		return false;
	if (*next > extent->next)
		printf("partition %u, archive: it continues at offset %llu of %s, which ends at %llu: the topic was "
		       "recreated\n",
		       partition, at, name, end);
	else
		printf("partition %u, archive: it continues at offset %llu of %s, which begins at %llu: %llu messages are "
		       "missing from the archive\n",
		       partition, at, name, first, first - at);
	*next = extent->first;
	return true;
}

static enum weir_status commit(const struct backend *backend, struct ledger *ledger, struct weir_error *error)
{
	struct weir_store *store = backend->store;
	struct weir_partition_state taken, row;
	struct weir_text extra = {0};
	enum weir_status status = store->ops->take(store, WEIR_STORE_ROLE_ARCHIVER, ledger->partition, &taken, error);
	if (status == WEIR_OK && taken.checkpoint != ledger->checkpoint)
		status = weir_fail(error, WEIR_IO, "an archiver has stored rows meanwhile: run the command again");
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
	struct extent judged, decisions;
	uint32_t partition = ledger->partition;
	enum weir_status status =
		backend->store->ops->inspect(backend->store, WEIR_STORE_ROLE_ARCHIVER, partition, &state, error);
	if (status == WEIR_OK)
		status = ledger_restore(ledger, &state, error);
	if (status != WEIR_OK || ledger->fresh) /* one that was never stored begins where the topics begin */
		return status;
	status = ask_extent(backend, WEIR_TOPIC_JUDGED, partition, &judged, error);
	if (status == WEIR_OK)
		status = ask_extent(backend, WEIR_TOPIC_DECISIONS, partition, &decisions, error);
	if (status != WEIR_OK)
		return status;
	bool anew = ledger->judged_next > judged.next;
	bool judged_gap = step_over(&judged, WEIR_TOPIC_JUDGED, partition, &ledger->judged_next);
	*gap = step_over(&decisions, WEIR_TOPIC_DECISIONS, partition, &ledger->decisions_next) || judged_gap;
	if (anew)
		ledger->events_next = 0; /* its events are numbered anew, too */
	if (!*gap)
		printf("partition %u, archive: no gap\n", partition);
	return *gap && yes ? commit(backend, ledger, error) : WEIR_OK;
}

enum weir_status recover_archive(const struct backend *backend, uint32_t partition, bool yes, bool *gap,
                                 struct weir_error *error)
{
	struct ledger *ledger = ledger_new(partition);
	*gap = false;
	enum weir_status status = recover_ledger(backend, ledger, yes, gap, error);
	ledger_free(ledger);
	return status;
}
