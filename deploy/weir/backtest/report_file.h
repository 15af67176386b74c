/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a report goes. A file is replaced once the whole report is there, and until then stays as it was; what is no file
 * (a pipe, a device) is written to. It is opened before anything is judged: what cannot be written is said at once.
 */
#ifndef DEPLOY_WEIR_BACKTEST_REPORT_FILE_H
#define DEPLOY_WEIR_BACKTEST_REPORT_FILE_H

#include "common/base/text.h"
#include "common/files/durable_file.h"
#include "deploy/weir/run/run_check.h"

#include <stdbool.h>

/* Zero-initialised. */
struct report_file {
	const char *path; /* borrowed; NULL: not asked for; "-": standard output */
	int fd;
	bool open, replaces;
	char resolved[WEIR_PATH_BYTES], unfinished[WEIR_PATH_BYTES]; /* of one that is replaced; links are followed */
};

WEIR_MUST_USE enum weir_status report_file_open(struct report_file *file, const char *path, struct weir_error *error);
/** Writes all of it. @return WEIR_OK: it has its name; WEIR_IO: the file of before is as it was */
WEIR_MUST_USE enum weir_status report_file_write(struct report_file *file, struct weir_span text,
                                                 struct weir_error *error);
/** What was not written is removed. */
void report_file_close(struct report_file *file);

/* All that a program writes: a list for run_check_outputs(). Zero-initialised. */
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
