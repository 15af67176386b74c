/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on a server: opening it, and taking partitions.
 *
 * Each operation is one transaction, safe to run twice. Whoever took a
 * partition last has its epoch. A transaction that writes under an epoch holds
 * the partition's row until it ends, or changes it only where the epoch is the
 * row's own, so what an older owner still tries is refused, and never mixes.
 */
#include "common/store/mysql/store_mysql.h"

#include "common/base/alloc.h"
#include "common/store/mysql/internal.h"
#include "common/store/mysql/store_mysql_failures.h"

#include <stdlib.h>

/* ---- partitions ---- */

struct partition_call {
	struct weir_store_mysql *store;
	int role;
	uint32_t partition;
	struct weir_partition_state *state;
};

static enum weir_status read_state(const struct partition_call *call, struct weir_error *error)
{
	struct weir_store_mysql *store = call->store;
	struct weir_mysql_statement *statement = weir_mysql_use(store->mysql, WEIR_MYSQL_STATE);
	weir_mysql_put_number(statement, (uint64_t)call->role);
	weir_mysql_put_number(statement, call->partition);
	enum weir_status status = weir_mysql_step(store->mysql, statement, error);
	if (status == WEIR_OK) {
		struct weir_span extra = weir_mysql_row_bytes(statement, 5);
		weir_text_clear(&store->extra);
		weir_text_append(&store->extra, extra.at, extra.length);
		weir_text_reserve(&store->extra, 1); /* so that an empty one has an address, too */
		*call->state = (struct weir_partition_state){
			.partition = call->partition,
			.epoch = weir_mysql_row_number(statement, 0),
			.checkpoint = weir_mysql_row_number(statement, 1),
			.next_offset = weir_mysql_row_number(statement, 2),
			.clock_ms = (int64_t)weir_mysql_row_number(statement, 3),
			.policy_version = weir_mysql_row_number(statement, 4),
			.extra = {.at = extra.at != NULL ? store->extra.at : NULL, .length = extra.length},
		};
	}
	weir_mysql_done(statement);
	return status;
}

static enum weir_status raise_epoch(const struct partition_call *call, struct weir_error *error)
{
	struct weir_mysql_statement *statement = weir_mysql_use(call->store->mysql, WEIR_MYSQL_TAKE);
	weir_mysql_put_number(statement, (uint64_t)call->role);
	weir_mysql_put_number(statement, call->partition);
	return weir_mysql_execute(call->store->mysql, statement, NULL, error);
}

/* A row that somebody holds is waited for a second: whoever takes partitions has others to take. */
static enum weir_status take_row(void *context, struct weir_error *error)
{
	const struct partition_call *call = context;
	struct weir_mysql *mysql = call->store->mysql;
	enum weir_status status = weir_mysql_run(mysql, "SET SESSION innodb_lock_wait_timeout = 1", error);
	if (status != WEIR_OK)
		return status;
	status = raise_epoch(call, error);
	enum weir_status back = weir_mysql_run(mysql, WEIR_MYSQL_ROW_WAIT, status == WEIR_OK ? error : NULL);
	if (status == WEIR_OK)
		status = back;
	return status == WEIR_OK ? read_state(call, error) : status;
}

enum weir_status weir_mysql_check_epoch(struct weir_mysql *mysql, bool locked, int role, uint32_t partition,
                                        uint64_t epoch, uint64_t *checkpoint, struct weir_error *error)
{
	struct weir_mysql_statement *statement = weir_mysql_use(mysql, locked ? WEIR_MYSQL_EPOCH_LOCKED : WEIR_MYSQL_EPOCH);
	weir_mysql_put_number(statement, (uint64_t)role);
	weir_mysql_put_number(statement, partition);
	enum weir_status status = weir_mysql_step(mysql, statement, error);
	if (status == WEIR_END || (status == WEIR_OK && weir_mysql_row_number(statement, 0) != epoch))
		status = weir_fail(error, WEIR_FENCED, "partition %u now has another owner", partition);
	else if (status == WEIR_OK)
		*checkpoint = weir_mysql_row_number(statement, 1);
	weir_mysql_done(statement);
	return status;
}

struct drop {
	struct weir_mysql *mysql;
	const struct weir_partition_state *taken;
	size_t found;
};

static enum weir_status drop_some(void *context, struct weir_error *error)
{
	struct drop *drop = context;
	uint64_t current;
	enum weir_status status = weir_mysql_check_epoch(drop->mysql, true, WEIR_STORE_ROLE_LIMITER, drop->taken->partition,
	                                                 drop->taken->epoch, &current, error);
	return status == WEIR_OK ? weir_mysql_remove_blobs(drop->mysql, WEIR_MYSQL_SEGMENTS_UNCOMMITTED,
	                                                   drop->taken->partition, current, &drop->found, error)
	                         : status;
}

/*
 * Blobs that the owner before wrote and did not commit go: the new owner numbers its checkpoints from the same one on,
 * and they would become part of its first. The epoch has been raised: no more of them come.
 */
static enum weir_status drop_uncommitted(struct weir_store_mysql *store, const struct weir_partition_state *taken,
                                         struct weir_error *error)
{
	struct drop drop = {store->mysql, taken, 0};
	enum weir_status status;
	do
		status = weir_mysql_write(store->mysql, drop_some, &drop, error);
	while (status == WEIR_OK && drop.found > 0);
	return status;
}

static enum weir_status take(struct weir_store *base, int role, uint32_t partition, struct weir_partition_state *state,
                             struct weir_error *error)
{
	struct partition_call call = {weir_store_mysql(base), role, partition, state};
	enum weir_status status = weir_mysql_write_or_leave(call.store->mysql, take_row, &call, error);
	if (status != WEIR_OK || role != WEIR_STORE_ROLE_LIMITER)
		return status;
	weir_mysql_written_forget(&call.store->written, partition);
	return drop_uncommitted(call.store, state, error);
}

static enum weir_status inspect_row(void *context, struct weir_error *error)
{
	const struct partition_call *call = context;
	enum weir_status status = read_state(call, error);
	if (status != WEIR_END)
		return status;
	*call->state = (struct weir_partition_state){.partition = call->partition};
	return WEIR_OK;
}

static enum weir_status inspect(struct weir_store *base, int role, uint32_t partition,
                                struct weir_partition_state *state, struct weir_error *error)
{
	struct partition_call call = {weir_store_mysql(base), role, partition, state};
	return weir_mysql_read(call.store->mysql, inspect_row, &call, error);
}

/* ---- opening ---- */

static void store_close(struct weir_store *base)
{
	if (base == NULL)
		return;
	struct weir_store_mysql *store = weir_store_mysql(base);
	weir_mysql_free(store->mysql);
	weir_text_deinit(&store->extra);
	weir_text_deinit(&store->blobs);
	free(store->written.places);
	free(store);
}

static const struct weir_store_ops operations = {
	.name = "mysql",
	.take = take,
	.inspect = inspect,
	.write_segments = weir_mysql_write_segments,
	.commit = weir_mysql_commit,
	.read_segments = weir_mysql_read_segments,
	.list_segments = weir_mysql_list_segments,
	.clean = weir_mysql_clean,
	.policy_put = weir_mysql_policy_put,
	.policy_each = weir_mysql_policy_each,
	.note_get = weir_mysql_note_get,
	.note_put = weir_mysql_note_put,
	.archive = weir_mysql_archive,
	.keep = weir_mysql_keep,
	.forget = weir_mysql_forget,
	.query = weir_mysql_query,
	.close = store_close,
};

static enum weir_status make_database(struct weir_mysql *mysql, const char *name, struct weir_error *error)
{
	struct weir_text sql = {0};
	weir_text_puts(&sql, "CREATE DATABASE IF NOT EXISTS `");
	for (const char *at = name; *at != '\0'; at++) {
		if (*at == '`')
			weir_text_puts(&sql, "`");
		weir_text_append(&sql, at, 1);
	}
	weir_text_puts(&sql, "` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
	weir_text_append(&sql, "", 1);
	enum weir_status status = weir_mysql_connect(mysql, false, error);
	if (status == WEIR_OK)
		status = weir_mysql_run(mysql, sql.at, error);
	if (status != WEIR_OK)
		weir_error_prefix(error, "database %s does not exist and cannot be created", name);
	weir_mysql_disconnect(mysql);
	weir_text_deinit(&sql);
	return status;
}

static enum weir_status open_store(const struct weir_config *config, struct weir_text *missing,
                                   struct weir_store_mysql *store, struct weir_error *error)
{
	enum weir_status status = weir_mysql_connect(store->mysql, true, error);
	if (status == WEIR_IO && weir_mysql_error_number(store->mysql) == WEIR_MYSQL_NO_DATABASE) {
		if (missing != NULL) {
			weir_text_printf(missing, "database \"%s\" and its tables", config->store.database);
			return WEIR_OK;
		}
		status = make_database(store->mysql, config->store.database, error);
		if (status == WEIR_OK)
			status = weir_mysql_connect(store->mysql, true, error);
	}
	if (status != WEIR_OK)
		return status;
	return missing != NULL ? weir_mysql_schema_inspect(store->mysql, weir_mysql_schema_steps(), missing, error)
	                       : weir_mysql_schema_upgrade(store->mysql, weir_mysql_schema_steps(), error);
}

/* @param missing  NULL: it is made */
static enum weir_status store_new(const struct weir_config *config, struct weir_text *missing,
                                  struct weir_store **store, struct weir_error *error)
{
	struct weir_store_mysql *opened = weir_alloc(1, sizeof *opened);
	opened->store.ops = &operations;
	opened->mysql = weir_mysql_new(config, weir_mysql_statements, WEIR_MYSQL_STATEMENTS);
	enum weir_status status = open_store(config, missing, opened, error);
	if (status == WEIR_IO && weir_mysql_failure(weir_mysql_error_number(opened->mysql))->refused)
		status = WEIR_INVALID;
	*store = NULL;
	if (status == WEIR_OK && (missing == NULL || missing->length == 0))
		*store = &opened->store;
	else
		store_close(&opened->store);
	return status;
}

enum weir_status weir_store_mysql_open(const struct weir_config *config, struct weir_store **store,
                                       struct weir_error *error)
{
	return store_new(config, NULL, store, error);
}

enum weir_status weir_store_mysql_open_existing(const struct weir_config *config, struct weir_text *missing,
                                                struct weir_store **store, struct weir_error *error)
{
	weir_text_clear(missing);
	return store_new(config, missing, store, error);
}
