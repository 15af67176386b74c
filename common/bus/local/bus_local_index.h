/* SPDX-License-Identifier: Apache-2.0 */
/* Where the messages of a segment file are, by partition: an offset is found by a subtraction. */
#ifndef WEIR_COMMON_BUS_LOCAL_INDEX_H
#define WEIR_COMMON_BUS_LOCAL_INDEX_H

#include <stdint.h>

/* A record within a file. */
struct weir_bus_place {
	uint32_t at;
	uint32_t bytes; /* including its header */
};

/* It takes 8 bytes per message. */
struct weir_bus_index {
	struct weir_bus_index_partition {
		struct weir_bus_place *places; /* [0] is the partition's first offset in this segment */
		uint32_t count, capacity;
	} * of;
	uint32_t partitions;
	uint64_t bytes; /* of memory */
};

struct weir_bus_index *weir_bus_index_new(uint32_t partitions);
void weir_bus_index_free(struct weir_bus_index *index);
void weir_bus_index_add(struct weir_bus_index *index, uint32_t partition, struct weir_bus_place place);

#endif
