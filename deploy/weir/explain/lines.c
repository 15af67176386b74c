/* SPDX-License-Identifier: Apache-2.0 */
/* The events of one stream and incarnation are looked for together, by rising offsets: each file is read once. */
#include "deploy/weir/explain/lines.h"

#include "collector/follow/inputs.h"
#include "collector/format/format.h"
#include "collector/source/journal/journal_lines.h"
#include "common/base/alloc.h"
#include "common/matcher/key_template.h"
#include "deploy/weir/explain/line_files.h"
#include "deploy/weir/explain/line_window.h"

#include <stdlib.h>

enum { LINE_LEAST_BYTES = 64 * 1024, PARTS_MOST = 64 };

/* An event, and the key that its line must have. */
struct sought {
	struct explained_event *event;
	struct question *question;
	const struct weir_key_template *template;
};

/* A zone's key, which never changes. */
struct zone_key {
	uint32_t zone_id;
	struct weir_key_template template;
	struct zone_key *next;
};

struct finder {
	const struct lines_options *options;
	struct weir_field_table fields;
	struct zone_key *keys;
	struct format **formats; /* by place; NULL: not made yet */
	struct sought *all;
	size_t count;
	bool takes_later; /* a line whose time is after the event's: it was ahead of the collector's clock */
};

/* ---- is it the line? ---- */

static struct format *format_of(struct finder *finder, size_t place)
{
	struct weir_error error;
	const struct weir_config *config = finder->options->config;
	if (finder->formats[place] == NULL &&
	    inputs_format(config, &finder->fields, place, &finder->formats[place], &error) != WEIR_OK)
		finder->formats[place] = NULL; /* the run that read it had another; so no line is of this one */
	/* Lines are picked out of their order, and what was not believed is no event. */
	for (struct format *format = finder->formats[place]; format != NULL; format = format->inner)
		format->lines = FORMAT_LINES_WHOLE;
	return finder->formats[place];
}

/* A power loss leaves zeros before a line, and files that were joined have byte order marks within. */
static struct weir_span cut_beginning(struct weir_span line)
{
	static const char mark[] = {'\xef', '\xbb', '\xbf'};
	for (;;) {
		uint32_t cut = line.length > 0 && line.at[0] == '\0'                                   ? 1
		               : line.length >= sizeof mark && memcmp(line.at, mark, sizeof mark) == 0 ? sizeof mark
		                                                                                       : 0;
		if (cut == 0)
			return line;
		line.at += cut;
		line.length -= cut;
	}
}

static bool is_event(const struct finder *finder, const struct sought *sought, const struct weir_record *record)
{
	struct weir_address_cache cache = {0};
	const struct question *question = sought->question;
	int64_t time_ms = sought->event->time_ms;
	if (record->time_ms < time_ms || (record->time_ms > time_ms && !finder->takes_later) ||
	    !weir_key_template_present(sought->template, record))
		return false;
	struct weir_span key = weir_key_template_join(sought->template, record, &cache);
	struct weir_span asked = {.at = question->key.at, .length = (uint32_t)question->key.length};
	return weir_span_equal(key, asked);
}

static bool parses(const struct finder *finder, struct format *format, struct weir_span line,
                   const struct sought *sought, struct weir_record *record)
{
	line = cut_beginning(line);
	format_set_reference(format, sought->event->time_ms);
	return format_parse(format, line.at, line.length, record) == FORMAT_OK && is_event(finder, sought, record);
}

/* Lines in parts: those before it are read first, as many as a line can have. */
static bool parses_behind(const struct finder *finder, struct format *format, struct weir_span before,
                          struct weir_span line, const struct sought *sought, struct weir_record *record)
{
	if (format->unfinished == NULL)
		return false;
	while (format_unfinished(format).at != NULL)
		;
	const char *end = before.at + before.length, *at = end;
	for (int parts = 0; parts < PARTS_MOST && at > before.at; parts++)
		for (at--; at > before.at && at[-1] != '\n';)
			at--;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct weir_span part = {.at = at, .length = (uint32_t)((newline != NULL ? newline : end) - at)};
		(void)format_parse(format, part.at, part.length, record);
		at = newline != NULL ? newline + 1 : end;
	}
	return parses(finder, format, line, sought, record);
}

/* Formats with a header find it among the file's first lines. */
static void begin_file(struct format *format, const char *path)
{
	struct line_window window;
	struct weir_error error;
	struct weir_record ignored;
	format_begin(format, (struct weir_span){0});
	if (format->header == NULL || line_window_open(&window, path, LINE_LEAST_BYTES, &error) != WEIR_OK)
		return;
	char *head = weir_alloc(LINE_LEAST_BYTES, 1);
	size_t length = 0;
	if (input_read_full(window.input, head, LINE_LEAST_BYTES, &length, &error) == WEIR_OK)
		for (const char *at = head, *newline;
		     format_header(format).at == NULL && (newline = memchr(at, '\n', length - (size_t)(at - head))) != NULL;
		     at = newline + 1)
			(void)format_parse(format, at, lines_trim(at, 0, (uint32_t)(newline - at)), &ignored);
	free(head);
	line_window_close(&window);
}

/* ---- in one file ---- */

static void take(struct explained_event *event, const char *path, struct weir_span line, uint64_t begin)
{
	event->found = LINE_AT;
	event->file = weir_copy(path, strlen(path));
	event->offset = begin;
	event->line = weir_copy(line.at, line.length);
	event->line_length = line.length;
}

/*
 * Whether a line is another event's. Another file of the stream may have a line of the same key and time at the same
 * offset, and a file that is there both plain and compressed has each line once. All events of a line that stands for
 * several are at its position.
 */
static bool is_shown(const struct question *question, const struct explained_event *sought, const char *path,
                     uint64_t begin)
{
	for (size_t i = 0; i < question->event_count; i++) {
		const struct explained_event *event = &question->events[i];
		if (event->found != LINE_SOUGHT && event->offset == begin && line_files_are_one(event->file, path) &&
		    (event->position != sought->position || memcmp(event->source, sought->source, sizeof event->source) != 0))
			return true;
	}
	return false;
}

/* Looks for the events of a group in a file, as lines of a source. @return how many are still sought */
static size_t look_into(struct finder *finder, const char *path, size_t place, struct sought *group, size_t count)
{
	struct line_window window;
	struct weir_error error;
	struct weir_record record;
	struct format *format = format_of(finder, place);
	size_t reach = (size_t)finder->options->config->collector.line_max_bytes, left = count;
	if (format == NULL ||
	    line_window_open(&window, path, reach > LINE_LEAST_BYTES ? reach : LINE_LEAST_BYTES, &error) != WEIR_OK)
		return count;
	begin_file(format, path);
	window.patience = finder->options->patience;
	for (size_t i = 0; i < count && !patience_ended(window.patience); i++) {
		struct explained_event *event = group[i].event;
		struct weir_span line;
		uint64_t begin;
		if (event->found == LINE_SOUGHT &&
		    line_window_line(&window, source_position_offset(event->position), &line, &begin) &&
		    (parses(finder, format, line, &group[i], &record) ||
		     parses_behind(finder, format, line_window_before(&window, begin), line, &group[i], &record)) &&
		    !is_shown(group[i].question, event, path, begin))
			take(event, path, line, begin);
	}
	for (size_t i = 0; i < count; i++)
		left -= group[i].event->found != LINE_SOUGHT;
	line_window_close(&window);
	return left;
}

/* ---- in a journal ---- */

/* Looks for the events of a group among the entries of a source's journal. */
static void look_into_journal(struct finder *finder, size_t place, const char *stream, struct sought *group,
                              size_t count)
{
	const struct weir_config *config = finder->options->config;
	struct weir_json source = weir_json_element(&config->sources, place);
	struct format *format = format_of(finder, place);
	struct weir_text line = {0};
	struct weir_record record;
	const char *path;
	if (format == NULL)
		return;
	struct journal_lines *lines = journal_lines_new(&source);
	for (size_t i = 0; i < count && !patience_ended(finder->options->patience); i++) {
		struct explained_event *event = group[i].event;
		if (event->found == LINE_SOUGHT &&
		    journal_lines_read(lines, stream, event->position, (size_t)config->collector.line_max_bytes, &line,
		                       &path) &&
		    parses(finder, format, weir_text_span(&line), &group[i], &record))
			take(event, path, weir_text_span(&line), event->position - (UINT64_C(1) << SOURCE_OFFSET_BITS));
	}
	weir_text_deinit(&line);
	journal_lines_free(lines);
}

static void look_into_journals(struct finder *finder, const char *stream, struct sought *group, size_t count)
{
	const struct weir_config *config = finder->options->config;
	for (size_t place = 0; config != NULL && place < config->source_count; place++) {
		struct weir_json source = weir_json_element(&config->sources, place), type = weir_json_member(&source, "type");
		if (json_is_string(type.value) && strcmp(json_string_value(type.value), "journal") == 0)
			look_into_journal(finder, place, stream, group, count);
	}
}

/* ---- a group ---- */

/* The stream that an id stands for; NULL: it is of another collector. */
static const char *stream_of(const struct source_memory *memory, const uint8_t id[SOURCE_ID_BYTES])
{
	uint8_t other[SOURCE_ID_BYTES];
	for (size_t i = 0; memory != NULL && i < memory->stream_count; i++) {
		source_memory_stream_id(memory, memory->streams[i]->path, other);
		if (memcmp(other, id, sizeof other) == 0)
			return memory->streams[i]->path;
	}
	return NULL;
}

static bool some_source_names(const struct weir_config *config, const char *stream)
{
	for (size_t place = 0; stream != NULL && place < config->source_count; place++)
		if (line_files_source_names(config, place, stream))
			return true;
	return false;
}

/* Looks into a file by the formats of all sources that name the stream. @param stream  NULL: of all that read files */
static size_t look_as_all(struct finder *finder, const char *path, const char *stream, struct sought *group,
                          size_t count)
{
	const struct weir_config *config = finder->options->config;
	size_t left = count;
	for (size_t place = 0; place < config->source_count && left > 0; place++)
		if (line_files_source_names(config, place, stream))
			left = look_into(finder, path, place, group, count);
	return left;
}

/* The events of one stream and incarnation, by rising positions. */
static void find_group(struct finder *finder, struct sought *group, size_t count)
{
	const struct weir_config *config = finder->options->config;
	const struct source_memory *memory = finder->options->memory;
	const struct explained_event *first = group[0].event;
	const char *stream = stream_of(memory, first->source);
	struct line_files files;
	for (size_t i = 0; i < count && stream != NULL; i++)
		group[i].event->stream = weir_copy(stream, strlen(stream));
	if (stream != NULL && strncmp(stream, SOURCE_JOURNAL_PREFIX, 8) == 0) {
		look_into_journals(finder, stream, group, count);
		return;
	}
	if (config == NULL)
		return;
	bool named = some_source_names(config, stream);
	line_files_find(&files, config, memory, stream, source_position_incarnation(first->position));
	size_t left = count;
	for (size_t i = 0; i < files.count && left > 0 && !patience_ended(finder->options->patience); i++)
		left = look_as_all(finder, files.paths[i], named ? stream : NULL, group, count);
	/* Only of the file that it must be in: another's line of a later time would be another event. */
	finder->takes_later = true;
	if (left > 0 && files.own)
		left = look_as_all(finder, files.paths[0], named ? stream : NULL, group, count);
	finder->takes_later = false;
	for (size_t i = 0; i < count && left > 0; i++)
		group[i].question->skips_files = group[i].question->skips_files || files.more;
	line_files_deinit(&files);
}

/* The newest incarnation is first: its file is known best, and its lines are not another's then. */
static int by_position(const void *a, const void *b)
{
	const struct explained_event *one = ((const struct sought *)a)->event, *other = ((const struct sought *)b)->event;
	int sources = memcmp(one->source, other->source, sizeof one->source);
	uint32_t mine = source_position_incarnation(one->position), its = source_position_incarnation(other->position);
	if (sources == 0 && mine != its)
		return mine > its ? -1 : 1;
	return sources != 0 ? sources : (one->position > other->position) - (one->position < other->position);
}

static bool same_group(const struct explained_event *one, const struct explained_event *other)
{
	return memcmp(one->source, other->source, sizeof one->source) == 0 &&
	       source_position_incarnation(one->position) == source_position_incarnation(other->position);
}

static void find_groups(struct finder *finder)
{
	if (finder->count > 0)
		qsort(finder->all, finder->count, sizeof *finder->all, by_position);
	for (size_t i = 0, end; i < finder->count; i = end) {
		for (end = i + 1; end < finder->count && same_group(finder->all[i].event, finder->all[end].event);)
			end++;
		find_group(finder, finder->all + i, end - i);
	}
}

/* ---- all ---- */

/* The key of a question's zone; NULL: it is not known. */
static const struct weir_key_template *template_of(struct finder *finder, const struct question *question)
{
	struct weir_error error;
	for (struct zone_key *key = finder->keys; key != NULL; key = key->next)
		if (key->zone_id == question->zone_id)
			return &key->template;
	const struct weir_policy *policy = policy_registry_policy(finder->options->registry, question->policy_version);
	const struct weir_zone *zone = policy != NULL ? weir_policy_zone(policy, question->zone_id) : NULL;
	if (zone == NULL)
		return NULL;
	struct zone_key *key = weir_alloc(1, sizeof *key);
	if (weir_key_template_init(&key->template, zone, &finder->fields, &error) != WEIR_OK) {
		weir_key_template_deinit(&key->template);
		free(key);
		return NULL;
	}
	key->zone_id = question->zone_id;
	key->next = finder->keys;
	finder->keys = key;
	return &key->template;
}

static void gather(struct finder *finder, struct question *questions, size_t count)
{
	size_t room = 0;
	for (size_t i = 0; i < count; i++)
		room += questions[i].event_count;
	finder->all = weir_alloc(room + 1, sizeof *finder->all);
	for (size_t i = 0; i < count; i++) {
		const struct weir_key_template *template =
			questions[i].event_count > 0 ? template_of(finder, &questions[i]) : NULL;
		for (size_t j = 0; template != NULL && j < questions[i].event_count; j++)
			finder->all[finder->count++] =
				(struct sought){.event = &questions[i].events[j], .question = &questions[i], .template = template};
	}
}

void lines_find_all(const struct lines_options *options, struct question *questions, size_t count)
{
	struct finder finder = {.options = options};
	size_t places = options->config != NULL ? options->config->source_count : 0;
	weir_field_table_init(&finder.fields);
	finder.formats = weir_alloc(places + 1, sizeof(struct format *));
	gather(&finder, questions, count); /* before any format is made: each is made for the fields of all zones */
	find_groups(&finder);
	for (struct zone_key *key = finder.keys, *next; key != NULL; key = next) {
		next = key->next;
		weir_key_template_deinit(&key->template);
		free(key);
	}
	for (size_t i = 0; i < places; i++)
		if (finder.formats[i] != NULL)
			format_free(finder.formats[i]);
	free(finder.formats);
	free(finder.all);
	weir_field_table_deinit(&finder.fields);
}
