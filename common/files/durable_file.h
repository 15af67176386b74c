/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that must be whole after a crash, and the lock on a state directory.
 *
 * A durable file is replaced, never changed: temporary file beside it, fsync,
 * rename, fsync of the directory. So a reader finds the old bytes or the new.
 */
#ifndef WEIR_COMMON_DURABLE_FILE_H
#define WEIR_COMMON_DURABLE_FILE_H

#include "common/base/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { WEIR_PATH_BYTES = PATH_MAX };

/**
 * Replaces a file's bytes; they are on disk when it returns.
 *
 * @return WEIR_OK; WEIR_IO: the file holds what it held before
 */
WEIR_MUST_USE enum weir_status weir_durable_write(const char *path, const void *bytes, size_t length,
                                                  struct weir_error *error);

/**
 * Reads a whole file of at most most_bytes.
 *
 * @param bytes  returned with a terminating 0 behind its length; NULL where there is no such file
 * @return WEIR_OK, also without a file; WEIR_INVALID: larger, or not a regular file; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_durable_read(const char *path, size_t most_bytes, char **bytes, size_t *length,
                                                 struct weir_error *error);

/** Makes a directory and those above it (0750, the umask applied); fine where it is there. */
WEIR_MUST_USE enum weir_status weir_directory_make(const char *path, struct weir_error *error);

/** Puts on disk what was made, renamed or removed in a directory. */
WEIR_MUST_USE enum weir_status weir_directory_sync(const char *path, struct weir_error *error);

/** The directory that a path's last name is in; "." where it has no slash. */
WEIR_MUST_USE enum weir_status weir_directory_of(const char *path, char directory[WEIR_PATH_BYTES],
                                                 struct weir_error *error);

/** A path by printf. @return WEIR_IO: it is too long */
WEIR_MUST_USE enum weir_status weir_path_format(char path[WEIR_PATH_BYTES], struct weir_error *error,
                                                const char *format, ...) WEIR_PRINTF(3, 4);

/* A directory held by this process alone, for as long as it lives. */
struct weir_directory_lock {
	int fd;
};

/**
 * Takes DIRECTORY/lock by flock and writes this process's id there.
 *
 * @return WEIR_OK; WEIR_LOCKED: the words name the process that holds it; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_directory_lock(const char *directory, struct weir_directory_lock *lock,
                                                   struct weir_error *error);
void weir_directory_unlock(struct weir_directory_lock *lock);

/** Whether the directory at this path is still the one that was taken: it was neither removed nor replaced. */
bool weir_directory_stands(const char *directory, const struct weir_directory_lock *lock);

/* Who has a directory, as far as its lock says. */
enum weir_directory_use {
	WEIR_DIRECTORY_UNKNOWN, /* there is no lock, or it cannot be read */
	WEIR_DIRECTORY_FREE,    /* whoever had it is gone */
	WEIR_DIRECTORY_HELD,
};

/** Looks at DIRECTORY/lock, which is left as it is. */
enum weir_directory_use weir_directory_look(const char *directory);

/** Writes all bytes to a descriptor, through interruptions. @return 0, or -1 with errno and *written short. */
int weir_write_all(int fd, const void *bytes, size_t length, size_t *written);

#endif
