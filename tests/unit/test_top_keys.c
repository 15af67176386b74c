/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that were blocked most, against a slow model and against what is true. */
#include "limiter/lane/top_keys.h"

#include "common/base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROUNDS = 20, STEPS = 4000, KEYS = 2000 };

/* The rule as it is written down: a list in order, looked through from its beginning. */
struct model {
	struct model_key {
		uint32_t number;
		uint64_t count, error;
	} keys[TOP_KEYS];
	uint32_t count;
};

enum { NOBODY = UINT32_MAX };

static uint32_t model_find(const struct model *model, uint32_t number)
{
	uint32_t i = 0;
	while (i < model->count && model->keys[i].number != number)
		i++;
	return i;
}

static void model_count(struct model *model, uint32_t number)
{
	uint32_t i = model_find(model, number);
	if (i == model->count && i < TOP_KEYS) {
		model->keys[model->count++] = (struct model_key){number, 0, 0};
	} else if (i == model->count) {
		uint64_t least = model->keys[--i].count;
		model->keys[i] = (struct model_key){number, least, least};
	}
	uint32_t first = 0;
	while (model->keys[first].count > model->keys[i].count)
		first++;
	struct model_key key = model->keys[i];
	key.count++;
	model->keys[i] = model->keys[first];
	model->keys[first] = key;
}

static void model_forget(struct model *model, uint32_t number)
{
	uint32_t i = model_find(model, number);
	if (i == model->count)
		return;
	uint64_t least = model->keys[model->count - 1].count;
	bool full = model->count == TOP_KEYS;
	memmove(&model->keys[i], &model->keys[i + 1], (--model->count - i) * sizeof model->keys[0]);
	if (full)
		model->keys[model->count++] = (struct model_key){NOBODY, least, least};
}

static struct weir_span spell(char *bytes, size_t room, uint32_t number)
{
	int length = number == NOBODY ? 0 : snprintf(bytes, room, "%*u", 1 + (int)(number % 37), number);
	return (struct weir_span){.at = bytes, .length = (uint32_t)length};
}

static uint32_t zone_of(uint32_t number)
{
	return number == NOBODY ? 0 : 1 + number % 3;
}

static void compare(const struct top_keys *top, const struct model *model)
{
	const struct top_key *const *keys;
	char bytes[64];
	assert_int_equal(top_keys_list(top, &keys), model->count);
	for (uint32_t i = 0; i < model->count; i++) {
		const struct model_key *wanted = &model->keys[i];
		struct weir_span key = spell(bytes, sizeof bytes, wanted->number);
		assert_int_equal(keys[i]->count, wanted->count);
		assert_int_equal(keys[i]->error, wanted->error);
		assert_int_equal(keys[i]->zone_id, zone_of(wanted->number));
		assert_int_equal(keys[i]->key_length, key.length);
		assert_memory_equal(keys[i]->key, key.at, key.length);
	}
}

/* Some keys come often, most seldom: the smaller of two random numbers, over and over. */
static uint32_t some_key(uint32_t spread)
{
	uint32_t a = (uint32_t)rand() % spread, b = (uint32_t)rand() % spread;
	return a * b / spread;
}

static void it_counts_as_the_model_does(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < ROUNDS; seed++) {
		struct top_keys *top = top_keys_new();
		struct model model = {.count = 0};
		uint64_t *truth = weir_alloc(KEYS, sizeof *truth);
		struct top_mark *marks = weir_alloc(KEYS, sizeof *marks);
		char bytes[64];
		srand(seed);
		print_message("seed %u\n", seed);
		uint32_t spread = 100 + (uint32_t)rand() % (KEYS - 100);
		for (int step = 0; step < STEPS; step++) {
			uint32_t number = some_key(spread);
			struct weir_span key = spell(bytes, sizeof bytes, number);
			if (rand() % 100 == 0) {
				top_keys_forget(top, zone_of(number), key);
				model_forget(&model, number);
				truth[number] = 0;
				memset(marks, 0, KEYS * sizeof *marks);
			} else {
				struct top_mark none = {0}, *mark = rand() % 2 == 0 ? &none : &marks[number];
				top_keys_count(top, zone_of(number), key, mark);
				model_count(&model, number);
				truth[number]++;
			}
			if (step % 97 == 0)
				compare(top, &model);
		}
		compare(top, &model);
		for (uint32_t i = 0; i < model.count; i++)
			if (model.keys[i].number != NOBODY) {
				uint64_t true_count = truth[model.keys[i].number];
				assert_true(true_count <= model.keys[i].count);
				assert_true(true_count >= model.keys[i].count - model.keys[i].error);
			}
		free(marks);
		free(truth);
		top_keys_free(top);
	}
}

/* As they were counted elsewhere, in any order: they are in the order of their counts, and as many as there is room for. */
static void keys_are_added_in_order(void **state)
{
	(void)state;
	struct top_keys *top = top_keys_new();
	const struct top_key *const *keys;
	char bytes[64];
	srand(3);
	for (uint32_t i = 0; i < TOP_KEYS; i++)
		assert_true(top_keys_add(top, 1, spell(bytes, sizeof bytes, i), (uint64_t)rand() % 50, i));
	assert_false(top_keys_add(top, 1, spell(bytes, sizeof bytes, TOP_KEYS), 5, 0));
	assert_int_equal(top_keys_list(top, &keys), TOP_KEYS);
	for (uint32_t i = 1; i < TOP_KEYS; i++)
		assert_true(keys[i - 1]->count >= keys[i]->count);
	for (uint32_t i = 0; i < TOP_KEYS; i++)
		top_keys_forget(top, 1, spell(bytes, sizeof bytes, i));
	for (uint32_t i = 0; i < TOP_KEYS; i++)
		assert_int_equal(keys[i]->zone_id, 0);
	top_keys_free(top);
}

static void a_key_that_is_too_long_is_passed_over(void **state)
{
	(void)state;
	static char bytes[WEIR_KEY_MAX_BYTES + 1];
	struct top_keys *top = top_keys_new();
	const struct top_key *const *keys;
	struct top_mark mark = {0};
	top_keys_count(top, 1, (struct weir_span){.at = bytes, .length = WEIR_KEY_MAX_BYTES + 1}, &mark);
	assert_false(top_keys_add(top, 1, (struct weir_span){.at = bytes, .length = WEIR_KEY_MAX_BYTES + 1}, 1, 0));
	assert_int_equal(top_keys_list(top, &keys), 0);
	top_keys_count(top, 1, (struct weir_span){.at = bytes, .length = WEIR_KEY_MAX_BYTES}, &mark);
	assert_int_equal(top_keys_list(top, &keys), 1);
	top_keys_free(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_counts_as_the_model_does),
		cmocka_unit_test(keys_are_added_in_order),
		cmocka_unit_test(a_key_that_is_too_long_is_passed_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
