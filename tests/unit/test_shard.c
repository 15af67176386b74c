/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shard against the obvious model: random policies and events, verdict for
 * verdict and decision for decision.
 */
#include "shard_scene.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t seen_kinds[BUCKET_LIFTS + 1]; /* decisions of each */

static unsigned verdict_at(const struct shard_result *result, uint32_t pair)
{
	return weir_verdict_of(result->verdicts, pair);
}

static void print_limit(const struct weir_text *shown, const struct model_limit *wanted)
{
	struct weir_text text = {0};
	model_show(&text, wanted);
	print_message("  shard: %.*s\n  model: %.*s\n", (int)shown->length, shown->at, (int)text.length, text.at);
	weir_text_deinit(&text);
}

/* What a pair is about, for whoever looks into a difference. */
static void print_pair(struct shard *shard, const struct weir_frame *frame, const struct model *model, uint32_t pair)
{
	uint32_t event = 0;
	while (pair >= frame->zone_sets[frame->events[event].zone_set].count)
		pair -= frame->zone_sets[frame->events[event++].zone_set].count;
	const struct weir_frame_event *at = &frame->events[event];
	const struct weir_frame_zone *member = &frame->zone_sets[at->zone_set].zones[pair];
	const struct weir_zone *zone = model_zone(model->policy, member->id);
	print_message("event %u: key %.*s t %lld cost %lld done %d zone %u", event, (int)frame->keys[at->key].length,
	              frame->keys[at->key].at, (long long)at->time_ms, (long long)at->cost, member->done, member->id);
	for (uint32_t i = 0; zone != NULL && i < zone->limit_count; i++) {
		const struct weir_limit *limit = &zone->limits[i];
		print_message(" | %s rate %lld window %lld burst %lld own %lld", limit->algorithm->name, (long long)limit->rate,
		              (long long)limit->window_ms, (long long)limit->burst, (long long)limit->own[0]);
	}
	if (zone == NULL)
		return;
	print_message(" | all %d block_for %lld policy %llu\n", zone->count_all, (long long)zone->block_for_ms,
	              (unsigned long long)model->policy->version);
	struct shard_bucket image;
	struct model_bucket *wanted = model_find((struct model *)model, zone, frame->keys[at->key]);
	if (!shard_read(shard, zone->id, frame->keys[at->key], &image)) {
		print_message("  shard: none\n");
		return;
	}
	for (uint32_t i = 0; i < image.limit_count; i++)
		print_limit(&image.limits[i], &wanted->limits[i]);
	shard_bucket_deinit(&image);
}

/* Judges a frame in both and compares. */
static void compare_frame(struct shard *shard, struct model *model, const struct weir_frame *frame, uint64_t offset)
{
	uint8_t verdicts[SCENE_EVENTS * SCENE_SET_ZONES];
	struct shard_decision decisions[SCENE_EVENTS * SCENE_SET_ZONES];
	uint32_t decided = model_frame(model, frame, offset, verdicts, decisions);
	uint32_t segments[SHARD_SEGMENTS];
	struct shard_result result;
	shard_frame_begin(shard, frame, offset);
	assert_int_equal(shard_missing(shard, segments), 0);
	shard_frame_judge(shard, &result);
	assert_int_equal(result.pair_count, frame->pair_count);
	for (uint32_t i = 0; i < frame->pair_count; i++) {
		if (verdict_at(&result, i) != verdicts[i])
			print_pair(shard, frame, model, i);
		assert_int_equal(verdict_at(&result, i), verdicts[i]);
	}
	assert_int_equal(result.decision_count, decided);
	for (uint32_t i = 0; i < decided; i++) {
		const struct shard_decision *got = &result.decisions[i], *wanted = &decisions[i];
		assert_int_equal(got->pair, wanted->pair);
		assert_int_equal(got->event, wanted->event);
		assert_int_equal(got->id_offset, wanted->id_offset);
		assert_int_equal(got->id_index, wanted->id_index);
		assert_int_equal(got->kind, wanted->kind);
		seen_kinds[got->kind]++;
		assert_int_equal(got->limit, wanted->limit);
		assert_int_equal(got->at_ms, wanted->at_ms);
		assert_int_equal(got->until_ms, wanted->until_ms);
		assert_int_equal(got->count, wanted->count);
	}
}

/* Gives a command to both and compares. */
static void compare_command(struct shard *shard, struct model *model, struct scene *scene,
                            const struct weir_policy *policy)
{
	struct override_command command;
	int64_t at_ms;
	const struct weir_zone *zone = scene_command(scene, policy, &command, &at_ms);
	struct model_published wanted = model_command(model, zone, &command, at_ms);
	const struct shard_override_decision *got;
	uint32_t segments[SHARD_SEGMENTS];
	struct weir_error error;
	assert_int_equal(shard_command_begin(shard, &command, at_ms, &error), WEIR_OK);
	assert_int_equal(shard_missing(shard, segments), 0);
	assert_int_equal(shard_command_apply(shard, &got, &error), WEIR_OK);
	assert_int_equal(got != NULL, wanted.any);
	if (got == NULL)
		return;
	assert_int_equal(got->lift, wanted.lift);
	assert_int_equal(got->at_ms, wanted.at);
	assert_int_equal(got->until_ms, wanted.until);
	assert_ptr_equal(got->zone, zone);
	assert_true(weir_span_equal(got->key, override_key(&command)));
	assert_string_equal(got->by, "ann");
}

enum { SCENES = 400, FRAMES = 60, POLICIES = 8 };

static uint64_t run_scene(uint64_t seed)
{
	struct scene scene = scene_new(seed);
	struct scene_random *random = &scene.random;
	const struct weir_policy *policies[POLICIES];
	struct compiled_policy *compiled[POLICIES];
	uint32_t policy = 0, next_id = 100;
	policies[0] = scene_policy(random, 1);
	compiled[0] = compiled_policy_new(policies, 1);
	bool forgets = scene_below(random, 2), overrides = scene_below(random, 3) > 0, checks = scene_below(random, 2);
	struct shard_options options = {.seed = seed, .lateness_ms = forgets ? 3000 : -1, .count_events = !forgets};
	struct shard *shard = shard_new(&options, compiled[0]);
	struct model *model = model_new(policies[0], options.lateness_ms, options.count_events);
	struct scene_frame *frame = weir_alloc(1, sizeof *frame);
	uint64_t events = 0;
	for (uint64_t i = 0; i < FRAMES; i++) {
		if (policy + 1 < POLICIES && scene_below(random, 12) == 0) {
			policies[policy + 1] = scene_next_policy(random, policies[policy], &next_id);
			policy++;
			compiled[policy] = compiled_policy_new(policies, policy + 1);
			shard_set_policy(shard, compiled[policy]);
			model_set_policy(model, policies[policy]);
		}
		for (int64_t commands = scene_below(random, 4) == 0 ? scene_below(random, 6) : 0; overrides && commands > 0;
		     commands--)
			compare_command(shard, model, &scene, policies[policy]);
		scene_fill(&scene, policies[policy], frame);
		if (checks && scene_below(random, 2))
			scene_answer(&scene, frame);
		compare_frame(shard, model, &frame->frame, i);
		events += frame->frame.event_count;
		if (scene_below(random, 4) == 0)
			shard_sweep(shard, (uint32_t)scene_below(random, 1000));
	}
	shard_free(shard);
	model_free(model);
	free(frame);
	for (uint32_t i = 0; i <= policy; i++) {
		compiled_policy_free(compiled[i]);
		free(policies[i]->zones);
		free((struct weir_policy *)policies[i]);
	}
	return events;
}

static void test_random_scenes_equal_the_model(void **state)
{
	(void)state;
	const char *scenes = getenv("WEIR_SCENES");
	uint64_t count = scenes != NULL ? strtoull(scenes, NULL, 10) : SCENES, events = 0;
	for (uint64_t seed = getenv("WEIR_SEED") != NULL ? strtoull(getenv("WEIR_SEED"), NULL, 10) : 1; seed <= count;
	     seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		events += run_scene(seed);
	}
	print_message("%llu events\n", (unsigned long long)events);
	for (int kind = BUCKET_BLOCKS; kind <= BUCKET_LIFTS; kind++) {
		print_message("%llu decisions of kind %d\n", (unsigned long long)seen_kinds[kind], kind);
		assert_true(scenes != NULL || seen_kinds[kind] > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_scenes_equal_the_model)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
