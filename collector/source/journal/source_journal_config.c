/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal source's configuration.
 *
 *     { "type": "journal", "units": ["nginx.service"], "start": "end" }
 *
 *     units      only entries of these units; "nginx" means "nginx.service"
 *     match      {"FIELD": value or list}: every field must have one of its values
 *     directory  the journal's directory; default: the system's own journal
 *     name       under which the read position is saved; default: directory, units and match
 *     start      "beginning" or "end": where reading begins at the very first run
 *     line_max   longest entry, as JSON, 64 KiB; a longer one is malformed
 */
#include "collector/source/journal/internal.h"

#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/json/json_shape.h"

#include <string.h>

enum { LINE_MAX_BYTES = 64 << 10, MATCHES_MAX = 256, VALUE_MAX_BYTES = 4096, LABEL_MAX_BYTES = 1024 };

static enum weir_status add_match(struct journal_filter *filter, const struct weir_json *at, const char *field,
                                  const char *value, const char *end, struct weir_error *error)
{
	struct weir_text match = {0};
	if (filter->count == MATCHES_MAX)
		return weir_json_fail(at, error, "is one too many: units and match can have %d values", MATCHES_MAX);
	if (*value == '\0' || strlen(value) > VALUE_MAX_BYTES)
		return weir_json_fail(at, error, "must have 1 to %d bytes", VALUE_MAX_BYTES);
	weir_text_printf(&match, "%s=%s%s", field, value, end);
	weir_text_append(&match, "", 1);
	filter->matches = weir_realloc(filter->matches, filter->count + 1, sizeof(char *));
	filter->matches[filter->count++] = match.at;
	return WEIR_OK;
}

static enum weir_status read_units(struct journal_filter *filter, const struct weir_json *config,
                                   struct weir_error *error)
{
	struct weir_json units = weir_json_member(config, "units");
	size_t count = 0;
	enum weir_status status = weir_json_list(&units, 1, MATCHES_MAX, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json at = weir_json_element(&units, i);
		const char *unit = "";
		status = weir_json_string(&at, &unit, error);
		if (status == WEIR_OK)
			status = add_match(filter, &at, "_SYSTEMD_UNIT", unit, strchr(unit, '.') == NULL ? ".service" : "", error);
	}
	return status;
}

static enum weir_status read_field(struct journal_filter *filter, const struct weir_json *at, const char *field,
                                   struct weir_error *error)
{
	size_t count, length = strlen(field);
	if (length == 0 || length > 64 || strspn(field, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != length)
		return weir_json_fail(at, error, "is not a journal field: field names look like PRIORITY and _SYSTEMD_UNIT");
	enum weir_status status = weir_json_one_or_more(at, MATCHES_MAX, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json value = weir_json_one_of(at, i);
		const char *text = "";
		status = weir_json_string(&value, &text, error);
		if (status == WEIR_OK)
			status = add_match(filter, &value, field, text, "", error);
	}
	return status;
}

static enum weir_status read_match(struct journal_filter *filter, const struct weir_json *config,
                                   struct weir_error *error)
{
	struct weir_json match = weir_json_member(config, "match");
	if (weir_json_exists(&match) && !json_is_object(match.value))
		return weir_json_fail(&match, error, "must be an object such as {\"PRIORITY\": [\"3\", \"4\"]}");
	const char *field;
	json_t *value;
	enum weir_status status = WEIR_OK;
	json_object_foreach(match.value, field, value)
	{
		struct weir_json at = weir_json_member(&match, field);
		if (status == WEIR_OK)
			status = read_field(filter, &at, field, error);
	}
	return status;
}

/* The source's name, or what tells it from others. */
static enum weir_status make_label(struct journal_source *source, const struct weir_json *config, const char *name,
                                   const char *directory, struct weir_error *error)
{
	struct weir_text label = {0};
	weir_text_puts(&label, name != NULL ? name : directory != NULL ? directory : "system");
	for (size_t i = 0; name == NULL && i < source->filter.count; i++) {
		static const char unit[] = "_SYSTEMD_UNIT=";
		const char *match = source->filter.matches[i];
		weir_text_puts(&label, " ");
		weir_text_puts(&label, strncmp(match, unit, sizeof unit - 1) == 0 ? match + sizeof unit - 1 : match);
	}
	weir_text_append(&label, "", 1);
	source->label = label.at;
	if (label.length <= LABEL_MAX_BYTES)
		return WEIR_OK;
	return weir_json_fail(config, error, "has so many units and match values that it needs a \"name\"");
}

/* The values of a configuration, without the units and fields to match. */
struct journal_config {
	const char *name, *directory;
	int start; /* enum source_at_start */
	bool follow;
	int64_t line_max;
};

#define AT(member) offsetof(struct journal_config, member)

static json_t *units_shape(void)
{
	return weir_shape_list(1, MATCHES_MAX, weir_shape_name(0));
}

static json_t *match_shape(void)
{
	json_t *shape = weir_shape_map(weir_shape_some(MATCHES_MAX, weir_shape_text()));
	json_object_set_new(shape, "propertyNames", weir_shape_pattern("^[A-Z0-9_]{1,64}$"));
	return shape;
}

static json_t *directory_shape(void)
{
	return weir_shape_name(0);
}

const struct weir_json_rule journal_members[] = {
	{.name = "type", .meaning = "the kind of source"},
	{.name = "name",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(name),
     .meaning = "the name by which weir remembers its position"},
	{.name = "units",
     .meaning = "only entries of these units; \"nginx\" means \"nginx.service\"",
     .shape = units_shape},
	{.name = "match", .meaning = "only entries with these fields", .shape = match_shape},
	{.name = "directory",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(directory),
     .meaning = "where the journal's files are",
     .shape = directory_shape},
	SOURCE_FORMAT_RULE,
	SOURCE_START_RULE(AT(start)),
	SOURCE_LINE_MAX_RULE(AT(line_max)),
	{.name = "follow", .kind = WEIR_JSON_FLAG, .offset = AT(follow), .meaning = "wait for more entries at the end"},
	{.name = NULL},
};

enum weir_status journal_configure(struct journal_source *source, const struct weir_json *config,
                                   const struct source_context *context, struct weir_error *error)
{
	struct weir_json directory_at = weir_json_member(config, "directory"), type = weir_json_member(config, "type");
	struct journal_config parsed = {.follow = true,
	                                .line_max = context->line_max_bytes > 0 ? context->line_max_bytes : LINE_MAX_BYTES};
	enum weir_status status = WEIR_OK;
	if (!journal_built_in())
		status = weir_json_fail(&type, error, "is \"journal\", but this program was built without libsystemd");
	if (status == WEIR_OK)
		status = read_units(&source->filter, config, error);
	if (status == WEIR_OK)
		status = read_match(&source->filter, config, error);
	if (status == WEIR_OK)
		status = weir_json_read(config, journal_members, &parsed, error);
	if (status == WEIR_OK && parsed.directory != NULL && *parsed.directory == '\0')
		status = weir_json_fail(&directory_at, error, "is empty; remove it to read the system journal");
	if (status == WEIR_OK)
		status = make_label(source, config, parsed.name, parsed.directory, error);
	source->start = (enum source_at_start)parsed.start;
	source->line_max = (size_t)parsed.line_max;
	source->once = context->once || !parsed.follow;
	journal_files_init(&source->files, parsed.directory);
	return status;
}
