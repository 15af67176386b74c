/*
 * The file source's configuration.
 *
 *     { "type": "file", "path": "/var/log/nginx/access*.log", "follow": true }
 *
 *     path      a path, a glob, or a list of them
 *     follow    wait for more at the end, through rotations (false: read to the end and finish)
 *     start     "beginning" or "end": where files begin that are there at the very first run with follow
 *     line_max  longest line, 64 KiB; a longer one is malformed, whatever its length
 */
#include "collector/source/file/internal.h"

#include "common/base/alloc.h"

#include <string.h>

enum { LINE_MAX_BYTES = 64 << 10, PATTERNS_MAX = 1024 };

static enum weir_status add_pattern(struct file_source *source, const struct weir_json *at, struct weir_error *error)
{
	const char *path = NULL;
	enum weir_status status = weir_json_string(at, &path, error);
	if (status != WEIR_OK)
		return status;
	if (path == NULL || path[0] == '\0')
		return weir_json_fail(at, error, "is empty; give a path or a glob, such as \"/var/log/nginx/access*.log\"");
	if (strncmp(path, SOURCE_JOURNAL_PREFIX, strlen(SOURCE_JOURNAL_PREFIX)) == 0)
		return weir_json_fail(at, error, "must not begin with \"" SOURCE_JOURNAL_PREFIX "\"; write ./ before it");
	source->patterns[source->pattern_count++] = weir_copy(path, strlen(path));
	return WEIR_OK;
}

static enum weir_status read_paths(struct file_source *source, const struct weir_json *config, struct weir_error *error)
{
	struct weir_json at = weir_json_member(config, "path");
	enum weir_status status =
		weir_json_require(&at, "give a path, a glob, or a list of them, such as \"/var/log/nginx/access*.log\"", error);
	if (status != WEIR_OK)
		return status;
	size_t count = 1;
	bool list = json_is_array(at.value);
	if (list)
		status = weir_json_list(&at, 1, PATTERNS_MAX, &count, error);
	if (status != WEIR_OK)
		return status;
	source->patterns = weir_alloc(count, sizeof(char *));
	source->names_none = weir_alloc(count, sizeof *source->names_none);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json element = list ? weir_json_element(&at, i) : at;
		status = add_pattern(source, &element, error);
	}
	return status;
}

enum weir_status file_source_configure(struct file_source *source, const struct weir_json *config,
                                       const struct source_context *context, struct weir_error *error)
{
	static const char *const starts[] = {"beginning", "end", NULL};
	struct weir_json follow = weir_json_member(config, "follow"), start = weir_json_member(config, "start");
	struct weir_json line_max = weir_json_member(config, "line_max");
	int64_t line_max_bytes = context->line_max_bytes > 0 ? context->line_max_bytes : LINE_MAX_BYTES;
	int place = SOURCE_FROM_BEGINNING;
	enum weir_status status = read_paths(source, config, error);
	if (status == WEIR_OK)
		status = weir_json_bool(&follow, &source->follow, error);
	if (status == WEIR_OK)
		status = weir_json_word(&start, starts, &place, error);
	if (status == WEIR_OK)
		status = weir_json_size(&line_max, SOURCE_LINE_LEAST_BYTES, SOURCE_LINE_MOST_BYTES, &line_max_bytes, error);
	source->start = (enum source_at_start)place;
	source->line_max = (size_t)line_max_bytes;
	source->follow = source->follow && !context->once;
	return status;
}
