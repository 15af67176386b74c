/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file source's configuration.
 *
 *     { "type": "file", "path": "/var/log/nginx/access*.log", "follow": true }
 *
 *     path      a path, a glob, or a list of them
 *     exclude   globs of files that are not read, though "path" names them; one without a slash is of names,
 *              one with a slash of paths as they lead, through links and whatever their spelling
 *     olddir    where rotated files are moved to, as logrotate's word says; relative to the log's directory
 *     follow    wait for more at the end, through rotations (false: read to the end and finish)
 *     start     "beginning" or "end": where files begin that are there at the very first run with follow
 *     line_max  longest line, that of the collector; a longer one is cut there
 */
#include "collector/source/file/file_settings.h"

#include "collector/source/source_memory.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/files/file_place.h"
#include "common/json/json_shape.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE_MAX_BYTES = 64 << 10, PATTERNS_MAX = 1024, EXCLUDED_MAX = 256 };

/* A path, or a list of them. */
struct path_list {
	char ***list;
	size_t *count;
	size_t most;
	const char *example;
};

static enum weir_status add_path(const struct path_list *paths, const struct weir_json *at, struct weir_error *error)
{
	const char *path = NULL;
	enum weir_status status = weir_json_string(at, &path, error);
	if (status != WEIR_OK)
		return status;
	if (path == NULL || path[0] == '\0')
		return weir_json_fail(at, error, "is empty; give a path or a glob, such as \"%s\"", paths->example);
	const char *prefix = source_memory_prefix(path);
	if (prefix != NULL)
		return weir_json_fail(at, error, "must not begin with \"%s\"; write ./ before it", prefix);
	struct stat about;
	if (strstr(path, "**") != NULL && lstat(path, &about) != 0)
		return weir_json_fail(
			at, error,
			"has \"**\", which would mean no more than \"*\": files of one folder alone; list a glob for each "
			"level, such as [\"logs/*.log\", \"logs/*/*.log\"]");
	(*paths->list)[(*paths->count)++] = weir_copy(path, strlen(path));
	return WEIR_OK;
}

static enum weir_status read_list(const struct path_list *paths, const struct weir_json *at, struct weir_error *error)
{
	size_t count;
	enum weir_status status = weir_json_one_or_more(at, paths->most, &count, error);
	if (status != WEIR_OK)
		return status;
	*paths->list = weir_alloc(count, sizeof(char *));
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json element = weir_json_one_of(at, i);
		status = add_path(paths, &element, error);
	}
	return status;
}

/* What a glob with a slash means: its directories before the first wildcard, as they lead; NULL: they are not there. */
static char *resolve_glob(const char *glob)
{
	size_t directory = strcspn(glob, "*?[");
	while (directory > 0 && glob[directory - 1] != '/')
		directory--;
	char *prefix = weir_copy(directory > 0 ? glob : ".", directory > 0 ? directory : 1);
	char *real = realpath(prefix, NULL), *resolved = NULL;
	if (real != NULL) {
		size_t room = strlen(real) + strlen(glob) + 2;
		resolved = weir_alloc(room, 1);
		snprintf(resolved, room, "%s/%s", strcmp(real, "/") == 0 ? "" : real, glob + directory);
	}
	free(real);
	free(prefix);
	return resolved;
}

static void resolve_excluded(struct file_settings *settings)
{
	settings->excluded_real = weir_alloc(settings->excluded_count, sizeof(char *));
	for (size_t i = 0; i < settings->excluded_count; i++)
		if (strchr(settings->excluded[i], '/') != NULL)
			settings->excluded_real[i] = resolve_glob(settings->excluded[i]);
}

static bool matches(const char *glob, const char *path)
{
	return fnmatch(glob, path, FNM_PATHNAME | FNM_PERIOD) == 0;
}

/* A file may be named by another spelling, or by a link in its path. */
static bool excludes_real(const struct file_settings *settings, const char *path)
{
	char *real = NULL;
	bool excluded = false;
	for (size_t i = 0; i < settings->excluded_count && !excluded; i++) {
		const char *glob = settings->excluded_real != NULL ? settings->excluded_real[i] : NULL;
		if (glob == NULL)
			continue;
		if (real == NULL && (real = realpath(path, NULL)) == NULL)
			break; /* nothing is there */
		excluded = matches(glob, real);
	}
	free(real);
	return excluded;
}

bool file_settings_excludes(const struct file_settings *settings, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
	for (size_t i = 0; i < settings->excluded_count; i++) {
		const char *glob = settings->excluded[i];
		if (matches(glob, strchr(glob, '/') != NULL ? path : base))
			return true;
	}
	return excludes_real(settings, path);
}

/* A path that is named and excluded at once is a mistake; of a glob's files that is the point. */
static enum weir_status check_excluded(const struct file_settings *settings, const struct weir_json *at,
                                       struct weir_error *error)
{
	for (size_t i = 0; i < settings->pattern_count; i++)
		if (strpbrk(settings->patterns[i], "*?[") == NULL && file_settings_excludes(settings, settings->patterns[i]))
			return weir_json_fail(at, error, "excludes %s, which \"path\" names: take it out of one of them",
			                      settings->patterns[i]);
	return WEIR_OK;
}

static enum weir_status read_paths(struct file_settings *settings, const struct weir_json *config,
                                   struct weir_error *error)
{
	const struct path_list paths = {&settings->patterns, &settings->pattern_count, PATTERNS_MAX,
	                                "/var/log/nginx/access*.log"};
	const struct path_list excluded = {&settings->excluded, &settings->excluded_count, EXCLUDED_MAX, "*.gz"};
	struct weir_json path = weir_json_member(config, "path"), exclude = weir_json_member(config, "exclude");
	enum weir_status status = read_list(&paths, &path, error);
	if (status != WEIR_OK || !weir_json_exists(&exclude))
		return status;
	status = read_list(&excluded, &exclude, error);
	if (status == WEIR_OK)
		resolve_excluded(settings);
	return status == WEIR_OK ? check_excluded(settings, &exclude, error) : status;
}

/* How long a followed file and its directory are given. */
static const struct file_timing usual_timing = {.poll = 1000,
                                                .quiet = 100,
                                                .patience = 1000,
                                                .rest = 20,
                                                .grace = 60000,
                                                .idle = 300000,
                                                .complete = 2000,
                                                .retry_least = 200,
                                                .retry_most = 10000};

/* What a configuration says, but for the paths. */
struct file_config {
	const char *name; /* read where zones choose their sources */
	bool follow;
	int start; /* enum source_at_start */
	int64_t line_max;
	const char *olddir;
};

#define AT(member) offsetof(struct file_config, member)

static json_t *path_shape(void)
{
	return weir_shape_some(PATTERNS_MAX, weir_shape_name(0));
}

static json_t *exclude_shape(void)
{
	return weir_shape_some(EXCLUDED_MAX, weir_shape_name(0));
}

const struct weir_json_rule file_members[] = {
	{.name = "type", .meaning = "the kind of source"},
	{.name = "name",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(name),
     .meaning = "a label, by which zones name it in \"sources\""},
	{.name = "path",
     .needed = "give a path, a glob, or a list of them, such as \"/var/log/nginx/access*.log\"",
     .meaning = "a path, a glob, or a list of them; files may be plain, gzip, zstd, bzip2 or xz",
     .shape = path_shape},
	{.name = "exclude",
     .meaning = "a glob, or a list of them: files that are not read though \"path\" names them",
     .shape = exclude_shape},
	{.name = "olddir",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(olddir),
     .meaning = "the directory that rotated files are moved to"},
	SOURCE_FORMAT_RULE,
	{.name = "follow",
     .kind = WEIR_JSON_FLAG,
     .offset = AT(follow),
     .meaning = "wait for more lines at the end, through rotations"},
	SOURCE_START_RULE(AT(start)),
	SOURCE_LINE_MAX_RULE(AT(line_max)),
	{.name = NULL},
};

enum weir_status file_settings_init(struct file_settings *settings, const struct weir_json *config,
                                    const struct source_context *context, struct weir_error *error)
{
	struct file_config parsed = {.line_max = context->line_max_bytes > 0 ? context->line_max_bytes : LINE_MAX_BYTES};
	*settings = (struct file_settings){.timing = usual_timing};
	enum weir_status status = weir_json_read(config, file_members, &parsed, error);
	if (status == WEIR_OK)
		status = read_paths(settings, config, error);
	if (status == WEIR_OK && parsed.olddir != NULL && parsed.olddir[0] != '\0') {
		size_t length = strlen(parsed.olddir);
		settings->olddir = weir_alloc(length + 2, 1);
		memcpy(settings->olddir, parsed.olddir, length);
		settings->olddir[length] = '/';
	}
	settings->start = (enum source_at_start)parsed.start;
	settings->line_max = (size_t)parsed.line_max;
	settings->follow = parsed.follow && !context->once;
	settings->forgets = context->forgets && !settings->follow;
	return status;
}

void file_settings_deinit(struct file_settings *settings)
{
	for (size_t i = 0; i < settings->pattern_count; i++)
		free(settings->patterns[i]);
	free(settings->patterns);
	for (size_t i = 0; i < settings->excluded_count; i++)
		free(settings->excluded[i]);
	for (size_t i = 0; settings->excluded_real != NULL && i < settings->excluded_count; i++)
		free(settings->excluded_real[i]);
	free(settings->excluded_real);
	free(settings->excluded);
	free(settings->olddir);
}

static bool pattern_names(const char *pattern, const char *path)
{
	return strcmp(pattern, path) == 0 || fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0;
}

int file_settings_pattern(const struct file_settings *settings, const char *path)
{
	if (file_settings_excludes(settings, path))
		return -1;
	for (size_t i = 0; i < settings->pattern_count; i++)
		if (pattern_names(settings->patterns[i], path))
			return (int)i;
	return -1;
}

bool file_settings_would_read(const struct file_settings *settings, const char *path)
{
	bool named = file_settings_pattern(settings, path) >= 0;
	for (size_t i = 0; !named && !file_settings_excludes(settings, path) && i < settings->pattern_count; i++) {
		struct weir_text pattern = {0};
		weir_file_place_put(&pattern, settings->patterns[i]);
		weir_text_append(&pattern, "", 1);
		named = pattern_names(pattern.at, path);
		weir_text_deinit(&pattern);
	}
	return named;
}
