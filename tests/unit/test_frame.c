/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: what is written is what is read, bounds hold, and damage is refused. */
#include "common/bytes/varint.h"
#include "common/frame/frame.h"
#include "common/frame/frame_format.h"
#include "common/policy/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const uint8_t source[WEIR_SOURCE_ID_BYTES] = "0123456789abcdef";
static const struct weir_frame_zone one_zone[] = {{.id = 1}};

static uint64_t random_state;

static uint64_t random64(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return random_state >> 33 ^ random_state << 20;
}

static uint64_t random_below(uint64_t bound)
{
	return random64() % bound;
}

static enum weir_status add(struct weir_frame_writer *writer, const char *key, int64_t time_ms, uint64_t position)
{
	struct weir_span span = weir_span_of(key);
	return weir_frame_add(writer, span, weir_hash64(span.at, span.length), time_ms, position, 1, one_zone, 1);
}

static void decode(struct weir_frame_reader *reader, struct weir_span message, struct weir_frame *frame)
{
	struct weir_error error;
	if (weir_frame_decode(reader, message, frame, &error) != WEIR_OK)
		fail_msg("%s", error.text);
}

static void expect_refusal(struct weir_frame_reader *reader, struct weir_span message, const char *words)
{
	struct weir_frame frame;
	struct weir_error error = {.text = "accepted"};
	enum weir_status status = weir_frame_decode(reader, message, &frame, &error);
	assert_string_equal(error.text, words);
	assert_int_equal(status, WEIR_INVALID);
}

static void varints_of_every_size_come_back(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits <= 64; bits++) {
		for (int near = -1; near <= 1; near++) {
			uint64_t number = (bits == 64 ? 0 : UINT64_C(1) << bits) + (uint64_t)near, got;
			uint8_t buffer[WEIR_VARINT_MAX_BYTES], *end = weir_varint_put(buffer, number);
			assert_int_equal(end - buffer, weir_varint_size(number));
			assert_ptr_equal(weir_varint_get(buffer, end, &got), end);
			assert_true(got == number);
			assert_true(weir_unzigzag(weir_zigzag((int64_t)number)) == (int64_t)number);
			for (const uint8_t *cut = buffer; cut < end; cut++)
				assert_null(weir_varint_get(buffer, cut, &got));
		}
	}
	assert_int_equal(weir_zigzag(-1), 1);
	assert_int_equal(weir_zigzag(1), 2);
	uint64_t got;
	static const uint8_t too_many_bits[10] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
	static const uint8_t too_many_bytes[11] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
	assert_null(weir_varint_get(too_many_bits, too_many_bits + 10, &got));
	assert_null(weir_varint_get(too_many_bytes, too_many_bytes + 11, &got));
}

static void an_empty_frame_comes_back(void **state)
{
	(void)state;
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct weir_frame frame;
	weir_frame_begin(writer, source, 3, 1000, 5);
	decode(reader, weir_frame_finish(writer, 77), &frame);
	assert_int_equal(frame.kind, WEIR_FRAME_EVENTS);
	assert_int_equal(frame.sending_time_ms, 77);
	assert_int_equal(frame.policy_version, 3);
	assert_memory_equal(frame.source, source, WEIR_SOURCE_ID_BYTES);
	assert_int_equal(frame.event_count, 0);
	assert_int_equal(frame.pair_count, 0);
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

/* One random event, kept to be compared. */
struct sample {
	char key[24];
	uint32_t key_length;
	int64_t time_ms, cost;
	uint64_t position;
	struct weir_frame_zone zones[6];
	uint32_t zone_count;
};

static struct sample random_sample(const struct sample *before, bool wild)
{
	struct sample sample = {.cost = 1, .zone_count = 1};
	sample.key_length = (uint32_t)random_below(sizeof sample.key);
	for (uint32_t i = 0; i < sample.key_length; i++)
		sample.key[i] = (char)(wild ? random64() : 'a' + random_below(2));
	sample.time_ms =
		wild ? (int64_t)random_below((uint64_t)WEIR_TIME_END_MS) : before->time_ms + (int64_t)random_below(9);
	sample.position = before->position + random_below(wild ? UINT64_C(1) << 40 : 300);
	if (random_below(4) == 0)
		sample.cost = (int64_t)random_below((uint64_t)WEIR_COST_MAX + 1);
	sample.zone_count = 1 + (uint32_t)random_below(6);
	for (uint32_t i = 0; i < sample.zone_count; i++)
		sample.zones[i] =
			(struct weir_frame_zone){.id = 1 + (uint32_t)random_below(wild ? 65535 : 3), .done = random_below(5) == 0};
	return sample;
}

static void compare(const struct weir_frame *frame, uint32_t index, const struct sample *sample)
{
	const struct weir_frame_event *event = &frame->events[index];
	const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
	assert_int_equal(frame->keys[event->key].length, sample->key_length);
	assert_memory_equal(frame->keys[event->key].at, sample->key, sample->key_length);
	assert_true(event->time_ms == sample->time_ms && event->cost == sample->cost &&
	            event->position == sample->position);
	assert_int_equal(set->count, sample->zone_count);
	for (uint32_t i = 0; i < set->count; i++)
		assert_true(set->zones[i].id == sample->zones[i].id && set->zones[i].done == sample->zones[i].done);
}

static void random_frames_come_back(void **state)
{
	(void)state;
	enum { EVENTS_MOST = 3000 };
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct sample *samples = calloc(EVENTS_MOST, sizeof *samples);
	for (random_state = 0; random_state < 150; random_state++) {
		uint64_t round = random_state;
		uint32_t count = (uint32_t)random_below(EVENTS_MOST), pairs = 0;
		struct sample before = {.time_ms = (int64_t)random_below(1000000), .position = random64() >> 8};
		weir_frame_begin(writer, source, random64(), before.time_ms, before.position);
		for (uint32_t i = 0; i < count; i++) {
			struct sample *sample = &samples[i];
			before = *sample = random_sample(&before, round % 3 == 0);
			pairs += sample->zone_count;
			struct weir_span key = {.at = sample->key, .length = sample->key_length};
			/* A hash of few values: the dictionary must tell keys apart that share one. */
			uint64_t hash = round % 5 == 1 ? random_below(1) : weir_hash64(key.at, key.length);
			assert_int_equal(weir_frame_add(writer, key, hash, sample->time_ms, sample->position, sample->cost,
			                                sample->zones, sample->zone_count),
			                 WEIR_OK);
			if (round % 5 == 1 && i == 200)
				count = i + 1;
		}
		assert_int_equal(weir_frame_events(writer), count);
		size_t size = weir_frame_size(writer);
		struct weir_span message = weir_frame_finish(writer, 1);
		assert_true(message.length <= size && message.length + 10 > size);
		struct weir_frame frame;
		decode(reader, message, &frame);
		assert_int_equal(frame.event_count, count);
		assert_int_equal(frame.pair_count, pairs);
		for (uint32_t i = 0; i < count; i++)
			compare(&frame, i, &samples[i]);
		random_state = round;
	}
	free(samples);
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

static void a_key_travels_once_a_frame(void **state)
{
	(void)state;
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct weir_frame frame;
	for (int round = 0; round < 70000; round++) { /* more frames than a dictionary has generations */
		weir_frame_begin(writer, source, 1, 0, 0);
		assert_int_equal(add(writer, "203.0.113.9", 1, 1), WEIR_OK);
		assert_int_equal(add(writer, "203.0.113.8", 2, 2), WEIR_OK);
		assert_int_equal(add(writer, "203.0.113.9", 3, 3), WEIR_OK);
		if (round % 10000 != 0)
			continue;
		decode(reader, weir_frame_finish(writer, 0), &frame);
		assert_int_equal(frame.key_count, 2);
		assert_int_equal(frame.events[2].key, 0);
		assert_int_equal(frame.zone_set_count, 1);
	}
	weir_frame_begin(writer, source, 1, 0, 0);
	size_t empty = weir_frame_size(writer);
	assert_int_equal(add(writer, "203.0.113.9", 1, 150), WEIR_OK);
	size_t first = weir_frame_size(writer);
	assert_int_equal(add(writer, "203.0.113.9", 2, 300), WEIR_OK);
	assert_int_equal(first - empty, 2 + 12 + 5); /* its zone set, its key, itself */
	assert_int_equal(weir_frame_size(writer) - first, 5);
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

/* Adds until the frame is full; gives how many went in. The frame must still come back whole. */
static uint32_t fill(struct weir_frame_writer *writer, uint32_t key_length, uint32_t zone_count)
{
	struct weir_frame_reader *reader = weir_frame_reader_new();
	static struct weir_frame_zone zones[WEIR_ZONE_SET_MAX];
	char key[WEIR_KEY_MAX_BYTES + 1] = "";
	memset(key, 'x', key_length);
	weir_frame_begin(writer, source, 1, 0, 0);
	enum weir_status status = WEIR_OK;
	uint32_t count = 0;
	for (; status == WEIR_OK; count++) {
		for (uint32_t i = 0; i < zone_count; i++)
			zones[i] = (struct weir_frame_zone){.id = 1 + (i + count) % WEIR_ZONE_ID_MAX};
		struct weir_span span = {.at = key, .length = key_length};
		if (key_length >= 8) {
			snprintf(key, 9, "%08u", count);
			key[8] = 'x';
		}
		status = weir_frame_add(writer, span, weir_hash64(key, key_length), 0, count, 1, zones, zone_count);
	}
	assert_int_equal(status, WEIR_FULL);
	struct weir_frame frame;
	struct weir_span message = weir_frame_finish(writer, 0);
	assert_true(message.length <= WEIR_FRAME_MAX_BYTES);
	decode(reader, message, &frame);
	assert_int_equal(frame.event_count, count - 1);
	weir_frame_reader_free(reader);
	return count - 1;
}

static void frames_are_bounded(void **state)
{
	(void)state;
	struct weir_frame_writer *writer = weir_frame_writer_new();
	assert_int_equal(fill(writer, 0, 1), WEIR_FRAME_EVENTS_MAX);
	assert_int_equal(fill(writer, 10, 16), WEIR_FRAME_EVENTS_MAX);
	assert_int_equal(fill(writer, 10, 64), WEIR_FRAME_PAIRS_MAX / 64);
	assert_in_range(fill(writer, WEIR_KEY_MAX_BYTES, 1), 2000, 2048);
	assert_in_range(fill(writer, WEIR_KEY_MAX_BYTES, WEIR_ZONE_SET_MAX), 200, 256);
	weir_frame_writer_free(writer);
}

static void control_records_come_back(void **state)
{
	(void)state;
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct weir_frame frame;
	size_t length;
	char *message = weir_frame_control(WEIR_FRAME_POLICY, 5, 12, weir_span_of("{\"zones\":[]}"), &length);
	decode(reader, (struct weir_span){.at = message, .length = (uint32_t)length}, &frame);
	assert_int_equal(frame.kind, WEIR_FRAME_POLICY);
	assert_int_equal(frame.sending_time_ms, 5);
	assert_int_equal(frame.policy_version, 12);
	assert_true(weir_span_equal(frame.body, weir_span_of("{\"zones\":[]}")));
	free(message);
	message = weir_frame_control(WEIR_FRAME_COMMAND, 5, 0, (struct weir_span){0}, &length);
	decode(reader, (struct weir_span){.at = message, .length = (uint32_t)length}, &frame);
	assert_int_equal(frame.kind, WEIR_FRAME_COMMAND);
	assert_int_equal(frame.body.length, 0);
	assert_int_equal(message[WEIR_FRAME_AT_VERSION], WEIR_FRAME_PLAIN);
	weir_frame_extend(message, length);
	assert_int_equal(message[WEIR_FRAME_AT_VERSION], WEIR_FRAME_EXTENDED);
	decode(reader, (struct weir_span){.at = message, .length = (uint32_t)length}, &frame);
	assert_int_equal(frame.kind, WEIR_FRAME_COMMAND);
	assert_int_equal(frame.body.length, 0);
	free(message);
	weir_frame_reader_free(reader);
}

static void a_judged_frame_is_its_events_with_verdicts(void **state)
{
	(void)state;
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	weir_frame_begin(writer, source, 1, 0, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(add(writer, "a", i, (uint64_t)i), WEIR_OK);
	struct weir_span message = weir_frame_finish(writer, 9);
	static const uint8_t verdicts[2] = {WEIR_VERDICT_BLOCK | WEIR_VERDICT_NONE << 4, WEIR_VERDICT_LATE};
	char *judged = malloc(message.length + 8 + 2);
	size_t length = weir_frame_judged(message, 4711, verdicts, 3, judged);
	assert_int_equal(length, message.length + 8 + 2);
	struct weir_frame frame;
	decode(reader, (struct weir_span){.at = judged, .length = (uint32_t)length}, &frame);
	assert_int_equal(frame.kind, WEIR_FRAME_JUDGED);
	assert_int_equal(frame.event_count, 3);
	assert_int_equal(frame.judged_offset, 4711);
	assert_memory_equal(frame.verdicts, verdicts, 2);
	/* Verdicts for other events. */
	length = weir_frame_judged(message, 4711, verdicts, 1, judged);
	expect_refusal(reader, (struct weir_span){.at = judged, .length = (uint32_t)length},
	               "damaged frame: the verdicts do not match the events");
	free(judged);
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

static void checks_come_back_with_their_answers(void **state)
{
	(void)state;
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct weir_frame frame;
	weir_frame_begin(writer, source, 4, 1000, 8);
	for (int i = 0; i < 3; i++)
		assert_int_equal(add(writer, "a", 1000 + i, 8 + (uint64_t)i), WEIR_OK);
	static const uint8_t answers[2] = {WEIR_VERDICT_BLOCK << 4, WEIR_VERDICT_BLOCK};
	struct weir_span message = weir_frame_finish_checks(writer, 9, UINT64_C(1) << 63, answers, NULL, 0);
	assert_int_equal(message.at[WEIR_FRAME_AT_VERSION], WEIR_FRAME_EXTENDED);
	decode(reader, message, &frame);
	assert_int_equal(frame.kind, WEIR_FRAME_CHECKS);
	assert_true(weir_frame_is_of_events(&frame) && !frame.is_common);
	assert_true(frame.epoch == UINT64_C(1) << 63);
	assert_int_equal(frame.event_count, 3);
	assert_int_equal(frame.events[2].position, 10);
	assert_memory_equal(frame.verdicts, answers, 2);
	/* What became of them, for the archive: a judged frame like any other. */
	static const uint8_t verdicts[2] = {WEIR_VERDICT_LATE | WEIR_VERDICT_BLOCK << 4, WEIR_VERDICT_BLOCK};
	char judged[512];
	size_t length = weir_frame_judged(message, 4711, verdicts, 3, judged);
	assert_int_equal(length, message.length - 4); /* that there are no reservations */
	decode(reader, (struct weir_span){.at = judged, .length = (uint32_t)length}, &frame);
	assert_int_equal(frame.kind, WEIR_FRAME_JUDGED);
	assert_int_equal(frame.judged_offset, 4711);
	assert_int_equal(frame.events[2].time_ms, 1002);
	assert_memory_equal(frame.verdicts, verdicts, 2);
	/* An owner's marker has no events. */
	weir_frame_begin(writer, source, 4, 1000, 8);
	decode(reader, weir_frame_finish_checks(writer, 9, 5, NULL, NULL, 0), &frame);
	assert_int_equal(frame.kind, WEIR_FRAME_CHECKS);
	assert_int_equal(frame.event_count, 0);
	assert_int_equal(frame.epoch, 5);
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

static enum weir_status add_in(struct weir_frame_writer *writer, const char *key, int64_t t, uint64_t position,
                               bool done)
{
	const struct weir_frame_zone zone = {.id = 3, .done = done};
	struct weir_span span = weir_span_of(key);
	return weir_frame_add(writer, span, weir_hash64(span.at, span.length), t, position, 5, &zone, 1);
}

/* Opened by one event and settled by another; of a judged frame nothing is left of it. */
static void reservations_come_back(void **state)
{
	(void)state;
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct weir_frame frame;
	struct weir_frame_reservation named[2] = {{.event = 0, .ttl_ms = WEIR_RESERVATION_TTL_MAX_MS}, {.event = 2}};
	const uint8_t answers[2] = {0};
	char copy[512];
	weir_reservation_id(source, 8, named[1].id);
	weir_frame_begin(writer, source, 4, 1000, 8);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(add_in(writer, "a", 1000, 8 + i, i == 2), WEIR_OK);
	struct weir_span message = weir_frame_finish_checks(writer, 9, 5, answers, named, 2);
	memcpy(copy, message.at, message.length);
	decode(reader, message, &frame);
	assert_int_equal(frame.reservation_count, 2);
	assert_memory_equal(frame.reservations, named, sizeof named);
	size_t length = weir_frame_judged(message, 4711, (const uint8_t[]){0, WEIR_VERDICT_NONE}, 3, copy);
	decode(reader, (struct weir_span){.at = copy, .length = (uint32_t)length}, &frame);
	assert_int_equal(frame.event_count, 3);
	assert_int_equal(frame.reservation_count, 0);
	/* What settles says what; what opens has a time; neither is of an event that is not there. */
	weir_frame_begin(writer, source, 4, 1000, 8);
	assert_int_equal(add_in(writer, "a", 1000, 8, true), WEIR_OK);
	expect_refusal(reader, weir_frame_finish_checks(writer, 9, 5, answers, NULL, 0),
	               "damaged frame: an event settles a reservation that it does not name");
	weir_frame_begin(writer, source, 4, 1000, 8);
	assert_int_equal(add_in(writer, "a", 1000, 8, false), WEIR_OK);
	named[0].ttl_ms++;
	expect_refusal(reader, weir_frame_finish_checks(writer, 9, 5, answers, named, 1),
	               "damaged frame: a reservation's time is out of range");
	named[0] = (struct weir_frame_reservation){.event = 1, .ttl_ms = 1};
	weir_frame_begin(writer, source, 4, 1000, 8);
	assert_int_equal(add_in(writer, "a", 1000, 8, false), WEIR_OK);
	expect_refusal(reader, weir_frame_finish_checks(writer, 9, 5, answers, named, 1),
	               "damaged frame: a reservation of an event that is not there");
	struct weir_frame_reader *fresh = weir_frame_reader_new(); /* without room for any yet */
	named[0].event = 0;
	weir_frame_begin(writer, source, 4, 1000, 8);
	expect_refusal(fresh, weir_frame_finish_checks(writer, 9, 5, answers, named, 1),
	               "damaged frame: a reservation of an event that is not there");
	weir_frame_reader_free(fresh);
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

static void damaged_checks_are_refused(void **state)
{
	(void)state;
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	char copy[512];
	weir_frame_begin(writer, source, 4, 1000, 8);
	assert_int_equal(add(writer, "a", 1000, 8), WEIR_OK);
	struct weir_span message = weir_frame_finish_checks(writer, 9, 5, (const uint8_t[]){WEIR_VERDICT_BLOCK}, NULL, 0);
	memcpy(copy, message.at, message.length);
	copy[message.length - 1] = WEIR_VERDICT_LATE;
	weir_frame_seal((uint8_t *)copy, message.length, WEIR_FRAME_EXTENDED, WEIR_FRAME_CHECKS);
	expect_refusal(reader, (struct weir_span){.at = copy, .length = message.length},
	               "damaged frame: an answer is neither pass nor block");
	copy[message.length - 1] = 0;
	weir_frame_seal((uint8_t *)copy, message.length - 1, WEIR_FRAME_EXTENDED, WEIR_FRAME_CHECKS);
	expect_refusal(reader, (struct weir_span){.at = copy, .length = message.length - 1},
	               "damaged frame: the verdicts do not match the events");
	/* Who knows version 1 alone would drop it: it is never of that. */
	weir_frame_seal((uint8_t *)copy, message.length, WEIR_FRAME_PLAIN, WEIR_FRAME_CHECKS);
	expect_refusal(reader, (struct weir_span){.at = copy, .length = message.length}, "damaged frame: unknown kind");
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

static void damage_is_refused(void **state)
{
	(void)state;
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	weir_frame_begin(writer, source, 1, 1700000000000, 4096);
	for (int i = 0; i < 50; i++)
		assert_int_equal(add(writer, i % 3 ? "203.0.113.9" : "203.0.113.8", 1700000000000 + i, 4096 + (uint64_t)i),
		                 WEIR_OK);
	struct weir_span message = weir_frame_finish(writer, 9);
	struct weir_frame frame;
	struct weir_error error;
	for (uint32_t length = 0; length < message.length; length++) {
		char *cut = malloc(length + 1);
		memcpy(cut, message.at, length);
		assert_int_equal(weir_frame_decode(reader, (struct weir_span){.at = cut, .length = length}, &frame, &error),
		                 WEIR_INVALID);
		if (length >= WEIR_FRAME_HEADER_BYTES) { /* with a right checksum, as if written so */
			weir_frame_seal((uint8_t *)cut, length, WEIR_FRAME_PLAIN, WEIR_FRAME_EVENTS);
			assert_int_equal(weir_frame_decode(reader, (struct weir_span){.at = cut, .length = length}, &frame, &error),
			                 WEIR_INVALID);
		}
		free(cut);
	}
	for (uint32_t i = 0; i < message.length; i++) {
		char *changed = malloc(message.length);
		memcpy(changed, message.at, message.length);
		changed[i] ^= 0x10;
		assert_int_not_equal(
			weir_frame_decode(reader, (struct weir_span){.at = changed, .length = message.length}, &frame, &error),
			WEIR_OK);
		free(changed);
	}
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

/* A sealed frame of these lists, base time and position 0. */
static struct weir_span crafted(uint8_t *frame, const uint8_t *lists, size_t length)
{
	memset(frame, 0, WEIR_FRAME_EVENTS_HEADER_BYTES);
	memcpy(frame + WEIR_FRAME_EVENTS_HEADER_BYTES, lists, length);
	weir_frame_seal(frame, WEIR_FRAME_EVENTS_HEADER_BYTES + length, WEIR_FRAME_PLAIN, WEIR_FRAME_EVENTS);
	return (struct weir_span){.at = (const char *)frame, .length = (uint32_t)(WEIR_FRAME_EVENTS_HEADER_BYTES + length)};
}

static void what_is_out_of_range_is_refused(void **state)
{
	(void)state;
	struct weir_frame_reader *reader = weir_frame_reader_new();
	static const struct {
		uint8_t lists[24];
		size_t length;
		const char *words;
	} cases[] = {{{1, 1, 2, 1, 0, 1, 1, 0, 0, 0}, 10, "damaged frame: an event is out of range"}, /* no such key */
	             {{1, 1, 2, 1, 0, 1, 0, 0, 0, 2}, 10, "damaged frame: an event is out of range"}, /* no such zone set */
	             {{1, 1, 2, 1, 0, 1, 0, 1, 0, 0}, 10, "damaged frame: an event is out of range"}, /* before 1970 */
	             {{1, 1, 1, 1, 0, 1, 0, 0, 0, 0}, 10, "damaged frame: a zone id is out of range"}, /* zone 0 */
	             {{1, 1, 0x80, 0x80, 8, 0, 0}, 7, "damaged frame: a zone id is out of range"},     /* zone 65536 */
	             {{1, 0, 1, 0, 0}, 5, "damaged frame: a zone set is empty"},
	             {{1, 0x81, 8, 2, 0, 0}, 6, "damaged frame: a list is longer than a frame may hold"}, /* 1025 zones */
	             {{0x81, 0x80, 1, 2, 0, 0}, 6, "damaged frame: a list is longer than a frame may hold"},
	             {{0, 1, 5, 'a', 0}, 5, "damaged frame: a key is longer than a frame may hold"},
	             {{0, 0, 0, 7}, 4, "damaged frame: bytes follow the last event"},
	             {{1, 1, 2, 1, 0, 1, 0, 0, 0, 1}, 10, "damaged frame: an event is cut off"}, /* the cost is missing */
	             {{1, 1, 2, 1, 0, 1, 0, 0, 0, 1, 0x81, 0x80, 0x80, 0x80, 0x80, 0x20},
	              16,
	              "damaged frame: an event is out of range"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t *frame = malloc(WEIR_FRAME_EVENTS_HEADER_BYTES + cases[i].length);
		expect_refusal(reader, crafted(frame, cases[i].lists, cases[i].length), cases[i].words);
		free(frame);
	}
	/* The last case but one with its cost there is good, at the largest cost too. */
	static const uint8_t good[] = {1, 1, 2, 1, 0, 1, 0, 0, 0, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20};
	uint8_t frame[WEIR_FRAME_EVENTS_HEADER_BYTES + sizeof good];
	struct weir_frame decoded;
	decode(reader, crafted(frame, good, sizeof good), &decoded);
	assert_true(decoded.events[0].cost == WEIR_COST_MAX);
	weir_frame_reader_free(reader);
}

/* Raw bytes, long values and neighbours that share; what has no fields is written as it ever was. */
static void fields_come_back(void **state)
{
	(void)state;
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct weir_text some = {0}, json = {0};
	char endless[2 * WEIR_FIELD_VALUE_MAX_BYTES];
	for (size_t i = 0; i < sizeof endless; i += 2)
		memcpy(endless + i, "\xc3\xa4", 2);
	weir_fields_put(&some, weir_span_of("path"), (struct weir_span){.at = "/\xff\0\"\n", .length = 5});
	weir_fields_put(&some, weir_span_of("agent"), (struct weir_span){.at = endless + 1, .length = sizeof endless - 1});
	weir_fields_put(&some, weir_span_of("user"), weir_span_of(""));
	static const bool has[] = {false, true, true, false, true};
	for (int judged = 0; judged < 2; judged++) {
		struct weir_frame frame;
		char out[4096];
		weir_frame_begin(writer, source, 1, 1000, 0);
		for (uint32_t i = 0; i < 5; i++) {
			assert_int_equal(add(writer, "u", 1000, i), WEIR_OK);
			if (has[i])
				assert_int_equal(weir_frame_add_fields(writer, weir_text_span(&some)), WEIR_OK);
		}
		struct weir_span message = weir_frame_finish(writer, 9);
		assert_int_equal(message.at[WEIR_FRAME_AT_VERSION], 2);
		static const uint8_t verdicts[3] = {0x10, 0x10, 0x01};
		if (judged) {
			size_t length = weir_frame_judged(message, 77, verdicts, 5, out);
			message = (struct weir_span){.at = out, .length = (uint32_t)length};
		}
		decode(reader, message, &frame);
		assert_int_equal(frame.run_count, 2);
		if (judged)
			assert_memory_equal(frame.verdicts, verdicts, sizeof verdicts);
		uint32_t run = 0;
		for (uint32_t i = 0; i < frame.event_count; i++) {
			struct weir_span fields = weir_frame_fields(&frame, i, &run);
			assert_int_equal(fields.at != NULL, has[i]);
			if (has[i])
				assert_true(weir_span_equal(fields, weir_text_span(&some)));
		}
	}
	struct weir_span agent = weir_fields_find(weir_text_span(&some), "agent");
	assert_in_range(agent.length, WEIR_FIELD_VALUE_MAX_BYTES - 3, WEIR_FIELD_VALUE_MAX_BYTES);
	assert_memory_equal(agent.at + agent.length - 5, "\xc3\xa4\xe2\x80\xa6",
	                    5); /* whole characters, and that it was cut */
	char *names[] = {"user", "status", "path"};
	assert_true(weir_fields_json(&json, weir_text_span(&some), names, 3));
	weir_text_append(&json, "", 1);
	assert_string_equal(json.at, "{\"user\":\"\",\"path\":\"/\xef\xbf\xbd\\u0000\\\"\\n\"}");
	char *others[] = {"status"};
	weir_text_clear(&json);
	assert_false(weir_fields_json(&json, weir_text_span(&some), others, 1));
	assert_int_equal(json.length, 0);
	weir_frame_begin(writer, source, 1, 1000, 0);
	assert_int_equal(add(writer, "u", 1000, 1), WEIR_OK);
	assert_int_equal(weir_frame_finish(writer, 9).at[WEIR_FRAME_AT_VERSION], 1);
	weir_text_deinit(&some);
	weir_text_deinit(&json);
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

static void damaged_fields_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *words;
		uint8_t bytes[12];
		size_t length;
	} cases[] = {
		{"a number is cut off or too long", {0}, 0},
		{"a list is longer than a frame may hold", {9, 0, 1, 0}, 4},
		{"fields of events that are not there", {1, 1, 1, 4, 1, 'a', 1, 'b'}, 8},
		{"fields of events that are not there", {1, 0, 2, 4, 1, 'a', 1, 'b'}, 8},
		{"fields of events that are not there", {1, 0, 0, 4, 1, 'a', 1, 'b'}, 8},
		{"fields are longer than a frame may hold", {1, 0, 1, 5, 1, 'a', 1, 'b'}, 8},
		{"a field is cut off", {1, 0, 1, 4, 1, 'a', 2, 'b'}, 8},
		{"a field is cut off", {1, 0, 1, 2, 1, 'a', 1, 'b'}, 6},
		{"bytes follow the last event", {1, 0, 1, 4, 1, 'a', 1, 'b', 0}, 9},
	};
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	weir_frame_begin(writer, source, 1, 1000, 0);
	assert_int_equal(add(writer, "u", 1000, 1), WEIR_OK);
	struct weir_span plain = weir_frame_finish(writer, 9);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t frame[512];
		char words[160];
		memcpy(frame, plain.at, plain.length);
		memcpy(frame + plain.length, cases[i].bytes, cases[i].length);
		weir_frame_seal(frame, plain.length + cases[i].length, WEIR_FRAME_EXTENDED, WEIR_FRAME_EVENTS);
		snprintf(words, sizeof words, "damaged frame: %s", cases[i].words);
		expect_refusal(
			reader, (struct weir_span){.at = (char *)frame, .length = plain.length + (uint32_t)cases[i].length}, words);
	}
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

static void a_newer_version_is_no_damage(void **state)
{
	(void)state;
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	weir_frame_begin(writer, source, 1, 0, 0);
	struct weir_span message = weir_frame_finish(writer, 0);
	((char *)message.at)[WEIR_FRAME_AT_VERSION] = WEIR_FRAME_VERSION + 1;
	struct weir_frame frame;
	struct weir_error error;
	assert_int_equal(weir_frame_decode(reader, message, &frame, &error), WEIR_NEWER);
	assert_string_equal(error.text, "frame version 3 is newer than this program, which reads up to 2");
	((char *)message.at)[WEIR_FRAME_AT_VERSION] = 0;
	assert_int_equal(weir_frame_decode(reader, message, &frame, &error), WEIR_INVALID);
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(varints_of_every_size_come_back),
		cmocka_unit_test(an_empty_frame_comes_back),
		cmocka_unit_test(random_frames_come_back),
		cmocka_unit_test(a_key_travels_once_a_frame),
		cmocka_unit_test(frames_are_bounded),
		cmocka_unit_test(control_records_come_back),
		cmocka_unit_test(a_judged_frame_is_its_events_with_verdicts),
		cmocka_unit_test(checks_come_back_with_their_answers),
		cmocka_unit_test(reservations_come_back),
		cmocka_unit_test(damaged_checks_are_refused),
		cmocka_unit_test(damage_is_refused),
		cmocka_unit_test(what_is_out_of_range_is_refused),
		cmocka_unit_test(fields_come_back),
		cmocka_unit_test(damaged_fields_are_refused),
		cmocka_unit_test(a_newer_version_is_no_damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
