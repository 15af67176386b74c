/* SPDX-License-Identifier: Apache-2.0 */
/* What every store must do, as tests that a program runs on its own kind of store. */
#ifndef TESTS_SUPPORT_STORE_SUITE_H
#define TESTS_SUPPORT_STORE_SUITE_H

#include "common/store/store.h"

struct store_suite {
	const char *name;
	/* As cmocka's: *state is a new place for a store, for each test. */
	int (*setup)(void **state);
	int (*teardown)(void **state);
	/* Opens the store at a place; several times, from several threads. */
	enum weir_status (*open)(void *place, struct weir_store **store, struct weir_error *error);
};

/** Runs all of the tests. @return how many failed */
int store_suite_run(const struct store_suite *suite);

#endif
