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
#include "common/base/alloc.h"
#include "common/cluster/connect.h"

#include <stdio.h>
#include <stdlib.h>

enum { WAIT_MS = 10000, TURNS = 10, TOPICS = 2 };

static const enum weir_topic topics[TOPICS] = {WEIR_TOPIC_JUDGED, WEIR_TOPIC_DECISIONS};

struct archive {
	const struct backend *backend;
	struct weir_bus *buses[TOPICS]; /* NULL: not opened yet */
	/* By number of the partition among those that were named. */
	struct weir_position *positions[TOPICS];
	uint64_t *checkpoints; /* what was stored when it was looked at */
	bool *fresh;           /* nothing was ever stored: it begins where the topics begin */
	uint32_t from;         /* the first of them */
	bool yes;
};

static enum weir_status open_bus(struct archive *archive, int topic, struct weir_error *error)
{
	const struct backend *backend = archive->backend;
	if (archive->buses[topic] != NULL)
		return WEIR_OK;
	if (backend->kind == BACKEND_STATE) {
		archive->buses[topic] = backend->bus;
		return WEIR_OK;
	}
	enum weir_status status = weir_connect_topic(backend->config, "weir", topics[topic], WAIT_MS, &backend->log,
	                                             &archive->buses[topic], error);
	if (status == WEIR_END) /* the topic is not there */
		error->status = status = WEIR_INVALID;
	return status;
}

static enum weir_status read_ledger(const struct archive *archive, struct ledger *ledger, struct weir_error *error)
{
	struct weir_store *store = archive->backend->store;
	struct weir_partition_state state;
	enum weir_status status = store->ops->inspect(store, WEIR_STORE_ROLE_ARCHIVER, ledger->partition, &state, error);
	return status == WEIR_OK ? ledger_restore(ledger, &state, error) : status;
}

/* What is stored of some partitions, and whether the topics have it still. */
static enum weir_status look(struct archive *archive, uint32_t begin, uint32_t count, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	bool any = false;
	for (uint32_t i = begin; status == WEIR_OK && i < begin + count; i++) {
		struct ledger *ledger = ledger_new(archive->from + i);
		status = read_ledger(archive, ledger, error);
		archive->checkpoints[i] = ledger->checkpoint;
		archive->fresh[i] = ledger->fresh;
		for (int topic = 0; topic < TOPICS; topic++) {
			const struct ledger_position *at = &ledger->positions[topics[topic]];
			archive->positions[topic][i] =
				(struct weir_position){.partition = ledger->partition, .next = at->next, .mark = at->last};
		}
		any |= !ledger->fresh;
		ledger_free(ledger);
	}
	for (int topic = 0; any && topic < TOPICS && status == WEIR_OK; topic++) {
		status = open_bus(archive, topic, error);
		if (status == WEIR_OK)
			weir_bus_verify_all(archive->buses[topic], topics[topic], archive->positions[topic] + begin, count,
			                    WAIT_MS);
	}
	return status;
}

static bool has_gap(const struct weir_position *at)
{
	return at->status == WEIR_ANEW || (at->status == WEIR_INVALID && at->next < at->first);
}

/* Whether there is a gap in a topic, and in words what it loses. */
static enum weir_status find_gap(const struct weir_position *at, enum weir_topic topic, bool *gap,
                                 struct weir_error *error)
{
	if (at->status == WEIR_ANEW)
		printf("partition %u, archive: %s: its %llu messages are archived from the first one on\n", at->partition,
		       at->why.text, (unsigned long long)(at->end - at->first));
	else if (has_gap(at))
		printf("partition %u, archive: it continues at offset %llu of %s, which begins at %llu: %llu messages are "
		       "missing from the archive\n",
		       at->partition, (unsigned long long)at->next, weir_topic_name(topic), (unsigned long long)at->first,
		       (unsigned long long)(at->first - at->next));
	else if (at->status != WEIR_OK)
		return weir_fail(error, at->status == WEIR_AGAIN ? WEIR_IO : at->status, "%s", at->why.text);
	*gap |= has_gap(at);
	return WEIR_OK;
}

/* Moves the place behind a gap, or to the first message of a topic that was made anew. */
static enum weir_status step_over(struct archive *archive, int topic, uint32_t i, struct ledger_position *place,
                                  struct weir_error *error)
{
	const struct weir_position *at = &archive->positions[topic][i];
	if (!has_gap(at))
		return WEIR_OK;
	*place = (struct ledger_position){.next = at->first};
	enum weir_status status = weir_bus_read_mark(archive->buses[topic], topics[topic], at->partition, at->first,
	                                             WAIT_MS, &place->last, error);
	return status == WEIR_END ? WEIR_OK : status; /* it is empty */
}

/* @return as a store; WEIR_AGAIN: an archiver has stored since it was looked at */
static enum weir_status commit(struct archive *archive, struct ledger *ledger, uint64_t looked,
                               struct weir_error *error)
{
	struct weir_store *store = archive->backend->store;
	struct weir_partition_state taken, row;
	struct weir_text extra = {0};
	const struct ledger_position *at = ledger->positions;
	enum weir_status status = store->ops->take(store, WEIR_STORE_ROLE_ARCHIVER, ledger->partition, &taken, error);
	if (status == WEIR_OK && (taken.checkpoint != ledger->checkpoint || taken.checkpoint != looked))
		status = weir_fail(error, WEIR_AGAIN,
		                   "partition %u, archive: an archiver has stored meanwhile: run the command "
		                   "again",
		                   ledger->partition);
	if (status == WEIR_OK) {
		ledger->epoch = taken.epoch;
		ledger_state(ledger, &row, &extra);
		status = store->ops->commit(store, WEIR_STORE_ROLE_ARCHIVER, &row, 1, NULL, NULL, 0, error);
	}
	if (status == WEIR_OK)
		printf("partition %u, archive: it continues at offset %llu of judged and %llu of decisions\n",
		       ledger->partition, (unsigned long long)at[WEIR_TOPIC_JUDGED].next,
		       (unsigned long long)at[WEIR_TOPIC_DECISIONS].next);
	weir_text_deinit(&extra);
	return status;
}

static enum weir_status go_behind(struct archive *archive, uint32_t i, struct weir_error *error)
{
	struct ledger *ledger = ledger_new(archive->from + i);
	enum weir_status status = read_ledger(archive, ledger, error);
	for (int topic = 0; topic < TOPICS && status == WEIR_OK; topic++)
		status = step_over(archive, topic, i, &ledger->positions[topics[topic]], error);
	if (status == WEIR_OK)
		status = commit(archive, ledger, archive->checkpoints[i], error);
	ledger_free(ledger);
	return status;
}

static enum weir_status recover_one(struct archive *archive, uint32_t i, bool *any_gap, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (int turn = 1; !archive->fresh[i]; turn++) {
		bool gap = false;
		for (int topic = 0; topic < TOPICS && status == WEIR_OK; topic++)
			status = find_gap(&archive->positions[topic][i], topics[topic], &gap, error);
		if (status == WEIR_OK && !gap)
			printf("partition %u, archive: no gap\n", archive->from + i);
		*any_gap |= gap;
		if (status == WEIR_OK && gap && archive->yes)
			status = go_behind(archive, i, error);
		if (status != WEIR_AGAIN || turn == TURNS)
			break;
		status = look(archive, i, 1, error);
		if (status != WEIR_OK)
			break;
	}
	return status;
}

enum weir_status recover_archive(const struct backend *backend, uint32_t from, uint32_t count, bool yes, bool *gap,
                                 struct weir_error *error)
{
	struct archive archive = {.backend = backend, .from = from, .yes = yes};
	for (int topic = 0; topic < TOPICS; topic++)
		archive.positions[topic] = weir_alloc(count, sizeof *archive.positions[topic]);
	archive.checkpoints = weir_alloc(count, sizeof *archive.checkpoints);
	archive.fresh = weir_alloc(count, sizeof *archive.fresh);
	*gap = false;
	enum weir_status status = look(&archive, 0, count, error);
	for (uint32_t i = 0; status == WEIR_OK && i < count; i++)
		status = recover_one(&archive, i, gap, error);
	for (int topic = 0; topic < TOPICS; topic++) {
		if (archive.buses[topic] != NULL && archive.buses[topic] != backend->bus)
			archive.buses[topic]->ops->close(archive.buses[topic]);
		free(archive.positions[topic]);
	}
	free(archive.checkpoints);
	free(archive.fresh);
	return status;
}
