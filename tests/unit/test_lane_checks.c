/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answering checks for a partition: who may, what is answered and with what left, how it comes back through the log, and
 * what becomes of it under another owner, another policy, in a restart, and where a bucket is in the store.
 */
#include "common/base/alloc.h"
#include "common/frame/frame.h"
#include "limiter/lane/lane_checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ZONE(id, name, mode, limit) \
	"{\"id\":" #id ",\"name\":\"" name "\",\"key\":[\"ip\"],\"mode\":\"" mode "\",\"limits\":[" limit "]}"
#define SLIDING(rate) "{\"algorithm\":\"sliding_window\",\"rate\":" #rate ",\"window\":\"1m\"}"
#define GCRA "{\"algorithm\":\"gcra\",\"burst\":15,\"rate\":30,\"window\":\"1m\"}"
#define POLICY(rate)                                                                                              \
	"{\"zones\":[" ZONE(1, "site", "enforce", SLIDING(rate)) "," ZONE(2, "trial", "shadow", SLIDING(1)) "," ZONE( \
		3, "cell", "enforce", GCRA) "]}"

#define START_MS INT64_C(1732173600000)

enum { LOG_MOST = 64, EPOCH = 7 };

struct scene {
	struct policy_registry *registry;
	struct lane *lane;
	struct weir_frame_writer *writer;
	struct lane_result result;
	struct weir_error error;
	struct weir_span log[LOG_MOST]; /* owned */
	uint32_t appended, taken;
	int64_t now_ms, steady_ms;
	struct check_answer answer;
};

static const struct shard_options options = {.partition = 3, .seed = 7, .lateness_ms = 600000};
static const uint8_t source[WEIR_SOURCE_ID_BYTES] = "who answers";

static int set_up(void **state)
{
	struct scene *scene = weir_alloc(1, sizeof *scene);
	scene->registry = policy_registry_new();
	assert_int_equal(policy_registry_add(scene->registry, 1, weir_span_of(POLICY(3)), &scene->error), WEIR_OK);
	scene->lane = lane_new(&options, scene->registry, 1);
	scene->writer = weir_frame_writer_new();
	scene->now_ms = START_MS;
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	lane_free(scene->lane);
	policy_registry_free(scene->registry);
	weir_frame_writer_free(scene->writer);
	for (uint32_t i = 0; i < scene->appended; i++)
		free((char *)scene->log[i].at);
	free(scene);
	return 0;
}

static void append(struct scene *scene, struct weir_span message)
{
	assert_true(scene->appended < LOG_MOST);
	scene->log[scene->appended++] =
		(struct weir_span){.at = weir_copy(message.at, message.length), .length = message.length};
}

/* The lane takes all that is in the log. */
static void take(struct scene *scene)
{
	for (; scene->taken < scene->appended; scene->taken++)
		assert_int_equal(
			lane_offer(scene->lane, scene->log[scene->taken], scene->taken, 0, &scene->result, &scene->error), WEIR_OK);
}

static void open_checks(struct scene *scene)
{
	append(scene, lane_checks_open(scene->lane, source, EPOCH, scene->now_ms));
	take(scene);
	assert_int_equal(lane_checks_state(scene->lane), LANE_CHECKS_READY);
}

static struct check_now now_of(const struct scene *scene)
{
	return (struct check_now){.wall_ms = scene->now_ms, .steady_ms = scene->steady_ms};
}

static enum check_outcome ask(struct scene *scene, const char *zone, const char *key, int64_t cost, bool peek)
{
	struct check_ask one = {
		.zone = weir_span_of(zone), .key = weir_span_of(key), .cost = cost, .peek = peek, .ticket = 42};
	lane_check(scene->lane, &one, NULL, 1, now_of(scene), &scene->answer);
	assert_int_equal(scene->answer.ticket, 42);
	return scene->answer.outcome;
}

static void send(struct scene *scene)
{
	append(scene, lane_checks_frame(scene->lane, scene->now_ms));
}

static void expect_quota(const struct scene *scene, int64_t limit, int64_t remaining, int64_t retry, int64_t reset)
{
	assert_int_equal(scene->answer.limit, limit);
	assert_int_equal(scene->answer.remaining, remaining);
	assert_int_equal(scene->answer.retry_after_ms, retry);
	assert_int_equal(scene->answer.reset_after_ms, reset);
}

static void expect_unavailable(struct scene *scene, const char *why)
{
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_UNAVAILABLE);
	assert_string_equal(check_why_word(scene->answer.why), why);
	assert_int_equal(lane_checks_gathered(scene->lane), 0);
}

/* An event from a log, of the same key. */
static void append_event(struct scene *scene, const char *key, uint64_t position)
{
	static const uint8_t other[WEIR_SOURCE_ID_BYTES] = "a log";
	const struct weir_frame_zone zone = {.id = 1};
	weir_frame_begin(scene->writer, other, 1, scene->now_ms, position);
	assert_int_equal(weir_frame_add(scene->writer, weir_span_of(key), 1, scene->now_ms, position, 1, &zone, 1),
	                 WEIR_OK);
	append(scene, weir_frame_finish(scene->writer, scene->now_ms));
}

/* ---- cases ---- */

static void nobody_is_answered_before_the_marker_is_back(void **state)
{
	struct scene *scene = *state;
	assert_int_equal(lane_checks_state(scene->lane), LANE_CHECKS_OFF);
	expect_unavailable(scene, "not the owner");
	append_event(scene, "a", 1); /* was in the log before */
	append(scene, lane_checks_open(scene->lane, source, EPOCH, scene->now_ms));
	assert_int_equal(lane_checks_state(scene->lane), LANE_CHECKS_OPENING);
	expect_unavailable(scene, "loading");
	take(scene);
	assert_int_equal(lane_checks_state(scene->lane), LANE_CHECKS_READY);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	assert_int_equal(scene->answer.remaining, 1); /* the event counts */
}

static void as_many_pass_as_the_limit_says_before_any_is_back(void **state)
{
	struct scene *scene = *state;
	open_checks(scene);
	for (int64_t i = 2; i >= 0; i--) {
		assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
		expect_quota(scene, 3, i, -1, 60000);
	}
	scene->now_ms += 1000;
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_BLOCKED);
	expect_quota(scene, 3, 0, 59000, 59000);
	assert_int_equal(ask(scene, "site", "b", 1, false), CHECK_PASSED);
	assert_int_equal(lane_checks_pending(scene->lane), 5);
	assert_int_equal(lane_checks_gathered(scene->lane), 5);
	send(scene);
	take(scene);
	assert_int_equal(lane_checks_pending(scene->lane), 0);
	assert_int_equal(scene->result.judged.events_taken, 5);
	assert_int_equal(weir_verdict_of(scene->result.judged.verdicts, 2), 0);
	assert_int_equal(weir_verdict_of(scene->result.judged.verdicts, 3), WEIR_VERDICT_BLOCK | WEIR_VERDICT_DECIDED);
	assert_int_equal(scene->result.judged.decision_count, 1);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_BLOCKED);
	scene->now_ms = START_MS + 60000;
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
}

static void a_peek_counts_nothing(void **state)
{
	struct scene *scene = *state;
	open_checks(scene);
	assert_int_equal(ask(scene, "site", "a", 3, true), CHECK_PASSED);
	expect_quota(scene, 3, 3, -1, 0);
	assert_int_equal(ask(scene, "site", "a", 4, true), CHECK_BLOCKED);
	expect_quota(scene, 3, 3, -1, 0); /* never */
	assert_int_equal(ask(scene, "site", "a", 2, false), CHECK_PASSED);
	assert_int_equal(ask(scene, "site", "a", 2, true), CHECK_BLOCKED);
	expect_quota(scene, 3, 1, 60000, 60000);
	assert_int_equal(ask(scene, "site", "a", 0, false), CHECK_PASSED);
	expect_quota(scene, 3, 1, -1, 60000);
	assert_int_equal(lane_checks_gathered(scene->lane), 1);
}

/* What redis-cell says of the same calls, in seconds. */
static void gcra_leaves_what_redis_cell_says(void **state)
{
	struct scene *scene = *state;
	open_checks(scene);
	assert_int_equal(ask(scene, "cell", "a", 1, false), CHECK_PASSED);
	expect_quota(scene, 16, 15, -1, 2000);
	assert_int_equal(ask(scene, "cell", "a", 0, false), CHECK_PASSED);
	expect_quota(scene, 16, 15, -1, 2000);
	assert_int_equal(ask(scene, "cell", "a", 100, false), CHECK_BLOCKED);
	expect_quota(scene, 16, 15, -1, 2000);
	assert_int_equal(ask(scene, "cell", "a", 15, false), CHECK_PASSED);
	expect_quota(scene, 16, 0, -1, 32000);
	assert_int_equal(ask(scene, "cell", "a", 1, false), CHECK_BLOCKED);
	expect_quota(scene, 16, 0, 2000, 32000);
}

static void zones_are_asked_by_their_names(void **state)
{
	struct scene *scene = *state;
	open_checks(scene);
	assert_int_equal(ask(scene, "sit", "a", 1, false), CHECK_NO_ZONE);
	assert_int_equal(ask(scene, "sites", "a", 1, false), CHECK_NO_ZONE);
	assert_int_equal(ask(scene, "", "a", 1, false), CHECK_NO_ZONE);
	assert_int_equal(lane_checks_gathered(scene->lane), 0);
}

static void a_zone_in_shadow_mode_refuses_nobody(void **state)
{
	struct scene *scene = *state;
	open_checks(scene);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(scene, "trial", "a", 1, false), CHECK_PASSED);
	expect_quota(scene, 1, 0, -1, 60000);
	send(scene);
	take(scene);
	assert_int_equal(weir_verdict_of(scene->result.judged.verdicts, 0), 0);
	assert_int_equal(weir_verdict_of(scene->result.judged.verdicts, 1), WEIR_VERDICT_BLOCK | WEIR_VERDICT_DECIDED);
	assert_int_equal(weir_verdict_of(scene->result.judged.verdicts, 2), WEIR_VERDICT_BLOCK);
}

static void another_owner_ends_it_by_its_marker(void **state)
{
	struct scene *scene = *state;
	static const uint8_t other[WEIR_SOURCE_ID_BYTES] = "the next owner";
	open_checks(scene);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	send(scene);
	weir_frame_begin(scene->writer, other, 1, scene->now_ms, 1); /* somebody's who had it before */
	append(scene, weir_frame_finish_checks(scene->writer, scene->now_ms, EPOCH - 1, NULL, NULL, 0));
	take(scene);
	assert_int_equal(lane_checks_state(scene->lane), LANE_CHECKS_READY);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	struct weir_span late = lane_checks_frame(scene->lane, scene->now_ms);
	char *kept = weir_copy(late.at, late.length);
	weir_frame_begin(scene->writer, other, 1, scene->now_ms, 1);
	append(scene, weir_frame_finish_checks(scene->writer, scene->now_ms, EPOCH + 1, NULL, NULL, 0));
	take(scene);
	assert_int_equal(lane_checks_state(scene->lane), LANE_CHECKS_OVER);
	expect_unavailable(scene, "moving");
	assert_int_equal(lane_checks_pending(scene->lane), 0);
	/* What was answered and comes late is in the log all the same. */
	append(scene, (struct weir_span){.at = kept, .length = late.length});
	take(scene);
	assert_int_equal(scene->result.judged.events_taken, 1);
	free(kept);
	/* It may be ours again. */
	lane_checks_close(scene->lane);
	append(scene, lane_checks_open(scene->lane, (const uint8_t *)"who answers now!", EPOCH + 2, scene->now_ms));
	take(scene);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	assert_int_equal(scene->answer.remaining, 0);
}

static void events_of_a_log_count_in_what_is_under_way(void **state)
{
	struct scene *scene = *state;
	open_checks(scene);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	append_event(scene, "a", 1);
	take(scene);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	assert_int_equal(scene->answer.remaining, 0);
	/* They meet in another order in the log: at most what is under way is over. */
	append_event(scene, "a", 2);
	append_event(scene, "a", 3);
	send(scene);
	take(scene);
	assert_int_equal(weir_verdict_of(scene->result.judged.verdicts, 0), 0);
	assert_int_equal(weir_verdict_of(scene->result.judged.verdicts, 1), 0);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_BLOCKED);
}

static void a_policy_holds_for_the_next_check(void **state)
{
	struct scene *scene = *state;
	size_t length;
	open_checks(scene);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	assert_int_equal(ask(scene, "trial", "a", 1, false), CHECK_PASSED);
	assert_int_equal(policy_registry_add(scene->registry, 2, weir_span_of(POLICY(5)), &scene->error), WEIR_OK);
	char *message = weir_frame_control(WEIR_FRAME_POLICY, scene->now_ms, 2, weir_span_of(POLICY(5)), &length);
	append(scene, (struct weir_span){.at = message, .length = (uint32_t)length});
	free(message);
	take(scene);
	assert_true(lane_checks_due(scene->lane)); /* a frame names one policy */
	send(scene);
	for (int i = 0; i < 2; i++) /* a changed limit starts with what is under way */
		assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_BLOCKED);
	assert_int_equal(ask(scene, "trial", "a", 1, false), CHECK_PASSED);
	send(scene);
	take(scene);
	assert_int_equal(lane_checks_pending(scene->lane), 0);
	assert_int_equal(scene->result.judged.events_taken, 4);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_BLOCKED);
}

static void a_lift_leaves_what_is_under_way(void **state)
{
	struct scene *scene = *state;
	static const char lift[] = "{\"command\":\"lift\",\"zone\":\"site\",\"key\":[\"a\"],\"by\":\"ann\"}";
	size_t length;
	open_checks(scene);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	send(scene);
	take(scene);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_BLOCKED);
	char *message = weir_frame_control(WEIR_FRAME_COMMAND, scene->now_ms, 0, weir_span_of(lift), &length);
	append(scene, (struct weir_span){.at = message, .length = (uint32_t)length});
	free(message);
	take(scene);
	assert_non_null(scene->result.command);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	assert_int_equal(scene->answer.remaining, 1);
}

static void times_do_not_go_back(void **state)
{
	struct scene *scene = *state;
	struct weir_frame frame;
	open_checks(scene);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	scene->now_ms -= 5000;
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	struct weir_frame_reader *reader = weir_frame_reader_new();
	assert_int_equal(weir_frame_decode(reader, lane_checks_frame(scene->lane, scene->now_ms), &frame, &scene->error),
	                 WEIR_OK);
	assert_int_equal(frame.events[0].time_ms, START_MS);
	assert_int_equal(frame.events[1].time_ms, START_MS);
	assert_int_equal(frame.events[1].position, 2);
	assert_false(frame.is_common);
	assert_int_equal(frame.epoch, EPOCH);
	weir_frame_reader_free(reader);
}

static void checks_under_way_are_bounded(void **state)
{
	struct scene *scene = *state;
	struct check_ask asks[CHECK_GROUP_MAX];
	struct check_answer answers[CHECK_GROUP_MAX];
	char keys[CHECK_GROUP_MAX][16];
	uint32_t passed = 0, full = 0;
	open_checks(scene);
	for (uint32_t round = 0; round < 1030; round++) {
		for (uint32_t i = 0; i < CHECK_GROUP_MAX; i++) {
			snprintf(keys[i], sizeof keys[i], "%u", round * CHECK_GROUP_MAX + i);
			asks[i] = (struct check_ask){.zone = weir_span_of("site"), .key = weir_span_of(keys[i]), .cost = 1};
		}
		if (lane_checks_due(scene->lane))
			send(scene);
		lane_check(scene->lane, asks, NULL, CHECK_GROUP_MAX, now_of(scene), answers);
		for (uint32_t i = 0; i < CHECK_GROUP_MAX; i++) {
			passed += answers[i].outcome == CHECK_PASSED;
			full += answers[i].outcome == CHECK_UNAVAILABLE && answers[i].why == CHECK_WHY_FULL;
		}
	}
	assert_int_equal(passed, 65536);
	assert_int_equal(lane_checks_pending(scene->lane), passed);
	assert_int_equal(full, 1030 * CHECK_GROUP_MAX - 65536);
	assert_int_equal(ask(scene, "site", "0", 1, true), CHECK_PASSED); /* a peek is not under way */
	send(scene);
	take(scene);
	assert_int_equal(lane_checks_pending(scene->lane), 0);
	assert_int_equal(ask(scene, "site", "0", 1, false), CHECK_PASSED);
	assert_int_equal(scene->answer.remaining, 1);
}

/* Whoever looks before several count asks whether there is room for all. */
static void a_peek_may_ask_for_room(void **state)
{
	struct scene *scene = *state;
	open_checks(scene);
	for (uint32_t i = 0; i < 65536 - 8; i++) {
		if (lane_checks_due(scene->lane))
			send(scene);
		(void)ask(scene, "site", "b", 1, false);
	}
	for (uint32_t beside = 0; beside <= 9; beside++) {
		struct check_ask one = {
			.zone = weir_span_of("site"), .key = weir_span_of("a"), .cost = 1, .peek = true, .beside = beside};
		lane_check(scene->lane, &one, NULL, 1, now_of(scene), &scene->answer);
		assert_int_equal(scene->answer.outcome, beside <= 8 ? CHECK_PASSED : CHECK_UNAVAILABLE);
	}
	assert_int_equal(scene->answer.why, CHECK_WHY_FULL);
}

static void a_bucket_in_the_store_is_loaded_first(void **state)
{
	struct scene *scene = *state;
	struct shard_snapshot snapshot;
	struct weir_text extra = {0};
	struct weir_partition_state cut = {.checkpoint = 1};
	uint32_t segments[SHARD_MISSING_MOST];
	open_checks(scene);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	send(scene);
	take(scene);
	shard_snapshot(lane_shard(scene->lane), &snapshot);
	lane_state(scene->lane, &cut, &extra);
	struct lane *before = scene->lane;
	/* Another process: it knows that there are segments, and has none. */
	scene->lane = lane_new(&options, scene->registry, 1);
	assert_int_equal(lane_restore(scene->lane, &cut, &scene->error), WEIR_OK);
	assert_int_equal(snapshot.segment_count, 1);
	shard_set_stored(lane_shard(scene->lane), snapshot.segments[0]);
	append(scene, lane_checks_open(scene->lane, (const uint8_t *)"another process!", EPOCH + 1, scene->now_ms));
	take(scene);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_LATER);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_LATER);
	assert_int_equal(lane_checks_gathered(scene->lane), 0);
	assert_int_equal(lane_checks_missing(scene->lane, segments), 1);
	assert_int_equal(segments[0], snapshot.segments[0]);
	assert_int_equal(shard_load(lane_shard(scene->lane), segments[0], &snapshot.deltas[0], 1, &scene->error), WEIR_OK);
	assert_int_equal(lane_checks_missing(scene->lane, segments), 0);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
	assert_int_equal(scene->answer.remaining, 0);
	lane_checks_give_up(scene->lane);
	shard_snapshot_done(lane_shard(before), &snapshot, true);
	lane_free(before);
	weir_text_deinit(&extra);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* A log whose clock is ahead by more than a window must not make every check late, and so pass. */
static void a_log_that_is_ahead_lets_no_more_pass(void **state)
{
	struct scene *scene = *state;
	uint32_t passed = 0;
	open_checks(scene);
	scene->now_ms += 61000;
	append_event(scene, "a", 1);
	take(scene);
	scene->now_ms -= 61000;
	for (int i = 0; i < 10; i++)
		passed += ask(scene, "site", "a", 1, false) == CHECK_PASSED;
	assert_int_equal(passed, 2);
	assert_int_equal(ask(scene, "site", "b", 1, false), CHECK_PASSED); /* another key knows nothing of it */
	assert_int_equal(lane_checks_ahead_ms(scene->lane, scene->now_ms), 0);
	send(scene);
	take(scene);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_BLOCKED);
	assert_int_equal(ask(scene, "site", "a", 1, true), CHECK_BLOCKED);
	scene->now_ms += 61000; /* now it is there itself */
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_BLOCKED);
	scene->now_ms += 60001;
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_PASSED);
}

static void spend(struct scene *scene, const char *key)
{
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(scene, "site", key, 1, false), CHECK_PASSED);
	assert_int_equal(ask(scene, "site", key, 1, false), CHECK_BLOCKED);
}

/* Half the speed: a window of a minute is over after two. */
static void a_clock_that_was_set_back_stops_no_window(void **state)
{
	struct scene *scene = *state;
	open_checks(scene);
	spend(scene, "a");
	send(scene);
	take(scene);
	scene->now_ms -= 3600000;
	assert_int_equal(lane_checks_ahead_ms(scene->lane, scene->now_ms), 3600000);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_BLOCKED);
	scene->steady_ms += 100000;
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_BLOCKED);
	spend(scene, "b"); /* it was not asked before: its time is the clock's */
	scene->steady_ms += 20002;
	spend(scene, "a");
	scene->now_ms += 60001;
	scene->steady_ms += 60001;
	spend(scene, "b");
	scene->now_ms += 3600000 + 540000; /* set right: from here on it is the clock */
	spend(scene, "a");
	assert_int_equal(lane_checks_ahead_ms(scene->lane, scene->now_ms), 0);
}

/* Of what was in the log before, nothing is in the future for whoever answers next. */
static void who_takes_a_log_with_a_clock_that_is_behind_passes_no_more(void **state)
{
	struct scene *scene = *state;
	for (uint64_t position = 1; position <= 3; position++)
		append_event(scene, "a", position);
	take(scene);
	scene->now_ms -= 3600000;
	open_checks(scene);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_BLOCKED);
	assert_int_equal(ask(scene, "site", "a", 1, false), CHECK_BLOCKED);
	scene->steady_ms += 120002;
	spend(scene, "a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nobody_is_answered_before_the_marker_is_back),
		CASE(as_many_pass_as_the_limit_says_before_any_is_back),
		CASE(a_peek_counts_nothing),
		CASE(gcra_leaves_what_redis_cell_says),
		CASE(zones_are_asked_by_their_names),
		CASE(a_zone_in_shadow_mode_refuses_nobody),
		CASE(another_owner_ends_it_by_its_marker),
		CASE(events_of_a_log_count_in_what_is_under_way),
		CASE(a_policy_holds_for_the_next_check),
		CASE(a_lift_leaves_what_is_under_way),
		CASE(times_do_not_go_back),
		CASE(checks_under_way_are_bounded),
		CASE(a_peek_may_ask_for_room),
		CASE(a_bucket_in_the_store_is_loaded_first),
		cmocka_unit_test_setup_teardown(a_log_that_is_ahead_lets_no_more_pass, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_clock_that_was_set_back_stops_no_window, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_takes_a_log_with_a_clock_that_is_behind_passes_no_more, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
