/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: which numbers and scales name a layout, and which do not; zones by id; what a removed zone leaves behind. */
#include "limiter/bucket/compiled_policy.h"

#include "common/base/alloc.h"
#include "limiter/bucket/bucket_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { POLICIES = 3 };

#define ZONE(id, rate)                                                                                    \
	"{\"id\":" #id ",\"name\":\"z" #id "\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"fixed_window\"," \
	"\"rate\":" #rate ",\"window\":\"1s\"}]}"

/* Zone 7 comes and goes, zone 9 changes, zone 65535 is the largest id and stays. Layouts are numbered as they come. */
static const char *const texts[POLICIES] = {
	"{\"zones\":[" ZONE(9, 1) "," ZONE(7, 1) "," ZONE(65535, 1) "]}",
	"{\"zones\":[" ZONE(65535, 1) "," ZONE(9, 2) "]}",
	"{\"zones\":[" ZONE(65535, 1) "," ZONE(9, 2) "," ZONE(8, 5) "]}",
};

struct scene {
	struct weir_policy *policies[POLICIES];
	struct compiled_policy *compiled;
};

static int set_up(void **state)
{
	struct scene *scene = weir_alloc(1, sizeof *scene);
	struct weir_error error;
	for (uint32_t i = 0; i < POLICIES; i++)
		if (weir_policy_decode(i + 1, texts[i], strlen(texts[i]), &scene->policies[i], &error) != WEIR_OK)
			fail_msg("%s", error.text);
	scene->compiled = compiled_policy_new((const struct weir_policy *const *)scene->policies, POLICIES);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	compiled_policy_free(scene->compiled);
	for (uint32_t i = 0; i < POLICIES; i++)
		weir_policy_free(scene->policies[i]);
	free(scene);
	return 0;
}

static void zones_are_found_by_id_and_no_others(void **state)
{
	const struct scene *scene = *state;
	assert_int_equal(compiled_policy_version(scene->compiled), POLICIES);
	assert_int_equal(compiled_policy_zone_count(scene->compiled), 3);
	static const uint32_t ids[] = {65535, 9, 8}, absent[] = {0, 1, 7, 10, 65534, 65536};
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(compiled_policy_zone_at(scene->compiled, i)->zone->id, ids[i]);
		assert_ptr_equal(compiled_policy_zone(scene->compiled, ids[i]), compiled_policy_zone_at(scene->compiled, i));
		assert_int_equal(compiled_policy_zone(scene->compiled, ids[i])->order, i);
	}
	for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
		assert_null(compiled_policy_zone(scene->compiled, absent[i]));
}

static void layouts_are_numbered_from_one_to_the_last_and_no_further(void **state)
{
	const struct scene *scene = *state;
	static const uint32_t zones[] = {9, 7, 65535, 9, 8};
	assert_null(compiled_policy_layout(scene->compiled, 0, SCALE_ONE));
	for (uint32_t id = 1; id <= 5; id++) {
		assert_int_equal(compiled_policy_layout(scene->compiled, id, SCALE_ONE)->id, id);
		assert_int_equal(compiled_policy_layout(scene->compiled, id, SCALE_ONE)->zone_id, zones[id - 1]);
	}
	assert_null(compiled_policy_layout(scene->compiled, 6, SCALE_ONE));
	assert_null(compiled_policy_layout(scene->compiled, LAYOUT_ID_MAX, SCALE_ONE));
	assert_ptr_equal(compiled_policy_zone(scene->compiled, 9)->layout,
	                 compiled_policy_layout(scene->compiled, 4, SCALE_ONE));
}

static void a_layout_says_what_took_its_place_or_that_its_zone_is_gone(void **state)
{
	const struct scene *scene = *state;
	assert_ptr_equal(compiled_policy_layout(scene->compiled, 1, SCALE_ONE)->next,
	                 compiled_policy_layout(scene->compiled, 4, SCALE_ONE));
	assert_int_equal(compiled_policy_layout(scene->compiled, 1, SCALE_ONE)->ended_version, 2);
	assert_null(compiled_policy_layout(scene->compiled, 2, SCALE_ONE)->next);
	assert_int_equal(compiled_policy_layout(scene->compiled, 2, SCALE_ONE)->ended_version, 2);
	assert_null(compiled_policy_layout(scene->compiled, 3, SCALE_ONE)->next);
	assert_int_equal(compiled_policy_layout(scene->compiled, 3, SCALE_ONE)->ended_version, 0);
}

static void a_scale_goes_with_the_bit_that_says_so_and_within_its_bounds(void **state)
{
	const struct scene *scene = *state;
	assert_null(compiled_policy_layout(scene->compiled, 1, 2000));
	assert_null(compiled_policy_layout(scene->compiled, 1 | LAYOUT_SCALED, SCALE_ONE));
	assert_null(compiled_policy_layout(scene->compiled, 1 | LAYOUT_SCALED, 0));
	assert_null(compiled_policy_layout(scene->compiled, 0 | LAYOUT_SCALED, 2000));
	assert_null(compiled_policy_layout(scene->compiled, 6 | LAYOUT_SCALED, 2000));
	assert_null(compiled_policy_layout(scene->compiled, 1 | LAYOUT_SCALED, SCALE_MAX + 1));
	static const uint32_t scales[] = {1, SCALE_ONE - 1, SCALE_ONE + 1, SCALE_MAX};
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(compiled_policy_layout(scene->compiled, 1 | LAYOUT_SCALED, scales[i])->scale, scales[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zones_are_found_by_id_and_no_others),
		cmocka_unit_test(layouts_are_numbered_from_one_to_the_last_and_no_further),
		cmocka_unit_test(a_layout_says_what_took_its_place_or_that_its_zone_is_gone),
		cmocka_unit_test(a_scale_goes_with_the_bit_that_says_so_and_within_its_bounds),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
