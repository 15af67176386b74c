/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole-file replacement and the directory lock.
 *
 * The temporary file has a fixed name beside its target: whoever holds the
 * state directory is the only writer, and a crash leaves at most one of them,
 * which the next write uses again.
 */
#include "common/files/durable_file.h"

#include "common/base/alloc.h"
#include "common/files/file_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int weir_write_all(int fd, const void *bytes, size_t length, size_t *written)
{
	const char *at = bytes;
	*written = 0;
	while (*written < length) {
		ssize_t count = write(fd, at + *written, length - *written);
		if (count < 0 && errno == EINTR)
			continue;
		if (count == 0)
			errno = ENOSPC; /* POSIX allows a write of nothing where there is no room */
		if (count <= 0)
			return -1;
		*written += (size_t)count;
	}
	return 0;
}

enum weir_status weir_directory_of(const char *path, char directory[WEIR_PATH_BYTES], struct weir_error *error)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash == NULL || slash == path ? 1 : (size_t)(slash - path);
	if (length >= WEIR_PATH_BYTES)
		return weir_fail(error, WEIR_IO, "the path is too long: %s", path);
	memcpy(directory, slash == NULL ? "." : path, length);
	directory[length] = '\0';
	return WEIR_OK;
}

enum weir_status weir_path_format(char path[WEIR_PATH_BYTES], struct weir_error *error, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int used = vsnprintf(path, WEIR_PATH_BYTES, format, args);
	va_end(args);
	if (used < 0 || used >= WEIR_PATH_BYTES)
		return weir_fail(error, WEIR_IO, "the path is too long: %s", path);
	return WEIR_OK;
}

enum weir_status weir_directory_sync(const char *path, struct weir_error *error)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return weir_fail(error, WEIR_IO, "cannot open directory %s: %s", path, weir_errno_words(errno));
	enum weir_status status = WEIR_OK;
	/* Some file systems have nothing to sync in a directory and say so. */
	if (fsync(fd) != 0 && errno != EINVAL)
		status = weir_fail(error, WEIR_IO, "cannot sync directory %s: %s", path, weir_errno_words(errno));
	close(fd);
	return status;
}

enum weir_status weir_durable_write(const char *path, const void *bytes, size_t length, struct weir_error *error)
{
	char directory[WEIR_PATH_BYTES], temporary[WEIR_PATH_BYTES];
	enum weir_status status = weir_path_format(temporary, error, "%s.new", path);
	if (status == WEIR_OK)
		status = weir_directory_of(path, directory, error);
	if (status != WEIR_OK)
		return status;

	int fd = weir_file_make(temporary, O_WRONLY | O_TRUNC, 0640);
	if (fd < 0)
		return weir_file_refused(error, "cannot create", temporary);
	size_t written;
	if (weir_write_all(fd, bytes, length, &written) != 0)
		status = weir_fail(error, WEIR_IO, "cannot write %s: %s", temporary, weir_errno_words(errno));
	else if (fsync(fd) != 0)
		status = weir_fail(error, WEIR_IO, "cannot sync %s: %s", temporary, weir_errno_words(errno));
	if (close(fd) != 0 && status == WEIR_OK)
		status = weir_fail(error, WEIR_IO, "cannot close %s: %s", temporary, weir_errno_words(errno));
	if (status == WEIR_OK && rename(temporary, path) != 0)
		status = weir_fail(error, WEIR_IO, "cannot rename %s to %s: %s", temporary, path, weir_errno_words(errno));
	if (status != WEIR_OK) {
		unlink(temporary);
		return status;
	}
	return weir_directory_sync(directory, error);
}

static ssize_t read_full(int fd, char *bytes, size_t most)
{
	size_t used = 0;
	while (used < most) {
		ssize_t count = read(fd, bytes + used, most - used);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -1;
		if (count == 0)
			break;
		used += (size_t)count;
	}
	return (ssize_t)used;
}

enum weir_status weir_durable_read(const char *path, size_t most_bytes, char **bytes, size_t *length,
                                   struct weir_error *error)
{
	*bytes = NULL;
	*length = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		if (errno == ENOENT)
			return WEIR_OK;
		return weir_file_refused(error, "cannot open", path);
	}
	enum weir_status status = WEIR_OK;
	char *memory = NULL;
	struct stat about;
	if (fstat(fd, &about) != 0) {
		status = weir_fail(error, WEIR_IO, "cannot stat %s: %s", path, weir_errno_words(errno));
	} else if (!S_ISREG(about.st_mode)) {
		status = weir_fail(error, WEIR_INVALID, "%s is not a regular file", path);
	} else if ((uint64_t)about.st_size > most_bytes) {
		status = weir_fail(error, WEIR_INVALID, "%s has %lld bytes; the limit is %zu", path, (long long)about.st_size,
		                   most_bytes);
	} else {
		memory = weir_alloc((size_t)about.st_size + 1, 1);
		ssize_t used = read_full(fd, memory, (size_t)about.st_size);
		if (used < 0)
			status = weir_fail(error, WEIR_IO, "cannot read %s: %s", path, weir_errno_words(errno));
		else
			*length = (size_t)used;
	}
	close(fd);
	if (status != WEIR_OK) {
		free(memory);
		return status;
	}
	memory[*length] = '\0';
	*bytes = memory;
	return WEIR_OK;
}

/* One level; *made says whether it is new. */
static enum weir_status make_one(const char *path, bool *made, struct weir_error *error)
{
	*made = weir_directory_make_one(path, 0750) == 0;
	if (*made)
		return WEIR_OK;
	int reason = errno;
	struct stat about;
	if (stat(path, &about) == 0) {
		if (S_ISDIR(about.st_mode))
			return WEIR_OK;
		return weir_fail(error, WEIR_IO, "%s exists and is not a directory", path);
	}
	return weir_fail(error, WEIR_IO, "cannot create directory %s: %s", path, weir_errno_words(reason));
}

enum weir_status weir_directory_make(const char *path, struct weir_error *error)
{
	char part[WEIR_PATH_BYTES], above[WEIR_PATH_BYTES];
	size_t length = strlen(path);
	if (length == 0 || length >= sizeof part)
		return weir_fail(error, WEIR_IO, "not a directory path: '%s'", path);
	for (size_t i = 1; i <= length; i++) {
		if (i < length && path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		bool made;
		enum weir_status status = make_one(part, &made, error);
		if (status == WEIR_OK && made)
			status = weir_directory_of(part, above, error);
		if (status == WEIR_OK && made)
			status = weir_directory_sync(above, error);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

enum { LOCK_TRIES = 10, LOCK_NAP_NS = 10 * 1000 * 1000 };

enum weir_status weir_directory_lock(const char *directory, struct weir_directory_lock *lock, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	lock->fd = -1;
	enum weir_status status = weir_path_format(path, error, "%s/lock", directory);
	if (status != WEIR_OK)
		return status;
	int fd = weir_file_make(path, O_RDWR, 0640);
	if (fd < 0)
		return weir_file_refused(error, "cannot open", path);

	char text[32];
	int taken = flock(fd, LOCK_EX | LOCK_NB);
	for (int tries = 0; taken != 0 && errno == EWOULDBLOCK && tries < LOCK_TRIES; tries++) {
		nanosleep(&(struct timespec){.tv_nsec = LOCK_NAP_NS}, NULL); /* it may be somebody who looks (see below) */
		taken = flock(fd, LOCK_EX | LOCK_NB);
	}
	if (taken != 0) {
		ssize_t count = errno == EWOULDBLOCK ? pread(fd, text, sizeof text - 1, 0) : -1;
		text[count > 0 ? count : 0] = '\0';
		text[strspn(text, "0123456789")] = '\0';
		if (errno != EWOULDBLOCK)
			status = weir_fail(error, WEIR_IO, "cannot lock %s: %s", path, weir_errno_words(errno));
		else
			status = weir_fail(error, WEIR_LOCKED, "%s is in use by process %s", directory,
			                   text[0] != '\0' ? text : "unknown");
		goto cleanup;
	}
	/* The id is for people's eyes alone; where it cannot be written, the lock holds all the same. */
	int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)length, 0) == length)
		text[0] = '\0';
	lock->fd = fd;
	return WEIR_OK;

cleanup:
	close(fd);
	return status;
}

bool weir_directory_stands(const char *directory, const struct weir_directory_lock *lock)
{
	char path[WEIR_PATH_BYTES];
	struct stat own, there;
	struct weir_error ignored;
	return lock->fd < 0 || weir_path_format(path, &ignored, "%s/lock", directory) != WEIR_OK ||
	       fstat(lock->fd, &own) != 0 ||
	       (stat(path, &there) != 0 ? errno != ENOENT && errno != ENOTDIR
	                                : own.st_ino == there.st_ino && own.st_dev == there.st_dev);
}

enum weir_directory_use weir_directory_look(const char *directory)
{
	char path[WEIR_PATH_BYTES];
	struct weir_error ignored;
	if (weir_path_format(path, &ignored, "%s/lock", directory) != WEIR_OK)
		return WEIR_DIRECTORY_UNKNOWN;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return WEIR_DIRECTORY_UNKNOWN;
	/* Shared, and given back at once: others that look are not in the way. */
	bool free = flock(fd, LOCK_SH | LOCK_NB) == 0;
	bool held = !free && errno == EWOULDBLOCK;
	close(fd);
	return free ? WEIR_DIRECTORY_FREE : held ? WEIR_DIRECTORY_HELD : WEIR_DIRECTORY_UNKNOWN;
}

void weir_directory_unlock(struct weir_directory_lock *lock)
{
	if (lock->fd >= 0)
		close(lock->fd);
	lock->fd = -1;
}
