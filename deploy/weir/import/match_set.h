/* SPDX-License-Identifier: Apache-2.0 */
/* What a zone asks of its records, while it is put together: for each field values that it must have, or must not. */
#ifndef DEPLOY_WEIR_IMPORT_MATCH_SET_H
#define DEPLOY_WEIR_IMPORT_MATCH_SET_H

#include "common/base/text.h"

#include <stdbool.h>

enum { MATCH_FIELDS_MAX = 32, MATCH_VALUES_MAX = 256 };

/* How a value is compared. */
enum match_how { MATCH_IS, MATCH_BEGINS, MATCH_ENDS, MATCH_CONTAINS, MATCH_WILD /* its * is any text */ };

struct match_values {
	const char *field;        /* of weir's records; borrowed */
	struct weir_text list[2]; /* JSON: those that it must have, must not have */
	unsigned count[2];
	unsigned clauses[2]; /* that put values in */
};

struct match_set {
	struct match_values fields[MATCH_FIELDS_MAX];
	unsigned count;
};

/**
 * Adds a value that the field must (not) have, as one of those that the same clause has.
 *
 * @param first  of its clause
 * @return NULL: done; else why weir cannot ask that, in words
 */
const char *match_add(struct match_set *set, const char *field, bool not, bool first, enum match_how how,
                      const char *value);
/** {"field": [...], …}; without fields {}. */
void match_write(const struct match_set *set, struct weir_text *out);
bool match_has(const struct match_set *set, const char *field);
void match_deinit(struct match_set *set);

#endif
