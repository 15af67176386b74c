/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making checkpoints current, with notes and what was archived, in one
 * transaction that may be run again: the rows have then what they are given once
 * more, and nothing is added twice.
 */
#include "common/base/alloc.h"
#include "common/store/mysql/internal.h"

#include <inttypes.h>

struct commit_call {
	struct weir_store_mysql *store;
	int role;
	const struct weir_archive_batch *batch; /* NULL: none */
	const struct weir_partition_state *states;
	size_t count;
	const char *const *names;
	const struct weir_span *values;
	size_t note_count;
};

static enum weir_status put_note(struct weir_mysql *mysql, const char *name, struct weir_span value,
                                 struct weir_error *error)
{
	struct weir_mysql_statement *statement =
		weir_mysql_use(mysql, value.at != NULL ? WEIR_MYSQL_NOTE_PUT : WEIR_MYSQL_NOTE_REMOVE);
	weir_mysql_put_text(statement, name);
	if (value.at != NULL)
		weir_mysql_put_bytes(statement, value);
	return weir_mysql_execute(mysql, statement, NULL, error);
}

/*
 * Moves one partition's row, if the epoch is its own and the checkpoint before is there: a server that another one has
 * replaced may have lost it. A row that has been moved already counts as well.
 */
static enum weir_status commit_state(struct weir_mysql *mysql, int role, const struct weir_partition_state *state,
                                     struct weir_error *error)
{
	struct weir_mysql_statement *statement = weir_mysql_use(mysql, WEIR_MYSQL_COMMIT);
	weir_mysql_put_number(statement, state->checkpoint);
	weir_mysql_put_number(statement, state->next_offset);
	weir_mysql_put_signed(statement, state->clock_ms);
	weir_mysql_put_number(statement, state->policy_version);
	weir_mysql_put_bytes(statement, state->extra);
	weir_mysql_put_number(statement, (uint64_t)role);
	weir_mysql_put_number(statement, state->partition);
	weir_mysql_put_number(statement, state->epoch);
	weir_mysql_put_number(statement, state->checkpoint - 1);
	uint64_t rows = 0;
	enum weir_status status = weir_mysql_execute(mysql, statement, &rows, error);
	if (status == WEIR_OK && rows != 1)
		status = weir_fail(error, WEIR_FENCED, "partition %u now has another owner, or its last checkpoint is gone",
		                   state->partition);
	return status;
}

/*
 * Whether the blobs of the checkpoint are sure to be there: they came over this connection, or the checkpoint is
 * current already. The latter shows after a commit whose answer was lost. Its row stayed locked until the server had
 * made up its mind, so what is read here is the truth.
 */
static enum weir_status check_written(struct weir_store_mysql *store, const struct weir_partition_state *state,
                                      struct weir_error *error)
{
	if (weir_mysql_written_over(&store->written, state->partition, weir_mysql_connection(store->mysql)))
		return WEIR_OK;
	uint64_t current = 0;
	enum weir_status status = weir_mysql_check_epoch(store->mysql, true, WEIR_STORE_ROLE_LIMITER, state->partition,
	                                                 state->epoch, &current, error);
	if (status != WEIR_OK || current >= state->checkpoint)
		return status;
	weir_mysql_written_forget(&store->written, state->partition);
	return weir_fail(error, WEIR_IO,
	                 "%s: the connection was lost after checkpoint %" PRIu64
	                 " of partition %u was written: it must be written again",
	                 weir_mysql_name(store->mysql), state->checkpoint, state->partition);
}

/*
 * Adding is not like putting: whether an earlier run of this transaction, whose answer was lost, has added the batch
 * shows by the states, which are locked first.
 */
static enum weir_status add_batch(const struct commit_call *call, bool *added, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < call->count && status == WEIR_OK; i++) {
		const struct weir_partition_state *state = &call->states[i];
		uint64_t current;
		status = weir_mysql_check_epoch(call->store->mysql, true, call->role, state->partition, state->epoch, &current,
		                                error);
		if (status == WEIR_OK && current >= state->checkpoint)
			*added = true;
	}
	return status == WEIR_OK && !*added ? weir_mysql_add_batch(call->store->mysql, call->batch, error) : status;
}

static enum weir_status commit_all(void *context, struct weir_error *error)
{
	const struct commit_call *call = context;
	struct weir_store_mysql *store = call->store;
	bool added = false;
	enum weir_status status = call->batch != NULL ? add_batch(call, &added, error) : WEIR_OK;
	for (size_t i = 0; i < call->count && status == WEIR_OK && !added; i++) {
		if (call->role == WEIR_STORE_ROLE_LIMITER)
			status = check_written(store, &call->states[i], error);
		if (status == WEIR_OK)
			status = commit_state(store->mysql, call->role, &call->states[i], error);
	}
	for (size_t i = 0; i < call->note_count && status == WEIR_OK; i++)
		status = put_note(store->mysql, call->names[i], call->values[i], error);
	return status;
}

enum weir_status weir_mysql_archive(struct weir_store *base, int role, const struct weir_archive_batch *batch,
                                    const struct weir_partition_state *states, size_t count, const char *const *names,
                                    const struct weir_span *values, size_t note_count, struct weir_error *error)
{
	struct weir_store_mysql *store = weir_store_mysql(base);
	struct commit_call call = {store, role, batch, states, count, names, values, note_count};
	enum weir_status status = weir_mysql_write(store->mysql, commit_all, &call, error);
	for (size_t i = 0; i < count && status != WEIR_IO && role == WEIR_STORE_ROLE_LIMITER; i++)
		weir_mysql_written_forget(&store->written, states[i].partition);
	return status;
}

enum weir_status weir_mysql_commit(struct weir_store *base, int role, const struct weir_partition_state *states,
                                   size_t count, const char *const *names, const struct weir_span *values,
                                   size_t note_count, struct weir_error *error)
{
	return weir_mysql_archive(base, role, NULL, states, count, names, values, note_count, error);
}

enum weir_status weir_mysql_note_put(struct weir_store *base, const char *name, struct weir_span value,
                                     struct weir_error *error)
{
	return weir_mysql_commit(base, WEIR_STORE_ROLE_LIMITER, NULL, 0, &name, &value, 1, error);
}

struct note_call {
	struct weir_mysql *mysql;
	const char *name;
	char **value;
	size_t *length;
};

static enum weir_status read_note(void *context, struct weir_error *error)
{
	const struct note_call *call = context;
	struct weir_mysql_statement *statement = weir_mysql_use(call->mysql, WEIR_MYSQL_NOTE_GET);
	weir_mysql_put_text(statement, call->name);
	enum weir_status status = weir_mysql_step(call->mysql, statement, error);
	if (status == WEIR_OK) {
		struct weir_span bytes = weir_mysql_row_bytes(statement, 0);
		*call->value = weir_copy(bytes.at, bytes.length);
		*call->length = bytes.length;
	}
	weir_mysql_done(statement);
	return status == WEIR_END ? WEIR_OK : status;
}

enum weir_status weir_mysql_note_get(struct weir_store *base, const char *name, char **value, size_t *length,
                                     struct weir_error *error)
{
	struct note_call call = {weir_store_mysql(base)->mysql, name, value, length};
	*value = NULL;
	*length = 0;
	return weir_mysql_read(call.mysql, read_note, &call, error);
}
