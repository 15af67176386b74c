/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading directories.
 *
 * Names are kept only when the directory had been at rest for a while when it
 * was read: two changes within one tick of the file system's clock leave one
 * time, and the second would not be seen.
 */
#include "collector/source/file/file_names.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define REST_NS INT64_C(100000000)

static void names_free(struct file_names *names)
{
	if (names == NULL)
		return;
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i].name);
	free(names->list);
	free(names);
}

static int by_name(const void *a, const void *b)
{
	const struct file_name *x = a, *y = b;
	return strcmp(x->name, y->name);
}

static enum weir_status read_all(struct file_names *names, DIR *directory, const char *shown, struct weir_error *error)
{
	size_t capacity = 0;
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(directory);
		if (entry == NULL)
			break;
		if (entry->d_type == DT_FIFO || entry->d_type == DT_SOCK || strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		if (names->count == capacity) {
			capacity = capacity != 0 ? 2 * capacity : 64;
			names->list = weir_realloc(names->list, capacity, sizeof *names->list);
		}
		names->list[names->count++] = (struct file_name){.name = weir_copy(entry->d_name, strlen(entry->d_name)),
		                                                 .inode = entry->d_ino,
		                                                 .folder = entry->d_type == DT_DIR};
	}
	if (errno != 0)
		return weir_fail(error, WEIR_IO, "cannot read directory %s: %s", shown, weir_errno_words(errno));
	if (names->count > 1)
		qsort(names->list, names->count, sizeof *names->list, by_name);
	return WEIR_OK;
}

static enum weir_status open_names(const char *path, const struct stat *about, struct file_names **made,
                                   struct weir_error *error)
{
	const char *shown = path[0] != '\0' ? path : ".";
	DIR *directory = opendir(shown);
	if (directory == NULL)
		return weir_fail(error, errno == ENOENT || errno == ENOTDIR ? WEIR_END : WEIR_IO,
		                 "cannot read directory %s: %s", shown, weir_errno_words(errno));
	struct file_names *names = weir_alloc(1, sizeof *names);
	memcpy(names->directory, path, strlen(path) + 1);
	names->device = about->st_dev;
	names->inode = about->st_ino;
	names->modified_ns = (int64_t)about->st_mtim.tv_sec * 1000000000 + about->st_mtim.tv_nsec;
	names->read_ns = weir_wall_ms() * 1000000;
	enum weir_status status = read_all(names, directory, shown, error);
	closedir(directory);
	if (status == WEIR_OK)
		*made = names;
	else
		names_free(names);
	return status;
}

static bool is_current(const struct file_names *names, const char *directory, const struct stat *about)
{
	return names != NULL && strcmp(names->directory, directory) == 0 && names->device == about->st_dev &&
	       names->inode == about->st_ino &&
	       names->modified_ns == (int64_t)about->st_mtim.tv_sec * 1000000000 + about->st_mtim.tv_nsec &&
	       names->read_ns - names->modified_ns > REST_NS;
}

enum weir_status file_names_read(struct file_names_cache *cache, const char *directory, const struct file_names **names,
                                 struct weir_error *error)
{
	struct stat about;
	size_t place = 0;
	if (strlen(directory) >= PATH_MAX)
		return weir_fail(error, WEIR_IO, "the path is too long: %s", directory);
	if (stat(directory[0] != '\0' ? directory : ".", &about) != 0)
		memset(&about, 0, sizeof about);
	cache->calls++;
	for (size_t i = 0; i < FILE_NAMES_KEPT; i++) {
		struct file_names *kept = cache->kept[i];
		if (is_current(kept, directory, &about)) {
			kept->used = cache->calls;
			*names = kept;
			return WEIR_OK;
		}
		/* the one of this directory, else an empty place, else the one that was asked for longest ago */
		bool same = kept != NULL && strcmp(kept->directory, directory) == 0;
		const struct file_names *chosen = cache->kept[place];
		if (same || (chosen != NULL && strcmp(chosen->directory, directory) != 0 &&
		             (kept == NULL || kept->used < chosen->used)))
			place = i;
	}
	names_free(cache->kept[place]);
	cache->kept[place] = NULL;
	enum weir_status status = open_names(directory, &about, &cache->kept[place], error);
	if (status != WEIR_OK)
		return status;
	cache->kept[place]->used = cache->calls;
	*names = cache->kept[place];
	return WEIR_OK;
}

void file_names_deinit(struct file_names_cache *cache)
{
	for (size_t i = 0; i < FILE_NAMES_KEPT; i++)
		names_free(cache->kept[i]);
}

size_t file_names_from(const struct file_names *names, const char *prefix, size_t length)
{
	size_t low = 0, high = names->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strncmp(names->list[middle].name, prefix, length) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
