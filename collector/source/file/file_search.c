/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding files in directories: where a known one has gone to, and which were
 * rotated away before they were seen.
 *
 * A listing is not one moment's: a name may be missed while files are renamed.
 * So a file counts as gone only when it was missed several times (by the
 * caller), and a rotated file that is overlooked once is found the next time.
 */
#include "collector/source/file/file_search.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ABSENCES_MAX = 3,        /* a listing may miss a file that is being renamed: only then it counts as gone */
	ABSENCES_UNMOUNTED = 60, /* of one whose directory is missing: a second each, it may be mounted again */
};

/* ---- directories ---- */

/* The names of a directory; a caller's loop over it is a loop over memory. */
struct names {
	char directory[PATH_MAX];
	struct {
		char *name;
		uint64_t inode;
	} * list;
	size_t count;
};

static void names_deinit(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i].name);
	free(names->list);
}

/* The directory that a path lies in, with its slash; "" for the working directory. */
static bool directory_of(const char *path, char directory[PATH_MAX])
{
	size_t length = (size_t)(file_identity_base(path) - path);
	if (length >= PATH_MAX)
		return false;
	memcpy(directory, path, length);
	directory[length] = '\0';
	return true;
}

/* WEIR_END: there is no such directory, and so no name. */
static enum weir_status names_init(struct names *names, const char *path, struct weir_error *error)
{
	*names = (struct names){.list = NULL};
	if (!directory_of(path, names->directory))
		return weir_fail(error, WEIR_IO, "the path is too long: %s", path);
	const char *shown = names->directory[0] != '\0' ? names->directory : ".";
	DIR *directory = opendir(shown);
	if (directory == NULL)
		return weir_fail(error, errno == ENOENT || errno == ENOTDIR ? WEIR_END : WEIR_IO,
		                 "cannot read directory %s: %s", shown, strerror(errno));
	size_t capacity = 0;
	errno = 0;
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
		if (entry->d_type == DT_DIR || entry->d_type == DT_FIFO || entry->d_type == DT_SOCK)
			continue;
		if (names->count == capacity) {
			capacity = capacity != 0 ? 2 * capacity : 64;
			names->list = weir_realloc(names->list, capacity, sizeof *names->list);
		}
		names->list[names->count].name = weir_copy(entry->d_name, strlen(entry->d_name));
		names->list[names->count++].inode = entry->d_ino;
	}
	int failure = errno;
	closedir(directory);
	if (failure == 0)
		return WEIR_OK;
	names_deinit(names);
	return weir_fail(error, WEIR_IO, "cannot read directory %s: %s", shown, strerror(failure));
}

int64_t file_search_directory_age_ms(const char *path)
{
	char directory[PATH_MAX];
	struct stat about;
	if (!directory_of(path, directory) || stat(directory[0] != '\0' ? directory : ".", &about) != 0)
		return -1;
	return weir_wall_ms() - file_identity_modified_ns(&about) / 1000000;
}

/* The path of a name; false where it is too long. */
static bool join(const char *directory, const char *name, char path[PATH_MAX])
{
	int used = snprintf(path, PATH_MAX, "%s%s", directory, name);
	return used >= 0 && used < PATH_MAX;
}

/* ---- where a known file is ---- */

struct search {
	const struct file_shared *shared;
	const char *path; /* the stream's */
	struct source_memory_file *file;
	uint64_t offset;
	bool copies;
	struct file_finding *finding;
	bool unknown; /* something could not be read */
	bool other;   /* its inode has other content */
	struct weir_error *error;
};

/* Whether another known file has this inode: then it is no copy. */
static bool is_another(const struct search *search, const struct file_beginning *beginning)
{
	const struct source_memory *memory = search->shared->memory;
	for (size_t i = 0; i < memory->stream_count; i++)
		for (size_t j = 0; j < memory->streams[i]->file_count; j++) {
			const struct source_memory_file *file = memory->streams[i]->files[j];
			if (file != search->file && file_identity_has_inode(file, &beginning->about) &&
			    fingerprint_begins(&file->fingerprint, &beginning->fingerprint, beginning->head))
				return true;
		}
	return false;
}

/* Tries a path. True: the search is over. */
static bool try_path(struct search *search, const char *path)
{
	struct file_beginning beginning;
	enum file_opening opening = file_identity_open(path, search->shared->settings.follow, &beginning, search->error);
	if (opening != FILE_OPENING_DONE) {
		/* What cannot be opened matters if it may be the file: others may well be out of reach. */
		struct stat about;
		if (opening == FILE_OPENING_FAILED)
			search->unknown =
				search->unknown || stat(path, &about) != 0 || file_identity_has_inode(search->file, &about);
		return false;
	}
	bool own = file_identity_has_inode(search->file, &beginning.about);
	if (own == search->copies ||
	    (search->copies && (search->file->fingerprint.head_bytes == 0 || is_another(search, &beginning)))) {
		input_free(beginning.input);
		return false;
	}
	enum fingerprint_match match =
		fingerprint_check(&search->file->fingerprint, beginning.input, search->offset, search->error);
	bool shorter = match == FINGERPRINT_SHORTER && own;
	search->unknown = search->unknown || match == FINGERPRINT_UNREADABLE;
	search->other = search->other || (own && match == FINGERPRINT_OTHER);
	if (match != FINGERPRINT_SAME && !shorter) {
		input_free(beginning.input);
		return false;
	}
	file_finding_deinit(search->finding);
	search->finding->path = weir_copy(path, strlen(path));
	search->finding->beginning = beginning;
	return !shorter;
}

/* The file itself, by its inode: first where it should be. */
static bool search_own(struct search *search, const struct names *names)
{
	const struct file_listing *listing = &search->shared->listing;
	if (search->file->inode == 0)
		return false;
	if (names == NULL) {
		if ((search->file->where != NULL && try_path(search, search->file->where)) || try_path(search, search->path))
			return true;
		for (size_t i = 0; i < listing->count; i++)
			if (listing->entries[i].inode == search->file->inode &&
			    listing->entries[i].device == search->file->device && try_path(search, listing->entries[i].path))
				return true;
		return false;
	}
	/* Where a directory's inode numbers are not those of its files (overlays), rotated names are tried as well. */
	char path[PATH_MAX];
	for (size_t i = 0; i < names->count; i++)
		if ((names->list[i].inode == search->file->inode ||
		     file_identity_rotated(file_identity_base(search->path), names->list[i].name)) &&
		    join(names->directory, names->list[i].name, path) && try_path(search, path))
			return true;
	return false;
}

static bool search_copies(struct search *search, const struct names *names)
{
	const struct file_listing *listing = &search->shared->listing;
	char path[PATH_MAX];
	search->copies = true;
	for (size_t i = 0; i < names->count; i++)
		if ((strcmp(names->list[i].name, file_identity_base(search->path)) == 0 ||
		     file_identity_rotated(file_identity_base(search->path), names->list[i].name)) &&
		    join(names->directory, names->list[i].name, path) && try_path(search, path))
			return true;
	for (size_t i = 0; i < listing->count; i++)
		if (listing->entries[i].compressed && try_path(search, listing->entries[i].path))
			return true;
	return false;
}

void file_search_find(const struct file_shared *shared, const char *path, struct source_memory_file *file,
                      uint64_t offset, bool copies_only, struct file_finding *finding, struct weir_error *error)
{
	struct search search = {
		.shared = shared, .path = path, .file = file, .offset = offset, .finding = finding, .error = error};
	*finding = (struct file_finding){.found = FOUND_NOWHERE};
	if (!copies_only && search_own(&search, NULL)) {
		finding->found = FOUND;
		return;
	}
	struct names names;
	enum weir_status status = names_init(&names, path, error);
	if (status == WEIR_IO) {
		file_finding_deinit(finding);
		finding->found = FOUND_UNKNOWN;
		return;
	}
	enum file_found found = status == WEIR_END ? FOUND_NO_DIRECTORY : FOUND_NOWHERE;
	if (!copies_only && search_own(&search, &names))
		found = FOUND;
	else if (search_copies(&search, &names))
		found = FOUND_COPY;
	else if (finding->path != NULL)
		found = FOUND_SHORTER;
	else if (search.unknown)
		found = FOUND_UNKNOWN;
	names_deinit(&names);
	if (found == FOUND_NOWHERE && search.other)
		file->device = file->inode = 0; /* what lies there is another file */
	finding->found = found;
}

void file_finding_deinit(struct file_finding *finding)
{
	if (finding->beginning.input != NULL)
		input_free(finding->beginning.input);
	free(finding->path);
	finding->path = NULL;
	finding->beginning = (struct file_beginning){0};
}

bool file_search_is_last(const struct source_memory_file *file, enum file_found found)
{
	return file->absences + 1 >= (found == FOUND_NO_DIRECTORY ? ABSENCES_UNMOUNTED : ABSENCES_MAX);
}

/* ---- files rotated away unseen ---- */

/* "access.log.2" was rotated before "access.log.1": small numbers count places, larger ones are dates. */
static long place_of(const char *base, const char *path)
{
	const char *name = file_identity_base(path);
	size_t length = strlen(base);
	if (strncmp(name, base, length) != 0 || name[length] == '\0')
		return 0;
	char *end;
	long number = strtol(name + length + 1, &end, 10);
	return number < 1000 ? number : -number;
}

static bool is_older(const char *base, const struct file_candidate *a, const struct file_candidate *b)
{
	if (a->modified_ns != b->modified_ns)
		return a->modified_ns < b->modified_ns;
	long place_a = place_of(base, a->path), place_b = place_of(base, b->path);
	return place_a != place_b ? place_a > place_b : strcmp(a->path, b->path) < 0;
}

enum weir_status file_search_missed(const struct file_shared *shared, const char *path,
                                    const struct source_memory_stream *record, struct file_missed *missed,
                                    struct weir_error *error)
{
	struct names names;
	const char *base = file_identity_base(path);
	char beside[PATH_MAX];
	*missed = (struct file_missed){.count = 0};
	enum weir_status status = names_init(&names, path, error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; i < names.count; i++) {
		struct file_judgement judgement;
		struct file_candidate candidate;
		if (!file_identity_rotated(base, names.list[i].name) || !join(names.directory, names.list[i].name, beside))
			continue;
		file_identity_judge(&shared->settings, shared->memory, beside, &judgement, NULL);
		if (judgement.verdict != FILE_NEW || judgement.about.st_size == 0 ||
		    file_identity_modified_ns(&judgement.about) <= record->forgotten_ns)
			continue;
		file_candidate_init(&candidate, beside, &judgement);
		candidate.ready = file_judgement_ready(&judgement, &shared->settings);
		if (missed->count++ == 0 || is_older(base, &candidate, &missed->oldest)) {
			file_candidate_deinit(&missed->oldest);
			missed->oldest = candidate;
		} else {
			file_candidate_deinit(&candidate);
		}
	}
	names_deinit(&names);
	return WEIR_OK;
}

bool file_search_any_left(const char *path)
{
	struct names names;
	bool any = false;
	if (names_init(&names, path, NULL) == WEIR_IO)
		return true;
	for (size_t i = 0; !any && i < names.count; i++)
		any = strcmp(names.list[i].name, file_identity_base(path)) == 0 ||
		      file_identity_rotated(file_identity_base(path), names.list[i].name) != FILE_ROTATED_NOT;
	names_deinit(&names);
	return any;
}

void file_search_remember_rotated(const struct file_shared *shared, const char *path,
                                  struct source_memory_stream *record)
{
	struct names names;
	const char *base = file_identity_base(path);
	char beside[PATH_MAX];
	if (names_init(&names, path, NULL) != WEIR_OK)
		return;
	for (size_t i = 0; i < names.count; i++) {
		struct file_judgement judgement;
		struct file_candidate candidate;
		if (!file_identity_rotated(base, names.list[i].name) || !join(names.directory, names.list[i].name, beside) ||
		    file_settings_pattern(&shared->settings, beside) >= 0)
			continue;
		file_identity_judge(&shared->settings, shared->memory, beside, &judgement, NULL);
		if (judgement.verdict != FILE_NEW)
			continue;
		struct source_memory_file *file = source_memory_file_add(shared->memory, record);
		file_candidate_init(&candidate, beside, &judgement);
		file_candidate_remember(&candidate, file);
		file->state = SOURCE_FILE_SETTLED;
		file->taken = SOURCE_OFFSET_END;
		file_candidate_deinit(&candidate);
	}
	names_deinit(&names);
}
