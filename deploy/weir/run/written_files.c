/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is not there yet is known by its directory and its name. */
#include "deploy/weir/run/written_files.h"

#include "common/base/alloc.h"
#include "common/files/durable_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void written_files_add(struct written_files *files, const char *option, const char *path)
{
	if (path == NULL)
		return;
	files->list = weir_realloc(files->list, files->count + 2, sizeof *files->list);
	files->list[files->count++] = (struct run_output){.option = option, .path = weir_copy(path, strlen(path))};
	files->list[files->count] = (struct run_output){NULL, NULL};
}

/* The path by which a file is known, whether it is there already or not; false: it is no file, and takes any number. */
static bool resolve(const char *path, char resolved[WEIR_PATH_BYTES])
{
	struct stat about;
	struct weir_error ignored; /* what is too long is told by who opens it */
	char directory[WEIR_PATH_BYTES], real[WEIR_PATH_BYTES];
	const char *slash = strrchr(path, '/');
	if (strcmp(path, "-") == 0 || (stat(path, &about) == 0 && !S_ISREG(about.st_mode)))
		return false;
	if (realpath(path, resolved) != NULL)
		return true;
	if (weir_directory_of(path, directory, &ignored) != WEIR_OK)
		return false;
	return weir_path_format(resolved, &ignored, "%s/%s", realpath(directory, real) != NULL ? real : directory,
	                        slash != NULL ? slash + 1 : path) == WEIR_OK;
}

enum weir_status written_files_check(const struct written_files *files, struct weir_error *error)
{
	char **resolved = weir_alloc(files->count, sizeof *resolved), path[WEIR_PATH_BYTES];
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < files->count; i++) {
		resolved[i] = resolve(files->list[i].path, path) ? weir_copy(path, strlen(path)) : NULL;
		for (size_t k = 0; status == WEIR_OK && resolved[i] != NULL && k < i; k++)
			if (resolved[k] != NULL && strcmp(resolved[i], resolved[k]) == 0)
				status = weir_fail(error, WEIR_INVALID, "%s and %s would both write %s: choose another path for one",
				                   files->list[k].option, files->list[i].option, resolved[i]);
	}
	for (size_t i = 0; i < files->count; i++)
		free(resolved[i]);
	free(resolved);
	return status;
}

void written_files_deinit(struct written_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free((char *)files->list[i].path);
	free(files->list);
}
