/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /api/v1/held: the times in which a key was blocked, joined where they touch.
 *
 * A block holds until its end, or until the next decision of its key in the log
 * that is enforced: a lift, an allowance, another block. That one's time may be a
 * little before the block's (an operator's clock): so the rows are walked in the
 * log's order, from a day before what is asked. What held when those begin is in
 * the last rows before them, and in the few rows without a key, which are read
 * from the first one on.
 */
#include "archiver/api/api_resources.h"
#include "common/base/alloc.h"
#include "common/store/archive.h"

#include <inttypes.h>
#include <stdlib.h>

enum { TIMES_MAX = 10000 };

/* Columns: partition, at, until, action is "block", bucket is given. */
enum { COLUMN_PARTITION, COLUMN_AT, COLUMN_UNTIL, COLUMN_BLOCKS, COLUMN_OWN };

struct held_time {
	int64_t from_ms, to_ms;
};

struct held {
	int64_t from_ms, to_ms; /* what is asked */
	struct held_time *times;
	size_t count;
	bool more; /* than TIMES_MAX */
	bool open; /* a block's end is not known yet: */
	int64_t partition;
	struct held_time last;
};

static void take_time(struct held *held, struct held_time time)
{
	if (time.from_ms < held->from_ms)
		time.from_ms = held->from_ms;
	if (time.to_ms > held->to_ms)
		time.to_ms = held->to_ms;
	if (time.from_ms >= time.to_ms)
		return;
	if (held->count == TIMES_MAX)
		held->more = true;
	else
		held->times[held->count++] = time;
}

static enum weir_status take_row(void *context, const struct weir_sql_value *columns, unsigned count)
{
	struct held *held = context;
	int64_t at_ms = columns[COLUMN_AT].number;
	(void)count;
	if (held->open && held->partition == columns[COLUMN_PARTITION].number) {
		held->last.to_ms = at_ms < held->last.to_ms ? at_ms : held->last.to_ms;
		take_time(held, held->last);
		held->open = false;
	}
	if (columns[COLUMN_BLOCKS].number == 0)
		return WEIR_OK;
	if (held->open)
		take_time(held, held->last);
	held->open = true;
	held->partition = columns[COLUMN_PARTITION].number;
	held->last = (struct held_time){at_ms, columns[COLUMN_UNTIL].number};
	return WEIR_OK;
}

/* ---- what is read ---- */

/*
 * The lift of a zone that a policy removes or puts into shadow mode has no bucket, and is for all of them in its
 * partition. It may end a block of long before, so these have no lower bound: a policy gives one a partition at most.
 */
static void add_rows(const struct api_call *call, struct api_sql *sql, bool own, const char *bound)
{
	api_sql_add(sql, "SELECT partition_id, log_offset, pair, at_ms, until_ms, action FROM decision_history");
	weir_text_printf(&sql->text, " WHERE zone = '%s'", call->zone.name);
	if (own)
		api_sql_text(sql, " AND bucket = ?", call->bucket);
	else
		api_sql_add(sql, " AND bucket IS NULL");
	if (bound != NULL)
		api_sql_number(sql, bound, call->parameters.from_ms - WEIR_DAY_MS);
	api_sql_add(sql, " AND mode = 'enforce' AND action <> 'override'");
}

static enum weir_status read_rows(const struct api_call *call, struct held *held, struct weir_error *error)
{
	struct api_sql sql = {.count = 0};
	api_sql_add(&sql, API_SELECT "partition_id, at_ms, until_ms, action = 'block' FROM (SELECT * FROM (");
	add_rows(call, &sql, true, " AND at_ms < ?");
	api_sql_add(&sql, " ORDER BY at_ms DESC, partition_id DESC, log_offset DESC, pair DESC LIMIT 16) AS before_it");
	for (int own = 1; own >= 0; own--) {
		api_sql_add(&sql, " UNION ALL SELECT * FROM (");
		add_rows(call, &sql, own == 1, own == 1 ? " AND at_ms >= ?" : NULL);
		api_sql_number(&sql, " AND at_ms < ?", call->parameters.to_ms);
		weir_text_printf(&sql.text, ") AS %s", own == 1 ? "of_it" : "of_all");
	}
	api_sql_add(&sql, ") AS found ORDER BY partition_id, log_offset, pair");
	return api_sql_run(&sql, call->store, take_row, held, error);
}

static int by_begin(const void *a, const void *b)
{
	const struct held_time *one = a, *other = b;
	return (one->from_ms > other->from_ms) - (one->from_ms < other->from_ms);
}

static void join_times(struct held *held)
{
	size_t kept = 0;
	qsort(held->times, held->count, sizeof *held->times, by_begin);
	for (size_t i = 0; i < held->count; i++) {
		struct held_time *last = kept > 0 ? &held->times[kept - 1] : NULL;
		if (last == NULL || held->times[i].from_ms > last->to_ms)
			held->times[kept++] = held->times[i];
		else if (held->times[i].to_ms > last->to_ms)
			last->to_ms = held->times[i].to_ms;
	}
	held->count = kept;
}

/* ---- the answer ---- */

static bool settle(struct api_call *call)
{
	const struct api_parameters *asked = &call->parameters;
	static const enum api_parameter needed[] = {API_KEY, API_FROM, API_TO};
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if ((asked->given & API_BIT(needed[i])) == 0)
			return api_fault_set(&call->fault, 400, api_parameter_name(needed[i]), "missing: expected a %s",
			                     needed[i] == API_KEY ? "key" : "time");
	return true;
}

static void write_answer(struct api_call *call, const struct held *held)
{
	struct weir_json_writer json = weir_json_writer(&call->reply->body);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "zone", call->zone.name);
	weir_json_write_string(&json, "key", call->parameters.key);
	weir_json_write_int(&json, "from_ms", held->from_ms);
	weir_json_write_int(&json, "to_ms", held->to_ms);
	weir_json_write_array(&json, "times");
	for (size_t i = 0; i < held->count; i++) {
		weir_json_write_object(&json, NULL);
		weir_json_write_int(&json, "from_ms", held->times[i].from_ms);
		weir_json_write_int(&json, "to_ms", held->times[i].to_ms);
		weir_json_write_end(&json);
	}
	weir_json_write_end(&json);
	weir_json_write_bool(&json, "more", held->more);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}

bool api_held_answer(struct api_call *call)
{
	struct held held = {.from_ms = call->parameters.from_ms, .to_ms = call->parameters.to_ms};
	struct weir_error error;
	if (!settle(call))
		return false;
	held.times = weir_alloc(TIMES_MAX, sizeof *held.times);
	bool good = read_rows(call, &held, &error) == WEIR_OK;
	if (good) {
		if (held.open)
			take_time(&held, held.last);
		join_times(&held);
		write_answer(call, &held);
	}
	free(held.times);
	return good || api_store_failed(call->api, &call->fault, &error);
}
