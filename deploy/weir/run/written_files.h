/* SPDX-License-Identifier: Apache-2.0 */
/* All that a program writes, so that it refuses what would replace what it reads, or another of its outputs. */
#ifndef DEPLOY_WEIR_RUN_WRITTEN_FILES_H
#define DEPLOY_WEIR_RUN_WRITTEN_FILES_H

#include "deploy/weir/run/run_check.h"

#include <stddef.h>

/* A list for run_check_outputs(). Zero-initialised. */
struct written_files {
	struct run_output *list; /* ended by one without an option; NULL: it is empty */
	size_t count;
};

/** @param option  borrowed @param path  copied; NULL: nothing is added */
void written_files_add(struct written_files *files, const char *option, const char *path);
/** Refuses two outputs that would be one file, of which the later would replace the other. */
WEIR_MUST_USE enum weir_status written_files_check(const struct written_files *files, struct weir_error *error);
void written_files_deinit(struct written_files *files);

#endif
