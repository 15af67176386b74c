/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of evicted buckets. If it is given up while somebody waits for a segment, what it had is asked of the store, by
 * frames and by checks, whatever was loaded before. What is forgotten leaves it, and what no policy has any more.
 */
#include "common/base/alloc.h"
#include "limiter/shard/shard_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { KEYS = 3000, KEY_BYTES = 16 };

static const int64_t start_ms = INT64_C(1700000000000);

static struct weir_zone zone = {.id = 1, .name = "site", .description = "", .limit_count = 1};
static struct weir_policy policy = {.version = 1, .zones = &zone, .zone_count = 1};

/* A shard under a ceiling of nothing: what nobody waits for goes into the file. Its store has one event of each key. */
struct scene {
	char directory[64];
	struct compiled_policy *compiled;
	struct shard *stored, *shard;
	struct shard_snapshot snapshot;
	char names[KEYS][KEY_BYTES];
	struct weir_span keys[KEYS];
	struct weir_frame_event events[KEYS];
	uint64_t position;
};

static struct weir_frame_zone zones[] = {{.id = 1}};
static struct weir_frame_zone_set sets[] = {{.zones = zones, .count = 1}};

/* A frame of an event of each key, until the next one. */
static struct weir_frame frame_of(struct scene *scene, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		scene->events[i] =
			(struct weir_frame_event){.time_ms = start_ms, .cost = 1, .key = i, .position = ++scene->position};
	return (struct weir_frame){.kind = WEIR_FRAME_EVENTS,
	                           .sending_time_ms = start_ms,
	                           .zone_sets = sets,
	                           .zone_set_count = 1,
	                           .keys = scene->keys,
	                           .key_count = count,
	                           .events = scene->events,
	                           .event_count = count,
	                           .pair_count = count};
}

static struct scene *open_scene(void)
{
	const struct weir_policy *policies[] = {&policy};
	struct scene *scene = weir_alloc(1, sizeof *scene);
	zone.limits[0] =
		(struct weir_limit){.algorithm = weir_algorithm_named("fixed_window"), .rate = 1, .window_ms = 3600000};
	snprintf(scene->directory, sizeof scene->directory, "/tmp/weir-test-swap-XXXXXX");
	assert_non_null(mkdtemp(scene->directory));
	scene->compiled = compiled_policy_new(policies, 1);
	for (uint32_t i = 0; i < KEYS; i++) {
		snprintf(scene->names[i], KEY_BYTES, "user-%u", i);
		scene->keys[i] = weir_span_of(scene->names[i]);
	}
	struct shard_options options = {.seed = 1, .lateness_ms = -1};
	struct shard_result result;
	scene->stored = shard_new(&options, scene->compiled);
	struct weir_frame frame = frame_of(scene, KEYS);
	shard_frame_begin(scene->stored, &frame, 0);
	shard_frame_judge(scene->stored, &result);
	shard_snapshot(scene->stored, &scene->snapshot);
	options.ceiling_bytes = 1;
	options.swap_bytes = 1 << 20;
	options.swap_directory = scene->directory;
	scene->shard = shard_new(&options, scene->compiled);
	for (uint32_t i = 0; i < scene->snapshot.segment_count; i++)
		shard_set_stored(scene->shard, scene->snapshot.segments[i]);
	return scene;
}

static void close_scene(struct scene *scene)
{
	shard_free(scene->shard);
	shard_snapshot_done(scene->stored, &scene->snapshot, true);
	shard_free(scene->stored);
	compiled_policy_free(scene->compiled);
	rmdir(scene->directory);
	free(scene);
}

static uint32_t segment_of(const struct scene *scene, uint32_t key)
{
	return shard_segment_of(weir_fingerprint(1, zone.id, scene->keys[key]).low);
}

static void load(struct scene *scene, uint32_t segment)
{
	struct weir_error error;
	for (uint32_t i = 0; i < scene->snapshot.segment_count; i++)
		if (scene->snapshot.segments[i] == segment)
			assert_int_equal(shard_load(scene->shard, segment, &scene->snapshot.deltas[i], 1, &error), WEIR_OK);
}

/* All segments but two. */
static void load_others(struct scene *scene, uint32_t one, uint32_t other)
{
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		if (i != one && i != other)
			load(scene, i);
}

static void truncate_file(const struct scene *scene)
{
	char link[64], name[256];
	uint32_t found = 0;
	for (int file = 3; file < 64; file++) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", file);
		ssize_t length = readlink(link, name, sizeof name - 1);
		if (length <= 0)
			continue;
		name[length] = '\0';
		if (strncmp(name, scene->directory, strlen(scene->directory)) == 0) {
			assert_int_equal(ftruncate(file, 0), 0);
			found++;
		}
	}
	assert_int_equal(found, 1);
}

static uint64_t failures(const struct scene *scene)
{
	struct shard_stats stats;
	shard_stats(scene->shard, &stats);
	return stats.swap_failures;
}

static struct shard_check ask(struct scene *scene, uint32_t key)
{
	struct shard_check check = {
		.zone = compiled_policy_zone_at(scene->compiled, 0), .key = scene->keys[key], .cost = 1};
	shard_check_judge(scene->shard, &check, 1, (struct check_times){start_ms, start_ms});
	return check;
}

static void a_check_waits_again_for_what_the_file_lost(void **state)
{
	(void)state;
	const uint8_t source[WEIR_SOURCE_ID_BYTES] = {9};
	struct scene *scene = open_scene();
	uint32_t segment = segment_of(scene, 0), listed[2];
	shard_checks_begin(scene->shard, source);
	assert_int_equal(ask(scene, 0).state, SHARD_CHECK_MISSING);
	load(scene, segment);
	shard_sweep(scene->shard, 2 * KEYS); /* evicts it before it is asked for again */
	load_others(scene, segment, segment);
	load(scene, segment); /* which was asked for twice: the file has the bucket now */
	truncate_file(scene);
	assert_int_equal(ask(scene, 0).state, SHARD_CHECK_MISSING);
	assert_int_equal(failures(scene), 1);
	assert_int_equal(shard_check_missing(scene->shard, listed, 2), 1);
	assert_int_equal(listed[0], segment);
	load(scene, segment);
	struct shard_check check = ask(scene, 0);
	assert_int_equal(check.state, SHARD_CHECK_JUDGED);
	assert_true(check.blocked);
	close_scene(scene);
}

/* Somebody always waits, so that nothing is given up. */
static void checks_wait_for_more_segments_one_after_another_than_at_once(void **state)
{
	(void)state;
	const uint8_t source[WEIR_SOURCE_ID_BYTES] = {9};
	struct scene *scene = open_scene();
	uint32_t waited = 0;
	shard_checks_begin(scene->shard, source);
	for (uint32_t key = 0; key < KEYS && waited < 2 * SHARD_CHECKS_WANTED_MAX; key++) {
		struct shard_check check = ask(scene, key);
		if (check.state == SHARD_CHECK_JUDGED)
			continue;
		assert_int_equal(check.state, SHARD_CHECK_MISSING);
		load(scene, segment_of(scene, key));
		check = ask(scene, key);
		assert_int_equal(check.state, SHARD_CHECK_JUDGED);
		assert_true(check.blocked);
		waited++;
	}
	assert_int_equal(waited, 2 * SHARD_CHECKS_WANTED_MAX);
	close_scene(scene);
}

/* A frame waits for two segments. Between them the file is given up, within the load of a third. */
static void a_frame_has_what_it_waits_for_whatever_the_file_loses_meanwhile(void **state)
{
	(void)state;
	struct scene *scene = open_scene();
	uint32_t first = segment_of(scene, 0), second = segment_of(scene, 1), third = segment_of(scene, 2);
	uint32_t segments[SHARD_SEGMENTS];
	struct shard_result result;
	assert_true(first != second && second != third && first != third);
	struct weir_frame frame = frame_of(scene, 2);
	shard_frame_begin(scene->shard, &frame, 1);
	assert_int_equal(shard_missing(scene->shard, segments), 2);
	load(scene, first);
	load(scene, third); /* early, so that it is in the file by then, not in the page that is filled */
	load_others(scene, first, second);
	truncate_file(scene);
	load(scene, third);
	assert_int_equal(failures(scene), 1);
	assert_int_equal(shard_missing(scene->shard, segments), 1);
	assert_int_equal(segments[0], second);
	load(scene, second);
	assert_int_equal(shard_missing(scene->shard, segments), 0);
	shard_frame_judge(scene->shard, &result);
	assert_int_equal(result.verdicts[0] & (WEIR_VERDICT_BLOCK | WEIR_VERDICT_BLOCK << 4),
	                 WEIR_VERDICT_BLOCK | WEIR_VERDICT_BLOCK << 4);

	/* The next one asks the store for what the file had. */
	scene->keys[0] = scene->keys[2];
	frame = frame_of(scene, 1);
	shard_frame_begin(scene->shard, &frame, 2);
	assert_int_equal(shard_missing(scene->shard, segments), 1);
	assert_int_equal(segments[0], third);
	load(scene, third);
	assert_int_equal(shard_missing(scene->shard, segments), 0);
	shard_frame_judge(scene->shard, &result);
	assert_true(result.verdicts[0] & WEIR_VERDICT_BLOCK);
	close_scene(scene);
}

/* Judges an event of each of some keys, all in a zone, and evicts what it touched. */
static void judge_and_evict(struct scene *scene, struct shard *shard, uint32_t zone_id, uint32_t first, int64_t now_ms)
{
	struct shard_result result;
	struct weir_frame_zone own_zone = {.id = zone_id};
	struct weir_frame_zone_set own_set = {.zones = &own_zone, .count = 1};
	struct weir_frame frame = frame_of(scene, KEYS / 3);
	for (uint32_t i = 0; i < frame.event_count; i++)
		scene->events[i].time_ms = now_ms;
	frame.sending_time_ms = now_ms;
	frame.keys = &scene->keys[first];
	frame.zone_sets = &own_set;
	shard_frame_begin(shard, &frame, scene->position);
	shard_frame_judge(shard, &result);
	shard_sweep(shard, 2 * KEYS);
	shard_sweep(shard, 2 * KEYS); /* what was used is left alone once */
}

static void what_is_forgotten_leaves_the_file(void **state)
{
	(void)state;
	struct scene *scene = open_scene();
	struct weir_zone other = zone;
	struct weir_policy later = {.version = 2, .zones = &other, .zone_count = 1};
	const struct weir_policy *policies[] = {&policy, &later};
	struct shard_options options = {
		.seed = 1, .ceiling_bytes = 1, .swap_bytes = 1 << 20, .swap_directory = scene->directory, .swap_changes = true};
	struct shard_stats stats;
	other.id = 2;
	other.name = "other";
	struct compiled_policy *compiled = compiled_policy_new(policies, 2);
	struct shard *shard = shard_new(&options, scene->compiled);
	judge_and_evict(scene, shard, 1, 0, start_ms);
	shard_stats(shard, &stats);
	assert_int_equal(stats.spilled, KEYS / 3);
	assert_int_equal(stats.forgotten, 0);

	judge_and_evict(scene, shard, 1, KEYS / 3, start_ms + 2 * zone.limits[0].window_ms);
	shard_stats(shard, &stats);
	assert_int_equal(stats.spilled, KEYS / 3); /* the first ones' window is over */
	assert_int_equal(stats.forgotten, KEYS / 3);

	shard_set_policy(shard, compiled);
	judge_and_evict(scene, shard, 2, 2 * KEYS / 3, start_ms + 2 * zone.limits[0].window_ms);
	shard_stats(shard, &stats);
	assert_int_equal(stats.spilled, KEYS / 3); /* the zone of those before was removed */
	assert_int_equal(stats.forgotten, 2 * KEYS / 3);
	shard_free(shard);
	compiled_policy_free(compiled);
	close_scene(scene);
}

/* What is asked of a key. */
enum asked { PEEKS, TRIES, SETTLES, COUNTS };

static enum shard_check_state ask_for(struct scene *scene, struct shard *shard, enum asked asked, uint32_t key)
{
	static const uint8_t unknown[WEIR_RESERVATION_ID_BYTES] = {7};
	struct shard_check check = {.zone = compiled_policy_zone_at(scene->compiled, 0),
	                            .key = scene->keys[key],
	                            .cost = 1,
	                            .peek = asked == PEEKS,
	                            .tries = asked == TRIES,
	                            .settles = asked == SETTLES ? unknown : NULL};
	shard_check_judge(shard, &check, 1, (struct check_times){start_ms, start_ms});
	return check.state;
}

static uint64_t buckets_of(const struct shard *shard)
{
	struct shard_stats stats;
	shard_stats(shard, &stats);
	return stats.buckets;
}

/* Nothing is evicted while a frame waits: what is only looked at waits, too, before it fills memory. */
static void what_is_only_looked_at_does_not_fill_memory_while_a_frame_waits(void **state)
{
	(void)state;
	const uint8_t source[WEIR_SOURCE_ID_BYTES] = {9};
	struct scene *scene = open_scene();
	struct shard_options options = {.seed = 1,
	                                .lateness_ms = -1,
	                                .ceiling_bytes = 1 << 16,
	                                .swap_bytes = 1 << 20,
	                                .swap_directory = scene->directory,
	                                .swap_changes = true};
	for (enum asked asked = PEEKS; asked <= COUNTS; asked++) {
		struct shard_result result;
		struct shard *shard = shard_new(&options, scene->compiled);
		shard_checks_begin(shard, source);
		judge_and_evict(scene, shard, 1, 0, start_ms);
		uint64_t before = buckets_of(shard);
		assert_in_range(before, 1, KEYS / 4); /* most are in the file */
		struct weir_frame frame = frame_of(scene, 0);
		uint32_t full = 0, last = 0;
		shard_frame_begin(shard, &frame, 1);
		for (uint32_t i = 0; i < KEYS / 3; i++) {
			bool is_full = ask_for(scene, shard, asked, i) == SHARD_CHECK_FULL;
			full += is_full;
			last = is_full ? i : last;
		}
		shard_frame_judge(shard, &result);
		if (asked == COUNTS) { /* those are bounded by how many may be pending */
			assert_int_equal(full, 0);
		} else {
			assert_in_range(full, KEYS / 30, KEYS / 3);
			shard_sweep(shard, 2 * KEYS);
			assert_int_not_equal(ask_for(scene, shard, asked, last), SHARD_CHECK_FULL);
		}
		shard_free(shard);
	}
	close_scene(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_check_waits_again_for_what_the_file_lost),
		cmocka_unit_test(checks_wait_for_more_segments_one_after_another_than_at_once),
		cmocka_unit_test(a_frame_has_what_it_waits_for_whatever_the_file_loses_meanwhile),
		cmocka_unit_test(what_is_forgotten_leaves_the_file),
		cmocka_unit_test(what_is_only_looked_at_does_not_fill_memory_while_a_frame_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
