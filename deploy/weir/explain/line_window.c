/* SPDX-License-Identifier: Apache-2.0 */
/* Going back in a compressed file would decompress it again; so the bytes that may be asked for again are kept. */
#include "deploy/weir/explain/line_window.h"

#include "collector/input/lines.h"
#include "common/base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 256 * 1024 };

enum weir_status line_window_open(struct line_window *window, const char *path, size_t reach, struct weir_error *error)
{
	*window = (struct line_window){.reach = reach};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return weir_fail(error, WEIR_IO, "cannot open %s: %s", path, weir_errno_words(errno));
	if (fstat(fd, &window->about) != 0 || !S_ISREG(window->about.st_mode)) {
		close(fd);
		return weir_fail(error, WEIR_IO, "%s is no file", path);
	}
	window->input = input_new(fd, true);
	window->bytes = weir_alloc(reach + READ_BYTES, 1);
	return WEIR_OK;
}

void line_window_close(struct line_window *window)
{
	input_free(window->input);
	free(window->bytes);
	*window = (struct line_window){0};
}

/* Drops what is more than `reach` before an offset. */
static void drop_before(struct line_window *window, uint64_t end)
{
	uint64_t from = end > window->reach ? end - window->reach : 0;
	size_t gone = from > window->start ? (size_t)(from - window->start) : 0;
	gone = gone < window->length ? gone : window->length;
	memmove(window->bytes, window->bytes + gone, window->length - gone);
	window->length -= gone;
	window->start += gone;
}

/* Goes straight to where the offset's line can begin, where nothing is compressed. */
static bool jump(struct line_window *window, uint64_t end)
{
	struct weir_error error;
	uint64_t from = end > window->reach ? end - window->reach : 0;
	if (from <= window->start + window->length || input_compressed(window->input))
		return true;
	window->start = from;
	window->length = 0;
	return input_seek(window->input, from, &error) == WEIR_OK;
}

static bool cover(struct line_window *window, uint64_t end)
{
	struct weir_error error;
	if (!input_compressed(window->input) && (uint64_t)window->about.st_size < end &&
	    input_kind(window->input) == INPUT_PLAIN)
		return false;
	if (!jump(window, end))
		return false;
	while (!window->ended && window->start + window->length < end && !patience_ended(window->patience)) {
		size_t got = 0;
		/* What is read may be far before the offset: then only its end is kept. */
		drop_before(window, window->start + window->length);
		enum weir_status status = input_read(window->input, window->bytes + window->length, READ_BYTES, &got, &error);
		window->ended = status != WEIR_OK;
		window->length += status == WEIR_OK ? got : 0;
		if (status == WEIR_OK && !jump(window, end)) /* by now it is known how it is packed */
			return false;
	}
	return window->start + window->length >= end;
}

bool line_window_line(struct line_window *window, uint64_t end, struct weir_span *line, uint64_t *begin)
{
	if (end == 0 || !cover(window, end) || end <= window->start)
		return false;
	size_t at = (size_t)(end - window->start);
	bool closed = window->bytes[at - 1] == '\n';
	if (!closed && (at < window->length || (!input_compressed(window->input) && (off_t)end < window->about.st_size)))
		return false;
	size_t last = closed ? at - 1 : at, first = last;
	while (first > 0 && window->bytes[first - 1] != '\n')
		first--;
	if (first == 0 && window->start > 0)
		return false;
	*line = (struct weir_span){.at = window->bytes + first,
	                           .length = lines_trim(window->bytes, (uint32_t)first, (uint32_t)last)};
	*begin = window->start + first;
	return true;
}

struct weir_span line_window_before(const struct line_window *window, uint64_t begin)
{
	size_t length = (size_t)(begin - window->start), first = 0;
	while (window->start > 0 && first < length && (first == 0 || window->bytes[first - 1] != '\n'))
		first++;
	return (struct weir_span){.at = window->bytes + first, .length = (uint32_t)(length - first)};
}
