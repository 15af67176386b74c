/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a file is that weir makes: what root makes in a directory of another user belongs to that user, so that a service
 * opens tomorrow what a command of the administrator made today.
 */
#ifndef WEIR_COMMON_FILE_OWNER_H
#define WEIR_COMMON_FILE_OWNER_H

#include "common/base/status.h"

#include <sys/types.h>

/**
 * As open() with O_CREAT and O_CLOEXEC; a new file is handed to the owner and the group of its directory where this is
 * root. One that is there, or that a link leads to, keeps its own.
 *
 * @return a descriptor; -1 with errno
 */
int weir_file_make(const char *path, int flags, mode_t mode);

/** As mkdir(), and handed on likewise. @return 0; -1 with errno */
int weir_directory_make_one(const char *path, mode_t mode);

enum { WEIR_USER_NAME_BYTES = 64 };

/** A user's name, or the number of one that has none. */
void weir_user_name(uid_t user, char name[WEIR_USER_NAME_BYTES]);

/**
 * Fails for a file that could not be opened or made, errno as it was left. Where that is not allowed the words say whose
 * the file is, who this is, and the command that mends it.
 *
 * @param what  as "cannot open"
 */
enum weir_status weir_file_refused(struct weir_error *error, const char *what, const char *path);

/**
 * Fails for a file of others that could not be opened to be read, errno as it was left. Where that is not allowed the words
 * say whose it is, or the directory that keeps it closed, its group and mode, who this is, and what lets it be read.
 */
enum weir_status weir_file_unreadable(struct weir_error *error, const char *path);

#endif
