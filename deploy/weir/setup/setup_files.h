/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are to be changed together: read, shown as a difference, replaced one by one with a backup of each, and
 * put back as they were when what reads them refuses.
 *
 * @thread one owner
 */
#ifndef DEPLOY_WEIR_SETUP_SETUP_FILES_H
#define DEPLOY_WEIR_SETUP_SETUP_FILES_H

#include "common/base/text.h"
#include "common/files/durable_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum { SETUP_FILES_MAX = 1024, SETUP_FILE_MOST_BYTES = 16 << 20 };

struct setup_file {
	char path[WEIR_PATH_BYTES];
	char *before; /* owned, terminated; NULL: there is no such file */
	size_t before_length;
	struct weir_text after; /* what is to stand there */
	bool gone;              /* it is to be removed; of one that is not there: it stays so, as at first */
	bool written;
	mode_t mode;
	uid_t owner;
	gid_t group;
};

/* Zero-initialised is empty. */
struct setup_files {
	struct setup_file *at[SETUP_FILES_MAX]; /* owned */
	size_t count;
};

void setup_files_deinit(struct setup_files *files);

/**
 * A file, as what it leads to where it is a link; `after` is at first what stands there. The same one for the same path.
 *
 * @param file  borrowed from `files`
 * @return WEIR_OK, also without such a file; WEIR_INVALID: too large, too many; WEIR_IO
 */
WEIR_MUST_USE enum weir_status setup_files_read(struct setup_files *files, const char *path, struct setup_file **file,
                                                struct weir_error *error);

/** Whether its first line is that of these lines: setup made it, where it is there at all. */
bool setup_file_is_own(const struct setup_file *file, const char *lines);

/**
 * A file that is setup's alone, as it is to be, or gone. One with another first line is somebody else's: it stays.
 *
 * @param own  returned: false: it stays
 * @return as setup_files_read(); WEIR_INVALID also: it is to be made where somebody else's is
 */
WEIR_MUST_USE enum weir_status setup_files_own(struct setup_files *files, const char *path, const char *lines,
                                               bool gone, bool *own, struct weir_error *error);

bool setup_file_changes(const struct setup_file *file);
bool setup_files_change(const struct setup_files *files);

/** Puts text at a place of what is to stand there. */
void setup_file_insert(struct setup_file *file, size_t at, const char *text);
void setup_file_set(struct setup_file *file, const char *text);
/**
 * Takes out what setup_file_insert() put there, with the line break before it: every line that ends with this text and is
 * no comment, or the part of every line up to its end where it begins with this text.
 */
enum setup_mark { SETUP_LINE_ENDS, SETUP_LINE_BEGINS };
void setup_file_strip(struct setup_file *file, enum setup_mark place, const char *mark);

/** Prints what changes, as diff -u does. */
void setup_files_show(const struct setup_files *files, FILE *out);

/**
 * Writes what changes. A copy of what stood there is in the directory `backup` first.
 *
 * @return WEIR_OK; else setup_files_undo() is to be called
 */
WEIR_MUST_USE enum weir_status setup_files_write(struct setup_files *files, const char *backup,
                                                 struct weir_error *error);
/** Makes the folders of a path that are not there, each with the owner of the one above it. @return WEIR_OK; WEIR_IO */
WEIR_MUST_USE enum weir_status setup_files_make_folders(const char *path, struct weir_error *error);
/** Puts back what was written. @return WEIR_OK; WEIR_IO: the words name the first that could not be */
WEIR_MUST_USE enum weir_status setup_files_undo(struct setup_files *files, struct weir_error *error);

#endif
