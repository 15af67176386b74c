/* What the files of the suite share. */
#ifndef TESTS_SUPPORT_STORE_SUITE_PARTS_H
#define TESTS_SUPPORT_STORE_SUITE_PARTS_H

#include "tests/support/store_suite.h"

/* The store at a place; the first ends the test where it cannot be opened. */
struct weir_store *open_store(void *place);
enum weir_status store_suite_open(void *place, struct weir_store **store, struct weir_error *why);
struct weir_partition_state take(struct weir_store *store, int role, uint32_t partition);
enum weir_status commit(struct weir_store *store, struct weir_partition_state *state, uint64_t checkpoint);

void random_operations_equal_a_model(void **state);
void writers_wait_for_their_turn(void **state);

#endif
