/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The escapes of JSON strings, as `json` and `logfmt` lines have them, and room for what they stand for.
 *
 * \" \\ \/ \b \f \n \r \t and \uXXXX; a surrogate pair is one character, a lone surrogate U+FFFD. What is no escape
 * ("\x22", "\u12") stays as it is written. The result is UTF-8 and never longer than what is written.
 */
#ifndef COLLECTOR_UNESCAPE_H
#define COLLECTOR_UNESCAPE_H

#include "common/base/span.h"

/* Room for the values of one line that cannot stay in it. Owned by one thread; zero-initialised is empty. */
struct unescape_scratch {
	char *bytes;
	uint32_t capacity, used;
};

void unescape_scratch_deinit(struct unescape_scratch *scratch);

static inline void unescape_scratch_clear(struct unescape_scratch *scratch)
{
	scratch->used = 0;
}

/**
 * What a string's raw inside stands for.
 *
 * @param line_length  of the line that raw is a part of: the room for all of its strings is made at the first
 * @param keep         false: the result holds until the next call; true: until the scratch is cleared
 */
struct weir_span unescape(struct unescape_scratch *scratch, struct weir_span raw, uint32_t line_length, bool keep);

/**
 * What a value of an access log stands for, which has \" \\ and \xHH; anything else stays as it is written. The result
 * holds until the scratch is used again.
 */
struct weir_span unescape_log(struct unescape_scratch *scratch, struct weir_span raw);

#endif
