/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is one writer per partition, which keeps its buffers. A frame is emitted
 * as soon as it might be too full for one more record, so the events of a record
 * always fit and are never split between two frames.
 */
#include "collector/send/framer.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>

struct framer {
	uint32_t partitions;
	framer_emit *emit;
	void *context;
	uint8_t source[WEIR_SOURCE_ID_BYTES]; /* of the open frames */
	uint64_t policy_version;              /* of the open frames */
	uint64_t position;                    /* of the newest record in them */
	uint64_t pending;
	struct weir_frame_writer *writers[]; /* by partition */
};

struct framer *framer_new(uint32_t partitions, framer_emit *emit, void *context)
{
	struct framer *framer = weir_alloc(1, sizeof *framer + partitions * sizeof framer->writers[0]);
	framer->partitions = partitions;
	framer->emit = emit;
	framer->context = context;
	for (uint32_t i = 0; i < partitions; i++)
		framer->writers[i] = weir_frame_writer_new();
	return framer;
}

void framer_free(struct framer *framer)
{
	if (framer == NULL)
		return;
	for (uint32_t i = 0; i < framer->partitions; i++)
		weir_frame_writer_free(framer->writers[i]);
	free(framer);
}

static void finish(struct framer *framer, uint32_t partition, int64_t now_ms)
{
	struct weir_frame_writer *writer = framer->writers[partition];
	uint32_t events = weir_frame_events(writer);
	if (events == 0)
		return;
	framer->pending -= events;
	framer->emit(framer->context, partition, weir_frame_finish(writer, now_ms));
	weir_frame_begin(writer, framer->source, framer->policy_version, 0, 0);
}

void framer_flush(struct framer *framer, int64_t now_ms)
{
	for (uint32_t i = 0; framer->pending > 0 && i < framer->partitions; i++)
		finish(framer, i, now_ms);
}

void framer_discard(struct framer *framer)
{
	for (uint32_t i = 0; i < framer->partitions; i++)
		weir_frame_begin(framer->writers[i], framer->source, framer->policy_version, 0, 0);
	framer->pending = 0;
}

uint64_t framer_pending(const struct framer *framer)
{
	return framer->pending;
}

/* Flushes if source or policy change, or the position decreases, as one frame cannot hold both. */
static void turn_to(struct framer *framer, const uint8_t *source, uint64_t policy_version, uint64_t position,
                    int64_t now_ms)
{
	bool falls = position < framer->position;
	framer->position = position;
	if (memcmp(framer->source, source, sizeof framer->source) == 0 && framer->policy_version == policy_version &&
	    !falls)
		return;
	framer_flush(framer, now_ms);
	memcpy(framer->source, source, sizeof framer->source);
	framer->policy_version = policy_version;
}

void framer_add(struct framer *framer, const uint8_t *source, bool is_common, uint64_t policy_version,
                const struct weir_matched *matched, const struct weir_record *record, uint64_t position, int64_t now_ms)
{
	uint64_t base = position - (is_common && position > 0);
	turn_to(framer, source, policy_version, position, now_ms);
	for (uint32_t i = 0; i < matched->event_count; i++) {
		const struct weir_matched_event *event = &matched->events[i];
		struct weir_frame_writer *writer = framer->writers[event->partition];
		if (weir_frame_events(writer) == 0)
			weir_frame_begin(writer, source, policy_version, record->time_ms, base);
		enum weir_status status = weir_frame_add(writer, event->key, event->key_hash, record->time_ms, position,
		                                         event->cost, event->zones, event->zone_count);
		assert(status == WEIR_OK);
		if (matched->fields.length > 0)
			status = weir_frame_add_fields(writer, matched->fields);
		assert(status == WEIR_OK);
		(void)status;
		framer->pending++;
	}
	for (uint32_t i = 0; i < matched->event_count; i++) {
		uint32_t partition = matched->events[i].partition;
		if (weir_frame_due(framer->writers[partition]))
			finish(framer, partition, now_ms);
	}
}
