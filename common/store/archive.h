/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the archiver keeps, as rows; and SQL for whoever reads them.
 *
 * The tables are in deploy/mysql/schema.sql, for SQLite likewise. All times are
 * Unix ms, UTC.
 */
#ifndef WEIR_COMMON_ARCHIVE_H
#define WEIR_COMMON_ARCHIVE_H

#include "common/base/span.h"
#include "common/base/status.h"

enum { WEIR_HOUR_MS = 3600 * 1000, WEIR_DAY_MS = 24 * WEIR_HOUR_MS };

/** The beginning of the span of so many ms that holds a time; before 1970, too. */
static inline int64_t weir_begin_of(int64_t time_ms, int64_t span_ms)
{
	int64_t rest = time_ms % span_ms;
	return time_ms - (rest < 0 ? rest + span_ms : rest);
}

static inline int64_t weir_day_of(int64_t time_ms)
{
	return weir_begin_of(time_ms, WEIR_DAY_MS);
}

/* What is added to a bucket's count of an hour, or of a day. */
struct weir_archive_count {
	uint32_t zone;
	struct weir_span bucket;
	int64_t begin_ms; /* of the hour, of the day */
	uint64_t passed, blocked, late;
};

/*
 * What is added to a zone's count of an hour, of all keys together. Who adds names the lowest of its partitions: so
 * archivers that store at the same time do not wait for each other's rows.
 */
struct weir_archive_total {
	uint32_t zone;
	int64_t hour_ms;
	uint32_t partition;
	uint64_t passed, blocked, late;
};

/* Where in the log something happened: its id is partition-offset-pair. */
struct weir_archive_id {
	uint32_t partition;
	uint64_t offset; /* of the events topic */
	uint32_t pair;   /* of the frame's (event, zone) pairs, or of the record's decisions */
};

/* A decision; texts and numbers that it has not are absent. One that is there already stays as it is. */
struct weir_archive_decision {
	struct weir_archive_id id;
	int64_t at_ms, until_ms;
	struct weir_span zone, bucket, action, mode;
	bool limited; /* by a limit: the next four are set; else by an order: the two after them may be */
	struct weir_span algorithm;
	int64_t rate, window_ms, held;
	struct weir_span ordered_by, reason;
	uint32_t nth; /* which block of the key it is; 0: its zone has no list of blocks */
};

/* One event in a zone with "history". */
struct weir_archive_event {
	struct weir_archive_id id;
	uint32_t zone;
	struct weir_span bucket;
	int64_t at_ms;
	bool blocked;
	struct weir_span fields; /* that the zone's "history" names, a JSON object; at NULL: none */
};

/* Everything borrowed. Sorted as the tables are, rows go in faster; they need not be. */
struct weir_archive_batch {
	const struct weir_archive_count *hours; /* each (zone, bucket, hour) once */
	size_t hour_count;
	const struct weir_archive_count *days; /* of these hours */
	size_t day_count;
	const struct weir_archive_total *totals; /* of these hours */
	size_t total_count;
	const struct weir_archive_decision *decisions;
	size_t decision_count;
	const struct weir_archive_decision *shadows; /* decisions of zones in shadow mode */
	size_t shadow_count;
	const struct weir_archive_event *events;
	size_t event_count;
};

/**
 * Adds hours up to days. Hours of a key that lie beside each other become one row, so sorted ones become the fewest.
 *
 * @param days  room for as many
 * @return how many they are
 */
size_t weir_archive_days(const struct weir_archive_count *hours, size_t count, struct weir_archive_count *days);

/* The tables that grow. */
enum weir_archive_table {
	WEIR_ARCHIVE_HOURLY,
	WEIR_ARCHIVE_DAILY,
	WEIR_ARCHIVE_DECISIONS,
	WEIR_ARCHIVE_SHADOW, /* decisions that nobody enforces: in a table of their own, so that none counts them as blocks */
	WEIR_ARCHIVE_EVENTS,
	WEIR_ARCHIVE_KEYED, /* so many have a key in every row; the others sum over keys */
	WEIR_ARCHIVE_TOTALS = WEIR_ARCHIVE_KEYED,
	WEIR_ARCHIVE_TABLES,
};

struct weir_archive_name {
	const char *table, *time; /* the column that rows' age goes by */
	bool by_name;             /* its zones are names, in the column zone; else numbers, in zone_id */
};
/** By enum weir_archive_table. */
extern const struct weir_archive_name weir_archive_names[WEIR_ARCHIVE_TABLES];

/* One bucket as the tables have it: the key, or its hash; decisions go by the zone's name. Borrowed. */
struct weir_archive_bucket {
	uint32_t zone;
	const char *zone_name;
	struct weir_span bucket;
};

/* Rows of a bucket that were removed. */
struct weir_archive_removed {
	uint64_t rows[WEIR_ARCHIVE_KEYED];
	uint64_t locks; /* zone_bucket_lock's: of check_velocity */
};

/* ---- reading, by SQL that both kinds of store take: parameters are ?, whatever is summed is cast AS SIGNED ---- */

/**
 * How every statement begins. A server ends one that takes longer: MariaDB by what only it takes for more than a
 * comment, MySQL by a hint.
 */
#define WEIR_SQL_SELECT "/*M! SET STATEMENT max_statement_time = 8 FOR */ SELECT /*+ MAX_EXECUTION_TIME(8000) */ "

/* The last hour of each zone is found by the table's key, zone by zone; -1: there is none. `which` narrows them down. */
#define WEIR_SQL_NEWEST_HOUR(which)                                                                      \
	WEIR_SQL_SELECT                                                                                      \
	"COALESCE(MAX(newest), -1) FROM (WITH RECURSIVE zones (id) AS ("                                     \
	"SELECT MIN(zone_id) FROM zone_hourly UNION ALL "                                                    \
	"SELECT (SELECT MIN(h.zone_id) FROM zone_hourly AS h WHERE h.zone_id > zones.id) FROM zones"         \
	" WHERE zones.id IS NOT NULL) "                                                                      \
	"SELECT (SELECT MAX(h.hour_ms) FROM zone_hourly AS h WHERE h.zone_id = zones.id" which ") AS newest" \
	" FROM zones) AS hours"

/*
 * Whether something came behind a decision `of` in the log, whatever its time says: an event's time may be a little ahead
 * of the operator's who lifts its block. How little is bounded here, so that SQLite does not read a bucket with a long
 * history whole. MySQL and MariaDB do, and are told to read no more than that: by their statistics, which may be old, they
 * take the index of the whole zone for as good. A removed zone's lift has no bucket and is for all of them in its partition.
 */
#define WEIR_SQL_LATER(of, bucket)                                                                                \
	"EXISTS (SELECT 1 FROM decision_history AS n /*! FORCE INDEX (decision_bucket) */ WHERE n.zone = " of ".zone" \
	" AND n.bucket " bucket " AND n.at_ms >= " of                                                                 \
	".at_ms - 86400000 AND n.mode = 'enforce' AND n.action <> 'override'"                                         \
	" AND n.partition_id = " of ".partition_id AND (n.log_offset > " of ".log_offset"                             \
	" OR (n.log_offset = " of ".log_offset AND n.pair > " of ".pair)))"

enum weir_sql_type { WEIR_SQL_NULL, WEIR_SQL_NUMBER, WEIR_SQL_TEXT };

struct weir_sql_value {
	enum weir_sql_type type;
	int64_t number;
	struct weir_span text;
};

static inline struct weir_sql_value weir_sql_number(int64_t number)
{
	return (struct weir_sql_value){.type = WEIR_SQL_NUMBER, .number = number};
}

static inline struct weir_sql_value weir_sql_text(struct weir_span text)
{
	return (struct weir_sql_value){.type = WEIR_SQL_TEXT, .text = text};
}

/** A row; its texts are borrowed until it returns. Anything but WEIR_OK ends the reading and is passed on. */
typedef enum weir_status weir_sql_row(void *context, const struct weir_sql_value *columns, unsigned count);

#endif
