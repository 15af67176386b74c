/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON written straight into a text: the writer places commas, colons and brackets, and escapes strings.
 *
 * A value takes a name within an object, and none (NULL) within an array or at the top. Wrong nesting is a bug of the
 * caller and asserted. Names are written as strings are: any bytes are fine.
 *
 *   struct weir_json_writer json = weir_json_writer(&text);
 *   weir_json_write_object(&json, NULL);
 *   weir_json_write_uint(&json, "version", 3);
 *   weir_json_write_end(&json);
 *   weir_json_write_newline(&json);
 *
 * What is written per event (decisions, the log's JSON lines) is put together by hand where it is made.
 */
#ifndef WEIR_COMMON_JSON_WRITER_H
#define WEIR_COMMON_JSON_WRITER_H

#include "common/base/text.h"

#include <stdbool.h>

enum { WEIR_JSON_DEPTH_MAX = 16 };

/* Where the writing stands. */
struct weir_json_writer {
	struct weir_text *text; /* borrowed; its end is the writer's until the top value is whole */
	unsigned depth;         /* objects and arrays that are open; 0: at the top */
	struct {
		bool array, any; /* any: it has a value, so the next one is behind a comma */
	} open[WEIR_JSON_DEPTH_MAX + 1];
};

static inline struct weir_json_writer weir_json_writer(struct weir_text *text)
{
	return (struct weir_json_writer){.text = text};
}

void weir_json_write_object(struct weir_json_writer *json, const char *name);
void weir_json_write_array(struct weir_json_writer *json, const char *name);
/** Closes the innermost object or array. */
void weir_json_write_end(struct weir_json_writer *json);
/** A line's end behind a whole value; another value may follow, on a line of its own. */
void weir_json_write_newline(struct weir_json_writer *json);

/** As weir_text_json() writes it: each byte outside UTF-8 as U+FFFD. */
void weir_json_write_string(struct weir_json_writer *json, const char *name, struct weir_span bytes);
/** A string that ends with a zero; NULL gives null. */
void weir_json_write_words(struct weir_json_writer *json, const char *name, const char *words);
/** Bytes as a string of hexadecimal digits. */
void weir_json_write_hex(struct weir_json_writer *json, const char *name, const void *bytes, size_t length);
void weir_json_write_int(struct weir_json_writer *json, const char *name, int64_t number);
void weir_json_write_uint(struct weir_json_writer *json, const char *name, uint64_t number);
/** A finite number with so many digits behind its point. */
void weir_json_write_fixed(struct weir_json_writer *json, const char *name, double number, int digits);
void weir_json_write_bool(struct weir_json_writer *json, const char *name, bool value);
void weir_json_write_null(struct weir_json_writer *json, const char *name);

/** What stands before a value. The caller appends one JSON value, written elsewhere, to the text that it gives. */
struct weir_text *weir_json_write_value(struct weir_json_writer *json, const char *name);
/** The members of an object that is there as JSON, within the one that is open. */
void weir_json_write_members(struct weir_json_writer *json, struct weir_span object);

#endif
