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
 *   file_shared.c     what the streams share: whose turn it is, and a way to tell people
 *   file_listing.c    the paths that the patterns name
 *   file_names.c      the names in a directory
 *   file_index.c      logs by path
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
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
	FORGET_STREAM_S = 30 * 86400,
	FORGET_CROWDED_S = 86400, /* where streams are many, as with a directory for each container */
	EVENTS_PAUSE_MS = 5,      /* how long a busy source may leave directory events lying */
	RESCAN_PAUSE_MS = 20,     /* between scans that events ask for; or */
	RESCAN_SHARE = 20,        /* so many times as long as one takes */
	DESCRIPTORS_SPARE = 256,  /* for everything that is no followed file */
	SMALL_CHUNK_BYTES = 16 << 10,
	FEW_STREAMS = 64, /* each may keep its buffer */
};

/* ---- logs ---- */

/* A stream whose files were gone long ago, as with a date in their names. */
static bool is_bygone(struct file_shared *shared, const struct source_memory_stream *record, int64_t now_s)
{
	const struct source_memory *memory = shared->memory;
	int64_t after_s = memory->stream_count > SOURCE_MEMORY_STREAMS_MAX / 2 ? FORGET_CROWDED_S : FORGET_STREAM_S;
	if (record->file_count == 0)
		return false;
	for (size_t i = 0; i < record->file_count; i++)
		if (now_s - record->files[i]->seen_s < after_s)
			return false;
	return !file_search_any_left(shared, record->path);
}

/* Streams that the memory knows and that the patterns name: they go on, even where their files have gone. */
static void claim_known(struct file_source *source)
{
	for (size_t i = 0; i < source->shared.memory->stream_count;) {
		struct source_memory_stream *record = source->shared.memory->streams[i];
		bool others = record->claimed || source_memory_prefix(record->path) != NULL;
		int pattern = others ? -1 : file_settings_pattern(&source->shared.settings, record->path);
		if (pattern >= 0 && is_bygone(&source->shared, record, weir_wall_ms() / 1000)) {
			source_memory_remove(source->shared.memory, i);
			continue;
		}
		if (pattern >= 0)
			file_source_add(source, record, record->path, (uint32_t)pattern);
		i++;
	}
	source->fresh = source->shared.stream_count == 0;
}

static void state_path(struct file_source *source, const char *path, uint32_t pattern)
{
	file_source_add(source, source_memory_scratch(path), path, pattern)->scratch = true;
}

/* A directory that cannot be looked into, for one of the patterns. */
struct closed {
	struct file_source *source;
	uint32_t pattern;
};

static void on_closed(void *context, const char *path)
{
	const struct closed *closed = context;
	if (closed->source->shared.settings.follow)
		file_shared_tell(&closed->source->shared, "%s: what is there cannot be seen: Permission denied", path);
	else
		state_path(closed->source, path, closed->pattern);
}

/*
 * A pattern that names nothing is an error where nothing is waited for: a stream that fails states it. So is a directory
 * that it leads to and that is closed.
 */
static void state_missing(struct file_source *source)
{
	const struct file_settings *settings = &source->shared.settings;
	for (uint32_t i = 0; i < settings->pattern_count; i++) {
		struct closed closed = {source, i};
		if (source->names_none[i] && !settings->follow)
			state_path(source, settings->patterns[i], i);
		else if (file_listing_expands(settings->patterns[i]))
			file_listing_each_closed(settings->patterns[i], on_closed, &closed);
	}
}

/* ---- collecting ---- */

static void wake(struct file_source *source, struct file_log *log)
{
	(void)source;
	struct file_stream *stream = &log->rotation.stream;
	if (stream->state == FILE_STREAM_DONE)
		return;
	file_stream_wake(stream);
	if (stream->wait_ms == 0)
		stream->retry_ms = 0;
}

/* A file that was renamed is written to under a name that only its log knows. */
static void wake_away(struct file_source *source)
{
	size_t kept = 0;
	for (size_t i = 0; i < source->away_count; i++) {
		struct file_log *log = source->away[i];
		log->rotation.away = file_rotation_away(&log->rotation);
		if (!log->rotation.away)
			continue;
		source->away[kept++] = log;
		wake(source, log);
	}
	source->away_count = kept;
}

static void rescan(struct file_source *source)
{
	int64_t pause_ms = source->scan_took_ms * RESCAN_SHARE;
	int64_t due_ms = source->scanned_ms + (pause_ms > RESCAN_PAUSE_MS ? pause_ms : RESCAN_PAUSE_MS);
	if (source->scan_ms > due_ms)
		source->scan_ms = due_ms;
}

/* Something has changed in a directory. */
static void on_change(void *context, const char *directory, const char *name, bool names)
{
	struct file_source *source = context;
	char path[PATH_MAX];
	if (names || name == NULL)
		rescan(source);
	if (name == NULL) {
		for (size_t i = 0; i < source->shared.stream_count; i++)
			wake(source, source->logs[i]);
		return;
	}
	/* the working directory's paths have none before them; "/" has its slash */
	bool here = directory == NULL || strcmp(directory, ".") == 0;
	size_t length = here ? 0 : strlen(directory);
	bool slash = length > 0 && directory[length - 1] != '/';
	int used = snprintf(path, sizeof path, "%s%s%s", here ? "" : directory, slash ? "/" : "", name);
	if (used < 0 || used >= (int)sizeof path)
		return;
	file_source_each_at(source, path, wake);
	if (source->away_count > 0)
		wake_away(source);
	if (names || file_source_at(source, path) == NULL)
		if (!file_scan_path(source, path, weir_monotonic_ms()))
			rescan(source);
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
	for (size_t i = 0; i < source->shared.stream_count; i++) {
		file_rotation_tick(&source->logs[i]->rotation, now_ms);
		file_source_note_away(source, source->logs[i]);
	}
	file_scan_end(source, now_ms);
}

/* One log's next lines. WEIR_AGAIN: none just now. */
static enum weir_status collect_one(struct file_log *log, int64_t now_ms, struct source_chunk *chunk,
                                    struct weir_error *error)
{
	enum file_step step = file_rotation_next(&log->rotation, now_ms, chunk, error);
	file_source_note_away(log->source, log);
	switch (step) {
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
	if (source->taken != NULL) /* at a start there may be as many buffers as files */
		file_rotation_rest(&source->taken->rotation);
	source->taken = NULL;
	for (size_t left = source->shared.ready.count; left > 0; left--) {
		struct file_stream *stream = file_queue_pop(&source->shared.ready);
		stream->queued = false;
		if (stream->state != FILE_STREAM_READY)
			continue;
		if (follow && now_ms < stream->retry_ms) {
			file_stream_wake(stream); /* not yet: it keeps a place */
			continue;
		}
		enum weir_status status = collect_one(file_log_of(&stream->handle), now_ms, chunk, error);
		if (status == WEIR_AGAIN && follow && now_ms >= stream->retry_ms) {
			file_stream_idle(stream); /* woken by a change, or by the next scan */
			file_rotation_rest(&file_log_of(&stream->handle)->rotation);
		}
		if (stream->state == FILE_STREAM_READY)
			file_stream_wake(stream);
		if (status == WEIR_OK && follow &&
		    (chunk->length < SMALL_CHUNK_BYTES || source->shared.stream_count > FEW_STREAMS))
			source->taken = file_log_of(&stream->handle);
		if (status == WEIR_OK || status == WEIR_IO)
			return status;
	}
	return source->shared.ready.count == 0 && !follow ? WEIR_END : WEIR_AGAIN;
}

/* When to be asked again, if nothing happens before. */
static void set_wake(struct file_source *source)
{
	int64_t wake_ms = source->scan_ms;
	const struct file_queue *ready = &source->shared.ready;
	for (size_t i = 0; i < ready->count; i++) {
		const struct file_stream *stream = ready->ring[(ready->first + i) % ready->capacity];
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
static void add_problem(const char *pattern, const char *problem, bool absent, struct source_status *statuses,
                        size_t count, size_t *filled)
{
	if (*filled < count) {
		statuses[*filled] = (struct source_status){.name = pattern, .absent = absent};
		snprintf(statuses[*filled].problem, sizeof statuses[*filled].problem, "%s", problem);
	}
	++*filled;
}

/* A pattern by which nothing is found: there may be nothing, or nobody may look. */
static void add_missing(const char *pattern, struct source_status *statuses, size_t count, size_t *filled)
{
	char obstacle[sizeof statuses->problem];
	bool closed = file_listing_obstacle(pattern, obstacle, sizeof obstacle);
	add_problem(pattern, closed ? obstacle : "matches no file yet", !closed, statuses, count, filled);
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
			add_missing(source->shared.settings.patterns[i], statuses, count, &filled);
	if (source->full)
		add_problem(source->shared.settings.patterns[0],
		            "matches more files than can be followed: the rest are not read; a restart forgets files that have "
		            "been gone for a day",
		            false, statuses, count, &filled);
	if (source->overlap != NULL)
		add_problem(source->shared.settings.patterns[0], source->overlap, false, statuses, count, &filled);
	pthread_mutex_unlock(&source->shared.mutex);
	return filled;
}

static void file_free(struct source *base)
{
	struct file_source *source = file_source_of(base);
	if (source->shared.memory != NULL)
		source_memory_names_remove(source->shared.memory, &source->names);
	file_source_clear(source);
	file_names_deinit(&source->shared.names);
	input_lines_spare_deinit(&source->shared.spare);
	free(source->overlap);
	file_listing_deinit(&source->shared.listing);
	file_settings_deinit(&source->shared.settings);
	file_watch_free(source->watch);
	if (source->memory_owned)
		source_memory_free(source->shared.memory);
	pthread_mutex_destroy(&source->shared.mutex);
	free(source->names_none);
	free(source);
}

/* A path is named by a pattern, or by a link that leads there. */
static bool names(const void *context, const char *path)
{
	const struct file_source *source = context;
	const struct file_log *log;
	for (size_t turn = 0; (log = file_index_next(&source->index, path, &turn)) != NULL;)
		if (log->rotation.stream.real != NULL && strcmp(log->rotation.stream.real, path) == 0)
			return true;
	return file_settings_pattern(&source->shared.settings, path) >= 0;
}

/* Every followed file has a descriptor while it is busy: as many as the system gives. */
static void allow_descriptors(struct file_shared *shared)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	if (limit.rlim_cur < limit.rlim_max) {
		struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
		if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
			limit = raised;
	}
	uint64_t most = limit.rlim_cur == RLIM_INFINITY ? SOURCE_MEMORY_STREAMS_MAX : limit.rlim_cur;
	shared->open_most = (size_t)(most > 2 * DESCRIPTORS_SPARE ? most - DESCRIPTORS_SPARE : most / 2);
}

/* What another source reads is refused at the start, when somebody is there to choose. */
static enum weir_status check_overlap(const struct file_source *source, const struct weir_json *config,
                                      const struct source_context *context, struct weir_error *error)
{
	struct weir_json at = weir_json_member(config, "path");
	if (source->overlap == NULL || context->again)
		return WEIR_OK;
	return weir_json_fail(&at, error, "%s", source->overlap);
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
	source->shared.tell = context->tell;
	source->shared.tell_context = context->tell_context;
	snprintf(source->shared.place, sizeof source->shared.place, "%.63s",
	         config->path[0] != '\0' ? config->path : "the source");
	source->names = (struct source_memory_names){.names = names, .context = source};
	enum weir_status status = file_settings_init(&source->shared.settings, config, context, error);
	allow_descriptors(&source->shared);
	if (status == WEIR_OK && source->shared.settings.follow) {
		source->watch = file_watch_new();
		if (source->watch == NULL)
			status = weir_fail(error, WEIR_IO, "cannot create the file descriptors for following files: %s",
			                   weir_errno_words(errno));
	}
	if (status != WEIR_OK) {
		file_free(&source->source);
		return status;
	}
	source->names_none = weir_alloc(source->shared.settings.pattern_count, sizeof *source->names_none);
	source_memory_names_add(source->shared.memory, &source->names);
	claim_known(source);
	file_scan(source, weir_monotonic_ms());
	state_missing(source);
	file_source_put_in_order(source);
	status = check_overlap(source, config, context, error);
	if (status == WEIR_OK)
		*made = &source->source;
	else
		file_free(&source->source);
	return status;
}

static void file_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	struct weir_json path = weir_json_member(config, "path");
	source_words_list(place, &path);
	struct weir_json excluded = weir_json_member(config, "exclude");
	if (weir_json_exists(&excluded)) {
		weir_text_puts(place, " without ");
		source_words_list(place, &excluded);
	}
	source_words_manner(manner, config, false);
}

static const struct source_metric *const metrics[] = {
	&source_metric_position, &source_metric_incarnation, &source_metric_lag_seconds, &source_metric_lag_bytes,
	&source_metric_lines,    &source_metric_errors,      &source_metric_lost_bytes,  &source_metric_unknown_losses,
	&source_metric_problem,  &source_metric_replayable,  &source_metric_guarantee,   NULL,
};

static bool file_would_read(const struct source *source, const char *path)
{
	return file_settings_would_read(&((const struct file_source *)source)->shared.settings, path);
}

const struct source_ops source_file_ops = {
	.type = "file",
	.members = file_members,
	.names_files = true,
	.replayable = true,
	.guarantee = SOURCE_EXACTLY_ONCE,
	.metrics = metrics,
	.create = file_new,
	.describe = file_describe,
	.collect = file_collect,
	.would_read = file_would_read,
	.streams = file_streams,
	.fd = file_fd,
	.acknowledge = file_acknowledge,
	.resume = file_resume,
	.status = file_status,
	.free = file_free,
};
