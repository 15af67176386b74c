/* SPDX-License-Identifier: Apache-2.0 */
/* The base of queues: a thread that reads, a bound on what waits, streams that are known again. */
#include "collector/source/queue/internal.h"
#include "collector/source/source_memory.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct source_ops ops = {.type = "fake", .replayable = true};

/* A server's queue of `count` messages "N", of which each tenth is blank. */
struct fake {
	struct queue_source queue; /* first */
	_Atomic uint64_t count;
	uint8_t id;
	_Atomic uint64_t taken; /* the newest position that queue_put() has taken */
	_Atomic int runs, failures;
	size_t padding; /* of each message */
	int others;     /* so many more streams are found, of which nothing is read */
	_Atomic int refused;
	char words[WEIR_ERROR_TEXT_BYTES]; /* why the last one was */
};

static enum weir_status find_others(struct fake *fake, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (int i = 0; i < fake->others && status != WEIR_END; i++) {
		char label[24];
		struct queue_found found = {.id = {0xFF, (uint8_t)(i >> 8), (uint8_t)i}, .label = label};
		struct queue_stream *stream;
		snprintf(label, sizeof label, "other-%d", i);
		status = queue_find(&fake->queue, &found, &stream, error);
		if (status != WEIR_INVALID)
			continue;
		snprintf(fake->words, sizeof fake->words, "%s", error->text);
		fake->refused++;
	}
	return status;
}

static enum weir_status run(struct queue_source *queue, struct weir_error *error)
{
	struct fake *fake = (struct fake *)(void *)queue;
	struct queue_found found = {.id = {fake->id}, .label = "Q", .guarantee = SOURCE_EXACTLY_ONCE, .last = fake->count};
	char *text = calloc(1, fake->padding + 32);
	enum weir_status status = WEIR_END;
	fake->runs++;
	if (fake->failures > 0) {
		fake->failures--;
		free(text);
		return weir_fail(error, WEIR_IO, "no server");
	}
	struct queue_stream *stream = NULL;
	status = queue_find(queue, &found, &stream, error);
	if (status == WEIR_INVALID) {
		free(text);
		return status;
	}
	if (status == WEIR_OK && find_others(fake, error) == WEIR_END)
		stream = NULL;
	status = WEIR_END;
	uint64_t position = stream != NULL ? queue_place(stream) : 0;
	if (stream != NULL) {
		queue_note_end(queue, stream, fake->count);
		queue_succeeded(queue);
	}
	while (stream != NULL && !queue_ending(queue) && status == WEIR_END) {
		if (position >= fake->count) {
			queue_flush(queue);
			if (queue->once)
				break;
			usleep(1000);
			continue;
		}
		position++;
		memset(text, ' ', fake->padding);
		snprintf(text + fake->padding, 32, "%llu\n", (unsigned long long)position);
		if (!queue_put(queue, stream, position % 10 == 0 ? "\r\n" : text, position % 10 == 0 ? 2 : strlen(text),
		               position, 1))
			break;
		fake->taken = position;
		if (position == 55 && fake->failures < 0) {
			fake->failures = 0;
			status = weir_fail(error, WEIR_IO, "the connection broke");
		}
	}
	free(text);
	return status;
}

static const struct queue_reader reader = {run};

static struct fake *start(struct source_memory *memory, uint64_t count, bool once, enum source_at_start at)
{
	struct fake *fake = calloc(1, sizeof *fake);
	struct source_context context = {.once = once, .memory = memory};
	struct weir_error error;
	fake->count = count;
	fake->id = 1;
	fake->queue.line_max = 1 << 20;
	fake->queue.start = at;
	assert_int_equal(queue_init(&fake->queue, &ops, &reader, SOURCE_NATS_PREFIX, "Q", &context, &error), WEIR_OK);
	return fake;
}

static void begin(struct fake *fake)
{
	struct weir_error error;
	assert_int_equal(queue_start(&fake->queue, &error), WEIR_OK);
}

static void stop(struct fake *fake)
{
	queue_stop(&fake->queue);
	queue_deinit(&fake->queue);
	free(fake);
}

/* Waits for the next chunk, at its descriptor. */
static enum weir_status next(struct fake *fake, struct source_chunk *chunk)
{
	struct weir_error error;
	enum weir_status status;
	while ((status = queue_collect(&fake->queue.source, NULL, chunk, &error)) == WEIR_AGAIN) {
		struct pollfd at = {.fd = queue_fd(&fake->queue.source), .events = POLLIN};
		poll(&at, 1, 1000);
	}
	return status;
}

/* Reads up to a position, and checks each line. @return how many */
static size_t read_to(struct fake *fake, uint64_t before, uint64_t last)
{
	size_t lines = 0;
	struct source_chunk chunk;
	while (before < last && next(fake, &chunk) == WEIR_OK) {
		const char *at = chunk.data;
		for (size_t i = 0; at < chunk.data + chunk.length; i++, lines++) {
			const char *end = memchr(at, '\n', (size_t)(chunk.data + chunk.length - at));
			assert_int_equal(strtoull(at, NULL, 10), chunk.positions[i]);
			assert_true(chunk.positions[i] > before);
			before = chunk.positions[i];
			at = end + 1;
		}
		queue_acknowledge(&fake->queue.source, chunk.stream, before);
	}
	assert_int_equal(before, last);
	return lines;
}

static void test_lines_come_in_order_and_blank_ones_are_counted(void **state)
{
	(void)state;
	struct source_memory *memory = source_memory_new(NULL);
	struct fake *fake = start(memory, 100001, false, SOURCE_FROM_BEGINNING);
	struct source_status statuses[2];
	begin(fake);
	assert_int_equal(read_to(fake, 0, 100001), 90001);
	assert_int_equal(queue_status(&fake->queue.source, statuses, 2), 1);
	assert_string_equal(statuses[0].name, "nats:Q");
	assert_int_equal(statuses[0].own[SOURCE_OWN_SKIPPED], 10000);
	assert_int_equal(statuses[0].lag_records, 0);
	assert_int_equal(statuses[0].errors, 0);
	stop(fake);
	source_memory_free(memory);
}

static void test_what_waits_is_bounded(void **state)
{
	(void)state;
	struct fake *fake = start(NULL, 1000000, false, SOURCE_FROM_BEGINNING);
	struct source_chunk chunk;
	fake->padding = 60000;
	begin(fake);
	assert_int_equal(next(fake, &chunk), WEIR_OK);
	usleep(200000);
	/* so many messages make a batch, and all batches are full but for the one that is handed out */
	assert_true(fake->taken <= (QUEUE_BATCHES + 1) * (QUEUE_BATCH_BYTES / 60000 + 2));
	assert_false(queue_has_room(&fake->queue));
	stop(fake); /* also ends a thread that waits */
}

static void test_it_continues_at_the_low_water_mark(void **state)
{
	(void)state;
	struct source_memory *memory = source_memory_new(NULL);
	struct fake *fake = start(memory, 57, false, SOURCE_FROM_BEGINNING);
	begin(fake);
	assert_int_equal(read_to(fake, 0, 57), 52);
	stop(fake);
	fake = start(memory, 80, false, SOURCE_FROM_END); /* where it began once is settled */
	begin(fake);
	assert_int_equal(read_to(fake, 57, 79), 20);
	/* message 80 has no line: it is behind the mark, too */
	for (int i = 0; i < 5000 && memory->streams[0]->low_water < 80; i++) {
		struct source_chunk chunk;
		struct weir_error error;
		assert_int_equal(queue_collect(&fake->queue.source, NULL, &chunk, &error), WEIR_AGAIN);
		usleep(1000);
	}
	assert_int_equal(memory->streams[0]->low_water, 80);
	stop(fake);
	source_memory_free(memory);
}

static void test_the_end_is_the_same_after_a_restart(void **state)
{
	(void)state;
	struct source_memory *memory = source_memory_new(NULL);
	struct fake *fake = start(memory, 57, false, SOURCE_FROM_END);
	struct source_chunk chunk;
	struct weir_error error;
	begin(fake);
	while (memory->stream_count == 0)
		assert_int_equal(queue_collect(&fake->queue.source, NULL, &chunk, &error), WEIR_AGAIN);
	stop(fake);
	fake = start(memory, 61, false, SOURCE_FROM_END);
	begin(fake);
	assert_int_equal(read_to(fake, 57, 61), 3);
	stop(fake);
	/* made anew: all in it is new */
	fake = start(memory, 5, false, SOURCE_FROM_END);
	fake->id = 2;
	begin(fake);
	assert_int_equal(read_to(fake, 0, 5), 5);
	stop(fake);
	assert_int_equal(memory->stream_count, 2);
	source_memory_free(memory);
}

static void test_a_broken_connection_loses_and_doubles_nothing(void **state)
{
	(void)state;
	struct fake *fake = start(NULL, 100, false, SOURCE_FROM_BEGINNING);
	struct source_status status;
	fake->failures = -1;
	begin(fake);
	assert_int_equal(read_to(fake, 0, 99), 90);
	assert_int_equal(fake->runs, 2);
	queue_status(&fake->queue.source, &status, 1);
	assert_int_equal(status.errors, 1);
	assert_string_equal(status.problem, "");
	stop(fake);
}

static void test_it_tries_again(void **state)
{
	(void)state;
	struct fake *fake = start(NULL, 9, false, SOURCE_FROM_BEGINNING);
	struct source_status status = {0};
	fake->failures = 2;
	begin(fake);
	while (status.problem[0] == '\0')
		queue_status(&fake->queue.source, &status, 1);
	assert_string_equal(status.problem, "no server");
	assert_int_equal(read_to(fake, 0, 9), 9);
	assert_int_equal(fake->runs, 3);
	stop(fake);
}

/* Not when the server says what it has: what is asked for next may fail again. */
static void test_a_problem_ends_when_it_is_read(void **state)
{
	(void)state;
	struct fake *fake = start(NULL, 9, false, SOURCE_FROM_BEGINNING);
	struct queue_found found = {.id = {1}, .label = "Q"};
	struct source_status status;
	struct weir_error error;
	struct queue_stream *stream = queue_open_stream(&fake->queue, &found, &error);
	queue_problem(&fake->queue, "no master");
	queue_note_end(&fake->queue, stream, 9);
	queue_status(&fake->queue.source, &status, 1);
	assert_string_equal(status.problem, "no master");
	assert_false(fake->queue.reads); /* the pauses grow */
	queue_succeeded(&fake->queue);
	queue_status(&fake->queue.source, &status, 1);
	assert_string_equal(status.problem, "");
	assert_true(fake->queue.reads);
	stop(fake);
}

static void test_once_reads_to_the_end_or_says_why_not(void **state)
{
	(void)state;
	struct fake *fake = start(NULL, 57, true, SOURCE_FROM_END);
	struct source_chunk chunk;
	struct weir_error error;
	struct source_stream **streams;
	begin(fake);
	assert_int_equal(queue_streams(&fake->queue.source, &streams), 1);
	assert_true(streams[0]->is_common);
	assert_int_equal(queue_resume(&fake->queue.source, streams[0], 7, &error), WEIR_OK);
	assert_int_equal(read_to(fake, 7, 57), 45);
	assert_int_equal(next(fake, &chunk), WEIR_END);
	stop(fake);
	fake = start(NULL, 57, true, SOURCE_FROM_BEGINNING);
	fake->failures = 1;
	begin(fake);
	assert_int_equal(queue_streams(&fake->queue.source, &streams), 1);
	assert_int_equal(queue_collect(&fake->queue.source, streams[0], &chunk, &error), WEIR_IO);
	assert_string_equal(error.text, "no server");
	assert_int_equal(queue_collect(&fake->queue.source, streams[0], &chunk, &error), WEIR_END);
	stop(fake);
}

/* What is too much is refused with its reason, and what was found before is read. */
static void test_a_stream_too_many_is_refused_alone(void **state)
{
	(void)state;
	struct fake *fake = start(NULL, 57, false, SOURCE_FROM_BEGINNING);
	fake->others = QUEUE_STREAMS_MAX;
	begin(fake);
	assert_int_equal(read_to(fake, 0, 57), 52);
	assert_int_equal(fake->refused, 1);
	assert_non_null(strstr(fake->words, "2048 streams since it was started"));
	stop(fake);
}

static void test_what_the_memory_has_no_room_for_is_refused_alone(void **state)
{
	(void)state;
	struct source_memory *memory = source_memory_new(NULL);
	for (int i = 0; i < SOURCE_MEMORY_STREAMS_MAX - 2; i++) {
		char name[32];
		snprintf(name, sizeof name, "/log-%d", i);
		assert_non_null(source_memory_add(memory, name));
	}
	struct fake *fake = start(memory, 57, false, SOURCE_FROM_BEGINNING);
	fake->others = 3;
	begin(fake);
	assert_int_equal(read_to(fake, 0, 57), 52);
	assert_int_equal(fake->refused, 2);
	assert_non_null(strstr(fake->words, "remembers 16384 streams"));
	stop(fake);
	source_memory_free(memory);
}

static void test_what_another_source_reads_is_refused(void **state)
{
	(void)state;
	struct source_memory *memory = source_memory_new(NULL);
	struct fake *one = start(memory, 57, false, SOURCE_FROM_BEGINNING),
				*two = start(memory, 57, false, SOURCE_FROM_BEGINNING);
	struct source_chunk chunk;
	struct weir_error error;
	begin(one);
	assert_int_equal(read_to(one, 0, 57), 52);
	begin(two);
	struct source_status status = {0};
	for (int i = 0; i < 5000 && status.problem[0] == '\0'; i++) {
		assert_int_equal(queue_collect(&two->queue.source, NULL, &chunk, &error), WEIR_AGAIN);
		queue_status(&two->queue.source, &status, 1);
		usleep(1000);
	}
	assert_string_equal(status.problem,
	                    "another source of this name reads the same: give each source its own \"name\"");
	stop(two);
	stop(one);
	source_memory_free(memory);
}

static void test_long_messages_come_alone(void **state)
{
	(void)state;
	struct fake *fake = start(NULL, 2, false, SOURCE_FROM_BEGINNING);
	struct source_chunk chunk;
	fake->padding = 3000;
	fake->queue.line_max = 1000;
	begin(fake);
	for (uint64_t i = 1; i <= 2; i++) {
		assert_int_equal(next(fake, &chunk), WEIR_OK);
		assert_true(chunk.too_long);
		assert_int_equal(chunk.length, 1000);
		assert_int_equal(chunk.skipped, 2002); /* the rest, its figure and its newline */
		assert_int_equal(chunk.tail.length, 2001);
		assert_int_equal(chunk.tail.at[2000], '0' + (int)i);
		assert_int_equal(chunk.positions[0], i);
	}
	stop(fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_come_in_order_and_blank_ones_are_counted),
		cmocka_unit_test(test_what_waits_is_bounded),
		cmocka_unit_test(test_it_continues_at_the_low_water_mark),
		cmocka_unit_test(test_the_end_is_the_same_after_a_restart),
		cmocka_unit_test(test_a_broken_connection_loses_and_doubles_nothing),
		cmocka_unit_test(test_it_tries_again),
		cmocka_unit_test(test_a_problem_ends_when_it_is_read),
		cmocka_unit_test(test_once_reads_to_the_end_or_says_why_not),
		cmocka_unit_test(test_a_stream_too_many_is_refused_alone),
		cmocka_unit_test(test_what_the_memory_has_no_room_for_is_refused_alone),
		cmocka_unit_test(test_what_another_source_reads_is_refused),
		cmocka_unit_test(test_long_messages_come_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
