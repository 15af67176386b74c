/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs against a list of what was taken: blocks keep their contents and do not
 * overlap, whatever is taken, freed and moved; marks are found again; memory is
 * given back when it is asked for, not before.
 */
#include "common/base/alloc.h"
#include "limiter/memory/slab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { BLOCKS_MAX = 60000, STEPS = 400000, LARGE_BYTES = 200000 };

struct block {
	uint32_t ref;
	uint32_t bytes;
	bool marked;
};

struct held {
	struct slab slab;
	struct block *blocks;
	uint32_t count;
	uint64_t random;
};

static uint32_t random_below(struct held *held, uint32_t below)
{
	held->random = held->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)((held->random >> 33) % below);
}

/* A block's contents say which one it is. */
static void stamp(const struct held *held, const struct block *block)
{
	memset(slab_at(&held->slab, block->ref), (int)(block->ref * 31 & 255), block->bytes);
}

static void check(const struct held *held, const struct block *block, uint32_t stamped_as)
{
	const uint8_t *bytes = slab_at(&held->slab, block->ref);
	for (uint32_t i = 0; i < block->bytes; i++)
		assert_int_equal(bytes[i], stamped_as * 31 & 255);
}

static void take(struct held *held, uint32_t bytes)
{
	struct block *block = &held->blocks[held->count++];
	*block = (struct block){.bytes = bytes};
	block->ref = slab_alloc(&held->slab, bytes);
	assert_int_not_equal(block->ref, 0);
	assert_true(slab_block_bytes(&held->slab, block->ref) >= bytes);
	stamp(held, block);
}

static void drop(struct held *held, uint32_t place)
{
	struct block *block = &held->blocks[place];
	check(held, block, block->ref);
	slab_free(&held->slab, block->ref);
	*block = held->blocks[--held->count];
}

static struct block *find(struct held *held, uint32_t ref)
{
	for (uint32_t i = 0; i < held->count; i++)
		if (held->blocks[i].ref == ref)
			return &held->blocks[i];
	fail_msg("no block %u was taken", ref);
	return NULL;
}

static void move_together(struct held *held)
{
	uint32_t refs[SLAB_PAGE_BLOCKS];
	uint32_t count = slab_evacuate(&held->slab, refs);
	for (uint32_t i = 0; i < count; i++) {
		struct block *block = find(held, refs[i]);
		const void *old = slab_at(&held->slab, block->ref);
		struct block moved = *block;
		moved.ref = slab_alloc(&held->slab, block->bytes);
		memcpy(slab_at(&held->slab, moved.ref), old, block->bytes);
		check(held, &moved, block->ref);
		slab_free(&held->slab, block->ref);
		moved.marked = false;
		*block = moved;
		stamp(held, block);
	}
}

static void held_init(struct held *held)
{
	*held = (struct held){.random = 7};
	slab_init(&held->slab);
	held->blocks = weir_alloc(BLOCKS_MAX, sizeof *held->blocks);
}

static void held_deinit(struct held *held)
{
	slab_deinit(&held->slab);
	free(held->blocks);
}

static void unmark(void *context, uint32_t ref)
{
	struct block *block = find(context, ref);
	assert_true(block->marked);
	block->marked = false;
}

static void test_random_blocks(void **state)
{
	(void)state;
	struct held held;
	held_init(&held);
	bool growing = true;
	for (uint32_t step = 0; step < STEPS; step++) {
		growing = held.count == 0 || (growing && held.count < BLOCKS_MAX);
		if (random_below(&held, 20) == 0)
			growing = !growing && held.count < BLOCKS_MAX / 2;
		if (growing || held.count == 0)
			take(&held, random_below(&held, 2000) == 0 ? LARGE_BYTES : SLAB_LEAST_BYTES + random_below(&held, 400));
		else
			drop(&held, random_below(&held, held.count));
		if (held.count > 0 && random_below(&held, 100) == 0) {
			struct block *block = &held.blocks[random_below(&held, held.count)];
			slab_mark(&held.slab, block->ref);
			block->marked = true;
		}
		if (random_below(&held, 500) == 0)
			move_together(&held);
		if (random_below(&held, 1000) == 0)
			slab_trim(&held.slab);
		assert_int_equal(held.slab.blocks, held.count);
	}
	slab_take_marked(&held.slab, unmark, &held);
	for (uint32_t i = 0; i < held.count; i++)
		assert_false(held.blocks[i].marked);
	while (held.count > 0)
		drop(&held, held.count - 1);
	held_deinit(&held);
}

/* Whoever guessed at a block before it moved may still look at where it was. */
static void test_freed_memory_stays_until_trimmed(void **state)
{
	(void)state;
	struct held held;
	held_init(&held);
	for (uint32_t i = 0; i < BLOCKS_MAX; i++)
		take(&held, i % 1000 == 0 ? LARGE_BYTES : 496);
	const uint8_t **pointers = weir_alloc(BLOCKS_MAX, sizeof *pointers);
	for (uint32_t i = 0; i < BLOCKS_MAX; i++)
		pointers[i] = slab_at(&held.slab, held.blocks[i].ref);
	uint64_t full = held.slab.bytes;
	uint32_t mapped = held.slab.mapped;
	while (held.count > 0)
		drop(&held, held.count - 1);
	uint64_t sum = 0;
	for (uint32_t i = 0; i < BLOCKS_MAX; i++)
		sum += pointers[i][256];
	assert_true(sum > 0);
	assert_int_equal(held.slab.mapped, mapped);
	slab_trim(&held.slab);
	assert_true(held.slab.mapped <= 1);
	assert_true(held.slab.bytes < full / 4);
	free(pointers);
	held_deinit(&held);
}

/* With only a few blocks left in every page, moving them gives nearly all memory back. */
static void test_moving_gives_memory_back(void **state)
{
	(void)state;
	struct held held;
	held_init(&held);
	while (held.count < BLOCKS_MAX)
		take(&held, 200);
	for (uint32_t i = BLOCKS_MAX; i-- > 0;)
		if (i % 50 != 0)
			drop(&held, i);
	uint64_t before = held.slab.bytes;
	for (uint32_t i = 0; i < 2000; i++) {
		move_together(&held);
		slab_trim(&held.slab);
	}
	assert_true(held.slab.bytes < before / 2);
	for (uint32_t i = 0; i < held.count; i++)
		check(&held, &held.blocks[i], held.blocks[i].ref);
	held_deinit(&held);
}

/* Bytes of the chunks that the system has in memory. */
static uint64_t resident_bytes(const struct slab *slab)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t bytes = 0;
	for (uint32_t i = 1; i < slab->chunk_count; i++) {
		unsigned char is_resident[CHUNK_BYTES / 4096];
		if (slab->bases[i] == NULL)
			continue;
		assert_int_equal(mincore(slab->bases[i], CHUNK_BYTES, is_resident), 0);
		for (size_t j = 0; j < CHUNK_BYTES / page; j++)
			bytes += (is_resident[j] & 1) * page;
	}
	return bytes;
}

/* A chunk without huge pages is no reason to keep two megabytes for the sake of some blocks. */
static void test_idle_pages_are_given_back_while_their_chunk_is_in_use(void **state)
{
	(void)state;
	struct held held;
	held_init(&held);
	while (held.count < 30000)
		take(&held, 200);
	uint64_t before = resident_bytes(&held.slab);
	for (uint32_t i = 29000; i-- > 0;) /* the last ones are in the chunk that was begun last */
		drop(&held, i);
	slab_trim(&held.slab);
	uint64_t after = resident_bytes(&held.slab), live = (uint64_t)held.count * 200;
	assert_true(before >= 6000000);
	if (sysconf(_SC_PAGESIZE) <= SLAB_PAGE_BYTES)
		assert_true(after < live + 20 * SLAB_PAGE_BYTES);
	assert_true(held.slab.bytes >= after &&
	            held.slab.bytes < after + 100000); /* what it says is so, but for its own tables */
	for (uint32_t i = 0; i < held.count; i++)
		check(&held, &held.blocks[i], held.blocks[i].ref);
	while (held.count < 30000) /* and what was given back is there again */
		take(&held, 200);
	for (uint32_t i = 0; i < held.count; i++)
		check(&held, &held.blocks[i], held.blocks[i].ref);
	assert_true(held.slab.bytes >= resident_bytes(&held.slab));
	held_deinit(&held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_blocks),
		cmocka_unit_test(test_freed_memory_stays_until_trimmed),
		cmocka_unit_test(test_moving_gives_memory_back),
		cmocka_unit_test(test_idle_pages_are_given_back_while_their_chunk_is_in_use),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
