/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most targets are their own path, or are it up to the first '?': one scan tells, and nothing is copied. All others are
 * rewritten step by step, as the rule says it.
 */
#include "common/record/served_path.h"

#include "common/base/alloc.h"
#include "common/bytes/hex.h"
#include "common/record/find.h"

#include <stdlib.h>

void weir_served_path_room_deinit(struct weir_served_path_room *room)
{
	free(room->bytes);
	*room = (struct weir_served_path_room){0};
}

static bool is_letter(char c)
{
	c |= 0x20;
	return c >= 'a' && c <= 'z';
}

static bool is_scheme_byte(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

/*
 * Behind "scheme://authority", or behind "scheme:" where a path follows or nothing does; NULL: no absolute form begins
 * here. Apache serves /login where "http:/login" is asked for.
 */
static const char *behind_authority(const char *at, const char *end)
{
	if (at == end || !is_letter(*at))
		return NULL;
	while (at < end && is_scheme_byte(*at))
		at++;
	if (at == end || *at != ':')
		return NULL;
	at++;
	if (end - at < 2 || memcmp(at, "//", 2) != 0)
		return at == end || *at == '/' ? at : NULL;
	at += 2;
	const char *slash = memchr(at, '/', (size_t)(end - at));
	return slash != NULL ? slash : end;
}

/* The next byte, decoded, which `at` is moved past. */
static char take_byte(const char **at, const char *end)
{
	if (**at == '%' && end - *at >= 3) {
		int byte = weir_hex_byte(*at + 1);
		if (byte >= 0) {
			*at += 3;
			return (char)byte;
		}
	}
	return *(*at)++;
}

/* Decodes a path that begins with '/', and makes one '/' of several; gives the end of what was written. */
static char *decode(const char *at, const char *end, char *out)
{
	char last = '\0';
	while (at < end) {
		char byte = take_byte(&at, end);
		if (byte != '/' || last != '/')
			*out++ = byte;
		last = byte;
	}
	return out;
}

/* Removes dot segments in place from a path that begins with '/' and has no two in a row; gives its new end. */
static char *remove_dots(char *begin, const char *end)
{
	char *out = begin;
	for (const char *at = begin; at < end;) {
		const char *next = memchr(at + 1, '/', (size_t)(end - at - 1));
		const char *segment_end = next != NULL ? next : end;
		size_t length = (size_t)(segment_end - at); /* with its slash */
		bool one = length == 2 && at[1] == '.', two = length == 3 && at[1] == '.' && at[2] == '.';
		if (!one && !two) {
			memmove(out, at, length);
			out += length;
		}
		while (two && out > begin && *--out != '/')
			;
		if ((one || two) && next == NULL)
			*out++ = '/';
		at = segment_end;
	}
	return out;
}

static __attribute__((noinline, cold)) struct weir_span rewrite(const char *at, const char *end,
                                                                struct weir_served_path_room *room)
{
	const char *cut = weir_find_either(at, end, '?', '#'), *path = behind_authority(at, cut);
	at = path != NULL ? path : at;
	if (at == cut)
		return (struct weir_span){.at = "/", .length = 1};
	if (*at != '/')
		return (struct weir_span){.at = at, .length = (uint32_t)(cut - at)};
	uint32_t length = (uint32_t)(cut - at);
	if (room->capacity < length) {
		room->bytes = weir_realloc(room->bytes, length, 1);
		room->capacity = length;
	}
	char *decoded_end = decode(at, cut, room->bytes);
	return (struct weir_span){.at = room->bytes,
	                          .length = (uint32_t)(remove_dots(room->bytes, decoded_end) - room->bytes)};
}

/* The marks of a block, behind a byte of the same target. */
static uint64_t marks_of(const char *at, const char *end)
{
	return weir_find_path_mark(weir_find_load_until(at - 1, end), weir_find_load_until(at, end));
}

bool weir_served_path_stands(struct weir_span target, struct weir_span *path)
{
	const char *at = target.at, *end = target.at + target.length;
	*path = target;
	if (at == end || *at != '/')
		return false;
	uint64_t marks = 0;
	for (at++; end - at > WEIR_FIND_BYTES && (marks = marks_of(at, end)) == 0;)
		at += WEIR_FIND_BYTES;
	if (marks == 0) {
		/* The last block may begin among bytes that have no marks. */
		at = target.length > WEIR_FIND_BYTES ? end - WEIR_FIND_BYTES : at;
		marks = marks_of(at, end);
	}
	if (marks == 0)
		return true;
	at += weir_find_index(marks);
	path->length = (uint32_t)(at - target.at);
	return *at == '?';
}

struct weir_span weir_served_path(struct weir_span target, struct weir_served_path_room *room)
{
	struct weir_span path;
	return weir_served_path_stands(target, &path) ? path : rewrite(target.at, target.at + target.length, room);
}
