/* SPDX-License-Identifier: Apache-2.0 */
/* A file has a name of its own until it is whole, beside the one that it replaces: so neither is ever half there. */
#include "deploy/weir/backtest/report_file.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_standard(const char *path)
{
	return strcmp(path, "-") == 0;
}

static enum weir_status cannot_write(const char *path, struct weir_error *error)
{
	return weir_fail(error, WEIR_IO, "cannot write %s: %s", path, strerror(errno));
}

/* ---- a report ---- */

/* Begins a file beside the one that it will replace, with that one's rights. */
static enum weir_status begin(struct report_file *file, const struct stat *before, struct weir_error *error)
{
	enum weir_status status = weir_path_format(file->unfinished, error, "%s.unfinished", file->resolved);
	if (status != WEIR_OK)
		return status;
	if (unlink(file->unfinished) != 0 && errno != ENOENT)
		return cannot_write(file->unfinished, error);
	file->fd = open(file->unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	file->open = file->fd >= 0;
	if (!file->open || (before != NULL && fchmod(file->fd, before->st_mode & 0777) != 0))
		return cannot_write(file->unfinished, error);
	return WEIR_OK;
}

enum weir_status report_file_open(struct report_file *file, const char *path, struct weir_error *error)
{
	struct stat about, link;
	file->path = path;
	if (path == NULL || is_standard(path))
		return WEIR_OK;
	if (*path == '\0')
		return weir_fail(error, WEIR_INVALID, "the path of an output is empty");
	bool there = stat(path, &about) == 0;
	file->replaces = there ? S_ISREG(about.st_mode) : lstat(path, &link) != 0;
	if (!file->replaces) { /* a link to nothing, too: the file is made where it leads to */
		file->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
		file->open = file->fd >= 0;
		return file->open ? WEIR_OK : cannot_write(path, error);
	}
	if (there && realpath(path, file->resolved) == NULL)
		return cannot_write(path, error);
	enum weir_status status = there ? WEIR_OK : weir_path_format(file->resolved, error, "%s", path);
	return status == WEIR_OK ? begin(file, there ? &about : NULL, error) : status;
}

static enum weir_status put_in_place(struct report_file *file, struct weir_error *error)
{
	char directory[WEIR_PATH_BYTES];
	if (rename(file->unfinished, file->resolved) != 0)
		return cannot_write(file->resolved, error);
	file->replaces = false;
	enum weir_status status = weir_directory_of(file->resolved, directory, error);
	return status == WEIR_OK ? weir_directory_sync(directory, error) : status;
}

enum weir_status report_file_write(struct report_file *file, struct weir_span text, struct weir_error *error)
{
	size_t written;
	if (is_standard(file->path))
		return weir_write_all(STDOUT_FILENO, text.at, text.length, &written) == 0
		           ? WEIR_OK
		           : weir_fail(error, WEIR_IO, "cannot write to standard output: %s", strerror(errno));
	if (weir_write_all(file->fd, text.at, text.length, &written) != 0 || (file->replaces && fsync(file->fd) != 0))
		return cannot_write(file->path, error);
	file->open = false;
	enum weir_status status = close(file->fd) == 0 ? WEIR_OK : cannot_write(file->path, error);
	return status == WEIR_OK && file->replaces ? put_in_place(file, error) : status;
}

void report_file_close(struct report_file *file)
{
	if (file->open)
		close(file->fd);
	if (file->replaces && file->unfinished[0] != '\0')
		unlink(file->unfinished);
	file->open = file->replaces = false;
}

/* ---- all that is written ---- */

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
	if (is_standard(path) || (stat(path, &about) == 0 && !S_ISREG(about.st_mode)))
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
