/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions and amounts as a person reads them on a terminal. */
#ifndef DEPLOY_WEIR_TERMINAL_READABLE_H
#define DEPLOY_WEIR_TERMINAL_READABLE_H

#include "common/base/text.h"
#include "common/json/json.h"
#include "limiter/shard/shard.h"

/** "2026-11-21 10:00:00 CET  site  203.0.113.9  blocked for 55s: over 10 in 1m", without a newline. */
void words_decision(struct weir_text *text, const struct shard_decision *decision, bool coloured);

/** The same from a decision's JSON line; false (and nothing appended) where it is none. */
bool words_decision_json(struct weir_text *text, struct weir_span json, bool coloured);

/** Whether what is written there may have colours: a terminal, and neither NO_COLOR nor TERM=dumb. */
bool words_coloured(int fd);

/** "1,234,567". */
void words_count(struct weir_text *text, uint64_t number);

/** "1,234 decisions", "1 decision". */
void words_amount(struct weir_text *text, uint64_t number, const char *one);

/** "2026-11-21 11:00:00 CET": in the time zone of whoever reads it (TZ), or UTC if that is none. Machines get Unix time, or UTC. */
void words_time(struct weir_text *text, int64_t time_ms);
/** The same with milliseconds. */
void words_time_ms(struct weir_text *text, int64_t time_ms);

/** A joined key: letters as they stand, so that they can be copied; each byte of what is unseen or no UTF-8 as \xNN. */
void words_key(struct weir_text *text, struct weir_span key);
/** One value of a key: an empty one as "". */
void words_key_value(struct weir_text *text, struct weir_span value);

/** How many columns of a terminal the words take. */
size_t words_columns(struct weir_span words);
/** Appends spaces until what stands behind text->at + from takes so many columns. */
void words_pad(struct weir_text *text, size_t from, size_t columns);

/** What a person wrote, in UTF-8: as it stands, but for control characters, which are \xNN. */
void words_text(struct weir_text *text, const char *string);
/** The same of any bytes: those that are no UTF-8 are U+FFFD. @param columns  at most so many, then "…"; 0: all */
void words_bytes(struct weir_text *text, struct weir_span bytes, unsigned columns);

/** The same of a decision's "limit"; false (and nothing appended) where it is none. */
bool words_limit_json(struct weir_text *text, const json_t *limit);

#endif
