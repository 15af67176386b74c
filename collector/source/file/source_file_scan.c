/*
 * Which files the patterns name: at the start, and then each second and when a
 * directory has changed.
 *
 * Each path is judged when it appears or changes: a known file is no new source
 * whatever its name; a new one continues the stream of its path if there is
 * one, or else begins a stream of its own. What only grows, and is being read,
 * is passed over by device and inode.
 */
#include "collector/source/file/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SCAN_SHARE = 20, /* scanning takes at most this part of the time: one twentieth */
	FORGET_PERIOD_MS = 3600000,
};

static bool has_wildcard(const char *pattern)
{
	struct stat about;
	return strpbrk(pattern, "*?[") != NULL && lstat(pattern, &about) != 0;
}

bool file_pattern_names(const char *pattern, const char *path)
{
	return strcmp(pattern, path) == 0 || fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0;
}

int file_source_pattern(const struct file_source *source, const char *path)
{
	for (size_t i = 0; i < source->pattern_count; i++)
		if (file_pattern_names(source->patterns[i], path))
			return (int)i;
	return -1;
}

/* ---- the paths ---- */

struct paths {
	struct file_entry *list;
	size_t count, capacity;
};

static void add_path(struct paths *paths, const char *path, uint32_t pattern)
{
	if (paths->count == paths->capacity) {
		paths->capacity = paths->capacity != 0 ? 2 * paths->capacity : 64;
		paths->list = weir_realloc(paths->list, paths->capacity, sizeof *paths->list);
	}
	paths->list[paths->count++] = (struct file_entry){.path = weir_copy(path, strlen(path)), .pattern = pattern};
}

static int by_path(const void *a, const void *b)
{
	const struct file_entry *x = a, *y = b;
	int order = strcmp(x->path, y->path);
	return order != 0 ? order : x->pattern < y->pattern ? -1 : x->pattern > y->pattern;
}

static int by_pattern(const void *a, const void *b)
{
	const struct file_entry *x = *(const struct file_entry *const *)a, *y = *(const struct file_entry *const *)b;
	if (x->pattern != y->pattern)
		return x->pattern < y->pattern ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* All paths that patterns name, by bytes, each once; named[i] says whether pattern i names any. */
static struct paths expand(const struct file_source *source, bool *named)
{
	struct paths paths = {0};
	for (uint32_t i = 0; i < source->pattern_count; i++) {
		if (!has_wildcard(source->patterns[i])) {
			add_path(&paths, source->patterns[i], i);
			named[i] = true;
			continue;
		}
		glob_t found;
		if (glob(source->patterns[i], GLOB_NOSORT, NULL, &found) == 0) {
			for (size_t j = 0; j < found.gl_pathc; j++)
				add_path(&paths, found.gl_pathv[j], i);
			named[i] = found.gl_pathc > 0;
			globfree(&found);
		}
	}
	if (paths.count == 0)
		return paths;
	qsort(paths.list, paths.count, sizeof *paths.list, by_path);
	size_t kept = 1;
	for (size_t i = 1; i < paths.count; i++) {
		if (strcmp(paths.list[i].path, paths.list[kept - 1].path) == 0)
			free(paths.list[i].path);
		else
			paths.list[kept++] = paths.list[i];
	}
	paths.count = kept;
	return paths;
}

/* What was found out about paths at the last scan. */
static void carry_over(struct file_source *source, struct paths *paths)
{
	size_t before = 0;
	for (size_t i = 0; i < paths->count; i++) {
		int order = -1;
		while (before < source->entry_count && (order = strcmp(source->entries[before].path, paths->list[i].path)) < 0)
			before++;
		if (before == source->entry_count || order != 0)
			continue;
		char *path = paths->list[i].path;
		uint32_t pattern = paths->list[i].pattern;
		paths->list[i] = source->entries[before];
		paths->list[i].path = path;
		paths->list[i].pattern = pattern;
	}
	for (size_t i = 0; i < source->entry_count; i++)
		free(source->entries[i].path);
	free(source->entries);
	source->entries = paths->list;
	source->entry_count = paths->count;
}

/* ---- one path ---- */

static struct file_stream *stream_of_path(const struct file_source *source, const char *path)
{
	for (size_t i = 0; i < source->stream_count; i++)
		if (strcmp(source->streams[i]->path, path) == 0)
			return source->streams[i];
	return NULL;
}

static struct file_stream *stream_of_record(const struct file_source *source, const struct source_memory_stream *record)
{
	for (size_t i = 0; i < source->stream_count; i++)
		if (source->streams[i]->record == record)
			return source->streams[i];
	return NULL;
}

static struct file_stream *new_stream(struct file_source *source, const struct file_entry *entry)
{
	struct source_memory_stream *record = source_memory_find(source->memory, entry->path);
	if (record == NULL)
		record = source_memory_add(source->memory, entry->path);
	pthread_mutex_lock(&source->mutex);
	source->full = source->full || record == NULL;
	pthread_mutex_unlock(&source->mutex);
	return record != NULL && !record->claimed ? file_source_add(source, record, entry->path, entry->pattern) : NULL;
}

/* Whether an open file of some stream has this inode: then its stream knows more about it than a scan. */
static bool is_open(const struct file_source *source, const struct file_entry *entry)
{
	for (size_t i = 0; i < source->stream_count; i++)
		for (size_t j = 0; j < source->streams[i]->open_count; j++) {
			const struct source_memory_file *file = source->streams[i]->open[j]->file;
			if (file->device == entry->device && file->inode == entry->inode)
				return true;
		}
	return false;
}

/* The stream that a file was rotated away from before it was seen, if it is one. */
static struct file_stream *rotated_from(const struct file_source *source, const struct file_entry *entry)
{
	size_t directory = (size_t)(file_base(entry->path) - entry->path);
	for (size_t i = 0; i < source->stream_count; i++) {
		struct file_stream *stream = source->streams[i];
		if (stream->created_scan == source->scans || stream->record->part_count == 0 ||
		    (size_t)(file_base(stream->path) - stream->path) != directory ||
		    memcmp(stream->path, entry->path, directory) != 0)
			continue;
		enum file_rotated rotated = file_name_rotated(file_base(stream->path), file_base(entry->path));
		if (rotated == FILE_ROTATED)
			return stream;
		/* It may be another log. While the stream's own is in its place, there is no reason to think otherwise. */
		const struct source_memory_part *part = source_memory_last_part(stream->record);
		struct stat about;
		if (rotated == FILE_ROTATED_MAYBE && (stat(stream->path, &about) != 0 ||
		                                      !file_has_inode(source_memory_file(stream->record, part->file), &about)))
			return stream;
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
	struct file_stream *stream = stream_of_record(source, record);
	if (stream == NULL)
		return;
	if (last != NULL && last->file == file->number)
		stream->hot = true;
	else if (file->state == SOURCE_FILE_SETTLED && !entry->compressed && entry->size > file->taken)
		file->state = SOURCE_FILE_LEFT; /* it has grown all the same */
}

static void on_new(struct file_source *source, struct file_entry *entry, const struct file_judgement *judgement)
{
	if (!file_judgement_ready(source, judgement))
		return; /* judged again at the next scan */
	struct file_stream *stream = stream_of_path(source, entry->path);
	if (stream == NULL)
		stream = rotated_from(source, entry);
	if (stream != NULL && file_modified_ns(&judgement->about) <= stream->record->forgotten_ns) {
		entry->judged = true; /* it was known once, and read */
		return;
	}
	if (stream != NULL && stream->record->part_count > 0) {
		stream->hot = stream->missed = true; /* its plan decides, once the file before is read */
		return;
	}
	if (stream == NULL)
		stream = new_stream(source, entry);
	if (stream == NULL)
		return;
	bool first = stream->record->file_count == 0;
	struct file_candidate candidate;
	file_candidate_of(&candidate, entry->path, judgement);
	if (first)
		file_remember_rotated(stream);
	bool from_end = source->follow && source->start == SOURCE_FROM_END && source->fresh && source->scans == 1;
	entry->judged = file_stream_begin(stream, &candidate, from_end);
	file_candidate_deinit(&candidate);
	pthread_mutex_lock(&source->mutex);
	stream->status.size_bytes = stream->status.lag_bytes = entry->size;
	pthread_mutex_unlock(&source->mutex);
}

/* A configured path that names nothing, or one that cannot be read: a stream states it. */
static void on_unreadable(struct file_source *source, struct file_entry *entry, int64_t now_ms,
                          const struct weir_error *error)
{
	struct file_stream *stream = stream_of_path(source, entry->path);
	if (stream == NULL && rotated_from(source, entry) == NULL)
		stream = new_stream(source, entry);
	/* One that reads an older file states what it meets itself; so does one that is asked at once. */
	if (source->follow && stream != NULL && stream->record->part_count == 0 && now_ms >= stream->retry_ms)
		file_stream_trouble(stream, now_ms, "%s", error->text);
}

static void look_at(struct file_source *source, struct file_entry *entry, int64_t now_ms)
{
	struct stat about;
	struct weir_error error;
	struct file_judgement judgement;
	if (stat(entry->path, &about) == 0) {
		bool same = entry->device == about.st_dev && entry->inode == about.st_ino;
		bool unchanged =
			same && entry->size == (uint64_t)about.st_size && entry->modified_ns == file_modified_ns(&about);
		entry->device = about.st_dev;
		entry->inode = about.st_ino;
		entry->size = (uint64_t)about.st_size;
		entry->modified_ns = file_modified_ns(&about);
		if (entry->judged && (unchanged || (same && is_open(source, entry))))
			return;
	}
	entry->judged = false;
	file_judge(source, entry->path, &judgement, &error);
	entry->compressed = judgement.kind == INPUT_GZIP || judgement.kind == INPUT_ZSTD;
	switch (judgement.verdict) {
	case FILE_NEW: on_new(source, entry, &judgement); break;
	case FILE_KNOWN: on_known(source, entry, &judgement); break;
	case FILE_COPY: entry->judged = true; break;
	case FILE_ABSENT:
		if (has_wildcard(source->patterns[entry->pattern]))
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
	for (size_t i = 0; i < source->pattern_count; i++)
		add_directory(&found, source->patterns[i], strcspn(source->patterns[i], "*?["));
	for (size_t i = 0; i < source->entry_count; i++)
		add_directory(&found, source->entries[i].path, strlen(source->entries[i].path));
	for (size_t i = 0; i < source->stream_count; i++)
		add_directory(&found, source->streams[i]->path, strlen(source->streams[i]->path));
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
	if (source->entry_count > 0)
		qsort(entries, source->entry_count, sizeof(struct file_entry *), by_inode);
	for (size_t i = 0; i < source->stream_count; i++) {
		struct file_stream *stream = source->streams[i];
		for (size_t j = 0; j < stream->record->file_count; j++) {
			struct source_memory_file *file = stream->record->files[j];
			struct file_entry sought = {.device = file->device, .inode = file->inode}, *key = &sought;
			if (file_stream_opened(stream, file) != NULL ||
			    (source->entry_count > 0 &&
			     bsearch(&key, entries, source->entry_count, sizeof(struct file_entry *), by_inode) != NULL))
				file->seen_s = now_s;
		}
		source_memory_forget(source->memory, stream->record, now_s);
	}
}

static bool remembers_too_much(const struct file_source *source)
{
	for (size_t i = 0; i < source->stream_count; i++)
		if (source->streams[i]->record->file_count > SOURCE_MEMORY_FILES_MAX)
			return true;
	return false;
}

/* ---- the scan ---- */

static void state_idle_patterns(struct file_source *source, const bool *named)
{
	pthread_mutex_lock(&source->mutex);
	for (size_t i = 0; i < source->pattern_count; i++)
		source->names_none[i] = !named[i];
	pthread_mutex_unlock(&source->mutex);
}

void file_source_scan(struct file_source *source, int64_t now_ms)
{
	bool *named = weir_alloc(source->pattern_count, sizeof *named);
	struct paths paths = expand(source, named);
	source->scans++;
	carry_over(source, &paths);
	struct file_entry **ordered = weir_alloc(source->entry_count, sizeof(struct file_entry *));
	for (size_t i = 0; i < source->entry_count; i++)
		ordered[i] = &source->entries[i];
	if (source->entry_count > 0)
		qsort(ordered, source->entry_count, sizeof(struct file_entry *), by_pattern);
	for (size_t i = 0; i < source->entry_count; i++)
		look_at(source, ordered[i], now_ms);
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
	int64_t took_ms = weir_monotonic_ms() - now_ms, pause_ms = source->timing.poll;
	if (took_ms * SCAN_SHARE > pause_ms)
		pause_ms = took_ms * SCAN_SHARE;
	source->scanned_ms = now_ms + took_ms;
	source->scan_ms = source->scanned_ms + pause_ms;
}
