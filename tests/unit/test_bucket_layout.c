/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: which limits go on from one to the next, which zones a layout serves, where the short way begins and ends,
 * and what is scaled. How a bucket follows is test_bucket_judge.c's.
 */
#include "bucket_scene.h"

#define SLIDING(rate, window) "{\"algorithm\":\"sliding_window\",\"rate\":" #rate ",\"window\":\"" #window "\"}"
#define FIXED(rate, window) "{\"algorithm\":\"fixed_window\",\"rate\":" #rate ",\"window\":\"" #window "\"}"
#define UNIFORM(interval) "{\"algorithm\":\"uniform\",\"interval\":\"" #interval "\"}"
#define QUEUE "{\"algorithm\":\"queue\",\"length\":2,\"hold\":\"1m\"}"
#define ALL ",\"count\":\"all\""
#define SHADOW ",\"mode\":\"shadow\""

static void the_short_way_is_open_exactly_to_what_it_knows(void **state)
{
	(void)state;
	static const struct {
		const char *limits, *members;
		enum layout_fast fast;
	} cases[] = {
		{SLIDING(10, 1m), "", LAYOUT_ONE},
		{FIXED(10, 1m), "", LAYOUT_FAST},
		{FIXED(1000000000, 1m), "", LAYOUT_FAST}, /* counts of four bytes */
		{FIXED(10, 1m), ALL, LAYOUT_SLOW},        /* of eight */
		{SLIDING(10, 1m), ALL, LAYOUT_ONE},
		{SLIDING(10, 134217726ms), "", LAYOUT_ONE}, /* two times of 28 bits are the most of one word */
		{SLIDING(10, 134217727ms), "", LAYOUT_SLOW},
		{"{\"algorithm\":\"sliding_window\",\"rate\":10,\"window\":\"1m\",\"precision\":\"2ms\"}", "", LAYOUT_SLOW},
		{"{\"algorithm\":\"sliding_window\",\"rate\":10,\"window\":\"1m\",\"lateness\":\"1ms\"}", "", LAYOUT_FAST},
		{UNIFORM(1m), "", LAYOUT_ONE},
		{QUEUE, "", LAYOUT_SLOW},
		{SLIDING(10, 1m) "," QUEUE, "", LAYOUT_SLOW},
		{SLIDING(10, 1m) "," FIXED(10, 1h), "", LAYOUT_FAST},
		{SLIDING(10, 1m) "," FIXED(10, 1h) "," FIXED(10, 1d), "", LAYOUT_THREE},
		{SLIDING(10, 1m) "," FIXED(10, 1h) "," FIXED(10, 1d) "," FIXED(9, 2d), "", LAYOUT_FAST},
		{FIXED(10, 1h) "," SLIDING(10, 1m) "," FIXED(10, 1d), "", LAYOUT_FAST},
		{SLIDING(10, 1m) "," SLIDING(10, 1h) "," FIXED(10, 1d), "", LAYOUT_FAST},
		{SLIDING(255, 1m) "," FIXED(10, 1h) "," FIXED(10, 1d), "", LAYOUT_THREE},
		{SLIDING(256, 1m) "," FIXED(10, 1h) "," FIXED(10, 1d), "", LAYOUT_FAST},
		{SLIDING(10, 1m) "," FIXED(65535, 1h) "," FIXED(65535, 1d), "", LAYOUT_THREE}, /* exactly eight bytes */
		{SLIDING(10, 1m) "," FIXED(255, 1h) "," FIXED(65536, 1d), "", LAYOUT_FAST},    /* ten */
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct bucket_scene *scene = scene_open(cases[i].limits, cases[i].members);
		if (scene->zone->layout->fast != cases[i].fast)
			fail_msg("%s%s: %d, not %d", cases[i].limits, cases[i].members, scene->zone->layout->fast, cases[i].fast);
		scene_close(scene);
	}
}

static void counts_of_three_are_where_their_limits_keep_them(void **state)
{
	(void)state;
	struct bucket_scene *scene = scene_open(SLIDING(10, 1m) "," FIXED(255, 1h) "," FIXED(65535, 1d), "");
	const struct layout *layout = scene->zone->layout;
	const struct layout_counts *counts = layout->counts;
	assert_int_equal(counts[0].shift, 16); /* the last six of eight bytes: 1, 1, 2, 2 */
	assert_int_equal(counts[0].bits, 8);
	assert_int_equal(counts[0].mask, 0xff);
	assert_int_equal(counts[0].rate, 255);
	assert_int_equal(counts[0].one, UINT64_C(1) << 16);
	assert_int_equal(counts[0].both, UINT64_C(0xffff) << 16);
	assert_int_equal(counts[1].shift, 32);
	assert_int_equal(counts[1].bits, 16);
	assert_int_equal(counts[1].mask, 0xffff);
	assert_int_equal(counts[1].rate, 65535);
	assert_int_equal(counts[1].both, UINT64_C(0xffffffff) << 32);
	scene_close(scene);
}

/* @param before  each limit's place in the first policy's layout, -1: it is new */
static void expect_before(const char *first, const char *then, const int8_t *before)
{
	struct bucket_scene *scene = scene_open(first, "");
	scene_policy(scene, then, "");
	const struct layout *layout = scene->zone->layout;
	assert_int_equal(layout->id, 2);
	assert_ptr_equal(compiled_policy_layout(scene->compiled, 1, SCALE_ONE)->next, layout);
	assert_int_equal(compiled_policy_layout(scene->compiled, 1, SCALE_ONE)->ended_version, 2);
	for (uint32_t i = 0; i < layout->limit_count; i++)
		assert_int_equal(layout->before[i], before[i]);
	scene_close(scene);
}

static void equal_limits_go_on_each_from_one_of_its_own(void **state)
{
	(void)state;
	expect_before(SLIDING(1, 1s) "," FIXED(1, 1s), FIXED(1, 1s) "," SLIDING(1, 1s), (const int8_t[]){1, 0});
	expect_before(SLIDING(1, 1s), SLIDING(2, 1s) "," SLIDING(1, 1001ms) "," SLIDING(1, 1s),
	              (const int8_t[]){-1, -1, 0});
	expect_before(SLIDING(1, 1s) "," SLIDING(1, 1s), SLIDING(1, 1s) "," SLIDING(1, 1s) "," SLIDING(1, 1s),
	              (const int8_t[]){0, 1, -1});
	expect_before(SLIDING(1, 1s), UNIFORM(1s), (const int8_t[]){-1});
}

static void a_zone_is_served_until_its_limits_change_or_it_leaves_shadow_mode(void **state)
{
	(void)state;
	static const struct {
		const char *before, *limits, *members;
		bool serves;
	} cases[] = {
		{"", FIXED(9, 1s), "", true},      {"", FIXED(8, 1s), "", false},
		{"", FIXED(9, 999ms), "", false},  {"", FIXED(9, 1s), SHADOW, true},
		{SHADOW, FIXED(9, 1s), "", false}, {SHADOW, FIXED(9, 1s), SHADOW, true},
		{"", FIXED(9, 1s), ALL, false},    {ALL, FIXED(9, 1s), "", true},
		{ALL, FIXED(9, 1s), ALL, true},    {"", FIXED(9, 1s) "," QUEUE, "", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct bucket_scene *scene = scene_open(FIXED(9, 1s), cases[i].before);
		scene_policy(scene, cases[i].limits, cases[i].members);
		const struct layout *first = compiled_policy_layout(scene->compiled, 1, SCALE_ONE);
		assert_int_equal(scene->zone->layout == first, cases[i].serves);
		assert_int_equal(layout_serves(first, scene->zone->zone), cases[i].serves);
		scene_close(scene);
	}
}

/* What it has counted may be above its rate for as long as it stays the same. */
static void a_limit_keeps_room_for_counts_that_were_all_counted_once(void **state)
{
	(void)state;
	struct bucket_scene *scene = scene_open(FIXED(9, 1s), ALL);
	scene_policy(scene, FIXED(9, 1s) "," FIXED(8, 1s), "");
	assert_true(scene->zone->layout->limits[0].counts_past);
	assert_false(scene->zone->layout->limits[1].counts_past);
	assert_int_equal(scene->zone->layout->fast, LAYOUT_SLOW);
	scene_close(scene);
}

static void a_scaled_layout_has_the_limits_multiplied_and_the_rest_of_its_own(void **state)
{
	(void)state;
	struct bucket_scene *scene = scene_open(SLIDING(1, 1m) "," FIXED(3, 1h) "," UNIFORM(100ms), "");
	const struct layout *base = scene->zone->layout;
	struct layout scaled, same;
	layout_init_scaled(&scaled, base, 1500);
	assert_int_equal(scaled.id, base->id | LAYOUT_SCALED);
	assert_int_equal(scaled.scale, 1500);
	assert_int_equal(scaled.limits[0].limit.rate, 1);
	assert_int_equal(scaled.limits[1].limit.rate, 4);
	assert_int_equal(scaled.limits[2].limit.window_ms, 67); /* rounded up */
	assert_int_equal(scaled.fast, LAYOUT_SLOW);
	assert_int_equal(scaled.memory_ms, 3600000);
	assert_true(layout_is_rescaled(&scaled, base));
	assert_true(layout_same_limit(&scaled, base, 0));
	assert_false(layout_same_limit(&scaled, base, 1));
	assert_false(layout_same_limit(&scaled, base, 2));
	layout_init_scaled(&same, base, 1500);
	assert_false(layout_is_rescaled(&scaled, &same));
	layout_init_scaled(&scaled, base, 1);
	assert_int_equal(scaled.limits[1].limit.rate, 1); /* never nothing */
	layout_init_scaled(&scaled, base, SCALE_MAX);
	assert_int_equal(scaled.limits[1].limit.rate, 300);
	assert_int_equal(scaled.limits[2].limit.window_ms, 1);
	scene_close(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_short_way_is_open_exactly_to_what_it_knows),
		cmocka_unit_test(counts_of_three_are_where_their_limits_keep_them),
		cmocka_unit_test(equal_limits_go_on_each_from_one_of_its_own),
		cmocka_unit_test(a_zone_is_served_until_its_limits_change_or_it_leaves_shadow_mode),
		cmocka_unit_test(a_limit_keeps_room_for_counts_that_were_all_counted_once),
		cmocka_unit_test(a_scaled_layout_has_the_limits_multiplied_and_the_rest_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
