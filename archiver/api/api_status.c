/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/status: the progress of limiter and archiver; /api/v1/zones; and the OpenAPI document. */
#include "archiver/api/api_resources.h"
#include "common/base/clock.h"

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

/* Columns: role, partition, epoch, checkpoint, next offset, clock, policy version; what follows is the role's own. */
static enum weir_status take_partition(void *context, const struct weir_sql_value *columns, unsigned count)
{
	static const char *const roles[] = {[WEIR_STORE_ROLE_LIMITER] = "limiter", [WEIR_STORE_ROLE_ARCHIVER] = "archiver"};
	static const char *const names[] = {"role",        "partition", "epoch",         "checkpoint",
	                                    "next_offset", "clock_ms",  "policy_version"};
	struct weir_json_writer *json = context;
	(void)count;
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, names[0], roles[columns[0].number]);
	for (int i = 1; i < 7; i++)
		weir_json_write_int(json, names[i], columns[i].number);
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

/* The last hour of each zone is found by the table's key, zone by zone; -1: there is none. */
#define NEWEST_HOUR                                                                                         \
	API_SELECT "COALESCE(MAX(newest), -1) FROM (WITH RECURSIVE zones (id) AS ("                             \
			   "SELECT MIN(zone_id) FROM zone_hourly UNION ALL "                                            \
			   "SELECT (SELECT MIN(h.zone_id) FROM zone_hourly AS h WHERE h.zone_id > zones.id) FROM zones" \
			   " WHERE zones.id IS NOT NULL) "                                                              \
			   "SELECT (SELECT MAX(h.hour_ms) FROM zone_hourly AS h WHERE h.zone_id = zones.id) AS newest"  \
			   " FROM zones) AS hours"

bool api_status_answer(struct api_call *call)
{
	struct weir_json_writer json = weir_json_writer(&call->reply->body);
	struct api_sql sql = {.count = 0};
	struct weir_error error;
	int64_t schema, policy, newest_ms;
	if (read_number(call, API_SELECT "MAX(version) FROM schema_version", &schema, &error) != WEIR_OK ||
	    read_number(call, API_SELECT "MAX(version) FROM policy_version", &policy, &error) != WEIR_OK ||
	    read_number(call, NEWEST_HOUR, &newest_ms, &error) != WEIR_OK)
		return api_store_failed(call->api, &call->fault, &error);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "version", WEIR_VERSION);
	weir_json_write_words(&json, "store", call->store->ops->name);
	weir_json_write_int(&json, "schema_version", schema);
	weir_json_write_int(&json, "policy_version", policy);
	weir_json_write_bool(&json, "hash_keys", api_hashes_keys(call->api));
	weir_json_write_int(&json, "now_ms", weir_wall_ms());
	if (newest_ms >= 0)
		weir_json_write_int(&json, "newest_hour_ms", newest_ms);
	else
		weir_json_write_null(&json, "newest_hour_ms");
	api_figures(call->api, &json);
	weir_json_write_array(&json, "partitions");
	/* By their places: the second one's name differs between the kinds of store. */
	api_sql_add(&sql, API_SELECT "* FROM partition_state WHERE role IN (1, 2) ORDER BY 1, 2");
	if (api_sql_run(&sql, call->store, take_partition, &json, &error) != WEIR_OK)
		return api_store_failed(call->api, &call->fault, &error);
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
	return true;
}
