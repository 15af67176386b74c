/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store does what every store must do. */
#include "common/store/sqlite/store_sqlite.h"
#include "scratch.h"
#include "tests/support/store_suite.h"

static enum weir_status open_sqlite(void *place, struct weir_store **store, struct weir_error *error)
{
	return weir_store_sqlite_open(place, store, error);
}

int main(void)
{
	const struct store_suite suite = {"store_sqlite", scratch_setup, scratch_teardown, open_sqlite};
	return store_suite_run(&suite);
}
