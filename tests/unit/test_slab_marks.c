/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of a slab at their boundaries: the first and last block of a page, classes that begin off a mark's grid, large ones. */
#include "limiter/memory/slab.h"

#include "common/base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 3 * SLAB_PAGE_BLOCKS, LARGE_BYTES = 100000 };

struct scene {
	struct slab slab;
	uint32_t refs[BLOCKS], taken[BLOCKS];
	uint32_t count, taken_count;
};

static int set_up(void **state)
{
	struct scene *scene = weir_alloc(1, sizeof *scene);
	slab_init(&scene->slab);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	slab_deinit(&scene->slab);
	free(scene);
	return 0;
}

static void fill(struct scene *scene, size_t bytes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, scene->count++)
		scene->refs[scene->count] = slab_alloc(&scene->slab, bytes);
}

static void take(void *context, uint32_t ref)
{
	struct scene *scene = context;
	scene->taken[scene->taken_count++] = ref;
}

static void take_marked(struct scene *scene)
{
	scene->taken_count = 0;
	slab_take_marked(&scene->slab, take, scene);
}

/* Each block alone, of each size up to a few hundred bytes, is found as itself. */
static void a_marked_block_is_found_wherever_it_begins_in_its_page(void **state)
{
	struct scene *scene = *state;
	for (size_t bytes = SLAB_LEAST_BYTES; bytes <= 512; bytes += SLAB_GRANULE) {
		uint32_t first = scene->count = 0, blocks = 2 * SLAB_PAGE_BYTES / (uint32_t)bytes;
		fill(scene, bytes, blocks);
		for (uint32_t i = first; i < scene->count; i++) {
			slab_mark(&scene->slab, scene->refs[i]);
			take_marked(scene);
			assert_int_equal(scene->taken_count, 1);
			assert_int_equal(scene->taken[0], scene->refs[i]);
		}
		for (uint32_t i = first; i < scene->count; i++)
			slab_free(&scene->slab, scene->refs[i]);
	}
}

static void neighbours_are_marked_apart(void **state)
{
	struct scene *scene = *state;
	fill(scene, SLAB_LEAST_BYTES, BLOCKS);
	for (uint32_t i = 0; i < BLOCKS; i += 2)
		slab_mark(&scene->slab, scene->refs[i]);
	for (uint32_t i = 0; i < BLOCKS; i += 4)
		slab_unmark(&scene->slab, scene->refs[i]);
	take_marked(scene);
	assert_int_equal(scene->taken_count, BLOCKS / 4);
	take_marked(scene); /* the marks are off */
	assert_int_equal(scene->taken_count, 0);
}

static void a_mark_set_twice_is_one_and_one_taken_off_that_was_never_set_is_none(void **state)
{
	struct scene *scene = *state;
	fill(scene, 64, 2);
	slab_unmark(&scene->slab, scene->refs[0]); /* no chunk has any marks yet */
	take_marked(scene);
	assert_int_equal(scene->taken_count, 0);
	slab_mark(&scene->slab, scene->refs[1]);
	slab_mark(&scene->slab, scene->refs[1]);
	slab_unmark(&scene->slab, scene->refs[0]);
	take_marked(scene);
	assert_int_equal(scene->taken_count, 1);
	assert_int_equal(scene->taken[0], scene->refs[1]);
}

static void large_blocks_are_marked_too(void **state)
{
	struct scene *scene = *state;
	fill(scene, LARGE_BYTES, 3);
	assert_true(scene->refs[0] & SLAB_LARGE);
	for (uint32_t i = 0; i < 3; i++)
		slab_mark(&scene->slab, scene->refs[i]);
	slab_unmark(&scene->slab, scene->refs[1]);
	take_marked(scene);
	assert_int_equal(scene->taken_count, 2);
	assert_int_equal(scene->taken[0], scene->refs[0]);
	assert_int_equal(scene->taken[1], scene->refs[2]);
	take_marked(scene);
	assert_int_equal(scene->taken_count, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_marked_block_is_found_wherever_it_begins_in_its_page),
		CASE(neighbours_are_marked_apart),
		CASE(a_mark_set_twice_is_one_and_one_taken_off_that_was_never_set_is_none),
		CASE(large_blocks_are_marked_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
