/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of a record beside its events, where a zone's "history" names fields: for each the name and the value, as
 * bytes of any kind, each behind its length as a varint. A value that is too long is cut and ends with "…".
 */
#ifndef WEIR_COMMON_FRAME_FIELDS_H
#define WEIR_COMMON_FRAME_FIELDS_H

#include "common/base/text.h"

enum {
	WEIR_FIELD_VALUE_MAX_BYTES = 512,
	WEIR_FIELDS_MAX_BYTES = 64 * 1024, /* of one record: a record has at most 64 fields, with names of 256 bytes */
};

/** Appends a field. @param name, value  borrowed */
void weir_fields_put(struct weir_text *fields, struct weir_span name, struct weir_span value);

/**
 * Takes the next field.
 *
 * @param rest  what is left, moved behind it
 * @return false: there is none; rest is then empty, unless the bytes are damaged
 */
bool weir_fields_next(struct weir_span *rest, struct weir_span *name, struct weir_span *value);

/** Finds a value by its name. @return at NULL: there is none */
struct weir_span weir_fields_find(struct weir_span fields, const char *name);

/**
 * Appends a JSON object of those fields that are there, in the order of the names; bytes outside UTF-8 become U+FFFD.
 *
 * @param names  NULL: all fields, as they lie
 * @return false: none of them is there, and nothing was appended
 */
bool weir_fields_json(struct weir_text *text, struct weir_span fields, char *const *names, uint32_t count);

#endif
