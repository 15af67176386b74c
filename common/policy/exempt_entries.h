/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of "exempt": what one is, and files of them, one a line. Lines that are empty or begin with '#' or ';' are
 * passed over, and so are the blanks around an entry, a byte order mark, and what follows " #" or " ;" behind a network, and
 * " # " behind a word.
 *
 * An entry that is an address, a network or a range is about addresses; any other is a word, with '*' a pattern. What
 * only looks like a network is refused, for as a word it would exempt nobody.
 */
#ifndef WEIR_COMMON_EXEMPT_ENTRIES_H
#define WEIR_COMMON_EXEMPT_ENTRIES_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/bytes/address.h"

enum {
	WEIR_EXEMPT_LINE_MAX_BYTES = 64 << 10,
	WEIR_EXEMPT_FILE_ENTRIES_MAX = 20000000,
};

/* Who takes the entries. */
struct weir_exempt_taker {
	void *context;
	/** A range gives several. */
	void (*network)(void *context, const struct weir_network *network);
	/** @param word  borrowed until it returns; terminated, too */
	void (*word)(void *context, struct weir_span word);
	uint32_t most; /* the reading ends behind so many entries */
};

/* A state of a file, to tell it from others. Zeroed: there is none. */
struct weir_exempt_file_state {
	uint64_t device, inode;
	int64_t bytes, modified_ns;
	int64_t changed_ns; /* which nobody can set back, as tools do with the time of its modification */
};

/** @return false: there is no such file */
bool weir_exempt_file_look(const char *path, struct weir_exempt_file_state *state);
bool weir_exempt_file_same(const struct weir_exempt_file_state *a, const struct weir_exempt_file_state *b);

/** @param text  one entry, terminated. @return WEIR_OK; WEIR_INVALID: what is wrong with it, in words */
WEIR_MUST_USE enum weir_status weir_exempt_entry(const char *text, const struct weir_exempt_taker *taker,
                                                 struct weir_error *error);

/**
 * Reads a file. What was taken before an error stays taken.
 *
 * @param state  returned: the file's as its reading began
 * @param count  returned: entries; more than taker->most: it has more, and the rest was not read
 * @return WEIR_OK; WEIR_IO: it cannot be read; WEIR_INVALID: "PATH:LINE: words"
 */
WEIR_MUST_USE enum weir_status weir_exempt_file_read(const char *path, const struct weir_exempt_taker *taker,
                                                     struct weir_exempt_file_state *state, uint32_t *count,
                                                     struct weir_error *error);

#endif
