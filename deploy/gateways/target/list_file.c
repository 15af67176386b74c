/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list is streamed to a temporary file and hashed on the way. If it equals the
 * existing file, it is discarded, so that a server is not reloaded for nothing.
 */
#include "deploy/gateways/target/list_file.h"

#include "common/bytes/hash.h"
#include "common/files/file_place.h"
#include "deploy/gateways/target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FLOW_BYTES = 256 * 1024, MODE = 0644, WRITES = 022 };

static enum weir_status temporary_path(const struct list_file *file, char path[WEIR_PATH_BYTES],
                                       struct weir_error *error)
{
	return weir_path_format(path, error, "%s" TARGET_LIST_FILE_NEW, file->place);
}

enum weir_status list_file_begin(struct list_file *file, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	enum weir_status status = weir_file_replaced(file->path, file->place, error);
	if (status == WEIR_OK)
		status = temporary_path(file, path, error);
	if (status != WEIR_OK)
		return WEIR_IO; /* somebody may put a file there */
	struct stat about;
	mode_t mode = stat(file->place, &about) == 0 ? about.st_mode & 0777 & ~(mode_t)WRITES : MODE;
	/* A link or a file of another owner that was left there is not written through. */
	unlink(path);
	file->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file->fd < 0)
		return weir_fail(error, WEIR_IO, "cannot create %s: %s", path, weir_errno_words(errno));
	file->new_hash = file->new_length = 0;
	/* As the list is that it replaces, and for all to read: a service's umask is for its state. */
	file->failed = fchmod(file->fd, mode) == 0 ? 0 : errno;
	weir_text_clear(&file->buffer);
	return WEIR_OK;
}

static void write_buffer(struct list_file *file)
{
	size_t written;
	if (file->buffer.length == 0)
		return;
	/* A hash over the hashes of its pieces, which begin where the list alone says. */
	uint64_t pair[2] = {file->new_hash, weir_hash64(file->buffer.at, file->buffer.length)};
	file->new_hash = weir_hash64(pair, sizeof pair);
	file->new_length += file->buffer.length;
	if (file->failed == 0 && weir_write_all(file->fd, file->buffer.at, file->buffer.length, &written) != 0)
		file->failed = errno;
	weir_text_clear(&file->buffer);
}

void list_file_flow(struct list_file *file)
{
	if (file->buffer.length >= FLOW_BYTES)
		write_buffer(file);
}

static enum weir_status replace(struct list_file *file, const char *temporary, struct weir_error *error)
{
	char directory[WEIR_PATH_BYTES];
	enum weir_status status = weir_directory_of(file->place, directory, error);
	struct stat about;
	if (status == WEIR_OK && fsync(file->fd) != 0)
		status = weir_fail(error, WEIR_IO, "cannot sync %s: %s", temporary, weir_errno_words(errno));
	if (status == WEIR_OK && fstat(file->fd, &about) != 0)
		status = weir_fail(error, WEIR_IO, "cannot stat %s: %s", temporary, weir_errno_words(errno));
	if (status == WEIR_OK && rename(temporary, file->place) != 0)
		status =
			weir_fail(error, WEIR_IO, "cannot rename %s to %s: %s", temporary, file->place, weir_errno_words(errno));
	if (status == WEIR_OK)
		status = weir_directory_sync(directory, error);
	if (status != WEIR_OK)
		return status;
	file->hash = file->new_hash;
	file->length = file->new_length;
	file->device = about.st_dev;
	file->inode = about.st_ino;
	return WEIR_OK;
}

enum weir_status list_file_end(struct list_file *file, bool *changed, struct weir_error *error)
{
	char temporary[WEIR_PATH_BYTES];
	enum weir_status status = temporary_path(file, temporary, error);
	write_buffer(file);
	*changed = file->inode == 0 || file->hash != file->new_hash || file->length != file->new_length ||
	           !list_file_is_in_place(file);
	if (status == WEIR_OK && file->failed != 0)
		status = weir_fail(error, WEIR_IO, "cannot write %s: %s", temporary, weir_errno_words(file->failed));
	if (status == WEIR_OK && *changed)
		status = replace(file, temporary, error);
	close(file->fd);
	if (status != WEIR_OK || !*changed)
		unlink(temporary);
	return status;
}

bool list_file_is_in_place(const struct list_file *file)
{
	struct stat about;
	return file->inode == 0 || (stat(file->path, &about) == 0 && about.st_dev == file->device &&
	                            about.st_ino == file->inode && (uint64_t)about.st_size == file->length);
}

void list_file_deinit(struct list_file *file)
{
	weir_text_deinit(&file->buffer);
}
