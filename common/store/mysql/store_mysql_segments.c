/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment blobs going in: many rows a statement, several statements a
 * transaction, none beyond what the server takes at once. They are removed in
 * small transactions too: a server that logs changes by row writes each removed
 * blob once more.
 */
#include "common/store/mysql/internal.h"

#include <inttypes.h>

enum {
	STATEMENT_BYTES = 2 << 20,
	/* Rows removed by a call. A checkpoint adds one for each of its segments at most (1,024): one call for 32 keeps up. */
	CLEAN_ROUNDS = 32 * 1024 / WEIR_MYSQL_REMOVE_ROWS,
};

struct write_call {
	struct weir_mysql *mysql;
	uint32_t partition;
	uint64_t epoch;
	const struct weir_segment_blob *blobs;
	size_t count;
};

/* How many blobs, from the first on, go into one statement, and which it is. */
static size_t choose_statement(const struct write_call *call, size_t first, size_t *statement)
{
	size_t most = weir_mysql_room(call->mysql) < STATEMENT_BYTES ? weir_mysql_room(call->mysql) : STATEMENT_BYTES;
	size_t count = 0, bytes = 0;
	while (first + count < call->count && count < WEIR_MYSQL_ROWS) {
		bytes += call->blobs[first + count].bytes.length + 5 * sizeof(uint64_t);
		if (bytes > most)
			break;
		count++;
	}
	*statement = count == WEIR_MYSQL_ROWS       ? WEIR_MYSQL_SEGMENT_PUT_MANY
	             : count >= WEIR_MYSQL_FEW_ROWS ? WEIR_MYSQL_SEGMENT_PUT_FEW
	                                            : WEIR_MYSQL_SEGMENT_PUT;
	return count == WEIR_MYSQL_ROWS ? WEIR_MYSQL_ROWS : count >= WEIR_MYSQL_FEW_ROWS ? WEIR_MYSQL_FEW_ROWS : 1;
}

static void put_blob(struct weir_mysql_statement *statement, uint32_t partition, const struct weir_segment_blob *blob)
{
	weir_mysql_put_number(statement, partition);
	weir_mysql_put_number(statement, blob->segment);
	weir_mysql_put_number(statement, blob->checkpoint);
	weir_mysql_put_number(statement, blob->base ? 1 : 0);
	weir_mysql_put_number(statement, blob->bytes.length);
	weir_mysql_put_bytes(statement, blob->bytes.at != NULL ? blob->bytes : (struct weir_span){.at = ""});
}

static enum weir_status write_all(void *context, struct weir_error *error)
{
	const struct write_call *call = context;
	uint64_t current = 0;
	enum weir_status status = weir_mysql_check_epoch(call->mysql, true, WEIR_STORE_ROLE_LIMITER, call->partition,
	                                                 call->epoch, &current, error);
	for (size_t i = 0; i < call->count && status == WEIR_OK; i++)
		if (call->blobs[i].checkpoint <= current)
			status = weir_fail(error, WEIR_INVALID,
			                   "checkpoint %" PRIu64 " of partition %u is current and cannot be changed",
			                   call->blobs[i].checkpoint, call->partition);
	for (size_t first = 0; first < call->count && status == WEIR_OK;) {
		size_t number, count = choose_statement(call, first, &number);
		struct weir_mysql_statement *statement = weir_mysql_use(call->mysql, number);
		for (size_t i = first; i < first + count; i++)
			put_blob(statement, call->partition, &call->blobs[i]);
		status = weir_mysql_execute(call->mysql, statement, NULL, error);
		first += count;
	}
	return status;
}

enum weir_status weir_mysql_write_segments(struct weir_store *base, uint32_t partition, uint64_t epoch,
                                           const struct weir_segment_blob *blobs, size_t count,
                                           struct weir_error *error)
{
	struct weir_store_mysql *store = weir_store_mysql(base);
	struct write_call call = {store->mysql, partition, epoch, blobs, count};
	enum weir_status status = weir_mysql_write(store->mysql, write_all, &call, error);
	for (size_t i = 0; i < count && status == WEIR_OK; i++)
		weir_mysql_written_note(&store->written, partition, blobs[i].segment, weir_mysql_connection(store->mysql));
	return status;
}

/* ---- going out ---- */

struct blob_place {
	uint32_t segment;
	uint64_t checkpoint;
};

/* Those that a statement finds, until they are bytes enough. */
static enum weir_status find_places(struct weir_mysql *mysql, struct weir_mysql_statement *statement,
                                    struct blob_place places[WEIR_MYSQL_REMOVE_ROWS], size_t *count,
                                    struct weir_error *error)
{
	enum weir_status status;
	uint64_t bytes = 0;
	*count = 0;
	while ((status = weir_mysql_step(mysql, statement, error)) == WEIR_OK) {
		bytes += weir_mysql_row_number(statement, 2);
		if (*count > 0 && bytes > WEIR_MYSQL_REMOVE_BYTES)
			break;
		places[(*count)++] = (struct blob_place){.segment = (uint32_t)weir_mysql_row_number(statement, 0),
		                                         .checkpoint = weir_mysql_row_number(statement, 1)};
	}
	weir_mysql_done(statement);
	return status == WEIR_END ? WEIR_OK : status;
}

enum weir_status weir_mysql_remove_blobs(struct weir_mysql *mysql, enum weir_mysql_statement_number which,
                                         uint32_t partition, uint64_t current, size_t *found, struct weir_error *error)
{
	struct blob_place places[WEIR_MYSQL_REMOVE_ROWS];
	struct weir_mysql_statement *statement = weir_mysql_use(mysql, which);
	weir_mysql_put_number(statement, partition);
	weir_mysql_put_number(statement, current);
	weir_mysql_put_number(statement, WEIR_MYSQL_REMOVE_ROWS);
	enum weir_status status = find_places(mysql, statement, places, found, error);
	for (size_t first = 0; first < *found && status == WEIR_OK; first += WEIR_MYSQL_SEGMENTS) {
		statement = weir_mysql_use(mysql, WEIR_MYSQL_SEGMENTS_REMOVE);
		weir_mysql_put_number(statement, partition);
		for (size_t i = first; i < first + WEIR_MYSQL_SEGMENTS; i++) {
			const struct blob_place *place = &places[i < *found ? i : *found - 1];
			weir_mysql_put_number(statement, place->segment);
			weir_mysql_put_number(statement, place->checkpoint);
		}
		status = weir_mysql_execute(mysql, statement, NULL, error);
	}
	return status;
}

struct clean_call {
	struct weir_mysql *mysql;
	uint32_t partition;
	uint64_t epoch;
	size_t found;
};

static enum weir_status clean_some(void *context, struct weir_error *error)
{
	struct clean_call *call = context;
	uint64_t current = 0;
	enum weir_status status = weir_mysql_check_epoch(call->mysql, true, WEIR_STORE_ROLE_LIMITER, call->partition,
	                                                 call->epoch, &current, error);
	return status == WEIR_OK ? weir_mysql_remove_blobs(call->mysql, WEIR_MYSQL_SEGMENTS_BEHIND, call->partition,
	                                                   current, &call->found, error)
	                         : status;
}

enum weir_status weir_mysql_clean(struct weir_store *base, uint32_t partition, uint64_t epoch, struct weir_error *error)
{
	struct clean_call call = {weir_store_mysql(base)->mysql, partition, epoch, 1};
	enum weir_status status = WEIR_OK;
	/* What is behind two bases is found twice and goes once: a round may remove fewer than it found. */
	for (int round = 0; round < CLEAN_ROUNDS && call.found > 0 && status == WEIR_OK; round++)
		status = weir_mysql_write(call.mysql, clean_some, &call, error);
	return status;
}
