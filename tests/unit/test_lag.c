/* SPDX-License-Identifier: Apache-2.0 */
/* How far behind the log: summed over partitions that are worked on, by the ends known last, over once left. */
#include "common/base/clock.h"
#include "common/cluster/lag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000, BEHIND_MS = 5000 };

/* Three partitions of two topics; the last is not worked on. All of it outlives the test: the thread goes on. */
static struct {
	_Atomic uint64_t ends[WEIR_TOPIC_COUNT][3], places[WEIR_TOPIC_COUNT][3];
	_Atomic bool down[WEIR_TOPIC_COUNT], working;
	_Atomic int64_t clock_ms;
	_Atomic uint64_t looks, refused;
} scene;

static enum weir_status extent(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t *first,
                               uint64_t *next, struct weir_error *error)
{
	(void)bus;
	if (atomic_load(&scene.down[topic]) && atomic_fetch_add(&scene.refused, 1) < UINT64_MAX)
		return weir_fail(error, WEIR_IO, "nobody is there");
	*first = 0;
	*next = atomic_load(&scene.ends[topic][partition]);
	return WEIR_OK;
}

static bool look(void *context, enum weir_topic topic, uint32_t partition, struct weir_lag_place *place)
{
	(void)context;
	atomic_fetch_add(&scene.looks, 1);
	*place = (struct weir_lag_place){atomic_load(&scene.places[topic][partition]),
	                                 topic == WEIR_TOPIC_JUDGED ? atomic_load(&scene.clock_ms) : 0};
	return atomic_load(&scene.working) && partition < 2;
}

static const struct weir_bus_ops ops = {.extent = extent};
static struct weir_bus bus = {&ops, 3};
static struct weir_lag *lag;

/* All partitions have been looked at, twice. */
static void wait_for_looks(void)
{
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (atomic_load(&scene.looks) < 12 && weir_monotonic_ms() < end_ms)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_true(atomic_load(&scene.looks) >= 12);
}

static void wait_for_refusals(void)
{
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (atomic_load(&scene.refused) < 2 && weir_monotonic_ms() < end_ms)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_true(atomic_load(&scene.refused) >= 2);
}

/* Waits until it tells so many messages. */
static double seconds_at(uint64_t expected)
{
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	uint64_t messages = 0;
	double seconds = -1;
	while ((!weir_lag_read(lag, &messages, &seconds) || messages != expected) && weir_monotonic_ms() < end_ms)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(messages, expected);
	return seconds;
}

static void what_is_behind_is_told(void **state)
{
	static const enum weir_topic topics[] = {WEIR_TOPIC_JUDGED, WEIR_TOPIC_DECISIONS};
	const struct weir_lag_options options = {&bus, topics, 2, look, &scene};
	struct weir_error error;
	uint64_t messages;
	double seconds;
	(void)state;
	assert_int_equal(weir_lag_start(&options, &lag, &error), WEIR_OK);
	wait_for_looks();
	assert_false(weir_lag_read(lag, &messages, &seconds)); /* nothing is worked on: it is not known */

	atomic_store(&scene.clock_ms, weir_wall_ms() - BEHIND_MS);
	atomic_store(&scene.ends[WEIR_TOPIC_JUDGED][1], 7);
	atomic_store(&scene.places[WEIR_TOPIC_JUDGED][1], 3);
	atomic_store(&scene.ends[WEIR_TOPIC_DECISIONS][0], 100);
	atomic_store(&scene.ends[WEIR_TOPIC_JUDGED][2], 1000);
	atomic_store(&scene.working, true);
	seconds = seconds_at(104);
	assert_true(seconds >= BEHIND_MS / 1000.0 && seconds < (BEHIND_MS + PATIENCE_MS) / 1000.0);

	atomic_store(&scene.down[WEIR_TOPIC_JUDGED], true);
	atomic_store(&scene.ends[WEIR_TOPIC_JUDGED][1], 1000000);
	wait_for_refusals();
	atomic_store(&scene.ends[WEIR_TOPIC_DECISIONS][0], 110);
	seconds_at(114); /* the end known last, and those whose servers answer go on */

	atomic_store(&scene.ends[WEIR_TOPIC_JUDGED][1], 7);
	atomic_store(&scene.places[WEIR_TOPIC_JUDGED][1], 7);
	atomic_store(&scene.places[WEIR_TOPIC_DECISIONS][0], 109);
	atomic_store(&scene.down[WEIR_TOPIC_JUDGED], false);
	seconds =
		seconds_at(1); /* judged is at its end; of decisions, which tell no time, it is known how long one waits */
	assert_true(seconds >= 0 && seconds < PATIENCE_MS / 1000.0);

	atomic_store(&scene.working, false);
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (weir_lag_read(lag, &messages, &seconds) && weir_monotonic_ms() < end_ms)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_false(
		weir_lag_read(lag, &messages, &seconds)); /* none is worked on any more: 0 would say that all is done */
	atomic_store(&scene.working, true);
	seconds_at(1);

	/* A clock that is two hours wrong, here or at a sender, makes nothing late. */
	atomic_store(&scene.clock_ms, weir_wall_ms() - INT64_C(7200000));
	atomic_store(&scene.ends[WEIR_TOPIC_JUDGED][1], 9);
	seconds = seconds_at(3);
	assert_true(seconds < 60);
	double first = seconds;
	while (seconds < first + 1.5 && weir_monotonic_ms() < end_ms + PATIENCE_MS) /* but it grows while nothing is done */
		seconds = seconds_at(3);
	assert_true(seconds >= first + 1.5 && seconds < 60);

	/* When nobody has said for long where the logs end, the lag is not known: what it was is no news. */
	atomic_store(&scene.down[WEIR_TOPIC_JUDGED], true);
	atomic_store(&scene.down[WEIR_TOPIC_DECISIONS], true);
	end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (weir_lag_read(lag, &messages, &seconds) && weir_monotonic_ms() < end_ms)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_false(weir_lag_read(lag, &messages, &seconds));
	atomic_store(&scene.down[WEIR_TOPIC_JUDGED], false);
	atomic_store(&scene.down[WEIR_TOPIC_DECISIONS], false);
	seconds_at(3);

	weir_lag_leave(lag);
	uint64_t looks = atomic_load(&scene.looks);
	nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 200000000}, NULL);
	assert_int_equal(atomic_load(&scene.looks), looks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_behind_is_told)};
	return cmocka_run_group_tests_name("lag", tests, NULL, NULL);
}
