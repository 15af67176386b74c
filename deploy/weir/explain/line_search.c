/* SPDX-License-Identifier: Apache-2.0 */
/* Files are read from their beginnings, as a format may need what stands before a line. */
#include "deploy/weir/explain/line_search.h"

#include "collector/follow/inputs.h"
#include "collector/format/format.h"
#include "collector/input/lines.h"
#include "common/base/alloc.h"
#include "common/json/json.h"
#include "common/matcher/matcher.h"
#include "deploy/weir/explain/line_files.h"
#include "deploy/weir/explain/line_window.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { READ_BYTES = 1 << 20, FOUND_MAX = 2 * QUESTION_EVENTS_MAX };

struct search {
	const struct lines_options *options;
	struct question *question;
	struct weir_field_table fields;
	struct weir_matcher *matcher;
	int64_t after_ms, until_ms; /* times that can be wanted */
	bool gathers;               /* the question has no events: all that fit are taken */
	struct weir_limit limit;    /* of its decision */
	int64_t at_ms, held;
	size_t room, sought;
	int64_t floor_ms; /* while it gathers: lines up to this time are only counted, as enough later ones were found */
	int64_t left_out; /* how many those are */
	int64_t left_bytes;
	/* where lines of the file that is read now were taken: each is of one event */
	uint64_t *taken; /* sorted */
	size_t taken_count, taken_room;
};

/* ---- which lines are taken ---- */

/* The first place whose offset is not below this one. */
static size_t find_taken(const struct search *search, uint64_t offset)
{
	size_t low = 0, high = search->taken_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (search->taken[middle] < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_taken(const struct search *search, uint64_t offset)
{
	size_t place = find_taken(search, offset);
	return place < search->taken_count && search->taken[place] == offset;
}

static void mark_taken(struct search *search, uint64_t offset)
{
	size_t place = find_taken(search, offset);
	if (search->taken_count == search->taken_room) {
		search->taken_room = 2 * search->taken_room + 16;
		search->taken = weir_realloc(search->taken, search->taken_room, sizeof *search->taken);
	}
	memmove(search->taken + place + 1, search->taken + place, (search->taken_count - place) * sizeof *search->taken);
	search->taken[place] = offset;
	search->taken_count++;
}

/* What events of the question were found in a file, under whatever name, plain or compressed. */
static void mark_known(struct search *search, const char *path)
{
	const char *last = NULL;
	struct stat about, other;
	bool same = false;
	search->taken_count = 0;
	if (stat(path, &about) != 0)
		return;
	for (size_t i = 0; i < search->question->event_count; i++) {
		const struct explained_event *event = &search->question->events[i];
		if (event->file == NULL)
			continue;
		if (last == NULL || strcmp(last, event->file) != 0) {
			last = event->file;
			same = line_files_are_one(last, path) ||
			       (stat(last, &other) == 0 && other.st_dev == about.st_dev && other.st_ino == about.st_ino);
		}
		if (same && !is_taken(search, event->offset))
			mark_taken(search, event->offset);
	}
}

/* ---- one record ---- */

/* Whether an event of a record is of the bucket that is asked about. */
static bool is_of_bucket(const struct search *search, const struct weir_matched_event *event)
{
	struct weir_span asked = {.at = search->question->key.at, .length = (uint32_t)search->question->key.length};
	for (uint32_t i = 0; weir_span_equal(event->key, asked) && i < event->zone_count; i++)
		if (event->zones[i].id == search->question->zone_id && !event->zones[i].done)
			return true;
	return false;
}

static void put_line(struct explained_event *event, const char *path, struct weir_span line, uint64_t begin)
{
	event->found = LINE_BY_TIME;
	event->file = weir_copy(path, strlen(path));
	event->offset = begin;
	event->line = weir_copy(line.at, line.length);
	event->line_length = line.length;
}

static int by_time(const void *a, const void *b)
{
	const struct explained_event *one = a, *other = b;
	if (one->time_ms != other->time_ms)
		return one->time_ms < other->time_ms ? -1 : 1;
	int files = strcmp(one->file, other->file);
	return files != 0 ? files : (one->offset > other->offset) - (one->offset < other->offset);
}

/* Sorts what was gathered, and drops all but the newest. */
static void keep_newest(struct search *search, size_t most)
{
	struct question *question = search->question;
	if (question->event_count > 0)
		qsort(question->events, question->event_count, sizeof *question->events, by_time);
	if (question->event_count <= most)
		return;
	size_t over = question->event_count - most;
	for (size_t i = 0; i < over; i++) {
		free(question->events[i].file);
		free(question->events[i].line);
	}
	search->floor_ms = question->events[over - 1].time_ms;
	search->left_out += (int64_t)over;
	memmove(question->events, question->events + over, most * sizeof *question->events);
	question->event_count = most;
}

static void gather(struct search *search, const struct weir_record *record, int64_t cost, const char *path,
                   struct weir_span line, uint64_t begin)
{
	struct question *question = search->question;
	if (record->time_ms <= search->floor_ms) {
		search->left_out++;
		return;
	}
	if (question->event_count == FOUND_MAX)
		keep_newest(search, QUESTION_EVENTS_MAX + 1); /* the one that decided is among them */
	if (question->event_count == search->room) {
		search->room = 2 * search->room + 16;
		question->events = weir_realloc(question->events, search->room, sizeof *question->events);
	}
	struct explained_event *event = &question->events[question->event_count++];
	*event = (struct explained_event){.time_ms = record->time_ms, .cost = cost};
	put_line(event, path, line, begin);
}

/* Gives the line to the first event of this time and cost that has none. @return false: none is sought */
static bool give_line(struct search *search, int64_t time_ms, int64_t cost, const char *path, struct weir_span line,
                      uint64_t begin)
{
	struct question *question = search->question;
	for (size_t i = 0; i < question->event_count; i++) {
		struct explained_event *event = &question->events[i];
		if (event->found != LINE_SOUGHT || event->time_ms != time_ms || event->cost != cost)
			continue;
		put_line(event, path, line, begin);
		search->sought--;
		return true;
	}
	return false;
}

static void take(struct search *search, const struct weir_record *record, const char *path, struct weir_span line,
                 uint64_t begin)
{
	struct weir_matched matched;
	int64_t cost = 0;
	bool found = false;
	if (record->time_ms <= search->after_ms || record->time_ms > search->until_ms || is_taken(search, begin))
		return;
	weir_matcher_match(search->matcher, record, &matched);
	for (uint32_t i = 0; i < matched.event_count; i++)
		if (is_of_bucket(search, &matched.events[i])) {
			cost += matched.events[i].cost;
			found |= search->gathers || give_line(search, record->time_ms, matched.events[i].cost, path, line, begin);
		}
	if (!found)
		return;
	if (search->gathers)
		gather(search, record, cost, path, line, begin);
	mark_taken(search, begin);
}

/* ---- one file ---- */

/* Parses the whole lines of a buffer. @return how many bytes they are */
static size_t take_lines(struct search *search, struct format *format, const char *path, const char *bytes,
                         size_t length, uint64_t offset, bool last)
{
	struct weir_record record = {0};
	size_t at = 0;
	format_behind(format, bytes + length, !last);
	while (at < length) {
		const char *newline = memchr(bytes + at, '\n', length - at);
		if (newline == NULL && !last)
			break;
		size_t end = newline != NULL ? (size_t)(newline - bytes) : length;
		struct weir_span line = {.at = bytes + at, .length = lines_trim(bytes + at, 0, (uint32_t)(end - at))};
		format_set_reference(format, search->until_ms);
		if (format_parse(format, line.at, line.length, &record) == FORMAT_OK)
			take(search, &record, path, line, offset + at);
		at = end + (newline != NULL);
	}
	return at;
}

static void read_file(struct search *search, const char *path, size_t place)
{
	struct line_window window;
	struct weir_error error;
	struct format *format;
	size_t held = 0, got = 0;
	if (inputs_format(search->options->config, &search->fields, place, &format, &error) != WEIR_OK)
		return;
	if (line_window_open(&window, path, READ_BYTES, &error) == WEIR_OK) {
		int64_t modified_ms = (int64_t)window.about.st_mtim.tv_sec * 1000 + 999;
		char *bytes = weir_alloc(2 * READ_BYTES, 1);
		uint64_t offset = 0;
		bool last = modified_ms <= search->after_ms; /* it ended before */
		while (!last && search->left_bytes > 0 && !patience_ended(search->options->patience) &&
		       (search->gathers || search->sought > 0)) {
			last = input_read_full(window.input, bytes + held, READ_BYTES, &got, &error) != WEIR_OK || got == 0;
			held += last ? 0 : got;
			size_t used = take_lines(search, format, path, bytes, held, offset, last);
			used = used == 0 && held > READ_BYTES ? held : used; /* a line that no source takes */
			memmove(bytes, bytes + used, held - used);
			held -= used;
			offset += used;
			search->left_bytes -= (int64_t)got;
		}
		free(bytes);
		line_window_close(&window);
	}
	format_free(format);
}

static void read_files(struct search *search)
{
	const struct weir_config *config = search->options->config;
	struct line_files files;
	line_files_find(&files, config, NULL, NULL, 0);
	for (size_t i = 0; i < files.count; i++) {
		mark_known(search, files.paths[i]);
		for (size_t place = 0; place < config->source_count; place++)
			if (line_files_source_names(config, place, NULL))
				read_file(search, files.paths[i], place);
	}
	search->question->skips_files = files.more;
	line_files_deinit(&files);
}

/* ---- a question ---- */

/* What a decision of a limit says; false: it is of none. */
static bool read_decision(struct search *search)
{
	const struct weir_text *published = &search->question->published;
	json_t *json = published->length > 0 ? json_loadb(published->at, published->length, JSON_ALLOW_NUL, NULL) : NULL;
	bool good = weir_limit_read(json_object_get(json, "limit"), &search->limit);
	search->at_ms = json_integer_value(json_object_get(json, "at"));
	search->held = json_integer_value(json_object_get(json, "count"));
	json_decref(json);
	return good;
}

static bool find_range(struct search *search)
{
	const struct question *question = search->question;
	if (question->event_count == 0) {
		if (!read_decision(search))
			return false;
		search->gathers = true;
		search->after_ms = search->at_ms - weir_limit_memory_ms(&search->limit);
		if (search->limit.algorithm->met != NULL)
			search->limit.algorithm->met(&search->limit, search->at_ms, &search->after_ms, &search->until_ms);
		search->until_ms = search->at_ms;
		return true;
	}
	search->after_ms = INT64_MAX;
	for (size_t i = 0; i < question->event_count; i++) {
		const struct explained_event *event = &question->events[i];
		if (event->found != LINE_SOUGHT)
			continue;
		search->sought++;
		search->after_ms = event->time_ms - 1 < search->after_ms ? event->time_ms - 1 : search->after_ms;
		search->until_ms = event->time_ms > search->until_ms ? event->time_ms : search->until_ms;
	}
	return search->sought > 0;
}

/* The last ones, as many as the limit can have counted and the one that decided. */
static void settle_gathered(struct search *search)
{
	struct question *question = search->question;
	if (question->event_count == 0)
		return;
	int64_t wanted = search->left_out + (int64_t)question->event_count;
	if (search->limit.algorithm->met != NULL && wanted > search->held)
		wanted = search->held + 1;
	keep_newest(search, wanted <= QUESTION_EVENTS_MAX ? (size_t)wanted : QUESTION_EVENTS_MAX + (size_t)1);
	question->left_out = wanted - (int64_t)question->event_count;
	struct explained_event *last = &question->events[question->event_count - 1];
	last->decided = last->time_ms == search->at_ms;
}

bool line_search(const struct lines_options *options, struct question *question)
{
	struct search search = {.options = options, .question = question, .left_bytes = LINE_SEARCH_BYTES};
	uint64_t version =
		question->policy_version > 0 ? question->policy_version : policy_registry_newest(options->registry);
	const struct weir_policy *policy = policy_registry_policy(options->registry, version);
	const struct weir_zone *found = policy != NULL ? weir_policy_zone(policy, question->zone_id) : NULL;
	struct weir_error error;
	if (options->config == NULL || found == NULL || !question->key_known || !find_range(&search))
		return true;
	/* Its zone alone, and without long lists of who is exempt: this key was not, and a list may have gone since. */
	struct weir_zone zone = *found;
	zone.exempt_list_count = 0;
	struct weir_policy alone = {.version = version, .zones = &zone, .zone_count = 1};
	search.floor_ms = INT64_MIN;
	weir_field_table_init(&search.fields);
	if (weir_matcher_new(&alone, NULL, &search.fields, 1, &search.matcher, &error) == WEIR_OK) {
		read_files(&search);
		weir_matcher_free(search.matcher);
	}
	weir_field_table_deinit(&search.fields);
	free(search.taken);
	if (search.gathers)
		settle_gathered(&search);
	return search.left_bytes > 0;
}
