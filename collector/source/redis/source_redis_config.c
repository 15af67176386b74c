/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The redis source's configuration.
 *
 *     { "type": "redis", "name": "jobs", "url": "redis://127.0.0.1:6379/0", "streams": ["x:rl:tigerfeeding"], "format": "json" }
 */
#include "collector/source/redis/internal.h"

#include "collector/source/source_words.h"
#include "common/json/json_shape.h"
#include "common/policy/policy.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 64 << 10, NAME_MAX_BYTES = 200, GENERATION_MAX = 1000000 };

#define AT(member) offsetof(struct redis_config, member)

static json_t *urls_shape(void)
{
	return weir_shape_some(REDIS_URLS_MAX, weir_shape_pattern("^rediss?://"));
}

static json_t *streams_shape(void)
{
	return weir_shape_list(1, REDIS_STREAMS_MAX, weir_shape_name(REDIS_KEY_MAX_BYTES));
}

static json_t *name_shape(void)
{
	return weir_shape_name(0);
}

static json_t *departures_shape(void)
{
	static const struct weir_json_rule members[] = {
		{.name = "group", .kind = WEIR_JSON_TEXT, .needed = "", .meaning = "the workers' consumer group"},
		{.name = NULL}};
	return weir_shape_either(weir_shape_pattern("^removed$"), weir_shape_object(members));
}

const struct weir_json_rule redis_members[] = {
	{.name = "type", .meaning = "the kind of source"},
	{.name = "name",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(name),
     .meaning = "the name by which streams appear; it is part of their identity",
     .shape = name_shape},
	{.name = "url",
     .needed = "give the server, such as \"redis://127.0.0.1:6379\"",
     .meaning = "the server, or several of which the master is read: redis://HOST[:PORT][/DATABASE], by TLS rediss:// "
                "with ?ca=FILE or without",
     .shape = urls_shape},
	{.name = "user", .kind = WEIR_JSON_TEXT, .offset = AT(user), .meaning = "the user to log in as"},
	{.name = "password", .meaning = "to log in with", .shape = weir_shape_secret},
	{.name = "streams",
     .needed = "list the keys of one or more streams, such as [\"jobs\"]",
     .meaning = "keys of streams, and patterns of keys as SCAN takes them",
     .shape = streams_shape},
	{.name = "field",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(field),
     .meaning = "the field of an entry that is the line; without it, the line is a JSON object of all fields",
     .shape = name_shape},
	{.name = "group",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(group),
     .meaning = "the consumer group in which weir keeps how far it has come",
     .shape = name_shape},
	{.name = "generation",
     .kind = WEIR_JSON_NUMBER,
     .offset = AT(generation),
     .least = 1,
     .most = GENERATION_MAX,
     .meaning = "raise it when ids were given anew that are not the clock's"},
	{.name = "departures",
     .meaning = "entries that leave are records too: \"removed\" (XDEL, XTRIM), or {\"group\": NAME}: acknowledged",
     .shape = departures_shape},
	SOURCE_FORMAT_RULE,
	SOURCE_START_RULE(AT(start)),
	SOURCE_LINE_MAX_RULE(AT(line_max)),
	{.name = "follow", .kind = WEIR_JSON_FLAG, .offset = AT(follow), .meaning = "wait for more entries at the end"},
	{.name = NULL},
};

bool redis_is_pattern(const char *key)
{
	return strpbrk(key, "*?[") != NULL;
}

static enum weir_status read_url(const struct weir_json *at, const char **text, struct weir_error *error)
{
	struct weir_redis_url url;
	struct weir_error why;
	*text = "";
	enum weir_status status = weir_json_string(at, text, error);
	if (status != WEIR_OK)
		return status;
	if (weir_redis_url_parse(*text, &url, &why) != WEIR_OK)
		return weir_json_fail(at, error, "is no address: %s", why.text);
	weir_redis_url_deinit(&url);
	return WEIR_OK;
}

static enum weir_status read_urls(struct redis_config *config, const struct weir_json *json, struct weir_error *error)
{
	struct weir_json at = weir_json_member(json, "url");
	enum weir_status status = weir_json_one_or_more(&at, REDIS_URLS_MAX, &config->url_count, error);
	for (size_t i = 0; status == WEIR_OK && i < config->url_count; i++) {
		struct weir_json url = weir_json_one_of(&at, i);
		status = read_url(&url, &config->urls[i], error);
	}
	return status;
}

static enum weir_status read_streams(struct redis_config *config, const struct weir_json *json,
                                     struct weir_error *error)
{
	struct weir_json streams = weir_json_member(json, "streams");
	enum weir_status status = weir_json_list(&streams, 1, REDIS_STREAMS_MAX, &config->stream_count, error);
	for (size_t i = 0; status == WEIR_OK && i < config->stream_count; i++) {
		struct weir_json at = weir_json_element(&streams, i);
		config->streams[i] = "";
		status = weir_json_string(&at, &config->streams[i], error);
		size_t length = strlen(config->streams[i]);
		if (status == WEIR_OK && (length == 0 || length > REDIS_KEY_MAX_BYTES))
			status = weir_json_fail(&at, error, "must have 1 to %d bytes", REDIS_KEY_MAX_BYTES);
		for (size_t k = 0; status == WEIR_OK && k < i; k++)
			if (strcmp(config->streams[k], config->streams[i]) == 0)
				status = weir_json_fail(&at, error, "is listed twice");
	}
	return status;
}

static enum weir_status read_departures(struct redis_config *config, const struct weir_json *json,
                                        struct weir_error *error)
{
	static const char *const names[] = {"group", NULL};
	struct weir_json at = weir_json_member(json, "departures"), group = weir_json_member(&at, "group");
	struct weir_json field = weir_json_member(json, "field"), format = weir_json_member(json, "format");
	struct weir_json type = weir_json_member(&format, "type");
	const char *word = json_string_value(at.value);
	if (!weir_json_exists(&at))
		return WEIR_OK;
	config->departures = true;
	if (word == NULL && json_is_object(at.value) && json_is_string(group.value)) {
		enum weir_status status = weir_json_only(&at, names, error);
		config->workers = json_string_value(group.value);
		if (status != WEIR_OK)
			return status;
		if (strcmp(config->workers, config->group) == 0)
			return weir_json_fail(&group, error, "is weir's own group; name that of the workers");
	} else if (word == NULL || strcmp(word, "removed") != 0) {
		return weir_json_fail(&at, error,
		                      "must be \"removed\", for workers that delete what is done, or {\"group\": NAME}, for "
		                      "workers that acknowledge it");
	}
	const char *kind = json_string_value(json_is_string(format.value) ? format.value : type.value);
	if (weir_json_exists(&field) || kind == NULL || strcmp(kind, "json") != 0)
		return weir_json_fail(
			&at, error,
			"needs entries as JSON objects, as departures are: remove \"field\", and set \"format\" to "
			"\"json\"");
	return WEIR_OK;
}

static enum weir_status check_names(const struct redis_config *config, const struct weir_json *json,
                                    struct weir_error *error)
{
	const char *const members[] = {"name", "group", "field"}, *const values[] = {config->name, config->group,
	                                                                             config->field};
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		struct weir_json at = weir_json_member(json, members[i]);
		if (values[i] != NULL && (*values[i] == '\0' || strlen(values[i]) > NAME_MAX_BYTES))
			return weir_json_fail(&at, error, "must have 1 to %d bytes", NAME_MAX_BYTES);
	}
	if (config->user != NULL && !weir_json_exists(&config->password))
		return weir_json_fail(json, error, "has a \"user\", and needs a \"password\" beside it");
	struct weir_json format = weir_json_member(json, "format"), header = weir_json_member(&format, "header");
	if (json_is_true(header.value))
		return weir_json_fail(&header, error, "is for files: a stream has no header line; list the columns");
	return weir_json_check_secret(&config->password, error);
}

enum weir_status redis_configure(struct redis_config *config, const struct weir_json *json,
                                 const struct source_context *context, struct weir_error *error)
{
	*config = (struct redis_config){
		.name = "redis",
		.group = "weir-collector",
		.generation = 1,
		.follow = true,
		.line_max = context->line_max_bytes > 0 ? context->line_max_bytes : LINE_MAX_BYTES,
		.password = weir_json_member(json, "password"),
	};
	enum weir_status status = weir_json_read(json, redis_members, config, error);
	if (status == WEIR_OK)
		status = read_urls(config, json, error);
	if (status == WEIR_OK)
		status = read_streams(config, json, error);
	if (status == WEIR_OK)
		status = check_names(config, json, error);
	if (status == WEIR_OK)
		status = read_departures(config, json, error);
	return status;
}

static const char *text_of(const struct weir_json *config, const char *member, const char *otherwise)
{
	const char *text = json_string_value(weir_json_member(config, member).value);
	return text != NULL ? text : otherwise;
}

enum weir_status redis_apart(const struct weir_json *config, const struct weir_json *other, struct weir_error *error)
{
	if (strcmp(text_of(config, "name", "redis"), text_of(other, "name", "redis")) == 0)
		return weir_json_fail(
			config, error,
			"has the name of another redis source, by which weir knows its streams: give each its own "
			"\"name\"");
	struct weir_json streams = weir_json_member(config, "streams"), others = weir_json_member(other, "streams");
	if (!json_equal(weir_json_member(config, "url").value, weir_json_member(other, "url").value) ||
	    strcmp(text_of(config, "group", ""), text_of(other, "group", "")) != 0)
		return WEIR_OK;
	for (size_t i = 0; i < json_array_size(streams.value); i++)
		for (size_t k = 0; k < json_array_size(others.value); k++)
			if (json_equal(json_array_get(streams.value, i), json_array_get(others.value, k))) {
				struct weir_json at = weir_json_element(&streams, i);
				return weir_json_fail(&at, error,
				                      "is read by another source with the same \"group\", which keeps one place: give "
				                      "one of them another \"group\"");
			}
	return WEIR_OK;
}

/* ---- zones ---- */

/* Whether an entry leaves one of the zone's queues by a record with "_event", which is a departure. */
static bool frees_by_event(const struct weir_zone *zone)
{
	for (uint32_t i = 0; i < zone->limit_count; i++)
		for (uint32_t k = 0; k < zone->limits[i].done.field_count; k++)
			if (strcmp(zone->limits[i].done.fields[k].field, "_event") == 0)
				return true;
	return false;
}

enum weir_status redis_fits(const struct weir_json *config, const struct weir_policy *policy, struct weir_error *error)
{
	struct weir_json departures = weir_json_member(config, "departures");
	const char *name = json_string_value(weir_json_member(config, "name").value);
	if (!weir_json_exists(&departures))
		return WEIR_OK;
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		const struct weir_zone *zone = &policy->zones[i];
		bool by_stream = zone->key_count == 1 && strcmp(zone->key[0].field, "_stream") == 0;
		if (!by_stream && weir_zone_takes_source(zone, name) && frees_by_event(zone))
			return weir_json_fail(
				&departures, error,
				"says of entries only which stream they left, and zone \"%s\" counts by more: set its "
				"\"key\" to [\"_stream\"], or let workers XADD a record of what is done, with the fields "
				"of its key, and match that by \"done\"",
				zone->name);
	}
	return WEIR_OK;
}
