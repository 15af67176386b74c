/* SPDX-License-Identifier: Apache-2.0 */
/* One note a partition and kind, such as "limiter-stopped-P", with "EPOCH WORDS". */
#include "common/cluster/partition_note.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 40 };

static void name_note(char name[NAME_BYTES], enum weir_partition_note which, uint32_t partition)
{
	static const char *const names[] = {
		[WEIR_PARTITION_STOPPED] = "stopped",
		[WEIR_PARTITION_UNARCHIVED] = "unarchived",
	};
	snprintf(name, NAME_BYTES, "limiter-%s-%" PRIu32, names[which], partition);
}

static enum weir_status stored_epoch(struct weir_store *store, uint32_t partition, uint64_t *epoch,
                                     struct weir_error *error)
{
	struct weir_partition_state state;
	enum weir_status status = store->ops->inspect(store, WEIR_STORE_ROLE_LIMITER, partition, &state, error);
	*epoch = status == WEIR_OK ? state.epoch : 0;
	return status;
}

enum weir_status weir_partition_note_put(struct weir_store *store, enum weir_partition_note which, uint32_t partition,
                                         uint64_t epoch, const char *words, struct weir_error *error)
{
	char name[NAME_BYTES], note[WEIR_ERROR_TEXT_BYTES + 24];
	uint64_t stored;
	enum weir_status status = stored_epoch(store, partition, &stored, error);
	bool over = epoch != 0 && epoch < stored; /* its note would overwrite that of who has the partition now */
	if (status != WEIR_OK || over)
		return status;
	epoch = epoch == 0 ? stored : epoch;
	name_note(name, which, partition);
	snprintf(note, sizeof note, "%" PRIu64 " %s", epoch, words);
	return store->ops->note_put(store, name, weir_span_of(note), error);
}

enum weir_status weir_partition_note_get(struct weir_store *store, enum weir_partition_note which, uint32_t partition,
                                         char **words, struct weir_error *error)
{
	char name[NAME_BYTES], *note, *end;
	size_t length;
	uint64_t epoch;
	*words = NULL;
	name_note(name, which, partition);
	enum weir_status status = store->ops->note_get(store, name, &note, &length, error);
	if (status != WEIR_OK || note == NULL)
		return status;
	status = stored_epoch(store, partition, &epoch, error);
	uint64_t noted = strtoull(note, &end, 10);
	if (status != WEIR_OK || *end != ' ' || end[1] == '\0' || noted != epoch) {
		free(note);
		return status;
	}
	memmove(note, end + 1, strlen(end + 1) + 1);
	*words = note;
	return WEIR_OK;
}
