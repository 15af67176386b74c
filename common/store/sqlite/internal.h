/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the SQLite store share: the handle, its statements, the schema. */
#ifndef WEIR_COMMON_STORE_SQLITE_INTERNAL_H
#define WEIR_COMMON_STORE_SQLITE_INTERNAL_H

#include "common/base/text.h"
#include "common/store/sqlite/store_sqlite_database.h"
#include "common/store/store.h"

enum weir_store_statement {
	WEIR_STORE_TAKE,
	WEIR_STORE_STATE,
	WEIR_STORE_DROP_UNCOMMITTED,
	WEIR_STORE_COMMIT,
	WEIR_STORE_SEGMENT_PUT,
	WEIR_STORE_SEGMENT_READ,
	WEIR_STORE_SEGMENT_LIST,
	WEIR_STORE_SEGMENT_CLEAN,
	WEIR_STORE_POLICY_PUT,
	WEIR_STORE_POLICY_GET,
	WEIR_STORE_POLICY_EACH,
	WEIR_STORE_ZONE_REMOVE,
	WEIR_STORE_ZONE_PUT,
	WEIR_STORE_NOTE_GET,
	WEIR_STORE_NOTE_PUT,
	WEIR_STORE_NOTE_REMOVE,
	WEIR_STORE_ADD_HOURLY,
	WEIR_STORE_ADD_DAILY,
	WEIR_STORE_ADD_TOTAL,
	WEIR_STORE_ADD_DECISION,
	WEIR_STORE_ADD_SHADOW,
	WEIR_STORE_ADD_EVENT,
	WEIR_STORE_NEXT_HOURLY,
	WEIR_STORE_NEXT_EVENTS,
	WEIR_STORE_REMOVE_HOURLY,
	WEIR_STORE_REMOVE_EVENTS,
	WEIR_STORE_STATEMENTS,
};

/* The SQL of each; parameters in the order of their use. */
extern const char *const weir_store_statements[WEIR_STORE_STATEMENTS];

/* How far the removal of old rows has come in a table whose key begins with the bucket. */
struct weir_store_walk {
	uint64_t zone;
	struct weir_text bucket; /* none of zone 0: before the first */
	bool is_unfinished;      /* this bucket may have more that is too old */
};

struct weir_store_sqlite {
	struct weir_store store; /* first, so that a pointer to it is one to this */
	struct weir_database *database;
	struct weir_text extra; /* of the state read last */
	struct weir_store_walk walks[WEIR_ARCHIVE_TABLES];
};

static inline struct weir_store_sqlite *weir_store_sqlite(struct weir_store *store)
{
	return (struct weir_store_sqlite *)store;
}

/** The steps by which this program makes its tables (schema.h). */
struct weir_span weir_store_schema_steps(void);

/**
 * Makes the tables, or brings older ones up to date: all steps, or none.
 *
 * @return WEIR_OK; WEIR_NEWER; WEIR_INVALID: another program's database; WEIR_IO, where a step fails too
 */
WEIR_MUST_USE enum weir_status weir_store_schema_upgrade(struct weir_database *database, const char *path,
                                                         struct weir_span schema, struct weir_error *error);

/** What is said of a database without tables. @return WEIR_AGAIN: a process that starts may just be at it */
enum weir_status weir_store_schema_empty(const char *path, struct weir_error *error);

/** Whether the tables are as the steps make them. WEIR_NEWER; WEIR_INVALID: older, or another program's database. */
WEIR_MUST_USE enum weir_status weir_store_schema_check(struct weir_database *database, const char *path,
                                                       struct weir_span schema, struct weir_error *error);

/** Checks that the role's epoch is the given one; *checkpoint is its current one. WEIR_FENCED where it is not. */
WEIR_MUST_USE enum weir_status weir_store_check_epoch(struct weir_store_sqlite *store, int role, uint32_t partition,
                                                      uint64_t epoch, uint64_t *checkpoint, struct weir_error *error);

/* ---- store_sqlite_segments.c: members of weir_store_ops ---- */

enum weir_status weir_store_write_segments(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                           const struct weir_segment_blob *blobs, size_t count,
                                           struct weir_error *error);
enum weir_status weir_store_read_segments(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                          uint64_t at_least, const uint32_t *segments, size_t count,
                                          enum weir_status (*each)(void *context, const struct weir_segment_blob *blob),
                                          void *context, struct weir_error *error);
enum weir_status weir_store_list_segments(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                          uint64_t checkpoint,
                                          void (*each)(void *context, uint32_t segment, uint32_t deltas,
                                                       uint64_t base_bytes, uint64_t delta_bytes),
                                          void *context, struct weir_error *error);
enum weir_status weir_store_clean(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                  struct weir_error *error);

/* ---- store_sqlite_policy.c ---- */

enum weir_status weir_store_policy_put(struct weir_store *store, uint64_t version, struct weir_span text,
                                       struct weir_error *error);
enum weir_status weir_store_policy_each(struct weir_store *store, uint64_t first,
                                        enum weir_status (*each)(void *context, uint64_t version,
                                                                 struct weir_span text),
                                        void *context, struct weir_error *error);

/* ---- store_sqlite_archive.c ---- */

/** Adds rows, in a transaction of the caller's. */
WEIR_MUST_USE enum weir_status weir_store_add_batch(struct weir_store_sqlite *store,
                                                    const struct weir_archive_batch *batch, struct weir_error *error);
enum weir_status weir_store_forget(struct weir_store *store, const struct weir_archive_bucket *bucket,
                                   struct weir_archive_removed *removed, bool *more, struct weir_error *error);
enum weir_status weir_store_query(struct weir_store *store, const char *sql, const struct weir_sql_value *parameters,
                                  unsigned count, weir_sql_row *each, void *context, struct weir_error *error);

/* ---- store_sqlite_keep.c ---- */

enum weir_status weir_store_keep(struct weir_store *store, const int64_t keep_ms[WEIR_ARCHIVE_TABLES], int64_t now_ms,
                                 bool *more, struct weir_error *error);

#endif
