/* SPDX-License-Identifier: Apache-2.0 */
/* What all limiters of a store agree on is made once, by whoever is first. */
#include "common/store/sqlite/store_sqlite.h"
#include "limiter/checkpoint/cluster_metadata.h"
#include "scratch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { LIMITERS = 6 };

struct limiter {
	pthread_t thread;
	const char *directory;
	uint64_t seed;
	enum weir_status status;
	struct weir_error error;
};

static void *establish(void *context)
{
	struct limiter *limiter = context;
	struct weir_store *store;
	limiter->status = weir_store_sqlite_open(limiter->directory, &store, &limiter->error);
	if (limiter->status != WEIR_OK)
		return NULL;
	limiter->status = cluster_metadata_establish(store, 16, &limiter->seed, &limiter->error);
	store->ops->close(store);
	return NULL;
}

static void limiters_that_start_at_once_agree(void **state)
{
	struct weir_store *store; /* the schema is not what they race for */
	assert_int_equal(weir_store_sqlite_open(*state, &store, NULL), WEIR_OK);
	struct limiter limiters[LIMITERS] = {0};
	for (int i = 0; i < LIMITERS; i++) {
		limiters[i].directory = *state;
		assert_int_equal(pthread_create(&limiters[i].thread, NULL, establish, &limiters[i]), 0);
	}
	for (int i = 0; i < LIMITERS; i++)
		pthread_join(limiters[i].thread, NULL);
	for (int i = 0; i < LIMITERS; i++) {
		if (limiters[i].status != WEIR_OK)
			fail_msg("%s", limiters[i].error.text);
		assert_int_equal(limiters[i].seed, limiters[0].seed);
	}
	uint64_t later;
	assert_int_equal(cluster_metadata_establish(store, 16, &later, NULL), WEIR_OK);
	assert_int_equal(later, limiters[0].seed);
	store->ops->close(store);
}

static void what_nobody_agreed_on_is_not_made_by_looking(void **state)
{
	struct weir_store *store;
	uint64_t seed, found;
	assert_int_equal(weir_store_sqlite_open(*state, &store, NULL), WEIR_OK);
	assert_int_equal(cluster_metadata_read(store, 16, &seed, NULL), WEIR_END);
	assert_int_equal(cluster_metadata_read(store, 16, &seed, NULL), WEIR_END);
	assert_int_equal(cluster_metadata_establish(store, 16, &seed, NULL), WEIR_OK);
	assert_int_equal(cluster_metadata_read(store, 16, &found, NULL), WEIR_OK);
	assert_int_equal(found, seed);
	store->ops->close(store);
}

static void another_number_of_partitions_is_refused(void **state)
{
	struct weir_store *store;
	struct weir_error error;
	uint64_t seed;
	assert_int_equal(weir_store_sqlite_open(*state, &store, NULL), WEIR_OK);
	assert_int_equal(cluster_metadata_establish(store, 16, &seed, &error), WEIR_OK);
	assert_int_equal(cluster_metadata_establish(store, 8, &seed, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "16 partitions"));
	assert_int_equal(cluster_metadata_read(store, 8, &seed, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "16 partitions"));
	store->ops->close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(limiters_that_start_at_once_agree, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(what_nobody_agreed_on_is_not_made_by_looking, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(another_number_of_partitions_is_refused, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
