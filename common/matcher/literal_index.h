/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of many literals those that a value begins with, or is: a trie, of which a walk looks at those bytes alone that tell
 * literals apart.
 *
 * A value costs a step for each place where literals part, one comparison with a literal, and what it finds. It costs no
 * more for being longer than the literals, whoever wrote it. A literal costs at most WEIR_LITERAL_INDEX_BYTES and its owner.
 */
#ifndef WEIR_LITERAL_INDEX_H
#define WEIR_LITERAL_INDEX_H

#include "common/base/span.h"

/* Something that an owner wants: values that begin with it, or only the value that it is. */
struct weir_literal {
	struct weir_span text;
	uint32_t owner;
	bool whole;
};

/* A text of one literal or more. */
struct weir_literal_key {
	struct weir_span text;
	uint32_t
		outer; /* of the keys that it begins with, the longest that someone wants as a beginning; or WEIR_LITERAL_NONE */
	uint32_t beginnings, wholes,
		end; /* places in `owners`: of those that want what begins with it; those that want it */
};

/* Keys that have their first `depth` bytes in common, and part there; or one key. */
struct weir_literal_node {
	uint32_t depth;
	uint32_t key; /* the first of them: the shortest, if one ends at depth */
	uint32_t key_end;
	uint32_t children, child_count; /* nodes, one after another */
};

enum {
	WEIR_LITERAL_NONE = UINT32_MAX,
	WEIR_LITERAL_INDEX_BYTES = sizeof(struct weir_literal_key) + 2 * sizeof(struct weir_literal_node) + 2
};

struct weir_literal_index {
	struct weir_literal_key *keys; /* in order */
	uint32_t *owners;
	struct weir_literal_node *nodes; /* the first is the root */
	char *bytes;                     /* of each node the byte at its parent's depth */
	uint32_t key_count, node_count;
};

/** By text. Equal ones: those that are beginnings first. */
int weir_literal_compare(const void *a, const void *b);

/** How many bytes two texts have in common. */
uint32_t weir_literal_common(struct weir_span a, struct weir_span b);

/** @param literals  sorted; the bytes of the texts are borrowed, and must outlive the index */
void weir_literal_index_init(struct weir_literal_index *index, const struct weir_literal *literals, uint32_t count);
void weir_literal_index_deinit(struct weir_literal_index *index);

/** Sets the bit of each owner of a literal that fits the value. @thread any */
void weir_literal_index_mark(const struct weir_literal_index *index, struct weir_span value, uint64_t *owners);

#endif
