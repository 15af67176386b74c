/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy as canonical JSON: every default filled in, members sorted, no
 * blanks. Two policies with the same text are the same policy, and reading the
 * text gives that policy again.
 */
#include "common/base/alloc.h"
#include "common/json/units.h"
#include "common/policy/internal.h"

#include <stdlib.h>
#include <string.h>

static void set_time(json_t *object, const char *name, int64_t duration_ms)
{
	char buffer[24];
	json_object_set_new(object, name, json_string(weir_format_duration(duration_ms, buffer, sizeof buffer)));
}

/* A list where each block of a key may last longer than the one before. */
static void set_blocks(json_t *object, const struct weir_zone *zone)
{
	char buffer[24];
	if (zone->block_list_count == 0) {
		set_time(object, "block_for", zone->block_for_ms);
		return;
	}
	json_t *list = json_array();
	for (uint32_t i = 0; i < zone->block_list_count; i++)
		json_array_append_new(list, json_string(weir_format_duration(zone->block_list_ms[i], buffer, sizeof buffer)));
	json_object_set_new(object, "block_for", list);
	set_time(object, "forgive_after", zone->forgive_after_ms);
}

static void set_int(json_t *object, const char *name, int64_t value)
{
	json_object_set_new(object, name, json_integer(value));
}

static json_t *key_json(const struct weir_zone *zone)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < zone->key_count; i++) {
		const struct weir_key_field *field = &zone->key[i];
		json_t *name = json_string(field->field);
		if (field->grouped) {
			json_t *object = json_object();
			json_object_set_new(object, "field", name);
			set_int(object, "prefix4", field->prefix4);
			set_int(object, "prefix6", field->prefix6);
			name = object;
		}
		json_array_append_new(list, name);
	}
	return list;
}

static json_t *exempt_json(const struct weir_zone *zone)
{
	json_t *list = json_array();
	char buffer[WEIR_NETWORK_TEXT_BYTES];
	for (uint32_t i = 0; i < zone->exempt_network_count; i++)
		json_array_append_new(list, json_string(weir_network_format(&zone->exempt_networks[i], buffer)));
	for (uint32_t i = 0; i < zone->exempt_word_count; i++)
		json_array_append_new(list, json_string(zone->exempt_words[i]));
	for (uint32_t i = 0; i < zone->exempt_match_count; i++)
		json_array_append_new(list, weir_match_json(&zone->exempt_matches[i]));
	for (uint32_t i = 0; i < zone->exempt_list_count; i++)
		json_array_append_new(list, json_pack("{s:s}", "list", zone->exempt_lists[i]));
	json_t *verified = json_array();
	for (uint32_t i = 0; i < zone->exempt_verified_count; i++)
		json_array_append_new(verified, weir_verified_json(&zone->exempt_verified[i]));
	if (zone->exempt_verified_count > 0)
		json_array_append_new(list, json_pack("{s:O}", "verified", verified));
	json_decref(verified);
	return list;
}

static json_t *sources_json(const struct weir_zone *zone)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < zone->source_count; i++)
		json_array_append_new(list, json_string(zone->sources[i]));
	return list;
}

static json_t *history_json(const struct weir_zone *zone)
{
	if (zone->history_field_count == 0)
		return json_boolean(zone->history);
	json_t *object = json_object(), *fields = json_array();
	for (uint32_t i = 0; i < zone->history_field_count; i++)
		json_array_append_new(fields, json_string(zone->history_fields[i]));
	json_object_set_new(object, "fields", fields);
	return object;
}

static json_t *zone_json(const struct weir_zone *zone)
{
	json_t *object = json_object(), *limits = json_array();
	for (uint32_t i = 0; i < zone->limit_count; i++)
		json_array_append_new(limits, weir_limit_json(&zone->limits[i]));
	set_int(object, "id", zone->id);
	json_object_set_new(object, "name", json_string(zone->name));
	json_object_set_new(object, "description", json_string(zone->description));
	json_object_set_new(object, "key", key_json(zone));
	json_object_set_new(object, "match", weir_match_json(&zone->match));
	json_object_set_new(object, "exempt", exempt_json(zone));
	json_object_set_new(object, "limits", limits);
	json_object_set_new(object, "count", json_string(zone->count_all ? "all" : "passed"));
	set_blocks(object, zone);
	json_object_set_new(object, "mode", weir_mode_json(zone));
	if (zone->source_count > 0) /* else it is left out, so that a weir that does not know it reads the policy too */
		json_object_set_new(object, "sources", sources_json(zone));
	if (zone->feed != WEIR_FEED_BOTH) /* likewise */
		json_object_set_new(object, "feed", json_string(zone->feed == WEIR_FEED_LOG ? "log" : "check"));
	if (zone->durable) /* likewise */
		json_object_set_new(object, "durable", json_true());
	json_object_set_new(object, "history", history_json(zone));
	return object;
}

/* As the caller frees it. */
static char *dump(json_t *value)
{
	char *dumped = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
	char *text = weir_copy(dumped, strlen(dumped));
	json_decref(value);
	free(dumped);
	return text;
}

static int compare_texts(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* What is done in some queue of the zone, each once, in one order: a record is done in all of them or in none. */
static json_t *done_json(const struct weir_zone *zone)
{
	char *texts[WEIR_ZONE_LIMITS_MAX];
	size_t count = 0;
	json_t *list = json_array();
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		if (zone->limits[i].done.field_count == 0)
			continue;
		json_t *done = weir_match_json(&zone->limits[i].done);
		texts[count++] = json_dumps(done, JSON_COMPACT | JSON_SORT_KEYS);
		json_decref(done);
	}
	qsort(texts, count, sizeof *texts, compare_texts);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || strcmp(texts[i], texts[i - 1]) != 0)
			json_array_append_new(list, json_string(texts[i]));
	}
	for (size_t i = 0; i < count; i++)
		free(texts[i]);
	return list;
}

char *weir_zone_records_text(const struct weir_zone *zone)
{
	json_t *list = json_array();
	json_array_append_new(list, key_json(zone));
	json_array_append_new(list, weir_match_json(&zone->match));
	json_array_append_new(list, exempt_json(zone));
	json_array_append_new(list, sources_json(zone));
	json_array_append_new(list, done_json(zone));
	if (zone->feed == WEIR_FEED_CHECK)
		json_array_append_new(list, json_string("checks alone"));
	return dump(list);
}

char *weir_zone_settings(const struct weir_zone *zone)
{
	static const char *const others[] = {"id",        "name",          "description", "exempt", "mode",
	                                     "block_for", "forgive_after", "history",     "durable"};
	json_t *object = zone_json(zone);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		json_object_del(object, others[i]);
	return dump(object);
}

char *weir_policy_text(const struct weir_policy *policy)
{
	json_t *root = json_object(), *zones = json_array();
	for (uint32_t i = 0; i < policy->zone_count; i++)
		json_array_append_new(zones, zone_json(&policy->zones[i]));
	json_object_set_new(root, "zones", zones);
	return dump(root);
}
