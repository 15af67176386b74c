/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file source: its streams in turn, and their status.
 *
 * Each log is read by itself (file_rotation.c); here is what they have in common:
 * who is asked next, what wakes them, when files are looked for.
 *
 * A file of this folder calls those below it alone:
 *
 *   source_file.c     the source: its streams in turn, their status
 *   file_scan.c       which files the patterns name, and which are new
 *   file_source.c     the logs that it holds
 *   file_rotation.c   what follows where a stream's lines end: to decide, and to do it
 *   file_situation.c  the same: to observe
 *   file_reading.c    the next lines of a stream, part by part
 *   file_stream.c     where it stands, its open files, and what is stated about it
 *   open_file.c       one open file: its lines, and whether it is what it was
 *   file_search.c     where a known file has gone to, and which were rotated away unseen
 *   file_identity.c   whose file lies at a path: a known one's, a copy, or a new one
 *   file_listing.c    the paths that the patterns name
 *   file_settings.c   configuration
 *   file_watch.c      being woken: inotify where it works, a timer where not
 */
#include "collector/source/file/source_file.h"

#include "collector/source/file/file_scan.h"
#include "collector/source/file/file_watch.h"
#include "collector/source/source_metrics.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FORGET_STREAM_S = 30 * 86400,
	FORGET_CROWDED_S = 86400, /* where streams are many, as with a directory for each container */
	EVENTS_PAUSE_MS = 20,     /* how long a busy source may leave directory events lying */
	RESCAN_PAUSE_MS = 20,     /* between scans that events ask for */
};

/* ---- logs ---- */

/* A stream whose files were gone long ago, as with a date in their names. */
static bool is_bygone(const struct source_memory *memory, const struct source_memory_stream *record, int64_t now_s)
{
	int64_t after_s = memory->stream_count > SOURCE_MEMORY_STREAMS_MAX / 2 ? FORGET_CROWDED_S : FORGET_STREAM_S;
	if (record->file_count == 0)
		return false;
	for (size_t i = 0; i < record->file_count; i++)
		if (now_s - record->files[i]->seen_s < after_s)
			return false;
	return !file_search_any_left(record->path);
}

/* Streams that the memory knows and that the patterns name: they go on, even where their files have gone. */
static void claim_known(struct file_source *source)
{
	for (size_t i = 0; i < source->shared.memory->stream_count;) {
		struct source_memory_stream *record = source->shared.memory->streams[i];
		bool others =
			record->claimed || strncmp(record->path, SOURCE_JOURNAL_PREFIX, sizeof SOURCE_JOURNAL_PREFIX - 1) == 0;
		int pattern = others ? -1 : file_settings_pattern(&source->shared.settings, record->path);
		if (pattern >= 0 && is_bygone(source->shared.memory, record, weir_wall_ms() / 1000)) {
			source_memory_remove(source->shared.memory, i);
			continue;
		}
		if (pattern >= 0)
			file_source_add(source, record, record->path, (uint32_t)pattern);
		i++;
	}
	source->fresh = source->shared.stream_count == 0;
}

/* A pattern that names nothing is an error where nothing is waited for: a stream that fails states it. */
static void state_missing(struct file_source *source)
{
	for (uint32_t i = 0; i < source->shared.settings.pattern_count; i++) {
		if (!source->names_none[i])
			continue;
		struct source_memory_stream *record = source_memory_scratch(source->shared.settings.patterns[i]);
		file_source_add(source, record, source->shared.settings.patterns[i], i)->scratch = true;
	}
}

/* ---- collecting ---- */

/* Whether a name that changed in a directory ("": the working one) may be that of a stream's file. */
static bool concerns(const struct file_rotation *rotation, const char *directory, size_t length, const char *name)
{
	const char *path = rotation->stream.path, *base = file_identity_base(path);
	size_t before = (size_t)(base - path);
	bool beside = length == 0 || (before > length && memcmp(path, directory, length) == 0);
	/* A file that was renamed is written to under a name that only it knows. */
	return beside && (strcmp(base, name) == 0 || file_rotation_away(rotation));
}

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
	for (size_t i = 0; i < source->shared.stream_count; i++) {
		struct file_rotation *rotation = &source->logs[i]->rotation;
		if (name != NULL && !concerns(rotation, directory, length, name))
			continue;
		file_stream_wake(&rotation->stream);
		if (rotation->stream.wait_ms == 0)
			rotation->stream.retry_ms = 0;
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
	file_scan(source, now_ms);
	for (size_t i = 0; i < source->shared.stream_count; i++)
		file_rotation_tick(&source->logs[i]->rotation, now_ms);
}

/* One log's next lines. WEIR_AGAIN: none just now. */
static enum weir_status collect_one(struct file_log *log, int64_t now_ms, struct source_chunk *chunk,
                                    struct weir_error *error)
{
	switch (file_rotation_next(&log->rotation, now_ms, chunk, error)) {
	case FILE_STEP_LINES: return WEIR_OK;
	case FILE_STEP_AGAIN: log->rotation.stream.retry_ms = now_ms + 1; return WEIR_AGAIN;
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
	bool follow = source->shared.settings.follow;
	size_t ended = 0;
	for (size_t i = 0; i < source->shared.stream_count; i++) {
		struct file_log *log = source->logs[source->turn++ % source->shared.stream_count];
		struct file_stream *stream = &log->rotation.stream;
		ended += stream->state == FILE_STREAM_DONE;
		if (stream->state != FILE_STREAM_READY || (follow && now_ms < stream->retry_ms))
			continue;
		enum weir_status status = collect_one(log, now_ms, chunk, error);
		if (status == WEIR_OK || status == WEIR_IO)
			return status;
		ended += status == WEIR_END;
		if (follow && now_ms >= stream->retry_ms)
			file_stream_idle(stream); /* woken by a change, or by the next scan */
	}
	return ended == source->shared.stream_count && !follow ? WEIR_END : WEIR_AGAIN;
}

/* When to be asked again, if nothing happens before. */
static void set_wake(struct file_source *source)
{
	int64_t wake_ms = source->scan_ms;
	for (size_t i = 0; i < source->shared.stream_count; i++) {
		const struct file_stream *stream = &source->logs[i]->rotation.stream;
		if (stream->state == FILE_STREAM_READY && stream->retry_ms < wake_ms)
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
		return collect_one(file_log_of(asked), now_ms, chunk, error);
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
	return file_source_of(base)->shared.stream_count;
}

static int file_fd(const struct source *base)
{
	const struct file_source *source = (const struct file_source *)(const void *)base;
	return source->watch != NULL ? file_watch_fd(source->watch) : -1;
}

static void file_acknowledge(struct source *base, struct source_stream *stream, uint64_t position)
{
	/* What is not read yet cannot be: the part that is being read stays. */
	source_memory_acknowledge(file_source_of(base)->shared.memory, file_log_of(stream)->rotation.stream.record,
	                          position);
}

static enum weir_status file_resume(struct source *base, struct source_stream *stream, uint64_t position,
                                    struct weir_error *error)
{
	(void)base;
	return file_stream_resume(&file_log_of(stream)->rotation.stream, position, error);
}

/* What is wrong with a pattern, as a status of its own. */
static void add_problem(const char *pattern, const char *problem, struct source_status *statuses, size_t count,
                        size_t *filled)
{
	if (*filled < count) {
		statuses[*filled] = (struct source_status){.name = pattern};
		snprintf(statuses[*filled].problem, sizeof statuses[*filled].problem, "%s", problem);
	}
	++*filled;
}

static size_t file_status(struct source *base, struct source_status *statuses, size_t count)
{
	struct file_source *source = file_source_of(base);
	int64_t now_ms = weir_monotonic_ms();
	size_t filled = 0;
	pthread_mutex_lock(&source->shared.mutex);
	for (size_t i = 0; i < source->shared.stream_count; i++, filled++)
		if (filled < count)
			file_stream_status(&source->logs[i]->rotation.stream, now_ms, &statuses[filled]);
	for (size_t i = 0; i < source->shared.settings.pattern_count; i++)
		if (source->names_none[i] && source->shared.settings.follow)
			add_problem(source->shared.settings.patterns[i], "matches no file yet", statuses, count, &filled);
	if (source->full)
		add_problem(source->shared.settings.patterns[0],
		            "matches more files than can be followed: the rest are not read; a restart forgets files that have "
		            "been gone for a day",
		            statuses, count, &filled);
	pthread_mutex_unlock(&source->shared.mutex);
	return filled;
}

static void file_free(struct source *base)
{
	struct file_source *source = file_source_of(base);
	file_source_clear(source);
	file_listing_deinit(&source->shared.listing);
	file_settings_deinit(&source->shared.settings);
	file_watch_free(source->watch);
	if (source->memory_owned)
		source_memory_free(source->shared.memory);
	pthread_mutex_destroy(&source->shared.mutex);
	free(source->names_none);
	free(source);
}

static enum weir_status file_new(const struct weir_json *config, const struct source_context *context,
                                 struct source **made, struct weir_error *error)
{
	struct file_source *source = weir_alloc(1, sizeof *source);
	source->source.ops = &source_file_ops;
	pthread_mutex_init(&source->shared.mutex, NULL);
	static const uint8_t no_id[SOURCE_ID_BYTES];
	source->memory_owned = context->memory == NULL;
	source->shared.memory = context->memory;
	if (source->memory_owned)
		source->shared.memory = source_memory_new(context->collector_id != NULL ? context->collector_id : no_id);
	enum weir_status status = file_settings_init(&source->shared.settings, config, context, error);
	if (status == WEIR_OK && source->shared.settings.follow) {
		source->watch = file_watch_new();
		if (source->watch == NULL)
			status = weir_fail(error, WEIR_IO, "cannot create the file descriptors for following files: %s",
			                   strerror(errno));
	}
	if (status != WEIR_OK) {
		file_free(&source->source);
		return status;
	}
	source->names_none = weir_alloc(source->shared.settings.pattern_count, sizeof *source->names_none);
	claim_known(source);
	file_scan(source, weir_monotonic_ms());
	if (!source->shared.settings.follow)
		state_missing(source);
	file_source_put_in_order(source);
	*made = &source->source;
	return WEIR_OK;
}

static void file_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	struct weir_json path = weir_json_member(config, "path");
	source_words_list(place, &path);
	source_words_manner(manner, config, false);
}

static const struct source_metric *const metrics[] = {
	&source_metric_position,    &source_metric_incarnation,
	&source_metric_lag_seconds, &source_metric_lag_bytes,
	&source_metric_lines,       &source_metric_errors,
	&source_metric_lost_bytes,  &source_metric_problem,
	&source_metric_replayable,  NULL,
};

const struct source_ops source_file_ops = {
	.type = "file",
	.members = file_members,
	.names_files = true,
	.replayable = true,
	.metrics = metrics,
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
