/* SPDX-License-Identifier: Apache-2.0 */
/* A check is answered by five integers: they are written into room that is reserved once. */
#include "common/resp/resp_writer.h"

#include "common/base/words.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { INTEGER_MAX_BYTES = 24, ERROR_MAX_BYTES = 512 };

/* A type, a number and the end of the line: at most INTEGER_MAX_BYTES. */
static char *put_head(char *at, char type, int64_t number)
{
	char digits[INTEGER_MAX_BYTES];
	size_t first = sizeof digits;
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
	do
		digits[--first] = (char)('0' + rest % 10);
	while ((rest /= 10) > 0);
	if (number < 0)
		digits[--first] = '-';
	*at++ = type;
	memcpy(at, digits + first, sizeof digits - first);
	at += sizeof digits - first;
	*at++ = '\r';
	*at++ = '\n';
	return at;
}

static void append_head(struct weir_text *text, char type, int64_t number)
{
	char *room = weir_text_reserve(text, INTEGER_MAX_BYTES);
	text->length += (size_t)(put_head(room, type, number) - room);
}

void weir_resp_simple(struct weir_text *text, const char *words)
{
	weir_text_append(text, "+", 1);
	weir_text_puts(text, words);
	weir_text_append(text, "\r\n", 2);
}

void weir_resp_error(struct weir_text *text, const char *format, ...)
{
	char words[ERROR_MAX_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(words, sizeof words, format, arguments);
	va_end(arguments);
	weir_words_clean(words);
	weir_text_append(text, "-", 1);
	weir_text_puts(text, words);
	weir_text_append(text, "\r\n", 2);
}

void weir_resp_bulk(struct weir_text *text, struct weir_span bytes)
{
	append_head(text, '$', bytes.length);
	weir_text_append(text, bytes.at, bytes.length);
	weir_text_append(text, "\r\n", 2);
}

void weir_resp_string(struct weir_text *text, const char *string)
{
	weir_resp_bulk(text, weir_span_of(string));
}

void weir_resp_integer(struct weir_text *text, int64_t number)
{
	append_head(text, ':', number);
}

void weir_resp_nil(struct weir_text *text, enum weir_resp_protocol protocol)
{
	weir_text_puts(text, protocol == WEIR_RESP3 ? "_\r\n" : "$-1\r\n");
}

void weir_resp_array(struct weir_text *text, size_t count)
{
	append_head(text, '*', (int64_t)count);
}

void weir_resp_map(struct weir_text *text, size_t count, enum weir_resp_protocol protocol)
{
	append_head(text, protocol == WEIR_RESP3 ? '%' : '*', (int64_t)(protocol == WEIR_RESP3 ? count : 2 * count));
}

void weir_resp_integers(struct weir_text *text, const int64_t *numbers, size_t count)
{
	assert(count <= WEIR_RESP_INTEGERS_MAX);
	char *room = weir_text_reserve(text, (count + 1) * INTEGER_MAX_BYTES);
	char *at = put_head(room, '*', (int64_t)count);
	for (size_t i = 0; i < count; i++)
		at = put_head(at, ':', numbers[i]);
	text->length += (size_t)(at - room);
}
