/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that weir prints is pasted into a shell: each path in it is one word there, whatever is in its name.
 *
 *   weir_fail(error, WEIR_IO, "run chmod o-rw %s", weir_shell_word(path).text);
 */
#ifndef WEIR_COMMON_SHELL_H
#define WEIR_COMMON_SHELL_H

#include "common/base/text.h"

#include <limits.h>

/* Each byte may be a quote, which takes four. */
enum { WEIR_SHELL_WORD_BYTES = 4 * PATH_MAX + sizeof "''" };

struct weir_shell_word {
	char text[WEIR_SHELL_WORD_BYTES];
};

/**
 * Writes a path as one word: as it is where a shell changes nothing in it, else in quotes.
 *
 * @param path  of less than PATH_MAX bytes; a longer one is nobody's, and is cut
 */
struct weir_shell_word weir_shell_word(const char *path);

/** Appends any word likewise, however long it is. */
void weir_shell_append(struct weir_text *text, const char *word);

#endif
