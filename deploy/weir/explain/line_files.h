/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which files a stream's lines may be: its own path, and whatever it was rotated or compressed to beside it. Which of
 * them it is shows when a line of it is read; here they are in the order in which that is likely.
 */
#ifndef DEPLOY_WEIR_EXPLAIN_LINE_FILES_H
#define DEPLOY_WEIR_EXPLAIN_LINE_FILES_H

#include "collector/source/source_memory.h"
#include "common/config/config.h"

enum { LINE_FILES_MAX = 256 };

struct line_files {
	char *paths[LINE_FILES_MAX]; /* owned */
	size_t count;
	bool own;  /* the first one is known to be the incarnation's file */
	bool more; /* there are others, which are not looked at */
};

/**
 * @param memory       what the collector remembers; NULL: nothing is known
 * @param stream       the stream's path; NULL: unknown, all that the sources name counts
 * @param incarnation  of the lines
 */
void line_files_find(struct line_files *files, const struct weir_config *config, const struct source_memory *memory,
                     const char *stream, uint32_t incarnation);
void line_files_deinit(struct line_files *files);

/** Whether two paths are of one file, plain and compressed: then they have the same line at the same offset. */
bool line_files_are_one(const char *path, const char *other);

/** Whether an element of "sources" reads files, and its path or pattern names this one. @param path  NULL: any */
bool line_files_source_names(const struct weir_config *config, size_t place, const char *path);

#endif
