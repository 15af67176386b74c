/* SPDX-License-Identifier: Apache-2.0 */
/* Any target, against the rule step by step: a list of segments, each step in its own pass. */
#include "common/record/served_path.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct text {
	char *at;
	size_t length;
};

static int hex(char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *found = c != '\0' ? strchr(digits, c) : NULL;
	return found != NULL ? (int)(found - digits) % 16 : -1;
}

static void cut(struct text *text)
{
	for (size_t i = 0; i < text->length; i++)
		if (text->at[i] == '?' || text->at[i] == '#')
			text->length = i;
}

static void drop(struct text *text, size_t at, size_t count)
{
	memmove(text->at + at, text->at + at + count, text->length - at - count);
	text->length -= count;
}

static void take_authority_off(struct text *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", others[] = "0123456789+-.";
	size_t scheme = 0;
	while (scheme < text->length && text->at[scheme] != '\0' &&
	       (strchr(letters, text->at[scheme]) != NULL || (scheme > 0 && strchr(others, text->at[scheme]) != NULL)))
		scheme++;
	if (scheme == 0 || scheme == text->length || text->at[scheme] != ':')
		return;
	size_t end = scheme + 1;
	bool authority = text->length - end >= 2 && memcmp(text->at + end, "//", 2) == 0;
	if (!authority && end < text->length && text->at[end] != '/')
		return;
	end += authority ? 2 : 0;
	while (end < text->length && text->at[end] != '/')
		end++;
	drop(text, 0, end);
}

static void decode(struct text *text)
{
	for (size_t i = 0; i + 2 < text->length; i++)
		if (text->at[i] == '%' && hex(text->at[i + 1]) >= 0 && hex(text->at[i + 2]) >= 0) {
			text->at[i] = (char)(hex(text->at[i + 1]) * 16 + hex(text->at[i + 2]));
			drop(text, i + 1, 2);
		}
}

static void merge_slashes(struct text *text)
{
	for (size_t i = 0; i + 1 < text->length;)
		if (text->at[i] == '/' && text->at[i + 1] == '/')
			drop(text, i, 1);
		else
			i++;
}

/* RFC 3986, 5.2.4, by its letter: A cannot be, as a path begins with '/'. */
static void remove_dots(struct text *text)
{
	char *out = malloc(text->length + 1);
	size_t length = 0;
	while (text->length > 0) {
		if (text->length >= 3 && memcmp(text->at, "/./", 3) == 0) {
			drop(text, 0, 2);
		} else if (text->length == 2 && memcmp(text->at, "/.", 2) == 0) {
			text->length = 1;
		} else if ((text->length >= 4 && memcmp(text->at, "/../", 4) == 0) ||
		           (text->length == 3 && memcmp(text->at, "/..", 3) == 0)) {
			drop(text, 1, text->length == 3 ? 2 : 3);
			while (length > 0 && out[--length] != '/')
				;
		} else {
			do {
				out[length++] = text->at[0];
				drop(text, 0, 1);
			} while (text->length > 0 && text->at[0] != '/');
		}
	}
	memcpy(text->at, out, length);
	text->length = length;
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct weir_served_path_room room;
	if (size == 0 || size > 4096)
		return 0;
	struct text text = {.at = malloc(size + 1), .length = size};
	char *target = malloc(size); /* of just its size: a read past it is seen */
	if (text.at == NULL || target == NULL)
		abort();
	memcpy(text.at, data, size);
	memcpy(target, data, size);
	cut(&text);
	take_authority_off(&text);
	if (text.length == 0)
		text.at[text.length++] = '/';
	if (text.length > 0 && text.at[0] == '/') {
		decode(&text);
		merge_slashes(&text);
		remove_dots(&text);
	}
	struct weir_span path = weir_served_path((struct weir_span){.at = target, .length = (uint32_t)size}, &room);
	if (path.length != text.length || path.length > size ||
	    (path.length > 0 && memcmp(path.at, text.at, path.length) != 0)) {
		fprintf(stderr, "\"%.*s\" instead of \"%.*s\"\n", (int)path.length, path.at, (int)text.length, text.at);
		abort();
	}
	free(target);
	free(text.at);
	return 0;
}
