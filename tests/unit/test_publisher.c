/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A publisher: what is acknowledged topic by topic, what a broken delivery stops,
 * and when there is another producer.
 */
#include "held_bus.h"

#include "common/base/clock.h"

static int set_up(void **state)
{
	static struct held scene;
	held_begin(&scene);
	*state = &scene;
	return 0;
}

static int tear_down(void **state)
{
	held_end(*state);
	return 0;
}

static void a_mark_is_passed_when_each_topic_is(void **state)
{
	struct held *scene = *state;
	struct publisher *publisher = &scene->publisher;
	struct publisher_mark mark, other;
	held_publish(scene, 1, WEIR_TOPIC_DECISIONS);
	held_publish(scene, 1, WEIR_TOPIC_JUDGED);
	publisher_mark(publisher, 1, &mark);
	publisher_mark(publisher, 2, &other);
	held_publish(scene, 1, WEIR_TOPIC_DECISIONS);
	held_publish(scene, 1, WEIR_TOPIC_DECISIONS);
	assert_true(publisher_has_passed(publisher, 2, &other)); /* it has published nothing */
	for (size_t number = 0; number < 4; number++) {
		if (number == 1)
			continue;
		held_answer(scene, number, WEIR_OK);
		assert_false(publisher_has_passed(publisher, 1, &mark)); /* however many decisions: the judged frame lacks */
	}
	assert_false(publisher_is_acknowledged(publisher, 1));
	held_answer(scene, 1, WEIR_OK);
	assert_true(publisher_has_passed(publisher, 1, &mark));
	assert_true(publisher_is_acknowledged(publisher, 1));
	assert_true(publisher_works(publisher));
}

/* What is sent later is behind the mark. */
static void a_mark_says_nothing_of_what_comes_after_it(void **state)
{
	struct held *scene = *state;
	struct publisher_mark mark;
	held_publish(scene, 0, WEIR_TOPIC_JUDGED);
	publisher_mark(&scene->publisher, 0, &mark);
	held_publish(scene, 0, WEIR_TOPIC_JUDGED);
	held_answer(scene, 0, WEIR_OK);
	assert_true(publisher_has_passed(&scene->publisher, 0, &mark));
	assert_false(publisher_is_acknowledged(&scene->publisher, 0));
}

static void a_failed_delivery_breaks_it(void **state)
{
	struct held *scene = *state;
	struct publisher *publisher = &scene->publisher;
	struct publisher_mark mark;
	held_publish(scene, 0, WEIR_TOPIC_JUDGED);
	publisher_mark(publisher, 0, &mark);
	held_answer(scene, 0, WEIR_IO);
	assert_int_equal(publisher->state, PUBLISHER_BROKEN);
	assert_false(publisher_works(publisher));
	assert_false(publisher_has_passed(publisher, 0, &mark));
	held_publish(scene, 0, WEIR_TOPIC_JUDGED);
	assert_int_equal(bus.sent_count, 1); /* nothing more */
	held_answer(scene, 0, WEIR_OK);
	assert_false(publisher_has_passed(publisher, 0, &mark)); /* and nothing more is believed */
	assert_int_equal(scene->core.status, WEIR_OK);           /* the worker goes on */
}

static void a_refused_message_breaks_it_or_fails_the_worker(void **state)
{
	struct held *scene = *state;
	bus.refusal = WEIR_IO;
	held_publish(scene, 0, WEIR_TOPIC_JUDGED);
	assert_int_equal(scene->publisher.state, PUBLISHER_BROKEN);
	assert_int_equal(scene->core.status, WEIR_OK);
	(void)publisher_close(&scene->publisher);
	bus.refusal = WEIR_INVALID;
	scene->publisher.renew_ms = 0;
	publisher_renew(&scene->publisher);
	held_publish(scene, 0, WEIR_TOPIC_JUDGED);
	assert_int_equal(scene->publisher.state, PUBLISHER_WORKING);
	assert_int_equal(scene->core.status, WEIR_INVALID);
	assert_false(publisher_works(&scene->publisher));
}

static void another_producer_is_made_when_it_is_due(void **state)
{
	struct held *scene = *state;
	struct publisher *publisher = &scene->publisher;
	struct publisher_mark mark;
	held_publish(scene, 0, WEIR_TOPIC_JUDGED);
	held_answer(scene, 0, WEIR_IO);
	int64_t before_ms = weir_monotonic_ms(), due_ms = publisher_close(publisher);
	assert_int_equal(publisher->state, PUBLISHER_CLOSED);
	assert_int_equal(bus.freed, 1);
	assert_true(due_ms >= before_ms + WORKER_RETRY_MS);
	publisher_renew(publisher); /* not yet */
	assert_int_equal(publisher->state, PUBLISHER_CLOSED);
	bus.none_to_be_had = true;
	publisher->renew_ms = 0; /* it is due, but there is none */
	publisher_renew(publisher);
	assert_int_equal(publisher->state, PUBLISHER_CLOSED);
	assert_true(publisher->renew_ms > weir_monotonic_ms());
	bus.none_to_be_had = false;
	publisher->renew_ms = 0;
	publisher_renew(publisher);
	assert_true(publisher_works(publisher));
	assert_int_equal(bus.producers, 2);
	publisher_mark(publisher, 0, &mark); /* what the first one lost is owed by nobody */
	assert_true(publisher_has_passed(publisher, 0, &mark));
}

static void those_that_break_in_a_row_come_ever_later(void **state)
{
	struct held *scene = *state;
	struct publisher *publisher = &scene->publisher;
	int64_t waited_ms = 0;
	bus.refusal = WEIR_IO;
	for (int i = 0; i < 8; i++) {
		held_publish(scene, 0, WEIR_TOPIC_JUDGED);
		int64_t now_ms = weir_monotonic_ms(), wait_ms = publisher_close(publisher) - now_ms;
		assert_in_range(wait_ms, WORKER_RETRY_MS << (i < 5 ? i : 5), (WORKER_RETRY_MS << (i < 5 ? i : 5)) + 900);
		assert_true(wait_ms >= waited_ms - 900);
		waited_ms = wait_ms;
		publisher->renew_ms = 0;
		publisher_renew(publisher);
	}
}

static void only_the_ring_of_states_is_legal(void **state)
{
	(void)state;
	for (int from = 0; from < PUBLISHER_STATE_COUNT; from++)
		for (int to = 0; to < PUBLISHER_STATE_COUNT; to++) {
			bool legal = (from == PUBLISHER_CLOSED && to == PUBLISHER_WORKING) ||
			             (from == PUBLISHER_WORKING && to == PUBLISHER_BROKEN) ||
			             (from == PUBLISHER_BROKEN && to == PUBLISHER_CLOSED);
			assert_int_equal(publisher_state_may_follow((enum publisher_state)from, (enum publisher_state)to), legal);
		}
}

static void close_publisher(void *publisher)
{
	(void)publisher_close(publisher);
}

static void one_that_works_is_not_closed(void **state)
{
	struct held *scene = *state;
#ifndef WEIR_LIBRARIES_ASSERT
	skip();
#endif
	assert_true(held_is_asserted(close_publisher, &scene->publisher));
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(a_mark_is_passed_when_each_topic_is),
		test(a_mark_says_nothing_of_what_comes_after_it),
		test(a_failed_delivery_breaks_it),
		test(a_refused_message_breaks_it_or_fails_the_worker),
		test(another_producer_is_made_when_it_is_due),
		test(those_that_break_in_a_row_come_ever_later),
		test(only_the_ring_of_states_is_legal),
		test(one_that_works_is_not_closed),
	};
	return cmocka_run_group_tests_name("publisher", tests, NULL, NULL);
}
