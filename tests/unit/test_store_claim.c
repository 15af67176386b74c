/* SPDX-License-Identifier: Apache-2.0 */
/* A store is of the cluster that claimed it first. */
#include "common/cluster/store_claim.h"
#include "common/store/sqlite/store_sqlite.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct weir_store *open_store(const char *directory)
{
	struct weir_store *store;
	struct weir_error error;
	if (weir_store_sqlite_open(directory, &store, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return store;
}

static struct weir_config config_of(char *prefix)
{
	struct weir_config config = {0};
	config.bus.prefix = prefix;
	config.store.database = prefix;
	return config;
}

static void another_prefix_is_refused_once_a_store_is_claimed(void **state)
{
	char *directory = scratch_new(), ours[] = "ours", theirs[] = "theirs", longer[] = "ours2";
	struct weir_store *store = open_store(directory);
	struct weir_config first = config_of(ours), second = config_of(theirs), third = config_of(longer);
	struct weir_error error;
	(void)state;
	/* Nobody has claimed it: whoever only looks leaves that so. */
	assert_int_equal(weir_store_check_claim(store, &second, &error), WEIR_OK);
	assert_int_equal(weir_store_claim(store, &first, &error), WEIR_OK);
	assert_int_equal(weir_store_claim(store, &first, &error), WEIR_OK);
	assert_int_equal(weir_store_check_claim(store, &first, &error), WEIR_OK);
	assert_int_equal(weir_store_claim(store, &second, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "\"ours\""));
	assert_non_null(strstr(error.text, "\"theirs\""));
	assert_int_equal(weir_store_check_claim(store, &second, &error), WEIR_INVALID);
	assert_int_equal(weir_store_check_claim(store, &third, &error), WEIR_INVALID);
	store->ops->close(store);
	scratch_remove(directory);
	free(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_prefix_is_refused_once_a_store_is_claimed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
