/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the MySQL store share: the handle, its statements, the schema. */
#ifndef WEIR_COMMON_STORE_MYSQL_INTERNAL_H
#define WEIR_COMMON_STORE_MYSQL_INTERNAL_H

#include "common/base/text.h"
#include "common/store/mysql/store_mysql_database.h"
#include "common/store/mysql/store_mysql_written.h"
#include "common/store/store.h"

enum {
	/* Segments that one statement reads. */
	WEIR_MYSQL_SEGMENTS = 32,
	/* Rows that one statement writes: as many as fit of the larger, the rest by the smaller. */
	WEIR_MYSQL_ROWS = 32,
	WEIR_MYSQL_FEW_ROWS = 8,
	/* Rows of the archive that one statement adds: of the longest keys, 300 KB. */
	WEIR_MYSQL_ARCHIVE_ROWS = 256,
	/*
	 * A transaction that removes blobs: a server's binary log has all that it removes, a group of servers refuses more
	 * than 150 MB of it, and whoever waits for the answer does so for 10 s.
	 */
	WEIR_MYSQL_REMOVE_ROWS = 256,
	WEIR_MYSQL_REMOVE_BYTES = 32 << 20,
};

enum weir_mysql_statement_number {
	WEIR_MYSQL_TAKE,
	WEIR_MYSQL_STATE,
	WEIR_MYSQL_EPOCH,
	WEIR_MYSQL_EPOCH_LOCKED,
	WEIR_MYSQL_COMMIT,
	WEIR_MYSQL_SEGMENT_PUT,
	WEIR_MYSQL_SEGMENT_PUT_FEW,
	WEIR_MYSQL_SEGMENT_PUT_MANY,
	WEIR_MYSQL_SEGMENT_BASE,
	WEIR_MYSQL_SEGMENT_BASES,
	WEIR_MYSQL_SEGMENT_READ,
	WEIR_MYSQL_SEGMENTS_READ,
	WEIR_MYSQL_SEGMENT_LIST,
	WEIR_MYSQL_SEGMENTS_UNCOMMITTED,
	WEIR_MYSQL_SEGMENTS_BEHIND,
	WEIR_MYSQL_SEGMENTS_REMOVE,
	WEIR_MYSQL_POLICY_PUT,
	WEIR_MYSQL_POLICY_GET,
	WEIR_MYSQL_POLICY_EACH,
	WEIR_MYSQL_ZONE_REMOVE,
	WEIR_MYSQL_ZONE_PUT,
	WEIR_MYSQL_ZONE_NEWER,
	WEIR_MYSQL_NOTE_GET,
	WEIR_MYSQL_NOTE_PUT,
	WEIR_MYSQL_NOTE_REMOVE,
	WEIR_MYSQL_ADD_HOURLY,
	WEIR_MYSQL_ADD_HOURLY_MANY,
	WEIR_MYSQL_ADD_DAILY,
	WEIR_MYSQL_ADD_DAILY_MANY,
	WEIR_MYSQL_ADD_TOTAL,
	WEIR_MYSQL_ADD_TOTAL_MANY,
	WEIR_MYSQL_ADD_DECISION,
	WEIR_MYSQL_ADD_DECISION_MANY,
	WEIR_MYSQL_ADD_SHADOW,
	WEIR_MYSQL_ADD_SHADOW_MANY,
	WEIR_MYSQL_ADD_EVENT,
	WEIR_MYSQL_ADD_EVENT_MANY,
	WEIR_MYSQL_STATEMENTS,
};

/* The SQL of each; parameters in the order of their use. */
extern const struct weir_mysql_sql weir_mysql_statements[WEIR_MYSQL_STATEMENTS];

struct weir_store_mysql {
	struct weir_store store; /* first, so that a pointer to it is one to this */
	struct weir_mysql *mysql;
	struct weir_text extra; /* of the state read last */
	struct weir_text blobs; /* of the segments read last */
	struct weir_mysql_written written;
};

static inline struct weir_store_mysql *weir_store_mysql(struct weir_store *store)
{
	return (struct weir_store_mysql *)store;
}

/** The steps by which this program makes its tables (schema.h). */
struct weir_span weir_mysql_schema_steps(void);

/**
 * Makes the tables, or brings older ones up to date, a step after the other: one that fails leaves those before it done.
 *
 * @return WEIR_OK; WEIR_NEWER; WEIR_INVALID: another program's database; WEIR_IO, where a step fails too
 */
WEIR_MUST_USE enum weir_status weir_mysql_schema_upgrade(struct weir_mysql *mysql, struct weir_span schema,
                                                         struct weir_error *error);

/** Makes nothing: appends what an upgrade would, in words; nothing where the tables are up to date. */
WEIR_MUST_USE enum weir_status weir_mysql_schema_inspect(struct weir_mysql *mysql, struct weir_span schema,
                                                         struct weir_text *missing, struct weir_error *error);

/**
 * Checks that the role's epoch is the given one; *checkpoint is its current one. WEIR_FENCED where it is not.
 *
 * @param locked  in a transaction that writes: nobody takes the partition, or commits, until the transaction has ended
 */
WEIR_MUST_USE enum weir_status weir_mysql_check_epoch(struct weir_mysql *mysql, bool locked, int role,
                                                      uint32_t partition, uint64_t epoch, uint64_t *checkpoint,
                                                      struct weir_error *error);

/**
 * Removes blobs of a partition, WEIR_MYSQL_REMOVE_ROWS and WEIR_MYSQL_REMOVE_BYTES at most but one at least, in a
 * transaction of the caller's that holds the partition's row.
 *
 * @param which  the statement that finds them, of a partition and its current checkpoint
 * @param found  how many there were to remove; 0: there are no more
 */
WEIR_MUST_USE enum weir_status weir_mysql_remove_blobs(struct weir_mysql *mysql, enum weir_mysql_statement_number which,
                                                       uint32_t partition, uint64_t current, size_t *found,
                                                       struct weir_error *error);

/* ---- store_mysql_commit.c, _segments.c, _read.c, _policy.c: members of weir_store_ops ---- */

enum weir_status weir_mysql_commit(struct weir_store *store, int role, const struct weir_partition_state *states,
                                   size_t count, const char *const *names, const struct weir_span *values,
                                   size_t note_count, struct weir_error *error);
enum weir_status weir_mysql_note_put(struct weir_store *store, const char *name, struct weir_span value,
                                     struct weir_error *error);
enum weir_status weir_mysql_note_get(struct weir_store *store, const char *name, char **value, size_t *length,
                                     struct weir_error *error);
enum weir_status weir_mysql_write_segments(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                           const struct weir_segment_blob *blobs, size_t count,
                                           struct weir_error *error);
enum weir_status weir_mysql_clean(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                  struct weir_error *error);
enum weir_status weir_mysql_read_segments(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                          uint64_t at_least, const uint32_t *segments, size_t count,
                                          enum weir_status (*each)(void *context, const struct weir_segment_blob *blob),
                                          void *context, struct weir_error *error);
enum weir_status weir_mysql_list_segments(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                          uint64_t checkpoint,
                                          void (*each)(void *context, uint32_t segment, uint32_t deltas,
                                                       uint64_t base_bytes, uint64_t delta_bytes),
                                          void *context, struct weir_error *error);
enum weir_status weir_mysql_policy_put(struct weir_store *store, uint64_t version, struct weir_span text,
                                       struct weir_error *error);
enum weir_status weir_mysql_policy_each(struct weir_store *store, uint64_t first,
                                        enum weir_status (*each)(void *context, uint64_t version,
                                                                 struct weir_span text),
                                        void *context, struct weir_error *error);

enum weir_status weir_mysql_archive(struct weir_store *store, int role, const struct weir_archive_batch *batch,
                                    const struct weir_partition_state *states, size_t count, const char *const *names,
                                    const struct weir_span *values, size_t note_count, struct weir_error *error);

/* ---- store_mysql_archive.c ---- */

/** Adds rows, in a transaction of the caller's. */
WEIR_MUST_USE enum weir_status weir_mysql_add_batch(struct weir_mysql *mysql, const struct weir_archive_batch *batch,
                                                    struct weir_error *error);
enum weir_status weir_mysql_keep(struct weir_store *store, const int64_t keep_ms[WEIR_ARCHIVE_TABLES], int64_t now_ms,
                                 bool *more, struct weir_error *error);
enum weir_status weir_mysql_forget(struct weir_store *store, const struct weir_archive_bucket *bucket,
                                   struct weir_archive_removed *removed, bool *more, struct weir_error *error);
enum weir_status weir_mysql_query(struct weir_store *store, const char *sql, const struct weir_sql_value *parameters,
                                  unsigned count, weir_sql_row *each, void *context, struct weir_error *error);

#endif
