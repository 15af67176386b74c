/* SPDX-License-Identifier: Apache-2.0 */
/* What a change of policy publishes: which zones are lifted, which operators' blocks come into force, in which order. */
#include "limiter/lane/policy_switch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ZONE(id, mode)                                                        \
	"{\"id\":" #id ",\"name\":\"z" #id "\",\"key\":[\"ip\"],\"mode\":\"" mode \
	"\",\"limits\":[{\"algorithm\":\"fixed_window\",\"rate\":1,\"window\":\"1s\"}]}"
#define ENFORCE "enforce"
#define SHADOW "shadow"

struct scene {
	struct weir_policy *before, *after;
	struct overrides overrides;
	struct policy_switch change;
};

static struct weir_policy *policy(uint64_t version, const char *text)
{
	struct weir_policy *made;
	struct weir_error error;
	if (weir_policy_decode(version, text, strlen(text), &made, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return made;
}

static void scene_init(struct scene *scene, const char *before, const char *after)
{
	*scene = (struct scene){.before = policy(1, before), .after = policy(2, after)};
	overrides_init(&scene->overrides, -1, 0, 1);
}

static void scene_deinit(struct scene *scene)
{
	policy_switch_deinit(&scene->change);
	overrides_deinit(&scene->overrides);
	weir_policy_free(scene->before);
	weir_policy_free(scene->after);
}

static void add_block(struct scene *scene, uint32_t zone_id, const char *key, int64_t until_ms)
{
	struct override *override = overrides_make(&scene->overrides, zone_id, false, weir_span_of(key));
	overrides_set(&scene->overrides, &override->block, 1, until_ms, 2, "ann", "why");
	overrides_settle(&scene->overrides);
}

static void find(struct scene *scene, int64_t clock_ms)
{
	overrides_advance(&scene->overrides, clock_ms);
	policy_switch_find(&scene->change, scene->before, scene->after, &scene->overrides, 500);
}

static void zones_that_are_removed_or_go_into_shadow_mode_are_lifted(void **state)
{
	(void)state;
	struct scene scene;
	scene_init(&scene,
	           "{\"zones\":[" ZONE(1, ENFORCE) "," ZONE(2, ENFORCE) "," ZONE(3, ENFORCE) "," /* enforced before */
	           ZONE(4, SHADOW) "," ZONE(5, SHADOW) "," ZONE(6, SHADOW) "]}",
	           "{\"zones\":[" ZONE(6, SHADOW) "," ZONE(3, SHADOW) "," ZONE(1, ENFORCE) "," ZONE(5, ENFORCE) "]}");
	find(&scene, 0);
	assert_int_equal(scene.change.lifted_count, 3);
	assert_ptr_equal(scene.change.lifted[0], &scene.before->zones[1]);
	assert_ptr_equal(scene.change.lifted[1], &scene.before->zones[2]);
	assert_ptr_equal(scene.change.lifted[2], &scene.before->zones[3]);
	assert_int_equal(scene.change.block_count, 0);
	scene_deinit(&scene);
}

static void blocks_of_a_zone_that_leaves_shadow_mode_are_published_in_order(void **state)
{
	(void)state;
	struct scene scene;
	scene_init(&scene, "{\"zones\":[" ZONE(1, SHADOW) "," ZONE(2, SHADOW) "," ZONE(3, ENFORCE) "," ZONE(4, SHADOW) "]}",
	           "{\"zones\":[" ZONE(2, ENFORCE) "," ZONE(1, ENFORCE) "," ZONE(3, ENFORCE) "," ZONE(4, SHADOW) "]}");
	add_block(&scene, 1, "b", 1000);
	add_block(&scene, 1, "ab", 1000);
	add_block(&scene, 1, "a", 1000);
	add_block(&scene, 2, "z", 1000);
	add_block(&scene, 3, "enforced already", 1000);
	add_block(&scene, 4, "in shadow mode still", 1000);
	add_block(&scene, 9, "of no zone", 1000);
	find(&scene, 0);
	static const char *const keys[] = {"z", "a", "ab", "b"};
	assert_int_equal(scene.change.block_count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct shard_override_decision *block = &scene.change.blocks[i];
		assert_int_equal(block->zone->id, i == 0 ? 2 : 1);
		assert_int_equal(block->key.length, strlen(keys[i]));
		assert_memory_equal(block->key.at, keys[i], block->key.length);
		assert_int_equal(block->at_ms, 500);
		assert_int_equal(block->until_ms, 1000);
		assert_string_equal(block->by, "ann");
		assert_string_equal(block->reason, "why");
	}
	scene_deinit(&scene);
}

static void a_block_that_ends_at_the_clock_has_ended(void **state)
{
	(void)state;
	struct scene scene;
	scene_init(&scene, "{\"zones\":[" ZONE(1, SHADOW) "]}", "{\"zones\":[" ZONE(1, ENFORCE) "]}");
	add_block(&scene, 1, "k", 1000);
	find(&scene, 999);
	assert_int_equal(scene.change.block_count, 1);
	find(&scene, 1000); /* what was found before is gone */
	assert_int_equal(scene.change.block_count, 0);
	scene_deinit(&scene);
}

static void an_allow_and_a_rate_are_no_blocks(void **state)
{
	(void)state;
	struct scene scene;
	scene_init(&scene, "{\"zones\":[" ZONE(1, SHADOW) "]}", "{\"zones\":[" ZONE(1, ENFORCE) "]}");
	struct override *override = overrides_make(&scene.overrides, 1, false, weir_span_of("k"));
	overrides_set(&scene.overrides, &override->allow, 1, 1000, 2, "ann", "why");
	overrides_set(&scene.overrides, &override->rate, 1, 1000, 2, "ann", "why");
	overrides_settle(&scene.overrides);
	find(&scene, 0);
	assert_int_equal(scene.change.block_count, 0);
	scene_deinit(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zones_that_are_removed_or_go_into_shadow_mode_are_lifted),
		cmocka_unit_test(blocks_of_a_zone_that_leaves_shadow_mode_are_published_in_order),
		cmocka_unit_test(a_block_that_ends_at_the_clock_has_ended),
		cmocka_unit_test(an_allow_and_a_rate_are_no_blocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
