/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judging a bucket the whole way, at its boundaries by name: what counts, what is decided and until when, what it is laid
 * out anew for, and what a change of policy or of scale leaves of it; and at random against the obvious bucket of the
 * shard's model.
 */
#include "bucket_scene.h"
#include "shard_model.h"

#define SLIDING(rate, window) "{\"algorithm\":\"sliding_window\",\"rate\":" #rate ",\"window\":\"" #window "\"}"
#define FIXED(rate, window) "{\"algorithm\":\"fixed_window\",\"rate\":" #rate ",\"window\":\"" #window "\"}"
#define UNIFORM(interval) "{\"algorithm\":\"uniform\",\"interval\":\"" #interval "\"}"
#define QUEUE(length, hold) "{\"algorithm\":\"queue\",\"length\":" #length ",\"hold\":\"" #hold "\"}"
#define TOKENS(rate, window, more) \
	"{\"algorithm\":\"token_bucket\",\"rate\":" #rate ",\"window\":\"" #window "\"" more "}"
#define GCRA(rate, window, burst) \
	"{\"algorithm\":\"gcra\",\"rate\":" #rate ",\"window\":\"" #window "\",\"burst\":" #burst "}"

enum { ROUNDS = 200, STEPS = 250, SCRATCH_MOST_BYTES = 4096 };

static struct bucket_scene *open_whole(const char *limits, const char *members)
{
	struct bucket_scene *scene = scene_open(limits, members);
	scene->fast_way = false;
	return scene;
}

/* ---- costs ---- */

static void a_cost_of_the_rate_passes_and_of_one_more_does_not(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(3, 100ms), "");
	EXPECT_BLOCK(scene, 1000, 4); /* cost 1 would pass: no decision */
	assert_null(scene->bucket);
	EXPECT_PASS(scene, 1000, 3);
	EXPECT_DECIDED(scene, 1000, 1, 1100);
	EXPECT_PASS(scene, 1100, 3);
	scene_close(scene);
}

static void a_cost_of_nothing_is_judged_and_not_counted(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(2, 100ms), ",\"count\":\"all\"");
	EXPECT_PASS(scene, 1000, 0);
	assert_null(scene->bucket);
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1000, 0);
	assert_false(scene->changed);
	EXPECT_SHOWN(scene, "{\"times\":[[1000,1]]}");
	scene_close(scene);
}

static void costs_of_more_than_32_are_kept_as_runs_from_a_rate_of_33_on(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(32, 100ms), "");
	EXPECT_PASS(scene, 1000, 32);
	assert_false(scene->bucket->flags & BUCKET_RUNS);
	EXPECT_DECIDED(scene, 1000, 1, 1100);
	scene_close(scene);
	scene = open_whole(SLIDING(33, 100ms), "");
	EXPECT_PASS(scene, 1000, 2);
	assert_true(scene->bucket->flags & BUCKET_RUNS);
	EXPECT_PASS(scene, 1001, 31);
	EXPECT_DECIDED(scene, 1001, 1, 1100);
	EXPECT_SHOWN(scene, "{\"times\":[[1000,2],[1001,31]]}");
	scene_close(scene);
}

static void the_largest_cost_in_the_largest_rate(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(1000000000, 366d) "," FIXED(1000000000, 366d), "");
	EXPECT_PASS(scene, WEIR_TIME_END_MS - 1, 999999999);
	EXPECT_BLOCK(scene, WEIR_TIME_END_MS - 1, WEIR_COST_MAX);
	EXPECT_PASS(scene, WEIR_TIME_END_MS - 1, 1);
	assert_int_equal(scene_event(scene, WEIR_TIME_END_MS - 1, 1), WEIR_VERDICT_BLOCK | WEIR_VERDICT_DECIDED);
	assert_true(scene->scratch.bytes[0] <= SCRATCH_MOST_BYTES && scene->scratch.bytes[1] <= SCRATCH_MOST_BYTES);
	scene_close(scene);
}

/* Lengths of single bytes have no place for one more than 255. */
static void a_full_ring_of_255_is_laid_out_anew_for_its_decision(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(255, 1s), "");
	for (int64_t n = 0; n < 255; n++)
		EXPECT_PASS(scene, 1000 + n, 1);
	EXPECT_DECIDED(scene, 1255, 1, 2000);
	assert_int_equal(scene->verdict.count, 255);
	EXPECT_PASS(scene, 2000, 1);
	EXPECT_DECIDED(scene, 2000, 1, 2001);
	scene_close(scene);
}

/* The block grows for another limit, and in the same event the oldest time makes place in the full ring. */
static void a_full_ring_of_255_is_laid_out_anew_for_times_of_their_own(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(255, 100ms), "");
	EXPECT_PASS(scene, 1000, 1);
	for (int n = 0; n < 254; n++)
		EXPECT_PASS(scene, 1150, 1);
	scene_policy(scene, FIXED(9, 1s) "," SLIDING(255, 100ms), "");
	EXPECT_PASS(scene, 1120, 1);
	assert_true(scene->bucket->flags & BUCKET_OWN_TIMES);
	EXPECT_SHOWN(scene, "{\"bucket\":1,\"count\":1,\"previous\":0} {\"times\":[[1120,1],[1150,254]]}");
	scene_close(scene);
}

/* ---- decisions ---- */

static void the_latest_reset_decides_and_the_first_limit_on_a_tie(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(1, 100ms) "," UNIFORM(100ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1000, 1, 1100);
	assert_int_equal(scene->verdict.limit, 0);
	assert_int_equal(scene->verdict.rule->window_ms, 100);
	scene_close(scene);
	scene = open_whole(SLIDING(1, 100ms) "," UNIFORM(101ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1000, 1, 1101);
	assert_int_equal(scene->verdict.limit, 1);
	assert_int_equal(scene->verdict.count, 1);
	scene_close(scene);
}

static void no_other_decision_is_made_before_the_end_of_the_last(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(1, 100ms) "," FIXED(1, 1s), "");
	EXPECT_PASS(scene, 1950, 1);
	EXPECT_DECIDED(scene, 1950, 1, 2050);
	EXPECT_BLOCK(scene, 2049, 1);
	EXPECT_PASS(scene, 2050, 1);
	EXPECT_DECIDED(scene, 2050, 1, 3000); /* at the end it is */
	assert_int_equal(bucket_blocked_until(scene->bucket), 3000);
	scene_close(scene);
}

static void a_block_lasts_to_the_reset_or_as_long_as_the_zone_says(void **state)
{
	(void)state;
	static const struct {
		const char *members;
		int64_t until;
	} cases[] = {
		{",\"block_for\":\"79ms\"", 1100}, {",\"block_for\":\"80ms\"", 1100}, {",\"block_for\":\"81ms\"", 1101}};
	for (size_t i = 0; i < 3; i++) {
		struct bucket_scene *scene = open_whole(SLIDING(1, 100ms), cases[i].members);
		EXPECT_PASS(scene, 1000, 1);
		EXPECT_DECIDED(scene, 1020, 1, cases[i].until);
		EXPECT_BLOCK(scene, cases[i].until - 1, 1);
		EXPECT_PASS(scene, cases[i].until, 1);
		scene_close(scene);
	}
}

/* Each block is longer than the one before, until the last one is forgiven: at exactly that time. */
static void blocks_get_longer_until_they_are_forgiven(void **state)
{
	(void)state;
	static const char members[] = ",\"block_for\":[\"1s\",\"2s\",\"5s\"],\"forgive_after\":\"10s\"";
	struct bucket_scene *scene = open_whole(UNIFORM(100ms), members);
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1010, 1, 2010);
	assert_int_equal(scene->verdict.nth, 1);
	assert_false(scene->bucket->flags & BUCKET_NTH);
	EXPECT_PASS(scene, 2010, 1);
	EXPECT_DECIDED(scene, 2011, 1, 4011);
	assert_int_equal(scene->verdict.nth, 2);
	assert_true(scene->bucket->flags & BUCKET_NTH);
	EXPECT_BLOCK(scene, 4010, 1);
	EXPECT_PASS(scene, 4011, 1);
	EXPECT_DECIDED(scene, 4012, 1, 9012);
	EXPECT_BLOCK(scene, 4011, 1); /* what comes out of order is no block more */
	EXPECT_PASS(scene, 19010, 1);
	EXPECT_DECIDED(scene, 19011, 1, 24011);
	assert_int_equal(scene->verdict.nth, 4);
	EXPECT_PASS(scene, 34010, 1);
	EXPECT_DECIDED(scene, 34011, 1, 35011);
	assert_int_equal(scene->verdict.nth, 1);
	EXPECT_PASS(scene, 35011, 1);
	EXPECT_DECIDED(scene, 35012, 1, 37012);
	assert_int_equal(scene->verdict.nth, 2);
	scene_close(scene);
}

/* What was sent late is blocked from then on; what is history is not, nor what no penalty is set for. */
static void a_block_for_an_overdue_event_begins_when_it_was_sent(void **state)
{
	(void)state;
	enum { AT = 10000000, HOUR = 3600000 };
	static const struct {
		const char *members;
		int64_t sent, until;
	} cases[] = {
		{",\"block_for\":\"10s\"", 0, AT + 10000},
		{",\"block_for\":\"10s\"", AT + 5000, AT + 10000},
		{",\"block_for\":\"10s\"", AT + 5001, AT + 15001},
		{",\"block_for\":\"10s\"", AT + HOUR, AT + HOUR + 10000},
		{",\"block_for\":\"10s\"", AT + HOUR + 1, AT + 10000},
		{",\"block_for\":[\"20s\",\"30s\"]", AT + 5001, AT + 25001},
		{"", AT + 5001, AT + 100},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct bucket_scene *scene = open_whole(SLIDING(1, 100ms), cases[i].members);
		EXPECT_PASS(scene, AT, 1);
		scene->sent_ms = cases[i].sent;
		EXPECT_DECIDED(scene, AT, 1, cases[i].until);
		scene_close(scene);
	}
}

static void a_penalty_begins_with_its_decision(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(FIXED(1, 100ms), ",\"block_for\":\"1s\"");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1050, 1, 2050);
	EXPECT_PASS(scene, 1049, 0);
	EXPECT_BLOCK(scene, 1050, 0);
	EXPECT_PASS(scene, 950, 1); /* of the window before */
	EXPECT_BLOCK(scene, 2049, 0);
	EXPECT_PASS(scene, 2050, 0);
	scene_close(scene);
}

static void what_an_operator_blocks_is_no_breach(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(1, 100ms), "");
	assert_int_equal(scene_barred(scene, 1000, 1, true), WEIR_VERDICT_BLOCK);
	assert_null(scene->bucket);
	EXPECT_PASS(scene, 1000, 1);
	assert_int_equal(scene_barred(scene, 1000, 1, true), WEIR_VERDICT_BLOCK); /* and over, too */
	assert_false(scene->changed);
	scene_close(scene);
	scene = open_whole(SLIDING(1, 100ms), ",\"count\":\"all\"");
	assert_int_equal(scene_barred(scene, 1000, 1, true), WEIR_VERDICT_BLOCK);
	EXPECT_SHOWN(scene, "{\"times\":[[1000,1]]}");
	scene_close(scene);
}

static void a_block_that_is_known_changes_nothing(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(1, 100ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1000, 1, 1100);
	assert_true(scene->changed);
	EXPECT_BLOCK(scene, 1000, 1);
	assert_false(scene->changed);
	scene_close(scene);
}

/* ---- order of time ---- */

static void an_event_that_is_late_for_one_limit_counts_in_the_others(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(5, 100ms) "," FIXED(5, 1s), "");
	EXPECT_PASS(scene, 5000, 1);
	assert_int_equal(scene_event(scene, 4900, 1), WEIR_VERDICT_LATE); /* exactly a window older */
	EXPECT_SHOWN(scene, "{\"times\":[[5000,1]]} {\"bucket\":5,\"count\":1,\"previous\":1}");
	EXPECT_PASS(scene, 4901, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[4901,1],[5000,1]]} {\"bucket\":5,\"count\":1,\"previous\":2}");
	assert_int_equal(scene_event(scene, 3999, 1), WEIR_VERDICT_LATE); /* for both */
	assert_false(scene->changed);
	scene_close(scene);
}

/* Then the limits' newest times differ. */
static void the_first_event_of_a_limit_may_be_older_than_the_bucket_s_newest(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(5, 100ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1000, 1);
	scene_policy(scene, SLIDING(5, 100ms) "," FIXED(5, 1s), "");
	EXPECT_PASS(scene, 999, 1);
	assert_true(scene->bucket->flags & BUCKET_OWN_TIMES);
	EXPECT_SHOWN(scene, "{\"times\":[[999,1],[1000,2]]} {\"bucket\":0,\"count\":1,\"previous\":0}");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[999,1],[1000,3]]} {\"bucket\":1,\"count\":1,\"previous\":1}");
	scene_close(scene);
	scene = open_whole(SLIDING(5, 100ms), "");
	EXPECT_PASS(scene, 1000, 1);
	scene_policy(scene, SLIDING(5, 100ms) "," FIXED(5, 1s), "");
	EXPECT_PASS(scene, 1000, 1); /* as old as the newest: one time is enough */
	assert_false(scene->bucket->flags & BUCKET_OWN_TIMES);
	scene_close(scene);
}

/* ---- queues ---- */

/* A done record that decides nothing. */
#define EXPECT_QUIET(scene, t) assert_int_equal(scene_done(scene, t), 0)

#define EXPECT_ENDS(scene, t, what, at, until, held)                  \
	do {                                                              \
		assert_int_equal(scene_done(scene, t), WEIR_VERDICT_DECIDED); \
		assert_int_equal((scene)->verdict.kind, what);                \
		assert_int_equal((scene)->verdict.at_ms, at);                 \
		assert_int_equal((scene)->verdict.until_ms, until);           \
		assert_int_equal((scene)->verdict.count, held);               \
	} while (0)

/* While an operator blocks the key: the block is published with another end. */
#define EXPECT_HELD(scene, t, held_until, until, held)                                 \
	do {                                                                               \
		assert_int_equal(scene_done_held(scene, t, held_until), WEIR_VERDICT_DECIDED); \
		assert_int_equal((scene)->verdict.kind, BUCKET_SHORTENS);                      \
		assert_int_equal((scene)->verdict.at_ms, t);                                   \
		assert_int_equal((scene)->verdict.until_ms, until);                            \
		assert_int_equal((scene)->verdict.count, held);                                \
	} while (0)

#define EXPECT_LIFTS(scene, t, at, held) EXPECT_ENDS(scene, t, BUCKET_LIFTS, at, at, held)
#define EXPECT_SHORTENS(scene, t, at, until, held) EXPECT_ENDS(scene, t, BUCKET_SHORTENS, at, until, held)

static void a_place_that_is_freed_lifts_once(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(QUEUE(2, 1s), "");
	EXPECT_QUIET(scene, 900); /* of nobody */
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_QUIET(scene, 1000); /* nothing is blocked */
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1001, 1);
	EXPECT_DECIDED(scene, 1002, 1, 2000);
	EXPECT_LIFTS(scene, 1003, 1003, 1);
	assert_string_equal(scene->verdict.rule->algorithm->name, "queue");
	EXPECT_QUIET(scene, 1003); /* nothing is blocked any more */
	EXPECT_QUIET(scene, 1003); /* and nothing waits */
	EXPECT_PASS(scene, 1004, 1);
	EXPECT_PASS(scene, 1004, 1);
	EXPECT_DECIDED(scene, 1004, 1, 2004); /* at once again, though the first block would still run */
	EXPECT_QUIET(scene, 2004);            /* they left by themselves, and so did the block */
	scene_close(scene);
}

static void a_lift_is_not_before_its_block_and_the_next_breach_decides(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(QUEUE(1, 1s), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1010, 1, 2000);
	EXPECT_LIFTS(scene, 990, 1010, 0); /* by a clock that lags */
	EXPECT_PASS(scene, 1011, 1);
	EXPECT_DECIDED(scene, 1012, 1, 2011);
	EXPECT_LIFTS(scene, 1500, 1500, 0); /* by one that is ahead */
	EXPECT_PASS(scene, 1013, 1);
	EXPECT_DECIDED(scene, 1014, 1, 2013);
	EXPECT_LIFTS(scene, 1400, 1400, 0);
	EXPECT_PASS(scene, 500, 1); /* a producer's clock is behind that block, and behind the consumer's */
	EXPECT_DECIDED(scene, 501, 1, 1500);
	EXPECT_BLOCK(scene, 400, 1); /* of that block, which is not over */
	scene_close(scene);
}

static void a_cost_is_freed_whole(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(QUEUE(5, 1s), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1000, 4);
	EXPECT_DECIDED(scene, 1001, 1, 2000);
	EXPECT_LIFTS(scene, 1002, 1002, 4);
	EXPECT_PASS(scene, 1003, 1);
	EXPECT_DECIDED(scene, 1004, 1, 2000);
	EXPECT_LIFTS(scene, 1005, 1005, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1003,1]]}");
	scene_close(scene);
}

/* What was let in before the block was known is worked on, too: its end frees no place. */
static void what_was_refused_frees_nothing_where_it_counts(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(QUEUE(2, 1s), ",\"count\":\"all\"");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1001, 1);
	EXPECT_DECIDED(scene, 1002, 1, 2001);
	EXPECT_BLOCK(scene, 1003, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1002,1],[1003,1]],\"more\":2}");
	EXPECT_QUIET(scene, 1004);
	EXPECT_QUIET(scene, 1005);
	EXPECT_LIFTS(scene, 1006, 1006, 1);
	EXPECT_PASS(scene, 1007, 1);
	scene_close(scene);
}

static void another_limit_that_is_over_keeps_the_block_for_as_long_as_it_is(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(QUEUE(2, 10s) "," SLIDING(2, 1s), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1100, 1);
	EXPECT_DECIDED(scene, 1200, 1, 11000);
	EXPECT_SHORTENS(scene, 1300, 1300, 2000, 2);
	assert_int_equal(scene->verdict.limit, 1);
	EXPECT_QUIET(scene, 1400); /* it ends as before */
	EXPECT_PASS(scene, 2000, 1);
	EXPECT_PASS(scene, 2100, 1);
	EXPECT_DECIDED(scene, 2200, 1, 12000);
	EXPECT_LIFTS(scene, 3000, 3000, 1); /* the window is free by then */
	assert_int_equal(scene->verdict.limit, 0);
	scene_close(scene);
}

static void a_moment_that_is_late_for_a_limit_leaves_the_block(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(QUEUE(3, 10s) "," SLIDING(9, 100ms), "");
	EXPECT_PASS(scene, 5000, 1);
	assert_int_equal(scene_event(scene, 1000, 1), WEIR_VERDICT_LATE); /* for the window, not for the queue */
	EXPECT_PASS(scene, 5001, 1);
	assert_int_equal(scene_event(scene, 1002, 1), WEIR_VERDICT_BLOCK | WEIR_VERDICT_LATE | WEIR_VERDICT_DECIDED);
	EXPECT_QUIET(scene, 1003);
	EXPECT_LIFTS(scene, 5002, 5002, 1);
	scene_close(scene);
}

static void a_penalty_stays(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(QUEUE(1, 10s), ",\"block_for\":\"1s\"");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1001, 1, 11000);
	EXPECT_QUIET(scene, 1002);
	EXPECT_SHOWN(scene, "-");
	EXPECT_BLOCK(scene, 1003, 1);
	scene_close(scene);
}

static void an_operator_s_block_stays_and_the_queue_s_does_not_outlast_it(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(QUEUE(2, 10s), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1001, 1, 11000);
	EXPECT_HELD(scene, 1002, 5000, 5000, 1); /* the one that was published ended as late as the queue's */
	EXPECT_SHOWN(scene, "{\"times\":[[1000,1]]}");
	assert_int_equal(scene_done_held(scene, 1003, 5000), 0); /* it ends then already */
	EXPECT_PASS(scene, 5000, 1);
	EXPECT_PASS(scene, 5000, 1);
	EXPECT_DECIDED(scene, 5001, 1, 15000);
	assert_int_equal(scene_done_held(scene, 5002, 20000), 0); /* his is the later one, and what was published */
	EXPECT_PASS(scene, 5003, 1);                              /* he took it back: the queue has room */
	EXPECT_DECIDED(scene, 5004, 1, 15000);
	EXPECT_LIFTS(scene, 4000, 5004, 1);
	scene_close(scene);
	scene = open_whole(QUEUE(2, 10s) "," SLIDING(2, 1s), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1100, 1);
	EXPECT_DECIDED(scene, 1200, 1, 11000);
	EXPECT_HELD(scene, 1300, 1500, 2000, 2); /* another limit is over for longer than he says */
	assert_int_equal(scene->verdict.limit, 1);
	scene_close(scene);
}

static void a_queue_s_entry_leaves_when_it_is_done_or_at_exactly_its_hold(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(QUEUE(2, 1s), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1100, 1);
	EXPECT_DECIDED(scene, 1200, 1, 2000);
	EXPECT_LIFTS(scene, 1300, 1300, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1100,1]]}");
	EXPECT_PASS(scene, 1300, 1);
	EXPECT_DECIDED(scene, 2099, 1, 2100);
	EXPECT_PASS(scene, 2100, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1300,1],[2100,1]]}");
	for (int i = 0; i < 3; i++)
		scene_done(scene, 2100);
	EXPECT_SHOWN(scene, "-");
	assert_false(scene->changed); /* by the third */
	scene_close(scene);
}

/* ---- policies and scales ---- */

static void limits_that_a_policy_keeps_keep_what_they_hold_wherever_they_are(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(2, 100ms) "," FIXED(9, 1s), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1001, 1);
	scene_policy(scene, FIXED(9, 1s) "," SLIDING(3, 100ms) "," SLIDING(2, 100ms), "");
	EXPECT_DECIDED(scene, 1002, 1, 1100);
	assert_int_equal(scene->verdict.limit, 2);
	EXPECT_SHOWN(scene, "{\"bucket\":1,\"count\":2,\"previous\":0} - {\"times\":[[1000,1],[1001,1]]}");
	scene_close(scene);
}

static void a_bucket_goes_through_every_policy_that_it_has_slept_through(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(2, 100ms) "," FIXED(9, 1s), "");
	EXPECT_PASS(scene, 1000, 1); /* a single one */
	scene_policy(scene, FIXED(9, 1s), "");
	scene_policy(scene, FIXED(9, 1s) "," SLIDING(2, 100ms), "");
	EXPECT_PASS(scene, 1001, 1);
	EXPECT_SHOWN(scene, "{\"bucket\":1,\"count\":2,\"previous\":0} {\"times\":[[1001,1]]}"); /* it was gone between */
	scene_close(scene);
	scene = open_whole(FIXED(9, 1s) "," SLIDING(2, 100ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1000, 1);
	scene_policy(scene, FIXED(9, 1s), "");
	scene_policy(scene, UNIFORM(1ms) "," FIXED(9, 1s), "");
	scene_policy(scene, FIXED(9, 1s) "," UNIFORM(1ms), "");
	EXPECT_PASS(scene, 1001, 1);
	EXPECT_SHOWN(scene, "{\"bucket\":1,\"count\":3,\"previous\":0} {\"times\":[[1001,1]]}");
	scene_close(scene);
}

static void a_decision_of_shadow_mode_is_left_behind_and_one_of_enforce_mode_is_not(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(1, 100ms), ",\"mode\":\"shadow\"");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1000, 1, 1100);
	scene_policy(scene, SLIDING(1, 100ms), "");
	EXPECT_DECIDED(scene, 1000, 1, 1100);
	scene_policy(scene, SLIDING(1, 100ms), ",\"mode\":\"shadow\"");
	EXPECT_BLOCK(scene, 1000, 1);
	scene_close(scene);
}

static void under_another_scale_only_limits_that_come_to_the_same_keep_what_they_hold(void **state)
{
	(void)state;
	struct bucket_scene *scene = open_whole(SLIDING(1, 100ms) "," FIXED(2, 1s), "");
	EXPECT_PASS(scene, 1000, 1);
	scene->scale = 1500; /* 1 and 3 */
	EXPECT_DECIDED(scene, 1050, 1, 1100);
	EXPECT_SHOWN(scene, "{\"times\":[[1000,1]]} -");
	assert_int_equal(bucket_scale(scene->bucket), 1500);
	EXPECT_PASS(scene, 1100, 1);
	EXPECT_PASS(scene, 1200, 1);
	EXPECT_PASS(scene, 1300, 1);
	EXPECT_DECIDED(scene, 1400, 1, 2000);
	assert_int_equal(scene->verdict.rule->rate, 3);
	scene->scale = SCALE_ONE;
	EXPECT_PASS(scene, 1400, 1);
	assert_true(scene->changed);
	EXPECT_SHOWN(scene, "{\"times\":[[1400,1]]} {\"bucket\":1,\"count\":1,\"previous\":0}");
	scene_close(scene);
}

/* ---- against the obvious bucket ---- */

static const char *const zones[] = {
	SLIDING(3, 100ms) "," FIXED(5, 300ms),
	SLIDING(40, 200ms) "," FIXED(60, 1s),
	"{\"algorithm\":\"sliding_window\",\"rate\":50,\"window\":\"200ms\",\"precision\":\"10ms\"}",
	"{\"algorithm\":\"sliding_window\",\"rate\":4,\"window\":\"100ms\",\"lateness\":\"250ms\"}," FIXED(9, 300ms),
	"{\"algorithm\":\"sliding_window\",\"rate\":50,\"window\":\"200ms\",\"lateness\":\"70ms\"}," SLIDING(8, 20ms),
	UNIFORM(30ms) "," TOKENS(4, 100ms, ""),
	TOKENS(3, 100ms, ",\"penalize\":true") "," GCRA(6, 100ms, 3),
	QUEUE(5, 200ms) "," SLIDING(8, 200ms),
	QUEUE(40, 300ms),
	GCRA(1, 10ms, 0) "," FIXED(7, 90ms) "," SLIDING(9, 120ms) "," TOKENS(20, 1s, ",\"burst\":4"),
};

static const char *model_shown(const struct model_bucket *model, struct weir_text *text)
{
	weir_text_clear(text);
	for (uint32_t i = 0; i < model->limit_count; i++) {
		weir_text_puts(text, i > 0 ? " " : "");
		size_t before = text->length;
		model_show(text, &model->limits[i]);
		if (text->length == before)
			weir_text_puts(text, "-");
	}
	weir_text_append(text, "", 1);
	return text->at;
}

struct pair {
	struct bucket_scene *scene;
	struct model_bucket *model;
	struct weir_text text;
	int64_t now;
};

static void random_step(struct pair *pair, uint64_t *seed)
{
	struct bucket_scene *scene = pair->scene;
	static const int64_t steps[] = {1, 3, 20, 60, 400, 3000};
	static const uint32_t scales[] = {SCALE_ONE, SCALE_ONE, 1500, 250, SCALE_MAX};
	int64_t ahead = scene_random(seed, steps[scene_random(seed, 6)]);
	int64_t t = scene_random(seed, 8) == 0 && pair->now > ahead ? pair->now - ahead : (pair->now += ahead);
	int64_t c = scene_random(seed, 6) == 0 ? scene_random(seed, 50) : scene_random(seed, 6) == 0 ? 2 : 1;
	bool done = scene_random(seed, 8) == 0, barred = scene_random(seed, done ? 3 : 30) == 0;
	int64_t barred_until = barred ? t + 1 + scene_random(seed, 300) : 0;
	if (scene_random(seed, 60) == 0)
		scene->scale = scales[scene_random(seed, 5)];
	if (done && scene->bucket == NULL)
		return;
	if (pair->model->thousandths != scene->scale)
		model_rescale(pair->model, scene->scale);
	struct model_verdict expected =
		model_judge(pair->model, scene->zone->zone, t, c, scene->sent_ms, done, barred_until, -1);
	if (done) {
		assert_int_equal(scene_done_held(scene, t, barred_until) != 0, expected.decided);
		if (expected.decided) {
			assert_int_equal(scene->verdict.kind, expected.kind);
			assert_int_equal(scene->verdict.limit, expected.limit);
			assert_int_equal(scene->verdict.until_ms, expected.until);
			assert_int_equal(scene->verdict.count, expected.count);
		}
	} else {
		assert_int_equal(scene_barred(scene, t, c, barred), expected.bits);
		if (expected.decided) {
			assert_int_equal(scene->verdict.limit, expected.limit);
			assert_int_equal(scene->verdict.until_ms, expected.until);
			assert_int_equal(scene->verdict.count, expected.count);
		}
	}
	if (scene->bucket != NULL && bucket_scale(scene->bucket) == scene->scale)
		EXPECT_SHOWN(scene, model_shown(pair->model, &pair->text));
}

static void random_events_come_to_what_the_obvious_bucket_says(void **state)
{
	(void)state;
	uint64_t seed = scene_seed();
	for (int round = 0; round < ROUNDS; round++) {
		const char *limits = zones[scene_random(&seed, sizeof zones / sizeof zones[0])];
		const char *members = scene_random(&seed, 3) == 0   ? ",\"block_for\":\"300ms\""
		                      : scene_random(&seed, 3) == 0 ? ",\"count\":\"all\""
		                                                    : "";
		struct pair pair = {.scene = scene_open(limits, members), .model = weir_alloc(1, sizeof *pair.model)};
		pair.scene->fast_way = scene_random(&seed, 2) == 0;
		pair.scene->spacious = scene_random(&seed, 2) == 0;
		pair.now = scene_random(&seed, 2) == 0 ? scene_random(&seed, 1000) : INT64_C(1732173600000);
		model_empty(pair.model, pair.scene->zone->zone);
		for (int step = 0; step < STEPS; step++)
			random_step(&pair, &seed);
		weir_text_deinit(&pair.text);
		model_bucket_free(pair.model);
		scene_close(pair.scene);
	}
}

/* Whoever is refused is known to gateways, whatever clocks those have who ask and who say what is done. */
static void nobody_is_refused_without_a_block_that_was_published(void **state)
{
	(void)state;
	static const char *const queues[] = {QUEUE(1, 1s), QUEUE(5, 200ms) "," SLIDING(8, 200ms), QUEUE(40, 3s)};
	static const int64_t skews[] = {0, 0, -250, 400, -5000};
	uint64_t seed = scene_seed();
	for (int round = 0; round < ROUNDS; round++) {
		struct bucket_scene *scene = scene_open(queues[round % 3], "");
		scene->fast_way = scene_random(&seed, 2) == 0;
		int64_t now = 1000000, published_until = -1;
		for (int step = 0; step < STEPS; step++) {
			int64_t t = (now += scene_random(&seed, 20)) + skews[scene_random(&seed, 5)];
			if (scene_random(&seed, 3) == 0) {
				if (scene_done(scene, t) != 0)
					published_until = scene->verdict.kind == BUCKET_LIFTS ? -1 : scene->verdict.until_ms;
				continue;
			}
			unsigned bits = scene_event(scene, t, 1);
			if (bits & WEIR_VERDICT_DECIDED)
				published_until = scene->verdict.until_ms;
			else if (bits & WEIR_VERDICT_BLOCK)
				assert_true(t < published_until);
		}
		scene_close(scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cost_of_the_rate_passes_and_of_one_more_does_not),
		cmocka_unit_test(a_cost_of_nothing_is_judged_and_not_counted),
		cmocka_unit_test(costs_of_more_than_32_are_kept_as_runs_from_a_rate_of_33_on),
		cmocka_unit_test(the_largest_cost_in_the_largest_rate),
		cmocka_unit_test(a_full_ring_of_255_is_laid_out_anew_for_its_decision),
		cmocka_unit_test(a_full_ring_of_255_is_laid_out_anew_for_times_of_their_own),
		cmocka_unit_test(the_latest_reset_decides_and_the_first_limit_on_a_tie),
		cmocka_unit_test(no_other_decision_is_made_before_the_end_of_the_last),
		cmocka_unit_test(a_block_lasts_to_the_reset_or_as_long_as_the_zone_says),
		cmocka_unit_test(blocks_get_longer_until_they_are_forgiven),
		cmocka_unit_test(a_block_for_an_overdue_event_begins_when_it_was_sent),
		cmocka_unit_test(a_penalty_begins_with_its_decision),
		cmocka_unit_test(what_an_operator_blocks_is_no_breach),
		cmocka_unit_test(a_block_that_is_known_changes_nothing),
		cmocka_unit_test(an_event_that_is_late_for_one_limit_counts_in_the_others),
		cmocka_unit_test(the_first_event_of_a_limit_may_be_older_than_the_bucket_s_newest),
		cmocka_unit_test(a_queue_s_entry_leaves_when_it_is_done_or_at_exactly_its_hold),
		cmocka_unit_test(a_place_that_is_freed_lifts_once),
		cmocka_unit_test(a_lift_is_not_before_its_block_and_the_next_breach_decides),
		cmocka_unit_test(a_cost_is_freed_whole),
		cmocka_unit_test(what_was_refused_frees_nothing_where_it_counts),
		cmocka_unit_test(another_limit_that_is_over_keeps_the_block_for_as_long_as_it_is),
		cmocka_unit_test(a_moment_that_is_late_for_a_limit_leaves_the_block),
		cmocka_unit_test(a_penalty_stays),
		cmocka_unit_test(an_operator_s_block_stays_and_the_queue_s_does_not_outlast_it),
		cmocka_unit_test(limits_that_a_policy_keeps_keep_what_they_hold_wherever_they_are),
		cmocka_unit_test(a_bucket_goes_through_every_policy_that_it_has_slept_through),
		cmocka_unit_test(a_decision_of_shadow_mode_is_left_behind_and_one_of_enforce_mode_is_not),
		cmocka_unit_test(under_another_scale_only_limits_that_come_to_the_same_keep_what_they_hold),
		cmocka_unit_test(random_events_come_to_what_the_obvious_bucket_says),
		cmocka_unit_test(nobody_is_refused_without_a_block_that_was_published),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
