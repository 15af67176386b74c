/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request in progress: its parameters, the store it reads, and helpers to build
 * the reply.
 */
#ifndef ARCHIVER_API_ANSWER_H
#define ARCHIVER_API_ANSWER_H

#include "archiver/api/api_parameters.h"
#include "archiver/api/api_zones.h"
#include "common/cluster/key_hash.h"
#include "common/http/http.h"
#include "common/json/json_writer.h"
#include "common/store/store.h"

struct api;

#define API_ALL_KEPT INT64_MIN

/* One request, on a worker. */
struct api_call {
	struct api *api;
	const struct weir_http_request *request;
	struct weir_http_reply *reply; /* its body is empty */
	struct weir_store *store;      /* NULL: the resource needs none, or can do without one that fails */
	struct api_parameters parameters;
	struct weir_span bucket; /* parameters.key as the store has it, where that is given */
	char digits[WEIR_KEY_HASH_BYTES];
	struct api_zone zone; /* of parameters.zone, where that is given */
	bool csv;
	struct api_fault fault;
};

/** What a resource does: fills the reply. @return false: call->fault says why there is none */
typedef bool api_answer(struct api_call *call);

/** The worker's store, opened if it is not yet. @return WEIR_IO and others: as opening it gave */
WEIR_MUST_USE enum weir_status api_store(struct api *api, unsigned worker, struct weir_store **store,
                                         struct weir_error *error);

/** A request, or a part of it, is done with the worker's store. */
void api_store_leave(struct api *api, unsigned worker);

/** The store did not do what it was asked for: logged, and 503. Always false. */
bool api_store_failed(struct api *api, struct api_fault *fault, const struct weir_error *error);

struct api_zones *api_zones_of(struct api *api);
/** Whether keys are stored as their hashes. */
bool api_hashes_keys(const struct api *api);
/** Writes the member "figures", where this process gives some. */
void api_figures(struct api *api, struct weir_json_writer *json);
/** Writes the member "troubles", likewise. */
void api_troubles(struct api *api, struct weir_json_writer *json);
/**
 * From when on a table has all its rows, as archiver.keep_* and the archive itself say: the first hour or day from then on,
 * as a whole. What is before may be deleted. API_ALL_KEPT: nothing is, as far as is known.
 *
 * @param call  with a store
 */
int64_t api_kept_from(const struct api_call *call, enum weir_archive_table table, int64_t grain_ms);
/** Writes it as the member "kept_from_ms". */
void api_write_kept_from(struct weir_json_writer *json, int64_t kept_from_ms);

/** The kind of store, whether it answers or not. */
const char *api_store_name(const struct api *api);

/** Whether nobody needs a token. */
bool api_is_open(const struct api *api);
/** Appends what a decision rests on. @return WEIR_END: this process cannot tell; else as struct api_options, why */
WEIR_MUST_USE enum weir_status api_why(struct api *api, const char *id, struct weir_text *json,
                                       struct weir_error *error);

/** The reply to what is refused. */
void api_refuse(struct weir_http_reply *reply, unsigned status, const char *parameter, const char *message);

/* ---- SQL ---- */

enum { API_SQL_VALUES_MAX = 24 };

/* A statement as it is put together; zero-initialised is empty. */
struct api_sql {
	struct weir_text text;
	struct weir_sql_value values[API_SQL_VALUES_MAX];
	unsigned count;
};

#define API_SELECT WEIR_SQL_SELECT

void api_sql_add(struct api_sql *sql, const char *words);
/** Words with one ? and its value. */
void api_sql_number(struct api_sql *sql, const char *words, int64_t value);
void api_sql_text(struct api_sql *sql, const char *words, struct weir_span value);
/** Runs it, and is empty then. */
WEIR_MUST_USE enum weir_status api_sql_run(struct api_sql *sql, struct weir_store *store, weir_sql_row *each,
                                           void *context, struct weir_error *error);

/* ---- values ---- */

/** NULL as null, a number, or a text as JSON's string. */
void api_json_value(struct weir_json_writer *json, const char *name, const struct weir_sql_value *value);
/**
 * NULL as nothing, a number, or a text, quoted where RFC 4180 asks for it.
 *
 * @param spreadsheet  what a spreadsheet would take for a formula stands behind an apostrophe, at a text's beginning
 *                     and within it, where a semicolon or a tab may start a cell: keys are what strangers sent
 */
void api_csv_value(struct weir_text *text, const struct weir_sql_value *value, bool spreadsheet);
/**
 * A time of CSV: Unix ms for programs; for a spreadsheet UTC as it reads times, "2024-11-21 10:00:00.250", or "no end".
 */
void api_csv_time(struct weir_text *text, int64_t time_ms, bool spreadsheet);
/** Two or more with commas between, and a line's end. */
void api_csv_line(struct weir_text *text, const struct weir_sql_value *values, unsigned count, bool spreadsheet);

#endif
