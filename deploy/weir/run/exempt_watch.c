/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the file system by name: lists are replaced by rename as often as they are written in place. */
#include "deploy/weir/run/exempt_watch.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LOOK_PERIOD_MS = 1000 };

/* What tells one state of a file from another. */
struct state {
	dev_t device;
	ino_t inode;
	off_t bytes;
	int64_t modified_ns;
};

struct exempt_file {
	char *path;         /* owned */
	struct state known; /* as it was reported, or at first */
	struct state seen;  /* at the last look */
};

static bool look(const char *path, struct state *state)
{
	struct stat about;
	if (stat(path, &about) != 0)
		return false;
	memset(state, 0, sizeof *state);
	state->device = about.st_dev;
	state->inode = about.st_ino;
	state->bytes = about.st_size;
	state->modified_ns = (int64_t)about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec;
	return true;
}

static bool same(const struct state *a, const struct state *b)
{
	return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes && a->modified_ns == b->modified_ns;
}

void exempt_watch_deinit(struct exempt_watch *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		free(watch->files[i].path);
	free(watch->files);
	*watch = (struct exempt_watch){0};
}

static void add(struct exempt_watch *watch, const char *path, const struct exempt_watch *before)
{
	watch->files = weir_realloc(watch->files, watch->count + 1, sizeof *watch->files);
	struct exempt_file *file = &watch->files[watch->count++];
	*file = (struct exempt_file){.path = weir_copy(path, strlen(path))};
	for (size_t i = 0; i < before->count; i++)
		if (strcmp(before->files[i].path, path) == 0) {
			file->known = before->files[i].known;
			file->seen = before->files[i].seen;
			return;
		}
	(void)look(path, &file->known);
	file->seen = file->known;
}

void exempt_watch_set(struct exempt_watch *watch, const struct weir_policy *policy)
{
	struct exempt_watch before = *watch;
	*watch = (struct exempt_watch){.looked_ms = before.looked_ms};
	for (uint32_t z = 0; z < policy->zone_count; z++)
		for (uint32_t i = 0; i < policy->zones[z].exempt_file_count; i++)
			add(watch, policy->zones[z].exempt_files[i], &before);
	exempt_watch_deinit(&before);
}

bool exempt_watch_changed(struct exempt_watch *watch, int64_t now_ms)
{
	bool changed = false;
	if (watch->count == 0 || now_ms - watch->looked_ms < LOOK_PERIOD_MS)
		return false;
	watch->looked_ms = now_ms;
	for (size_t i = 0; i < watch->count; i++) {
		struct exempt_file *file = &watch->files[i];
		struct state now;
		if (!look(file->path, &now))
			continue;
		bool settled = same(&now, &file->seen);
		file->seen = now;
		if (!settled || same(&now, &file->known))
			continue;
		file->known = now;
		changed = true;
	}
	return changed;
}
