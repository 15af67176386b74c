/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a partition holds under the epoch of whoever said so, and no longer. */
#include "common/cluster/partition_note.h"

#include "common/store/sqlite/store_sqlite.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PARTITION = 3 };

static struct weir_store *open_store(const char *directory)
{
	struct weir_store *store;
	assert_int_equal(weir_store_sqlite_open(directory, &store, NULL), WEIR_OK);
	return store;
}

static uint64_t take(struct weir_store *store)
{
	struct weir_partition_state held;
	assert_int_equal(store->ops->take(store, WEIR_STORE_ROLE_LIMITER, PARTITION, &held, NULL), WEIR_OK);
	return held.epoch;
}

static void assert_says(struct weir_store *store, const char *expected)
{
	char *words;
	assert_int_equal(weir_partition_note_get(store, WEIR_PARTITION_STOPPED, PARTITION, &words, NULL), WEIR_OK);
	if (expected == NULL)
		assert_null(words);
	else
		assert_string_equal(words, expected);
	free(words);
}

static void it_holds_until_the_partition_is_taken_again(void **state)
{
	struct weir_store *store = open_store(*state);
	assert_says(store, NULL);
	uint64_t epoch = take(store);
	assert_says(store, NULL);
	assert_int_equal(
		weir_partition_note_put(store, WEIR_PARTITION_STOPPED, PARTITION, epoch, "12 segments are damaged", NULL),
		WEIR_OK);
	assert_says(store, "12 segments are damaged");
	take(store);
	assert_says(store, NULL);
	assert_int_equal(weir_partition_note_put(store, WEIR_PARTITION_STOPPED, PARTITION, epoch,
	                                         "late words of the owner before", NULL),
	                 WEIR_OK);
	assert_says(store, NULL);
	store->ops->close(store);
}

static void one_that_could_not_be_taken_is_of_the_epoch_that_is_stored(void **state)
{
	struct weir_store *store = open_store(*state);
	take(store);
	assert_int_equal(weir_partition_note_put(store, WEIR_PARTITION_STOPPED, PARTITION, 0, "a policy is missing", NULL),
	                 WEIR_OK);
	assert_says(store, "a policy is missing");
	store->ops->close(store);
}

static void an_owner_of_before_overwrites_nothing(void **state)
{
	struct weir_store *store = open_store(*state);
	uint64_t before = take(store), epoch = take(store);
	assert_int_equal(
		weir_partition_note_put(store, WEIR_PARTITION_STOPPED, PARTITION, epoch, "12 segments are damaged", NULL),
		WEIR_OK);
	assert_int_equal(
		weir_partition_note_put(store, WEIR_PARTITION_STOPPED, PARTITION, before, "a policy is missing", NULL),
		WEIR_OK);
	assert_says(store, "12 segments are damaged");
	assert_int_equal(weir_partition_note_put(store, WEIR_PARTITION_STOPPED, PARTITION, before, "", NULL), WEIR_OK);
	assert_says(store, "12 segments are damaged");
	store->ops->close(store);
}

static void it_is_over_under_the_same_epoch(void **state)
{
	struct weir_store *store = open_store(*state);
	uint64_t epoch = take(store);
	assert_int_equal(
		weir_partition_note_put(store, WEIR_PARTITION_STOPPED, PARTITION, epoch, "a policy is missing", NULL), WEIR_OK);
	assert_int_equal(weir_partition_note_put(store, WEIR_PARTITION_STOPPED, PARTITION, epoch, "", NULL), WEIR_OK);
	assert_says(store, NULL);
	store->ops->close(store);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {
		CASE(it_holds_until_the_partition_is_taken_again),
		CASE(one_that_could_not_be_taken_is_of_the_epoch_that_is_stored),
		CASE(an_owner_of_before_overwrites_nothing),
		CASE(it_is_over_under_the_same_epoch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
