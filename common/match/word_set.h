/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed set of words, asked once or more for every record: is this value one of them? */
#ifndef WEIR_WORD_SET_H
#define WEIR_WORD_SET_H

#include "common/base/span.h"

struct weir_word_set {
	struct weir_span *words; /* the bytes are borrowed */
	uint32_t count;
	uint32_t *table; /* place in words + 1, or 0; NULL where the words are few */
	uint32_t mask;
};

/** @param words  borrowed: their bytes must outlive the set; may hold a word twice */
void weir_word_set_init(struct weir_word_set *set, const struct weir_span *words, uint32_t count);
void weir_word_set_deinit(struct weir_word_set *set);

/** What word_set_has does for many words. */
bool weir_word_set_find(const struct weir_word_set *set, struct weir_span value);

static inline bool weir_word_set_has(const struct weir_word_set *set, struct weir_span value)
{
	if (set->table != NULL)
		return weir_word_set_find(set, value);
	for (uint32_t i = 0; i < set->count; i++)
		if (weir_span_equal(set->words[i], value))
			return true;
	return false;
}

#endif
