/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/status: the progress of limiter and archiver; /api/v1/zones; and the OpenAPI document. */
#include "archiver/api/api_resources.h"
#include "archiver/ledger/ledger.h"
#include "common/base/clock.h"
#include "common/store/record_base.h"

#include <inttypes.h>

/* openapi.json, made into C by the build. */
extern const unsigned char archiver_openapi[];
extern const unsigned long archiver_openapi_bytes;

bool api_openapi_answer(struct api_call *call)
{
	weir_text_append(&call->reply->body, archiver_openapi, archiver_openapi_bytes);
	return true;
}

bool api_zones_answer(struct api_call *call)
{
	struct weir_json_writer json = weir_json_writer(&call->reply->body);
	struct weir_error error;
	weir_json_write_object(&json, NULL);
	if (api_zones_describe(api_zones_of(call->api), call->store, &json, &error) != WEIR_OK)
		return api_store_failed(call->api, &call->fault, &error);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
	return true;
}

static void write_number(struct weir_json_writer *json, const char *name, bool known, int64_t number)
{
	if (known)
		weir_json_write_int(json, name, number);
	else
		weir_json_write_null(json, name);
}

/* Where a state stands in the numbers of records, which limiters and archivers share. @return false: it does not say */
static bool next_number(int64_t role, int64_t next_offset, struct weir_span extra, uint64_t *number)
{
	struct weir_error error;
	if (role == WEIR_STORE_ROLE_ARCHIVER)
		return ledger_next_number(extra, number);
	if (weir_record_base_read(&extra, number, &error) != WEIR_OK)
		return false;
	*number += (uint64_t)next_offset;
	return true;
}

/* Columns: role, partition, epoch, checkpoint, next offset, clock, policy version; what follows is the role's own. */
static enum weir_status take_partition(void *context, const struct weir_sql_value *columns, unsigned count)
{
	static const char *const roles[] = {[WEIR_STORE_ROLE_LIMITER] = "limiter", [WEIR_STORE_ROLE_ARCHIVER] = "archiver"};
	static const char *const names[] = {"role",        "partition", "epoch",         "checkpoint",
	                                    "next_offset", "clock_ms",  "policy_version"};
	struct weir_json_writer *json = context;
	struct weir_span extra = {0};
	uint64_t number = 0;
	if (count > 7 && columns[7].type == WEIR_SQL_TEXT)
		extra = columns[7].text;
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, names[0], roles[columns[0].number]);
	for (int i = 1; i < 7; i++)
		weir_json_write_int(json, names[i], columns[i].number);
	bool known = next_number(columns[0].number, columns[4].number, extra, &number);
	write_number(json, "next_number", known, (int64_t)number);
	weir_json_write_end(json);
	return WEIR_OK;
}

static enum weir_status take_number(void *context, const struct weir_sql_value *columns, unsigned count)
{
	(void)count;
	*(int64_t *)context = columns[0].type == WEIR_SQL_NUMBER ? columns[0].number : 0;
	return WEIR_OK;
}

static enum weir_status read_number(struct api_call *call, const char *words, int64_t *number, struct weir_error *error)
{
	struct api_sql sql = {.count = 0};
	*number = 0;
	api_sql_add(&sql, words);
	return api_sql_run(&sql, call->store, take_number, number, error);
}

/* What the store knows: null where it cannot be asked. */
struct stored {
	int64_t schema, policy, newest_ms;
};

static enum weir_status read_stored(struct api_call *call, struct stored *stored, struct weir_error *error)
{
	enum weir_status status = read_number(call, API_SELECT "MAX(version) FROM schema_version", &stored->schema, error);
	if (status == WEIR_OK)
		status = read_number(call, API_SELECT "MAX(version) FROM policy_version", &stored->policy, error);
	return status == WEIR_OK ? read_number(call, WEIR_SQL_NEWEST_HOUR(""), &stored->newest_ms, error) : status;
}

static enum weir_status write_partitions(struct api_call *call, struct weir_json_writer *json, struct weir_error *error)
{
	struct api_sql sql = {.count = 0};
	enum weir_status status = WEIR_OK;
	weir_json_write_array(json, "partitions");
	/* By their places: the second one's name differs between the kinds of store. */
	api_sql_add(&sql, API_SELECT "* FROM partition_state WHERE role IN (1, 2) ORDER BY 1, 2");
	if (call->store != NULL)
		status = api_sql_run(&sql, call->store, take_partition, json, error);
	weir_text_deinit(&sql.text);
	weir_json_write_end(json);
	return status;
}

/* It is asked most where the store is away: then it says so, and what this process knows. */
bool api_status_answer(struct api_call *call)
{
	struct weir_json_writer json = weir_json_writer(&call->reply->body);
	struct weir_error error;
	struct stored stored = {.newest_ms = -1};
	bool known = call->store != NULL;
	if (known && read_stored(call, &stored, &error) != WEIR_OK)
		return api_store_failed(call->api, &call->fault, &error);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "version", WEIR_VERSION);
	weir_json_write_words(&json, "store", api_store_name(call->api));
	weir_json_write_words(&json, "store_error", known ? NULL : "the store is down or too slow");
	write_number(&json, "schema_version", known, stored.schema);
	write_number(&json, "policy_version", known, stored.policy);
	weir_json_write_bool(&json, "hash_keys", api_hashes_keys(call->api));
	weir_json_write_int(&json, "now_ms", weir_wall_ms());
	write_number(&json, "newest_hour_ms", stored.newest_ms >= 0, stored.newest_ms);
	api_troubles(call->api, &json);
	api_figures(call->api, &json);
	if (write_partitions(call, &json, &error) != WEIR_OK)
		return api_store_failed(call->api, &call->fault, &error);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
	return true;
}
