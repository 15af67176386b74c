/* SPDX-License-Identifier: Apache-2.0 */
/* Few words are compared one after another; of many, a hash table says which one to compare. */
#include "common/match/word_set.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <stdlib.h>

enum { FEW_WORDS = 6 };

void weir_word_set_init(struct weir_word_set *set, const struct weir_span *words, uint32_t count)
{
	*set = (struct weir_word_set){.words = weir_alloc(count, sizeof *words), .count = count};
	if (count > 0)
		memcpy(set->words, words, count * sizeof *words);
	if (count <= FEW_WORDS)
		return;
	uint32_t slots = 16;
	while (slots < 2 * count)
		slots *= 2;
	set->table = weir_alloc(slots, sizeof *set->table);
	set->mask = slots - 1;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = (uint32_t)weir_hash64(words[i].at, words[i].length) & set->mask;
		while (set->table[at] != 0 && !weir_span_equal(set->words[set->table[at] - 1], words[i]))
			at = (at + 1) & set->mask;
		set->table[at] = i + 1; /* of a word that is there twice, the last */
	}
}

void weir_word_set_deinit(struct weir_word_set *set)
{
	free(set->words);
	free(set->table);
	*set = (struct weir_word_set){0};
}

bool weir_word_set_find(const struct weir_word_set *set, struct weir_span value)
{
	for (uint32_t at = (uint32_t)weir_hash64(value.at, value.length) & set->mask; set->table[at] != 0;
	     at = (at + 1) & set->mask)
		if (weir_span_equal(set->words[set->table[at] - 1], value))
			return true;
	return false;
}
