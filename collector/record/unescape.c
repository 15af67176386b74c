/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the escapes out of strings.
 *
 * All strings of a line together are shorter than the line, so room for a line's length is enough, and it is made once
 * for the longest line: no allocation per line.
 */
#include "collector/record/unescape.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>

enum { UNICODE_REPLACEMENT = 0xfffd };

void unescape_scratch_deinit(struct unescape_scratch *scratch)
{
	free(scratch->bytes);
	*scratch = (struct unescape_scratch){0};
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number of a \uXXXX that stands here, or -1. */
static int32_t unicode_escape(const char *at, const char *end)
{
	if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
		return -1;
	int32_t number = 0;
	for (int i = 2; i < 6; i++) {
		int digit = hex_value(at[i]);
		if (digit < 0)
			return -1;
		number = number << 4 | digit;
	}
	return number;
}

static char *write_utf8(char *out, int32_t character)
{
	uint32_t c = (uint32_t)character;
	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
		*out++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	} else {
		*out++ = (char)(0xf0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 0x3f));
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	}
	return out;
}

/* The character of a \uXXXX, or of two that are a pair, which `at` is moved past; -1: there is none. */
static int32_t take_unicode(const char **at, const char *end)
{
	int32_t first = unicode_escape(*at, end);
	if (first < 0)
		return -1;
	*at += 6;
	if (first < 0xd800 || first > 0xdfff)
		return first;
	int32_t second = first < 0xdc00 ? unicode_escape(*at, end) : -1;
	if (second < 0xdc00 || second > 0xdfff)
		return UNICODE_REPLACEMENT;
	*at += 6;
	return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
}

/* The byte that a two-byte escape stands for, or 0. */
static char short_escape(char c)
{
	switch (c) {
	case '"':
	case '\\':
	case '/': return c;
	case 'b': return '\b';
	case 'f': return '\f';
	case 'n': return '\n';
	case 'r': return '\r';
	case 't': return '\t';
	default: return 0;
	}
}

struct weir_span unescape(struct unescape_scratch *scratch, struct weir_span raw, uint32_t line_length, bool keep)
{
	if (scratch->capacity < line_length) {
		assert(scratch->used == 0);
		scratch->bytes = weir_realloc(scratch->bytes, line_length, 1);
		scratch->capacity = line_length;
	}
	assert(raw.length <= scratch->capacity - scratch->used);
	char *begin = scratch->bytes + scratch->used, *out = begin;
	const char *at = raw.at, *end = raw.at + raw.length;
	while (at < end) {
		const char *backslash = memchr(at, '\\', (size_t)(end - at));
		size_t plain = (size_t)((backslash != NULL ? backslash : end) - at);
		memcpy(out, at, plain);
		out += plain;
		if (backslash == NULL)
			break;
		at = backslash;
		int32_t character = take_unicode(&at, end);
		if (character >= 0) {
			out = write_utf8(out, character);
			continue;
		}
		char byte = end - at > 1 ? short_escape(at[1]) : 0;
		if (byte != 0) {
			*out++ = byte;
			at += 2;
			continue;
		}
		*out++ = *at++;
		if (at < end)
			*out++ = *at++;
	}
	struct weir_span result = {.at = begin, .length = (uint32_t)(out - begin)};
	if (keep)
		scratch->used += result.length;
	return result;
}

struct weir_span unescape_log(struct unescape_scratch *scratch, struct weir_span raw)
{
	if (raw.length == 0 || memchr(raw.at, '\\', raw.length) == NULL)
		return raw;
	if (scratch->capacity < raw.length) {
		scratch->bytes = weir_realloc(scratch->bytes, raw.length, 1);
		scratch->capacity = raw.length;
	}
	char *out = scratch->bytes;
	const char *end = raw.at + raw.length;
	for (const char *at = raw.at; at < end;) {
		int high = end - at >= 4 && at[0] == '\\' && at[1] == 'x' ? hex_value(at[2]) : -1;
		int low = high >= 0 ? hex_value(at[3]) : -1;
		if (low >= 0) {
			*out++ = (char)(high << 4 | low);
			at += 4;
			continue;
		}
		at += end - at >= 2 && at[0] == '\\' && (at[1] == '"' || at[1] == '\\');
		*out++ = *at++;
	}
	return (struct weir_span){.at = scratch->bytes, .length = (uint32_t)(out - scratch->bytes)};
}
