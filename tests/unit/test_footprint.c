/* SPDX-License-Identifier: Apache-2.0 */
/* What a user is said to cost in memory against what a shard of many users takes. */
#include "limiter/bucket/footprint.h"

#include "limiter/bucket/compiled_policy.h"
#include "limiter/shard/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FRAME_USERS = 100, START_MS = 1000000 };

/* Events of every user, `count` each, one after another, in frames. */
static void feed(struct shard *shard, uint32_t users, unsigned count)
{
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	const uint8_t source[WEIR_SOURCE_ID_BYTES] = {0};
	const struct weir_frame_zone zone = {.id = 1};
	static uint64_t position;
	for (uint32_t user = 0; user < users;) {
		struct weir_frame frame;
		struct shard_result result;
		weir_frame_begin(writer, source, 1, START_MS, position);
		for (int i = 0; i < FRAME_USERS && user < users; i++, user++) {
			char key[32];
			uint32_t length = (uint32_t)snprintf(key, sizeof key, "user-%u", user);
			struct weir_span span = {.at = key, .length = length};
			for (unsigned k = 0; k < count; k++)
				assert_int_equal(WEIR_OK, weir_frame_add(writer, span, weir_hash64(key, length), START_MS + k * 100,
				                                         ++position, 1, &zone, 1));
		}
		struct weir_span message = weir_frame_finish(writer, START_MS);
		assert_int_equal(WEIR_OK, weir_frame_decode(reader, message, &frame, NULL));
		shard_frame_begin(shard, &frame, position);
		shard_frame_judge(shard, &result);
	}
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

/* What users that were seen once take, and what those that are at the limit take besides. */
static void compare(const char *limits, uint32_t users, unsigned events)
{
	char text[1024];
	snprintf(text, sizeof text, "{\"zones\":[{\"id\":1,\"name\":\"z\",\"key\":[\"ip\"],\"limits\":[%s]}]}", limits);
	struct weir_policy *policy;
	struct weir_error error;
	if (weir_policy_decode(1, text, strlen(text), &policy, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	const struct weir_policy *policies[] = {policy};
	struct compiled_policy *compiled = compiled_policy_new(policies, 1);
	struct footprint footprint = footprint_of(compiled_policy_zone_at(compiled, 0)->layout);
	struct shard_options options = {.seed = 1, .lateness_ms = -1};
	struct shard *shard = shard_new(&options, compiled);
	struct shard_stats stats;

	feed(shard, users, 1);
	shard_stats(shard, &stats);
	uint64_t once = stats.bytes;
	/* A shard of few users keeps room for more. */
	if (users >= 400000)
		assert_in_range(once / users, footprint.once * 9 / 10, footprint.once * 4 / 3);

	feed(shard, users, events - 1);
	shard_stats(shard, &stats);
	uint64_t more = (stats.bytes - once) / users, said = footprint.full - footprint.once;
	if (more < said * 8 / 10 || more > said * 13 / 10)
		fail_msg("%s: %llu bytes a user more, said to be %llu", limits, (unsigned long long)more,
		         (unsigned long long)said);
	shard_free(shard);
	compiled_policy_free(compiled);
	weir_policy_free(policy);
}

static void a_user_costs_what_is_said(void **state)
{
	(void)state;
	compare("{\"algorithm\":\"sliding_window\",\"rate\":10,\"window\":\"1m\"},"
	        "{\"algorithm\":\"fixed_window\",\"rate\":100,\"window\":\"1h\"},"
	        "{\"algorithm\":\"fixed_window\",\"rate\":1000,\"window\":\"1d\"}",
	        400000, 11);
	compare("{\"algorithm\":\"sliding_window\",\"rate\":50,\"window\":\"1h\"}", 40000, 51);
	compare("{\"algorithm\":\"gcra\",\"rate\":5,\"burst\":3,\"window\":\"1m\"}", 40000, 6);
	compare("{\"algorithm\":\"token_bucket\",\"rate\":20,\"window\":\"1h\"}", 40000, 21);
	compare("{\"algorithm\":\"queue\",\"length\":30,\"hold\":\"1d\"}", 40000, 31);
}

static void a_precision_lowers_it(void **state)
{
	(void)state;
	struct weir_zone zone = {.id = 1, .limit_count = 1};
	zone.limits[0] =
		(struct weir_limit){.algorithm = weir_algorithm_named("sliding_window"), .rate = 10000, .window_ms = 3600000};
	struct layout fine, coarse;
	layout_init(&fine, 1, 1, &zone, NULL);
	zone.limits[0].own[0] = 60000;
	layout_init(&coarse, 1, 1, &zone, NULL);
	assert_in_range(footprint_of(&fine).full, 20000, 60000);
	assert_in_range(footprint_of(&coarse).full, 100, 1000);
	assert_int_equal(footprint_of(&fine).once, footprint_of(&coarse).once);
}

/* More times than a window has milliseconds are kept as runs. */
static void a_huge_rate_costs_no_more_than_its_window(void **state)
{
	(void)state;
	struct weir_zone zone = {.id = 1, .limit_count = 1};
	zone.limits[0] = (struct weir_limit){
		.algorithm = weir_algorithm_named("sliding_window"), .rate = WEIR_RATE_MAX, .window_ms = 1000};
	struct layout layout;
	layout_init(&layout, 1, 1, &zone, NULL);
	assert_true(footprint_of(&layout).full < 40000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_costs_what_is_said),
		cmocka_unit_test(a_precision_lowers_it),
		cmocka_unit_test(a_huge_rate_costs_no_more_than_its_window),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
