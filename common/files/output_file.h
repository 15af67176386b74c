/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command writes where its user says. A file is replaced once all of it is there, behind links, and until then stays
 * as it was; what is no file (a pipe, a device) or is open already (/dev/stdout) is written to as it stands. It is opened
 * before the work: what cannot be written is said at once.
 */
#ifndef WEIR_COMMON_OUTPUT_FILE_H
#define WEIR_COMMON_OUTPUT_FILE_H

#include "common/base/text.h"
#include "common/files/durable_file.h"

#include <stdbool.h>
#include <sys/types.h>

/* Zero-initialised; of one thread. */
struct weir_output_file {
	const char *path; /* borrowed; NULL: not asked for; "-": standard output */
	int fd;
	bool open, replaces;
	char resolved[WEIR_PATH_BYTES], unfinished[WEIR_PATH_BYTES]; /* of one that is replaced; links are followed */
};

/** @param mode  of a new file, less the umask; one that is replaced keeps its own @return WEIR_INVALID: no path; WEIR_IO */
WEIR_MUST_USE enum weir_status weir_output_file_open(struct weir_output_file *file, const char *path, mode_t mode,
                                                     struct weir_error *error);
/**
 * Writes all of a text, and frees that.
 *
 * @param text  taken, on failure too
 * @return WEIR_OK: it has its name; WEIR_IO: the file of before is as it was
 */
WEIR_MUST_USE enum weir_status weir_output_file_write(struct weir_output_file *file, struct weir_text *text,
                                                      struct weir_error *error);
/** What was not written is removed. */
void weir_output_file_close(struct weir_output_file *file);

#endif
