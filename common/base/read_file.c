/* SPDX-License-Identifier: Apache-2.0 */
/* Read to its end and not to its size: what is in /proc, or comes through a pipe, has none. */
#include "common/base/read_file.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 64 << 10, LINE_MAX_BYTES = 64 << 10 };

enum weir_status weir_read_file(const char *path, size_t most, char **text, size_t *length, struct weir_error *error)
{
	FILE *file = fopen(path, "rb");
	if (file == NULL)
		return weir_fail(error, WEIR_IO, "cannot open %s: %s", path, weir_errno_words(errno));
	size_t used = 0, capacity = FIRST_BYTES;
	char *bytes = weir_alloc(capacity, 1);
	enum weir_status status = WEIR_OK;
	for (size_t got; (got = fread(bytes + used, 1, capacity - used, file)) > 0;) {
		used += got;
		if (used > most) {
			status = weir_fail(error, WEIR_INVALID, "%s is larger than %zu bytes", path, most);
			break;
		}
		if (used == capacity)
			bytes = weir_realloc(bytes, capacity *= 2, 1);
	}
	if (status == WEIR_OK && ferror(file))
		status = weir_fail(error, WEIR_IO, "cannot read %s: %s", path, weir_errno_words(errno));
	fclose(file);
	if (status != WEIR_OK) {
		free(bytes);
		return status;
	}
	*text = bytes;
	*length = used;
	return WEIR_OK;
}

enum weir_status weir_read_first_line(const char *path, char **line, struct weir_error *error)
{
	char *text;
	size_t length;
	enum weir_status status = weir_read_file(path, LINE_MAX_BYTES, &text, &length, error);
	if (status != WEIR_OK)
		return status;
	const char *end = memchr(text, '\n', length);
	size_t bytes = end != NULL ? (size_t)(end - text) : length;
	*line = weir_copy(text, bytes > 0 && text[bytes - 1] == '\r' ? bytes - 1 : bytes);
	free(text);
	return WEIR_OK;
}
