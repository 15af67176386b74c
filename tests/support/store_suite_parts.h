/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the suite share. */
#ifndef TESTS_SUPPORT_STORE_SUITE_PARTS_H
#define TESTS_SUPPORT_STORE_SUITE_PARTS_H

#include "tests/support/store_suite.h"

/* The store at a place; the first ends the test where it cannot be opened. */
struct weir_store *open_store(void *place);
enum weir_status store_suite_open(void *place, struct weir_store **store, struct weir_error *why);
struct weir_partition_state take(struct weir_store *store, int role, uint32_t partition);
enum weir_status commit(struct weir_store *store, struct weir_partition_state *state, uint64_t checkpoint);
enum weir_status write_text(struct weir_store *store, const struct weir_partition_state *state, uint32_t segment,
                            uint64_t checkpoint, bool base, const char *text);
/* Blobs as text: "segment/checkpoint b|d bytes; ". */
enum weir_status collect(void *context, const struct weir_segment_blob *blob);
void assert_read(struct weir_store *store, const struct weir_partition_state *mine, const uint32_t *segments,
                 size_t count, const char *expected);
/* Archives a batch, with its days, as the next checkpoint of a partition. */
enum weir_status archive(struct weir_store *store, const struct weir_archive_batch *batch,
                         struct weir_partition_state *state, uint64_t checkpoint);
/* Asks, and compares the rows: columns with a space between, NULL as -, "; " behind each row. */
void assert_rows(struct weir_store *store, const char *sql, const struct weir_sql_value *parameters, unsigned count,
                 const char *expected);

void an_older_checkpoint_is_not_read_for_a_newer_one(void **state);
void segments_are_read_as_of_the_current_checkpoint(void **state);
void many_segments_come_in_the_order_asked_for(void **state);
void large_and_empty_segments_are_kept(void **state);
void segments_are_listed(void **state);
void what_is_behind_a_base_is_removed(void **state);
void a_reader_may_stop(void **state);
void random_operations_equal_a_model(void **state);
void writers_wait_for_their_turn(void **state);
void what_is_archived_is_added_once(void **state);
void who_was_fenced_archives_nothing(void **state);
void a_decision_is_kept_as_it_came_first(void **state);
void many_counts_are_summed(void **state);
void many_events_are_kept(void **state);
void many_decisions_are_kept(void **state);
void old_rows_go(void **state);
void blocks_that_hold_stay(void **state);
void a_bucket_is_forgotten(void **state);
void a_bucket_of_many_rows_goes_in_steps(void **state);
void a_wrong_question_is_refused(void **state);
void zones_are_rows(void **state);
void zones_are_as_the_newest_policy_says(void **state);
void views_have_names_and_times(void **state);

#endif
