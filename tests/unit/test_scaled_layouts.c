/* SPDX-License-Identifier: Apache-2.0 */
/* Scaled layouts: each is made once, is followed as its own is, and those of other zones and factors lie apart. */
#include "limiter/bucket/scaled_layouts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { LAYOUTS = 4 };

/* Zone 1: layouts 1, 3 and 4, one after the other; zone 2: layout 2. */
struct history {
	struct layout layouts[LAYOUTS], *places[LAYOUTS];
	struct scaled_layouts *scaled;
};

static void history_init(struct history *history)
{
	static const uint32_t zones[LAYOUTS] = {1, 2, 1, 1};
	for (uint32_t i = 0; i < LAYOUTS; i++) {
		struct weir_zone zone = {.id = zones[i], .limit_count = 1};
		zone.limits[0] = (struct weir_limit){
			.algorithm = weir_algorithm_named("fixed_window"), .rate = 10 * (i + 1), .window_ms = 1000};
		layout_init(&history->layouts[i], i + 1, i + 1, &zone, NULL);
		history->places[i] = &history->layouts[i];
	}
	history->layouts[0].next = &history->layouts[2];
	history->layouts[2].next = &history->layouts[3];
	history->scaled = scaled_layouts_new();
}

static const struct layout *get(struct history *history, uint32_t id, uint32_t thousandths)
{
	return scaled_layouts_get(history->scaled, history->places, LAYOUTS, id, thousandths);
}

static void each_is_made_once(void **state)
{
	(void)state;
	struct history history;
	history_init(&history);
	const struct layout *first = get(&history, 1, 2000), *other = get(&history, 1, 500);
	assert_ptr_not_equal(first, other);
	assert_ptr_equal(get(&history, 1, 2000), first);
	assert_ptr_equal(get(&history, 1, 500), other);
	assert_int_equal(first->limits[0].limit.rate, 20);
	assert_int_equal(other->limits[0].limit.rate, 5);
	scaled_layouts_free(history.scaled);
}

static void a_scaled_one_is_followed_by_the_scaled_form_of_what_follows_its_own(void **state)
{
	(void)state;
	struct history history;
	history_init(&history);
	const struct layout *last = get(&history, 4, 2000); /* whichever is asked for first */
	const struct layout *first = get(&history, 1, 2000);
	assert_ptr_equal(first->next, get(&history, 3, 2000));
	assert_ptr_equal(first->next->next, last);
	assert_null(last->next);
	assert_int_equal(first->next->scale, 2000);
	assert_int_equal(first->next->id, 3 | LAYOUT_SCALED);
	scaled_layouts_free(history.scaled);
}

static void a_zone_s_own_are_not_those_of_another(void **state)
{
	(void)state;
	struct history history;
	history_init(&history);
	const struct layout *one = get(&history, 1, 2000), *two = get(&history, 2, 2000);
	assert_int_equal(one->zone_id, 1);
	assert_int_equal(two->zone_id, 2);
	assert_int_equal(two->limits[0].limit.rate, 40);
	assert_null(two->next);
	scaled_layouts_free(history.scaled);
}

static void none_is_freed_as_well(void **state)
{
	(void)state;
	scaled_layouts_free(NULL);
	scaled_layouts_free(scaled_layouts_new());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_made_once),
		cmocka_unit_test(a_scaled_one_is_followed_by_the_scaled_form_of_what_follows_its_own),
		cmocka_unit_test(a_zone_s_own_are_not_those_of_another),
		cmocka_unit_test(none_is_freed_as_well),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
