/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment blobs coming out, as of the checkpoint that is current in one
 * snapshot: first where each segment's newest base is, from the index, then
 * the rows from there on, many segments a statement.
 *
 * The server gives rows in its own order; they are kept until the segments of
 * a statement are there, and given on in the order that was asked for.
 */
#include "common/base/alloc.h"
#include "common/store/mysql/internal.h"

#include <inttypes.h>
#include <stdlib.h>

struct kept_blob {
	uint32_t segment;
	uint64_t checkpoint;
	bool base;
	size_t at, length; /* in the store's memory */
};

struct read_call {
	struct weir_store_mysql *store;
	uint32_t partition;
	uint64_t epoch, at_least;
	const uint32_t *segments;
	size_t count;
	enum weir_status (*each)(void *context, const struct weir_segment_blob *blob);
	void *context;
	/* of one statement */
	uint64_t from[WEIR_MYSQL_SEGMENTS];
	struct kept_blob *kept;
	size_t kept_count, kept_capacity;
};

/* A statement for one segment, or for as many as there may be: the last one stands in for those that are not. */
static uint32_t slot(const uint32_t *segments, size_t count, size_t place)
{
	return segments[place < count ? place : count - 1];
}

static enum weir_status find_bases(struct read_call *call, const uint32_t *segments, size_t count, uint64_t upto,
                                   struct weir_error *error)
{
	struct weir_mysql *mysql = call->store->mysql;
	struct weir_mysql_statement *statement =
		weir_mysql_use(mysql, count == 1 ? WEIR_MYSQL_SEGMENT_BASE : WEIR_MYSQL_SEGMENT_BASES);
	weir_mysql_put_number(statement, call->partition);
	weir_mysql_put_number(statement, upto);
	for (size_t i = 0; i < (count == 1 ? 1 : WEIR_MYSQL_SEGMENTS); i++)
		weir_mysql_put_number(statement, slot(segments, count, i));
	memset(call->from, 0, sizeof call->from); /* without a base: deltas alone */
	enum weir_status status;
	while ((status = weir_mysql_step(mysql, statement, error)) == WEIR_OK)
		for (size_t i = 0; i < count; i++)
			if (segments[i] == weir_mysql_row_number(statement, 0))
				call->from[i] = weir_mysql_row_number(statement, 1);
	weir_mysql_done(statement);
	return status == WEIR_END ? WEIR_OK : status;
}

static void keep_row(struct read_call *call, struct weir_mysql_statement *statement)
{
	struct weir_text *blobs = &call->store->blobs;
	if (call->kept_count == call->kept_capacity) {
		call->kept_capacity = call->kept_capacity == 0 ? 64 : call->kept_capacity * 2;
		call->kept = weir_realloc(call->kept, call->kept_capacity, sizeof *call->kept);
	}
	struct kept_blob *kept = &call->kept[call->kept_count++];
	*kept = (struct kept_blob){.segment = (uint32_t)weir_mysql_row_number(statement, 0),
	                           .checkpoint = weir_mysql_row_number(statement, 1),
	                           .base = weir_mysql_row_number(statement, 2) != 0,
	                           .at = blobs->length};
	kept->length = weir_mysql_row_append(statement, 3, blobs);
}

static enum weir_status keep_rows(struct read_call *call, const uint32_t *segments, size_t count, uint64_t upto,
                                  struct weir_error *error)
{
	struct weir_mysql *mysql = call->store->mysql;
	struct weir_mysql_statement *statement =
		weir_mysql_use(mysql, count == 1 ? WEIR_MYSQL_SEGMENT_READ : WEIR_MYSQL_SEGMENTS_READ);
	weir_mysql_put_number(statement, call->partition);
	weir_mysql_put_number(statement, upto);
	for (size_t i = 0; i < (count == 1 ? 1 : WEIR_MYSQL_SEGMENTS); i++) {
		weir_mysql_put_number(statement, slot(segments, count, i));
		weir_mysql_put_number(statement, call->from[i < count ? i : count - 1]);
	}
	call->kept_count = 0;
	weir_text_clear(&call->store->blobs);
	enum weir_status status;
	while ((status = weir_mysql_step(mysql, statement, error)) == WEIR_OK)
		keep_row(call, statement);
	weir_mysql_done(statement);
	return status == WEIR_END ? WEIR_OK : status;
}

/* Rows of a segment lie together, oldest first. */
static enum weir_status give_segment(const struct read_call *call, uint32_t segment)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < call->kept_count && status == WEIR_OK; i++) {
		const struct kept_blob *kept = &call->kept[i];
		if (kept->segment != segment)
			continue;
		const char *bytes = kept->length > 0 ? call->store->blobs.at + kept->at : "";
		struct weir_segment_blob blob = {.segment = segment,
		                                 .checkpoint = kept->checkpoint,
		                                 .base = kept->base,
		                                 .bytes = {.at = bytes, .length = (uint32_t)kept->length}};
		status = call->each(call->context, &blob);
	}
	return status;
}

static enum weir_status read_all(void *context, struct weir_error *error)
{
	struct read_call *call = context;
	uint64_t current = 0;
	enum weir_status status = weir_mysql_check_epoch(call->store->mysql, false, WEIR_STORE_ROLE_LIMITER,
	                                                 call->partition, call->epoch, &current, error);
	if (status == WEIR_OK && current < call->at_least)
		status = weir_fail(error, WEIR_FENCED, "checkpoint %" PRIu64 " of partition %u is gone", call->at_least,
		                   call->partition);
	for (size_t first = 0; first < call->count && status == WEIR_OK; first += WEIR_MYSQL_SEGMENTS) {
		const uint32_t *segments = call->segments + first;
		size_t rest = call->count - first, count = rest < WEIR_MYSQL_SEGMENTS ? rest : WEIR_MYSQL_SEGMENTS;
		status = find_bases(call, segments, count, current, error);
		if (status == WEIR_OK)
			status = keep_rows(call, segments, count, current, error);
		for (size_t i = 0; i < count && status == WEIR_OK; i++)
			status = give_segment(call, segments[i]);
	}
	return status;
}

enum weir_status weir_mysql_read_segments(struct weir_store *base, uint32_t partition, uint64_t epoch,
                                          uint64_t at_least, const uint32_t *segments, size_t count,
                                          enum weir_status (*each)(void *context, const struct weir_segment_blob *blob),
                                          void *context, struct weir_error *error)
{
	struct read_call call = {.store = weir_store_mysql(base),
	                         .partition = partition,
	                         .epoch = epoch,
	                         .at_least = at_least,
	                         .segments = segments,
	                         .count = count,
	                         .each = each,
	                         .context = context};
	enum weir_status status = weir_mysql_read(call.store->mysql, read_all, &call, error);
	free(call.kept);
	return status;
}

/* ---- what there is ---- */

struct list_call {
	struct weir_mysql *mysql;
	uint32_t partition;
	uint64_t epoch, checkpoint;
	void (*each)(void *context, uint32_t segment, uint32_t deltas, uint64_t base_bytes, uint64_t delta_bytes);
	void *context;
};

/* What one segment has, as of the checkpoint. */
struct listed {
	uint32_t segment;
	uint32_t blobs, deltas;
	uint64_t base_bytes, delta_bytes;
};

static void add_blob(struct listed *listed, uint32_t segment, bool base, uint64_t bytes)
{
	listed->segment = segment;
	listed->blobs++;
	if (base) {
		/* What is older is behind it. */
		listed->base_bytes = bytes;
		listed->deltas = 0;
		listed->delta_bytes = 0;
	} else {
		listed->deltas++;
		listed->delta_bytes += bytes;
	}
}

static void give_listed(const struct list_call *call, const struct listed *listed)
{
	if (listed->blobs > 0)
		call->each(call->context, listed->segment, listed->deltas, listed->base_bytes, listed->delta_bytes);
}

static enum weir_status list_all(void *context, struct weir_error *error)
{
	const struct list_call *call = context;
	struct listed listed = {.blobs = 0};
	uint64_t current = 0;
	enum weir_status status = weir_mysql_check_epoch(call->mysql, false, WEIR_STORE_ROLE_LIMITER, call->partition,
	                                                 call->epoch, &current, error);
	if (status == WEIR_OK && current != call->checkpoint)
		status = weir_fail(error, WEIR_FENCED, "checkpoint %" PRIu64 " of partition %u is not the current one",
		                   call->checkpoint, call->partition);
	if (status != WEIR_OK)
		return status;
	struct weir_mysql_statement *statement = weir_mysql_use(call->mysql, WEIR_MYSQL_SEGMENT_LIST);
	weir_mysql_put_number(statement, call->partition);
	weir_mysql_put_number(statement, current);
	while ((status = weir_mysql_step(call->mysql, statement, error)) == WEIR_OK) {
		uint32_t segment = (uint32_t)weir_mysql_row_number(statement, 0);
		if (segment != listed.segment) {
			give_listed(call, &listed);
			listed = (struct listed){.blobs = 0};
		}
		add_blob(&listed, segment, weir_mysql_row_number(statement, 1) != 0, weir_mysql_row_number(statement, 2));
	}
	weir_mysql_done(statement);
	if (status != WEIR_END)
		return status;
	give_listed(call, &listed);
	return WEIR_OK;
}

enum weir_status weir_mysql_list_segments(struct weir_store *base, uint32_t partition, uint64_t epoch,
                                          uint64_t checkpoint,
                                          void (*each)(void *context, uint32_t segment, uint32_t deltas,
                                                       uint64_t base_bytes, uint64_t delta_bytes),
                                          void *context, struct weir_error *error)
{
	struct list_call call = {weir_store_mysql(base)->mysql, partition, epoch, checkpoint, each, context};
	return weir_mysql_read(call.mysql, list_all, &call, error);
}
