/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions are rows by the same way as those of a topic: as they are published, read again. */
#include "deploy/weir/run/once_archive.h"

#include "common/base/alloc.h"
#include "limiter/lane/decision.h"

#include <assert.h>
#include <stdlib.h>

struct once_archive {
	uint32_t count;
	struct ledger **ledgers; /* by partition: each is touched by the worker that has the lane */
	struct histories *histories;
	struct weir_key_hash *hash; /* NULL: keys are kept in clear */
	struct batch *batch;
};

enum weir_status once_archive_new(uint32_t partitions, uint64_t version, struct weir_store *store,
                                  const char *hash_keys, struct once_archive **out, struct weir_error *error)
{
	struct once_archive *archive = weir_alloc(1, sizeof *archive);
	archive->count = partitions;
	archive->ledgers = weir_alloc(partitions, sizeof(struct ledger *));
	for (uint32_t i = 0; i < partitions; i++)
		archive->ledgers[i] = ledger_new(i);
	archive->histories = histories_new();
	enum weir_status status = weir_key_hash_open(hash_keys, &archive->hash, error);
	if (status == WEIR_OK)
		status = weir_key_hash_settle(archive->hash, store, error);
	if (status == WEIR_OK)
		status = histories_know(archive->histories, store, version, error);
	archive->batch = batch_new(archive->hash);
	if (status == WEIR_OK)
		*out = archive;
	else
		once_archive_free(archive);
	return status;
}

void once_archive_free(struct once_archive *archive)
{
	if (archive == NULL)
		return;
	for (uint32_t i = 0; i < archive->count; i++)
		ledger_free(archive->ledgers[i]);
	free(archive->ledgers);
	histories_free(archive->histories);
	batch_free(archive->batch);
	weir_key_hash_free(archive->hash);
	free(archive);
}

static void add_decision(struct ledger *ledger, const struct shard_decision *decision)
{
	const struct weir_zone *zone = decision->zone->zone;
	struct weir_text text = {0};
	struct decision_row row;
	decision_message_key(&text, zone, decision->key);
	size_t key_length = text.length;
	decision_json(&text, ledger->partition, decision);
	struct weir_message message = {
		.key = {.at = text.at, .length = (uint32_t)key_length},
		.payload = {.at = text.at + key_length, .length = (uint32_t)(text.length - key_length)},
	};
	enum weir_status status = decision_row_read(&message, &row, NULL);
	assert(status == WEIR_OK);
	if (status == WEIR_OK)
		ledger_decision(ledger, zone->mode == WEIR_SHADOW ? WEIR_TOPIC_SHADOW : WEIR_TOPIC_DECISIONS, 0, &row);
	weir_text_deinit(&text);
}

void once_archive_add(struct once_archive *archive, const struct lane *lane, const struct lane_result *result)
{
	struct ledger *ledger = archive->ledgers[lane_partition(lane)];
	struct weir_frame judged = *result->frame;
	judged.judged_offset = result->judged.first_event;
	judged.verdicts = result->judged.verdicts;
	ledger_count(ledger, &judged, archive->histories, true);
	for (uint32_t i = 0; i < result->judged.decision_count; i++)
		add_decision(ledger, &result->judged.decisions[i]);
}

size_t once_archive_bytes(const struct once_archive *archive, uint32_t partition)
{
	return ledger_bytes(archive->ledgers[partition]);
}

const struct weir_archive_batch *once_archive_batch(struct once_archive *archive)
{
	return archive != NULL ? batch_fill(archive->batch, archive->ledgers, archive->count) : NULL;
}

void once_archive_stored(struct once_archive *archive)
{
	for (uint32_t i = 0; archive != NULL && i < archive->count; i++)
		ledger_stored(archive->ledgers[i]);
}
