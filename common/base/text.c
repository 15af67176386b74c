/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that grows by doubling. The JSON escaping copies runs of plain ASCII at
 * once, as nearly all keys and log lines are nothing else.
 */
#include "common/base/text.h"

#include "common/base/alloc.h"
#include "common/base/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void weir_text_deinit(struct weir_text *text)
{
	free(text->at);
	*text = (struct weir_text){0};
}

char *weir_text_reserve(struct weir_text *text, size_t bytes)
{
	if (text->capacity - text->length < bytes) {
		size_t capacity = text->capacity < 256 ? 256 : text->capacity;
		while (capacity - text->length < bytes)
			capacity *= 2;
		text->at = weir_realloc(text->at, capacity, 1);
		text->capacity = capacity;
	}
	return text->at + text->length;
}

void weir_text_append(struct weir_text *text, const void *bytes, size_t length)
{
	if (length == 0)
		return;
	memcpy(weir_text_reserve(text, length), bytes, length);
	text->length += length;
}

void weir_text_puts(struct weir_text *text, const char *string)
{
	weir_text_append(text, string, strlen(string));
}

void weir_text_uint(struct weir_text *text, uint64_t number)
{
	char digits[20];
	size_t at = sizeof digits;
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	weir_text_append(text, digits + at, sizeof digits - at);
}

void weir_text_int(struct weir_text *text, int64_t number)
{
	if (number < 0)
		weir_text_append(text, "-", 1);
	weir_text_uint(text, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void weir_text_printf(struct weir_text *text, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length > 0) {
		vsnprintf(weir_text_reserve(text, (size_t)length + 1), (size_t)length + 1, format, again);
		text->length += (size_t)length;
	}
	va_end(again);
}

void weir_text_size(struct weir_text *text, uint64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	double size = (double)bytes;
	size_t unit = 0;
	for (; size >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
		size /= 1024;
	weir_text_printf(text, "%.*f %s", unit > 0, size, units[unit]);
}

size_t weir_utf8_sequence(const void *from, size_t left)
{
	const unsigned char *at = from;
	if (left == 0)
		return 0;
	if (at[0] < 0x80)
		return 1;
	unsigned lead = at[0];
	size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
	if (lead < 0xC2 || lead > 0xF4 || left < bytes)
		return 0;
	unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
	unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
	if (at[1] < low || at[1] > high)
		return 0;
	for (size_t i = 2; i < bytes; i++)
		if ((at[i] & 0xC0) != 0x80)
			return 0;
	return bytes;
}

void weir_text_utf8(struct weir_text *text, struct weir_span bytes)
{
	const unsigned char *at = (const unsigned char *)bytes.at;
	size_t length = bytes.at == NULL ? 0 : bytes.length;
	size_t run = 0; /* where the bytes not yet copied begin */
	for (size_t i = 0; i < length;) {
		size_t sequence = weir_utf8_sequence(at + i, length - i);
		i += sequence;
		if (sequence > 0)
			continue;
		weir_text_append(text, at + run, i - run);
		weir_text_puts(text, "\xEF\xBF\xBD");
		run = ++i;
	}
	if (length > run)
		weir_text_append(text, at + run, length - run);
}

/* A quote, a backslash or a control character, whose number is `byte`. */
static void append_escaped(struct weir_text *text, unsigned byte)
{
	static const char letters[] = "btnvfr"; /* from \b (8) on; \v has no short form in JSON */
	if (byte == '"' || byte == '\\') {
		char pair[2] = {'\\', (char)byte};
		weir_text_append(text, pair, 2);
	} else if (byte >= '\b' && byte <= '\r' && byte != '\v') {
		char pair[2] = {'\\', letters[byte - '\b']};
		weir_text_append(text, pair, 2);
	} else {
		weir_text_printf(text, "\\u%04x", byte);
	}
}

void weir_text_json(struct weir_text *text, struct weir_span bytes)
{
	const unsigned char *at = (const unsigned char *)bytes.at;
	size_t length = bytes.at == NULL ? 0 : bytes.length;
	size_t run = 0; /* where the bytes not yet copied begin */

	weir_text_append(text, "\"", 1);
	for (size_t i = 0; i < length;) {
		if (at[i] >= 0x20 && at[i] < 0x7F && at[i] != '"' && at[i] != '\\') {
			i++;
			continue;
		}
		size_t control = weir_control_bytes(bytes.at + i, length - i);
		size_t sequence = control == 0 && at[i] >= 0x80 ? weir_utf8_sequence(at + i, length - i) : 0;
		if (sequence > 0) {
			i += sequence;
			continue;
		}
		weir_text_append(text, at + run, i - run);
		if (at[i] >= 0x80 && control == 0)
			weir_text_puts(text, "\xEF\xBF\xBD");
		else
			append_escaped(text, control > 0 ? weir_utf8_code(bytes.at + i, control) : at[i]);
		i += control > 0 ? control : 1;
		run = i;
	}
	if (length > run)
		weir_text_append(text, at + run, length - run);
	weir_text_append(text, "\"", 1);
}

void weir_text_json_bytes(struct weir_text *text, struct weir_span bytes)
{
	static const char digits[] = "0123456789abcdef";
	char *out = weir_text_reserve(text, 6 * (size_t)bytes.length + 2), *begin = out;
	*out++ = '"';
	for (uint32_t i = 0; i < bytes.length; i++) {
		char c = bytes.at[i];
		if (c == '"' || c == '\\') {
			*out++ = '\\';
			*out++ = c;
		} else if ((unsigned char)c >= 0x20) {
			*out++ = c;
		} else {
			memcpy(out, "\\u00", 4);
			out[4] = digits[c >> 4];
			out[5] = digits[c & 15];
			out += 6;
		}
	}
	*out++ = '"';
	text->length += (size_t)(out - begin);
}
