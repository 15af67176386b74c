/* What the files of the suite share. */
#ifndef TESTS_SUPPORT_STORE_SUITE_PARTS_H
#define TESTS_SUPPORT_STORE_SUITE_PARTS_H

#include "tests/support/store_suite.h"

/* The store at a place; the first ends the test where it cannot be opened. */
struct weir_store *open_store(void *place);
enum weir_status store_suite_open(void *place, struct weir_store **store, struct weir_error *why);
struct weir_partition_state take(struct weir_store *store, int role, uint32_t partition);
enum weir_status commit(struct weir_store *store, struct weir_partition_state *state, uint64_t checkpoint);
/* Archives a batch, with its days, as the next checkpoint of a partition. */
enum weir_status archive(struct weir_store *store, const struct weir_archive_batch *batch,
                         struct weir_partition_state *state, uint64_t checkpoint);
/* Asks, and compares the rows: columns with a space between, NULL as -, "; " behind each row. */
void assert_rows(struct weir_store *store, const char *sql, const struct weir_sql_value *parameters, unsigned count,
                 const char *expected);

void random_operations_equal_a_model(void **state);
void writers_wait_for_their_turn(void **state);
void what_is_archived_is_added_once(void **state);
void who_was_fenced_archives_nothing(void **state);
void a_decision_is_kept_as_it_came_first(void **state);
void many_counts_are_summed(void **state);
void many_events_are_kept(void **state);
void many_decisions_are_kept(void **state);
void old_rows_go(void **state);
void a_bucket_is_forgotten(void **state);
void a_bucket_of_many_rows_goes_in_steps(void **state);
void a_wrong_question_is_refused(void **state);
void zones_are_rows(void **state);
void views_have_names_and_times(void **state);

#endif
