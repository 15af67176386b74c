/* SPDX-License-Identifier: Apache-2.0 */
/* A text in which each `*` stands for any run of bytes, an empty one too. Case counts; nothing else is special. */
#ifndef WEIR_COMMON_WILDCARD_H
#define WEIR_COMMON_WILDCARD_H

#include "common/base/span.h"

/* "a*b*c*d": what is before the first star, what is after the last, and the pieces between. */
struct wildcard {
	struct weir_span prefix, suffix; /* of the pattern */
	struct weir_span *pieces;        /* none of them empty */
	uint32_t piece_count;
};

/** @param pattern  has at least one star; borrowed: must outlive the wildcard */
void wildcard_init(struct wildcard *wildcard, struct weir_span pattern);
void wildcard_deinit(struct wildcard *wildcard);

/** In time linear in the value's length: no pattern makes it try again. */
bool wildcard_match(const struct wildcard *wildcard, struct weir_span value);

/** Whether one of them matches. */
static inline bool wildcards_match(const struct wildcard *wildcards, uint32_t count, struct weir_span value)
{
	for (uint32_t i = 0; i < count; i++)
		if (wildcard_match(&wildcards[i], value))
			return true;
	return false;
}

#endif
