/* SPDX-License-Identifier: Apache-2.0 */
/* A cut that is brought to a store whose answers get lost: it is stored once, whatever is tried again. */
#include "common/store/sqlite/store_sqlite.h"
#include "limiter/checkpoint/checkpoint.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SEGMENTS = 700 }; /* more than one transaction takes */

static struct weir_error error;

/* A store before another one, whose commits fail after they were made. */
struct deaf_store {
	struct weir_store store;
	struct weir_store *real;
	int lost; /* answers that are still to be lost */
};

static struct weir_store *real_of(struct weir_store *store)
{
	return ((struct deaf_store *)store)->real;
}

static enum weir_status deaf_archive(struct weir_store *store, int role, const struct weir_archive_batch *batch,
                                     const struct weir_partition_state *states, size_t count, const char *const *names,
                                     const struct weir_span *values, size_t note_count, struct weir_error *why)
{
	struct deaf_store *deaf = (struct deaf_store *)store;
	enum weir_status status =
		deaf->real->ops->archive(deaf->real, role, batch, states, count, names, values, note_count, why);
	return deaf->lost-- > 0 ? WEIR_IO : status;
}

static enum weir_status deaf_write(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                   const struct weir_segment_blob *blobs, size_t count, struct weir_error *why)
{
	return real_of(store)->ops->write_segments(real_of(store), partition, epoch, blobs, count, why);
}

static enum weir_status deaf_inspect(struct weir_store *store, int role, uint32_t partition,
                                     struct weir_partition_state *state, struct weir_error *why)
{
	return real_of(store)->ops->inspect(real_of(store), role, partition, state, why);
}

static enum weir_status count_blob(void *context, const struct weir_segment_blob *blob)
{
	(void)blob;
	++*(size_t *)context;
	return WEIR_OK;
}

static void a_lost_answer_is_no_failure(void **state)
{
	static const struct weir_store_ops ops = {
		.name = "deaf", .write_segments = deaf_write, .archive = deaf_archive, .inspect = deaf_inspect};
	struct deaf_store deaf = {.store = {&ops}, .lost = 2};
	assert_int_equal(WEIR_OK, weir_store_sqlite_open(*state, &deaf.real, &error));
	static struct checkpoint_partition partition;
	struct weir_partition_state taken;
	struct weir_text extra = {0};
	assert_int_equal(WEIR_OK, checkpoint_take(&partition, deaf.real, 4, &taken, &extra, &error));
	weir_text_deinit(&extra);

	static uint32_t segments[SEGMENTS];
	static struct weir_span deltas[SEGMENTS];
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		segments[i] = i;
		deltas[i] = weir_span_of("a blob");
	}
	struct checkpoint_cut cut = {.partition = &partition,
	                             .state = {.partition = 4, .epoch = taken.epoch, .checkpoint = 1, .next_offset = 10},
	                             .snapshot = {.segment_count = SEGMENTS, .segments = segments, .deltas = deltas}};
	for (int lost = 0; lost < 2; lost++)
		assert_int_equal(WEIR_IO, checkpoint_store(&deaf.store, &cut, 1, NULL, NULL, NULL, 0, &error));
	assert_int_equal(WEIR_OK, checkpoint_store(&deaf.store, &cut, 1, NULL, NULL, NULL, 0, &error));
	assert_int_equal(1, partition.current);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		assert_int_equal(deltas[i].length, partition.segments[i].base_bytes);
	size_t found = 0;
	assert_int_equal(WEIR_OK, deaf.real->ops->read_segments(deaf.real, 4, taken.epoch, 0, segments, SEGMENTS,
	                                                        count_blob, &found, &error));
	assert_int_equal(SEGMENTS, found);

	/* A checkpoint of that number that is not this one's is none of its own. */
	cut.state.checkpoint = 1;
	cut.state.epoch++;
	assert_int_equal(WEIR_FENCED, checkpoint_store(&deaf.store, &cut, 1, NULL, NULL, NULL, 0, &error));
	deaf.real->ops->close(deaf.real);
}

/* A base of deltas alone would hide for ever what was lost of a base, or is not shown yet. */
static void what_the_store_has_lost_is_not_merged_over(void **state)
{
	struct weir_store *store;
	static struct checkpoint_partition partition;
	struct weir_partition_state taken;
	struct weir_text extra = {0};
	assert_int_equal(WEIR_OK, weir_store_sqlite_open(*state, &store, &error));
	assert_int_equal(WEIR_OK, checkpoint_take(&partition, store, 4, &taken, &extra, &error));
	weir_text_deinit(&extra);
	uint32_t segment = 1;
	struct weir_span delta = weir_span_of("a blob");
	struct checkpoint_cut cut = {.partition = &partition,
	                             .state = {.partition = 4, .epoch = taken.epoch, .checkpoint = 1},
	                             .snapshot = {.segment_count = 1, .segments = &segment, .deltas = &delta}};
	assert_int_equal(WEIR_OK, checkpoint_store(store, &cut, 1, NULL, NULL, NULL, 0, &error));
	for (cut.state.checkpoint = 2; partition.segments[1].deltas < 8; cut.state.checkpoint++)
		assert_int_equal(WEIR_OK, checkpoint_store(store, &cut, 1, NULL, NULL, NULL, 0, &error));
	partition.segments[1].delta_bytes += 5;
	assert_int_equal(WEIR_FENCED, checkpoint_store(store, &cut, 1, NULL, NULL, NULL, 0, &error));
	assert_string_equal("segment 1 of partition 4 has 54 bytes in the store instead of the 59 that were stored",
	                    error.text);
	partition.current++;
	assert_int_equal(WEIR_FENCED, checkpoint_store(store, &cut, 1, NULL, NULL, NULL, 0, &error));
	assert_string_equal("checkpoint 10 of partition 4 is gone", error.text);
	store->ops->close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_lost_answer_is_no_failure, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(what_the_store_has_lost_is_not_merged_over, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
