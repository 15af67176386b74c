/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules are those of systemd.exec(5), of EnvironmentFile=, and of systemd.service(5), of "$NAME": lines that begin
 * with # or ; say nothing; quotes are such where a value, or a part of one behind another quoted part, begins; a backslash
 * takes the next character as it is, and at the end of a line the line break away.
 */
#include "deploy/weir/doctor/environment_file.h"

#include "common/base/alloc.h"
#include "common/base/text.h"

#include <stdlib.h>
#include <string.h>

static const char spaces[] = " \t\r\n";

static bool is_space(char c)
{
	return c != '\0' && strchr(spaces, c) != NULL;
}

/* What a backslash and this character stand for. */
static void put_escaped(struct weir_text *value, char quote, char c)
{
	if (c == '\n')
		return;
	if (quote == '"' && strchr("\"\\`$", c) == NULL)
		weir_text_append(value, "\\", 1);
	weir_text_append(value, &c, 1);
}

/* A value, without the white space around it. @return its end: the line's, or the text's */
static const char *read_value(const char *at, const char *end, struct weir_text *value)
{
	size_t kept = 0; /* without the white space behind it */
	char quote = '\0';
	bool begun = false; /* outside of quotes: white space belongs to it, and quotes are none */
	for (; at < end && (quote != '\0' || *at != '\n'); at++) {
		if (*at == '\\' && quote != '\'' && at + 1 < end) {
			put_escaped(value, quote, *++at);
			begun = quote == '\0';
			kept = value->length;
		} else if (quote != '\0' && *at == quote) {
			quote = '\0';
			begun = false;
		} else if (quote == '\0' && !begun && (*at == '\'' || *at == '"')) {
			quote = *at;
		} else if (quote != '\0' || begun || !is_space(*at)) {
			weir_text_append(value, at, 1);
			begun = quote == '\0';
			kept = quote != '\0' || !is_space(*at) ? value->length : kept;
		}
	}
	value->length = kept;
	return at;
}

char *environment_file_value(struct weir_span text, const char *name)
{
	const char *at = text.at, *end = text.at + text.length;
	struct weir_text value = {0};
	char *found = NULL;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		newline = newline != NULL ? newline : end;
		while (at < newline && is_space(*at))
			at++;
		const char *begin = at, *equals = at < newline ? memchr(at, '=', (size_t)(newline - at)) : NULL;
		at = newline + (newline < end);
		if (equals == NULL || *begin == '#' || *begin == ';')
			continue;
		size_t length = (size_t)(equals - begin);
		while (length > 0 && is_space(begin[length - 1]))
			length--;
		weir_text_clear(&value);
		at = read_value(equals + 1, end, &value);
		if (length != strlen(name) || memcmp(begin, name, length) != 0)
			continue;
		free(found);
		found = weir_copy(value.length > 0 ? value.at : "", value.length);
	}
	weir_text_deinit(&value);
	return found;
}

char *environment_file_word(char **rest)
{
	char *at = *rest + strspn(*rest, spaces), *word = at, *to = at, quote = '\0';
	if (*at == '\0')
		return NULL;
	for (; *at != '\0' && (quote != '\0' || !is_space(*at)); at++)
		if (*at == '\\' && at[1] != '\0')
			*to++ = *++at;
		else if (quote == '\0' && (*at == '\'' || *at == '"'))
			quote = *at;
		else if (quote != '\0' && *at == quote)
			quote = '\0';
		else
			*to++ = *at;
	*rest = at + (*at != '\0');
	*to = '\0';
	return word;
}
