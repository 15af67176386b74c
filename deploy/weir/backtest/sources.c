/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log is read as the source that it belongs to: by its format, and what else is said of it. So yesterday's copy of a log
 * gives the records that the live one gave.
 */
#include "deploy/weir/backtest/sources.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* ---- whose sources ---- */

static const struct backtest_policy *reading_policy(const struct backtest_policies *policies)
{
	for (uint32_t i = 0; i < policies->count; i++)
		if (policies->at[i].config->source_count > 0)
			return &policies->at[i];
	return &policies->at[0];
}

/* Without logs, all configurations that have sources must have the same: which of them would be meant? */
static enum weir_status check_same(const struct backtest_policies *policies, const struct backtest_policy *reads,
                                   struct weir_error *error)
{
	if (reads->config->source_count == 0)
		return weir_fail(error, WEIR_INVALID, "no configuration has \"sources\": name the logs to read");
	for (uint32_t i = 0; i < policies->count; i++) {
		const struct weir_config *config = policies->at[i].config;
		if (config->source_count > 0 && !json_equal(config->sources.value, reads->config->sources.value))
			return weir_fail(error, WEIR_INVALID,
			                 "%s and %s have different \"sources\", and policies are compared on the same lines: name "
			                 "the logs to read, or leave \"sources\" to one of them",
			                 reads->path, policies->at[i].path);
	}
	return WEIR_OK;
}

/* ---- how a log is read ---- */

/* What of a source says where its lines are, rather than what they are. */
static bool says_where(const char *member)
{
	static const char *const members[] = {"type", "path", "exclude", "follow", NULL};
	for (int i = 0; members[i] != NULL; i++)
		if (strcmp(member, members[i]) == 0)
			return true;
	return false;
}

static bool is_file(const json_t *source)
{
	const char *type = json_string_value(json_object_get(source, "type"));
	return type != NULL && (strcmp(type, "file") == 0 || strcmp(type, "stdin") == 0);
}

/* A source without what says where its lines are. Of one that is no file, the format and the name are left. */
static json_t *manner_of(const json_t *source)
{
	json_t *manner = json_deep_copy(source);
	const char *member;
	json_t *value;
	void *next;
	bool file = is_file(source);
	json_object_foreach_safe(manner, next, member, value)
	{
		if (says_where(member) || (!file && strcmp(member, "format") != 0 && strcmp(member, "name") != 0))
			json_object_del(manner, member);
	}
	return manner;
}

static bool has_path(const json_t *source, const char *log)
{
	const char *path = json_string_value(json_object_get(source, "path"));
	return path != NULL && (strcmp(path, log) == 0 || fnmatch(path, log, 0) == 0);
}

/* The manner that a log is read in: of the source with its path, or of all sources that are no decisions, if they agree. */
static json_t *find_manner(const struct weir_config *config, const char *log)
{
	json_t *manner = NULL;
	for (size_t i = 0; i < config->source_count; i++) {
		json_t *source = json_array_get(config->sources.value, i);
		if (has_path(source, log)) {
			json_decref(manner);
			return manner_of(source);
		}
	}
	for (size_t i = 0; i < config->source_count; i++) {
		const json_t *source = json_array_get(config->sources.value, i);
		const char *type = json_string_value(json_object_get(source, "type"));
		if (type != NULL && strcmp(type, WEIR_SOURCE_DECISIONS) == 0)
			continue;
		json_t *other = manner_of(source);
		bool agrees = manner == NULL || json_equal(manner, other);
		if (manner == NULL)
			manner = json_incref(other);
		json_decref(other);
		if (agrees)
			continue;
		json_decref(manner);
		return NULL;
	}
	return manner != NULL ? manner : json_object();
}

static enum weir_status add_log(const struct backtest_policy *reads, const char *log, const char *format,
                                json_t *sources, struct weir_error *error)
{
	bool file = strcmp(log, "-") != 0;
	json_t *path = json_string(log), *source = format != NULL ? json_object() : find_manner(reads->config, log);
	if (path == NULL || source == NULL || *log == '\0') {
		json_decref(source);
		json_decref(path);
		if (path == NULL || *log == '\0')
			return weir_fail(error, WEIR_INVALID, "the path of a log is empty, or not UTF-8 text");
		return weir_fail(error, WEIR_INVALID,
		                 "%s is none of the \"sources\" of %s, and they are not read in one way: give --format, or the "
		                 "log's path as it stands there",
		                 log, reads->path);
	}
	json_object_set_new(source, "type", json_string(file ? "file" : "stdin"));
	if (file)
		json_object_set(source, "path", path);
	json_decref(path);
	if (format != NULL)
		json_object_set_new(source, "format", json_string(format));
	else if (json_object_get(source, "format") == NULL)
		json_object_set_new(source, "format", json_string("combined"));
	json_array_append_new(sources, source);
	return WEIR_OK;
}

enum weir_status sources_config(const struct backtest_policies *policies, const char *const *logs, uint32_t log_count,
                                const char *format, struct weir_config **config, struct weir_error *error)
{
	const struct backtest_policy *reads = reading_policy(policies);
	json_t *root = json_copy(weir_json_root(reads->config->document).value), *sources = NULL;
	enum weir_status status = log_count > 0 ? WEIR_OK : check_same(policies, reads, error);
	if (log_count > 0)
		sources = json_array();
	for (uint32_t i = 0; status == WEIR_OK && i < log_count; i++)
		status = add_log(reads, logs[i], format, sources, error);
	if (sources != NULL)
		json_object_set_new(root, "sources", sources);
	if (status == WEIR_OK) {
		char *text = json_dumps(root, JSON_COMPACT);
		/* whose lines are not those of the file any more */
		status = weir_config_parse(WEIR_JSON_COMMAND_LINE, text, strlen(text), config, error);
		free(text);
	}
	json_decref(root);
	return status;
}
