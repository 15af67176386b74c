/* SPDX-License-Identifier: Apache-2.0 */
/* The names of directories, kept while the directories do not change: many streams ask for the same ones. */
#ifndef COLLECTOR_SOURCE_FILE_NAMES_H
#define COLLECTOR_SOURCE_FILE_NAMES_H

#include "common/base/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_name {
	char *name;
	uint64_t inode;
	bool folder;
};

struct file_names {
	char directory[PATH_MAX]; /* with its slash; "" is the working directory */
	struct file_name *list;   /* by name; what can be no log is left out */
	size_t count;
	/* what the directory was when it was read */
	uint64_t device, inode;
	int64_t modified_ns, read_ns;
	uint64_t used; /* which call asked for it last */
};

enum { FILE_NAMES_KEPT = 8 };

/* Zero-initialised: nothing was read yet. */
struct file_names_cache {
	struct file_names *kept[FILE_NAMES_KEPT];
	uint64_t calls;
};

/**
 * The names of a directory.
 *
 * @param directory  with its slash, or ""
 * @param names      borrowed until the next call
 * @return WEIR_OK; WEIR_END: there is no such directory; WEIR_IO: it cannot be read
 */
WEIR_MUST_USE enum weir_status file_names_read(struct file_names_cache *cache, const char *directory,
                                               const struct file_names **names, struct weir_error *error);
void file_names_deinit(struct file_names_cache *cache);

/** The first name that is not before a prefix. */
size_t file_names_from(const struct file_names *names, const char *prefix, size_t length);

#endif
