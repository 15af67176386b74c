/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that the paths name.
 *
 * A glob is followed folder by folder; what lies in one is asked for in pages, and is not kept. Between two whole
 * listings only the folders' own times are looked at, of those that changed lately: a folder changes when a file is
 * made in it, renamed or deleted. That one is written to shows in its bytes (webhdfs_read.c).
 */
#include "collector/source/remote/webhdfs/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FRESH_MS = 2 * 3600 * 1000, /* a folder that has not changed for so long is looked at in whole listings alone */
	FRESH_LEAST = 16,
};

struct listing {
	struct webhdfs *kind;
	struct remote_round *round;
	bool whole;
	bool skipped;        /* something, as it has not changed */
	const char *pattern; /* of the path that is followed */
	size_t number, depth;
	const char *folder;       /* that is listed */
	struct weir_text folders; /* names of those found in it, each terminated */
	struct weir_error *error; /* the first */
	enum weir_status status;
};

static void fail(struct listing *listing, enum weir_status status, const struct weir_error *error)
{
	if (listing->status != WEIR_OK)
		return;
	listing->status = status == WEIR_END || status == WEIR_INVALID ? WEIR_IO : status;
	*listing->error = *error;
}

/* ---- names ---- */

/* Whether a name is that of a file that is not yet whole, by the habits of those who write to HDFS. */
static bool is_unfinished(const char *name)
{
	static const char *const ends[] = {".tmp", "._COPYING_", ".inprogress"};
	size_t length = strlen(name);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (length >= strlen(ends[i]) && strcmp(name + length - strlen(ends[i]), ends[i]) == 0)
			return true;
	return name[0] == '.' || name[0] == '_' || strstr(name, ".inprogress.") != NULL;
}

static bool is_glob(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (strchr("*?[\\", text[i]) != NULL)
			return true;
	return false;
}

/* The pattern's part at that depth. @return its length; 0: there is none */
static size_t part_of(const char *pattern, size_t depth, const char **part)
{
	const char *at = pattern;
	for (size_t i = 0;; i++) {
		at += strspn(at, "/");
		size_t length = strcspn(at, "/");
		if (i == depth || length == 0) {
			*part = at;
			return length;
		}
		at += length;
	}
}

static bool is_last_part(const char *pattern, size_t depth)
{
	const char *part;
	return part_of(pattern, depth + 1, &part) == 0;
}

static bool fits(const struct listing *listing, const char *name)
{
	const char *part;
	char glob[WEBHDFS_NAME_MOST];
	size_t length = part_of(listing->pattern, listing->depth, &part);
	if (length >= sizeof glob)
		return false;
	memcpy(glob, part, length);
	glob[length] = '\0';
	return strcmp(glob, name) == 0 ||
	       fnmatch(glob, name, listing->kind->unfinished == WEBHDFS_SKIP ? FNM_PERIOD : 0) == 0;
}

/* ---- files ---- */

/* Where it cannot be asked whether somebody writes to a file, one that changed lately may be written to. */
static bool is_fresh(int64_t modified_ms)
{
	return weir_wall_ms() - modified_ms < FRESH_MS;
}

/*
 * Whether somebody writes to a file.
 *
 * @return false: not known just now
 */
static bool ask_open(struct listing *listing, const struct webhdfs_status *status, bool *open)
{
	struct webhdfs *kind = listing->kind;
	struct webhdfs_answer answer = {0};
	struct weir_error error;
	char path[64];
	webhdfs_inode_path(status->id, path);
	enum weir_status asked = WEIR_INVALID;
	if (!kind->no_blocks)
		asked = webhdfs_ask(kind, path, "op=GET_BLOCK_LOCATIONS&offset=0&length=1", 0, 0, &answer, &error);
	if (asked == WEIR_OK)
		asked = webhdfs_json_open(weir_text_span(&answer.http.body), open, &error);
	else if (asked == WEIR_INVALID)
		kind->no_blocks = true;
	if (asked == WEIR_IO) /* it is asked again when all is listed next */
		fail(listing, asked, &error);
	webhdfs_answer_deinit(&answer);
	if (asked == WEIR_INVALID)
		*open = is_fresh(status->modified_ms);
	return asked == WEIR_OK || asked == WEIR_INVALID;
}

static void take_file(struct listing *listing, const char *path, const struct webhdfs_status *status)
{
	struct remote_object object = {
		.name = path, .id = status->id, .size = status->length, .modified_ms = status->modified_ms};
	bool wants = remote_wants_open(listing->round, &object);
	if (wants && !ask_open(listing, status, &object.open))
		return;
	if (!wants && object.open && listing->kind->no_blocks) /* it shows no change where it is closed */
		object.open = is_fresh(object.modified_ms);
	remote_found(listing->round, &object);
}

/* A webhdfs_take, of a folder's entries. */
static void take_entry(void *context, const struct webhdfs_status *status)
{
	struct listing *listing = context;
	bool last = is_last_part(listing->pattern, listing->depth);
	if (status->name[0] == '\0' || status->folder == last || !fits(listing, status->name))
		return;
	if (listing->kind->unfinished == WEBHDFS_SKIP && is_unfinished(status->name))
		return;
	if (status->folder) {
		weir_text_append(&listing->folders, status->name, strlen(status->name) + 1);
		return;
	}
	struct weir_text path = {0};
	weir_text_printf(&path, "%s/%s", strcmp(listing->folder, "/") == 0 ? "" : listing->folder, status->name);
	weir_text_append(&path, "", 1);
	take_file(listing, path.at, status);
	weir_text_deinit(&path);
}

/* ---- folders ---- */

/* One page, or all where there are no pages. */
static enum weir_status list_page(struct listing *listing, const char *after, uint64_t *remaining, char *last,
                                  struct weir_error *error)
{
	struct webhdfs *kind = listing->kind;
	struct webhdfs_answer answer = {0};
	struct weir_text query = {0};
	weir_text_puts(&query, kind->no_pages ? "op=LISTSTATUS" : "op=LISTSTATUS_BATCH&startafter=");
	if (!kind->no_pages)
		(void)webhdfs_escape(kind, &query, weir_span_of(after));
	weir_text_append(&query, "", 1);
	enum weir_status status = webhdfs_ask(kind, listing->folder, query.at, 0, 0, &answer, error);
	if (status == WEIR_OK)
		status = webhdfs_json_listing(weir_text_span(&answer.http.body), take_entry, listing, remaining, last, error);
	webhdfs_answer_deinit(&answer);
	weir_text_deinit(&query);
	return status;
}

static enum weir_status list_entries(struct listing *listing, struct weir_error *error)
{
	char last[WEBHDFS_NAME_MOST] = "", after[WEBHDFS_NAME_MOST];
	uint64_t remaining = 0;
	do {
		memcpy(after, last, sizeof after);
		enum weir_status status = list_page(listing, after, &remaining, last, error);
		if (status == WEIR_INVALID && !listing->kind->no_pages) {
			listing->kind->no_pages = true;
			status = list_page(listing, after, &remaining, last, error);
		}
		if (status != WEIR_OK)
			return status;
		if (remaining > 0 && (last[0] == '\0' || strcmp(last, after) == 0)) /* it would never end */
			return weir_fail(error, WEIR_IO, "%s: the listing does not go on behind \"%.100s\"", listing->folder,
			                 after);
	} while (remaining > 0 && !atomic_load(&listing->kind->stop));
	return WEIR_OK;
}

struct stat_taken {
	struct webhdfs_status status;
	bool taken;
};

static void take_status(void *context, const struct webhdfs_status *status)
{
	struct stat_taken *taken = context;
	*taken = (struct stat_taken){.status = *status, .taken = true};
	taken->status.name = "";
}

static enum weir_status stat_path(struct webhdfs *kind, const char *path, struct webhdfs_status *status,
                                  struct weir_error *error)
{
	struct webhdfs_answer answer = {0};
	struct stat_taken taken = {0};
	enum weir_status asked = webhdfs_ask(kind, path, "op=GETFILESTATUS", 0, 0, &answer, error);
	if (asked == WEIR_OK)
		asked = webhdfs_json_status(weir_text_span(&answer.http.body), take_status, &taken, error);
	webhdfs_answer_deinit(&answer);
	*status = taken.status;
	return asked;
}

/* Keeps a folder, to look whether it changes. @return its index; WEBHDFS_FOLDERS_MOST: there are too many */
static size_t keep_folder(struct listing *listing, int64_t modified_ms)
{
	struct webhdfs *kind = listing->kind;
	for (size_t i = 0; i < kind->folder_count; i++)
		if (kind->folders[i].pattern == listing->number && strcmp(kind->folders[i].path, listing->folder) == 0) {
			kind->folders[i].modified_ms = modified_ms;
			return i;
		}
	if (kind->folder_count == WEBHDFS_FOLDERS_MOST)
		return WEBHDFS_FOLDERS_MOST;
	if ((kind->folder_count & (kind->folder_count - 1)) == 0)
		kind->folders =
			weir_realloc(kind->folders, kind->folder_count == 0 ? 1 : 2 * kind->folder_count, sizeof *kind->folders);
	kind->folders[kind->folder_count] =
		(struct webhdfs_folder){.path = weir_copy(listing->folder, strlen(listing->folder)),
	                            .pattern = listing->number,
	                            .depth = listing->depth,
	                            .modified_ms = modified_ms};
	return kind->folder_count++;
}

static void follow(struct listing *listing, const char *folder, size_t depth);

static void list_folder(struct listing *listing, const char *folder, size_t depth)
{
	struct weir_error error;
	struct webhdfs_status status;
	struct weir_text outer = listing->folders;
	listing->folder = folder;
	listing->depth = depth;
	listing->folders = (struct weir_text){0};
	/* The time before the entries: what changes between them shows as a change. */
	enum weir_status listed = stat_path(listing->kind, folder, &status, &error);
	if (listed == WEIR_OK && keep_folder(listing, status.modified_ms) == WEBHDFS_FOLDERS_MOST)
		remote_remark(listing->round, "more than %d folders match: the rest is not read", WEBHDFS_FOLDERS_MOST);
	else if (listed == WEIR_OK)
		listed = list_entries(listing, &error);
	if (listed != WEIR_OK && !(listed == WEIR_END && depth > 0)) { /* a folder found by a glob may be gone by now */
		weir_error_prefix(&error, "%.100s", folder);
		fail(listing, listed, &error);
	}
	struct weir_text found = listing->folders;
	for (size_t at = 0; at < found.length; at += strlen(found.at + at) + 1) {
		struct weir_text path = {0};
		weir_text_printf(&path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, found.at + at);
		weir_text_append(&path, "", 1);
		follow(listing, path.at, depth + 1);
		weir_text_deinit(&path);
	}
	weir_text_deinit(&found);
	listing->folders = outer;
}

/* A file that a path names without a wildcard. */
static void look_at_file(struct listing *listing, const char *path)
{
	struct weir_error error;
	struct webhdfs_status status;
	enum weir_status asked = stat_path(listing->kind, path, &status, &error);
	if (asked == WEIR_OK && !status.folder)
		take_file(listing, path, &status);
	else if (asked == WEIR_OK)
		fail(listing, weir_fail(&error, WEIR_IO, "%s is a folder: add /* to its path", path), &error);
	else
		fail(listing, asked, &error);
}

/* Goes on with the pattern's part at `depth`, in a folder. Parts without a wildcard need no listing. */
static void follow(struct listing *listing, const char *folder, size_t depth)
{
	const char *part;
	size_t length = part_of(listing->pattern, depth, &part);
	if (length == 0 || atomic_load(&listing->kind->stop))
		return;
	if (is_glob(part, length)) {
		list_folder(listing, folder, depth);
		return;
	}
	struct weir_text path = {0};
	weir_text_printf(&path, "%s/%.*s", strcmp(folder, "/") == 0 ? "" : folder, (int)length, part);
	weir_text_append(&path, "", 1);
	if (is_last_part(listing->pattern, depth))
		look_at_file(listing, path.at);
	else
		follow(listing, path.at, depth + 1);
	weir_text_deinit(&path);
}

static void free_folders(struct webhdfs *kind)
{
	for (size_t i = 0; i < kind->folder_count; i++)
		free(kind->folders[i].path);
	kind->folder_count = 0;
}

static enum weir_status list_whole(struct listing *listing)
{
	free_folders(listing->kind);
	for (size_t i = 0; i < listing->kind->path_count; i++) {
		listing->number = i;
		listing->pattern = listing->kind->paths[i];
		follow(listing, "/", 0);
	}
	return listing->status;
}

/* Lists the folders again that have changed. */
static enum weir_status list_changed(struct listing *listing)
{
	struct webhdfs *kind = listing->kind;
	size_t count = kind->folder_count;
	for (size_t i = 0; i < count && !atomic_load(&kind->stop); i++) {
		struct webhdfs_folder folder = kind->folders[i];
		struct webhdfs_status status;
		struct weir_error error;
		if (count > FRESH_LEAST && weir_wall_ms() - folder.modified_ms > FRESH_MS)
			continue;
		enum weir_status asked = stat_path(kind, folder.path, &status, &error);
		if (asked != WEIR_OK) {
			if (asked != WEIR_END)
				fail(listing, asked, &error);
			continue;
		}
		if (status.modified_ms == folder.modified_ms)
			continue;
		listing->number = folder.pattern;
		listing->pattern = kind->paths[folder.pattern];
		char *path = weir_copy(folder.path, strlen(folder.path)); /* the list may move */
		list_folder(listing, path, folder.depth);
		free(path);
	}
	for (size_t i = 0; i < kind->path_count; i++)
		if (!is_glob(kind->paths[i], strlen(kind->paths[i])))
			look_at_file(listing, kind->paths[i]);
	return listing->status == WEIR_OK ? WEIR_AGAIN : listing->status;
}

enum weir_status webhdfs_list(void *context, bool whole, struct remote_round *round, struct weir_error *error)
{
	struct listing listing = {.kind = context, .round = round, .whole = whole, .error = error};
	return whole ? list_whole(&listing) : list_changed(&listing);
}
