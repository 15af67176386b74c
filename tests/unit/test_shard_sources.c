/* SPDX-License-Identifier: Apache-2.0 */
/* Positions taken from sources: what is sent again is dropped, after an outage of any length too. */
#include "common/base/alloc.h"
#include "limiter/shard/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DAY_MS = 86400000, MANY_SOURCES = 3000 };

static const int64_t start_ms = INT64_C(1700000000000);

static struct weir_zone zone = {.id = 1, .name = "site", .description = "", .limit_count = 1};
static struct weir_policy policy = {.version = 1, .zones = &zone, .zone_count = 1};

static struct compiled_policy *make_policy(void)
{
	const struct weir_policy *policies[] = {&policy};
	zone.limits[0] =
		(struct weir_limit){.algorithm = weir_algorithm_named("fixed_window"), .rate = 100, .window_ms = 3600000};
	return compiled_policy_new(policies, 1);
}

/* A frame of one event. */
static struct shard_result judge_of(struct shard *shard, uint32_t source, bool is_common, uint64_t position,
                                    int64_t sent_ms)
{
	struct weir_frame_zone zones[] = {{.id = 1}};
	struct weir_frame_zone_set sets[] = {{.zones = zones, .count = 1}};
	struct weir_frame_event events[] = {{.time_ms = sent_ms, .cost = 1, .position = position}};
	struct weir_span keys[] = {weir_span_of("ann")};
	struct weir_frame frame = {.kind = WEIR_FRAME_EVENTS,
	                           .sending_time_ms = sent_ms,
	                           .is_common = is_common,
	                           .zone_sets = sets,
	                           .zone_set_count = 1,
	                           .keys = keys,
	                           .key_count = 1,
	                           .events = events,
	                           .event_count = 1,
	                           .pair_count = 1};
	struct shard_result result;
	uint32_t segments[SHARD_SEGMENTS];
	memcpy(frame.source, &source, sizeof source);
	shard_frame_begin(shard, &frame, 0);
	assert_int_equal(shard_missing(shard, segments), 0);
	shard_frame_judge(shard, &result);
	assert_int_equal(result.events_taken + result.events_repeated, 1);
	return result;
}

static struct shard_result judge(struct shard *shard, uint32_t source, uint64_t position, int64_t sent_ms)
{
	return judge_of(shard, source, false, position, sent_ms);
}

/* @return whether it was taken */
static bool send(struct shard *shard, uint32_t source, uint64_t position, int64_t sent_ms)
{
	return judge(shard, source, position, sent_ms).events_taken == 1;
}

static void what_comes_again_after_an_outage_is_dropped(void **state)
{
	(void)state;
	struct compiled_policy *compiled = make_policy();
	struct shard_options options = {.seed = 1, .lateness_ms = 600000};
	struct shard *shard = shard_new(&options, compiled);
	assert_true(send(shard, 1, 10, start_ms));
	assert_true(send(shard, 2, 20, start_ms));
	/* The first frame after it moves the clock on by all of it, and a new source comes too. */
	int64_t later_ms = start_ms + INT64_C(30) * DAY_MS;
	assert_false(send(shard, 1, 10, later_ms));
	assert_true(send(shard, 3, 5, later_ms));
	assert_false(send(shard, 2, 20, later_ms));
	assert_true(send(shard, 2, 21, later_ms));
	shard_free(shard);
	compiled_policy_free(compiled);
}

static void sources_are_bounded_and_saved(void **state)
{
	(void)state;
	struct compiled_policy *compiled = make_policy();
	struct shard_options options = {.seed = 1, .lateness_ms = 600000};
	struct shard *shard = shard_new(&options, compiled), *restarted = shard_new(&options, compiled);
	struct weir_error error;
	size_t length;
	/* One an hour: those of the last week stay; older ones go when there are many. */
	for (uint32_t i = 0; i < MANY_SOURCES; i++)
		assert_true(send(shard, i, 7, start_ms + (int64_t)i * DAY_MS / 24));
	char *extra = shard_export_extra(shard, &length);
	assert_in_range(length, 168 * 32, 1100 * 32);
	struct weir_span bytes = {.at = extra, .length = (uint32_t)length};
	assert_int_equal(shard_import_extra(restarted, bytes, &error), WEIR_OK);
	int64_t now_ms = start_ms + (int64_t)MANY_SOURCES * DAY_MS / 24;
	for (uint32_t i = MANY_SOURCES - 160; i < MANY_SOURCES; i++)
		assert_false(send(restarted, i, 7, now_ms));
	/* Sources out of order are no state that was saved. */
	memset(extra + length - 1 - 32, 0, 16); /* behind them is that there are no overrides */
	assert_int_equal(shard_import_extra(restarted, bytes, &error), WEIR_INVALID);
	free(extra);
	shard_free(shard);
	shard_free(restarted);
	compiled_policy_free(compiled);
}

/*
 * Frames that were told to be of two collectors, of this many at two positions in turn, so long after one another. One of
 * them is far ahead.
 */
static int shared(struct shard *shard, int frames, int64_t apart_ms, int64_t from_ms, uint64_t position)
{
	int told = 0;
	for (int i = 0; i < frames; i++)
		told += judge(shard, 1, (i % 2 == 0 ? 100000 : 10) + position + (uint64_t)i, from_ms + i * apart_ms).is_shared;
	return told;
}

static void two_collectors_of_one_identity_are_told_from_restarts(void **state)
{
	(void)state;
	struct compiled_policy *compiled = make_policy();
	struct shard_options options = {.seed = 1, .lateness_ms = 600000};
	struct shard *shard = shard_new(&options, compiled);
	/* One collector, that starts five times in a minute, and sends again each time. */
	for (int life = 0; life < 6; life++)
		for (uint64_t position = 1 + (uint64_t)life; position < 8 + (uint64_t)life; position++)
			assert_false(judge(shard, 2, position, start_ms + life * 10000).is_shared);
	/* A partition that moves here with what is stored knows nothing of that. */
	size_t length;
	struct weir_error error;
	char *extra = shard_export_extra(shard, &length);
	assert_int_equal(shard_import_extra(shard, (struct weir_span){.at = extra, .length = (uint32_t)length}, &error),
	                 WEIR_OK);
	free(extra);
	for (uint64_t position = 20; position < 40; position++)
		assert_false(judge(shard, 2, position, start_ms + 50000).is_shared);
	/* Two in turn: each second frame leaves out what was before it, and from the sixth on within a minute it is told. */
	assert_int_equal(shared(shard, 12, 100, start_ms + 60000, 0), 0);
	assert_int_equal(shared(shard, 20, 100, start_ms + 61200, 12), 10);
	assert_int_equal(shared(shard, 40, 15000, start_ms + 600000, 40), 0);
	shard_free(shard);
	compiled_policy_free(compiled);
}

/* While the brokers refuse some of what a collector sends, and take the rest, again with each new producer. */
static void a_producer_that_is_made_anew_is_no_second_collector(void **state)
{
	(void)state;
	struct compiled_policy *compiled = make_policy();
	struct shard_options options = {.seed = 1, .lateness_ms = 600000};
	struct shard *shard = shard_new(&options, compiled);
	for (uint64_t life = 0; life < 60; life++)
		for (uint64_t position = 1 + life / 4; position < 8 + life; position++)
			assert_false(judge(shard, 2, position, start_ms + (int64_t)life * 2600).is_shared);
	/* Two that read the same files at the same pace: each frame comes twice. */
	int told = 0;
	for (uint64_t position = 1; position <= 30; position++)
		for (int collector = 0; collector < 2; collector++)
			told += judge(shard, 1, position, start_ms + (int64_t)position * 200).is_shared;
	assert_int_equal(told, 30 - 24);
	shard_free(shard);
	compiled_policy_free(compiled);
}

/* As a stream of decisions, of Kafka, Redis, NATS or RabbitMQ, each in the place that it has come to. */
static void collectors_of_a_common_stream_are_not_two_of_one_identity(void **state)
{
	(void)state;
	struct compiled_policy *compiled = make_policy();
	struct shard_options options = {.seed = 1, .lateness_ms = 600000};
	struct shard *shard = shard_new(&options, compiled);
	int repeated = 0;
	for (uint64_t i = 0; i < 100; i++)
		for (int collector = 0; collector < 3; collector++) {
			struct shard_result result = judge_of(shard, 1, true, 1 + i, start_ms + (int64_t)i * 100);
			assert_false(result.is_shared);
			repeated += result.events_repeated == 1;
		}
	assert_int_equal(repeated, 200);
	shard_free(shard);
	compiled_policy_free(compiled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_again_after_an_outage_is_dropped),
		cmocka_unit_test(sources_are_bounded_and_saved),
		cmocka_unit_test(two_collectors_of_one_identity_are_told_from_restarts),
		cmocka_unit_test(a_producer_that_is_made_anew_is_no_second_collector),
		cmocka_unit_test(collectors_of_a_common_stream_are_not_two_of_one_identity),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
