/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of one segment file. It is rebuilt from the file's record headers when
 * it is needed, so it is not stored.
 */
#include "common/bus/local/bus_local_index.h"

#include "common/base/alloc.h"

#include <stdlib.h>

struct weir_bus_index *weir_bus_index_new(uint32_t partitions)
{
	struct weir_bus_index *index = weir_alloc(1, sizeof *index);
	index->of = weir_alloc(partitions, sizeof *index->of);
	index->partitions = partitions;
	index->bytes = sizeof *index + partitions * sizeof *index->of;
	return index;
}

void weir_bus_index_free(struct weir_bus_index *index)
{
	if (index == NULL)
		return;
	for (uint32_t i = 0; i < index->partitions; i++)
		free(index->of[i].places);
	free(index->of);
	free(index);
}

void weir_bus_index_add(struct weir_bus_index *index, uint32_t partition, struct weir_bus_place place)
{
	struct weir_bus_index_partition *of = &index->of[partition];
	if (of->count == of->capacity) {
		uint32_t capacity = of->capacity > 0 ? of->capacity * 2 : 16;
		of->places = weir_realloc(of->places, capacity, sizeof *of->places);
		index->bytes += (uint64_t)(capacity - of->capacity) * sizeof *of->places;
		of->capacity = capacity;
	}
	of->places[of->count++] = place;
}
