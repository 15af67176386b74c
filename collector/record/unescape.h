/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The escapes of strings, and room for what they stand for. The result is never longer than what is written.
 *
 * - Of JSON, as `json` and `logfmt` lines have them: \" \\ \/ \b \f \n \r \t and \uXXXX; a surrogate pair is one character,
 *   a lone surrogate U+FFFD. Servers that write lines of JSON without knowing JSON have \xHH and \v, too, which are no
 *   JSON: these are bytes. What is no escape ("\x2", "\u12") stays as it is written.
 * - Of access logs, as nginx (\xHH) and Apache (\" \\ \b \f \n \r \t \v and \xHH) have them. Both write a backslash of the
 *   client's so that it cannot be taken for theirs.
 * - Of HAProxy's log: #XX.
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
 * Room for a value of a line that is no string, and is no longer than its text there; the caller adds to `used` what it
 * needs of it.
 */
char *unescape_room(struct unescape_scratch *scratch, uint32_t line_length);

/**
 * What a value of an access log stands for; anything that is no escape stays as it is written. A value without a backslash
 * stays where it is. Results stand side by side until the scratch is cleared.
 *
 * @param room  bytes for all the values until then
 */
struct weir_span unescape_log(struct unescape_scratch *scratch, struct weir_span raw, uint32_t room);

/** The same of a value of HAProxy's log. */
struct weir_span unescape_hashes(struct unescape_scratch *scratch, struct weir_span raw, uint32_t room);

#endif
