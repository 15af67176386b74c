/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed set of words, asked once or more for every record: is this value one of them? */
#ifndef COLLECTOR_WORD_SET_H
#define COLLECTOR_WORD_SET_H

#include "common/base/span.h"

struct word_set {
	struct weir_span *words; /* the bytes are borrowed */
	uint32_t count;
	uint32_t *table; /* place in words + 1, or 0; NULL where the words are few */
	uint32_t mask;
};

/** @param words  borrowed: their bytes must outlive the set; may hold a word twice */
void word_set_init(struct word_set *set, const struct weir_span *words, uint32_t count);
void word_set_deinit(struct word_set *set);

/** What word_set_has does for many words. */
bool word_set_find(const struct word_set *set, struct weir_span value);

static inline bool word_set_has(const struct word_set *set, struct weir_span value)
{
	if (set->table != NULL)
		return word_set_find(set, value);
	for (uint32_t i = 0; i < set->count; i++)
		if (weir_span_equal(set->words[i], value))
			return true;
	return false;
}

#endif
