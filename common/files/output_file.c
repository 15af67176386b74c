/* SPDX-License-Identifier: Apache-2.0 */
/* A file has a name of its own until it is whole, beside the one that it replaces: so neither is ever half there. */
#include "common/files/output_file.h"

#include "common/files/file_owner.h"
#include "common/files/file_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
	return weir_fail(error, WEIR_IO, "cannot write %s: %s", path, weir_errno_words(errno));
}

/* Not everybody may give a file away, and not every file system lets root: what its group cannot keep, no other group gets. */
static bool keep_rights(int fd, const struct stat *before)
{
	mode_t mode = before->st_mode & 0777;
	if (fchown(fd, before->st_uid, before->st_gid) != 0 && fchown(fd, (uid_t)-1, before->st_gid) != 0)
		mode &= ~(mode_t)S_IRWXG;
	return fchmod(fd, mode) == 0;
}

/* Begins a file beside the one that it will replace, with that one's owner, group and rights. */
static enum weir_status begin(struct weir_output_file *file, const struct stat *before, mode_t mode,
                              struct weir_error *error)
{
	enum weir_status status = weir_path_format(file->unfinished, error, "%s.unfinished", file->resolved);
	if (status != WEIR_OK)
		return status;
	if (unlink(file->unfinished) != 0 && errno != ENOENT)
		return cannot_write(file->unfinished, error);
	file->fd = weir_file_make(file->unfinished, O_WRONLY | O_EXCL, mode);
	file->open = file->fd >= 0;
	if (!file->open || (before != NULL && !keep_rights(file->fd, before)))
		return cannot_write(file->unfinished, error);
	return WEIR_OK;
}

enum weir_status weir_output_file_open(struct weir_output_file *file, const char *path, mode_t mode,
                                       struct weir_error *error)
{
	struct stat about;
	file->path = path;
	if (path == NULL || is_standard(path))
		return WEIR_OK;
	if (*path == '\0')
		return weir_fail(error, WEIR_INVALID, "the path of an output is empty");
	enum weir_status status = weir_file_replaced(path, file->resolved, error);
	file->replaces = status == WEIR_OK;
	if (status == WEIR_INVALID) {
		file->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC, mode);
		file->open = file->fd >= 0;
		return file->open ? WEIR_OK : cannot_write(path, error);
	}
	return status == WEIR_OK ? begin(file, stat(path, &about) == 0 ? &about : NULL, mode, error) : status;
}

static enum weir_status put_in_place(struct weir_output_file *file, struct weir_error *error)
{
	char directory[WEIR_PATH_BYTES];
	if (rename(file->unfinished, file->resolved) != 0)
		return cannot_write(file->resolved, error);
	file->replaces = false;
	enum weir_status status = weir_directory_of(file->resolved, directory, error);
	return status == WEIR_OK ? weir_directory_sync(directory, error) : status;
}

static enum weir_status write_span(struct weir_output_file *file, struct weir_span text, struct weir_error *error)
{
	size_t written;
	if (is_standard(file->path))
		return weir_write_all(STDOUT_FILENO, text.at, text.length, &written) == 0
		           ? WEIR_OK
		           : weir_fail(error, WEIR_IO, "cannot write to standard output: %s", weir_errno_words(errno));
	if (weir_write_all(file->fd, text.at, text.length, &written) != 0 || (file->replaces && fsync(file->fd) != 0))
		return cannot_write(file->path, error);
	file->open = false;
	enum weir_status status = close(file->fd) == 0 ? WEIR_OK : cannot_write(file->path, error);
	return status == WEIR_OK && file->replaces ? put_in_place(file, error) : status;
}

enum weir_status weir_output_file_write(struct weir_output_file *file, struct weir_text *text, struct weir_error *error)
{
	enum weir_status status = write_span(file, weir_text_span(text), error);
	weir_text_deinit(text);
	return status;
}

void weir_output_file_close(struct weir_output_file *file)
{
	if (file->open)
		close(file->fd);
	if (file->replaces && file->unfinished[0] != '\0')
		unlink(file->unfinished);
	file->open = file->replaces = false;
}
