/* SPDX-License-Identifier: Apache-2.0 */
/* Swap against an array that holds the same blocks, through pages that are emptied, moved and used again. */
#include "limiter/memory/swap.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { BLOCKS = 4000, STEPS = 60000 };

struct held {
	uint32_t ref; /* 0: none */
	uint32_t length;
	uint8_t byte;
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407U;
	return *state >> 33;
}

static uint32_t put(struct swap *swap, uint32_t tag, uint8_t byte, uint32_t length)
{
	uint8_t bytes[SWAP_BLOCK_MAX];
	memset(bytes, byte, length);
	assert_true(swap_takes(swap, length));
	if (swap_is_full(swap, length))
		assert_true(swap_turn(swap));
	return swap_put(swap, &(struct swap_block){.tag = tag, .bytes = bytes, .length = (uint16_t)length, .note = byte},
	                INT64_MAX);
}

static void check(struct swap *swap, uint32_t tag, const struct held *held)
{
	struct swap_block block;
	assert_true(swap_get(swap, held->ref, &block));
	assert_int_equal(block.note, held->byte);
	assert_int_equal(block.tag, tag);
	assert_int_equal(block.length, held->length);
	const uint8_t *bytes = block.bytes;
	for (uint32_t i = 0; i < block.length; i++)
		assert_int_equal(bytes[i], held->byte);
}

/* Moves what is live out of a page. */
static void empty_page(struct swap *swap, struct held *held)
{
	uint32_t page = swap_worst(swap, 8, INT64_MIN), at = 0;
	struct swap_block block;
	if (page == 0)
		return;
	const uint8_t *bytes = swap_page(swap, page);
	assert_non_null(bytes);
	while (swap_page_next(swap, page, bytes, &at, &block)) {
		struct held *one = &held[block.tag];
		if (one->ref != block.ref || !swap_may_move(swap, block.length))
			continue;
		uint32_t moved = put(swap, block.tag, one->byte, one->length);
		swap_free(swap, one->ref, one->length);
		one->ref = moved;
	}
}

static void it_holds_what_was_put(void **state)
{
	(void)state;
	struct swap swap;
	struct held *held = calloc(BLOCKS, sizeof *held);
	uint64_t random = 7, live = 0;
	swap_init(&swap, "/tmp");
	for (int step = 0; step < STEPS; step++) {
		uint32_t tag = (uint32_t)(next_random(&random) % BLOCKS);
		struct held *one = &held[tag];
		if (one->ref != 0) {
			check(&swap, tag, one);
			swap_free(&swap, one->ref, one->length);
			live -= one->length;
			one->ref = 0;
			continue;
		}
		one->length = (uint32_t)(next_random(&random) % (next_random(&random) % 50 == 0 ? SWAP_BLOCK_MAX + 1 : 300));
		one->byte = (uint8_t)next_random(&random);
		one->ref = put(&swap, tag, one->byte, one->length);
		live += one->length;
		if (step % 16 == 0)
			empty_page(&swap, held);
	}
	for (uint32_t tag = 0; tag < BLOCKS; tag++)
		if (held[tag].ref != 0)
			check(&swap, tag, &held[tag]);
	struct stat about;
	assert_int_equal(fstat(swap.file, &about), 0);
	assert_int_equal(about.st_nlink, 0); /* nobody else finds it */
	/* What was freed is used again: thirty times as much was put as there is. */
	assert_true((uint64_t)about.st_size < 4 * live);
	swap_deinit(&swap);
	free(held);
}

static void a_disk_that_is_full_is_no_loss(void **state)
{
	(void)state;
	struct swap swap;
	struct held held = {.length = 1000, .byte = 3};
	uint32_t refs[64] = {0}, count = 0;
	const struct rlimit least = {SWAP_PAGE_BYTES * 2, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
	uint8_t bytes[1000];
	memset(bytes, held.byte, sizeof bytes);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &least), 0);
	swap_init(&swap, "/tmp");
	while (swap_takes(&swap, sizeof bytes) && count < 64) {
		if (swap_is_full(&swap, sizeof bytes) && !swap_turn(&swap))
			break;
		refs[count++] =
			swap_put(&swap, &(struct swap_block){.tag = 9, .bytes = bytes, .length = sizeof bytes, .note = held.byte},
		             INT64_MAX);
	}
	assert_true(count > 16 && count < 64); /* page 1, and page 2 in memory */
	assert_false(swap_takes(&swap, 1));
	for (uint32_t i = 0; i < count; i++) {
		held.ref = refs[i];
		check(&swap, 9, &held);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	swap_retry(&swap);
	assert_true(swap_turn(&swap));
	for (uint32_t i = 0; i < count; i++) {
		held.ref = refs[i];
		check(&swap, 9, &held);
	}
	/* What the file has lost is not read as something else. */
	struct swap_block block;
	assert_int_equal(ftruncate(swap.file, 0), 0);
	assert_false(swap_get(&swap, refs[0], &block));
	assert_null(swap_page(&swap, 1));
	swap_deinit(&swap);
}

static void a_page_is_due_at_the_first_of_its_blocks(void **state)
{
	(void)state;
	enum { LENGTH = SWAP_PAGE_BYTES / 4 };
	const int64_t due[] = {70, 50, 90, INT64_MAX};
	uint8_t bytes[LENGTH] = {0};
	struct swap swap;
	swap_init(&swap, "/tmp");
	for (uint32_t page = 1; page <= 2; page++) {
		assert_true(swap_turn(&swap));
		for (uint32_t i = 0; i < 3; i++)
			(void)swap_put(&swap, &(struct swap_block){.tag = i, .bytes = bytes, .length = LENGTH},
			               page == 1 ? due[i] : due[3]);
	}
	assert_true(swap_turn(&swap));
	assert_int_equal(swap_worst(&swap, 8, 50), 0);
	assert_int_equal(swap_worst(&swap, 8, 51), 1);
	swap_set_due(&swap, 1, 70);
	assert_int_equal(swap_worst(&swap, 8, 70), 0);
	assert_int_equal(swap_worst(&swap, 8, 71), 1);
	assert_int_equal(swap_worst(&swap, 1, 71), 0); /* the next one is the second */
	assert_int_equal(swap_worst(&swap, 8, INT64_MAX), 1);
	swap_all_due(&swap);
	assert_int_equal(swap_worst(&swap, 8, 0), 2);
	swap_deinit(&swap);
}

/* Puts blocks until the file may not grow. @return how many */
static uint32_t fill(struct swap *swap, uint32_t *refs, uint32_t room, uint32_t length)
{
	uint32_t count = 0;
	for (; count < room && !swap_is_at_ceiling(swap, length); count++)
		refs[count] = put(swap, 9, (uint8_t)count, length);
	return count;
}

static void at_its_ceiling_it_waits_for_a_free_page(void **state)
{
	(void)state;
	enum { LENGTH = 1000, PAGES = 4, IN_A_PAGE = SWAP_PAGE_BYTES / (LENGTH + SWAP_HEAD_BYTES), ROOM = 100 };
	struct swap swap;
	uint32_t refs[ROOM];
	swap_init(&swap, "/tmp");
	swap_set_ceiling(&swap, PAGES * SWAP_PAGE_BYTES);
	assert_int_equal(fill(&swap, refs, ROOM, LENGTH), PAGES * IN_A_PAGE);
	assert_int_equal(swap_file_bytes(&swap), PAGES * SWAP_PAGE_BYTES);
	assert_false(swap_is_at_ceiling(&swap, 8)); /* the rest of the open page */
	for (uint32_t i = 0; i < IN_A_PAGE; i++) {
		assert_true(swap_is_at_ceiling(&swap, LENGTH));
		swap_free(&swap, refs[i], LENGTH);
	}
	assert_int_equal(fill(&swap, refs, ROOM, LENGTH), IN_A_PAGE);
	assert_int_equal(swap_file_bytes(&swap), PAGES * SWAP_PAGE_BYTES);
	/* Who empties a page is not held. */
	assert_true(swap_turn(&swap));
	assert_int_equal(swap_file_bytes(&swap), (PAGES + 1) * SWAP_PAGE_BYTES);
	/* An open page of which nothing is live is as good as a free one. */
	assert_int_equal(fill(&swap, refs, ROOM, LENGTH), IN_A_PAGE);
	for (uint32_t i = 0; i < IN_A_PAGE; i++)
		swap_free(&swap, refs[i], LENGTH);
	assert_false(swap_is_at_ceiling(&swap, LENGTH));
	swap_set_ceiling(&swap, 1);
	swap_clear(&swap);
	assert_int_equal(fill(&swap, refs, 0, LENGTH), 0);
	assert_false(swap_takes(&swap, LENGTH));
	swap_retry(&swap);
	assert_int_equal(fill(&swap, refs, ROOM, LENGTH), IN_A_PAGE);
	swap_set_ceiling(&swap, 0);
	assert_int_equal(fill(&swap, refs, ROOM, LENGTH), ROOM);
	swap_deinit(&swap);
}

/* Blocks come and go for ever, and pages are emptied where there is no room: the file stays as large as it may be. */
static void moves_keep_within_the_ceiling(void **state)
{
	(void)state;
	enum { LENGTH = 500, PAGES = 50, ROOM = 4 * PAGES * SWAP_PAGE_BYTES / LENGTH };
	static struct held held[ROOM];
	uint64_t random = 7, turned_away = 0, taken = 0;
	struct swap swap;
	swap_init(&swap, "/tmp");
	swap_set_ceiling(&swap, PAGES * SWAP_PAGE_BYTES);
	for (uint32_t step = 0; step < 20 * ROOM; step++) {
		uint32_t tag = (uint32_t)(next_random(&random) % ROOM);
		if (held[tag].ref != 0) {
			check(&swap, tag, &held[tag]);
			swap_free(&swap, held[tag].ref, LENGTH);
			held[tag].ref = 0;
		} else if (!swap_is_at_ceiling(&swap, LENGTH)) {
			held[tag] = (struct held){put(&swap, tag, (uint8_t)tag, LENGTH), LENGTH, (uint8_t)tag};
			taken++;
		} else if (++turned_away % 30 == 0) {
			empty_page(&swap, held);
		}
		assert_true(swap_file_bytes(&swap) <= (PAGES + 1) * SWAP_PAGE_BYTES);
	}
	assert_true(turned_away > ROOM && taken > 2 * ROOM);
	swap_deinit(&swap);
}

static void what_is_given_up_leaves_nothing(void **state)
{
	(void)state;
	struct swap swap;
	struct held held = {.length = 5000, .byte = 1};
	swap_init(&swap, "/tmp");
	for (int i = 0; i < 10; i++)
		put(&swap, 1, held.byte, held.length);
	assert_true(swap_file_bytes(&swap) > 2 * SWAP_PAGE_BYTES);
	swap_clear(&swap);
	assert_int_equal(swap_file_bytes(&swap), 0);
	assert_int_equal(swap_bytes(&swap), 0);
	assert_false(swap_takes(&swap, 1));
	swap_retry(&swap);
	held.ref = put(&swap, 2, held.byte, held.length);
	check(&swap, 2, &held);
	assert_int_equal(swap_file_bytes(&swap), SWAP_PAGE_BYTES);
	swap_deinit(&swap);
}

static void without_a_directory_there_is_none(void **state)
{
	(void)state;
	struct swap swap;
	swap_init(&swap, NULL);
	assert_false(swap_takes(&swap, 32));
	swap_deinit(&swap);
	swap_init(&swap, "/nonexistent/directory");
	assert_true(swap_takes(&swap, SWAP_BLOCK_MAX));
	assert_false(swap_takes(&swap, SWAP_BLOCK_MAX + 1));
	assert_false(swap_turn(&swap));
	assert_false(swap_takes(&swap, 32));
	swap_deinit(&swap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_holds_what_was_put),
		cmocka_unit_test(a_disk_that_is_full_is_no_loss),
		cmocka_unit_test(a_page_is_due_at_the_first_of_its_blocks),
		cmocka_unit_test(at_its_ceiling_it_waits_for_a_free_page),
		cmocka_unit_test(moves_keep_within_the_ceiling),
		cmocka_unit_test(what_is_given_up_leaves_nothing),
		cmocka_unit_test(without_a_directory_there_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
