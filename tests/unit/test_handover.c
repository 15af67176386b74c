/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever is to take a partition waits for whoever leaves it: not at all, a moment or a bounded while, to the millisecond. */
#include "limiter/checkpoint/handover.h"

#include "common/store/sqlite/store_sqlite.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PARTITION = 3, SILENT_MS = 150, LEAVING_MS = 5000 };

static struct weir_store *open_store(const char *directory)
{
	struct weir_store *store;
	assert_int_equal(weir_store_sqlite_open(directory, &store, NULL), WEIR_OK);
	return store;
}

static uint64_t take(struct weir_store *store, uint32_t partition)
{
	struct weir_partition_state held;
	assert_int_equal(store->ops->take(store, WEIR_STORE_ROLE_LIMITER, partition, &held, NULL), WEIR_OK);
	return held.epoch;
}

static enum weir_status ask(struct weir_store *store, int64_t waited_ms)
{
	struct weir_error error;
	return handover_ask(store, PARTITION, waited_ms, &error);
}

static void a_partition_that_never_had_an_owner_is_taken_at_once(void **state)
{
	struct weir_store *store = open_store(*state);
	assert_int_equal(ask(store, 0), WEIR_OK);
	store->ops->close(store);
}

static void a_silent_owner_is_waited_for_a_moment(void **state)
{
	struct weir_store *store = open_store(*state);
	take(store, PARTITION);
	assert_int_equal(ask(store, 0), WEIR_AGAIN);
	assert_int_equal(ask(store, SILENT_MS - 1), WEIR_AGAIN);
	assert_int_equal(ask(store, SILENT_MS), WEIR_OK);
	store->ops->close(store);
}

static void one_that_is_leaving_is_waited_for_and_one_that_has_left_is_not(void **state)
{
	struct weir_store *store = open_store(*state);
	uint64_t epoch = take(store, PARTITION);
	assert_int_equal(handover_announce(store, PARTITION, epoch, false, NULL), WEIR_OK);
	assert_int_equal(ask(store, SILENT_MS), WEIR_AGAIN);
	assert_int_equal(ask(store, LEAVING_MS - 1), WEIR_AGAIN);
	assert_int_equal(ask(store, LEAVING_MS), WEIR_OK);
	assert_int_equal(handover_announce(store, PARTITION, epoch, true, NULL), WEIR_OK);
	assert_int_equal(ask(store, 0), WEIR_OK);
	store->ops->close(store);
}

static void a_word_of_an_older_epoch_or_of_another_partition_says_nothing(void **state)
{
	struct weir_store *store = open_store(*state);
	uint64_t epoch = take(store, PARTITION);
	assert_int_equal(handover_announce(store, PARTITION, epoch, true, NULL), WEIR_OK);
	assert_true(take(store, PARTITION) > epoch);
	assert_int_equal(ask(store, 0), WEIR_AGAIN);
	assert_int_equal(ask(store, SILENT_MS), WEIR_OK);
	assert_int_equal(handover_announce(store, PARTITION + 1, epoch + 1, true, NULL), WEIR_OK);
	assert_int_equal(ask(store, 0), WEIR_AGAIN);
	store->ops->close(store);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_partition_that_never_had_an_owner_is_taken_at_once),
		CASE(a_silent_owner_is_waited_for_a_moment),
		CASE(one_that_is_leaving_is_waited_for_and_one_that_has_left_is_not),
		CASE(a_word_of_an_older_epoch_or_of_another_partition_says_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
