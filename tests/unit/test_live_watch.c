/* SPDX-License-Identifier: Apache-2.0 */
/* How long the partition that waits longest has done so: one that is judged in between begins anew. */
#include "limiter/daemon/live_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PARTITIONS = 3 };

static int64_t age_after(struct live_watch *watch, bool first, bool second, bool third, int64_t now_ms)
{
	live_watch_look(watch, 0, first, now_ms);
	live_watch_look(watch, 1, second, now_ms);
	live_watch_look(watch, 2, third, now_ms);
	return live_watch_age_ms(watch, now_ms);
}

static void the_oldest_counts(void **state)
{
	(void)state;
	struct live_watch watch = {0};
	live_watch_init(&watch, PARTITIONS);
	assert_int_equal(live_watch_age_ms(&watch, 500), 0);
	assert_int_equal(age_after(&watch, false, false, false, 1000), 0);
	assert_int_equal(age_after(&watch, false, true, false, 2000), 0);
	assert_int_equal(age_after(&watch, true, true, false, 5000), 3000);
	assert_int_equal(live_watch_age_ms(&watch, 6000), 4000); /* between two looks */
	/* The oldest is judged; the other goes on. */
	assert_int_equal(age_after(&watch, true, false, true, 9000), 4000);
	/* A rolling restart: others each time. */
	assert_int_equal(age_after(&watch, false, true, true, 10000), 1000);
	assert_int_equal(age_after(&watch, true, true, false, 11000), 1000);
	assert_int_equal(age_after(&watch, false, false, false, 12000), 0);
	live_watch_deinit(&watch);
}

static void what_has_words_of_its_own_does_not_wait(void **state)
{
	(void)state;
	static const bool awaits[WORKER_STATE_COUNT] = {
		[WORKER_EMPTY] = true, [WORKER_TAKING] = true, [WORKER_LEAVING] = true, [WORKER_DROPPED] = true};
	for (int each = 0; each < WORKER_STATE_COUNT; each++)
		assert_int_equal(live_watch_awaits((enum worker_state)each), awaits[each]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_counts),
		cmocka_unit_test(what_has_words_of_its_own_does_not_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
