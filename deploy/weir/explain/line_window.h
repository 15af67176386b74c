/* SPDX-License-Identifier: Apache-2.0 */
/* A file's bytes before rising offsets, whatever it is packed in: it is read once, from its beginning on. */
#ifndef DEPLOY_WEIR_EXPLAIN_LINE_WINDOW_H
#define DEPLOY_WEIR_EXPLAIN_LINE_WINDOW_H

#include "collector/input/input.h"
#include "common/base/span.h"
#include "deploy/weir/explain/patience.h"

#include <sys/stat.h>

struct line_window {
	struct input *input;
	struct stat about;
	char *bytes;
	size_t length, reach;            /* how many bytes before an offset are kept */
	uint64_t start;                  /* offset of bytes[0] */
	bool ended;                      /* the file has no more */
	const struct patience *patience; /* set by whoever opened it; borrowed */
};

/** @param reach  the longest line @return WEIR_OK; WEIR_IO: it cannot be opened, or is no file */
WEIR_MUST_USE enum weir_status line_window_open(struct line_window *window, const char *path, size_t reach,
                                                struct weir_error *error);
void line_window_close(struct line_window *window);

/**
 * Finds the line that ends at an offset.
 *
 * @param end    after its newline; not below that of the call before
 * @param line   without its newline; borrowed until the next call
 * @param begin  its offset in the file
 * @return false: no line ends there
 */
bool line_window_line(struct line_window *window, uint64_t end, struct weir_span *line, uint64_t *begin);

/** What stands before the line that was found last, in whole lines: at most so many bytes. */
struct weir_span line_window_before(const struct line_window *window, uint64_t begin);

#endif
