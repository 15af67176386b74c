/* SPDX-License-Identifier: Apache-2.0 */
/* Where synthetic lines go: whole lines in large writes, to standard output or
 * a file that may be rotated away. */
#ifndef DEPLOY_WEIR_GENERATE_OUTPUT_H
#define DEPLOY_WEIR_GENERATE_OUTPUT_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GENERATE_OUTPUT_BUFFER_BYTES = 256 * 1024 };

struct generate_output {
	int fd;
	const char *path;   /* borrowed; NULL: standard output */
	const char *header; /* borrowed: what a new file begins with */
	bool append;
	bool reader_gone; /* a flush failed because the pipe has no reader: no error
                       of ours */
	char *buffer;     /* what is not yet written */
	size_t length;
	uint64_t bytes; /* written and buffered, headers too */
};

/**
 * @param append  continues at the end of what is there (O_APPEND), as services
 * write their logs; else the file is emptied
 */
WEIR_MUST_USE enum weir_status generate_output_open(struct generate_output *output, const char *path,
                                                    const char *header, bool append, struct weir_error *error);

/** Where the next line goes: room for most_bytes, which is below half of the
 * buffer. NULL: a flush failed. */
char *generate_output_room(struct generate_output *output, size_t most_bytes, struct weir_error *error);

/** Takes what was written there, up to its end. */
static inline void generate_output_take(struct generate_output *output, const char *end)
{
	size_t length = (size_t)(end - output->buffer);
	output->bytes += length - output->length;
	output->length = length;
}

WEIR_MUST_USE enum weir_status generate_output_flush(struct generate_output *output, struct weir_error *error);

/** Flushes, closes the file and opens its path again: after a rotation. Of no
 * effect on standard output. */
WEIR_MUST_USE enum weir_status generate_output_reopen(struct generate_output *output, struct weir_error *error);

/** Flushes, unless a flush failed before, and frees. */
WEIR_MUST_USE enum weir_status generate_output_close(struct generate_output *output, struct weir_error *error);

#endif
