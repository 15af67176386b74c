/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading frames.
 *
 * A message may come from anywhere, so everything in it is checked: whoever gets
 * a decoded frame can use its indexes, times and costs as they are. Arrays grow
 * to the largest frame seen and are kept.
 */
#include "common/base/alloc.h"
#include "common/bytes/varint.h"
#include "common/frame/frame_format.h"
#include "common/policy/policy.h"

#include <stdlib.h>

struct weir_frame_reader {
	struct weir_frame_zone *members; /* of all zone sets, one after another */
	size_t member_capacity;
	struct weir_frame_zone_set *sets;
	size_t set_capacity;
	struct weir_span *keys;
	size_t key_capacity;
	struct weir_frame_event *events;
	size_t event_capacity;
	struct weir_frame_run *runs;
	size_t run_capacity;
	struct weir_frame_reservation *reservations;
	size_t reservation_capacity;
};

/* What is left to read. After a failure `why` says what was wrong, and `at` is NULL. */
struct input {
	const uint8_t *at, *end;
	const char *why;
};

struct weir_frame_reader *weir_frame_reader_new(void)
{
	return weir_alloc(1, sizeof(struct weir_frame_reader));
}

void weir_frame_reader_free(struct weir_frame_reader *reader)
{
	if (reader == NULL)
		return;
	free(reader->members);
	free(reader->sets);
	free(reader->keys);
	free(reader->events);
	free(reader->runs);
	free(reader->reservations);
	free(reader);
}

static bool refuse(struct input *input, const char *why)
{
	input->why = why;
	input->at = NULL;
	return false;
}

static bool get(struct input *input, uint64_t *number)
{
	const uint8_t *at = weir_varint_get(input->at, input->end, number);
	if (at == NULL)
		return refuse(input, "a number is cut off or too long");
	input->at = at;
	return true;
}

/* A list's count, bounded also by the bytes left, as every element takes at least `least_bytes`. */
static bool get_count(struct input *input, uint64_t most, size_t least_bytes, uint64_t *count)
{
	if (!get(input, count))
		return false;
	if (*count > most || *count > (size_t)(input->end - input->at) / least_bytes)
		return refuse(input, "a list is longer than a frame may hold");
	return true;
}

/* An array with room for `count` elements; what it held is not kept. */
static void *room(void *array, size_t *capacity, size_t count, size_t bytes)
{
	if (count <= *capacity)
		return array;
	free(array);
	*capacity = count < 64 ? 64 : count + count / 4;
	return weir_alloc(*capacity, bytes);
}

static bool read_zone_sets(struct weir_frame_reader *reader, struct input *input, struct weir_frame *frame)
{
	uint64_t count;
	if (!get_count(input, WEIR_FRAME_EVENTS_MAX, 2, &count))
		return false;
	reader->sets = room(reader->sets, &reader->set_capacity, count, sizeof *reader->sets);
	/* No set has more members than bytes are left. */
	size_t most = count > 0 ? (size_t)(input->end - input->at) : 0;
	most = most < count * WEIR_ZONE_SET_MAX ? most : count * WEIR_ZONE_SET_MAX;
	reader->members = room(reader->members, &reader->member_capacity, most, sizeof *reader->members);
	struct weir_frame_zone *member = reader->members;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t zones, zone;
		if (!get_count(input, WEIR_ZONE_SET_MAX, 1, &zones))
			return false;
		if (zones == 0)
			return refuse(input, "a zone set is empty");
		reader->sets[i] = (struct weir_frame_zone_set){.zones = member, .count = (uint32_t)zones};
		for (uint64_t k = 0; k < zones; k++, member++) {
			if (!get(input, &zone))
				return false;
			if (zone >> 1 == 0 || zone >> 1 > WEIR_ZONE_ID_MAX)
				return refuse(input, "a zone id is out of range");
			*member = (struct weir_frame_zone){.id = (uint32_t)(zone >> 1), .done = zone & 1};
		}
	}
	frame->zone_sets = reader->sets;
	frame->zone_set_count = (uint32_t)count;
	return true;
}

static bool read_keys(struct weir_frame_reader *reader, struct input *input, struct weir_frame *frame)
{
	uint64_t count, length;
	if (!get_count(input, WEIR_FRAME_EVENTS_MAX, 1, &count))
		return false;
	reader->keys = room(reader->keys, &reader->key_capacity, count, sizeof *reader->keys);
	for (uint64_t i = 0; i < count; i++) {
		if (!get(input, &length))
			return false;
		if (length > WEIR_KEY_MAX_BYTES || length > (size_t)(input->end - input->at))
			return refuse(input, "a key is longer than a frame may hold");
		reader->keys[i] = (struct weir_span){.at = (const char *)input->at, .length = (uint32_t)length};
		input->at += length;
	}
	frame->keys = reader->keys;
	frame->key_count = (uint32_t)count;
	return true;
}

/*
 * The loop that every event goes through: what it needs is kept in locals, and
 * ranges are gathered into one test an event.
 */
static bool read_events(struct weir_frame_reader *reader, struct input *input, struct weir_frame *frame,
                        int64_t base_time_ms, uint64_t base_position)
{
	uint64_t count;
	if (!get_count(input, WEIR_FRAME_EVENTS_MAX, 4, &count))
		return false;
	reader->events = room(reader->events, &reader->event_capacity, count, sizeof *reader->events);
	const uint8_t *at = input->at, *end = input->end;
	const struct weir_frame_zone_set *sets = frame->zone_sets;
	uint64_t key_count = frame->key_count, set_count = frame->zone_set_count;
	uint64_t time_ms = (uint64_t)base_time_ms, position = base_position, pairs = 0;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t key, time_delta, position_delta, set, cost = 1;
		if ((at = weir_varint_get(at, end, &key)) == NULL || (at = weir_varint_get(at, end, &time_delta)) == NULL ||
		    (at = weir_varint_get(at, end, &position_delta)) == NULL || (at = weir_varint_get(at, end, &set)) == NULL ||
		    ((set & 1) && (at = weir_varint_get(at, end, &cost)) == NULL))
			return refuse(input, "an event is cut off");
		set >>= 1;
		time_ms += (uint64_t)weir_unzigzag(time_delta);
		position += position_delta;
		if (key >= key_count || set >= set_count || time_ms >= (uint64_t)WEIR_TIME_END_MS ||
		    cost > (uint64_t)WEIR_COST_MAX || position < position_delta)
			return refuse(input, "an event is out of range");
		pairs += sets[set].count;
		reader->events[i] = (struct weir_frame_event){.key = (uint32_t)key,
		                                              .zone_set = (uint32_t)set,
		                                              .time_ms = (int64_t)time_ms,
		                                              .cost = (int64_t)cost,
		                                              .position = position};
	}
	if (pairs > WEIR_FRAME_PAIRS_MAX)
		return refuse(input, "more (event, zone) pairs than a frame may hold");
	input->at = at;
	frame->events = reader->events;
	frame->event_count = (uint32_t)count;
	frame->is_common = count > 0 && reader->events[0].position > base_position;
	frame->pair_count = (uint32_t)pairs;
	return true;
}

/* Whether the bytes are fields to their end. */
static bool are_fields(struct weir_span fields)
{
	struct weir_span name, value;
	while (fields.length > 0)
		if (!weir_fields_next(&fields, &name, &value))
			return false;
	return true;
}

static bool read_runs(struct weir_frame_reader *reader, struct input *input, struct weir_frame *frame)
{
	uint64_t count, without, events, length, end = 0;
	if (!get_count(input, WEIR_FRAME_EVENTS_MAX, 4, &count))
		return false;
	reader->runs = room(reader->runs, &reader->run_capacity, count, sizeof *reader->runs);
	for (uint64_t i = 0; i < count; i++) {
		if (!get(input, &without) || !get(input, &events) || !get(input, &length))
			return false;
		if (events == 0 || without > frame->event_count - end || events > frame->event_count - end - without)
			return refuse(input, "fields of events that are not there");
		if (length > WEIR_FIELDS_MAX_BYTES || length > (size_t)(input->end - input->at))
			return refuse(input, "fields are longer than a frame may hold");
		struct weir_span fields = {.at = (const char *)input->at, .length = (uint32_t)length};
		if (!are_fields(fields))
			return refuse(input, "a field is cut off");
		reader->runs[i] =
			(struct weir_frame_run){.first = (uint32_t)(end + without), .count = (uint32_t)events, .fields = fields};
		end += without + events;
		input->at += length;
	}
	frame->runs = reader->runs;
	frame->run_count = (uint32_t)count;
	return true;
}

static bool read_lists(struct weir_frame_reader *reader, struct input *input, struct weir_frame *frame, bool has_runs)
{
	if (input->end - input->at < WEIR_FRAME_EVENTS_HEADER_BYTES - WEIR_FRAME_HEADER_BYTES)
		return refuse(input, "the header is cut off");
	int64_t base_time_ms = (int64_t)weir_frame_get64(input->at);
	uint64_t base_position = weir_frame_get64(input->at + 8);
	input->at += WEIR_FRAME_EVENTS_HEADER_BYTES - WEIR_FRAME_HEADER_BYTES;
	return read_zone_sets(reader, input, frame) && read_keys(reader, input, frame) &&
	       read_events(reader, input, frame, base_time_ms, base_position) &&
	       (!has_runs || read_runs(reader, input, frame));
}

/* A number, and 4 bits a pair, to the end. */
static bool read_verdicts(struct input *input, struct weir_frame *frame, uint64_t *number)
{
	size_t bytes = ((size_t)frame->pair_count + 1) / 2;
	if ((size_t)(input->end - input->at) != 8 + bytes)
		return refuse(input, "the verdicts do not match the events");
	*number = weir_frame_get64(input->at);
	frame->verdicts = input->at + 8;
	input->at = input->end;
	return true;
}

/* Pass or block, for every pair. */
static bool check_answers(struct input *input, const struct weir_frame *frame)
{
	unsigned all = 0;
	for (uint32_t pair = 0; pair < frame->pair_count; pair++)
		all |= weir_verdict_of(frame->verdicts, pair);
	return (all & ~(unsigned)WEIR_VERDICT_BLOCK) == 0 || refuse(input, "an answer is neither pass nor block");
}

static bool settles(const struct weir_frame *frame, uint32_t event)
{
	const struct weir_frame_zone_set *set = &frame->zone_sets[frame->events[event].zone_set];
	bool done = false;
	for (uint32_t i = 0; i < set->count; i++)
		done |= set->zones[i].done;
	return done;
}

/* An entry: of an event of one zone that settles a reservation, or opens one. */
static bool read_reservation(struct input *input, const struct weir_frame *frame, uint64_t *end,
                             struct weir_frame_reservation *one)
{
	uint64_t between, ttl;
	if (!get(input, &between))
		return false;
	if (between >= frame->event_count - *end)
		return refuse(input, "a reservation of an event that is not there");
	*one = (struct weir_frame_reservation){.event = (uint32_t)(*end + between)};
	for (; *end < one->event; ++*end)
		if (settles(frame, (uint32_t)*end))
			return refuse(input, "an event settles a reservation that it does not name");
	*end = one->event + 1;
	if (frame->zone_sets[frame->events[one->event].zone_set].count != 1)
		return refuse(input, "a reservation in more than one zone");
	if (!settles(frame, one->event)) {
		if (!get(input, &ttl))
			return false;
		one->ttl_ms = (int64_t)ttl;
		return (ttl > 0 && ttl <= WEIR_RESERVATION_TTL_MAX_MS) || refuse(input, "a reservation's time is out of range");
	}
	if (input->end - input->at < WEIR_RESERVATION_ID_BYTES)
		return refuse(input, "a reservation's id is cut off");
	memcpy(one->id, input->at, sizeof one->id);
	input->at += sizeof one->id;
	return true;
}

/* What stands before the epoch and the answers: their places follow from the message's end. */
static bool read_reservations(struct weir_frame_reader *reader, struct input *input, struct weir_frame *frame)
{
	size_t behind = 8 + ((size_t)frame->pair_count + 1) / 2, left = (size_t)(input->end - input->at);
	uint64_t end = 0;
	if (left < 4 + behind || weir_frame_get32(input->end - behind - 4) != left - 4 - behind)
		return refuse(input, "the verdicts do not match the events");
	struct input own = {.at = input->at, .end = input->end - behind - 4};
	reader->reservations =
		room(reader->reservations, &reader->reservation_capacity, frame->event_count, sizeof *reader->reservations);
	while (own.at < own.end) {
		/* There is room for no more, and for none at all without events. */
		if (frame->reservation_count == frame->event_count)
			return refuse(input, "a reservation of an event that is not there");
		if (!read_reservation(&own, frame, &end, &reader->reservations[frame->reservation_count++]))
			return refuse(input, own.why);
	}
	for (; end < frame->event_count; end++)
		if (settles(frame, (uint32_t)end))
			return refuse(input, "an event settles a reservation that it does not name");
	frame->reservations = reader->reservations;
	input->at = own.end + 4;
	return true;
}

static bool read_body(struct weir_frame_reader *reader, struct input *input, struct weir_frame *frame, uint8_t version)
{
	bool has_runs = version >= WEIR_FRAME_EXTENDED;
	switch (frame->kind) {
	case WEIR_FRAME_EVENTS:
		if (!read_lists(reader, input, frame, has_runs))
			return false;
		return input->at == input->end || refuse(input, "bytes follow the last event");
	case WEIR_FRAME_JUDGED:
		return read_lists(reader, input, frame, has_runs) && read_verdicts(input, frame, &frame->judged_offset);
	case WEIR_FRAME_CHECKS:
		if (!has_runs)
			break;
		return read_lists(reader, input, frame, true) && read_reservations(reader, input, frame) &&
		       read_verdicts(input, frame, &frame->epoch) && check_answers(input, frame);
	case WEIR_FRAME_POLICY:
	case WEIR_FRAME_COMMAND:
		frame->body = (struct weir_span){.at = (const char *)input->at, .length = (uint32_t)(input->end - input->at)};
		return true;
	}
	return refuse(input, "unknown kind");
}

enum weir_status weir_frame_decode(struct weir_frame_reader *reader, struct weir_span message, struct weir_frame *frame,
                                   struct weir_error *error)
{
	const uint8_t *bytes = (const uint8_t *)message.at;
	if (message.length < WEIR_FRAME_HEADER_BYTES || bytes[0] != 'w' || bytes[1] != 'F' ||
	    bytes[WEIR_FRAME_AT_VERSION] == 0)
		return weir_fail(error, WEIR_INVALID, "not a frame: %u bytes without a frame header", message.length);
	if (bytes[WEIR_FRAME_AT_VERSION] > WEIR_FRAME_VERSION)
		return weir_fail(error, WEIR_NEWER, "frame version %u is newer than this program, which reads up to %d",
		                 bytes[WEIR_FRAME_AT_VERSION], WEIR_FRAME_VERSION);
	if (message.length > WEIR_FRAME_JUDGED_MAX_BYTES)
		return weir_fail(error, WEIR_INVALID, "damaged frame: %u bytes exceed the maximum", message.length);
	if (weir_frame_get32(bytes + WEIR_FRAME_AT_CHECKSUM) != weir_frame_checksum(bytes, message.length))
		return weir_fail(error, WEIR_INVALID, "damaged frame: checksum mismatch");
	*frame = (struct weir_frame){.kind = bytes[WEIR_FRAME_AT_KIND],
	                             .sending_time_ms = (int64_t)weir_frame_get64(bytes + WEIR_FRAME_AT_SENDING_TIME),
	                             .policy_version = weir_frame_get64(bytes + WEIR_FRAME_AT_POLICY_VERSION)};
	memcpy(frame->source, bytes + WEIR_FRAME_AT_SOURCE, WEIR_SOURCE_ID_BYTES);
	struct input input = {.at = bytes + WEIR_FRAME_HEADER_BYTES, .end = bytes + message.length};
	if (frame->sending_time_ms < 0 || frame->sending_time_ms >= WEIR_TIME_END_MS)
		return weir_fail(error, WEIR_INVALID, "damaged frame: sending time out of range");
	if (!read_body(reader, &input, frame, bytes[WEIR_FRAME_AT_VERSION]))
		return weir_fail(error, WEIR_INVALID, "damaged frame: %s", input.why);
	return WEIR_OK;
}

int64_t weir_frame_bound_times(struct weir_frame_reader *reader, struct weir_frame *frame, int64_t appended_ms)
{
	int64_t latest_ms = appended_ms + WEIR_FRAME_AHEAD_MOST_MS, ahead_ms = frame->sending_time_ms - latest_ms;
	if (appended_ms <= 0 || ahead_ms <= 0)
		return 0;
	frame->sending_time_ms = latest_ms;
	for (uint32_t i = 0; i < frame->event_count && frame->kind != WEIR_FRAME_CHECKS; i++)
		if (reader->events[i].time_ms > latest_ms)
			reader->events[i].time_ms = latest_ms;
	return ahead_ms;
}
