/*
 * The file source: its streams in turn, and their status.
 *
 * Each stream is read by itself (source_file_stream.c); here is what they have
 * in common: who is asked next, what wakes them, when files are looked for.
 */
#include "collector/source/file/internal.h"

#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	FORGET_STREAM_S = 30 * 86400,
	FORGET_CROWDED_S = 86400, /* where streams are many, as with a directory for each container */
	EVENTS_PAUSE_MS = 20,     /* how long a busy source may leave directory events lying */
	RESCAN_PAUSE_MS = 20,     /* between scans that events ask for */
};

int64_t file_modified_ns(const struct stat *about)
{
	return (int64_t)about->st_mtim.tv_sec * 1000000000 + about->st_mtim.tv_nsec;
}

/* ---- streams ---- */

struct file_stream *file_source_add(struct file_source *source, struct source_memory_stream *record, const char *path,
                                    uint32_t pattern)
{
	struct file_stream *stream = weir_alloc(1, sizeof *stream);
	record->claimed = true;
	stream->source = source;
	stream->record = record;
	stream->path = weir_copy(path, strlen(path));
	stream->pattern = pattern;
	stream->created_scan = source->scans;
	stream->hot = true;
	stream->stream.name = record->path;
	source_memory_stream_id(source->memory, record->path, stream->stream.id);
	stream->status =
		(struct source_status){.name = record->path, .kind = "file", .replayable = true, .position = record->low_water};
	stream->incarnation = record->next_incarnation;
	if (record->part_count > 0) {
		const struct source_memory_part *part =
			source_memory_part(record, source_position_incarnation(record->low_water));
		part = part != NULL ? part : &record->parts[0];
		uint64_t offset = source_position_offset(record->low_water);
		stream->incarnation = part->incarnation;
		stream->offset = part->incarnation == source_position_incarnation(record->low_water) && offset > part->from
		                     ? offset
		                     : part->from;
	}
	pthread_mutex_lock(&source->mutex);
	stream->caught_up_ms = weir_monotonic_ms();
	stream->stream.order = (uint32_t)source->stream_count;
	source->streams = weir_realloc(source->streams, source->stream_count + 1, sizeof(struct file_stream *));
	source->handles = weir_realloc(source->handles, source->stream_count + 1, sizeof(struct source_stream *));
	source->streams[source->stream_count] = stream;
	source->handles[source->stream_count++] = &stream->stream;
	pthread_mutex_unlock(&source->mutex);
	return stream;
}

/* A stream whose files were gone long ago, as with a date in their names. */
static bool is_bygone(const struct source_memory *memory, const struct source_memory_stream *record, int64_t now_s)
{
	int64_t after_s = memory->stream_count > SOURCE_MEMORY_STREAMS_MAX / 2 ? FORGET_CROWDED_S : FORGET_STREAM_S;
	if (record->file_count == 0)
		return false;
	for (size_t i = 0; i < record->file_count; i++)
		if (now_s - record->files[i]->seen_s < after_s)
			return false;
	return !file_any_left(record->path);
}

/* Streams that the memory knows and that the patterns name: they go on, even where their files have gone. */
static void claim_known(struct file_source *source)
{
	for (size_t i = 0; i < source->memory->stream_count;) {
		struct source_memory_stream *record = source->memory->streams[i];
		bool others =
			record->claimed || strncmp(record->path, SOURCE_JOURNAL_PREFIX, sizeof SOURCE_JOURNAL_PREFIX - 1) == 0;
		int pattern = others ? -1 : file_source_pattern(source, record->path);
		if (pattern >= 0 && is_bygone(source->memory, record, weir_wall_ms() / 1000)) {
			source_memory_remove(source->memory, i);
			continue;
		}
		if (pattern >= 0)
			file_source_add(source, record, record->path, (uint32_t)pattern);
		i++;
	}
	source->fresh = source->stream_count == 0;
}

static int by_place(const void *a, const void *b)
{
	const struct file_stream *x = *(struct file_stream *const *)a, *y = *(struct file_stream *const *)b;
	if (x->pattern != y->pattern)
		return x->pattern < y->pattern ? -1 : 1;
	return strcmp(x->stream.name, y->stream.name);
}

/* The order of ties in a merge: the patterns as configured, a glob's files by path bytes. */
static void put_in_order(struct file_source *source)
{
	if (source->stream_count > 0)
		qsort(source->streams, source->stream_count, sizeof(struct file_stream *), by_place);
	for (size_t i = 0; i < source->stream_count; i++) {
		source->handles[i] = &source->streams[i]->stream;
		source->streams[i]->stream.order = (uint32_t)i;
	}
}

/* A pattern that names nothing is an error where nothing is waited for: a stream that fails states it. */
static void state_missing(struct file_source *source)
{
	for (uint32_t i = 0; i < source->pattern_count; i++) {
		if (!source->names_none[i])
			continue;
		struct source_memory_stream *record = source_memory_scratch(source->patterns[i]);
		struct file_stream *stream = file_source_add(source, record, source->patterns[i], i);
		stream->scratch = true;
	}
}

/* ---- collecting ---- */

/* Something has changed in a directory. */
static void on_change(void *context, const char *directory, const char *name, bool names)
{
	struct file_source *source = context;
	if (names || name == NULL) {
		int64_t due_ms = source->scanned_ms + RESCAN_PAUSE_MS;
		if (source->scan_ms > due_ms)
			source->scan_ms = due_ms;
	}
	size_t length = directory == NULL || strcmp(directory, ".") == 0 ? 0 : strlen(directory);
	for (size_t i = 0; i < source->stream_count; i++) {
		struct file_stream *stream = source->streams[i];
		if (name != NULL) {
			const char *base = file_base(stream->path);
			size_t before = (size_t)(base - stream->path);
			bool beside = length == 0 || (before > length && memcmp(stream->path, directory, length) == 0);
			/* A file that was renamed is written to under a name that only it knows. */
			if (!beside || (strcmp(base, name) != 0 && !stream->away))
				continue;
		}
		stream->hot = true;
		if (stream->wait_ms == 0)
			stream->retry_ms = 0;
	}
}

static void tick_stream(struct file_stream *stream, int64_t now_ms)
{
	if (file_plan_late(stream, now_ms)) {
		stream->hot = true;
		return;
	}
	if (stream->looks > 0) {
		stream->looks--;
		stream->missed = stream->hot = true;
	}
	struct open_file *current = file_stream_current(stream);
	if (current == NULL) {
		stream->hot = stream->hot || file_stream_sign_changed(stream);
		return;
	}
	stream->hot = true;
	input_lines_rest(current->lines);
	/* A log that nobody writes to needs no descriptor: should it be renamed meanwhile, its inode finds it. */
	if (now_ms - current->grown_ms >= stream->source->timing.idle && !stream->away &&
	    input_lines_read_offset(current->lines) == stream->offset && stream->offset == current->file->size) {
		file_stream_close(stream, current);
		file_stream_sign(stream);
		stream->hot = (uint64_t)stream->sign.st_size != stream->offset;
	}
}

static void keep_house(struct file_source *source, int64_t now_ms)
{
	if (source->watch == NULL || now_ms < source->house_ms)
		return;
	source->house_ms = now_ms + EVENTS_PAUSE_MS;
	file_watch_read(source->watch, now_ms, on_change, source);
	if (now_ms < source->scan_ms)
		return;
	file_source_scan(source, now_ms);
	for (size_t i = 0; i < source->stream_count; i++)
		tick_stream(source->streams[i], now_ms);
}

/* One stream's next lines. WEIR_AGAIN: none just now. */
static enum weir_status collect_one(struct file_stream *stream, int64_t now_ms, struct source_chunk *chunk,
                                    struct weir_error *error)
{
	switch (file_stream_step(stream, now_ms, chunk, error)) {
	case FILE_STEP_LINES: return WEIR_OK;
	case FILE_STEP_AGAIN: stream->retry_ms = now_ms + 1; return WEIR_AGAIN;
	case FILE_STEP_NOTHING: return WEIR_AGAIN;
	case FILE_STEP_END: return WEIR_END;
	case FILE_STEP_FAILED: break;
	}
	return WEIR_IO;
}

/* Each stream in turn, a chunk of each: a busy one does not keep the others waiting. */
static enum weir_status collect_any(struct file_source *source, int64_t now_ms, struct source_chunk *chunk,
                                    struct weir_error *error)
{
	size_t ended = 0;
	for (size_t i = 0; i < source->stream_count; i++) {
		struct file_stream *stream = source->streams[source->turn++ % source->stream_count];
		ended += stream->done;
		if (stream->done || !stream->hot || (source->follow && now_ms < stream->retry_ms))
			continue;
		enum weir_status status = collect_one(stream, now_ms, chunk, error);
		if (status == WEIR_OK || status == WEIR_IO)
			return status;
		ended += status == WEIR_END;
		if (source->follow && now_ms >= stream->retry_ms)
			stream->hot = false; /* woken by a change, or by the next scan */
	}
	return ended == source->stream_count && !source->follow ? WEIR_END : WEIR_AGAIN;
}

/* When to be asked again, if nothing happens before. */
static void set_wake(struct file_source *source)
{
	int64_t wake_ms = source->scan_ms;
	for (size_t i = 0; i < source->stream_count; i++) {
		const struct file_stream *stream = source->streams[i];
		if (stream->hot && stream->retry_ms < wake_ms)
			wake_ms = stream->retry_ms;
	}
	file_watch_wake(source->watch, wake_ms);
}

static enum weir_status file_collect(struct source *base, struct source_stream *asked, struct source_chunk *chunk,
                                     struct weir_error *error)
{
	struct file_source *source = file_source_of(base);
	int64_t now_ms = weir_monotonic_ms();
	*chunk = (struct source_chunk){.stream = asked};
	keep_house(source, now_ms);
	if (asked != NULL)
		return collect_one((struct file_stream *)(void *)asked, now_ms, chunk, error);
	enum weir_status status = collect_any(source, now_ms, chunk, error);
	if (status != WEIR_AGAIN || source->watch == NULL)
		return status;
	/* Whatever happened since the events were last taken is looked at before the caller waits. */
	source->house_ms = now_ms;
	keep_house(source, now_ms);
	status = collect_any(source, now_ms, chunk, error);
	if (status == WEIR_AGAIN)
		set_wake(source);
	return status;
}

static size_t file_streams(struct source *base, struct source_stream ***streams)
{
	*streams = file_source_of(base)->handles;
	return file_source_of(base)->stream_count;
}

static int file_fd(const struct source *base)
{
	const struct file_source *source = (const struct file_source *)(const void *)base;
	return source->watch != NULL ? file_watch_fd(source->watch) : -1;
}

static void file_acknowledge(struct source *base, struct source_stream *stream, uint64_t position)
{
	struct file_stream *acknowledged = (struct file_stream *)(void *)stream;
	/* What is not read yet cannot be: the part that is being read stays. */
	source_memory_acknowledge(file_source_of(base)->memory, acknowledged->record, position);
}

static enum weir_status file_resume(struct source *base, struct source_stream *stream, uint64_t position,
                                    struct weir_error *error)
{
	(void)base;
	return file_stream_resume((struct file_stream *)(void *)stream, position, error);
}

/* What has come since the stream was asked last, while the bus was down perhaps. */
static void add_waiting(struct source_status *status, const char *path, const struct file_place *place)
{
	struct stat about;
	if (place->inode == 0 || stat(path, &about) != 0 || about.st_ino != place->inode || about.st_dev != place->device ||
	    (uint64_t)about.st_size <= place->offset)
		return;
	status->size_bytes = (uint64_t)about.st_size;
	status->lag_bytes = status->size_bytes - place->offset;
}

/* What is wrong with a pattern, as a status of its own. */
static void add_problem(const char *pattern, const char *problem, struct source_status *statuses, size_t count,
                        size_t *filled)
{
	if (*filled < count) {
		statuses[*filled] = (struct source_status){.name = pattern, .kind = "file", .replayable = true};
		snprintf(statuses[*filled].problem, sizeof statuses[*filled].problem, "%s", problem);
	}
	++*filled;
}

static size_t file_status(struct source *base, struct source_status *statuses, size_t count)
{
	struct file_source *source = file_source_of(base);
	int64_t now_ms = weir_monotonic_ms();
	size_t filled = 0;
	pthread_mutex_lock(&source->mutex);
	for (size_t i = 0; i < source->stream_count; i++, filled++) {
		if (filled >= count)
			continue;
		const struct file_stream *stream = source->streams[i];
		struct source_status *status = &statuses[filled];
		*status = stream->status;
		status->lines = atomic_load_explicit(&stream->stream.lines, memory_order_relaxed);
		add_waiting(status, stream->path, &stream->place);
		status->lag_ms = status->lag_bytes > 0 ? now_ms - stream->caught_up_ms : 0;
	}
	for (size_t i = 0; i < source->pattern_count; i++)
		if (source->names_none[i] && source->follow)
			add_problem(source->patterns[i], "names no file yet", statuses, count, &filled);
	if (source->full)
		add_problem(
			source->patterns[0],
			"names more files than can be followed: the rest is not read; a restart forgets those gone for a day",
			statuses, count, &filled);
	pthread_mutex_unlock(&source->mutex);
	return filled;
}

static void file_free(struct source *base)
{
	struct file_source *source = file_source_of(base);
	for (size_t i = 0; i < source->stream_count; i++) {
		struct file_stream *stream = source->streams[i];
		stream->record->claimed = false;
		while (stream->open_count > 0)
			file_stream_close(stream, stream->open[0]);
		if (stream->scratch)
			source_memory_scratch_free(stream->record);
		weir_text_deinit(&stream->before);
		free(stream->open);
		free(stream->path);
		free(stream);
	}
	for (size_t i = 0; i < source->entry_count; i++)
		free(source->entries[i].path);
	for (size_t i = 0; i < source->pattern_count; i++)
		free(source->patterns[i]);
	file_watch_free(source->watch);
	if (source->memory_owned)
		source_memory_free(source->memory);
	pthread_mutex_destroy(&source->mutex);
	free(source->entries);
	free(source->patterns);
	free(source->names_none);
	free(source->streams);
	free(source->handles);
	free(source);
}

static enum weir_status file_new(const struct weir_json *config, const struct source_context *context,
                                 struct source **made, struct weir_error *error)
{
	struct file_source *source = weir_alloc(1, sizeof *source);
	source->source.ops = &source_file_ops;
	pthread_mutex_init(&source->mutex, NULL);
	source->timing = (struct file_timing){.poll = 1000,
	                                      .quiet = 100,
	                                      .patience = 1000,
	                                      .rest = 20,
	                                      .grace = 60000,
	                                      .idle = 300000,
	                                      .complete = 2000,
	                                      .retry_least = 200,
	                                      .retry_most = 10000};
	static const uint8_t no_id[SOURCE_ID_BYTES];
	source->memory_owned = context->memory == NULL;
	source->memory = context->memory;
	if (source->memory_owned)
		source->memory = source_memory_new(context->collector_id != NULL ? context->collector_id : no_id);
	enum weir_status status = file_source_configure(source, config, context, error);
	if (status == WEIR_OK && source->follow) {
		source->watch = file_watch_new();
		if (source->watch == NULL)
			status = weir_fail(error, WEIR_IO, "cannot make the descriptors for following files: %s", strerror(errno));
	}
	if (status != WEIR_OK) {
		file_free(&source->source);
		return status;
	}
	claim_known(source);
	file_source_scan(source, weir_monotonic_ms());
	if (!source->follow)
		state_missing(source);
	put_in_order(source);
	*made = &source->source;
	return WEIR_OK;
}

static const struct weir_json_rule members[] = {
	{.name = "type"},   {.name = "name"},  {.name = "path"},     {.name = "format"},
	{.name = "follow"}, {.name = "start"}, {.name = "line_max"}, {.name = NULL},
};

static void file_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	struct weir_json path = weir_json_member(config, "path");
	source_words_list(place, &path);
	source_words_manner(manner, config, false);
}

const struct source_ops source_file_ops = {
	.type = "file",
	.members = members,
	.names_files = true,
	.create = file_new,
	.describe = file_describe,
	.collect = file_collect,
	.streams = file_streams,
	.fd = file_fd,
	.acknowledge = file_acknowledge,
	.resume = file_resume,
	.status = file_status,
	.free = file_free,
};
