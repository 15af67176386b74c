/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much passes while checks are under way: with log lines in the same bucket, and when a policy, an operator's override or
 * its end changes the limits meanwhile. What has passed by then counts under the new ones, in the copy as in the bucket.
 */
#include "limiter/shard/shard_check.h"
#include "shard_scene.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { OWN = 99, OTHER = 1, POLICIES = 2, FRAMES = 512, MINUTE_MS = 60000, TTL_MS = 600000 };

/* One zone and one key, under one policy and then another. */
struct stage {
	struct scene_random random;
	struct weir_zone zones[POLICIES];
	struct weir_policy policies[POLICIES];
	struct compiled_policy *compiled[POLICIES];
	uint32_t policy;
	struct shard *shard;
	struct scene_frame *frames; /* of the log, in order */
	uint32_t frame_count, next;
	struct scene_frame open; /* checks that are in no frame yet */
	uint64_t position, log_position;
	int64_t now_ms;
};

static struct weir_limit sliding(int64_t rate, int64_t window_ms)
{
	return (struct weir_limit){
		.algorithm = model_algorithm(MODEL_SLIDING_WINDOW), .rate = rate, .window_ms = window_ms};
}

static struct weir_span key_of_all(void)
{
	return weir_span_of("k");
}

static void clear_open(struct stage *stage)
{
	memset(&stage->open, 0, sizeof stage->open);
	stage->open.frame.kind = WEIR_FRAME_CHECKS;
	stage->open.frame.verdicts = stage->open.answers;
	memset(stage->open.frame.source, OWN, sizeof stage->open.frame.source);
}

/* @param before, after  the first limit under each policy @param second  NULL: there is but one; else a second of both */
static struct stage *open_stage(const struct weir_limit *before, const struct weir_limit *after,
                                const struct weir_limit *second, const struct shard_options *options)
{
	static char ip[] = "ip";
	struct stage *stage = weir_alloc(1, sizeof *stage);
	const struct weir_policy *history[POLICIES];
	stage->frames = weir_alloc(FRAMES, sizeof *stage->frames);
	for (uint32_t i = 0; i < POLICIES; i++) {
		struct weir_zone *zone = &stage->zones[i];
		*zone = (struct weir_zone){.id = 1, .name = scene_zone_name(1), .description = "", .key_count = 1};
		zone->key[0] = (struct weir_key_field){.field = ip, .prefix4 = 32, .prefix6 = 128};
		zone->limits[zone->limit_count++] = i == 0 ? *before : *after;
		if (second != NULL)
			zone->limits[zone->limit_count++] = *second;
		stage->policies[i] = (struct weir_policy){.version = i + 1, .zones = zone, .zone_count = 1};
		history[i] = &stage->policies[i];
		stage->compiled[i] = compiled_policy_new(history, i + 1);
	}
	stage->now_ms = INT64_C(1700000000000);
	stage->shard = shard_new(options, stage->compiled[0]);
	clear_open(stage);
	shard_checks_begin(stage->shard, stage->open.frame.source);
	return stage;
}

static struct stage *open_simple(int64_t before, int64_t after)
{
	const struct shard_options options = {.seed = 1, .lateness_ms = -1};
	struct weir_limit first = sliding(before, MINUTE_MS), then = sliding(after, MINUTE_MS);
	return open_stage(&first, &then, NULL, &options);
}

static void close_stage(struct stage *stage)
{
	shard_free(stage->shard);
	for (uint32_t i = 0; i < POLICIES; i++)
		compiled_policy_free(stage->compiled[i]);
	free(stage->frames);
	free(stage);
}

static struct shard_check a_check(const struct stage *stage)
{
	return (struct shard_check){
		.zone = compiled_policy_zone_at(stage->compiled[stage->policy], 0), .key = key_of_all(), .cost = 1};
}

static void judge(struct stage *stage, struct shard_check *check)
{
	shard_check_judge(stage->shard, check, 1, (struct check_times){stage->now_ms, stage->now_ms});
	if (check->state != SHARD_CHECK_JUDGED || check->peek)
		return;
	struct weir_frame_event event = {.time_ms = check->t, .cost = check->cost, .position = ++stage->position};
	scene_add(&stage->open, 1, check->settles != NULL, check->key, event, check->blocked);
}

/* @return how many of so many checks pass */
static uint32_t ask(struct stage *stage, uint32_t count)
{
	uint32_t passed = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct shard_check check = a_check(stage);
		judge(stage, &check);
		assert_int_equal(check.state, SHARD_CHECK_JUDGED);
		passed += !check.blocked;
	}
	return passed;
}

/* @return how many would pass */
static int64_t peek(struct stage *stage)
{
	struct shard_check check = a_check(stage);
	check.peek = true;
	judge(stage, &check);
	assert_int_equal(check.state, SHARD_CHECK_JUDGED);
	return check.quota.remaining;
}

/* What was asked goes into the log. */
static void send(struct stage *stage)
{
	assert_true(stage->frame_count < FRAMES);
	struct scene_frame *sent = &stage->frames[stage->frame_count++];
	*sent = stage->open;
	sent->frame.sending_time_ms = stage->now_ms;
	scene_close(sent);
	clear_open(stage);
}

static void send_line(struct stage *stage)
{
	assert_true(stage->frame_count < FRAMES);
	struct scene_frame *sent = &stage->frames[stage->frame_count++];
	sent->frame = (struct weir_frame){.kind = WEIR_FRAME_EVENTS, .sending_time_ms = stage->now_ms};
	memset(sent->frame.source, OTHER, sizeof sent->frame.source);
	struct weir_frame_event event = {.time_ms = stage->now_ms, .cost = 1, .position = ++stage->log_position};
	scene_add(sent, 1, false, key_of_all(), event, 0);
	scene_close(sent);
}

/* Judges the log's next frame. @return the verdict of its first event */
static unsigned take(struct stage *stage)
{
	struct shard_result result;
	const struct weir_frame *frame = &stage->frames[stage->next].frame;
	shard_frame_begin(stage->shard, frame, stage->next++);
	shard_frame_judge(stage->shard, &result);
	return weir_verdict_of(result.verdicts, 0);
}

/* Everything has come back. @return what the bucket's first limit holds then */
static int64_t take_all(struct stage *stage)
{
	struct shard_held held[WEIR_ZONE_LIMITS_MAX];
	if (stage->open.frame.event_count > 0)
		send(stage);
	while (stage->next < stage->frame_count)
		(void)take(stage);
	assert_int_equal(shard_checks_pending(stage->shard), 0);
	assert_true(shard_read_held(stage->shard, 1, key_of_all(), stage->now_ms, held) > 0);
	return held[0].held;
}

static void switch_policy(struct stage *stage)
{
	stage->policy = 1;
	shard_set_policy(stage->shard, stage->compiled[1]);
}

static void command_rate(struct stage *stage, enum override_scope scope, const char *key, uint32_t thousandths,
                         int64_t until_ms)
{
	struct weir_error error;
	const struct shard_override_decision *decision;
	struct override_command command = {.kind = OVERRIDE_RATE,
	                                   .scope = scope,
	                                   .thousandths = thousandths,
	                                   .until_ms = until_ms,
	                                   .by = "ann",
	                                   .reason = ""};
	snprintf(command.zone, sizeof command.zone, "%s", scene_zone_name(1));
	override_key_add(&command, weir_span_of(key));
	assert_int_equal(shard_command_begin(stage->shard, &command, stage->now_ms, &error), WEIR_OK);
	assert_int_equal(shard_command_apply(stage->shard, &decision, &error), WEIR_OK);
}

/* ---- what changes the limits meanwhile ---- */

static void what_is_under_way_counts_under_a_new_policy(void **state)
{
	(void)state;
	struct stage *stage = open_simple(5, 10);
	assert_int_equal(ask(stage, 7), 5);
	send(stage);
	switch_policy(stage);
	assert_int_equal(peek(stage), 5);
	assert_int_equal(ask(stage, 20), 5);
	assert_int_equal(take_all(stage), 10);
	assert_int_equal(ask(stage, 1), 0);
	close_stage(stage);
}

/* A line of a log meets the copy first. */
static void what_is_under_way_counts_beside_a_line_under_a_new_policy(void **state)
{
	(void)state;
	struct stage *stage = open_simple(5, 10);
	assert_int_equal(ask(stage, 7), 5);
	switch_policy(stage);
	send_line(stage);
	assert_false(take(stage) & WEIR_VERDICT_BLOCK);
	assert_int_equal(ask(stage, 20), 4);
	assert_int_equal(take_all(stage), 10);
	close_stage(stage);
}

/* For the key, or for a prefix of it. */
static void what_is_under_way_counts_as_an_override_begins(void **state)
{
	(void)state;
	static const enum override_scope scopes[] = {OVERRIDE_OF_KEY, OVERRIDE_OF_PREFIX};
	for (uint32_t i = 0; i < 2; i++) {
		struct stage *stage = open_simple(5, 5);
		assert_int_equal(ask(stage, 7), 5);
		command_rate(stage, scopes[i], "k", 2000, OVERRIDE_NO_END);
		assert_int_equal(ask(stage, 15), 5);
		command_rate(stage, scopes[i], "k", 1000, OVERRIDE_NO_END);
		assert_int_equal(ask(stage, 15), 0);
		command_rate(stage, scopes[i], "k", 3000, OVERRIDE_NO_END);
		assert_int_equal(ask(stage, 15), 5);
		assert_int_equal(take_all(stage), 15);
		close_stage(stage);
	}
}

static void what_is_under_way_counts_as_an_override_ends(void **state)
{
	(void)state;
	struct stage *stage = open_simple(10, 10);
	command_rate(stage, OVERRIDE_OF_PREFIX, "k", 500, stage->now_ms + 1000);
	assert_int_equal(ask(stage, 7), 5);
	stage->now_ms += 1000;
	assert_int_equal(ask(stage, 20), 5);
	assert_int_equal(take_all(stage), 10);
	close_stage(stage);
}

/* Voided by a command for a prefix, under which its key has the same limits as before. */
static void a_settlement_that_is_void_by_the_time_it_comes_gives_nothing_back(void **state)
{
	(void)state;
	struct stage *stage = open_simple(10, 10);
	uint8_t id[WEIR_RESERVATION_ID_BYTES];
	struct shard_check reserving = a_check(stage), settling = a_check(stage);
	reserving.cost = 8;
	reserving.reserves = true;
	judge(stage, &reserving);
	assert_false(reserving.blocked);
	weir_reservation_id(stage->open.frame.source, stage->position, id);
	shard_reserve(stage->shard, &reserving, TTL_MS, id);
	stage->open.reservations[stage->open.frame.reservation_count++] = (struct weir_frame_reservation){.ttl_ms = TTL_MS};
	assert_int_equal(take_all(stage), 8);

	settling.settles = id;
	judge(stage, &settling);
	assert_int_equal(settling.state, SHARD_CHECK_JUDGED);
	struct weir_frame_reservation *named = &stage->open.reservations[stage->open.frame.reservation_count++];
	memcpy(named->id, id, sizeof named->id);
	assert_int_equal(peek(stage), 9);
	command_rate(stage, OVERRIDE_OF_PREFIX, "other", 2000, OVERRIDE_NO_END);
	assert_int_equal(ask(stage, 20), 2);
	assert_int_equal(take_all(stage), 10);
	close_stage(stage);
}

/* Its bucket has left memory by the time its copy is to be made again. */
static void a_copy_is_made_again_of_what_the_store_has(void **state)
{
	(void)state;
	const struct shard_options options = {.seed = 1, .lateness_ms = -1, .ceiling_bytes = 1};
	struct weir_limit before = sliding(100, MINUTE_MS), after = sliding(200, MINUTE_MS), both = sliding(5, MINUTE_MS);
	struct stage *stage = open_stage(&before, &after, &both, &options);
	struct shard_snapshot snapshot;
	struct shard_stats stats;
	struct weir_error error;
	uint32_t segment;
	for (uint32_t i = 0; i < 5; i++)
		send_line(stage);
	(void)take_all(stage);
	shard_snapshot(stage->shard, &snapshot);
	assert_int_equal(snapshot.segment_count, 1);
	segment = snapshot.segments[0];
	struct weir_span stored = {.at = weir_copy(snapshot.deltas[0].at, snapshot.deltas[0].length),
	                           .length = snapshot.deltas[0].length};
	shard_snapshot_done(stage->shard, &snapshot, true);
	assert_int_equal(ask(stage, 1), 0);
	for (uint32_t i = 0; i < 3; i++)
		shard_sweep(stage->shard, 10);
	shard_stats(stage->shard, &stats);
	assert_int_equal(stats.buckets, 0);
	switch_policy(stage);
	struct shard_check check = a_check(stage);
	judge(stage, &check);
	assert_int_equal(check.state, SHARD_CHECK_MISSING);
	assert_int_equal(shard_load(stage->shard, segment, &stored, 1, &error), WEIR_OK);
	assert_int_equal(ask(stage, 3), 0);
	free((char *)stored.at);
	close_stage(stage);
}

/* ---- with lines of logs in the bucket ---- */

enum { STEPS = 400, RATE = 10, WINDOW_MS = 1000, ADMITTED_MOST = 4000 };

struct admitted {
	int64_t times[ADMITTED_MOST];
	uint32_t count;
};

static void admit(struct admitted *admitted, int64_t t)
{
	assert_true(admitted->count < ADMITTED_MOST);
	admitted->times[admitted->count++] = t;
}

/* The most in any window: times ascend but for those of frames that come later than what is asked meanwhile. */
static uint32_t most_in_a_window(const struct admitted *admitted)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < admitted->count; i++) {
		uint32_t in = 0;
		for (uint32_t j = 0; j < admitted->count; j++)
			in += admitted->times[j] <= admitted->times[i] && admitted->times[j] > admitted->times[i] - WINDOW_MS;
		most = in > most ? in : most;
	}
	return most;
}

static void take_and_admit(struct stage *stage, struct admitted *admitted)
{
	const struct weir_frame *frame = &stage->frames[stage->next].frame;
	unsigned verdict = take(stage);
	if (frame->kind == WEIR_FRAME_EVENTS && !(verdict & WEIR_VERDICT_BLOCK))
		admit(admitted, frame->events[0].time_ms);
}

static void run_bounded(uint64_t seed, uint32_t totals[2])
{
	const struct shard_options options = {.seed = seed, .lateness_ms = -1};
	struct weir_limit limit = sliding(RATE, WINDOW_MS);
	struct stage *stage = open_stage(&limit, &limit, NULL, &options);
	struct admitted *admitted = weir_alloc(1, sizeof *admitted);
	uint32_t under_way = 0;
	stage->random = (struct scene_random){seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
	for (uint32_t step = 0; step < STEPS; step++) {
		stage->now_ms += scene_below(&stage->random, 40);
		switch (scene_below(&stage->random, 5)) {
		case 0:
		case 1:
			if (stage->open.frame.event_count < SCENE_EVENTS && ask(stage, 1) == 1)
				admit(admitted, stage->now_ms);
			break;
		case 2:
			if (stage->open.frame.event_count > 0)
				send(stage);
			break;
		case 3: send_line(stage); break;
		default:
			if (stage->next < stage->frame_count)
				take_and_admit(stage, admitted);
			break;
		}
		uint32_t pending = shard_checks_pending(stage->shard);
		under_way = pending > under_way ? pending : under_way;
	}
	uint32_t most = most_in_a_window(admitted);
	assert_in_range(most, 1, RATE + under_way);
	totals[0] += most > RATE;
	totals[1] += most <= RATE;
	free(admitted);
	close_stage(stage);
}

static void with_log_lines_no_more_pass_beyond_the_limit_than_are_under_way(void **state)
{
	(void)state;
	uint32_t totals[2] = {0};
	for (uint64_t seed = 1; seed <= 60; seed++)
		run_bounded(seed, totals);
	assert_true(totals[0] > 0); /* it is a bound that is met */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_under_way_counts_under_a_new_policy),
		cmocka_unit_test(what_is_under_way_counts_beside_a_line_under_a_new_policy),
		cmocka_unit_test(what_is_under_way_counts_as_an_override_begins),
		cmocka_unit_test(what_is_under_way_counts_as_an_override_ends),
		cmocka_unit_test(a_settlement_that_is_void_by_the_time_it_comes_gives_nothing_back),
		cmocka_unit_test(a_copy_is_made_again_of_what_the_store_has),
		cmocka_unit_test(with_log_lines_no_more_pass_beyond_the_limit_than_are_under_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
