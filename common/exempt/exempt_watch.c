/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the file system by name: lists are replaced by rename as often as they are written in place. */
#include "common/exempt/exempt_watch.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum {
	LOOK_PERIOD_MS = 1000,
	AGAIN_MS = 30000,
	EMPTY_MS =
		10000, /* how long a file is empty before it is taken for that: whoever writes it anew empties it first */
};

struct watched_file {
	char *path, *file;                   /* owned: of the list, and what it is read from */
	struct weir_exempt_file_state known; /* as it was read, or reported */
	struct weir_exempt_file_state seen;  /* at the last look */
	int64_t empty_ms;                    /* since when it is seen empty; 0: it is not */
	bool settled;                        /* it was the same at the look before */
};

void weir_exempt_watch_deinit(struct weir_exempt_watch *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		free(watch->files[i].path), free(watch->files[i].file);
	free(watch->files);
	*watch = (struct weir_exempt_watch){0};
}

static struct watched_file *find(const struct weir_exempt_watch *watch, const char *path)
{
	for (size_t i = 0; i < watch->count; i++)
		if (strcmp(watch->files[i].path, path) == 0)
			return &watch->files[i];
	return NULL;
}

static void add(struct weir_exempt_watch *watch, const char *path, const char *file,
                const struct weir_exempt_file_state *known)
{
	if (find(watch, path) != NULL)
		return;
	watch->files = weir_realloc(watch->files, watch->count + 1, sizeof *watch->files);
	watch->files[watch->count++] = (struct watched_file){
		.path = weir_copy(path, strlen(path)), .file = weir_copy(file, strlen(file)), .known = *known, .seen = *known};
}

/* A list that was reported and has still not the state that was reported could not be read. */
static void add_list(struct weir_exempt_watch *watch, const struct weir_exempt_watch *before, const char *path,
                     struct weir_exempt_lists *lists, int64_t now_ms)
{
	char copy[WEIR_PATH_BYTES];
	const char *file = weir_exempt_lists_file(lists, path, copy);
	if (file == NULL)
		return;
	struct weir_exempt_file_state read = weir_exempt_lists_state(lists, path);
	const struct watched_file *reported = find(before, path);
	bool failed = reported != NULL && !weir_exempt_file_same(&reported->known, &read) &&
	              weir_exempt_file_same(&reported->known, &reported->seen);
	add(watch, path, file, failed ? &reported->known : &read);
	if (failed)
		watch->again_ms = now_ms + AGAIN_MS;
}

void weir_exempt_watch_set(struct weir_exempt_watch *watch, const struct weir_policy *policy,
                           struct weir_exempt_lists *lists, int64_t now_ms)
{
	struct weir_exempt_watch before = *watch;
	*watch = (struct weir_exempt_watch){.looked_ms = before.looked_ms};
	for (uint32_t z = 0; z < policy->zone_count; z++) {
		const struct weir_zone *zone = &policy->zones[z];
		for (uint32_t i = 0; i < zone->exempt_file_count; i++)
			add(watch, zone->exempt_files[i].path, zone->exempt_files[i].path, &zone->exempt_files[i].state);
		for (uint32_t i = 0; i < zone->exempt_list_count; i++)
			add_list(watch, &before, zone->exempt_lists[i], lists, now_ms);
	}
	for (size_t i = 0; i < watch->count; i++) {
		const struct watched_file *file = find(&before, watch->files[i].path);
		watch->files[i].empty_ms = file != NULL ? file->empty_ms : 0;
	}
	weir_exempt_watch_deinit(&before);
}

/* Whether it was emptied so lately that its lines may still be written. */
static bool may_be_written(struct watched_file *file, bool empty, int64_t now_ms)
{
	if (!empty)
		file->empty_ms = 0;
	else if (file->empty_ms == 0)
		file->empty_ms = now_ms;
	return empty && file->known.bytes > 0 && now_ms - file->empty_ms < EMPTY_MS;
}

bool weir_exempt_watch_changed(struct weir_exempt_watch *watch, int64_t now_ms)
{
	if (watch->count == 0 || now_ms - watch->looked_ms < LOOK_PERIOD_MS)
		return false;
	bool changed = watch->again_ms != 0 && now_ms >= watch->again_ms, waits = false;
	watch->looked_ms = now_ms;
	for (size_t i = 0; i < watch->count; i++) {
		struct watched_file *file = &watch->files[i];
		struct weir_exempt_file_state now = {0}; /* of a file that is gone */
		bool empty = weir_exempt_file_look(file->file, &now) && now.bytes == 0;
		waits |= may_be_written(file, empty, now_ms);
		file->settled = weir_exempt_file_same(&now, &file->seen);
		file->seen = now;
	}
	if (waits) /* whoever is told reads all of them */
		return false;
	for (size_t i = 0; i < watch->count; i++) {
		struct watched_file *file = &watch->files[i];
		if (!file->settled || weir_exempt_file_same(&file->seen, &file->known))
			continue;
		file->known = file->seen;
		changed = true;
	}
	if (changed)
		watch->again_ms = 0;
	return changed;
}

void weir_exempt_watch_again(struct weir_exempt_watch *watch, int64_t now_ms)
{
	watch->again_ms = now_ms + AGAIN_MS;
}
