/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with open addressing, at most half full. */
#include "collector/source/file/file_index.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS_LEAST = 64 };

static void put(struct file_index *index, uint64_t hash, struct file_log *log)
{
	size_t at = (size_t)hash & (index->capacity - 1);
	while (index->slots[at].log != NULL)
		at = (at + 1) & (index->capacity - 1);
	index->slots[at] = (struct file_index_slot){hash, log};
	index->count++;
}

void file_index_add(struct file_index *index, const char *path, struct file_log *log)
{
	if (2 * (index->count + 1) > index->capacity) {
		struct file_index before = *index;
		index->capacity = before.capacity != 0 ? 2 * before.capacity : SLOTS_LEAST;
		index->count = 0;
		index->slots = weir_alloc(index->capacity, sizeof *index->slots);
		for (size_t i = 0; i < before.capacity; i++)
			if (before.slots[i].log != NULL)
				put(index, before.slots[i].hash, before.slots[i].log);
		free(before.slots);
	}
	put(index, weir_hash64(path, strlen(path)), log);
}

struct file_log *file_index_next(const struct file_index *index, const char *path, size_t *turn)
{
	if (index->capacity == 0)
		return NULL;
	uint64_t hash = weir_hash64(path, strlen(path));
	while (*turn < index->capacity) {
		const struct file_index_slot *slot = &index->slots[((size_t)hash + (*turn)++) & (index->capacity - 1)];
		if (slot->log == NULL)
			return NULL;
		if (slot->hash == hash)
			return slot->log;
	}
	return NULL;
}

void file_index_deinit(struct file_index *index)
{
	free(index->slots);
	*index = (struct file_index){.slots = NULL};
}
