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

struct weir_shell_word weir_shell_word(const char *path)
{
	struct weir_shell_word word = {.text = ""};
	size_t length = strnlen(path, PATH_MAX), used = 0;
	if (is_plain(path) && length < PATH_MAX) {
		memcpy(word.text, path, length);
		return word;
	}
	word.text[used++] = '\'';
	for (size_t i = 0; i < length; i++)
		if (path[i] == '\'') {
			memcpy(word.text + used, quote, sizeof quote - 1);
			used += sizeof quote - 1;
		} else {
			word.text[used++] = path[i];
		}
	word.text[used] = '\'';
	return word;
}
