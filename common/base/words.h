/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that a person reads on a terminal: without control characters.
 *
 * What they carry may come from anyone's log file (a key, a name, a server's
 * answer with one in it), and a control character in it could move the cursor,
 * hide what follows or set the terminal's title. Those of one byte are C0 and
 * DEL; those of two are C1 in UTF-8, such as C2 9B, which begins a sequence as
 * ESC [ does. Unicode's controls of the writing's direction, such as U+202E, show
 * what follows backwards; its separators of lines and the mark of a byte order
 * are seen by no reader.
 */
#ifndef WEIR_COMMON_WORDS_H
#define WEIR_COMMON_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069 and U+FEFF. */
static inline size_t weir_format_bytes(const unsigned char *bytes, size_t left)
{
	if (left > 1 && bytes[0] == 0xD8)
		return bytes[1] == 0x9C ? 2 : 0;
	if (left > 2 && bytes[0] == 0xE2 && bytes[1] == 0x80)
		return bytes[2] == 0x8E || bytes[2] == 0x8F || (bytes[2] >= 0xA8 && bytes[2] <= 0xAE) ? 3 : 0;
	if (left > 2 && bytes[0] == 0xE2 && bytes[1] == 0x81)
		return bytes[2] >= 0xA6 && bytes[2] <= 0xA9 ? 3 : 0;
	return left > 2 && bytes[0] == 0xEF && bytes[1] == 0xBB && bytes[2] == 0xBF ? 3 : 0;
}

/** @return how many bytes, of which `left` may be read, the control character at `at` has; 0: there is none */
static inline size_t weir_control_bytes(const char *at, size_t left)
{
	const unsigned char *bytes = (const unsigned char *)at;
	if (left > 0 && (bytes[0] < 0x20 || bytes[0] == 0x7F))
		return 1;
	if (left < 2 || bytes[0] < 0xC2)
		return 0;
	return bytes[0] == 0xC2 ? (bytes[1] >= 0x80 && bytes[1] < 0xA0 ? 2 : 0) : weir_format_bytes(bytes, left);
}

/** The character that these bytes are, a whole one of UTF-8. */
static inline unsigned weir_utf8_code(const char *at, size_t bytes)
{
	static const unsigned char of_lead[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
	unsigned code = (unsigned char)at[0] & of_lead[bytes];
	for (size_t i = 1; i < bytes; i++)
		code = code << 6 | ((unsigned char)at[i] & 0x3F);
	return code;
}

/**
 * Whether a character of Unicode is not seen where it stands, or changes the order of what stands beside it: controls,
 * format characters, separators of lines, and what Unicode calls default-ignorable. The archiver's page shows the same.
 */
bool weir_is_unseen(unsigned code);

/** Makes each control character of a string, a line break too, a space. */
void weir_words_clean(char *words);

/** Whether two strings are the same but for the figures in them, as those of a lasting trouble change all the time. */
bool weir_words_alike(const char *one, const char *other);

#endif
