/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir run --key ip --limit 10/1m LOG`: the options become the configuration
 * that a file would hold, so there is one way through the code, and a person can
 * continue with that file. What can be wrong in an option is found here, where its
 * name is known.
 */
#include "common/algorithm/algorithm.h"
#include "common/base/alloc.h"
#include "common/base/suggest.h"
#include "common/config/config.h"
#include "common/json/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_MS INT64_C(3600000)

enum { PIECE_BYTES = 64 };

static enum weir_status refuse_limit(const char *limit, const char *why, struct weir_error *error)
{
	return weir_fail(
		error, WEIR_INVALID,
		"--limit %.80s: %s; a limit is N/WINDOW or N/WINDOW:ALGORITHM, such as 10/1m or 100/1h:fixed_window", limit,
		why);
}

/* The bytes up to `end` as a string; false where they are too many. */
static bool piece(const char *start, const char *end, char out[PIECE_BYTES])
{
	size_t length = (size_t)(end - start);
	if (length >= PIECE_BYTES)
		return false;
	memcpy(out, start, length);
	out[length] = '\0';
	return true;
}

static enum weir_status find_algorithm(const char *limit, const char *name, const struct weir_algorithm **algorithm,
                                       struct weir_error *error)
{
	const char *const *names = weir_algorithm_names();
	*algorithm = weir_algorithm_named(name);
	if (*algorithm != NULL)
		return WEIR_OK;
	char known[128];
	weir_list_names(names, "", known, sizeof known);
	const char *near = weir_nearest_name(name, names);
	return weir_fail(error, WEIR_INVALID, "--limit %.80s: unknown algorithm \"%.40s\"%s%s%s (known: %s)", limit, name,
	                 near != NULL ? "; did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?" : "",
	                 known);
}

static enum weir_status add_limit(const char *limit, json_t *limits, struct weir_error *error)
{
	const char *slash = strchr(limit, '/');
	if (slash == NULL)
		return refuse_limit(limit, "the \"/\" is missing", error);
	const char *colon = strchr(slash, ':');
	char window[PIECE_BYTES], algorithm[PIECE_BYTES] = "";
	size_t digits = strspn(limit, "0123456789");
	struct weir_limit made = {.rate = digits >= 1 && digits <= 10 ? strtoll(limit, NULL, 10) : 0};
	if (limit + digits != slash || made.rate < 1 || made.rate > WEIR_RATE_MAX)
		return refuse_limit(limit, "the part before the \"/\" must be a whole number from 1 to 1000000000", error);
	const char *end = colon != NULL ? colon : slash + strlen(slash);
	if (!piece(slash + 1, end, window) || !weir_parse_duration(window, &made.window_ms) || made.window_ms < 1 ||
	    made.window_ms > WEIR_WINDOW_MAX_MS)
		return refuse_limit(limit, "the window must be a time from 1ms to 366d, such as 500ms, 10s, 1m, 1h or 1d",
		                    error);
	if (colon == NULL)
		snprintf(algorithm, sizeof algorithm, "%s", made.window_ms < HOUR_MS ? "sliding_window" : "fixed_window");
	else if (!piece(colon + 1, colon + strlen(colon), algorithm))
		return refuse_limit(limit, "the algorithm's name is too long", error);
	enum weir_status status = find_algorithm(limit, algorithm, &made.algorithm, error);
	if (status != WEIR_OK)
		return status;
	const char *wrong;
	json_t *object = weir_limit_shorthand(&made, window, &wrong);
	if (object == NULL)
		return refuse_limit(limit, wrong, error);
	json_array_append_new(limits, object);
	return WEIR_OK;
}

/* An ip is counted by networks of /64 where it is IPv6: whoever has one address there has the network. Takes `field`. */
static json_t *key_field(json_t *field)
{
	if (strcmp(json_string_value(field), "ip") != 0)
		return field;
	json_t *object = json_object();
	json_object_set_new(object, "field", field);
	json_object_set_new(object, "prefix6", json_integer(64));
	return object;
}

/* The fields of "a,b" into `key`, and a name for the zone: "a-b". */
static enum weir_status split_key(const char *fields, json_t *key, char name[WEIR_ZONE_NAME_MAX_BYTES + 1],
                                  struct weir_error *error)
{
	size_t used = 0;
	for (const char *at = fields; *fields != '\0';) {
		size_t length = strcspn(at, ",");
		json_t *field = length > 0 && length <= WEIR_FIELD_NAME_MAX_BYTES ? json_stringn(at, length) : NULL;
		if (field == NULL || json_array_size(key) == WEIR_ZONE_KEY_MAX) {
			json_decref(field);
			return weir_fail(error, WEIR_INVALID,
			                 "--key %.80s: must be 1 to %d field names separated by commas, such as ip or ip,path",
			                 fields, WEIR_ZONE_KEY_MAX);
		}
		json_array_append_new(key, key_field(field));
		for (size_t i = 0; i <= length && used < WEIR_ZONE_NAME_MAX_BYTES; i++) {
			char c = i < length ? at[i] : '-';
			bool plain =
				(c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || strchr("_.-", c) != NULL;
			name[used++] = plain ? c : '_';
		}
		if (at[length] == '\0')
			break;
		at += length + 1;
	}
	name[used] = '\0';
	if (used > 0 && used <= WEIR_ZONE_NAME_MAX_BYTES && name[used - 1] == '-')
		name[used - 1] = '\0'; /* behind the last field */
	if (*fields == '\0')
		memcpy(name, "all", sizeof "all");
	return WEIR_OK;
}

static enum weir_status add_zone(const char *fields, json_t *limits, json_t *zones, struct weir_error *error)
{
	char name[WEIR_ZONE_NAME_MAX_BYTES + 1];
	json_t *key = json_array();
	enum weir_status status = split_key(fields, key, name, error);
	size_t index;
	json_t *other;
	json_array_foreach(zones, index, other)
	{
		if (status == WEIR_OK && strcmp(json_string_value(json_object_get(other, "name")), name) == 0)
			status = weir_fail(error, WEIR_INVALID,
			                   "--key %.80s: is given twice, or makes the same zone name as another", fields);
	}
	if (status != WEIR_OK) {
		json_decref(key);
		return status;
	}
	json_t *zone = json_object();
	json_object_set_new(zone, "name", json_string(name));
	json_object_set_new(zone, "key", key);
	json_object_set(zone, "limits", limits);
	json_array_append_new(zones, zone);
	return WEIR_OK;
}

static enum weir_status make_zones(const struct weir_shorthand *shorthand, json_t *zones, struct weir_error *error)
{
	if (shorthand->limit_count == 0 || shorthand->limit_count > WEIR_ZONE_LIMITS_MAX)
		return weir_fail(error, WEIR_INVALID, "--limit: give 1 to %d limits, such as --limit 10/1m --limit 100/1h",
		                 WEIR_ZONE_LIMITS_MAX);
	json_t *limits = json_array();
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < shorthand->limit_count && status == WEIR_OK; i++)
		status = add_limit(shorthand->limits[i], limits, error);
	for (size_t i = 0; i < shorthand->key_count && status == WEIR_OK; i++)
		status = add_zone(shorthand->keys[i], limits, zones, error);
	if (shorthand->key_count == 0 && status == WEIR_OK)
		status = add_zone("ip", limits, zones, error);
	json_decref(limits);
	return status;
}

/* A name, or the object that a text in braces holds. Borrowed by every source. */
static enum weir_status make_format(const char *text, json_t **format, struct weir_error *error)
{
	if (*text != '{') {
		*format = json_string(text);
		return *format != NULL ? WEIR_OK : weir_fail(error, WEIR_INVALID, "--format: is not UTF-8 text");
	}
	struct weir_json_document *document;
	enum weir_status status = weir_json_parse("--format", text, strlen(text), &document, error);
	if (status != WEIR_OK)
		return status;
	*format = json_incref(weir_json_root(document).value);
	weir_json_document_free(document);
	return WEIR_OK;
}

static enum weir_status make_sources(const struct weir_shorthand *shorthand, json_t *sources, struct weir_error *error)
{
	json_t *format = NULL;
	enum weir_status status = make_format(shorthand->format != NULL ? shorthand->format : "combined", &format, error);
	for (size_t i = 0; i < shorthand->log_count && status == WEIR_OK; i++) {
		const char *log = shorthand->logs[i];
		bool file = strcmp(log, "-") != 0;
		json_t *source = json_object(), *path = file && *log != '\0' ? json_string(log) : NULL;
		json_object_set_new(source, "type", json_string(file ? "file" : "stdin"));
		if (file && path == NULL)
			status = weir_fail(error, WEIR_INVALID,
			                   "the path of log %zu is empty or not UTF-8 text: use a glob in a --config file", i + 1);
		else if (file)
			json_object_set_new(source, "path", path);
		json_object_set(source, "format", format);
		if (file)
			json_object_set_new(source, "follow", json_boolean(shorthand->follow));
		json_array_append_new(sources, source);
	}
	json_decref(format);
	return status;
}

enum weir_status weir_config_shorthand(const struct weir_shorthand *shorthand, char **text, struct weir_error *error)
{
	json_t *root = json_object(), *zones = json_array(), *sources = json_array();
	json_object_set_new(root, "zones", zones);
	json_object_set_new(root, "sources", sources);
	enum weir_status status = make_zones(shorthand, zones, error);
	if (status == WEIR_OK)
		status = make_sources(shorthand, sources, error);
	if (status == WEIR_OK) {
		char *dumped = json_dumps(root, JSON_INDENT(2));
		*text = weir_copy(dumped, strlen(dumped));
		free(dumped);
	}
	json_decref(root);
	return status;
}
