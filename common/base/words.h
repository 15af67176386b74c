/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that a person reads on a terminal: without control characters.
 *
 * What they carry may come from anyone's log file (a key, a name, a server's
 * answer with one in it), and a control character in it could move the cursor,
 * hide what follows or set the terminal's title. Those of one byte are C0 and
 * DEL; those of two are C1 in UTF-8, such as C2 9B, which begins a sequence as
 * ESC [ does.
 */
#ifndef WEIR_COMMON_WORDS_H
#define WEIR_COMMON_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/** @return how many bytes, of which `left` may be read, the control character at `at` has; 0: there is none */
static inline size_t weir_control_bytes(const char *at, size_t left)
{
	const unsigned char *bytes = (const unsigned char *)at;
	if (left > 0 && (bytes[0] < 0x20 || bytes[0] == 0x7F))
		return 1;
	return left > 1 && bytes[0] == 0xC2 && bytes[1] >= 0x80 && bytes[1] < 0xA0 ? 2 : 0;
}

/** Makes each control character of a string, a line break too, a space. */
void weir_words_clean(char *words);

/** Whether two strings are the same but for the figures in them, as those of a lasting trouble change all the time. */
bool weir_words_alike(const char *one, const char *other);

#endif
