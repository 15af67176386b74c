/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object's first lines: a format with a header line needs them wherever the reading of an object goes on.
 *
 * They are asked for once an object and run, and kept while it is read.
 */
#include "collector/source/remote/internal.h"

#include "common/base/alloc.h"

#include <string.h>
#include <unistd.h>

enum { HEAD_BYTES = 16 << 10, HEAD_PACKED_BYTES = 256 << 10 };

/* What can be read of a temporary file's lines, unpacked where they are packed. Returned, terminated. */
static char *first_lines(int fd)
{
	struct weir_error ignored;
	char *lines = weir_alloc(HEAD_BYTES + 1, 1);
	size_t length = 0, got = 0;
	struct input *input = input_new(fd, false);
	while (length < HEAD_BYTES && input_read(input, lines + length, HEAD_BYTES - length, &got, &ignored) == WEIR_OK)
		length += got;
	input_free(input);
	char *newline = memrchr(lines, '\n', length);
	lines[newline != NULL ? newline - lines + 1 : 0] = '\0';
	return lines;
}

enum weir_status remote_head(struct remote_fetch *fetch, const struct remote_object *object, bool packed, char **kept,
                             char **lines, struct weir_error *error)
{
	uint64_t got;
	*lines = NULL;
	if (!fetch->options.headed)
		return WEIR_OK;
	if (*kept == NULL) {
		int fd = remote_temporary(fetch, error);
		if (fd < 0)
			return WEIR_IO;
		enum weir_status status =
			remote_read_bytes(fetch, object, 0, packed ? HEAD_PACKED_BYTES : HEAD_BYTES, fd, &got, error);
		if (status == WEIR_OK && lseek(fd, 0, SEEK_SET) != 0)
			status = weir_fail(error, WEIR_IO, "cannot read a temporary file");
		if (status != WEIR_OK) {
			close(fd);
			weir_error_prefix(error, "its first lines, which name its fields, cannot be read");
			return WEIR_IO;
		}
		*kept = first_lines(fd);
	}
	*lines = weir_copy(*kept, strlen(*kept));
	return WEIR_OK;
}
