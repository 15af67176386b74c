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

/* clang-format off */
/* Rows of settings that sources have alike (common/json/json_rules.h). @param offset_  of the member that is read into */
#define SOURCE_FORMAT_RULE \
	{.name = "format", .meaning = "the format of its lines", .shape = source_format_shape}
#define SOURCE_START_RULE(offset_) \
	{.name = "start", .kind = WEIR_JSON_WORD, .offset = (offset_), .words = source_starts, \
	 .meaning = "where to begin at the very first start; \"beginning\" by default"}
#define SOURCE_LINE_MAX_RULE(offset_) \
	{.name = "line_max", .kind = WEIR_JSON_SIZE, .offset = (offset_), .least = SOURCE_LINE_LEAST_BYTES, \
	 .most = SOURCE_LINE_MOST_BYTES, .meaning = "replaces collector.line_max: a longer line is cut there"}
/* clang-format on */

/** Appends a stream's problem, with its name where the words do not have it themselves. */
void source_words_problem(struct weir_text *text, const struct source_status *status);

/** Appends a string, or a list of them with commas between. */
void source_words_list(struct weir_text *text, const struct weir_json *at);

/** Appends where reading begins: "; initially from the end of what exists". */
void source_words_start(struct weir_text *text, const struct weir_json *config);

/** Appends whether it is followed and from where, or read to its end. @param follows  the default of "follow" */
void source_words_manner(struct weir_text *text, const struct weir_json *config, bool follows);

#endif
