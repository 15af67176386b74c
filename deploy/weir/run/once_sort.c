/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --sort: records are read and matched in the order that they would be judged in
 * without it, so malformed lines, dead letters and counts are the same, and are
 * sorted as what the limiter would see of them: their events.
 *
 *   cost, number of events, then for each: key's length, key, its hash (8 bytes), partition, number of zones, and for
 *   each of those 2 x its id, plus 1 where the record is done there. All but key and hash are varints.
 */
#include "deploy/weir/run/once_run.h"

#include "common/base/alloc.h"
#include "common/bytes/varint.h"

#include <stdlib.h>
#include <string.h>

static void put(struct weir_text *text, uint64_t number)
{
	uint8_t *at = (uint8_t *)weir_text_reserve(text, WEIR_VARINT_MAX_BYTES);
	text->length += (size_t)(weir_varint_put(at, number) - at);
}

static void put_event(struct weir_text *text, const struct weir_matched_event *event)
{
	put(text, event->key.length);
	weir_text_append(text, event->key.at, event->key.length);
	weir_text_append(text, &event->key_hash, sizeof event->key_hash);
	put(text, (uint64_t)event->cost);
	put(text, event->partition);
	put(text, event->zone_count);
	for (uint32_t i = 0; i < event->zone_count; i++)
		put(text, 2 * (uint64_t)event->zones[i].id + event->zones[i].done);
}

/* What is known of the disk that it takes: as much again for each part of the input that is not read yet. */
static enum weir_status fail_disk(const struct once *once, struct weir_error *error)
{
	struct weir_error why = *error;
	uint64_t done_bytes, all_bytes, taken = weir_record_sort_disk_bytes(once->sort) >> 20;
	inputs_progress(once->inputs, &done_bytes, &all_bytes);
	if (done_bytes == 0 || done_bytes >= all_bytes)
		return weir_fail(error, WEIR_IO,
		                 "%s. It had %llu MiB for %llu records: set TMPDIR to a directory with more room", why.text,
		                 (unsigned long long)taken, (unsigned long long)weir_record_sort_count(once->sort));
	double whole = (double)(taken + 1) * (double)all_bytes / (double)done_bytes;
	return weir_fail(
		error, WEIR_IO,
		"%s. It had %llu MiB for %.0f %% of the input, and needs about %.0f MiB: set TMPDIR to a directory "
		"with that much room",
		why.text, (unsigned long long)taken, 100 * (double)done_bytes / (double)all_bytes, whole);
}

enum weir_status once_sort_add(struct once *once, const struct merge_input *input, const struct weir_matched *matched,
                               struct weir_error *error)
{
	const struct weir_record *record = &input->reader->record;
	struct weir_text *text = &once->sort_text;
	weir_text_clear(text);
	put(text, matched->event_count);
	for (uint32_t i = 0; i < matched->event_count; i++)
		put_event(text, &matched->events[i]);
	uint32_t rank = (uint32_t)(input - once->merge_inputs);
	struct weir_span bytes = {.at = text->at, .length = (uint32_t)text->length};
	enum weir_status status = weir_record_sort_add(once->sort, record->time_ms, rank, bytes, error);
	return status == WEIR_IO ? fail_disk(once, error) : status;
}

/* ---- back ---- */

struct cursor {
	const uint8_t *at, *end;
};

/* What was written is read from a file: bytes that cannot be are a disk's fault, and end the run. */
static bool get(struct cursor *cursor, uint64_t *number)
{
	const uint8_t *at = weir_varint_get(cursor->at, cursor->end, number);
	if (at != NULL)
		cursor->at = at;
	return at != NULL;
}

static bool get_event(struct cursor *cursor, struct once_sorted *sorted, uint32_t number, size_t *zones)
{
	struct weir_matched_event *event = &sorted->events[number];
	uint64_t length, cost, partition, count, zone;
	if (!get(cursor, &length) || length + sizeof event->key_hash > (size_t)(cursor->end - cursor->at))
		return false;
	event->key = (struct weir_span){.at = (const char *)cursor->at, .length = (uint32_t)length};
	memcpy(&event->key_hash, cursor->at + length, sizeof event->key_hash);
	cursor->at += length + sizeof event->key_hash;
	if (!get(cursor, &cost) || !get(cursor, &partition) || !get(cursor, &count) ||
	    count > (size_t)(cursor->end - cursor->at))
		return false;
	event->cost = (int64_t)cost;
	event->partition = (uint32_t)partition;
	event->zone_count = (uint32_t)count;
	if (*zones + count > sorted->zone_room) {
		sorted->zone_room = 2 * (*zones + count);
		sorted->zones = weir_realloc(sorted->zones, sorted->zone_room, sizeof *sorted->zones);
	}
	for (uint64_t i = 0; i < count; i++) {
		if (!get(cursor, &zone))
			return false;
		sorted->zones[(*zones)++] = (struct weir_frame_zone){.id = (uint32_t)(zone / 2), .done = zone % 2 != 0};
	}
	return true;
}

static bool get_record(struct cursor *cursor, struct once_sorted *sorted)
{
	uint64_t count;
	size_t zones = 0;
	if (!get(cursor, &count) || count > (size_t)(cursor->end - cursor->at))
		return false;
	if (count > sorted->event_room) {
		sorted->event_room = count;
		sorted->events = weir_realloc(sorted->events, count, sizeof *sorted->events);
	}
	for (uint32_t i = 0; i < count; i++)
		if (!get_event(cursor, sorted, i, &zones))
			return false;
	/* Their place is known once there are no more of them. */
	zones = 0;
	for (uint32_t i = 0; i < count; i++) {
		sorted->events[i].zones = sorted->zones + zones;
		zones += sorted->events[i].zone_count;
	}
	sorted->matched = (struct weir_matched){.events = sorted->events, .event_count = (uint32_t)count};
	return true;
}

enum weir_status once_sort_next(struct once *once, struct once_sorted *sorted, struct weir_error *error)
{
	struct weir_span bytes;
	enum weir_status status = weir_record_sort_next(once->sort, &sorted->record.time_ms, &bytes, error);
	if (status != WEIR_OK)
		return status;
	struct cursor cursor = {.at = (const uint8_t *)bytes.at, .end = (const uint8_t *)bytes.at + bytes.length};
	if (!get_record(&cursor, sorted) || cursor.at != cursor.end)
		return weir_fail(error, WEIR_IO, "the temporary file for sorting in %s does not hold what was written to it",
		                 weir_record_sort_directory(once->sort));
	return WEIR_OK;
}
