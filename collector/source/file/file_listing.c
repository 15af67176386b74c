/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths that the patterns name, each once, and what is known of each: so
 * that a scan looks at what has changed alone.
 */
#include "collector/source/file/file_listing.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_listing_expands(const char *pattern)
{
	struct stat about;
	return strpbrk(pattern, "*?[") != NULL && lstat(pattern, &about) != 0;
}

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

static bool is_closed(const char *directory, int mode)
{
	struct stat about;
	return stat(directory, &about) == 0 && S_ISDIR(about.st_mode) &&
	       faccessat(AT_FDCWD, directory, mode, AT_EACCESS) != 0;
}

void file_listing_each_closed(const char *pattern, void (*call)(void *context, const char *path), void *context)
{
	char path[PATH_MAX];
	for (const char *slash = pattern; (slash = strchr(slash, '/')) != NULL; slash++) {
		size_t length = (size_t)(slash - pattern), part = strcspn(slash + 1, "/");
		glob_t found;
		if (length == 0 || length >= sizeof path)
			continue;
		memcpy(path, pattern, length);
		path[length] = '\0';
		/* A directory without wildcards that is closed is told by who finds nothing there. */
		if (strpbrk(path, "*?[") == NULL || glob(path, GLOB_NOSORT, NULL, &found) != 0)
			continue;
		size_t wildcard = strcspn(slash + 1, "*?[");
		for (size_t i = 0; i < found.gl_pathc; i++)
			if (is_closed(found.gl_pathv[i], wildcard < part ? R_OK | X_OK : X_OK) &&
			    (size_t)snprintf(path, sizeof path, "%s%s", found.gl_pathv[i], slash) < sizeof path)
				call(context, path);
		globfree(&found);
	}
}

/* Why a directory cannot be passed, or be listed: not allowed, or no descriptor is left. @return an errno; 0: it can */
static int fault_of(const char *path, bool listed)
{
	if (faccessat(AT_FDCWD, path, listed ? R_OK | X_OK : X_OK, AT_EACCESS) != 0)
		return errno;
	if (!listed)
		return 0;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int failed = fd < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	return failed;
}

bool file_listing_obstacle(const char *pattern, char *text, size_t bytes)
{
	char path[PATH_MAX];
	size_t wildcard = strcspn(pattern, "*?[");
	for (const char *slash = pattern; (slash = strchr(slash, '/')) != NULL && (size_t)(slash - pattern) < wildcard;
	     slash++) {
		size_t length = slash > pattern ? (size_t)(slash - pattern) : 1;
		bool last = strcspn(slash + 1, "/") > strcspn(slash + 1, "*?[");
		if (length >= sizeof path)
			return false;
		memcpy(path, pattern, length);
		path[length] = '\0';
		int failed = fault_of(path, last);
		if (failed == 0 || failed == ENOENT)
			continue;
		snprintf(text, bytes, "cannot read the directory %.150s: %s", path, weir_errno_words(failed));
		size_t used = strlen(text);
		if (failed == EACCES)
			snprintf(text + used, bytes - used, " (running as uid %u)", (unsigned)geteuid());
		return true;
	}
	return false;
}

/* All paths that patterns name, by bytes, each once; named[i] says whether pattern i names any. */
static struct paths expand(const struct file_settings *settings, bool *named)
{
	struct paths paths = {0};
	for (uint32_t i = 0; i < settings->pattern_count; i++) {
		if (!file_listing_expands(settings->patterns[i])) {
			add_path(&paths, settings->patterns[i], i);
			named[i] = true;
			continue;
		}
		glob_t found;
		if (glob(settings->patterns[i], GLOB_NOSORT, NULL, &found) == 0) {
			for (size_t j = 0; j < found.gl_pathc; j++) {
				if (!file_settings_excludes(settings, found.gl_pathv[j]))
					add_path(&paths, found.gl_pathv[j], i);
			}
			named[i] = found.gl_pathc > 0; /* those that are excluded are so on purpose */
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
static void carry_over(struct file_listing *listing, struct paths *paths)
{
	size_t before = 0, kept = 0;
	for (size_t i = 0; i < paths->count; i++) {
		int order = -1;
		while (before < listing->count && (order = strcmp(listing->entries[before].path, paths->list[i].path)) < 0)
			before++;
		if (before == listing->count || order != 0)
			continue;
		kept++;
		char *path = paths->list[i].path;
		uint32_t pattern = paths->list[i].pattern;
		paths->list[i] = listing->entries[before];
		paths->list[i].path = path;
		paths->list[i].pattern = pattern;
	}
	bool changed = kept != paths->count || kept != listing->count;
	uint64_t changes = listing->changes + changed;
	file_listing_deinit(listing);
	*listing = (struct file_listing){.entries = paths->list, .count = paths->count, .changes = changes};
}

void file_listing_refresh(struct file_listing *listing, const struct file_settings *settings, bool *named)
{
	struct paths paths = expand(settings, named);
	carry_over(listing, &paths);
}

struct file_entry *file_listing_add(struct file_listing *listing, const char *path, uint32_t pattern)
{
	size_t low = 0, high = listing->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(listing->entries[middle].path, path);
		if (order == 0)
			return &listing->entries[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	listing->entries = weir_realloc(listing->entries, listing->count + 1, sizeof *listing->entries);
	memmove(&listing->entries[low + 1], &listing->entries[low], (listing->count - low) * sizeof *listing->entries);
	listing->entries[low] = (struct file_entry){.path = weir_copy(path, strlen(path)), .pattern = pattern};
	listing->count++;
	listing->changes++;
	return &listing->entries[low];
}

void file_listing_deinit(struct file_listing *listing)
{
	for (size_t i = 0; i < listing->count; i++)
		free(listing->entries[i].path);
	free(listing->entries);
}
