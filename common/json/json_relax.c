/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people write into a configuration and JSON does not take: comments, and a
 * comma behind the last element. Both become blanks, so each line and column of an
 * error is still that of the file.
 */
#include "common/json/internal.h"

#include <string.h>

static const char *skip_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		if (*at == '\\' && at + 1 < end)
			at++;
	return at < end ? at + 1 : end;
}

/* Where the comment at `at` ends; `at` itself: it is none, or is never closed. */
static const char *comment_end(const char *at, const char *end)
{
	if (end - at < 2 || at[0] != '/')
		return at;
	if (at[1] == '/') {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		return line != NULL ? line : end;
	}
	const char *close = at[1] == '*' ? memmem(at + 2, (size_t)(end - at) - 2, "*/", 2) : NULL;
	return close != NULL ? close + 2 : at;
}

static void blank(char *at, const char *end)
{
	for (; at < end; at++)
		if (*at != '\n')
			*at = ' ';
}

void json_relax(char *text, size_t length)
{
	char *end = text + length, *at = text, *comma = NULL;
	char before = '{'; /* the last byte of substance; and the one before the comma, while there is a comma */
	while (at < end) {
		char *behind = text + (comment_end(at, end) - text);
		if (behind > at) {
			blank(at, behind);
			at = behind;
			continue;
		}
		char c = *at;
		if ((c == '}' || c == ']') && comma != NULL)
			*comma = ' ';
		if (c == ',')
			comma = strchr("{[,:", before) == NULL ? at : NULL; /* an element that is not there stays a mistake */
		else if (strchr(" \t\r\n", c) == NULL)
			comma = NULL;
		if (strchr(" \t\r\n", c) == NULL)
			before = c;
		at = c == '"' ? text + (skip_string(at, end) - text) : at + 1;
	}
}
