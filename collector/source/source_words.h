/* SPDX-License-Identifier: Apache-2.0 */
/* What several kinds of sources share in reading and describing their configuration. */
#ifndef COLLECTOR_SOURCE_WORDS_H
#define COLLECTOR_SOURCE_WORDS_H

#include "collector/source/source.h"

/* The values of "start", by enum source_at_start. */
extern const char *const source_starts[];

/* In words, by SOURCE_EXACTLY_ONCE - guarantee: the strongest first. */
extern const char *const source_guarantees[];

/** A guarantee in words: "exactly once". */
static inline const char *source_guarantee_text(enum source_guarantee guarantee)
{
	return source_guarantees[SOURCE_EXACTLY_ONCE - guarantee];
}

/** The shape of "format", which the source does not read (common/json/json_shape.h). */
json_t *source_format_shape(void);

/** Appends a stream's problem, with its name where the words do not have it themselves. */
void source_words_problem(struct weir_text *text, const struct source_status *status);

/** Appends a string, or a list of them with commas between. */
void source_words_list(struct weir_text *text, const struct weir_json *at);

/** Appends where reading begins: "; initially from the end of what exists". */
void source_words_start(struct weir_text *text, const struct weir_json *config);

/** Appends whether it is followed and from where, or read to its end. @param follows  the default of "follow" */
void source_words_manner(struct weir_text *text, const struct weir_json *config, bool follows);

#endif
