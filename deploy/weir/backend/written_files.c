/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names are not enough: a link, or standard output, may lead to the same file. So files that are there are compared by
 * what they are, and a file that is not there yet is known by its directory and its name.
 */
#include "deploy/weir/backend/written_files.h"

#include "common/base/alloc.h"
#include "common/files/file_place.h"
#include "deploy/gateways/target/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add(struct written_files *files, const char *option, const char *path, size_t length, uint32_t keep)
{
	files->list = weir_realloc(files->list, files->count + 1, sizeof *files->list);
	files->list[files->count++] = (struct written_file){
		.option = weir_copy(option, strlen(option)), .path = weir_copy(path, length), .keep = keep};
}

void written_files_add(struct written_files *files, const char *option, const char *path)
{
	if (path != NULL)
		add(files, option, path, strlen(path), 0);
}

void written_files_add_rotated(struct written_files *files, const char *option, const char *path, int64_t rotate_bytes,
                               int64_t keep)
{
	if (path != NULL)
		add(files, option, path, strlen(path), rotate_bytes <= 0 ? 0 : keep > 0 ? (uint32_t)keep : 1);
}

void written_files_add_lists(struct written_files *files, const char *option, const struct weir_text *lists)
{
	static const char file[] = TARGET_LIST_FILE, new[] = TARGET_LIST_FILE_NEW;
	const char *end = lists->at + lists->length;
	struct weir_text path = {0};
	for (const char *at = lists->at, *next; at < end; at = next + 1) {
		next = memchr(at, '\n', (size_t)(end - at));
		if (strncmp(at, file, sizeof file - 1) != 0)
			continue;
		weir_text_clear(&path);
		weir_text_append(&path, at + sizeof file - 1, (size_t)(next - at) - (sizeof file - 1));
		add(files, option, path.at, path.length, 0);
		weir_text_puts(&path, new);
		add(files, option, path.at, path.length, 0);
	}
	weir_text_deinit(&path);
}

/* What a path leads to. */
struct place {
	bool there, regular;
	struct stat about;
	char *name; /* owned: without links; of a descriptor NULL */
};

static struct place place_of(const char *path, int standard)
{
	struct place place = {0};
	struct weir_text name = {0};
	bool is_standard = strcmp(path, "-") == 0;
	place.there = (is_standard ? fstat(standard, &place.about) : stat(path, &place.about)) == 0;
	place.regular = place.there && S_ISREG(place.about.st_mode);
	if (is_standard)
		return place;
	weir_file_place_put(&name, path);
	weir_text_append(&name, "", 1);
	place.name = name.at;
	return place;
}

/* Whether two paths are one file: what is there and is no file takes any number of writers. */
static bool is_same(const struct place *a, const struct place *b)
{
	if (a->there && b->there)
		return a->regular && b->regular && a->about.st_dev == b->about.st_dev && a->about.st_ino == b->about.st_ino;
	return !a->there && !b->there && a->name != NULL && b->name != NULL && strcmp(a->name, b->name) == 0;
}

/* Whether a name is one that another file is put away under. */
static bool is_rotation(const struct place *of, uint32_t keep, const struct place *other)
{
	size_t length = keep > 0 && of->name != NULL ? strlen(of->name) : 0;
	if (length == 0 || other->name == NULL || strncmp(other->name, of->name, length) != 0 || other->name[length] != '.')
		return false;
	const char *number = other->name + length + 1;
	return number[0] >= '1' && number[0] <= '9' && strspn(number, "0123456789") == strlen(number) &&
	       strtoul(number, NULL, 10) <= keep;
}

enum weir_status written_files_check(const struct written_files *files, struct weir_error *error)
{
	struct place *places = weir_alloc(files->count + 1, sizeof *places);
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < files->count; i++) {
		places[i] = place_of(files->list[i].path, STDOUT_FILENO);
		for (size_t k = 0; status == WEIR_OK && k < i; k++) {
			const struct written_file *one = &files->list[k], *other = &files->list[i];
			if (strcmp(one->path, "-") == 0 && strcmp(other->path, "-") == 0)
				continue; /* one descriptor, written to in turn */
			if (is_same(&places[k], &places[i]) || is_rotation(&places[k], one->keep, &places[i]) ||
			    is_rotation(&places[i], other->keep, &places[k]))
				status =
					weir_fail(error, WEIR_INVALID, "%s and %s would both write %s: choose another path for one",
				              one->option, other->option, places[i].name != NULL ? places[i].name : places[k].name);
		}
	}
	for (size_t i = 0; i < files->count; i++)
		free(places[i].name);
	free(places);
	return status;
}

enum weir_status written_files_check_read(const struct written_files *files, const char *source,
                                          struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (source == NULL)
		return WEIR_OK;
	struct place read = place_of(source, STDIN_FILENO);
	for (size_t i = 0; read.regular && status == WEIR_OK && i < files->count; i++) {
		struct place written = place_of(files->list[i].path, STDOUT_FILENO);
		if (is_same(&read, &written))
			status = weir_fail(
				error, WEIR_INVALID, "%s %s would write into %s, which is also read: choose another file",
				files->list[i].option, files->list[i].path, strcmp(source, "-") == 0 ? "standard input" : source);
		free(written.name);
	}
	free(read.name);
	return status;
}

void written_files_deinit(struct written_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		free(files->list[i].option);
		free(files->list[i].path);
	}
	free(files->list);
	*files = (struct written_files){0};
}
