/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a log, plain or packed: lines come whole, once, in order, whatever the sizes of reads and lines. */
#include "collector/input/input_lines.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNPACKED_MAX_BYTES = 4 << 20 };

static struct input *open_input(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return input_new(fd, false);
}

/* What no line has: a byte order mark at the beginning, and zeros before a line. */
static uint64_t pass_over(const char *plain, uint64_t from, uint64_t to)
{
	if (from == 0 && to >= 3 && memcmp(plain, "\xef\xbb\xbf", 3) == 0)
		from = 3;
	while (from < to && plain[from] == '\0')
		from++;
	return from;
}

/* The first bytes choose the limits, the rest is the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	size_t line_max = 1024 + 16 * (size_t)data[0], read_bytes = 4096 + 512 * (size_t)data[1];
	char *plain = malloc(UNPACKED_MAX_BYTES);
	size_t length = 0;
	struct input *input = open_input(data + 2, size - 2);
	enum weir_status read = input_read_full(input, plain, UNPACKED_MAX_BYTES, &length, NULL);
	if (read == WEIR_IO)
		abort();
	/* How much of a damaged block libbz2 gives before it says so depends on the room that it is given. */
	bool told = read != WEIR_INVALID || memmem(data + 2, size - 2, "BZh", 3) == NULL;
	input_free(input);

	struct input_lines *lines = input_lines_new(open_input(data + 2, size - 2), line_max, read_bytes);
	struct input_lines_chunk chunk;
	uint64_t offset = 0;
	enum weir_status status;
	while ((status = input_lines_fill(lines, UNPACKED_MAX_BYTES, true, NULL)) == WEIR_OK || status == WEIR_AGAIN) {
		if (status == WEIR_AGAIN)
			continue;
		input_lines_take(lines, &chunk);
		if (!told)
			continue;
		offset = pass_over(plain, offset, chunk.offset);
		if (chunk.offset != offset || chunk.length == 0 || offset + chunk.length + chunk.skipped > length ||
		    memcmp(chunk.data, plain + offset, chunk.length) != 0)
			abort();
		offset += chunk.length + chunk.skipped;
		const struct weir_span tail = chunk.tail;
		size_t missing = chunk.too_long && !chunk.open ? (size_t)chunk.skipped - 1 : 0;
		if (tail.length > missing || (tail.length < missing && tail.length < INPUT_LINES_TAIL_BYTES &&
		                              memchr(plain + offset - 1 - missing, '\0', missing) == NULL))
			abort();
		if (tail.length > 0 && memcmp(tail.at, plain + offset - 1 - tail.length, tail.length) != 0)
			abort();
		if (!chunk.open && plain[offset - 1] != '\n')
			abort();
		if (chunk.too_long && (chunk.length != line_max || memchr(chunk.data, '\n', chunk.length) != NULL))
			abort();
		for (const char *at = chunk.data, *end = at + chunk.length; !chunk.too_long && at < end;) {
			const char *newline = memchr(at, '\n', (size_t)(end - at));
			if ((size_t)((newline != NULL ? newline : end) - at) > line_max)
				abort();
			at = newline != NULL ? newline + 1 : end;
		}
	}
	if (told && pass_over(plain, offset, length) != length)
		abort();
	input_lines_free(lines);
	free(plain);
	return 0;
}
