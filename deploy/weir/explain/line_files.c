/* SPDX-License-Identifier: Apache-2.0 */
/* A rotated file keeps the beginning of its name: access.log becomes access.log.1, access.log.2.gz, access-20261126.log. */
#include "deploy/weir/explain/line_files.h"

#include "common/base/alloc.h"
#include "common/files/durable_file.h"
#include "common/json/json.h"

#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LISTED_MAX = 65536, FAMILIES_MAX = 4096 };

struct listed {
	char *path;
	int rank; /* 0: the file of that incarnation; 1: the stream's path; 2: others, the newest first */
	int64_t modified_ms;
};

struct listing {
	struct listed *all;
	size_t count, room;
	bool full;
	char *families[FAMILIES_MAX]; /* owned: "directory/stem" of those that were listed */
	size_t family_count;
	uint64_t device, inode; /* of the incarnation's file; 0, 0: unknown */
	const char *stream;
};

static void add(struct listing *listing, const char *path)
{
	struct stat about;
	if (stat(path, &about) != 0 || !S_ISREG(about.st_mode))
		return;
	listing->full = listing->full || listing->count == LISTED_MAX;
	if (listing->full)
		return;
	int64_t modified_ms = (int64_t)about.st_mtim.tv_sec * 1000 + about.st_mtim.tv_nsec / 1000000;
	if (listing->count == listing->room) {
		listing->room = 2 * listing->room + 16;
		listing->all = weir_realloc(listing->all, listing->room, sizeof *listing->all);
	}
	bool own = listing->inode != 0 && about.st_ino == listing->inode && about.st_dev == listing->device;
	listing->all[listing->count++] = (struct listed){
		.path = weir_copy(path, strlen(path)),
		.rank = own                                                             ? 0
	            : listing->stream != NULL && strcmp(listing->stream, path) == 0 ? 1
	                                                                            : 2,
		.modified_ms = modified_ms,
	};
}

/* Whether names with this beginning are still to be listed there: a pattern may name thousands of one beginning. */
static bool begin_family(struct listing *listing, const char *directory, const char *name, size_t stem)
{
	char family[2 * WEIR_PATH_BYTES];
	int length = snprintf(family, sizeof family, "%s/%.*s", directory, (int)stem, name);
	for (size_t i = 0; i < listing->family_count; i++)
		if (strcmp(listing->families[i], family) == 0)
			return false;
	listing->full = listing->full || listing->family_count == FAMILIES_MAX;
	if (!listing->full)
		listing->families[listing->family_count++] = weir_copy(family, (size_t)length);
	return !listing->full;
}

/* Those of a directory whose names begin as a path's does. */
static void add_beside(struct listing *listing, const char *directory, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
	size_t stem = strcspn(name, ".");
	struct weir_error error;
	char beside[WEIR_PATH_BYTES];
	DIR *open = stem > 0 && begin_family(listing, directory, name, stem) ? opendir(directory) : NULL;
	if (open == NULL)
		return;
	for (struct dirent *entry; (entry = readdir(open)) != NULL;) {
		if (strncmp(entry->d_name, name, stem) != 0)
			continue;
		/* as the sources name it: without "./" where the path has no directory */
		enum weir_status status = slash == NULL && strcmp(directory, ".") == 0
		                              ? weir_path_format(beside, &error, "%s", entry->d_name)
		                              : weir_path_format(beside, &error, "%s/%s", directory, entry->d_name);
		if (status == WEIR_OK)
			add(listing, beside);
	}
	closedir(open);
}

static void add_family(struct listing *listing, const char *path)
{
	char directory[WEIR_PATH_BYTES];
	struct weir_error error;
	add(listing, path);
	if (weir_directory_of(path, directory, &error) == WEIR_OK)
		add_beside(listing, directory, path);
}

/* What the collector remembers of the stream: which file had the incarnation, and other directories. */
static void use_memory(struct listing *listing, const struct source_memory *memory, uint32_t incarnation)
{
	const struct source_memory_stream *stream = source_memory_find(memory, listing->stream);
	if (stream == NULL)
		return;
	const struct source_memory_part *part = source_memory_part(stream, incarnation);
	const struct source_memory_file *file = part != NULL ? source_memory_file(stream, part->file) : NULL;
	if (file != NULL) {
		listing->device = file->device;
		listing->inode = file->inode;
		if (file->where != NULL)
			add(listing, file->where);
	}
	for (size_t i = 0; i < stream->file_count; i++)
		if (stream->files[i]->home != NULL)
			add_beside(listing, stream->files[i]->home, listing->stream);
}

/* A path without what a compressor puts behind it: its length. */
static size_t plain_length(const char *path)
{
	static const char *const endings[] = {".gz", ".bz2", ".xz", ".zst", NULL};
	size_t length = strlen(path);
	for (size_t i = 0; endings[i] != NULL; i++) {
		size_t ending = strlen(endings[i]);
		if (length > ending && strcmp(path + length - ending, endings[i]) == 0)
			return length - ending;
	}
	return length;
}

bool line_files_are_one(const char *path, const char *other)
{
	size_t length = plain_length(path);
	return length == plain_length(other) && memcmp(path, other, length) == 0;
}

/* The patterns of a source of files: a text, or a list of them. */
static const char *pattern_of(const struct weir_config *config, size_t place, size_t number)
{
	struct weir_json source = weir_json_element(&config->sources, place), path = weir_json_member(&source, "path");
	const char *type = json_string_value(weir_json_member(&source, "type").value);
	if (type == NULL || strcmp(type, "file") != 0)
		return NULL;
	if (json_is_string(path.value))
		return number == 0 ? json_string_value(path.value) : NULL;
	return json_string_value(json_array_get(path.value, number));
}

bool line_files_source_names(const struct weir_config *config, size_t place, const char *path)
{
	const char *pattern;
	for (size_t i = 0; (pattern = pattern_of(config, place, i)) != NULL; i++)
		if (path == NULL || strcmp(pattern, path) == 0 || fnmatch(pattern, path, FNM_PATHNAME) == 0)
			return true;
	return false;
}

static void add_sources(struct listing *listing, const struct weir_config *config)
{
	const char *pattern;
	for (size_t place = 0; place < config->source_count; place++)
		for (size_t i = 0; (pattern = pattern_of(config, place, i)) != NULL; i++) {
			glob_t found;
			if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
				for (size_t j = 0; j < found.gl_pathc; j++)
					add_family(listing, found.gl_pathv[j]);
				globfree(&found);
			} else {
				add_family(listing, pattern);
			}
		}
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct listed *)a)->path, ((const struct listed *)b)->path);
}

/* A path may have been named and listed. */
static void drop_twice(struct listing *listing)
{
	size_t kept = 0;
	if (listing->count > 0)
		qsort(listing->all, listing->count, sizeof *listing->all, by_path);
	for (size_t i = 0; i < listing->count; i++)
		if (kept > 0 && strcmp(listing->all[kept - 1].path, listing->all[i].path) == 0)
			free(listing->all[i].path);
		else
			listing->all[kept++] = listing->all[i];
	listing->count = kept;
}

static int compare(const void *a, const void *b)
{
	const struct listed *one = a, *other = b;
	if (one->rank != other->rank)
		return one->rank - other->rank;
	int newest = (one->modified_ms < other->modified_ms) - (one->modified_ms > other->modified_ms);
	return newest != 0 ? newest : strcmp(one->path, other->path);
}

void line_files_find(struct line_files *files, const struct weir_config *config, const struct source_memory *memory,
                     const char *stream, uint32_t incarnation)
{
	struct listing listing = {.stream = stream};
	*files = (struct line_files){0};
	if (stream != NULL && memory != NULL)
		use_memory(&listing, memory, incarnation);
	if (stream != NULL)
		add_family(&listing, stream);
	else if (config != NULL)
		add_sources(&listing, config);
	drop_twice(&listing);
	if (listing.count > 0)
		qsort(listing.all, listing.count, sizeof *listing.all, compare);
	files->own = listing.count > 0 && listing.all[0].rank == 0;
	for (size_t i = 0; i < listing.count; i++) {
		if (files->count < LINE_FILES_MAX) {
			files->paths[files->count++] = listing.all[i].path;
		} else {
			files->more = true;
			free(listing.all[i].path);
		}
	}
	files->more = files->more || listing.full;
	for (size_t i = 0; i < listing.family_count; i++)
		free(listing.families[i]);
	free(listing.all);
}

void line_files_deinit(struct line_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->paths[i]);
	files->count = 0;
}
