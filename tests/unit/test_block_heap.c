/* SPDX-License-Identifier: Apache-2.0 */
/* The heap against a plain list, on random puts, moves and takes. */
#include "deploy/gateways/table/block_heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { ELEMENTS = 300, STEPS = 100000 };

static unsigned seed_of_run(void)
{
	const char *given = getenv("WEIR_SEED");
	unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
	print_message("WEIR_SEED=%u\n", seed);
	return seed;
}

static int64_t least(const struct block_due *all, const bool *in)
{
	int64_t found = INT64_MAX;
	for (int i = 0; i < ELEMENTS; i++)
		if (in[i] && all[i].due_ms < found)
			found = all[i].due_ms;
	return found;
}

static void test_the_first_is_always_the_one_that_is_due_first(void **state)
{
	(void)state;
	struct block_due all[ELEMENTS] = {{0}};
	bool in[ELEMENTS] = {false};
	struct block_heap heap = {0};
	uint32_t count = 0;
	srand(seed_of_run());
	for (int step = 0; step < STEPS; step++) {
		int i = rand() % ELEMENTS;
		if (rand() % 3 > 0) {
			block_heap_put(&heap, &all[i], rand() % 1000);
			count += !in[i];
			in[i] = true;
		} else {
			block_heap_take(&heap, &all[i]);
			count -= in[i];
			in[i] = false;
		}
		assert_int_equal(count, heap.count);
		if (count == 0)
			assert_null(block_heap_first(&heap));
		else
			assert_int_equal(least(all, in), block_heap_first(&heap)->due_ms);
	}
	block_heap_deinit(&heap);
}

static void test_all_come_out_in_order(void **state)
{
	(void)state;
	enum { MANY = 20000 };
	struct block_due *all = calloc(MANY, sizeof *all);
	struct block_heap heap = {0};
	srand(seed_of_run());
	for (int i = 0; i < MANY; i++)
		block_heap_put(&heap, &all[i], rand());
	int64_t before = INT64_MIN;
	for (int i = 0; i < MANY; i++) {
		struct block_due *first = block_heap_first(&heap);
		assert_true(first->due_ms >= before);
		before = first->due_ms;
		block_heap_take(&heap, first);
		assert_int_equal(0, first->place);
	}
	assert_null(block_heap_first(&heap));
	block_heap_deinit(&heap);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_is_always_the_one_that_is_due_first),
		cmocka_unit_test(test_all_come_out_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
