/*
 * Writers are made once a partition and keep their buffers. A record's events
 * are measured before any is added, so that they never straddle two frames.
 */
#include "collector/framer.h"

#include "common/alloc.h"

#include <assert.h>
#include <stdlib.h>

/* A record whose events would take more than this is refused: with the target it stays below a frame's bound. */
enum { RECORD_MAX_BYTES = WEIR_FRAME_MAX_BYTES / 2 };

struct framer {
	uint32_t partitions;
	framer_emit *emit;
	void *context;
	uint8_t source[WEIR_SOURCE_ID_BYTES]; /* of the open frames */
	uint64_t policy_version;              /* likewise */
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

uint64_t framer_pending(const struct framer *framer)
{
	return framer->pending;
}

static bool fits(const struct matched *matched)
{
	size_t bytes = 0;
	for (uint32_t i = 0; i < matched->event_count; i++)
		bytes += matched->events[i].key.length + 4 * matched->events[i].zone_count + 64;
	return bytes <= RECORD_MAX_BYTES && matched->event_count <= WEIR_FRAME_EVENTS_MAX / 2;
}

/* Frames of another source or policy go out first. */
static void turn_to(struct framer *framer, const uint8_t *source, uint64_t policy_version, int64_t now_ms)
{
	if (memcmp(framer->source, source, sizeof framer->source) == 0 && framer->policy_version == policy_version)
		return;
	framer_flush(framer, now_ms);
	memcpy(framer->source, source, sizeof framer->source);
	framer->policy_version = policy_version;
}

enum weir_status framer_add(struct framer *framer, const uint8_t *source, uint64_t policy_version,
                            const struct matched *matched, const struct record *record, uint64_t position,
                            int64_t now_ms)
{
	if (matched->event_count > 1 && !fits(matched))
		return WEIR_INVALID;
	turn_to(framer, source, policy_version, now_ms);
	for (uint32_t i = 0; i < matched->event_count; i++) {
		const struct matched_event *event = &matched->events[i];
		struct weir_frame_writer *writer = framer->writers[event->partition];
		if (weir_frame_events(writer) == 0)
			weir_frame_begin(writer, source, policy_version, record->time_ms, position);
		enum weir_status status = weir_frame_add(writer, event->key, event->key_hash, record->time_ms, position,
		                                         record->cost, event->zones, event->zone_count);
		assert(status == WEIR_OK);
		(void)status;
		framer->pending++;
	}
	for (uint32_t i = 0; i < matched->event_count; i++) {
		uint32_t partition = matched->events[i].partition;
		const struct weir_frame_writer *writer = framer->writers[partition];
		if (weir_frame_size(writer) >= WEIR_FRAME_TARGET_BYTES ||
		    weir_frame_events(writer) >= WEIR_FRAME_EVENTS_MAX / 2)
			finish(framer, partition, now_ms);
	}
	return WEIR_OK;
}
