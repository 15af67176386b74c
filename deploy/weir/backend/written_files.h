/* SPDX-License-Identifier: Apache-2.0 */
/* All that a program writes, so that it refuses what would replace what it reads, or another of its outputs. */
#ifndef DEPLOY_WEIR_BACKEND_WRITTEN_FILES_H
#define DEPLOY_WEIR_BACKEND_WRITTEN_FILES_H

#include "collector/source/source.h"
#include "common/base/text.h"
#include "common/config/config.h"

#include <stddef.h>

/* One of them. */
struct written_file {
	char *option;  /* how it was asked for: "--decisions", "deadletter.path" */
	char *path;    /* "-": standard output */
	uint32_t keep; /* it is rotated to PATH.1 … PATH.<keep>; 0: it is not */
};

/* Zero-initialised. */
struct written_files {
	struct written_file *list;
	size_t count;
};

/** @param option  copied, as path @param path  NULL: nothing is added */
void written_files_add(struct written_files *files, const char *option, const char *path);
/** The same of a file that is rotated. @param rotate_bytes  0: it is not */
void written_files_add_rotated(struct written_files *files, const char *option, const char *path, int64_t rotate_bytes,
                               int64_t keep);
/** Adds the files among a target's lists (target.h), and those that are written before they replace them. */
void written_files_add_lists(struct written_files *files, const char *option, const struct weir_text *lists);

/** Refuses two outputs that would be one file, by whatever name, of which one would lose what the other writes. */
WEIR_MUST_USE enum weir_status written_files_check(const struct written_files *files, struct weir_error *error);
/**
 * Refuses an output that is the configuration itself, or a file that it names anywhere but as an output.
 *
 * @param path  of the configuration; NULL: it has none
 */
WEIR_MUST_USE enum weir_status written_files_check_config(const struct written_files *files,
                                                          const struct weir_config *config, const char *path,
                                                          struct weir_error *error);
/** Refuses an output that is a file of a state directory's own (state_directory.h). @param state  NULL: there is none */
WEIR_MUST_USE enum weir_status written_files_check_state(const struct written_files *files, const char *state,
                                                         struct weir_error *error);
/** Refuses an output that is this file. @param source  "-": standard input; NULL is fine */
WEIR_MUST_USE enum weir_status written_files_check_read(const struct written_files *files, const char *source,
                                                        struct weir_error *error);
/** Refuses an output that a source would read once it is there. @param name  of the source, for errors */
WEIR_MUST_USE enum weir_status written_files_check_source(const struct written_files *files,
                                                          const struct source *source, const char *name,
                                                          struct weir_error *error);
void written_files_deinit(struct written_files *files);

#endif
