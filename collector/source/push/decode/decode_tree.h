/* SPDX-License-Identifier: Apache-2.0 */
/* What the decoders of JSON documents share. Only decode_*.c include it. */
#ifndef COLLECTOR_SOURCE_PUSH_DECODE_TREE_H
#define COLLECTOR_SOURCE_PUSH_DECODE_TREE_H

#include "collector/source/push/decode/decode.h"
#include "common/json/json.h"

/**
 * Parses a body that is one document.
 *
 * @param tree  returned: json_decref()
 * @return WEIR_OK; WEIR_INVALID with the byte and what was expected; WEIR_FULL: its tree would be too large
 */
WEIR_MUST_USE enum weir_status decode_tree(struct weir_span body, const char *what, json_t **tree,
                                           struct weir_error *error);

/**
 * The array that a member is; NULL: it is absent or null, an empty one. Another thing is refused, and so is an array of
 * another name in its place: nothing of it would be taken, and its sender would be told that all was.
 */
WEIR_MUST_USE enum weir_status decode_list(json_t *object, const char *name, const json_t **list,
                                           struct weir_error *error);

/** Appends `"name":` and a comma before it, where the object has a member already. */
void decode_put_name(struct weir_text *line, const char *name);
/** Appends a value as compact JSON. */
void decode_put_value(struct weir_text *line, const json_t *value);
/** Appends `"name":"text"`, if the value is a text that is not empty. */
void decode_put_text(struct weir_text *line, const char *name, const json_t *value);
/**
 * Appends `"time":` of nanoseconds as a text or a number, in the form of ISO 8601, which every "unit" of a format reads; a
 * number outside 2000 to 2100 as it is.
 *
 * @return false: it is neither, or 0; nothing is appended
 */
bool decode_put_time(struct weir_text *line, const json_t *nanoseconds);

#endif
