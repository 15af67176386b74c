/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files the patterns name: at the start, and then each second and when a
 * directory has changed.
 *
 * Each path is judged when it appears or changes: a known file is no new source
 * whatever its name; a new one continues the stream of its path if there is
 * one, or else begins a stream of its own. What only grows, and is being read,
 * is skipped by device and inode.
 */
#include "collector/source/file/file_scan.h"

#include "collector/source/file/file_watch.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	SCAN_SHARE = 20, /* scanning takes at most this part of the time: one twentieth */
	FORGET_PERIOD_MS = 3600000,
};

/* ---- one path ---- */

static struct file_log *log_of_path(const struct file_source *source, const char *path)
{
	for (size_t i = 0; i < source->shared.stream_count; i++)
		if (strcmp(source->logs[i]->rotation.stream.path, path) == 0)
			return source->logs[i];
	return NULL;
}

static struct file_log *log_of_record(const struct file_source *source, const struct source_memory_stream *record)
{
	for (size_t i = 0; i < source->shared.stream_count; i++)
		if (source->logs[i]->rotation.stream.record == record)
			return source->logs[i];
	return NULL;
}

static struct file_log *new_log(struct file_source *source, const struct file_entry *entry)
{
	struct file_shared *shared = &source->shared;
	struct source_memory_stream *record = source_memory_find(shared->memory, entry->path);
	if (record == NULL)
		record = source_memory_add(shared->memory, entry->path);
	pthread_mutex_lock(&shared->mutex);
	source->full = source->full || record == NULL;
	pthread_mutex_unlock(&shared->mutex);
	return record != NULL && !record->claimed ? file_source_add(source, record, entry->path, entry->pattern) : NULL;
}

/* Whether an open file of some stream has this inode: then its stream knows more about it than a scan. */
static bool is_open(const struct file_source *source, const struct file_entry *entry)
{
	for (size_t i = 0; i < source->shared.stream_count; i++) {
		const struct file_stream *stream = &source->logs[i]->rotation.stream;
		for (size_t j = 0; j < stream->open_count; j++) {
			const struct source_memory_file *file = stream->open[j]->file;
			if (file->device == entry->device && file->inode == entry->inode)
				return true;
		}
	}
	return false;
}

/* Whether a path is that of a file rotated away from a stream, before it was seen. */
static bool is_rotated_from(const struct file_stream *stream, const char *path)
{
	const char *base = file_identity_base(path), *stream_base = file_identity_base(stream->path);
	size_t directory = (size_t)(base - path);
	if (stream->record->part_count == 0 || (size_t)(stream_base - stream->path) != directory ||
	    memcmp(stream->path, path, directory) != 0)
		return false;
	enum file_rotated rotated = file_identity_rotated(stream_base, base);
	if (rotated != FILE_ROTATED_MAYBE)
		return rotated == FILE_ROTATED;
	/* It may be another log. While the stream's own is in its place, there is no reason to think otherwise. */
	const struct source_memory_part *part = source_memory_last_part(stream->record);
	struct stat about;
	return stat(stream->path, &about) != 0 ||
	       !file_identity_has_inode(source_memory_file(stream->record, part->file), &about);
}

/* The log that a file was rotated away from before it was seen, if it is one. */
static struct file_log *rotated_from(const struct file_source *source, const struct file_entry *entry)
{
	for (size_t i = 0; i < source->shared.stream_count; i++) {
		struct file_log *log = source->logs[i];
		if (log->created_scan != source->scans && is_rotated_from(&log->rotation.stream, entry->path))
			return log;
	}
	return NULL;
}

static void on_known(struct file_source *source, struct file_entry *entry, const struct file_judgement *judgement)
{
	struct source_memory_file *file = judgement->file;
	struct source_memory_stream *record = judgement->stream;
	free(file->where);
	file->where = weir_copy(entry->path, strlen(entry->path));
	entry->judged = true;
	const struct source_memory_part *last = source_memory_last_part(record);
	if (!record->claimed) {
		/* Its stream was configured by another path: this source goes on with it, where the file lies. */
		if (last != NULL && last->file == file->number)
			file_source_add(source, record, entry->path, entry->pattern);
		return;
	}
	struct file_log *log = log_of_record(source, record);
	if (log == NULL)
		return;
	if (last != NULL && last->file == file->number)
		file_stream_wake(&log->rotation.stream);
	else if (file->state == SOURCE_FILE_SETTLED && !entry->compressed && entry->size > file->taken)
		file->state = SOURCE_FILE_LEFT; /* it has grown all the same */
}

static void begin(struct file_source *source, struct file_stream *stream, struct file_entry *entry,
                  const struct file_judgement *judgement)
{
	const struct file_settings *settings = &source->shared.settings;
	struct file_candidate candidate;
	file_candidate_init(&candidate, entry->path, judgement);
	assert(stream->record != NULL);
	if (stream->record->file_count == 0)
		file_search_remember_rotated(&source->shared, stream->path, stream->record);
	bool from_end = settings->follow && settings->start == SOURCE_FROM_END && source->fresh && source->scans == 1;
	entry->judged = file_stream_begin(stream, &candidate, from_end);
	file_candidate_deinit(&candidate);
	file_stream_note_size(stream, entry->size);
}

static void on_new(struct file_source *source, struct file_entry *entry, const struct file_judgement *judgement)
{
	if (!file_judgement_ready(judgement, &source->shared.settings))
		return; /* judged again at the next scan */
	struct file_log *log = log_of_path(source, entry->path);
	if (log == NULL)
		log = rotated_from(source, entry);
	const struct source_memory_stream *record = log != NULL ? log->rotation.stream.record : NULL;
	if (record != NULL && file_identity_modified_ns(&judgement->about) <= record->forgotten_ns) {
		entry->judged = true; /* it was known once, and read */
		return;
	}
	if (record != NULL && record->part_count > 0) {
		file_rotation_inspect(&log->rotation); /* that decides, once the file before is read */
		return;
	}
	if (log == NULL)
		log = new_log(source, entry);
	if (log != NULL)
		begin(source, &log->rotation.stream, entry, judgement);
}

/* A configured path that names nothing, or one that cannot be read: a stream states it. */
static void on_unreadable(struct file_source *source, struct file_entry *entry, int64_t now_ms,
                          const struct weir_error *error)
{
	struct file_log *log = log_of_path(source, entry->path);
	if (log == NULL && rotated_from(source, entry) == NULL)
		log = new_log(source, entry);
	struct file_stream *stream = log != NULL ? &log->rotation.stream : NULL;
	/* One that reads an older file states what it meets itself; so does one that is asked at once. */
	if (source->shared.settings.follow && stream != NULL && stream->record->part_count == 0 &&
	    now_ms >= stream->retry_ms)
		file_stream_fail(stream, now_ms, error);
}

static void inspect(struct file_source *source, struct file_entry *entry, int64_t now_ms)
{
	struct stat about;
	struct weir_error error;
	struct file_judgement judgement;
	if (stat(entry->path, &about) == 0) {
		bool same = entry->device == about.st_dev && entry->inode == about.st_ino;
		bool unchanged =
			same && entry->size == (uint64_t)about.st_size && entry->modified_ns == file_identity_modified_ns(&about);
		entry->device = about.st_dev;
		entry->inode = about.st_ino;
		entry->size = (uint64_t)about.st_size;
		entry->modified_ns = file_identity_modified_ns(&about);
		if (entry->judged && (unchanged || (same && is_open(source, entry))))
			return;
	}
	entry->judged = false;
	file_identity_judge(&source->shared.settings, source->shared.memory, entry->path, &judgement, &error);
	entry->compressed = file_judgement_compressed(&judgement);
	switch (judgement.verdict) {
	case FILE_NEW: on_new(source, entry, &judgement); break;
	case FILE_KNOWN: on_known(source, entry, &judgement); break;
	case FILE_COPY: entry->judged = true; break;
	case FILE_ABSENT:
		if (file_listing_expands(source->shared.settings.patterns[entry->pattern]))
			break; /* it was there when the pattern was expanded */
		on_unreadable(source, entry, now_ms, &error);
		break;
	case FILE_UNREADABLE: on_unreadable(source, entry, now_ms, &error); break;
	}
}

/* ---- what the watch hears of ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct directories {
	char **list;
	size_t count, capacity;
};

/* The directory of a path, or of a pattern's part before its first wildcard. */
static void add_directory(struct directories *directories, const char *path, size_t length)
{
	while (length > 0 && path[length - 1] != '/')
		length--;
	while (length > 1 && path[length - 1] == '/')
		length--;
	char *directory = length > 0 ? weir_copy(path, length) : weir_copy(".", 1);
	/* Most paths lie in the directory of the one before. */
	if (directories->count > 0 && strcmp(directories->list[directories->count - 1], directory) == 0) {
		free(directory);
		return;
	}
	if (directories->count == directories->capacity) {
		directories->capacity = directories->capacity != 0 ? 2 * directories->capacity : 16;
		directories->list = weir_realloc(directories->list, directories->capacity, sizeof(char *));
	}
	directories->list[directories->count++] = directory;
}

static void watch_directories(struct file_source *source)
{
	struct directories found = {0};
	for (size_t i = 0; i < source->shared.settings.pattern_count; i++)
		add_directory(&found, source->shared.settings.patterns[i], strcspn(source->shared.settings.patterns[i], "*?["));
	for (size_t i = 0; i < source->shared.listing.count; i++)
		add_directory(&found, source->shared.listing.entries[i].path, strlen(source->shared.listing.entries[i].path));
	for (size_t i = 0; i < source->shared.stream_count; i++)
		add_directory(&found, source->logs[i]->rotation.stream.path, strlen(source->logs[i]->rotation.stream.path));
	if (found.count > 1)
		qsort(found.list, found.count, sizeof(char *), by_text);
	size_t kept = 0;
	for (size_t i = 0; i < found.count; i++) {
		if (kept > 0 && strcmp(found.list[i], found.list[kept - 1]) == 0)
			free(found.list[i]);
		else
			found.list[kept++] = found.list[i];
	}
	file_watch_directories(source->watch, found.list, kept);
	for (size_t i = 0; i < kept; i++)
		free(found.list[i]);
	free(found.list);
}

/* ---- what is forgotten ---- */

static int by_inode(const void *a, const void *b)
{
	const struct file_entry *x = *(const struct file_entry *const *)a, *y = *(const struct file_entry *const *)b;
	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return x->device < y->device ? -1 : x->device > y->device;
}

/* Files that are there, under any name of the patterns or open, are remembered on; the others only for a while. */
static void forget(struct file_source *source, struct file_entry **entries)
{
	int64_t now_s = weir_wall_ms() / 1000;
	if (source->shared.listing.count > 0)
		qsort(entries, source->shared.listing.count, sizeof(struct file_entry *), by_inode);
	for (size_t i = 0; i < source->shared.stream_count; i++) {
		struct file_stream *stream = &source->logs[i]->rotation.stream;
		for (size_t j = 0; j < stream->record->file_count; j++) {
			struct source_memory_file *file = stream->record->files[j];
			struct file_entry sought = {.device = file->device, .inode = file->inode}, *key = &sought;
			if (file_stream_opened(stream, file) != NULL ||
			    (source->shared.listing.count > 0 &&
			     bsearch(&key, entries, source->shared.listing.count, sizeof(struct file_entry *), by_inode) != NULL))
				file->seen_s = now_s;
		}
		source_memory_forget(source->shared.memory, stream->record, now_s);
	}
}

static bool remembers_too_much(const struct file_source *source)
{
	for (size_t i = 0; i < source->shared.stream_count; i++)
		if (source->logs[i]->rotation.stream.record->file_count > SOURCE_MEMORY_FILES_MAX)
			return true;
	return false;
}

/* ---- the scan ---- */

static void state_idle_patterns(struct file_source *source, const bool *named)
{
	pthread_mutex_lock(&source->shared.mutex);
	for (size_t i = 0; i < source->shared.settings.pattern_count; i++)
		source->names_none[i] = !named[i];
	pthread_mutex_unlock(&source->shared.mutex);
}

static int by_pattern(const void *a, const void *b)
{
	const struct file_entry *x = *(const struct file_entry *const *)a, *y = *(const struct file_entry *const *)b;
	if (x->pattern != y->pattern)
		return x->pattern < y->pattern ? -1 : 1;
	return strcmp(x->path, y->path);
}

void file_scan(struct file_source *source, int64_t now_ms)
{
	struct file_listing *listing = &source->shared.listing;
	bool *named = weir_alloc(source->shared.settings.pattern_count, sizeof *named);
	source->scans++;
	file_listing_refresh(listing, &source->shared.settings, named);
	struct file_entry **ordered = weir_alloc(listing->count, sizeof(struct file_entry *));
	for (size_t i = 0; i < listing->count; i++)
		ordered[i] = &listing->entries[i];
	if (listing->count > 0)
		qsort(ordered, listing->count, sizeof(struct file_entry *), by_pattern);
	for (size_t i = 0; i < listing->count; i++)
		inspect(source, ordered[i], now_ms);
	if (now_ms >= source->forget_ms || remembers_too_much(source)) {
		forget(source, ordered);
		source->forget_ms = now_ms + FORGET_PERIOD_MS;
	}
	free(ordered);
	state_idle_patterns(source, named);
	free(named);
	if (source->watch == NULL)
		return;
	watch_directories(source);
	int64_t took_ms = weir_monotonic_ms() - now_ms, pause_ms = source->shared.settings.timing.poll;
	if (took_ms * SCAN_SHARE > pause_ms)
		pause_ms = took_ms * SCAN_SHARE;
	source->scanned_ms = now_ms + took_ms;
	source->scan_ms = source->scanned_ms + pause_ms;
}
