/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Redis client sends: commands, read where they lie.
 *
 * A command is an array of texts, or a line of words (telnet, health checks), which may be quoted. Nothing is copied and nothing is kept
 * between calls: what has not come whole is read again from its beginning, of which only the heads of texts are looked
 * at, so a bound on their number bounds the work.
 */
#ifndef WEIR_COMMON_RESP_COMMAND_H
#define WEIR_COMMON_RESP_COMMAND_H

#include "common/base/span.h"
#include "common/base/status.h"

#include <stdbool.h>

enum {
	WEIR_RESP_WORDS_KEPT = 64,  /* of a longer command the first ones are kept, and the number of all */
	WEIR_RESP_WORDS_MAX = 1024, /* beyond, it is no command */
	WEIR_RESP_LINE_MAX_BYTES = 16 << 10,
};

struct weir_resp_command {
	struct weir_span words[WEIR_RESP_WORDS_KEPT]; /* borrowed from the bytes that were read */
	uint32_t count;                               /* of all words; 0: an empty line, which is not answered */
	size_t bytes;                                 /* of the whole command */
	bool quoted; /* it is a line with quotes: the words are as they came until weir_resp_command_unquote() */
};

/**
 * Reads the command at the beginning of `bytes`.
 *
 * @param most_bytes  that a command may have: a longer one is refused as soon as a length says so
 * @param why         set on WEIR_INVALID: words that Redis uses for it where it has some
 * @return WEIR_OK; WEIR_AGAIN: more must arrive; WEIR_INVALID: what follows cannot be read any more
 */
WEIR_MUST_USE enum weir_status weir_resp_command_read(const char *bytes, size_t length, size_t most_bytes,
                                                      struct weir_resp_command *command, const char **why);

/**
 * Takes the quotes off the words of a line, as Redis does: "a b", with \n \r \t \b \a \xHH and \ before any other byte;
 * 'a b', with \' alone; either may follow bytes without quotes, and nothing may follow it.
 *
 * @param room  WEIR_RESP_LINE_MAX_BYTES, where the words stand then
 */
void weir_resp_command_unquote(struct weir_resp_command *command, char *room);

#endif
