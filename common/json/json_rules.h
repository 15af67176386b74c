/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object's members as a table: what each is called, what it accepts, and where it goes. What is not in the table is
 * refused, with the nearest name; so a reader's members are stated once.
 */
#ifndef WEIR_COMMON_JSON_RULES_H
#define WEIR_COMMON_JSON_RULES_H

#include "common/json/json.h"

#include <stddef.h>

enum { WEIR_JSON_RULES_MAX = 32 };

/* What a member accepts, and the type that `offset` leads to. */
enum weir_json_kind {
	WEIR_JSON_READ_ELSEWHERE = 0, /* by whoever knows more of it; nothing is checked but the name */
	WEIR_JSON_FLAG,               /* bool */
	WEIR_JSON_TEXT,               /* const char *, borrowed from the document */
	WEIR_JSON_WORD,               /* int: the index in `words` */
	WEIR_JSON_NUMBER,             /* int64_t, as are the next two: least..most */
	WEIR_JSON_SIZE,               /* bytes */
	WEIR_JSON_TIME,               /* ms */
};

struct weir_json_rule {
	const char *name; /* NULL ends the table */
	enum weir_json_kind kind;
	size_t offset; /* in the struct that is filled */
	int64_t least, most;
	const char *const *words; /* NULL-terminated */
	const char *needed;       /* what to put there, for whoever left it out; NULL: it may be left out */
	const char *meaning;      /* for a reference, in one sentence; NULL: it has none */
	json_t *(*shape)(void);   /* what it may be (json_shape.h), where its kind does not say it all; or NULL */
};

/** Refuses members that no rule names. */
WEIR_MUST_USE enum weir_status weir_json_known(const struct weir_json *object, const struct weir_json_rule *rules,
                                               struct weir_error *error);

/**
 * Reads the members in the rules' order. An absent one leaves what is there; one that is needed is refused.
 *
 * @param into  the struct that the rules' offsets are of
 * @return WEIR_OK; WEIR_INVALID with the path, the line and what would be accepted
 */
WEIR_MUST_USE enum weir_status weir_json_read(const struct weir_json *object, const struct weir_json_rule *rules,
                                              void *into, struct weir_error *error);

#endif
