/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of any bytes as lines. */
#include "collector/source/source_message.h"

#include <string.h>

struct weir_span source_message_line(const void *at, size_t length)
{
	const char *bytes = at;
	length = bytes != NULL ? length : 0;
	while (length > 0 && (bytes[length - 1] == '\n' || bytes[length - 1] == '\r'))
		length--;
	return (struct weir_span){.at = bytes, .length = (uint32_t)length};
}

void source_message_put(struct weir_text *lines, struct weir_span line)
{
	char *at = weir_text_reserve(lines, line.length + 1u), *end = at + line.length;
	if (line.length > 0)
		memcpy(at, line.at, line.length);
	for (char *newline = at; (newline = memchr(newline, '\n', (size_t)(end - newline))) != NULL;)
		*newline = ' ';
	*end = '\n';
	lines->length += line.length + 1u;
}
