/* SPDX-License-Identifier: Apache-2.0 */
/* A document, as the files of this folder share it. */
#ifndef WEIR_COMMON_JSON_INTERNAL_H
#define WEIR_COMMON_JSON_INTERNAL_H

#include "common/json/json.h"

/* What reading a document again and again has left out of it (json_refused.c). */
struct json_refusals {
	char path[WEIR_JSON_PATH_BYTES]; /* of the last refusal; "": none, or of the whole document */
	struct json_left_out {
		char path[WEIR_JSON_PATH_BYTES];
		char *name;          /* of an object that has one; else NULL */
		const json_t *array; /* where it was, at which place of the text; NULL: in an object */
		size_t index;
	} * left_out;
	size_t count;
};

struct weir_json_document {
	char *name;
	char *text;
	size_t length;
	json_t *root;
	struct json_refusals *refusals; /* also of a document that is only read */
};

/** json_relax.c: turns comments, and commas before a closing bracket, into blanks: every byte keeps its place. */
void json_relax(char *text, size_t length);

/** json_refused.c: the place in the text of an element of an array. */
size_t json_index_in_text(const struct weir_json_document *document, const json_t *array, size_t index);
void json_refusals_free(struct json_refusals *refusals);

#endif
