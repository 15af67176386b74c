/* SPDX-License-Identifier: Apache-2.0 */
/* A remedy is pasted into a shell: the file's name stands there as one word, from any directory. */
#include "common/base/alloc.h"
#include "common/diagnosis/server_checks.h"

#include <stdlib.h>

static bool is_plain(const char *path)
{
	return path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%")] == '\0';
}

char *weir_check_config_words(const char *path)
{
	struct weir_text text = {0};
	char *whole = realpath(path, NULL);
	const char *shown = whole != NULL ? whole : path;
	weir_text_puts(&text, "--config ");
	if (is_plain(shown)) {
		weir_text_puts(&text, shown);
	} else {
		weir_text_puts(&text, "'");
		for (const char *at = shown; *at != '\0'; at++)
			weir_text_append(&text, *at == '\'' ? "'\\''" : at, *at == '\'' ? 4 : 1);
		weir_text_puts(&text, "'");
	}
	weir_text_append(&text, "", 1);
	free(whole);
	return text.at;
}
