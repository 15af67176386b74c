/* SPDX-License-Identifier: Apache-2.0 */
/* The next lines of a stream, part by part. */
#ifndef COLLECTOR_SOURCE_FILE_READING_H
#define COLLECTOR_SOURCE_FILE_READING_H

#include "collector/source/file/file_stream.h"

enum file_reading {
	FILE_READING_LINES,  /* the chunk has lines */
	FILE_READING_AGAIN,  /* without a line yet: another part, or the file is to be found again */
	FILE_READING_BUSY,   /* much was read of one line, and its end has not come: others first */
	FILE_READING_LATER,  /* not just now: the stream's retry_ms says when */
	FILE_READING_FAILED, /* stated as the stream's problem; only where nothing is followed */
	/* What follows is not for reading to say. */
	FILE_READING_ALL,       /* all parts are read */
	FILE_READING_NO_LINE,   /* the file of the part without an end is open, and has no more lines */
	FILE_READING_TRUNCATED, /* that file is open, and no longer holds what was read of it */
	FILE_READING_GONE,      /* that file is not found, however often it was looked for */
};

enum file_reading file_reading_next(struct file_stream *stream, int64_t now_ms, struct source_chunk *chunk);

#endif
