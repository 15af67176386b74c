/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists directories and reads the headers of the files in them.
 *
 * A scan opens every file. So it is done only when a directory has changed, and now and then, as not all changes show in
 * its modification time: a clock may be set back. That has a coarse tick, too: another change may follow within the same
 * tick. While some file has no entry yet, and may get its first, scans follow soon upon a change, and then ever more rarely:
 * a file that is none of a journal never gets one.
 */
#include "collector/source/journal/journal_files.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MACHINE_ID_BYTES = 32, SETTLED_MS = 2000, PAUSE_LEAST_MS = 200 };

static uint64_t read_le64(const uint8_t *at)
{
	uint64_t value = 0;
	for (int i = 7; i >= 0; i--)
		value = value << 8 | at[i];
	return value;
}

bool journal_header_parse(const uint8_t *bytes, size_t length, struct journal_header *header)
{
	enum { STATE_AT = 16, ARCHIVED = 2, ID_AT = 72, ENTRIES_AT = 152, TAIL_AT = 160, HEAD_AT = 168 };
	if (length < JOURNAL_HEADER_BYTES || memcmp(bytes, "LPKSHHRH", 8) != 0)
		return false;
	memcpy(header->id, bytes + ID_AT, JOURNAL_ID_BYTES);
	header->archived = bytes[STATE_AT] == ARCHIVED;
	header->entries = read_le64(bytes + ENTRIES_AT);
	header->tail = read_le64(bytes + TAIL_AT);
	header->head = read_le64(bytes + HEAD_AT);
	return header->head <= header->tail;
}

static void add_directory(struct journal_files *files, const char *path)
{
	files->directories = weir_realloc(files->directories, files->directory_count + 1, sizeof(char *));
	files->directories[files->directory_count++] = weir_copy(path, strlen(path));
}

/* "/etc/machine-id" names the directory of this machine's journal. */
static void add_system(struct journal_files *files)
{
	static const char *const places[] = {"/run/log/journal", "/var/log/journal"};
	char id[MACHINE_ID_BYTES + 1] = "", path[64];
	FILE *file = fopen("/etc/machine-id", "re");
	if (file != NULL) {
		if (fread(id, 1, MACHINE_ID_BYTES, file) != MACHINE_ID_BYTES)
			id[0] = '\0';
		fclose(file);
	}
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(path, sizeof path, "%s/%s", places[i], id);
		add_directory(files, path);
	}
}

void journal_files_init(struct journal_files *files, const char *directory)
{
	*files = (struct journal_files){.below = directory != NULL};
	if (directory != NULL)
		add_directory(files, directory);
	else
		add_system(files);
}

static void clear(struct journal_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->list[i].path);
	for (size_t i = 0; i < files->folder_count; i++)
		free(files->folders[i]);
	files->count = files->folder_count = files->empty = 0;
}

void journal_files_deinit(struct journal_files *files)
{
	clear(files);
	free(files->list);
	free(files->folders);
	for (size_t i = 0; i < files->directory_count; i++)
		free(files->directories[i]);
	free(files->directories);
}

/* The first of a scan is kept. */
static void WEIR_PRINTF(2, 3) state_problem(struct journal_files *files, const char *format, ...)
{
	va_list arguments;
	if (files->problem[0] != '\0')
		return;
	va_start(arguments, format);
	vsnprintf(files->problem, sizeof files->problem, format, arguments);
	va_end(arguments);
}

static void state_unreadable(struct journal_files *files, const char *path, int reason)
{
	state_problem(files, "cannot read %.120s: %s", path, weir_errno_words(reason));
}

/* Keeps a folder, to look whether it changes; also one that is not there yet. */
static void keep_folder(struct journal_files *files, const char *path)
{
	if (files->folder_count == JOURNAL_FOLDERS_MAX) {
		state_problem(files,
		              "there are more than %d folders: what is new in the others is found after up to %d s: give some "
		              "of them a source of their own",
		              JOURNAL_FOLDERS_MAX, JOURNAL_RESCAN_MS / 1000);
		return;
	}
	files->folders = weir_realloc(files->folders, files->folder_count + 1, sizeof(char *));
	files->folders[files->folder_count++] = weir_copy(path, strlen(path));
}

static void add_file(struct journal_files *files, const char *path)
{
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	struct stat about;
	struct journal_header header;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		if (errno != ENOENT) /* ENOENT: it was just renamed or removed, and another scan follows */
			state_unreadable(files, path, errno);
		return;
	}
	bool known =
		fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
		journal_header_parse(
			bytes, (size_t)(pread(fd, bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes ? JOURNAL_HEADER_BYTES : 0),
			&header);
	close(fd);
	if (!known || header.entries == 0) {
		files->empty++;
		return;
	}
	if (files->count == JOURNAL_FILES_MAX) {
		state_problem(
			files,
			"there are more than %d files: the others are not read: give some folders a source of their own, or "
			"let the journal keep fewer files",
			JOURNAL_FILES_MAX);
		return;
	}
	files->list = weir_realloc(files->list, files->count + 1, sizeof *files->list);
	files->list[files->count++] = (struct journal_listed){
		.path = weir_copy(path, strlen(path)), .device = about.st_dev, .inode = about.st_ino, .header = header};
}

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);
	return length > tail && strcmp(name + length - tail, end) == 0;
}

/* Adds a directory's files. @param below  also those of subdirectories whose names are machine ids */
static void scan_directory(struct journal_files *files, const char *directory, bool below)
{
	keep_folder(files, directory);
	DIR *open_directory = opendir(directory);
	if (open_directory == NULL) {
		if (errno != ENOENT)
			state_unreadable(files, directory, errno);
		return;
	}
	char path[PATH_MAX];
	for (const struct dirent *entry; (entry = readdir(open_directory)) != NULL;) {
		if (snprintf(path, sizeof path, "%s/%s", directory, entry->d_name) >= (int)sizeof path)
			continue;
		if (ends_with(entry->d_name, ".journal") || ends_with(entry->d_name, ".journal~"))
			add_file(files, path);
		else if (below && strlen(entry->d_name) == MACHINE_ID_BYTES &&
		         strspn(entry->d_name, "0123456789abcdef") == MACHINE_ID_BYTES)
			scan_directory(files, path, false);
	}
	closedir(open_directory);
}

static int by_id_and_head(const void *a, const void *b)
{
	const struct journal_header *x = &((const struct journal_listed *)a)->header;
	const struct journal_header *y = &((const struct journal_listed *)b)->header;
	int order = memcmp(x->id, y->id, JOURNAL_ID_BYTES);
	if (order != 0)
		return order;
	return x->head != y->head ? (x->head < y->head ? -1 : 1) : (x->tail > y->tail) - (x->tail < y->tail);
}

static void take_change(int64_t *newest_ns, const char *path)
{
	struct stat about;
	if (stat(path, &about) != 0)
		return;
	int64_t changed_ns = (int64_t)about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec;
	if (changed_ns > *newest_ns)
		*newest_ns = changed_ns;
}

/* The newest modification time of the folders of the last scan. */
static int64_t newest_change_ns(const struct journal_files *files)
{
	int64_t newest_ns = 0;
	for (size_t i = 0; i < files->folder_count; i++)
		take_change(&newest_ns, files->folders[i]);
	return newest_ns;
}

/* After a scan. @param changed  it was done because of a change */
static int64_t next_pause_ms(const struct journal_files *files, bool changed)
{
	if (files->empty == 0 && files->count > 0)
		return JOURNAL_RESCAN_MS;
	if (changed)
		return PAUSE_LEAST_MS;
	return files->pause_ms < JOURNAL_RESCAN_MS / 2 ? 2 * files->pause_ms : JOURNAL_RESCAN_MS;
}

bool journal_files_scan(struct journal_files *files)
{
	int64_t now_ms = weir_wall_ms(), changed_ns = newest_change_ns(files);
	bool settled = changed_ns / 1000000 < files->scanned_ms - SETTLED_MS && now_ms >= files->scanned_ms;
	bool changed = !settled || changed_ns != files->changed_ns;
	if (!changed && now_ms < files->scanned_ms + files->pause_ms)
		return false;
	clear(files);
	files->problem[0] = '\0';
	files->scanned_ms = now_ms;
	for (size_t i = 0; i < files->directory_count; i++)
		scan_directory(files, files->directories[i], files->below);
	if (files->count > 1)
		qsort(files->list, files->count, sizeof *files->list, by_id_and_head);
	files->changed_ns = newest_change_ns(files);
	files->pause_ms = next_pause_ms(files, changed);
	return true;
}

struct weir_span journal_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *begin = slash != NULL ? slash + 1 : path;
	const char *end = strchr(begin, '@');
	if (end == NULL)
		end = strstr(begin, ".journal");
	return (struct weir_span){.at = begin, .length = (uint32_t)(end != NULL ? (size_t)(end - begin) : strlen(begin))};
}

bool journal_is_of(const struct journal_listed *listed, const uint8_t *id, const char *name)
{
	if (memcmp(listed->header.id, id, JOURNAL_ID_BYTES) != 0)
		return false;
	struct weir_span own = journal_name(listed->path);
	return own.length == strlen(name) && memcmp(own.at, name, own.length) == 0;
}

size_t journal_files_after(const struct journal_files *files, const uint8_t *id, const char *name, uint64_t seqnum,
                           bool *kept)
{
	size_t found = files->count, newest = files->count;
	*kept = false;
	for (size_t i = 0; i < files->count; i++) {
		const struct journal_header *header = &files->list[i].header;
		if (!journal_is_of(&files->list[i], id, name))
			continue;
		*kept |= header->head <= seqnum;
		newest = i;
		if (header->tail > seqnum && found == files->count)
			found = i;
	}
	/* New entries do not change a directory. So the file that they go to is read, even if it has none after seqnum. */
	if (found == files->count && newest < files->count && !files->list[newest].header.archived)
		found = newest;
	return found;
}
