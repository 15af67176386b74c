/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing text buffer, and JSON written straight into it.
 *
 * For output that is made often (decisions, dead letters, summaries), where
 * building a tree first would cost more than the work itself.
 */
#ifndef WEIR_COMMON_TEXT_H
#define WEIR_COMMON_TEXT_H

#include "common/base/span.h"
#include "common/base/status.h"

/* Zero-initialised is empty. Not terminated. Owned by one thread. */
struct weir_text {
	char *at;
	size_t length;
	size_t capacity;
};

void weir_text_deinit(struct weir_text *text);

static inline void weir_text_clear(struct weir_text *text)
{
	text->length = 0;
}

/** The same; room of more than `most` bytes is given back. */
static inline void weir_text_clear_to(struct weir_text *text, size_t most)
{
	if (text->capacity > most)
		weir_text_deinit(text);
	weir_text_clear(text);
}

static inline struct weir_span weir_text_span(const struct weir_text *text)
{
	return (struct weir_span){.at = text->at, .length = (uint32_t)text->length};
}

/** Room for `bytes` more behind the end; gives where they go. The caller adds to length what it used. */
char *weir_text_reserve(struct weir_text *text, size_t bytes);

void weir_text_append(struct weir_text *text, const void *bytes, size_t length);
void weir_text_puts(struct weir_text *text, const char *string);
void weir_text_int(struct weir_text *text, int64_t number);
void weir_text_uint(struct weir_text *text, uint64_t number);
void weir_text_printf(struct weir_text *text, const char *format, ...) WEIR_PRINTF(2, 3);

/** "512 bytes", "26.0 MiB". */
void weir_text_size(struct weir_text *text, uint64_t bytes);

/** How many bytes the character of UTF-8 at `at` has; 0: none is whole there (no surrogate, nothing overlong). */
size_t weir_utf8_sequence(const void *at, size_t left);

/** As it stands, but each byte that is not part of valid UTF-8 as U+FFFD. */
void weir_text_utf8(struct weir_text *text, struct weir_span bytes);

/**
 * A JSON string with its quotes: `"`, `\` and control characters (of C1 too) escaped, each byte that is not part of
 * valid UTF-8 written as U+FFFD, everything else as it stands. So any bytes give valid JSON.
 */
void weir_text_json(struct weir_text *text, struct weir_span bytes);

/**
 * The same, but what is no UTF-8 stands as it is: such a line is no valid JSON, and who reads lines of a log gets back the
 * bytes that were there.
 */
void weir_text_json_bytes(struct weir_text *text, struct weir_span bytes);

#endif
