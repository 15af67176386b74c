/* SPDX-License-Identifier: Apache-2.0 */
/* Between single quotes a shell reads everything as it stands, but a single quote: that one stands between two words. */
#include "common/base/shell.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char quote[] = "'\\''";

static bool is_plain(const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%";
	return path[0] != '\0' && path[strspn(path, plain)] == '\0';
}

/* @param to  room for four bytes of each, and two more; @return how many were written */
static size_t put_word(char *to, const char *word, size_t length)
{
	size_t used = 0;
	if (is_plain(word) && word[length] == '\0') {
		memcpy(to, word, length);
		return length;
	}
	to[used++] = '\'';
	for (size_t i = 0; i < length; i++)
		if (word[i] == '\'') {
			memcpy(to + used, quote, sizeof quote - 1);
			used += sizeof quote - 1;
		} else {
			to[used++] = word[i];
		}
	to[used++] = '\'';
	return used;
}

struct weir_shell_word weir_shell_word(const char *path)
{
	struct weir_shell_word word = {.text = ""};
	(void)put_word(word.text, path, strnlen(path, PATH_MAX));
	return word;
}

void weir_shell_append(struct weir_text *text, const char *word)
{
	size_t length = strlen(word);
	text->length += put_word(weir_text_reserve(text, 4 * length + 2), word, length);
}
