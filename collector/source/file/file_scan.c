/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files the patterns name: at the start, and then each second and when a
 * directory has changed.
 *
 * Each path is judged when it appears or changes. A known file is no new stream
 * whatever its name; a new one continues the stream of its path if there is
 * one. Any other begins a stream of its own, as somebody named it: a name that
 * looks like a rotated one says nothing, unless the log that it would be of has
 * moved on in the same row of names. What only grows, and is being read, is
 * skipped by device and inode.
 */
#include "collector/source/file/file_scan.h"

#include "collector/source/file/file_watch.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	SCAN_SHARE = 100, /* scanning takes at most this part of the time, unless an event asks for it */
	FORGET_PERIOD_MS = 3600000,
};

/* ---- one path ---- */

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

/* The log that reads the file of an inode, if it has it open: then it knows more about it than a scan. */
static struct file_log *opened_by(const struct file_source *source, const struct file_entry *entry)
{
	struct source_memory_file *file = source_memory_file_with(source->shared.memory, entry->device, entry->inode);
	for (; file != NULL; file = source_memory_file_next(file)) {
		struct file_log *log = file->stream->reader;
		if (log != NULL && log->source == source && file_stream_opened(&log->rotation.stream, file) != NULL)
			return log;
	}
	return NULL;
}

/* ---- what a name says of a file that is not known ---- */

struct ancestry {
	const struct file_source *source;
	const struct file_entry *entry;
};

/* A log that this name may be rotated away from. */
static void *log_of_base(void *context, const char *base)
{
	const struct ancestry *ancestry = context;
	struct file_log *log = file_source_at(ancestry->source, base);
	return log != NULL && log->rotation.stream.record->part_count > 0 ? log : NULL;
}

/*
 * The same, where the log's own file says so: it was rotated away, and the name follows it in the row. Whatever else is
 * named is a log of its own, whatever its name looks like.
 */
static void *log_that_goes_on(void *context, const char *base)
{
	const struct ancestry *ancestry = context;
	struct file_log *log = log_of_base(context, base);
	if (log == NULL || log->created_scan == ancestry->source->scans)
		return NULL;
	const struct source_memory_stream *record = log->rotation.stream.record;
	const struct source_memory_file *last = source_memory_file(record, source_memory_last_part(record)->file);
	if (last->where == NULL || ancestry->entry->modified_ns < last->modified_ns)
		return NULL;
	const char *name = file_identity_base(ancestry->entry->path), *known = file_identity_base(last->where);
	return file_identity_follows(file_identity_base(base), known, name) ? log : NULL;
}

/* ---- a file that is known ---- */

/* A path by which another source names a file, now. */
static const char *named_by(const struct file_source *other, const struct file_entry *entry)
{
	for (size_t i = 0; i < other->shared.listing.count; i++) {
		const struct file_entry *listed = &other->shared.listing.entries[i];
		struct stat about;
		if (listed->inode == entry->inode && listed->device == entry->device && stat(listed->path, &about) == 0 &&
		    about.st_ino == entry->inode)
			return listed->path;
	}
	return NULL;
}

/* Two sources that name one file would read it in two ways, and only one of them reads it. */
static void note_overlap(struct file_source *source, const struct file_entry *entry, const struct file_source *other)
{
	const char *path = named_by(other, entry);
	if (path == NULL)
		return; /* it is the rotation of a log of that source, which reads it */
	struct weir_text words = {0};
	weir_text_printf(&words,
	                 "names %s, which %s reads%s%s: name a file in one source only, or leave it out by \"exclude\"",
	                 entry->path, other->shared.place, strcmp(path, entry->path) != 0 ? " as " : "",
	                 strcmp(path, entry->path) != 0 ? path : "");
	weir_text_append(&words, "", 1);
	pthread_mutex_lock(&source->shared.mutex);
	free(source->overlap);
	source->overlap = words.at;
	pthread_mutex_unlock(&source->shared.mutex);
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
	struct file_log *log = record->reader;
	if (log == NULL)
		return;
	if (log->source != source) {
		note_overlap(source, entry, log->source);
		return;
	}
	if (last != NULL && last->file == file->number)
		file_stream_wake(&log->rotation.stream);
	else if (file->state == SOURCE_FILE_SETTLED && file->taken != SOURCE_OFFSET_END &&
	         (entry->compressed ? entry->modified_ns != file->modified_ns : entry->size > file->taken))
		file->state = SOURCE_FILE_LEFT; /* it has grown all the same */
}

/* Where nothing was read of either before: who names a file and its packed copy may want to know. */
static void on_copy(const struct file_source *source, struct file_entry *entry, const struct file_judgement *judgement)
{
	struct source_memory_file *file = judgement->file;
	struct stat about;
	entry->judged = true;
	/* Where the file itself is gone, the copy is where it is. */
	if (file->where == NULL || stat(file->where, &about) != 0 || !file_identity_has_inode(file, &about)) {
		free(file->where);
		file->where = weir_copy(entry->path, strlen(entry->path));
	}
	if (!source->shared.settings.follow && judgement->file->taken == 0)
		file_shared_tell(&source->shared, "%s holds the same lines as %s and is not read again", entry->path,
		                 judgement->file->where != NULL ? judgement->file->where : judgement->stream->path);
}

/* ---- a file that is not known ---- */

static void begin(struct file_source *source, struct file_stream *stream, struct file_entry *entry,
                  const struct file_judgement *judgement)
{
	const struct file_settings *settings = &source->shared.settings;
	struct file_candidate candidate;
	file_candidate_init(&candidate, entry->path, judgement);
	assert(stream->record != NULL);
	struct file_route route = file_stream_route(stream);
	if (stream->record->file_count == 0)
		file_search_remember_rotated(&source->shared, &route, stream->record);
	bool from_end = settings->follow && settings->start == SOURCE_FROM_END && source->fresh && source->scans == 1;
	entry->judged = file_stream_begin(stream, &candidate, from_end);
	file_candidate_deinit(&candidate);
	file_stream_note_size(stream, entry->size);
}

/*
 * An empty file can be begun where nothing but a log is to be expected of it: then its first line is read at once. A
 * copy or a packed file is empty too when it is made.
 */
static bool is_empty_log(const struct file_source *source, const struct file_entry *entry,
                         const struct file_judgement *judgement)
{
	struct ancestry ancestry = {source, entry};
	const char *dot = strrchr(file_identity_base(entry->path), '.');
	bool packed = dot != NULL && (strcmp(dot, ".gz") == 0 || strcmp(dot, ".zst") == 0 || strcmp(dot, ".bz2") == 0 ||
	                              strcmp(dot, ".xz") == 0);
	return judgement->about.st_size == 0 && !packed &&
	       file_identity_each_base(entry->path, log_of_base, &ancestry) == NULL;
}

/*
 * Whether a file that no log has the path of is part of a log that is known.
 *
 * @param settled  all other files were looked at: so it is known where the log's own are
 */
static bool is_of_another(struct file_source *source, struct file_entry *entry, const struct file_judgement *judgement,
                          bool settled)
{
	struct ancestry ancestry = {source, entry};
	const struct file_log *named = file_identity_each_base(entry->path, log_of_base, &ancestry);
	if (named == NULL)
		return false;
	if (file_identity_modified_ns(&judgement->about) <= named->rotation.stream.record->forgotten_ns) {
		entry->judged = true; /* it was known once, and read */
		return true;
	}
	entry->doubtful = !settled;
	if (!settled)
		return true;
	struct file_log *before = file_identity_each_base(entry->path, log_that_goes_on, &ancestry);
	if (before != NULL)
		file_rotation_inspect(&before->rotation); /* that decides, once the file before is read */
	return before != NULL;
}

static void on_new(struct file_source *source, struct file_entry *entry, const struct file_judgement *judgement,
                   bool settled)
{
	struct file_log *log = file_source_at(source, entry->path);
	bool ready = file_judgement_ready(judgement, &source->shared.settings);
	if (log == NULL && ready && is_of_another(source, entry, judgement, settled))
		return;
	if (log != NULL && log->rotation.stream.record->part_count > 0) {
		if (ready)
			file_rotation_inspect(&log->rotation);
		return;
	}
	if (!ready && !is_empty_log(source, entry, judgement))
		return; /* judged again at the next scan */
	if (log == NULL)
		log = new_log(source, entry);
	if (log != NULL)
		begin(source, &log->rotation.stream, entry, judgement);
}

/* A configured path that names nothing, or one that cannot be read: a stream states it. */
static void on_unreadable(struct file_source *source, struct file_entry *entry, int64_t now_ms,
                          const struct weir_error *error)
{
	struct file_log *log = file_source_at(source, entry->path);
	if (log == NULL)
		log = new_log(source, entry);
	struct file_stream *stream = log != NULL ? &log->rotation.stream : NULL;
	/* One that reads an older file states what it meets itself; so does one that is asked at once. */
	if (source->shared.settings.follow && stream != NULL && stream->record->part_count == 0 &&
	    now_ms >= stream->retry_ms)
		file_stream_fail(stream, now_ms, error);
}

/* What lies at a path by now. @return false: it is as it was, or its log knows more about it */
static bool look_at(struct file_source *source, struct file_entry *entry)
{
	struct stat about;
	if (lstat(entry->path, &about) != 0)
		return true;
	entry->linked = S_ISLNK(about.st_mode);
	if (entry->linked && stat(entry->path, &about) != 0)
		return true;
	bool same = entry->device == about.st_dev && entry->inode == about.st_ino;
	bool unchanged =
		same && entry->size == (uint64_t)about.st_size && entry->modified_ns == file_identity_modified_ns(&about);
	entry->device = about.st_dev;
	entry->inode = about.st_ino;
	entry->size = (uint64_t)about.st_size;
	entry->modified_ns = file_identity_modified_ns(&about);
	if (entry->judged && unchanged)
		return false;
	struct file_log *log = entry->judged && same ? opened_by(source, entry) : NULL;
	if (log != NULL)
		file_stream_wake(&log->rotation.stream);
	return log == NULL;
}

static void judge(struct file_source *source, struct file_entry *entry, struct file_judgement *judgement,
                  struct weir_error *error)
{
	struct source_memory *memory = source->shared.memory;
	file_identity_judge(&source->shared.settings, memory, entry->path, NULL, judgement, error);
	if (judgement->verdict != FILE_KNOWN || !judgement->file->beside)
		return;
	/* Another stream knows it as one that lay beside its own and is not read: but it is named. */
	source_memory_file_drop(memory, judgement->file);
	file_identity_judge(&source->shared.settings, memory, entry->path, NULL, judgement, error);
}

static void inspect(struct file_source *source, struct file_entry *entry, bool settled, int64_t now_ms)
{
	struct weir_error error;
	struct file_judgement judgement;
	entry->judged = entry->doubtful = false;
	struct file_log *log = file_source_at(source, entry->path);
	if (log != NULL)
		file_source_resolve(source, log);
	judge(source, entry, &judgement, &error);
	entry->compressed = file_judgement_compressed(&judgement);
	switch (judgement.verdict) {
	case FILE_NEW: on_new(source, entry, &judgement, settled); break;
	case FILE_KNOWN: on_known(source, entry, &judgement); break;
	case FILE_COPY: on_copy(source, entry, &judgement); break;
	case FILE_ABSENT:
		if (file_listing_expands(source->shared.settings.patterns[entry->pattern]))
			break; /* it was there when the pattern was expanded */
		on_unreadable(source, entry, now_ms, &error);
		break;
	case FILE_UNREADABLE: on_unreadable(source, entry, now_ms, &error); break;
	}
}

bool file_scan_path(struct file_source *source, const char *path, int64_t now_ms)
{
	int pattern = file_settings_pattern(&source->shared.settings, path);
	if (pattern < 0)
		return true;
	struct file_entry *entry = file_listing_add(&source->shared.listing, path, (uint32_t)pattern);
	struct ancestry ancestry = {source, entry};
	if (file_source_at(source, path) == NULL && file_identity_each_base(path, log_of_base, &ancestry) != NULL)
		return false;
	if (look_at(source, entry))
		inspect(source, entry, true, now_ms);
	return true;
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
	if (length == 0) {
		path = ".";
		length = 1;
	}
	/* Most paths lie in the directory of the one before. */
	const char *before = directories->count > 0 ? directories->list[directories->count - 1] : NULL;
	if (before != NULL && strncmp(before, path, length) == 0 && before[length] == '\0')
		return;
	char *directory = weir_copy(path, length);
	if (directories->count == directories->capacity) {
		directories->capacity = directories->capacity != 0 ? 2 * directories->capacity : 16;
		directories->list = weir_realloc(directories->list, directories->capacity, sizeof(char *));
	}
	directories->list[directories->count++] = directory;
}

static void watch_directories(struct file_source *source)
{
	struct directories found = {0};
	uint64_t present = source->shared.listing.changes + source->shared.stream_count + source->index.count;
	if (present == source->watched && file_watch_complete(source->watch))
		return;
	source->watched = present;
	for (size_t i = 0; i < source->shared.settings.pattern_count; i++)
		add_directory(&found, source->shared.settings.patterns[i], strcspn(source->shared.settings.patterns[i], "*?["));
	for (size_t i = 0; i < source->shared.listing.count; i++)
		add_directory(&found, source->shared.listing.entries[i].path, strlen(source->shared.listing.entries[i].path));
	for (size_t i = 0; i < source->shared.stream_count; i++)
		add_directory(&found, source->logs[i]->rotation.stream.path, strlen(source->logs[i]->rotation.stream.path));
	for (size_t i = 0; i < source->shared.stream_count; i++)
		if (source->logs[i]->rotation.stream.real != NULL)
			add_directory(&found, source->logs[i]->rotation.stream.real, strlen(source->logs[i]->rotation.stream.real));
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
	pthread_mutex_lock(&source->shared.mutex);
	free(source->overlap);
	source->overlap = NULL;
	pthread_mutex_unlock(&source->shared.mutex);
	file_listing_refresh(listing, &source->shared.settings, named);
	struct file_entry **ordered = weir_alloc(listing->count, sizeof(struct file_entry *));
	for (size_t i = 0; i < listing->count; i++)
		ordered[i] = &listing->entries[i];
	if (listing->count > 0)
		qsort(ordered, listing->count, sizeof(struct file_entry *), by_pattern);
	size_t changed = 0;
	for (size_t i = 0; i < listing->count; i++)
		if (look_at(source, ordered[i])) {
			struct file_entry *other = ordered[changed];
			ordered[changed++] = ordered[i];
			ordered[i] = other;
		}
	for (size_t i = 0; i < changed; i++)
		inspect(source, ordered[i], false, now_ms);
	for (size_t i = 0; i < changed; i++)
		if (ordered[i]->doubtful)
			inspect(source, ordered[i], true, now_ms);
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
	file_scan_end(source, now_ms);
}

void file_scan_end(struct file_source *source, int64_t began_ms)
{
	int64_t pause_ms = source->shared.settings.timing.poll;
	source->scanned_ms = weir_monotonic_ms();
	source->scan_took_ms = source->scanned_ms - began_ms;
	if (source->scan_took_ms * SCAN_SHARE > pause_ms)
		pause_ms = source->scan_took_ms * SCAN_SHARE;
	source->scan_ms = source->scanned_ms + pause_ms;
}
