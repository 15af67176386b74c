/* SPDX-License-Identifier: Apache-2.0 */
/* A note for each partition: "leaving EPOCH" or "left EPOCH". A note of another epoch is ignored. */
#include "limiter/checkpoint/handover.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SILENT_WAIT_MS = 150,   /* for an announcement: all members learn of a rebalance at about the same time */
	LEAVING_WAIT_MS = 5000, /* for the last checkpoint of an owner that has announced that it is leaving */
};

enum { NAME_BYTES = 40 };

static void name_note(char name[NAME_BYTES], uint32_t partition)
{
	snprintf(name, NAME_BYTES, "limiter-handover-%" PRIu32, partition);
}

enum weir_status handover_announce(struct weir_store *store, uint32_t partition, uint64_t epoch, bool left,
                                   struct weir_error *error)
{
	char name[NAME_BYTES], note[40];
	name_note(name, partition);
	snprintf(note, sizeof note, "%s %" PRIu64, left ? "left" : "leaving", epoch);
	return store->ops->note_put(store, name, weir_span_of(note), error);
}

enum weir_status handover_ask(struct weir_store *store, uint32_t partition, int64_t waited_ms, struct weir_error *error)
{
	struct weir_partition_state state;
	char name[NAME_BYTES], left[40], leaving[40], *note;
	size_t length;
	enum weir_status status = store->ops->inspect(store, WEIR_STORE_ROLE_LIMITER, partition, &state, error);
	if (status != WEIR_OK || state.epoch == 0)
		return status;
	name_note(name, partition);
	status = store->ops->note_get(store, name, &note, &length, error);
	if (status != WEIR_OK)
		return status;
	snprintf(left, sizeof left, "left %" PRIu64, state.epoch);
	snprintf(leaving, sizeof leaving, "leaving %" PRIu64, state.epoch);
	int64_t wait_ms = SILENT_WAIT_MS;
	if (note != NULL && strcmp(note, left) == 0)
		wait_ms = 0;
	else if (note != NULL && strcmp(note, leaving) == 0)
		wait_ms = LEAVING_WAIT_MS;
	free(note);
	return waited_ms >= wait_ms ? WEIR_OK
	                            : weir_fail(error, WEIR_AGAIN, "partition %" PRIu32 " is being handed over", partition);
}
