/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a value of a configuration may be, in the words of JSON Schema (2020-12): for each getter of json.h the shape of
 * what it takes. Whoever reads a value says its shape beside its reader, from the same tables and bounds.
 *
 * A shape says at most what the reader refuses: what depends on other values, or on the machine, is the reader's alone.
 * Each is returned, as jansson's reference; one that is given to another is taken.
 */
#ifndef WEIR_COMMON_JSON_SHAPE_H
#define WEIR_COMMON_JSON_SHAPE_H

#include "common/json/json_rules.h"

json_t *weir_shape_text(void);
/** A string that is not empty, of at most so many bytes; 0: any number. */
json_t *weir_shape_name(size_t most_bytes);
/** @param regex  of the whole string, as ECMA-262 has them */
json_t *weir_shape_pattern(const char *regex);
json_t *weir_shape_flag(void);
json_t *weir_shape_number(int64_t least, int64_t most);
json_t *weir_shape_time(void);
json_t *weir_shape_size(int64_t least, int64_t most);
/** One of the NULL-terminated words. */
json_t *weir_shape_words(const char *const *words);
/** As weir_json_secret() takes it. */
json_t *weir_shape_secret(void);

json_t *weir_shape_list(size_t least, size_t most, json_t *element);
/** One alone, or a list of 1 to `most`. */
json_t *weir_shape_some(size_t most, json_t *element);
json_t *weir_shape_either(json_t *one, json_t *other);
/** An object of a library's own properties: strings, whole numbers, true, false, secrets. */
json_t *weir_shape_properties(void);
/** An object whose members all have one shape, under names of the reader's. */
json_t *weir_shape_map(json_t *value);
/** The shape that the whole schema has under this name in "$defs". */
json_t *weir_shape_named(const char *name);

/** An object of the members in the rules: no other, and those that are needed. */
json_t *weir_shape_object(const struct weir_json_rule *rules);

/** An object that is one of several kinds: of this one if the member is the kind's name. @return the object */
json_t *weir_shape_tagged(json_t *object, const char *member, const char *kind);
/** One of several, of which one alone can fit. @param kinds  a list; taken */
json_t *weir_shape_one_of(json_t *kinds);
/** Makes a member needed that the object's rules leave to another reader. @return the object */
json_t *weir_shape_needs(json_t *object, const char *member);

/** Says what a member means. @return the shape */
json_t *weir_shape_explained(json_t *shape, const char *meaning);

#endif
