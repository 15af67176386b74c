/* SPDX-License-Identifier: Apache-2.0 */
/* Records into frames: whatever they hold, every event arrives, and those of one record together. */
#include "collector/send/framer.h"
#include "common/bytes/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { NOW_MS = 5 };

/* What came out of a framer. */
struct arrived {
	struct weir_frame_reader *reader;
	uint64_t frames, events, pairs, common, largest_bytes;
	uint64_t position; /* of the newest event */
	bool straddled;    /* a frame began with the position that the one before ended with */
};

static void take_frame(void *context, uint32_t partition, struct weir_span message)
{
	struct arrived *arrived = context;
	struct weir_frame frame;
	struct weir_error error;
	assert_int_equal(partition, 0);
	if (weir_frame_decode(arrived->reader, message, &frame, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	arrived->frames++;
	arrived->events += frame.event_count;
	arrived->pairs += frame.pair_count;
	arrived->common += frame.is_common;
	if (message.length > arrived->largest_bytes)
		arrived->largest_bytes = message.length;
	arrived->straddled |= frame.events[0].position == arrived->position;
	arrived->position = frame.events[frame.event_count - 1].position;
}

/* Sends records that have so many events each, of so many zones and with keys of so many bytes. */
static struct arrived send(uint32_t records, uint32_t events, uint32_t zones, uint32_t key_bytes)
{
	static const uint8_t source[WEIR_SOURCE_ID_BYTES] = {1};
	static struct weir_frame_zone members[WEIR_ZONES_MAX];
	struct arrived arrived = {.reader = weir_frame_reader_new()};
	struct framer *framer = framer_new(1, take_frame, &arrived);
	struct weir_matched_event *made = calloc(events, sizeof *made);
	char *keys = malloc((size_t)events * WEIR_KEY_MAX_BYTES);
	assert_true(made != NULL && keys != NULL);
	memset(keys, 'k', (size_t)events * WEIR_KEY_MAX_BYTES);
	for (uint32_t i = 0; i < WEIR_ZONES_MAX; i++)
		members[i].id = WEIR_ZONE_ID_MAX - i;
	for (uint32_t i = 0; i < events; i++) {
		char *key = keys + (size_t)i * WEIR_KEY_MAX_BYTES;
		memcpy(key, &i, sizeof i);
		made[i] = (struct weir_matched_event){.key = {.at = key, .length = key_bytes},
		                                      .key_hash = weir_hash64(key, key_bytes),
		                                      .cost = 2,
		                                      .zones = members + i,
		                                      .zone_count = zones};
	}
	struct weir_matched matched = {.events = made, .event_count = events};
	struct weir_record record = {.time_ms = NOW_MS};
	struct weir_text fields = {0};
	for (int i = 0; i < 64 && key_bytes == WEIR_KEY_MAX_BYTES; i++) /* the most that a record can have */
		weir_fields_put(&fields, (struct weir_span){.at = keys, .length = WEIR_FIELD_NAME_MAX_BYTES},
		                (struct weir_span){.at = keys, .length = WEIR_FIELD_VALUE_MAX_BYTES});
	matched.fields = weir_text_span(&fields);
	for (uint64_t position = 1; position <= records; position++)
		framer_add(framer, source, false, 1, &matched, &record, position * 200, NOW_MS);
	framer_flush(framer, NOW_MS);
	assert_int_equal(framer_pending(framer), 0);
	framer_free(framer);
	weir_frame_reader_free(arrived.reader);
	weir_text_deinit(&fields);
	free(made);
	free(keys);
	return arrived;
}

static void every_event_of_any_record_arrives(void **state)
{
	(void)state;
	static const struct {
		uint32_t records, events, zones, key_bytes;
	} cases[] = {
		{1, 1, 1, 4},
		{40000, 1, 1, 12},
		/* Many zones of one key: a frame holds few bytes and many pairs. */
		{5000, 1, 200, 12},
		{700, 1, WEIR_ZONES_MAX, 12},
		{5000, 3, 100, 12},
		/* Every zone a key of its own. */
		{50, WEIR_ZONES_MAX, 1, 12},
		{3, WEIR_ZONES_MAX, 1, WEIR_KEY_MAX_BYTES},
		{50, 1, 1, WEIR_KEY_MAX_BYTES},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arrived arrived = send(cases[i].records, cases[i].events, cases[i].zones, cases[i].key_bytes);
		assert_int_equal(arrived.events, (uint64_t)cases[i].records * cases[i].events);
		assert_int_equal(arrived.pairs, arrived.events * cases[i].zones);
		assert_false(arrived.straddled);
	}
}

/* One source never does so; two that took themselves for the same would. */
static void a_position_that_falls_begins_another_frame(void **state)
{
	(void)state;
	static const uint8_t source[WEIR_SOURCE_ID_BYTES] = {1};
	static const uint64_t positions[] = {500, 700, 600, 650, 100};
	struct weir_frame_zone zone = {.id = 1};
	struct weir_matched_event event = {
		.key = weir_span_of("k"), .key_hash = weir_hash64("k", 1), .cost = 1, .zones = &zone, .zone_count = 1};
	struct weir_matched matched = {.events = &event, .event_count = 1};
	struct weir_record record = {.time_ms = NOW_MS};
	struct arrived arrived = {.reader = weir_frame_reader_new()};
	struct framer *framer = framer_new(1, take_frame, &arrived);
	for (size_t i = 0; i < sizeof positions / sizeof *positions; i++)
		framer_add(framer, source, false, 1, &matched, &record, positions[i], NOW_MS);
	framer_flush(framer, NOW_MS);
	assert_int_equal(arrived.frames, 3);
	assert_int_equal(arrived.events, 5);
	assert_int_equal(arrived.position, 100);
	framer_free(framer);
	weir_frame_reader_free(arrived.reader);
}

static void frames_say_whose_source_is_common(void **state)
{
	(void)state;
	static const uint8_t sources[][WEIR_SOURCE_ID_BYTES] = {{1}, {2}};
	struct weir_frame_zone zone = {.id = 1};
	struct weir_matched_event event = {
		.key = weir_span_of("k"), .key_hash = weir_hash64("k", 1), .cost = 1, .zones = &zone, .zone_count = 1};
	struct weir_matched matched = {.events = &event, .event_count = 1};
	struct weir_record record = {.time_ms = NOW_MS};
	struct arrived arrived = {.reader = weir_frame_reader_new()};
	struct framer *framer = framer_new(1, take_frame, &arrived);
	framer_add(framer, sources[0], false, 1, &matched, &record, 1, NOW_MS);
	framer_add(framer, sources[0], false, 1, &matched, &record, UINT64_C(1) << 60, NOW_MS);
	framer_flush(framer, NOW_MS);
	assert_int_equal(arrived.common, 0);
	framer_add(framer, sources[1], true, 1, &matched, &record, 1, NOW_MS);
	framer_add(framer, sources[1], true, 1, &matched, &record, 2, NOW_MS);
	framer_flush(framer, NOW_MS);
	assert_int_equal(arrived.common, 1);
	assert_int_equal(arrived.position, 2);
	framer_add(framer, sources[1], true, 1, &matched, &record, UINT64_MAX, NOW_MS);
	framer_flush(framer, NOW_MS);
	assert_int_equal(arrived.common, 2);
	assert_true(arrived.position == UINT64_MAX);
	framer_free(framer);
	weir_frame_reader_free(arrived.reader);
}

static void a_frame_goes_out_at_its_target(void **state)
{
	(void)state;
	struct arrived arrived = send(40000, 1, 1, 12);
	assert_in_range(arrived.frames, 2, 8);
	assert_in_range(arrived.largest_bytes, WEIR_FRAME_TARGET_BYTES, WEIR_FRAME_TARGET_BYTES + 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_of_any_record_arrives),
		cmocka_unit_test(a_position_that_falls_begins_another_frame),
		cmocka_unit_test(frames_say_whose_source_is_common),
		cmocka_unit_test(a_frame_goes_out_at_its_target),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
