/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket's block: how many bytes its parts take, that each part is where it is looked for, what a copy carries over,
 * how it grows, and which bytes are no bucket. What it decides is test_bucket_judge.c's and test_bucket_fast.c's.
 */
#include "bucket_scene.h"

#define SLIDING(rate, window) "{\"algorithm\":\"sliding_window\",\"rate\":" #rate ",\"window\":\"" #window "\"}"
#define FIXED(rate, window) "{\"algorithm\":\"fixed_window\",\"rate\":" #rate ",\"window\":\"" #window "\"}"
#define TWO SLIDING(3, 100ms) "," FIXED(9, 1s)

enum { HEADER_BYTES = 24, GARBAGE = 0xa5 };

/* A block of exactly its bytes, of a form and rooms, laid out over garbage. */
struct block {
	struct bucket_scene *scene;
	const struct layout *layout;
	struct bucket *bucket;
	struct bucket_view view;
	size_t bytes;
};

static struct block block_open(const char *limits, uint32_t scale, unsigned form, const uint32_t *rooms)
{
	struct block block = {.scene = scene_open(limits, "")};
	block.scene->scale = scale;
	block.layout = scene_in_force(block.scene);
	block.bytes = bucket_bytes(block.layout, form, rooms);
	block.bucket = weir_alloc(1, block.bytes);
	memset(block.bucket, GARBAGE, block.bytes);
	bucket_init(block.bucket, block.layout, form, rooms);
	bucket_open(&block.view, block.bucket, block.layout);
	return block;
}

static void block_close(struct block *block)
{
	free(block->bucket);
	scene_close(block->scene);
}

static void record(struct block *block, uint32_t i, int64_t t)
{
	const struct weir_limit_view *limit = &block->view.limits[i];
	assert_int_equal(limit->shape->ops->record(limit, t, 1, false), WEIR_LIMIT_RECORDED);
	if (t > (int64_t)block->bucket->newest_ms)
		block->bucket->newest_ms = (uint64_t)t & WEIR_TIME_MASK;
}

static bool sound(const struct block *block, size_t length)
{
	return bucket_check(block->bucket, block->layout, length);
}

/* ---- bytes ---- */

static void every_part_takes_its_bytes(void **state)
{
	(void)state;
	/* Fixed parts of 3 and 2 bytes, a ring of 3 x 8 bits; as runs of 4 and 2, and 3 x 11 bits. */
	static const struct {
		uint32_t scale, room;
		unsigned form;
		size_t bytes;
	} cases[] = {
		{SCALE_ONE, 3, 0, HEADER_BYTES + 5 + 3},
		{SCALE_ONE, 0, 0, HEADER_BYTES + 5},
		{SCALE_ONE, 3, BUCKET_DECIDED, HEADER_BYTES + 12 + 5 + 3},
		{SCALE_ONE, 3, BUCKET_OWN_TIMES, HEADER_BYTES + 2 * 6 + 5 + 3},
		{SCALE_ONE, 3, BUCKET_RUNS, HEADER_BYTES + 6 + 5},
		{SCALE_ONE, 2, BUCKET_RUNS, HEADER_BYTES + 6 + 3},
		{500, 1, 0, HEADER_BYTES + 4 + 5 + 1},
		{500, 1, BUCKET_DECIDED | BUCKET_OWN_TIMES, HEADER_BYTES + 4 + 12 + 12 + 5 + 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint32_t rooms[] = {cases[i].room, 99};
		struct block block = block_open(TWO, cases[i].scale, cases[i].form, rooms);
		assert_int_equal(block.bytes, cases[i].bytes);
		assert_int_equal(bucket_used(block.bucket, block.layout), cases[i].bytes);
		assert_true(sound(&block, block.bytes));
		block_close(&block);
	}
}

static void a_new_block_is_empty_whatever_lay_there(void **state)
{
	(void)state;
	const uint32_t rooms[] = {2, 0};
	struct block block =
		block_open(TWO, 2000, BUCKET_DECIDED | BUCKET_OWN_TIMES | BUCKET_RUNS | BUCKET_USED | BUCKET_DIRTY, rooms);
	assert_int_equal(block.bucket->flags, BUCKET_DECIDED | BUCKET_OWN_TIMES | BUCKET_RUNS);
	assert_int_equal(block.bucket->low | block.bucket->high | block.bucket->newest_ms | block.bucket->clock_s, 0);
	assert_int_equal(block.bucket->layout, block.layout->id);
	assert_int_equal(bucket_scale(block.bucket), 2000);
	assert_int_equal(bucket_decided_at(&block.view), 0);
	assert_int_equal(bucket_decided_until(&block.view), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(block.view.limits[i].shape->ops->is_empty(&block.view.limits[i]));
		assert_int_equal(block.view.limits[i].newest_ms, 0);
	}
	block_close(&block);
}

/* Every part is written full, and none of the others has changed. */
static void no_part_lies_in_another(void **state)
{
	(void)state;
	const uint32_t rooms[] = {3, 0, 5, 2};
	struct block block = block_open(TWO "," SLIDING(5, 1h) "," SLIDING(2, 1s), SCALE_ONE, BUCKET_DECIDED, rooms);
	weir_time_put(block.view.decided, WEIR_TIME_END_MS - 1);
	weir_time_put(block.view.decided + WEIR_TIME_BYTES, (int64_t)WEIR_TIME_MASK);
	for (int64_t n = 0; n < 5; n++) {
		for (uint32_t i = 0; i < 4; i++)
			if (i == 1 || n < rooms[i])
				record(&block, i, 1000);
		bucket_refresh(&block.view);
	}
	const int64_t held[] = {3, 5, 5, 2};
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(block.view.limits[i].shape->ops->held(&block.view.limits[i], 1000), held[i]);
	assert_int_equal(bucket_decided_at(&block.view), WEIR_TIME_END_MS - 1);
	assert_int_equal(bucket_blocked_until(block.bucket), WEIR_TIME_MASK);
	assert_true(sound(&block, block.bytes));
	block_close(&block);
}

static void a_scaled_bucket_keeps_its_decision_behind_the_scale(void **state)
{
	(void)state;
	const uint32_t rooms[] = {1, 0};
	struct block block = block_open(TWO, SCALE_MAX, BUCKET_DECIDED, rooms);
	weir_time_put(block.view.decided, 1000);
	weir_time_put(block.view.decided + WEIR_TIME_BYTES, 2000);
	assert_ptr_equal(bucket_decided(block.bucket), block.view.decided);
	assert_int_equal(bucket_scale(block.bucket), SCALE_MAX);
	assert_int_equal(bucket_blocked_until(block.bucket), 2000);
	block_close(&block);
	block = block_open(TWO, SCALE_ONE, 0, rooms);
	assert_null(bucket_decided(block.bucket));
	assert_int_equal(bucket_blocked_until(block.bucket), 0);
	block_close(&block);
}

static void a_later_block_says_which_it_is(void **state)
{
	(void)state;
	const uint32_t rooms[] = {1, 0};
	struct block block = block_open(TWO, SCALE_MAX, BUCKET_DECIDED | BUCKET_NTH, rooms);
	weir_time_put(block.view.decided, 1000);
	weir_time_put(block.view.decided + WEIR_TIME_BYTES, 2000);
	weir_bytes_put(block.view.decided + DECIDED_BYTES, NTH_BYTES, 7);
	record(&block, 0, 1000);
	record(&block, 1, 1000);
	assert_int_equal(decided_nth(bucket_decided(block.bucket), block.bucket->flags), 7);
	assert_true(sound(&block, block.bytes));
	weir_bytes_put(block.view.decided + DECIDED_BYTES, NTH_BYTES, 0);
	assert_false(sound(&block, block.bytes));
	block_close(&block);
	block = block_open(TWO, SCALE_ONE, BUCKET_NTH, rooms); /* without a decision, there is none to number */
	assert_false(sound(&block, block.bytes));
	block_close(&block);
	block = block_open(TWO, SCALE_ONE, BUCKET_DECIDED, rooms);
	assert_int_equal(decided_nth(bucket_decided(block.bucket), block.bucket->flags), 1);
	block_close(&block);
}

/* ---- copies ---- */

static void a_copy_carries_the_header_but_its_form_and_layout(void **state)
{
	(void)state;
	const uint32_t rooms[] = {2, 0}, more[] = {3, 0};
	struct block from = block_open(TWO, SCALE_ONE, BUCKET_DECIDED, rooms);
	struct block to = block_open(TWO, SCALE_ONE, BUCKET_DECIDED | BUCKET_RUNS, more);
	record(&from, 0, 1000);
	record(&from, 1, 1000);
	bucket_refresh(&from.view);
	from.bucket->low = 1;
	from.bucket->high = 2;
	from.bucket->clock_s = 3;
	from.bucket->generation = 4;
	from.bucket->flags |= BUCKET_USED | BUCKET_DIRTY;
	weir_time_put(from.view.decided, 6);
	weir_time_put(from.view.decided + WEIR_TIME_BYTES, 7);
	to.view.layout = from.view.layout; /* the same limits, of another scene */
	bucket_copy(&to.view, &from.view);
	bucket_refresh(&to.view);
	assert_int_equal(to.bucket->low, 1);
	assert_int_equal(to.bucket->high, 2);
	assert_int_equal(to.bucket->newest_ms, 1000);
	assert_int_equal(to.bucket->clock_s, 3);
	assert_int_equal(to.bucket->generation, 4);
	assert_int_equal(to.bucket->flags, BUCKET_DECIDED | BUCKET_RUNS | BUCKET_USED | BUCKET_DIRTY);
	assert_int_equal(bucket_decided_at(&to.view), 6);
	assert_int_equal(bucket_decided_until(&to.view), 7);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(to.view.limits[i].shape->ops->held(&to.view.limits[i], 1000), 1);
	block_close(&from);
	block_close(&to);
}

static void a_copy_with_times_of_their_own_gives_each_limit_its_own(void **state)
{
	(void)state;
	const uint32_t rooms[] = {1, 0};
	struct block from = block_open(TWO, SCALE_ONE, 0, rooms);
	struct block to = block_open(TWO, SCALE_ONE, BUCKET_OWN_TIMES, rooms);
	record(&from, 1, 1000); /* the sliding window has nothing */
	bucket_refresh(&from.view);
	to.view.layout = from.view.layout;
	bucket_copy(&to.view, &from.view);
	bucket_refresh(&to.view);
	assert_int_equal(to.view.limits[0].newest_ms, 0);
	assert_int_equal(to.view.limits[1].newest_ms, 1000);
	assert_true(to.view.limits[0].shape->ops->is_empty(&to.view.limits[0]));
	block_close(&from);
	block_close(&to);
}

static void a_single_bucket_holds_its_one_event_in_every_limit(void **state)
{
	(void)state;
	static const int64_t times[] = {1, 1000, WEIR_TIME_END_MS - 1};
	const uint32_t rooms[] = {1, 0};
	for (size_t i = 0; i < 3; i++) {
		struct block block = block_open(TWO, SCALE_ONE, 0, rooms);
		struct bucket single = {.low = 1,
		                        .high = 2,
		                        .newest_ms = (uint64_t)times[i] & WEIR_TIME_MASK,
		                        .clock_s = 3,
		                        .generation = 4,
		                        .flags = BUCKET_SINGLE | BUCKET_USED};
		bucket_expand(&block.view, &single);
		bucket_refresh(&block.view);
		assert_int_equal(block.bucket->newest_ms, times[i]);
		assert_int_equal(block.bucket->flags, BUCKET_USED);
		assert_int_equal(block.bucket->clock_s, 3);
		assert_int_equal(block.bucket->generation, 4);
		for (uint32_t j = 0; j < 2; j++)
			assert_int_equal(block.view.limits[j].shape->ops->held(&block.view.limits[j], times[i]), 1);
		assert_true(sound(&block, block.bytes));
		block_close(&block);
	}
}

/* ---- room ---- */

static void rings_grow_by_a_quarter_and_by_two_at_least_up_to_the_rate(void **state)
{
	(void)state;
	static const uint32_t cases[][2] = {{0, 2},   {1, 3},    {8, 10},   {11, 13},  {12, 15},
	                                    {79, 98}, {80, 100}, {98, 100}, {100, 100}};
	struct bucket_scene *scene = scene_open(SLIDING(100, 1m) "," FIXED(100, 1m), "");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint32_t rooms[] = {cases[i][0], 77};
		bucket_grow(scene->zone->layout, rooms);
		assert_int_equal(rooms[0], cases[i][1]);
		assert_int_equal(rooms[1], 77); /* a limit without times */
	}
	scene_close(scene);
}

static void the_fewest_rooms_are_the_entries_that_there_are(void **state)
{
	(void)state;
	const uint32_t rooms[] = {3, 0};
	uint32_t fewest[2];
	struct block block = block_open(TWO, SCALE_ONE, 0, rooms);
	bucket_rooms(&block.view, fewest);
	assert_int_equal(fewest[0], 0);
	record(&block, 0, 1000);
	bucket_refresh(&block.view);
	record(&block, 0, 1000);
	bucket_rooms(&block.view, fewest);
	assert_int_equal(fewest[0], 2);
	assert_int_equal(fewest[1], 0);
	block_close(&block);
}

/* Entries of 17 bits: what is spare is an entry only when its last bit is there. */
static void spare_bytes_are_room_from_the_last_bit_of_an_entry_on(void **state)
{
	(void)state;
	struct bucket_scene *scene = scene_open(SLIDING(4, 40s) "," SLIDING(2, 100ms), "");
	const struct layout *layout = scene->zone->layout;
	assert_int_equal(layout->limits[0].times.time_bits, 17);
	const uint32_t least[] = {1, 1};
	size_t bytes = bucket_bytes(layout, 0, least); /* rings of 3 bytes and 1 */
	static const uint32_t cases[][2] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 1}, {3, 2}, {4, 1}, {4, 2}, {4, 2}};
	for (size_t spare = 0; spare < sizeof cases / sizeof cases[0]; spare++) {
		uint32_t rooms[] = {1, 1};
		bucket_widen(layout, 0, bytes + spare, rooms);
		size_t most = bucket_bytes(layout, 0, rooms);
		assert_true(most <= bytes + spare);
		/* The first takes what it can: 17, 34, 51 and 68 bits are 3, 5, 7 and 9 bytes. */
		assert_int_equal(rooms[0], cases[spare][0]);
		assert_int_equal(rooms[1], cases[spare][1]);
	}
	scene_close(scene);
}

static uint32_t room_of(const struct bucket *bucket, const struct layout *layout, uint32_t i)
{
	struct bucket_view view;
	bucket_open(&view, (struct bucket *)bucket, layout);
	return weir_limit_times(&view.limits[i], 0).room;
}

/* A bucket in its place, in a block of just so many bytes; what is behind them is not its own. */
static void place(struct bucket_scene *scene, size_t spare)
{
	uint32_t rooms[WEIR_ZONE_LIMITS_MAX], held[WEIR_ZONE_LIMITS_MAX] = {1, 1, 1};
	const struct layout *layout = scene_layout(scene);
	struct bucket_view view;
	bool is_single = scene->bucket->flags & BUCKET_SINGLE;
	unsigned flags = scene->bucket->flags & ~(unsigned)BUCKET_SINGLE;
	if (!is_single) {
		bucket_open(&view, scene->bucket, layout);
		bucket_rooms(&view, held);
	}
	size_t bytes = bucket_plan(scene->bucket, layout, rooms) + spare;
	struct bucket *block = weir_alloc(1, bytes);
	bucket_place(block, bytes, scene->bucket, layout, rooms);
	free(scene->bucket);
	scene->bucket = block;
	assert_int_equal(block->flags, flags);
	assert_true(bucket_check(block, layout, bucket_used(block, layout)) && bucket_used(block, layout) <= bytes);
	for (uint32_t i = 0; i < layout->limit_count; i++) {
		const struct weir_limit_shape *shape = &layout->limits[i];
		if (!shape->has_times)
			continue;
		uint64_t least = (uint64_t)held[i] + 1, most = shape->times.entries_max;
		assert_int_equal(room_of(block, layout, i), rooms[i]);
		assert_true(rooms[i] >= (least < most ? least : most));
	}
}

/* Single ones, in every form, with rings in order and not, of one layout and of another. */
static void a_bucket_that_is_placed_holds_what_it_held_and_has_the_room(void **state)
{
	(void)state;
	static const char *const limits[] = {
		SLIDING(5, 100ms),
		SLIDING(40, 100ms) "," FIXED(60, 1s),
		SLIDING(9, 100ms) "," SLIDING(20, 1s) "," FIXED(900, 1m),
		FIXED(5, 1s),
		"{\"algorithm\":\"queue\",\"length\":9,\"hold\":\"200ms\"}," SLIDING(9, 1s),
		"{\"algorithm\":\"token_bucket\",\"rate\":5,\"window\":\"1s\"}," SLIDING(200, 1s),
	};
	uint64_t random = 88172645463325252u;
	for (size_t which = 0; which < sizeof limits / sizeof limits[0]; which++) {
		struct bucket_scene *scene = scene_open(limits[which], ",\"block_for\":[\"50ms\",\"90ms\"]");
		int64_t t = 1000;
		scene->fast_way = which % 2 == 0;
		for (unsigned step = 0; step < 3000; step++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			unsigned chance = (unsigned)(random >> 33);
			t += chance % 7 == 0 ? 30 + chance % 400 : chance % 9;
			scene_event(scene, chance % 5 == 0 ? t - 20 : t, chance % 41 == 0 ? 1 + chance % 40 : 1);
			const char *shown = scene_shown(scene);
			char *before = weir_copy(shown, strlen(shown));
			place(scene, chance % 4 == 0 ? chance % 50 : 0);
			assert_string_equal(scene_shown(scene), before);
			free(before);
		}
		scene_close(scene);
	}
}

/* 17 bits an entry: 24 bytes of header, 3 of length, head and room. */
static void a_ring_in_order_takes_what_is_to_spare_in_its_block_and_another_does_not(void **state)
{
	(void)state;
	static const size_t spare[] = {0, 1, 2, 3, 20, 800};
	static const uint32_t rooms[] = {5, 5, 6, 6, 14, 20};
	for (size_t i = 0; i < sizeof spare / sizeof spare[0]; i++) {
		struct bucket_scene *scene = scene_open(SLIDING(20, 40s), "");
		const struct layout *layout = scene->zone->layout;
		for (int64_t t = 1000; t < 1003; t++)
			scene_event(scene, t, 1);
		place(scene, 0);
		assert_int_equal(room_of(scene->bucket, layout, 0), 5);
		size_t bytes = bucket_used(scene->bucket, layout) + spare[i];
		struct bucket *block = weir_alloc(1, bytes);
		memcpy(block, scene->bucket, bucket_used(scene->bucket, layout));
		free(scene->bucket);
		scene->bucket = block;
		assert_int_equal(bucket_spread(block, bytes, layout), rooms[i] > 5);
		assert_int_equal(room_of(block, layout, 0), rooms[i]);
		assert_false(bucket_spread(block, bytes, layout)); /* it has all */
		EXPECT_SHOWN(scene, "{\"times\":[[1000,1],[1001,1],[1002,1]]}");
		scene_event(scene, 81001, 1); /* two leave: the oldest is not at the first place any more */
		assert_false(bucket_spread(scene->bucket, bytes + 100, layout));
		EXPECT_SHOWN(scene, "{\"times\":[[1002,1],[81001,1]]}");
		scene_close(scene);
	}
}

/* ---- bytes that are no bucket ---- */

static void a_time_of_the_year_ten_thousand_is_refused_and_one_ms_before_is_not(void **state)
{
	(void)state;
	struct bucket_scene *scene = scene_open(TWO, "");
	struct bucket single = {.newest_ms = WEIR_TIME_END_MS - 1, .flags = BUCKET_SINGLE};
	assert_true(bucket_check(&single, scene->zone->layout, HEADER_BYTES));
	single.newest_ms = WEIR_TIME_END_MS;
	assert_false(bucket_check(&single, scene->zone->layout, HEADER_BYTES));
	scene_close(scene);
}

static void a_single_bucket_is_its_header_alone(void **state)
{
	(void)state;
	struct bucket_scene *scene = scene_open(TWO, "");
	struct bucket single = {.newest_ms = 1000, .flags = BUCKET_SINGLE | BUCKET_USED};
	assert_int_equal(bucket_used(&single, scene->zone->layout), HEADER_BYTES);
	assert_true(bucket_check(&single, scene->zone->layout, HEADER_BYTES));
	assert_false(bucket_check(&single, scene->zone->layout, HEADER_BYTES - 1));
	assert_false(bucket_check(&single, scene->zone->layout, HEADER_BYTES + 1));
	assert_false(bucket_check(&single, compiled_policy_layout(scene->compiled, 1 | LAYOUT_SCALED, 2000), HEADER_BYTES));
	for (unsigned form = BUCKET_DECIDED; form <= BUCKET_RUNS; form <<= 1) {
		single.flags = BUCKET_SINGLE | (form & BUCKET_FORM);
		assert_false(bucket_check(&single, scene->zone->layout, HEADER_BYTES));
	}
	scene_close(scene);
}

static void a_length_of_one_byte_less_or_more_is_refused(void **state)
{
	(void)state;
	const uint32_t rooms[] = {2, 0}, none[] = {0, 0};
	struct block block = block_open(TWO, SCALE_ONE, 0, rooms);
	assert_true(sound(&block, block.bytes));
	assert_false(sound(&block, block.bytes - 1));
	assert_false(sound(&block, block.bytes + 1));
	block_close(&block);
	block = block_open(TWO, SCALE_ONE, 0, none);
	assert_true(sound(&block, block.bytes));
	assert_false(sound(&block, block.bytes - 1)); /* the room would not be among them */
	assert_false(sound(&block, HEADER_BYTES));
	block_close(&block);
}

static void a_decision_that_ends_before_it_begins_is_refused(void **state)
{
	(void)state;
	const uint32_t rooms[] = {0, 0};
	struct block block = block_open(TWO, SCALE_ONE, BUCKET_DECIDED, rooms);
	static const struct {
		int64_t at, until;
		bool sound;
	} cases[] = {{1000, 1001, true},
	             {1000, 1000, true},
	             {1000, 999, false},
	             {WEIR_TIME_END_MS - 1, (int64_t)WEIR_TIME_MASK, true},
	             {WEIR_TIME_END_MS, (int64_t)WEIR_TIME_MASK, false}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		weir_time_put(block.view.decided, cases[i].at);
		weir_time_put(block.view.decided + WEIR_TIME_BYTES, cases[i].until);
		assert_int_equal(sound(&block, block.bytes), cases[i].sound);
	}
	block_close(&block);
}

static void a_limit_newer_than_its_bucket_is_refused(void **state)
{
	(void)state;
	const uint32_t rooms[] = {0, 0};
	struct block block = block_open(TWO, SCALE_ONE, BUCKET_OWN_TIMES, rooms);
	block.bucket->newest_ms = 1000;
	weir_time_put(block.view.own_times + WEIR_TIME_BYTES, 1000);
	assert_true(sound(&block, block.bytes));
	weir_time_put(block.view.own_times + WEIR_TIME_BYTES, 1001);
	assert_false(sound(&block, block.bytes));
	block_close(&block);
}

static void a_count_of_one_more_than_the_rate_is_refused(void **state)
{
	(void)state;
	const uint32_t rooms[] = {0, 0};
	struct block block = block_open(TWO, SCALE_ONE, 0, rooms);
	block.bucket->newest_ms = 1000;
	*block.view.limits[1].fixed = 9;
	assert_true(sound(&block, block.bytes));
	*block.view.limits[1].fixed = 10;
	assert_false(sound(&block, block.bytes));
	block_close(&block);
}

/* ---- how long it is remembered ---- */

static void it_is_remembered_for_its_memory_and_the_lateness_or_until_its_decision_ends(void **state)
{
	(void)state;
	struct bucket_scene *scene = scene_open(TWO, "");
	const struct layout *layout = scene->zone->layout;
	struct bucket bucket = {.clock_s = 10};
	assert_int_equal(layout->memory_ms, 1000); /* the longest of the two */
	assert_int_equal(bucket_remembered_until(&bucket, layout, 0, 0), 11000);
	assert_int_equal(bucket_remembered_until(&bucket, layout, 500, 0), 11500);
	assert_int_equal(bucket_remembered_until(&bucket, layout, 500, 11500), 11500);
	assert_int_equal(bucket_remembered_until(&bucket, layout, 500, 11501), 11501);
	bucket.clock_s = UINT32_MAX - 1;
	assert_int_equal(bucket_remembered_until(&bucket, layout, 0, 0), INT64_C(1000) * (UINT32_MAX - 1) + 1000);
	bucket.clock_s = UINT32_MAX;
	assert_int_equal(bucket_remembered_until(&bucket, layout, 0, 0), INT64_MAX);
	scene_close(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_takes_its_bytes),
		cmocka_unit_test(a_new_block_is_empty_whatever_lay_there),
		cmocka_unit_test(no_part_lies_in_another),
		cmocka_unit_test(a_scaled_bucket_keeps_its_decision_behind_the_scale),
		cmocka_unit_test(a_later_block_says_which_it_is),
		cmocka_unit_test(a_copy_carries_the_header_but_its_form_and_layout),
		cmocka_unit_test(a_copy_with_times_of_their_own_gives_each_limit_its_own),
		cmocka_unit_test(a_single_bucket_holds_its_one_event_in_every_limit),
		cmocka_unit_test(rings_grow_by_a_quarter_and_by_two_at_least_up_to_the_rate),
		cmocka_unit_test(the_fewest_rooms_are_the_entries_that_there_are),
		cmocka_unit_test(spare_bytes_are_room_from_the_last_bit_of_an_entry_on),
		cmocka_unit_test(a_bucket_that_is_placed_holds_what_it_held_and_has_the_room),
		cmocka_unit_test(a_ring_in_order_takes_what_is_to_spare_in_its_block_and_another_does_not),
		cmocka_unit_test(a_time_of_the_year_ten_thousand_is_refused_and_one_ms_before_is_not),
		cmocka_unit_test(a_single_bucket_is_its_header_alone),
		cmocka_unit_test(a_length_of_one_byte_less_or_more_is_refused),
		cmocka_unit_test(a_decision_that_ends_before_it_begins_is_refused),
		cmocka_unit_test(a_limit_newer_than_its_bucket_is_refused),
		cmocka_unit_test(a_count_of_one_more_than_the_rate_is_refused),
		cmocka_unit_test(it_is_remembered_for_its_memory_and_the_lateness_or_until_its_decision_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
