/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names are not enough: a link, or standard output, may lead to the same file. So files that are there are compared by
 * what they are, and a file that is not there yet is known by its directory and its name.
 */
#include "deploy/weir/backend/written_files.h"

#include "common/base/alloc.h"
#include "common/exempt/exempt_list.h"
#include "common/files/durable_file.h"
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
	const char *end = lists->length > 0 ? lists->at + lists->length : NULL;
	struct weir_text path = {0};
	for (const char *at = lists->at, *next; end != NULL && at < end; at = next + 1) {
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
	int descriptor = strcmp(path, "-") == 0 ? standard : weir_file_descriptor_of(path);
	place.there = (descriptor >= 0 ? fstat(descriptor, &place.about) : stat(path, &place.about)) == 0;
	place.regular = place.there && S_ISREG(place.about.st_mode);
	if (descriptor >= 0)
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
		if (status == WEIR_OK && places[i].there && S_ISDIR(places[i].about.st_mode))
			status = weir_fail(error, WEIR_INVALID, "%s %s is a directory: name a file in it", files->list[i].option,
			                   files->list[i].path);
		if (status == WEIR_OK && places[i].there && S_ISSOCK(places[i].about.st_mode))
			status = weir_fail(error, WEIR_INVALID, "%s %s is a socket: name a file, or a pipe", files->list[i].option,
			                   files->list[i].path);
		for (size_t k = 0; status == WEIR_OK && k < i; k++) {
			const struct written_file *one = &files->list[k], *other = &files->list[i];
			if (weir_file_descriptor_of(one->path) >= 0 && weir_file_descriptor_of(other->path) >= 0)
				continue; /* open already, and written to in turn */
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

/* ---- the configuration ---- */

struct walk {
	const struct written_files *files;
	enum weir_status status;
	struct weir_error *error;
};

/* Whether a member's text is the name of a file, with a path in it or without. */
static bool names_file(const char *member)
{
	static const char *const names[] = {"file", "certificate", "key", "ca", "client_ca", "path", "list"};
	for (size_t i = 0; member != NULL && i < sizeof names / sizeof *names; i++)
		if (strcmp(member, names[i]) == 0)
			return true;
	return false;
}

/* Another text names a file where it has a path in it, as it is or behind a kind ("file:/x"). Most are of something else. */
static void check_text(struct walk *walk, const char *member, const char *text)
{
	const char *colon = strchr(text, ':');
	if (strchr(text, '/') == NULL && !names_file(member))
		return;
	walk->status = written_files_check_read(walk->files, text, walk->error);
	if (walk->status == WEIR_OK && colon != NULL && colon[1] == '/')
		walk->status = written_files_check_read(walk->files, colon + 1, walk->error);
}

/* Depth is bounded by the parser of the document. */
static void check_value(struct walk *walk, const char *member_name, json_t *value) // NOLINT(misc-no-recursion)
{
	const char *name;
	json_t *member;
	size_t place;
	if (walk->status != WEIR_OK)
		return;
	if (json_is_string(value))
		check_text(walk, member_name, json_string_value(value));
	json_array_foreach(value, place, member) check_value(walk, member_name, member);
	json_object_foreach(value, name, member) check_value(walk, name, member);
}

enum weir_status written_files_check_config(const struct written_files *files, const struct weir_config *config,
                                            const char *path, struct weir_error *error)
{
	static const char *const outputs[] = {"decisions", "deadletter", "gateways"};
	struct walk walk = {.files = files, .error = error};
	const char *name;
	json_t *section;
	walk.status = written_files_check_read(files, path, error);
	json_object_foreach(weir_json_root(config->document).value, name, section)
	{
		bool written = false;
		for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
			written |= strcmp(name, outputs[i]) == 0;
		if (!written)
			check_value(&walk, name, section);
	}
	return walk.status;
}

/* ---- the state ---- */

/* Its own names: whole, or how they begin. */
static const struct {
	const char *name;
	bool begins;
} state_names[] = {
	{"lock", false},    {"log", false},    {WEIR_EXEMPT_LISTS_FOLDER, false},
	{"control", false}, {"weir.db", true}, {"sources.json", true},
	{"spool-", true},   {"swap-", true},
};

static bool is_state_name(const char *name)
{
	size_t length = strcspn(name, "/");
	for (size_t i = 0; i < sizeof state_names / sizeof *state_names; i++) {
		size_t own = strlen(state_names[i].name);
		if (strncmp(name, state_names[i].name, own) == 0 && (state_names[i].begins || length == own))
			return true;
	}
	return false;
}

/* By whatever other name it goes. */
static enum weir_status check_state_files(const struct written_files *files, const char *state,
                                          struct weir_error *error)
{
	static const char *const kept[] = {"weir.db", "sources.json", "lock"};
	char path[WEIR_PATH_BYTES];
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; status == WEIR_OK && i < sizeof kept / sizeof *kept; i++)
		if (weir_path_format(path, NULL, "%s/%s", state, kept[i]) == WEIR_OK)
			status = written_files_check_read(files, path, error);
	return status;
}

enum weir_status written_files_check_state(const struct written_files *files, const char *state,
                                           struct weir_error *error)
{
	if (state == NULL)
		return WEIR_OK;
	struct weir_text directory = {0};
	weir_file_place_put(&directory, state);
	size_t length = directory.length;
	enum weir_status status = check_state_files(files, state, error);
	for (size_t i = 0; status == WEIR_OK && i < files->count; i++) {
		struct place written = place_of(files->list[i].path, STDOUT_FILENO);
		if (written.name != NULL && strncmp(written.name, directory.at, length) == 0 && written.name[length] == '/' &&
		    is_state_name(written.name + length + 1))
			status = weir_fail(error, WEIR_INVALID,
			                   "%s %s would write over what weir keeps in the state directory %s: choose another file",
			                   files->list[i].option, files->list[i].path, state);
		free(written.name);
	}
	weir_text_deinit(&directory);
	return status;
}

enum weir_status written_files_check_source(const struct written_files *files, const struct source *source,
                                            const char *name, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; source->ops->would_read != NULL && status == WEIR_OK && i < files->count; i++) {
		const struct written_file *file = &files->list[i];
		struct place place = place_of(file->path, STDOUT_FILENO);
		if (place.name != NULL && (place.regular || !place.there)) {
			struct weir_text rotated = {0};
			weir_text_printf(&rotated, "%s.1", place.name);
			if (source->ops->would_read(source, place.name) ||
			    (file->keep > 0 && source->ops->would_read(source, rotated.at)))
				status = weir_fail(error, WEIR_INVALID,
				                   "%s %s would be read by %s: choose another path, or name it in \"exclude\" there",
				                   file->option, file->path, name);
			weir_text_deinit(&rotated);
		}
		free(place.name);
	}
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
