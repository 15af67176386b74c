/* SPDX-License-Identifier: Apache-2.0 */
/* Any store: checkpoints are whole, epochs fence, what is refused or fails leaves nothing behind. */
#include "tests/support/store_suite_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LIMITER = WEIR_STORE_ROLE_LIMITER, ARCHIVER = WEIR_STORE_ROLE_ARCHIVER };

static const struct store_suite *suite;
static struct weir_error error;

enum weir_status store_suite_open(void *place, struct weir_store **store, struct weir_error *why)
{
	return suite->open(place, store, why);
}

struct weir_store *open_store(void *place)
{
	struct weir_store *store = NULL;
	if (suite->open(place, &store, &error) != WEIR_OK || store == NULL) {
		fail_msg("%s", error.text);
		abort();
	}
	return store;
}

struct weir_partition_state take(struct weir_store *store, int role, uint32_t partition)
{
	struct weir_partition_state state;
	if (store->ops->take(store, role, partition, &state, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return state;
}

enum weir_status commit(struct weir_store *store, struct weir_partition_state *state, uint64_t checkpoint)
{
	state->checkpoint = checkpoint;
	return store->ops->commit(store, LIMITER, state, 1, NULL, NULL, 0, &error);
}

enum weir_status write_text(struct weir_store *store, const struct weir_partition_state *state, uint32_t segment,
                            uint64_t checkpoint, bool base, const char *text)
{
	struct weir_segment_blob blob = {segment, checkpoint, base, weir_span_of(text)};
	return store->ops->write_segments(store, state->partition, state->epoch, &blob, 1, &error);
}

enum weir_status collect(void *context, const struct weir_segment_blob *blob)
{
	char *text = context;
	sprintf(text + strlen(text), "%u/%llu %c %.*s; ", blob->segment, (unsigned long long)blob->checkpoint,
	        blob->base ? 'b' : 'd', (int)blob->bytes.length, blob->bytes.at);
	return WEIR_OK;
}

void assert_read(struct weir_store *store, const struct weir_partition_state *mine, const uint32_t *segments,
                 size_t count, const char *expected)
{
	char text[4096] = "";
	assert_int_equal(WEIR_OK, store->ops->read_segments(store, mine->partition, mine->epoch, mine->checkpoint, segments,
	                                                    count, collect, text, &error));
	assert_string_equal(expected, text);
}

static void taking_raises_the_epoch(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state limiter, archiver;
	assert_int_equal(WEIR_OK, store->ops->inspect(store, LIMITER, 3, &limiter, &error));
	assert_int_equal(0, limiter.epoch);
	assert_int_equal(3, limiter.partition);
	uint64_t epoch = 0;
	for (int i = 0; i < 3; i++) {
		limiter = take(store, LIMITER, 3);
		assert_true(limiter.epoch > epoch);
		epoch = limiter.epoch;
		assert_int_equal(3, limiter.partition);
		assert_int_equal(0, limiter.checkpoint);
		assert_int_equal(0, limiter.next_offset);
		assert_int_equal(0, limiter.extra.length);
	}
	archiver = take(store, ARCHIVER, 3);
	assert_true(archiver.epoch > 0);
	store->ops->close(store);
	store = open_store(*state);
	assert_int_equal(WEIR_OK, store->ops->inspect(store, LIMITER, 3, &limiter, &error));
	assert_int_equal(epoch, limiter.epoch);
	assert_true(take(store, LIMITER, 3).epoch > epoch);
	store->ops->close(store);
}

static void a_commit_is_there_after_a_restart(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state states[2] = {take(store, LIMITER, 0), take(store, LIMITER, 1)};
	static const char *const names[] = {"once", "empty", "gone"};
	struct weir_span values[] = {weir_span_of("a\nb"), {.at = "", .length = 0}, {0}};
	char *value;
	size_t length;
	assert_int_equal(WEIR_OK, store->ops->note_put(store, "gone", weir_span_of("x"), &error));
	for (uint32_t i = 0; i < 2; i++) {
		states[i].checkpoint = 1;
		states[i].next_offset = UINT64_C(1) << 60;
		states[i].clock_ms = 1732173600123;
		states[i].policy_version = 5;
		states[i].extra = (struct weir_span){.at = "e\0x", .length = 3};
	}
	assert_int_equal(WEIR_OK, store->ops->commit(store, LIMITER, states, 2, names, values, 3, &error));
	store->ops->close(store);
	store = open_store(*state);
	for (uint32_t i = 0; i < 2; i++) {
		struct weir_partition_state found = take(store, LIMITER, i);
		assert_true(found.epoch > states[i].epoch);
		assert_int_equal(1, found.checkpoint);
		assert_int_equal(UINT64_C(1) << 60, found.next_offset);
		assert_int_equal(1732173600123, found.clock_ms);
		assert_int_equal(5, found.policy_version);
		assert_int_equal(3, found.extra.length);
		assert_memory_equal("e\0x", found.extra.at, 3);
	}
	assert_int_equal(WEIR_OK, store->ops->note_get(store, "once", &value, &length, &error));
	assert_int_equal(3, length);
	assert_string_equal("a\nb", value);
	free(value);
	assert_int_equal(WEIR_OK, store->ops->note_get(store, "empty", &value, &length, &error));
	assert_non_null(value);
	assert_int_equal(0, length);
	free(value);
	assert_int_equal(WEIR_OK, store->ops->note_get(store, "gone", &value, &length, &error));
	assert_null(value);
	store->ops->close(store);
}

/* Whoever does not know whether a commit was made makes it again. */
static void a_commit_may_be_made_again(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine = take(store, LIMITER, 0), found;
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1, 1, true, "one"));
	mine.next_offset = 100;
	assert_int_equal(WEIR_OK, commit(store, &mine, 1));
	assert_int_equal(WEIR_INVALID, write_text(store, &mine, 1, 1, true, "another"));
	assert_string_equal("checkpoint 1 of partition 0 is current and cannot be changed", error.text);
	assert_int_equal(WEIR_OK, commit(store, &mine, 1));
	assert_int_equal(WEIR_OK, store->ops->inspect(store, LIMITER, 0, &found, &error));
	assert_int_equal(1, found.checkpoint);
	assert_int_equal(100, found.next_offset);
	uint32_t segment = 1;
	assert_read(store, &mine, &segment, 1, "1/1 b one; ");
	store->ops->close(store);
}

static void an_older_owner_writes_nothing(void **state)
{
	struct weir_store *old = open_store(*state), *new = open_store(*state);
	struct weir_partition_state mine = take(old, LIMITER, 0), other = take(old, LIMITER, 1);
	assert_int_equal(WEIR_OK, write_text(old, &mine, 5, 1, true, "old"));
	assert_int_equal(WEIR_OK, commit(old, &mine, 1));
	struct weir_partition_state theirs = take(new, LIMITER, 0);
	assert_int_equal(WEIR_FENCED, write_text(old, &mine, 5, 2, true, "zombie"));
	assert_string_equal("partition 0 now has another owner", error.text);
	/* One partition that is lost takes the whole commit with it: states, notes. */
	struct weir_partition_state states[2] = {other, mine};
	states[0].checkpoint = states[1].checkpoint = 2;
	static const char *const names[] = {"note"};
	struct weir_span values[] = {weir_span_of("zombie")};
	assert_int_equal(WEIR_FENCED, old->ops->commit(old, LIMITER, states, 2, names, values, 1, &error));
	assert_int_equal(WEIR_FENCED, old->ops->clean(old, 0, mine.epoch, &error));
	char *value;
	size_t length;
	assert_int_equal(WEIR_OK, new->ops->note_get(new, "note", &value, &length, &error));
	assert_null(value);
	struct weir_partition_state found;
	assert_int_equal(WEIR_OK, new->ops->inspect(new, LIMITER, 1, &found, &error));
	assert_int_equal(0, found.checkpoint);
	char text[64] = "";
	uint32_t segment = 5;
	assert_int_equal(WEIR_FENCED, old->ops->read_segments(old, 0, mine.epoch, 0, &segment, 1, collect, text, &error));
	assert_string_equal("", text);
	assert_read(new, &theirs, &segment, 1, "5/1 b old; ");
	assert_int_equal(WEIR_OK, commit(new, &theirs, 2));
	/* A partition that nobody took has no owner either. */
	struct weir_partition_state never = {.partition = 9, .epoch = 0};
	assert_int_equal(WEIR_FENCED, commit(new, &never, 1));
	assert_int_equal(WEIR_FENCED, write_text(new, &never, 0, 1, true, "x"));
	old->ops->close(old);
	new->ops->close(new);
}

/* What a store has lost, though it said that it had it, is not passed over by what comes behind it. */
static void a_checkpoint_behind_one_that_is_gone_is_refused(void **state)
{
	struct weir_store *store = open_store(*state);
	for (int role = LIMITER; role <= WEIR_STORE_ROLE_ARCHIVER; role++) {
		struct weir_partition_state mine = take(store, role, 0), found;
		mine.checkpoint = 1;
		assert_int_equal(WEIR_OK, store->ops->commit(store, role, &mine, 1, NULL, NULL, 0, &error));
		mine.checkpoint = 3;
		assert_int_equal(WEIR_FENCED, store->ops->commit(store, role, &mine, 1, NULL, NULL, 0, &error));
		assert_string_equal("partition 0 now has another owner, or its last checkpoint is gone", error.text);
		assert_int_equal(WEIR_OK, store->ops->inspect(store, role, 0, &found, &error));
		assert_int_equal(1, found.checkpoint);
	}
	store->ops->close(store);
}

static enum weir_status collect_policy(void *context, uint64_t version, struct weir_span text)
{
	char *all = context;
	sprintf(all + strlen(all), "%llu=%.*s; ", (unsigned long long)version, (int)text.length, text.at);
	return version == 9 ? WEIR_INVALID : WEIR_OK;
}

static void policies_are_numbered_and_never_change(void **state)
{
	struct weir_store *store = open_store(*state);
	char text[256] = "";
	assert_int_equal(WEIR_OK, store->ops->policy_put(store, 2, weir_span_of("two"), &error));
	assert_int_equal(WEIR_OK, store->ops->policy_put(store, 1, weir_span_of("one"), &error));
	assert_int_equal(WEIR_OK, store->ops->policy_put(store, 2, weir_span_of("two"), &error));
	assert_int_equal(WEIR_INVALID, store->ops->policy_put(store, 2, weir_span_of("other"), &error));
	assert_string_equal("policy version 2 already exists with other contents", error.text);
	assert_int_equal(WEIR_OK, store->ops->policy_each(store, 0, collect_policy, text, &error));
	assert_string_equal("1=one; 2=two; ", text);
	text[0] = '\0';
	assert_int_equal(WEIR_OK, store->ops->policy_put(store, 9, weir_span_of("nine"), &error));
	assert_int_equal(WEIR_OK, store->ops->policy_put(store, 10, weir_span_of("ten"), &error));
	assert_int_equal(WEIR_INVALID, store->ops->policy_each(store, 2, collect_policy, text, &error));
	assert_string_equal("2=two; 9=nine; ", text);
	text[0] = '\0';
	assert_int_equal(WEIR_OK, store->ops->policy_each(store, 11, collect_policy, text, &error));
	assert_string_equal("", text);
	store->ops->close(store);
}

int store_suite_run(const struct store_suite *of)
{
#define test(name) cmocka_unit_test_setup_teardown(name, of->setup, of->teardown)
	const struct CMUnitTest tests[] = {
		test(taking_raises_the_epoch),
		test(a_commit_is_there_after_a_restart),
		test(a_commit_may_be_made_again),
		test(an_older_owner_writes_nothing),
		test(a_checkpoint_behind_one_that_is_gone_is_refused),
		test(an_older_checkpoint_is_not_read_for_a_newer_one),
		test(segments_are_read_as_of_the_current_checkpoint),
		test(many_segments_come_in_the_order_asked_for),
		test(large_and_empty_segments_are_kept),
		test(segments_are_listed),
		test(what_is_behind_a_base_is_removed),
		test(a_reader_may_stop),
		test(policies_are_numbered_and_never_change),
		test(random_operations_equal_a_model),
		test(what_is_archived_is_added_once),
		test(who_was_fenced_archives_nothing),
		test(a_decision_is_kept_as_it_came_first),
		test(many_counts_are_summed),
		test(many_events_are_kept),
		test(many_decisions_are_kept),
		test(old_rows_go),
		test(blocks_that_hold_stay),
		test(a_bucket_is_forgotten),
		test(a_bucket_of_many_rows_goes_in_steps),
		test(a_wrong_question_is_refused),
		test(zones_are_rows),
		test(zones_are_as_the_newest_policy_says),
		test(views_have_names_and_times),
		test(writers_wait_for_their_turn),
	};
	suite = of;
	return cmocka_run_group_tests_name(of->name, tests, NULL, NULL);
}
