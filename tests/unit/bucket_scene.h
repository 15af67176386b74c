/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One bucket of one zone, for tests of its boundaries: it is judged as a shard does it, in a block of exactly its bytes,
 * with no table, slab or frame around it. The zone's limits are written as the configuration writes them.
 */
#ifndef TESTS_UNIT_BUCKET_SCENE_H
#define TESTS_UNIT_BUCKET_SCENE_H

#include "common/base/alloc.h"
#include "common/frame/frame.h"
#include "limiter/bucket/bucket_fast.h"
#include "limiter/bucket/bucket_judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SCENE_POLICIES = 4 };

struct bucket_scene {
	struct weir_policy *policies[SCENE_POLICIES];
	uint32_t policy_count;
	struct compiled_policy *compiled;
	const struct compiled_zone *zone;
	uint32_t scale; /* thousandths that the next event's limits are multiplied by */
	bool fast_way;  /* the short way is asked first */
	bool spacious;  /* a bucket that moves gets room for more, as in a shard */
	struct bucket_scratch scratch;
	struct fast_windows windows;
	struct bucket *bucket; /* NULL: there is none */
	unsigned fast_count;   /* events that the short way took, */
	unsigned grown_count;  /* and those that asked for room first */
	bool changed;          /* by the last event */
	int64_t sent_ms;       /* when the next one was sent, 0: nobody says */
	struct bucket_verdict verdict;
};

/* Another policy, of one zone. @param members  of the zone, behind its limits: ",\"count\":\"all\"" */
static inline void scene_policy(struct bucket_scene *scene, const char *limits, const char *members)
{
	struct weir_error error;
	char text[2048];
	snprintf(text, sizeof text, "{\"zones\":[{\"id\":1,\"name\":\"z\",\"key\":[\"ip\"],\"limits\":[%s]%s}]}", limits,
	         members);
	uint32_t place = scene->policy_count++;
	assert_true(place < SCENE_POLICIES);
	if (weir_policy_decode(place + 1, text, strlen(text), &scene->policies[place], &error) != WEIR_OK)
		fail_msg("%s", error.text);
	compiled_policy_free(scene->compiled);
	scene->compiled = compiled_policy_new((const struct weir_policy *const *)scene->policies, scene->policy_count);
	scene->zone = compiled_policy_zone_at(scene->compiled, 0);
	scene->windows = (struct fast_windows){0};
}

static inline struct bucket_scene *scene_open(const char *limits, const char *members)
{
	struct bucket_scene *scene = weir_alloc(1, sizeof *scene);
	scene->scale = SCALE_ONE;
	scene->fast_way = scene->spacious = true;
	scene_policy(scene, limits, members);
	return scene;
}

static inline void scene_close(struct bucket_scene *scene)
{
	compiled_policy_free(scene->compiled);
	for (uint32_t i = 0; i < scene->policy_count; i++)
		weir_policy_free(scene->policies[i]);
	bucket_scratch_deinit(&scene->scratch);
	free(scene->bucket);
	free(scene);
}

/* The layout that the bucket is written in. */
static inline const struct layout *scene_layout(const struct bucket_scene *scene)
{
	return compiled_policy_layout(scene->compiled, scene->bucket->layout, bucket_scale(scene->bucket));
}

/* The layout in force. */
static inline const struct layout *scene_in_force(const struct bucket_scene *scene)
{
	uint32_t id = scene->zone->layout->id;
	return compiled_policy_layout(scene->compiled, scene->scale == SCALE_ONE ? id : id | LAYOUT_SCALED, scene->scale);
}

/* A block of exactly the bytes that it uses takes the bucket's place. @param more  times for which it must have room */
static inline void scene_keep(struct bucket_scene *scene, struct bucket *image, const struct layout *layout,
                              uint32_t more)
{
	struct bucket_view from;
	uint32_t rooms[WEIR_ZONE_LIMITS_MAX];
	size_t bytes = bucket_plan(image, layout, rooms);
	if (!scene->spacious) {
		if (!(image->flags & BUCKET_SINGLE)) {
			bucket_open(&from, image, layout);
			bucket_rooms(&from, rooms);
		}
		for (uint32_t i = 0; i < layout->limit_count; i++) {
			uint32_t least = (image->flags & BUCKET_SINGLE ? 1 : rooms[i]) + more,
					 most = layout->limits[i].times.entries_max;
			rooms[i] = least < most ? least : most;
		}
		bytes = bucket_bytes(layout, image->flags, rooms);
	}
	struct bucket *bucket = weir_alloc(1, bytes);
	bucket_place(bucket, bytes, image, layout, rooms);
	free(scene->bucket);
	scene->bucket = bucket;
	assert_int_equal(bucket_used(bucket, layout), bytes);
}

static inline void scene_keep_single(struct bucket_scene *scene, int64_t t)
{
	scene->bucket = weir_alloc(1, sizeof *scene->bucket);
	*scene->bucket = (struct bucket){.newest_ms = (uint64_t)t & WEIR_TIME_MASK,
	                                 .flags = BUCKET_SINGLE,
	                                 .layout = scene->zone->layout->id & LAYOUT_NUMBER_MASK};
	scene->changed = true;
}

static inline void scene_work_open(struct bucket_scene *scene, struct bucket_work *work, int64_t c)
{
	const struct layout *layout = scene_in_force(scene);
	struct bucket *bucket = scene->bucket;
	if (bucket == NULL)
		bucket_work_new(work, &scene->scratch, layout, c);
	else if (scene_layout(scene) == layout && !(bucket->flags & BUCKET_SINGLE))
		bucket_work_open(work, &scene->scratch, bucket, layout);
	else
		bucket_work_convert(work, &scene->scratch, bucket, scene_layout(scene), layout, c);
}

static inline void scene_work_close(struct bucket_scene *scene, const struct bucket_work *work)
{
	scene->changed = work->changed;
	if (work->moved && work->changed)
		scene_keep(scene, work->view.bucket, work->view.layout, 0);
	if (scene->bucket != NULL)
		assert_true(bucket_check(scene->bucket, scene_layout(scene), bucket_used(scene->bucket, scene_layout(scene))));
}

/* @return the verdict's bits; the rest is in scene->verdict */
static inline unsigned scene_barred(struct bucket_scene *scene, int64_t t, int64_t c, bool barred)
{
	struct bucket_work work;
	scene->verdict = (struct bucket_verdict){0};
	if (scene->bucket == NULL && c == 1 && !barred && scene->scale == SCALE_ONE) {
		scene_keep_single(scene, t);
		return 0;
	}
	if (scene->fast_way && scene->bucket != NULL && c == 1 && !barred && scene->scale == SCALE_ONE &&
	    scene->bucket->layout == scene->zone->layout->id) {
		enum bucket_fast fast = bucket_fast(scene->bucket, scene->zone->layout, scene->zone->zone, &scene->windows, t);
		if (fast == FAST_GROW) {
			scene->grown_count++;
			scene_keep(scene, scene->bucket, scene_layout(scene), 1);
			fast = bucket_fast(scene->bucket, scene->zone->layout, scene->zone->zone, &scene->windows, t);
			assert_int_not_equal(fast, FAST_GROW);
		}
		scene->fast_count += fast != FAST_NOT;
		scene->changed = fast == FAST_PASSED;
		if (fast != FAST_NOT)
			return scene->verdict.bits = fast == FAST_BLOCKED ? WEIR_VERDICT_BLOCK : 0;
	}
	scene_work_open(scene, &work, c);
	work.sent_ms = scene->sent_ms;
	bucket_judge(&work, scene->zone->zone, t, c, barred, ANSWER_NONE, &scene->verdict);
	scene_work_close(scene, &work);
	return scene->verdict.bits;
}

static inline unsigned scene_event(struct bucket_scene *scene, int64_t t, int64_t c)
{
	return scene_barred(scene, t, c, false);
}

/* @param held_until  when an operator's block of the key ends; 0: there is none */
static inline unsigned scene_done_held(struct bucket_scene *scene, int64_t t, int64_t held_until)
{
	struct bucket_work work;
	if (scene->bucket == NULL)
		return 0;
	scene_work_open(scene, &work, 1);
	bucket_done(&work, scene->zone->zone, t, held_until, &scene->verdict);
	scene_work_close(scene, &work);
	return scene->verdict.bits;
}

static inline unsigned scene_done(struct bucket_scene *scene, int64_t t)
{
	return scene_done_held(scene, t, 0);
}

/* Each limit's state, one behind the other; "-" of one that is empty. A single bucket's is that of its one event. */
static inline const char *scene_shown(struct bucket_scene *scene)
{
	static char shown[1 << 16];
	struct weir_text text = {0};
	struct bucket_work work;
	shown[0] = '\0';
	if (scene->bucket == NULL)
		return "none";
	const struct layout *layout = scene_layout(scene);
	if (scene->bucket->flags & BUCKET_SINGLE) {
		bucket_work_new(&work, &scene->scratch, layout, 1);
		bucket_expand(&work.view, scene->bucket);
		bucket_refresh(&work.view);
	} else {
		bucket_work_open(&work, &scene->scratch, scene->bucket, layout);
	}
	for (uint32_t i = 0; i < layout->limit_count; i++) {
		const struct weir_limit_view *limit = &work.view.limits[i];
		weir_text_puts(&text, i > 0 ? " " : "");
		if (limit->shape->ops->is_empty(limit))
			weir_text_puts(&text, "-");
		else
			limit->shape->ops->show(limit, &text);
	}
	assert_true(text.length < sizeof shown);
	memcpy(shown, text.at, text.length);
	shown[text.length] = '\0';
	weir_text_deinit(&text);
	return shown;
}

#define EXPECT_PASS(scene, t, c) assert_int_equal(scene_event(scene, t, c), 0)
#define EXPECT_BLOCK(scene, t, c) assert_int_equal(scene_event(scene, t, c), WEIR_VERDICT_BLOCK)
#define EXPECT_DECIDED(scene, t, c, until)                                                 \
	assert_int_equal(scene_event(scene, t, c), WEIR_VERDICT_BLOCK | WEIR_VERDICT_DECIDED); \
	assert_int_equal((scene)->verdict.until_ms, until)
#define EXPECT_SHOWN(scene, text) assert_string_equal(scene_shown(scene), text)

static inline uint64_t scene_seed(void)
{
	const char *given = getenv("WEIR_SEED");
	uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 20251125;
	print_message("WEIR_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

static inline int64_t scene_random(uint64_t *seed, int64_t below)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int64_t)(*seed >> 33) % below;
}

#endif
