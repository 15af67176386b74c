/* SPDX-License-Identifier: Apache-2.0 */
/* A mark is safe once every frame sent before it is acknowledged, in whatever order that happens. */
#include "collector/send/in_flight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdlib.h>
#include <cmocka.h>

static void a_mark_waits_for_every_frame_before_it(void **state)
{
	(void)state;
	struct in_flight *flight = in_flight_new();
	struct in_flight_mark mark;
	int a, b;
	uint64_t first = in_flight_send(flight, 10), second = in_flight_send(flight, 11);
	in_flight_mark(flight, &a, 100, 3);
	uint64_t third = in_flight_send(flight, 12);
	in_flight_mark(flight, &b, 50, 4);
	assert_int_equal(in_flight_oldest_ms(flight, 99), 10);
	assert_int_equal(in_flight_acknowledge(flight, second, 21), 10);
	assert_false(in_flight_safe(flight, &mark));
	in_flight_acknowledge(flight, first, 22);
	assert_true(in_flight_safe(flight, &mark));
	assert_ptr_equal(mark.stream, &a);
	assert_int_equal(mark.position, 100);
	assert_int_equal(mark.lines, 3);
	assert_int_equal(in_flight_oldest_ms(flight, 99), 12);
	assert_false(in_flight_safe(flight, &mark));
	in_flight_acknowledge(flight, third, 23);
	assert_true(in_flight_safe(flight, &mark));
	assert_ptr_equal(mark.stream, &b);
	assert_int_equal(in_flight_count(flight), 0);
	assert_int_equal(in_flight_oldest_ms(flight, 99), 99);
	in_flight_free(flight);
}

static void a_mark_with_nothing_on_its_way_is_safe_at_once(void **state)
{
	(void)state;
	struct in_flight *flight = in_flight_new();
	struct in_flight_mark mark;
	in_flight_mark(flight, NULL, 7, 1);
	assert_true(in_flight_safe(flight, &mark));
	assert_int_equal(mark.position, 7);
	in_flight_free(flight);
}

/* Lines of no zone send no frame: while the bus takes nothing, each stream needs but one place for how far it came. */
static void marks_that_wait_for_the_same_frames_are_one_a_stream(void **state)
{
	(void)state;
	enum { STREAMS = 3, MARKS = 1000000 };
	struct in_flight *flight = in_flight_new();
	struct in_flight_mark mark;
	int streams[STREAMS];
	uint64_t first = in_flight_send(flight, 10), newest[STREAMS] = {0};
	in_flight_mark(flight, &streams[0], 1, 1);
	uint64_t second = in_flight_send(flight, 10);
	for (uint64_t i = 2; i < MARKS; i++) {
		newest[i % STREAMS] = i;
		in_flight_mark(flight, &streams[i % STREAMS], i, i + 7);
	}
	in_flight_acknowledge(flight, first, 11);
	assert_true(in_flight_safe(flight, &mark));
	assert_int_equal(mark.position, 1);
	assert_false(in_flight_safe(flight, &mark));
	in_flight_acknowledge(flight, second, 12);
	size_t safe = 0;
	for (; in_flight_safe(flight, &mark); safe++) {
		ptrdiff_t stream = (int *)mark.stream - streams;
		assert_int_equal(mark.position, newest[stream]);
		assert_int_equal(mark.lines, newest[stream] + 7);
	}
	assert_int_equal(safe, STREAMS);
	in_flight_free(flight);
}

/* Against the obvious model: a flag for every frame ever sent. */
static void random_orders_agree_with_a_model(void **state)
{
	(void)state;
	enum { FRAMES = 4000 };
	struct in_flight *flight = in_flight_new();
	bool *acknowledged = calloc(FRAMES, 1);
	uint64_t *waiting = calloc(FRAMES, sizeof *waiting);
	uint64_t *below = calloc(FRAMES, sizeof *below);
	size_t sent = 0, waiting_count = 0, marks = 0, safe = 0;
	srand(3);
	while (sent < FRAMES || waiting_count > 0) {
		if (sent < FRAMES && rand() % 2 == 0) {
			waiting[waiting_count++] = in_flight_send(flight, 0);
			sent++;
			if (rand() % 3 == 0) {
				below[marks] = sent;
				in_flight_mark(flight, NULL, marks++, 0);
			}
		} else if (waiting_count > 0) {
			size_t pick = (size_t)rand() % waiting_count;
			in_flight_acknowledge(flight, waiting[pick], 0);
			acknowledged[waiting[pick]] = true;
			waiting[pick] = waiting[--waiting_count];
		}
		struct in_flight_mark mark;
		while (in_flight_safe(flight, &mark)) {
			assert_int_equal(mark.position, safe);
			for (uint64_t i = safe > 0 ? below[safe - 1] : 0; i < below[safe]; i++)
				assert_true(acknowledged[i]);
			safe++;
		}
		if (safe < marks) {
			bool all = true;
			for (uint64_t i = 0; i < below[safe] && all; i++)
				all = acknowledged[i];
			assert_false(all);
		}
	}
	assert_int_equal(safe, marks);
	free(acknowledged);
	free(waiting);
	free(below);
	in_flight_free(flight);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mark_waits_for_every_frame_before_it),
		cmocka_unit_test(a_mark_with_nothing_on_its_way_is_safe_at_once),
		cmocka_unit_test(marks_that_wait_for_the_same_frames_are_one_a_stream),
		cmocka_unit_test(random_orders_agree_with_a_model),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
