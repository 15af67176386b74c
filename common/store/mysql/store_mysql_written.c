/* SPDX-License-Identifier: Apache-2.0 */
/* A list: it holds one partition's segments as a rule, and is empty between checkpoints. */
#include "common/store/mysql/store_mysql_written.h"

#include "common/base/alloc.h"

void weir_mysql_written_note(struct weir_mysql_written *written, uint32_t partition, uint32_t segment,
                             uint64_t connection)
{
	for (size_t i = 0; i < written->count; i++) {
		size_t at = (written->next + i) % written->count;
		struct weir_mysql_blob_place *place = &written->places[at];
		if (place->partition == partition && place->segment == segment) {
			place->connection = connection;
			written->next = at + 1;
			return;
		}
	}
	if (written->count == written->capacity) {
		written->capacity = written->capacity == 0 ? 256 : written->capacity * 2;
		written->places = weir_realloc(written->places, written->capacity, sizeof *written->places);
	}
	written->places[written->count++] = (struct weir_mysql_blob_place){partition, segment, connection};
}

bool weir_mysql_written_over(const struct weir_mysql_written *written, uint32_t partition, uint64_t connection)
{
	for (size_t i = 0; i < written->count; i++)
		if (written->places[i].partition == partition && written->places[i].connection != connection)
			return false;
	return true;
}

void weir_mysql_written_forget(struct weir_mysql_written *written, uint32_t partition)
{
	size_t kept = 0;
	for (size_t i = 0; i < written->count; i++)
		if (written->places[i].partition != partition)
			written->places[kept++] = written->places[i];
	written->count = kept;
	written->next = 0;
}
