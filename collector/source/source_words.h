/* SPDX-License-Identifier: Apache-2.0 */
/* What kinds of sources say alike in their configuration, and of it. */
#ifndef COLLECTOR_SOURCE_WORDS_H
#define COLLECTOR_SOURCE_WORDS_H

#include "collector/source/source.h"

/* What "start" may be: enum source_at_start. */
extern const char *const source_starts[];

/** Appends a string, or a list of them with commas between. */
void source_words_list(struct weir_text *text, const struct weir_json *at);

/** Appends where reading begins: "; at first from the end of what is there". */
void source_words_start(struct weir_text *text, const struct weir_json *config);

/** Appends whether it is followed and from where, or read to its end. @param follows  what an absent "follow" is */
void source_words_manner(struct weir_text *text, const struct weir_json *config, bool follows);

#endif
