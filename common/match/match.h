/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "match": which records something is about, by their fields. Parsed and checked once, immutable afterwards; who tests
 * records by it is common/matcher/.
 */
#ifndef WEIR_COMMON_MATCH_H
#define WEIR_COMMON_MATCH_H

#include "common/base/status.h"
#include "common/base/text.h"
#include "common/json/json.h"

enum {
	WEIR_FIELD_NAME_MAX_BYTES = 256,
	WEIR_MATCH_FIELDS_MAX = 16,
	WEIR_MATCH_VALUES_MAX = 4096,
	WEIR_MATCH_VALUE_MAX_BYTES = 4096,
};

/*
 * One value of "match": exact bytes, or with '*' a pattern; for status three digits, or a digit and "xx". An address, a
 * network or a range of addresses stands for the addresses in it, however they are written.
 */
struct weir_match_value {
	char *text;
	uint32_t length;
	bool wildcard;
	bool network;
};

/* One field of "match": any of its values, or none of them. A field that has both stands twice. */
struct weir_match_field {
	char *field;
	bool negated;
	bool any_case; /* letters of ASCII are alike, capital or small */
	struct weir_match_value *values;
	uint32_t value_count;
};

struct weir_match {
	struct weir_match_field *fields; /* all of them must hold */
	uint32_t field_count;
};

/**
 * Parses an object of field: value, list of values, or {"is": …, "not": …, "ignore_case": true}; an absent one leaves
 * the match empty.
 *
 * @param match  zeroed; the caller's to free, on failure too
 */
WEIR_MUST_USE enum weir_status weir_match_parse(const struct weir_json *at, struct weir_match *match,
                                                struct weir_error *error);
/** What the parser takes, as the shape "match" that others name (common/json/json_shape.h). */
json_t *weir_match_shape(void);
void weir_match_free(struct weir_match *match);

/** The object again, each field with a list, or an object of lists where there is a "not"; returned. */
json_t *weir_match_json(const struct weir_match *match);

/** Appends "POST requests to /login or /api/... with status 4xx and user "a" or "b"". */
void weir_match_describe(struct weir_text *text, const struct weir_match *match);

#endif
