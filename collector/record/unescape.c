/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the escapes out of strings.
 *
 * All strings of a line together are shorter than the line, so room for a line's length is enough, and it is made once
 * for the longest line: no allocation per line.
 */
#include "collector/record/unescape.h"

#include "common/base/alloc.h"
#include "common/bytes/hex.h"

#include <assert.h>
#include <stdlib.h>

enum { UNICODE_REPLACEMENT = 0xfffd };

void unescape_scratch_deinit(struct unescape_scratch *scratch)
{
	free(scratch->bytes);
	*scratch = (struct unescape_scratch){0};
}

/* The number of a \uXXXX that stands here, or -1. */
static int32_t unicode_escape(const char *at, const char *end)
{
	if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
		return -1;
	int32_t number = 0;
	for (int i = 2; i < 6; i++) {
		int digit = weir_hex_digit(at[i]);
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

/* The byte that two hexadecimal digits behind a mark stand for, which `at` is moved past; -1: there are none. */
static int take_hex(const char **at, const char *end, uint32_t mark_bytes)
{
	const char *digits = *at + mark_bytes;
	int byte = end - *at >= mark_bytes + (ptrdiff_t)2 ? weir_hex_byte(digits) : -1;
	if (byte >= 0)
		*at = digits + 2;
	return byte;
}

static bool is_byte_escape(const char *at, const char *end)
{
	return end - at >= 4 && at[0] == '\\' && at[1] == 'x';
}

/* The byte that a two-byte escape stands for, or 0. */
static char short_escape(char c)
{
	switch (c) {
	case '"':
	case '\\': return c;
	case 'b': return '\b';
	case 'f': return '\f';
	case 'n': return '\n';
	case 'r': return '\r';
	case 't': return '\t';
	case 'v': return '\v';
	default: return 0;
	}
}

/* Room for all strings of a line, made at the first. @return where the next one stands */
static char *reserve(struct unescape_scratch *scratch, uint32_t bytes, uint32_t room)
{
	(void)bytes; /* where nothing is asserted */
	if (scratch->capacity < room) {
		assert(scratch->used == 0);
		scratch->bytes = weir_realloc(scratch->bytes, room, 1);
		scratch->capacity = room;
	}
	assert(bytes <= scratch->capacity - scratch->used);
	return scratch->bytes + scratch->used;
}

char *unescape_room(struct unescape_scratch *scratch, uint32_t line_length)
{
	return reserve(scratch, 0, line_length);
}

struct weir_span unescape(struct unescape_scratch *scratch, struct weir_span raw, uint32_t line_length, bool keep)
{
	char *begin = reserve(scratch, raw.length, line_length), *out = begin;
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
		int hex = is_byte_escape(at, end) ? take_hex(&at, end, 2) : -1;
		if (hex >= 0) {
			*out++ = (char)hex;
			continue;
		}
		char byte = end - at > 1 ? at[1] == '/' ? '/' : short_escape(at[1]) : 0;
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

static struct weir_span kept(struct unescape_scratch *scratch, const char *begin, const char *end)
{
	scratch->used += (uint32_t)(end - begin);
	return (struct weir_span){.at = begin, .length = (uint32_t)(end - begin)};
}

struct weir_span unescape_log(struct unescape_scratch *scratch, struct weir_span raw, uint32_t room)
{
	if (raw.length == 0 || memchr(raw.at, '\\', raw.length) == NULL)
		return raw;
	char *begin = reserve(scratch, raw.length, room), *out = begin;
	const char *end = raw.at + raw.length;
	for (const char *at = raw.at; at < end;) {
		int hex = is_byte_escape(at, end) ? take_hex(&at, end, 2) : -1;
		char byte = hex < 0 && *at == '\\' && end - at > 1 ? short_escape(at[1]) : 0;
		if (byte != 0)
			at += 2;
		*out++ = hex >= 0 ? (char)hex : byte != 0 ? byte : *at++;
	}
	return kept(scratch, begin, out);
}

struct weir_span unescape_hashes(struct unescape_scratch *scratch, struct weir_span raw, uint32_t room)
{
	if (raw.length == 0 || memchr(raw.at, '#', raw.length) == NULL)
		return raw;
	char *begin = reserve(scratch, raw.length, room), *out = begin;
	const char *end = raw.at + raw.length;
	for (const char *at = raw.at; at < end;) {
		int hex = *at == '#' ? take_hex(&at, end, 1) : -1;
		*out++ = hex >= 0 ? (char)hex : *at++;
	}
	return kept(scratch, begin, out);
}
