/* SPDX-License-Identifier: Apache-2.0 */
/* A limiter's checkpoint passes an offset once the judged frame of it is acknowledged, so what was judged is on its topic. */
#include "archiver/arming/passage.h"

#include "common/base/alloc.h"

#include <stdlib.h>

void passage_deinit(struct passage *passage)
{
	free(passage->ends);
	*passage = (struct passage){.phase = PASSAGE_IDLE};
}

/* @param ends  0 where a partition has nothing */
static enum weir_status note_ends(struct weir_bus *bus, enum weir_topic topic, uint64_t *ends, struct weir_error *error)
{
	for (uint32_t i = 0; i < bus->partitions; i++) {
		uint64_t first, next;
		enum weir_status status = bus->ops->extent(bus, topic, i, &first, &next, error);
		if (status != WEIR_OK)
			return status;
		ends[i] = first < next ? next : 0;
	}
	return WEIR_OK;
}

/* Of a topic that was made anew the end is lower: its offsets begin at 0 again. */
static enum weir_status lower_end(struct passage *passage, struct weir_bus *bus, enum weir_topic topic,
                                  uint32_t partition, struct weir_error *error)
{
	uint64_t first, next;
	enum weir_status status = bus->ops->extent(bus, topic, partition, &first, &next, error);
	if (status == WEIR_OK && next < passage->ends[partition])
		passage->ends[partition] = first < next ? next : 0;
	return status;
}

static enum weir_status stored_past(struct passage *passage, struct weir_bus *bus, struct weir_store *store,
                                    enum weir_topic topic, int role, bool *past, struct weir_error *error)
{
	*past = true;
	for (uint32_t i = 0; i < bus->partitions && *past; i++) {
		struct weir_partition_state state;
		if (passage->ends[i] == 0)
			continue;
		enum weir_status status = store->ops->inspect(store, role, i, &state, error);
		if (status != WEIR_OK)
			return status;
		*past = state.checkpoint > 0 && state.next_offset >= passage->ends[i];
		passage->behind = i;
		if (!*past && (status = lower_end(passage, bus, topic, i, error)) != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

enum weir_status passage_begin(struct passage *passage, struct weir_bus *bus, struct weir_error *error)
{
	if (passage->ends == NULL)
		passage->ends = weir_alloc(bus->partitions, sizeof *passage->ends);
	enum weir_status status = note_ends(bus, WEIR_TOPIC_EVENTS, passage->ends, error);
	passage->phase = status == WEIR_OK ? PASSAGE_JUDGING : PASSAGE_IDLE;
	return status;
}

enum weir_status passage_look(struct passage *passage, struct weir_bus *bus, struct weir_store *store, bool *passed,
                              struct weir_error *error)
{
	bool past = false;
	enum weir_status status = WEIR_OK;
	*passed = false;
	if (passage->phase == PASSAGE_JUDGING) {
		status = stored_past(passage, bus, store, WEIR_TOPIC_EVENTS, WEIR_STORE_ROLE_LIMITER, &past, error);
		if (status != WEIR_OK || !past)
			return status;
		status = note_ends(bus, WEIR_TOPIC_JUDGED, passage->ends, error);
		if (status == WEIR_OK)
			passage->phase = PASSAGE_ARCHIVING;
	}
	if (status == WEIR_OK && passage->phase == PASSAGE_ARCHIVING)
		status = stored_past(passage, bus, store, WEIR_TOPIC_JUDGED, WEIR_STORE_ROLE_ARCHIVER, passed, error);
	if (*passed)
		passage->phase = PASSAGE_IDLE;
	return status;
}
