/* SPDX-License-Identifier: Apache-2.0 */
/* Any store: segments are read as of the checkpoint that is current, listed, and removed behind a newer base. */
#include "tests/support/store_suite_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LIMITER = WEIR_STORE_ROLE_LIMITER };

static struct weir_error error;

/* A server that lags, or has lost a checkpoint, shows what was there before. */
void an_older_checkpoint_is_not_read_for_a_newer_one(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine = take(store, LIMITER, 0);
	uint32_t segment = 1;
	char text[64] = "";
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1, 1, true, "one"));
	assert_int_equal(WEIR_OK, commit(store, &mine, 1));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1, 2, true, "two"));
	assert_int_equal(WEIR_FENCED,
	                 store->ops->read_segments(store, 0, mine.epoch, 2, &segment, 1, collect, text, &error));
	assert_string_equal("checkpoint 2 of partition 0 is gone", error.text);
	assert_string_equal("", text);
	assert_int_equal(WEIR_OK, commit(store, &mine, 2));
	for (uint64_t at_least = 0; at_least <= 2; at_least++) {
		text[0] = '\0';
		assert_int_equal(WEIR_OK,
		                 store->ops->read_segments(store, 0, mine.epoch, at_least, &segment, 1, collect, text, &error));
		assert_string_equal("1/2 b two; ", text);
	}
	store->ops->close(store);
}

void segments_are_read_as_of_the_current_checkpoint(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine = take(store, LIMITER, 2), other = take(store, LIMITER, 1);
	static const uint32_t both[] = {1, 0, 7};
	assert_read(store, &mine, both, 3, "");
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 1, true, "A"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1, 1, true, "B"));
	assert_read(store, &mine, both, 3, ""); /* not current yet */
	assert_int_equal(WEIR_OK, commit(store, &mine, 1));
	assert_read(store, &mine, both, 3, "1/1 b B; 0/1 b A; ");
	assert_int_equal(WEIR_INVALID, write_text(store, &mine, 1, 1, true, "changed"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 2, false, "a2"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 2, false, "a2 again"));
	assert_int_equal(WEIR_OK, commit(store, &mine, 2));
	assert_read(store, &mine, both, 3, "1/1 b B; 0/1 b A; 0/2 d a2 again; ");
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1, 3, false, ""));
	assert_int_equal(WEIR_OK, commit(store, &mine, 3));
	assert_read(store, &mine, both, 3, "1/1 b B; 1/3 d ; 0/1 b A; 0/2 d a2 again; ");
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 4, true, "A4"));
	assert_int_equal(WEIR_OK, commit(store, &mine, 4));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 5, false, "a5"));
	assert_read(store, &mine, both, 3, "1/1 b B; 1/3 d ; 0/4 b A4; ");
	assert_read(store, &other, both, 3, "");

	/* Removed is what is behind the new base, and not what is still being written. */
	assert_int_equal(WEIR_OK, store->ops->clean(store, 2, mine.epoch, &error));
	assert_read(store, &mine, both, 3, "1/1 b B; 1/3 d ; 0/4 b A4; ");
	assert_int_equal(WEIR_OK, commit(store, &mine, 5));
	assert_read(store, &mine, both, 3, "1/1 b B; 1/3 d ; 0/4 b A4; 0/5 d a5; ");
	/* The next owner does not see what this one has not made current. */
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 6, false, "a6"));
	mine = take(store, LIMITER, 2);
	assert_int_equal(5, mine.checkpoint);
	assert_int_equal(WEIR_OK, commit(store, &mine, 6));
	assert_read(store, &mine, both, 3, "1/1 b B; 1/3 d ; 0/4 b A4; 0/5 d a5; ");
	store->ops->close(store);
}

/* What a reader is given, one after another. */
struct sequence {
	uint32_t segments[512];
	uint64_t checkpoints[512];
	size_t count;
	uint64_t bytes;
};

static enum weir_status note_sequence(void *context, const struct weir_segment_blob *blob)
{
	struct sequence *sequence = context;
	assert_true(sequence->count < 512);
	sequence->segments[sequence->count] = blob->segment;
	sequence->checkpoints[sequence->count++] = blob->checkpoint;
	sequence->bytes += blob->bytes.length;
	for (uint32_t i = 0; i < blob->bytes.length; i++)
		assert_int_equal((char)blob->segment, blob->bytes.at[i]);
	return WEIR_OK;
}

enum { ORDERED = 150 };

void many_segments_come_in_the_order_asked_for(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine = take(store, LIMITER, 0);
	static char bytes[ORDERED][700];
	struct weir_segment_blob blobs[ORDERED];
	uint32_t segments[ORDERED];
	/* A permutation of 0..ORDERED-1, scattered by 7. */
	for (uint32_t i = 0; i < ORDERED; i++) {
		segments[i] = i * 67 % ORDERED * 7;
		memset(bytes[i], (char)segments[i], sizeof bytes[i]);
	}
	for (uint64_t c = 1; c <= 3; c++) {
		for (uint32_t i = 0; i < ORDERED; i++)
			blobs[i] = (struct weir_segment_blob){segments[i], c, c == 1, {bytes[i], i * 4}};
		assert_int_equal(WEIR_OK, store->ops->write_segments(store, 0, mine.epoch, blobs, ORDERED, &error));
		assert_int_equal(WEIR_OK, commit(store, &mine, c));
	}
	struct sequence *found = calloc(1, sizeof *found);
	assert_int_equal(
		WEIR_OK, store->ops->read_segments(store, 0, mine.epoch, 0, segments, ORDERED, note_sequence, found, &error));
	assert_int_equal(3 * ORDERED, found->count);
	assert_int_equal(3 * 4 * ORDERED * (ORDERED - 1) / 2, found->bytes);
	for (size_t i = 0; i < found->count; i++) {
		assert_int_equal(segments[i / 3], found->segments[i]);
		assert_int_equal(i % 3 + 1, found->checkpoints[i]);
	}
	free(found);
	store->ops->close(store);
}

void large_and_empty_segments_are_kept(void **state)
{
	enum { LARGE = 6 << 20 };
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine = take(store, LIMITER, 0);
	char *bytes = malloc(LARGE);
	memset(bytes, 2, LARGE);
	struct weir_segment_blob blobs[] = {
		{1, 1, true, {NULL, 0}}, {2, 1, true, {bytes, LARGE}}, {3, 1, true, {"\3", 1}}, {4, 1, true, {"", 0}}};
	assert_int_equal(WEIR_OK, store->ops->write_segments(store, 0, mine.epoch, blobs, 4, &error));
	/* A state of some size. */
	mine.extra = (struct weir_span){.at = bytes, .length = 1 << 20};
	assert_int_equal(WEIR_OK, commit(store, &mine, 1));
	struct sequence *found = calloc(1, sizeof *found);
	assert_int_equal(WEIR_OK, store->ops->read_segments(store, 0, mine.epoch, 0, (uint32_t[]){1, 2, 3, 4}, 4,
	                                                    note_sequence, found, &error));
	assert_int_equal(4, found->count);
	assert_int_equal(LARGE + 1, found->bytes);
	struct weir_partition_state again;
	assert_int_equal(WEIR_OK, store->ops->inspect(store, LIMITER, 0, &again, &error));
	assert_int_equal(1 << 20, again.extra.length);
	assert_memory_equal(bytes, again.extra.at, 1 << 20);
	free(found);
	free(bytes);
	store->ops->close(store);
}

static void list_one(void *context, uint32_t segment, uint32_t deltas, uint64_t base_bytes, uint64_t delta_bytes)
{
	char *text = context;
	sprintf(text + strlen(text), "%u: %u %llu %llu; ", segment, deltas, (unsigned long long)base_bytes,
	        (unsigned long long)delta_bytes);
}

void segments_are_listed(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine = take(store, LIMITER, 0);
	char text[256] = "";
	assert_int_equal(WEIR_OK, store->ops->list_segments(store, 0, mine.epoch, 0, list_one, text, &error));
	assert_string_equal("", text);
	assert_int_equal(WEIR_OK, write_text(store, &mine, 3, 1, true, "123"));
	assert_int_equal(WEIR_OK, commit(store, &mine, 1));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 3, 2, false, "12345"));
	assert_int_equal(WEIR_OK, commit(store, &mine, 2));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 3, 3, false, "1"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1000, 3, false, "12"));
	assert_int_equal(WEIR_OK, commit(store, &mine, 3));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1000, 4, true, "1234567"));
	assert_int_equal(WEIR_OK, store->ops->list_segments(store, 0, mine.epoch, 3, list_one, text, &error));
	assert_string_equal("3: 2 3 6; 1000: 1 0 2; ", text);
	assert_int_equal(WEIR_OK, commit(store, &mine, 4));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1000, 5, false, "12"));
	assert_int_equal(WEIR_OK, commit(store, &mine, 5));
	text[0] = '\0';
	assert_int_equal(WEIR_OK, store->ops->list_segments(store, 0, mine.epoch, 5, list_one, text, &error));
	assert_string_equal("3: 2 3 6; 1000: 1 7 2; ", text);
	/* Who takes another checkpoint for the current one, or is not the owner any more, is told nothing. */
	text[0] = '\0';
	assert_int_equal(WEIR_FENCED, store->ops->list_segments(store, 0, mine.epoch, 4, list_one, text, &error));
	assert_int_equal(WEIR_FENCED, store->ops->list_segments(store, 0, mine.epoch, 6, list_one, text, &error));
	assert_string_equal("checkpoint 6 of partition 0 is not the current one", error.text);
	uint64_t epoch = mine.epoch;
	mine = take(store, LIMITER, 0);
	assert_int_equal(WEIR_FENCED, store->ops->list_segments(store, 0, epoch, 5, list_one, text, &error));
	assert_string_equal("", text);
	store->ops->close(store);
}

struct count_listed {
	uint32_t segments, deltas;
};

static void count_listed(void *context, uint32_t segment, uint32_t deltas, uint64_t base_bytes, uint64_t delta_bytes)
{
	struct count_listed *listed = context;
	(void)segment;
	(void)base_bytes;
	(void)delta_bytes;
	listed->segments++;
	listed->deltas += deltas;
}

/* Bases of 32 checkpoints, and no clean between: one goes for good behind each. */
void what_is_behind_a_base_is_removed(void **state)
{
	enum { SEGMENTS = 40, CHECKPOINTS = 32 };
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine = take(store, LIMITER, 0), other = take(store, LIMITER, 1);
	struct weir_segment_blob blobs[SEGMENTS];
	assert_int_equal(WEIR_OK, write_text(store, &other, 0, 1, true, "x"));
	assert_int_equal(WEIR_OK, commit(store, &other, 1));
	assert_int_equal(WEIR_OK, write_text(store, &other, 0, 2, true, "y"));
	for (uint64_t c = 1; c <= CHECKPOINTS; c++) {
		for (uint32_t i = 0; i < SEGMENTS; i++)
			blobs[i] = (struct weir_segment_blob){i, c, i % 2 == 0, weir_span_of("123")};
		assert_int_equal(WEIR_OK, store->ops->write_segments(store, 0, mine.epoch, blobs, SEGMENTS, &error));
		assert_int_equal(WEIR_OK, commit(store, &mine, c));
	}
	assert_int_equal(WEIR_OK, store->ops->clean(store, 0, mine.epoch, &error));
	/* One base a segment is left, and the other's two. */
	assert_rows(store, "SELECT count(*) FROM segment_state WHERE base = 1", NULL, 0, "22; ");
	struct count_listed listed = {0};
	assert_int_equal(WEIR_OK,
	                 store->ops->list_segments(store, 0, mine.epoch, CHECKPOINTS, count_listed, &listed, &error));
	assert_int_equal(SEGMENTS, listed.segments);
	assert_int_equal(SEGMENTS / 2 * CHECKPOINTS, listed.deltas);
	uint32_t segment = 0;
	assert_read(store, &other, &segment, 1, "0/1 b x; "); /* another's stay */
	store->ops->close(store);
}

static enum weir_status stop_at_once(void *context, const struct weir_segment_blob *blob)
{
	(void)blob;
	++*(int *)context;
	return WEIR_END;
}

void a_reader_may_stop(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine = take(store, LIMITER, 0);
	int calls = 0;
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 1, true, "a"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1, 1, true, "b"));
	assert_int_equal(WEIR_OK, commit(store, &mine, 1));
	assert_int_equal(WEIR_END, store->ops->read_segments(store, 0, mine.epoch, 0, (uint32_t[]){0, 1}, 2, stop_at_once,
	                                                     &calls, &error));
	assert_int_equal(1, calls);
	store->ops->close(store);
}
