/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: what the memory has of them, and their statuses.
 *
 * A stream is named in the memory by its label and its id. One whose label is known under another id was made anew: all
 * that is in it is new, so it is read from its beginning, wherever "start" says. What is left of the one before is
 * removed after a week.
 */
#include "collector/source/queue/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hex.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t forget_after_ns = INT64_C(7) * 86400 * 1000000000;

/* "nats:edge:LOGS:", and the id behind it unless that is NULL. Returned, the caller frees. */
static char *put_name(const struct queue_source *source, const char *label, const uint8_t *id)
{
	struct weir_text text = {0};
	char digits[2 * SOURCE_ID_BYTES];
	weir_text_printf(&text, "%s%s:", source->prefix, label);
	if (id != NULL) {
		(void)weir_hex_put(digits, id, SOURCE_ID_BYTES);
		weir_text_append(&text, digits, sizeof digits);
	}
	weir_text_append(&text, "", 1);
	return text.at;
}

/* Whether a stream of this label was read before. Removes records of those that have been gone for long. */
static bool is_known(struct queue_source *source, const char *label)
{
	char *prefix = put_name(source, label, NULL);
	size_t length = strlen(prefix);
	int64_t now_ns = weir_wall_ms() * 1000000;
	bool known = false;
	for (size_t i = source->memory->stream_count; i-- > 0;) {
		const struct source_memory_stream *record = source->memory->streams[i];
		if (strncmp(record->path, prefix, length) != 0 || strlen(record->path) != length + 2u * SOURCE_ID_BYTES)
			continue; /* another label may begin with this one */
		known = true;
		if (!record->claimed && now_ns - record->forgotten_ns > forget_after_ns)
			source_memory_remove(source->memory, i);
	}
	free(prefix);
	return known;
}

/* The stream's record, a new one where there is none. NULL, in words: another source reads it, or the memory is full. */
static struct source_memory_stream *find_record(struct queue_source *source, const struct queue_found *found,
                                                struct weir_error *error)
{
	char *name = put_name(source, found->label, found->id);
	struct source_memory_stream *record = source_memory_find(source->memory, name);
	if (record == NULL && found->again) {
		free(name);
		(void)weir_fail(error, WEIR_INVALID, "it was not read before");
		return NULL;
	}
	if (record == NULL) {
		bool at_end =
			!found->kept && source->start == SOURCE_FROM_END && !source->once && !is_known(source, found->label);
		record = source_memory_add(source->memory, name);
		if (record != NULL && at_end)
			source_memory_acknowledge(source->memory, record, found->last);
	}
	free(name);
	if (record == NULL)
		(void)weir_fail(
			error, WEIR_INVALID,
			"the collector remembers %d streams and logs, which is the most it can: let another collector read "
			"some, and let those go that are read no more",
			SOURCE_MEMORY_STREAMS_MAX);
	else if (record->claimed)
		(void)weir_fail(error, WEIR_INVALID,
		                "another source of this name reads the same: give each source its own \"name\"");
	if (record == NULL || record->claimed)
		return NULL;
	record->claimed = true;
	record->forgotten_ns = weir_wall_ms() * 1000000; /* when it was last seen */
	source_memory_changed(source->memory);
	return record;
}

static struct queue_stream *add(struct queue_source *source, const uint8_t *id, const char *label, bool is_common)
{
	struct queue_stream *stream = weir_alloc(1, sizeof *stream);
	memcpy(stream->id, id, SOURCE_ID_BYTES);
	memcpy(stream->stream.id, id, SOURCE_ID_BYTES);
	stream->stream.is_common = is_common;
	stream->label = weir_copy(label, strlen(label));
	struct weir_text name = {0};
	weir_text_printf(&name, "%s%s", source->prefix, label);
	weir_text_append(&name, "", 1);
	stream->stream.name = name.at;
	stream->stream.order = (uint32_t)source->stream_count;
	pthread_mutex_lock(&source->mutex);
	source->streams = weir_realloc(source->streams, source->stream_count + 1, sizeof(struct queue_stream *));
	source->handles = weir_realloc(source->handles, source->stream_count + 1, sizeof(struct source_stream *));
	source->streams[source->stream_count] = stream;
	source->handles[source->stream_count++] = &stream->stream;
	pthread_mutex_unlock(&source->mutex);
	return stream;
}

/* ---- the kind's numbers ---- */

static const char *const number_names[QUEUE_NUMBERS] = {[QUEUE_NUMBER] = "number", [QUEUE_ADDED] = "added"};

static void read_numbers(const struct source_memory_stream *record, uint64_t numbers[QUEUE_NUMBERS])
{
	struct weir_json_document *document;
	struct weir_error ignored;
	memset(numbers, 0, QUEUE_NUMBERS * sizeof *numbers);
	if (record->notes == NULL || weir_json_parse_saved("the notes of a stream", record->notes, record->notes_length,
	                                                   &document, &ignored) != WEIR_OK)
		return;
	struct weir_json root = weir_json_root(document);
	for (int i = 0; i < QUEUE_NUMBERS; i++) {
		struct weir_json at = weir_json_member(&root, number_names[i]);
		int64_t number = 0;
		if (weir_json_int(&at, 0, INT64_MAX, &number, &ignored) == WEIR_OK)
			numbers[i] = (uint64_t)number;
	}
	weir_json_document_free(document);
}

/* Notes the numbers of the newest marks that are safe. */
static void note_numbers(struct queue_source *source, struct queue_stream *stream, uint64_t position)
{
	size_t taken = 0;
	uint64_t numbers[QUEUE_NUMBERS];
	memcpy(numbers, stream->noted, sizeof numbers);
	for (; taken < stream->mark_count && stream->marks[taken].position <= position; taken++)
		for (int i = 0; i < QUEUE_NUMBERS; i++)
			if (stream->marks[taken].numbers[i] != 0)
				numbers[i] = stream->marks[taken].numbers[i];
	stream->mark_count -= taken;
	memmove(stream->marks, stream->marks + taken, stream->mark_count * sizeof *stream->marks);
	if (memcmp(numbers, stream->noted, sizeof numbers) == 0 || stream->record == NULL)
		return;
	struct weir_text text = {0};
	for (int i = 0; i < QUEUE_NUMBERS; i++)
		if (numbers[i] != 0)
			weir_text_printf(&text, "%s\"%s\":%" PRIu64, text.length > 0 ? "," : "{", number_names[i], numbers[i]);
	weir_text_puts(&text, "}");
	source_memory_note(source->memory, stream->record, &text);
	memcpy(stream->noted, numbers, sizeof numbers);
}

/* ---- the streams ---- */

static void set_place(struct queue_stream *stream, uint64_t place)
{
	stream->place = stream->handed = stream->shown = place;
	atomic_store(&stream->safe, place);
}

struct queue_stream *queue_open_stream(struct queue_source *source, const struct queue_found *found,
                                       struct weir_error *error)
{
	for (size_t i = 0; i < source->stream_count; i++)
		if (memcmp(source->streams[i]->id, found->id, SOURCE_ID_BYTES) == 0)
			return source->streams[i];
	if (source->stream_count == QUEUE_STREAMS_MAX) {
		(void)weir_fail(
			error, WEIR_INVALID,
			"the source has found %d streams since it was started, which is the most, as each that was made anew is "
			"one: restart the collector",
			QUEUE_STREAMS_MAX);
		return NULL;
	}
	bool remembered = source->memory != NULL && !found->fleeting;
	if (!remembered && found->again) {
		(void)weir_fail(error, WEIR_INVALID, "it was not read before");
		return NULL;
	}
	struct source_memory_stream *record = remembered ? find_record(source, found, error) : NULL;
	if (remembered && record == NULL)
		return NULL;
	struct queue_stream *stream = add(source, found->id, found->label, !found->fleeting);
	stream->record = record;
	stream->guarantee = found->guarantee;
	if (record != NULL)
		read_numbers(record, stream->remembered);
	memcpy(stream->noted, stream->remembered, sizeof stream->noted);
	uint64_t begin = record != NULL                                      ? record->low_water
	                 : source->start == SOURCE_FROM_END && !source->once ? found->last
	                                                                     : 0;
	set_place(stream, found->kept ? found->safe : begin);
	return stream;
}

void queue_open_none(struct queue_source *source)
{
	static const uint8_t none[SOURCE_ID_BYTES];
	(void)add(source, none, source->label + strlen(source->prefix), false);
}

bool queue_save_stream(struct queue_source *source)
{
	struct weir_error error;
	if (source->once || source->memory == NULL || source_memory_save(source->memory, &error) == WEIR_OK)
		return true;
	queue_problem(source, error.text);
	return false;
}

enum weir_status queue_resume(struct source *base, struct source_stream *handle, uint64_t position,
                              struct weir_error *error)
{
	(void)base;
	(void)error;
	set_place((struct queue_stream *)(void *)handle, position);
	return WEIR_OK;
}

void queue_acknowledge(struct source *base, struct source_stream *handle, uint64_t position)
{
	struct queue_source *source = (struct queue_source *)(void *)base;
	struct queue_stream *stream = (struct queue_stream *)(void *)handle;
	if (position >= stream->handed && stream->shown > position) /* what follows has no line */
		position = stream->shown;
	if (position > atomic_load(&stream->safe))
		atomic_store(&stream->safe, position);
	note_numbers(source, stream, position);
	if (stream->record != NULL)
		source_memory_acknowledge(source->memory, stream->record, position);
}

size_t queue_streams(struct source *base, struct source_stream ***streams)
{
	struct queue_source *source = (struct queue_source *)(void *)base;
	*streams = source->handles;
	return source->stream_count;
}

void queue_free_streams(struct queue_source *source)
{
	for (size_t i = 0; i < source->stream_count; i++) {
		struct queue_stream *stream = source->streams[i];
		if (stream->record != NULL)
			stream->record->claimed = false;
		free(stream->stream.name);
		free(stream->label);
		free(stream);
	}
	for (size_t i = 0; i < source->trouble_count; i++)
		free(source->troubles[i].name);
	free(source->troubles);
	free(source->streams);
	free(source->handles);
}

/* ---- status ---- */

static const struct queue_trouble *find_trouble(const struct queue_source *source, const char *name)
{
	for (size_t i = 0; i < source->trouble_count; i++)
		if (source->troubles[i].words[0] != '\0' && strcmp(source->troubles[i].name, name) == 0)
			return &source->troubles[i];
	return NULL;
}

static bool is_answered(const struct queue_source *source, const char *name)
{
	for (size_t i = 0; i < source->stream_count; i++)
		if (source->streams[i]->answered && strcmp(source->streams[i]->stream.name, name) == 0)
			return true;
	return false;
}

/* Adds a status for each trouble of what was never read. @return how many statuses there are */
static size_t state_troubles(const struct queue_source *source, struct source_status *statuses, size_t count,
                             size_t filled)
{
	for (size_t i = 0; i < source->trouble_count; i++) {
		const struct queue_trouble *trouble = &source->troubles[i];
		if (trouble->words[0] == '\0' || is_answered(source, trouble->name))
			continue;
		if (filled < count) {
			statuses[filled] = (struct source_status){.name = trouble->name, .absent = trouble->absent};
			snprintf(statuses[filled].problem, sizeof statuses[filled].problem, "%s", trouble->words);
		}
		filled++;
	}
	return filled;
}

/* One that was made anew counts on: what was lost of those before it stays told. */
static void add_counts(const struct queue_source *source, const struct queue_stream *stream,
                       struct source_status *status)
{
	for (size_t i = 0; i < source->stream_count; i++) {
		const struct queue_stream *before = source->streams[i];
		if (before->answered || strcmp(before->label, stream->label) != 0)
			continue;
		status->lines += atomic_load_explicit(&before->stream.lines, memory_order_relaxed);
		status->lost_records += before->lost;
		status->unknown_losses += before->unknown;
		status->own[SOURCE_OWN_SKIPPED] += before->skipped;
		status->own[SOURCE_OWN_AGAIN] += before->again;
	}
}

static void state_stream(const struct queue_source *source, const struct queue_stream *stream,
                         struct source_status *status)
{
	uint64_t waiting = stream->newest > stream->shown ? stream->newest - stream->shown : 0;
	if (stream->counts_left && waiting > 0)
		waiting = stream->left > 0 ? stream->left : 1;
	*status = (struct source_status){
		.name = stream->stream.name,
		.guarantee = stream->guarantee,
		.position = stream->shown,
		.counts_records = true,
		.lag_records = waiting,
		.no_lag_time = waiting > 0 && stream->shown_ms == 0,
		.lines = atomic_load_explicit(&stream->stream.lines, memory_order_relaxed),
		.lost_records = stream->lost,
		.unknown_losses = stream->unknown,
		.own = {[SOURCE_OWN_SKIPPED] = stream->skipped, [SOURCE_OWN_AGAIN] = stream->again},
	};
	int64_t waited_ms = weir_wall_ms() - stream->shown_ms;
	if (waiting > 0 && stream->shown_ms > 0 && waited_ms > 0)
		status->lag_ms = waited_ms;
	const struct queue_trouble *trouble = find_trouble(source, stream->stream.name);
	if (trouble != NULL) {
		snprintf(status->problem, sizeof status->problem, "%s", trouble->words);
		status->absent = trouble->absent;
		return;
	}
	if (weir_monotonic_ms() >= stream->problem_until_ms)
		return;
	status->reads_on = true;
	snprintf(status->problem, sizeof status->problem, "%s", stream->problem);
}

/* Says of the source as a whole what is wrong with it. */
static void state_whole(const struct queue_source *source, struct source_status *status)
{
	status->errors = source->errors;
	if (source->problem[0] == '\0')
		return;
	status->reads_on = false;
	snprintf(status->problem, sizeof status->problem, "%s", source->problem);
}

size_t queue_status(struct source *base, struct source_status *statuses, size_t count)
{
	struct queue_source *source = (struct queue_source *)(void *)base;
	size_t filled = 0;
	bool stated = false;
	pthread_mutex_lock(&source->mutex);
	for (size_t i = 0; i < source->stream_count; i++) {
		struct source_status status;
		if (!source->streams[i]->answered)
			continue;
		state_stream(source, source->streams[i], &status);
		add_counts(source, source->streams[i], &status);
		if (strcmp(status.name, source->label) == 0) { /* its only one */
			state_whole(source, &status);
			stated = true;
		}
		if (filled < count)
			statuses[filled] = status;
		filled++;
	}
	if (!stated) {
		struct source_status status = {.name = source->label, .whole = true};
		state_whole(source, &status);
		if (filled < count)
			statuses[filled] = status;
		filled++;
	}
	filled = state_troubles(source, statuses, count, filled);
	pthread_mutex_unlock(&source->mutex);
	return filled;
}
