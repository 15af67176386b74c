/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of any bytes as lines. */
#include "collector/source/source_message.h"

#include "collector/source/source.h"

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

struct weir_span source_message_tail(struct weir_span line, size_t most)
{
	uint32_t length = line.length - (uint32_t)most;
	if (length > SOURCE_TAIL_MOST_BYTES)
		length = SOURCE_TAIL_MOST_BYTES;
	return (struct weir_span){.at = line.at + line.length - length, .length = length};
}

uint32_t source_message_put_long(struct weir_text *lines, struct weir_span line, size_t most)
{
	struct weir_span tail = source_message_tail(line, most);
	source_message_put(lines, (struct weir_span){.at = line.at, .length = (uint32_t)most});
	lines->length--;
	source_message_put(lines, tail);
	lines->length--;
	return tail.length;
}
