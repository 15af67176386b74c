/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment blobs: written invisibly, read as of the current checkpoint, removed
 * behind a newer base.
 *
 * A blob that is behind a base of the current checkpoint is needed by nobody: a
 * reader starts at the base. So a reader must not choose its checkpoint, or one
 * that asks while the next becomes current finds nothing.
 */
#include "common/store/sqlite/internal.h"

#include <inttypes.h>

/* Rows removed at once. A checkpoint adds one for each of its segments at most (1,024): one call for 32 keeps up. */
enum { CLEAN_ROWS = 32 * 1024 };

static enum weir_status put_segment(struct weir_store_sqlite *store, uint32_t partition,
                                    const struct weir_segment_blob *blob, uint64_t current, struct weir_error *error)
{
	if (blob->checkpoint <= current)
		return weir_fail(error, WEIR_INVALID, "checkpoint %" PRIu64 " of partition %u is current and cannot be changed",
		                 blob->checkpoint, partition);
	struct weir_statement *statement = weir_database_use(store->database, WEIR_STORE_SEGMENT_PUT);
	weir_statement_number(statement, 1, partition);
	weir_statement_number(statement, 2, blob->segment);
	weir_statement_number(statement, 3, blob->checkpoint);
	weir_statement_number(statement, 4, blob->base ? 1 : 0);
	weir_statement_bytes(statement, 5,
	                     blob->bytes.at != NULL ? blob->bytes : (struct weir_span){.at = "", .length = 0});
	return weir_statement_run(store->database, statement, NULL, error);
}

enum weir_status weir_store_write_segments(struct weir_store *base, uint32_t partition, uint64_t epoch,
                                           const struct weir_segment_blob *blobs, size_t count,
                                           struct weir_error *error)
{
	struct weir_store_sqlite *store = weir_store_sqlite(base);
	uint64_t current = 0;
	enum weir_status status = weir_database_begin_unsynced(store->database, error);
	if (status != WEIR_OK)
		return status;
	status = weir_store_check_epoch(store, WEIR_STORE_ROLE_LIMITER, partition, epoch, &current, error);
	for (size_t i = 0; i < count && status == WEIR_OK; i++)
		status = put_segment(store, partition, &blobs[i], current, error);
	return weir_database_end(store->database, status, error);
}

static enum weir_status read_segment(struct weir_store_sqlite *store, uint32_t partition, uint32_t segment,
                                     uint64_t upto,
                                     enum weir_status (*each)(void *context, const struct weir_segment_blob *blob),
                                     void *context, struct weir_error *error)
{
	struct weir_statement *statement = weir_database_use(store->database, WEIR_STORE_SEGMENT_READ);
	weir_statement_number(statement, 1, partition);
	weir_statement_number(statement, 2, segment);
	weir_statement_number(statement, 3, upto);
	enum weir_status status;
	while ((status = weir_statement_step(store->database, statement, error)) == WEIR_OK) {
		struct weir_segment_blob blob = {.segment = segment,
		                                 .checkpoint = weir_row_number(statement, 0),
		                                 .base = weir_row_number(statement, 1) != 0,
		                                 .bytes = weir_row_bytes(statement, 2)};
		status = each(context, &blob);
		if (status != WEIR_OK)
			return status;
	}
	return status == WEIR_END ? WEIR_OK : status;
}

/* Begins to read under an epoch; where that is not the partition's, nothing is begun. @param current  its checkpoint */
static enum weir_status begin_as_owner(struct weir_store_sqlite *store, uint32_t partition, uint64_t epoch,
                                       uint64_t *current, struct weir_error *error)
{
	enum weir_status status = weir_database_begin_reading(store->database, error);
	if (status != WEIR_OK)
		return status;
	status = weir_store_check_epoch(store, WEIR_STORE_ROLE_LIMITER, partition, epoch, current, error);
	return status == WEIR_OK ? WEIR_OK : weir_database_end(store->database, status, error);
}

enum weir_status weir_store_read_segments(struct weir_store *base, uint32_t partition, uint64_t epoch,
                                          uint64_t at_least, const uint32_t *segments, size_t count,
                                          enum weir_status (*each)(void *context, const struct weir_segment_blob *blob),
                                          void *context, struct weir_error *error)
{
	struct weir_store_sqlite *store = weir_store_sqlite(base);
	uint64_t current = 0;
	enum weir_status status = begin_as_owner(store, partition, epoch, &current, error);
	if (status != WEIR_OK)
		return status;
	if (current < at_least)
		status = weir_fail(error, WEIR_FENCED, "checkpoint %" PRIu64 " of partition %u is gone", at_least, partition);
	for (size_t i = 0; i < count && status == WEIR_OK; i++)
		status = read_segment(store, partition, segments[i], current, each, context, error);
	return weir_database_end(store->database, status, error);
}

/* What one segment has, as of the checkpoint. */
struct listed {
	uint32_t segment;
	uint32_t blobs, deltas;
	uint64_t base_bytes, delta_bytes;
};

static enum weir_status list_upto(struct weir_store_sqlite *store, uint32_t partition, uint64_t upto,
                                  void (*each)(void *context, uint32_t segment, uint32_t deltas, uint64_t base_bytes,
                                               uint64_t delta_bytes),
                                  void *context, struct weir_error *error)
{
	struct listed listed = {.blobs = 0};
	struct weir_statement *statement = weir_database_use(store->database, WEIR_STORE_SEGMENT_LIST);
	weir_statement_number(statement, 1, partition);
	weir_statement_number(statement, 2, upto);
	enum weir_status status;
	while ((status = weir_statement_step(store->database, statement, error)) == WEIR_OK) {
		uint32_t segment = (uint32_t)weir_row_number(statement, 0);
		bool is_base = weir_row_number(statement, 1) != 0;
		uint64_t bytes = weir_row_number(statement, 2);
		if (listed.blobs > 0 && segment != listed.segment) {
			each(context, listed.segment, listed.deltas, listed.base_bytes, listed.delta_bytes);
			listed = (struct listed){.blobs = 0};
		}
		listed.segment = segment;
		listed.blobs++;
		if (is_base) {
			/* What is older is behind it. */
			listed.base_bytes = bytes;
			listed.deltas = 0;
			listed.delta_bytes = 0;
		} else {
			listed.deltas++;
			listed.delta_bytes += bytes;
		}
	}
	weir_database_use(store->database, WEIR_STORE_SEGMENT_LIST); /* ends its reading */
	if (status != WEIR_END)
		return status;
	if (listed.blobs > 0)
		each(context, listed.segment, listed.deltas, listed.base_bytes, listed.delta_bytes);
	return WEIR_OK;
}

enum weir_status weir_store_list_segments(struct weir_store *base, uint32_t partition, uint64_t epoch,
                                          uint64_t checkpoint,
                                          void (*each)(void *context, uint32_t segment, uint32_t deltas,
                                                       uint64_t base_bytes, uint64_t delta_bytes),
                                          void *context, struct weir_error *error)
{
	struct weir_store_sqlite *store = weir_store_sqlite(base);
	uint64_t current = 0;
	enum weir_status status = begin_as_owner(store, partition, epoch, &current, error);
	if (status != WEIR_OK)
		return status;
	if (current != checkpoint)
		status = weir_fail(error, WEIR_FENCED, "checkpoint %" PRIu64 " of partition %u is not the current one",
		                   checkpoint, partition);
	if (status == WEIR_OK)
		status = list_upto(store, partition, current, each, context, error);
	return weir_database_end(store->database, status, error);
}

enum weir_status weir_store_clean(struct weir_store *base, uint32_t partition, uint64_t epoch, struct weir_error *error)
{
	struct weir_store_sqlite *store = weir_store_sqlite(base);
	uint64_t current = 0;
	enum weir_status status = weir_database_begin_unsynced(store->database, error);
	if (status != WEIR_OK)
		return status;
	status = weir_store_check_epoch(store, WEIR_STORE_ROLE_LIMITER, partition, epoch, &current, error);
	if (status == WEIR_OK) {
		struct weir_statement *statement = weir_database_use(store->database, WEIR_STORE_SEGMENT_CLEAN);
		weir_statement_number(statement, 1, partition);
		weir_statement_number(statement, 2, current);
		weir_statement_number(statement, 3, CLEAN_ROWS);
		status = weir_statement_run(store->database, statement, NULL, error);
	}
	return weir_database_end(store->database, status, error);
}
