/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What workers of a scene came to: its decisions and states, held against those
 * of a second scene, where one undisturbed worker judged the same.
 */
#ifndef TESTS_UNIT_WORKER_RESULTS_H
#define TESTS_UNIT_WORKER_RESULTS_H

#include "worker_scene.h"

static inline int compare_lines(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

struct lines {
	char **at;
	size_t count;
};

/* Every message of a topic, each once, in the order of their bytes. */
static inline struct lines scene_lines(struct scene *scene, enum weir_topic topic)
{
	struct lines lines = {0};
	struct weir_consumer *consumer;
	assert_int_equal(scene->own->consumer_new(scene->bus, topic, NULL, &consumer, NULL), WEIR_OK);
	uint64_t left = 0;
	for (uint32_t partition = 0; partition < weir_topic_partitions(topic, SCENE_PARTITIONS); partition++) {
		uint64_t first, next;
		assert_int_equal(scene->own->extent(scene->bus, topic, partition, &first, &next, NULL), WEIR_OK);
		assert_int_equal(scene->own->assign(consumer, partition, first, NULL), WEIR_OK);
		left += next - first;
	}
	while (left > 0) {
		struct weir_message messages[64];
		size_t count;
		assert_int_equal(scene->own->receive(consumer, messages, 64, SCENE_PATIENCE_MS, &count, NULL), WEIR_OK);
		assert_true(count > 0);
		for (size_t i = 0; i < count; i++) {
			lines.at = realloc(lines.at, (lines.count + 1) * sizeof *lines.at);
			lines.at[lines.count++] = strndup(messages[i].payload.at, messages[i].payload.length);
		}
		left -= count;
	}
	scene->own->consumer_free(consumer);
	qsort(lines.at, lines.count, sizeof *lines.at, compare_lines);
	size_t kept = 0;
	for (size_t i = 0; i < lines.count; i++) {
		if (kept > 0 && strcmp(lines.at[kept - 1], lines.at[i]) == 0)
			free(lines.at[i]); /* published again */
		else
			lines.at[kept++] = lines.at[i];
	}
	lines.count = kept;
	return lines;
}

static inline void lines_free(struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->at[i]);
	free(lines->at);
}

/* The same decisions, and the same rows: next offsets, clocks, positions and tallies. */
static inline void assert_same(struct scene *scene, struct scene *reference)
{
	struct lines found = scene_lines(scene, WEIR_TOPIC_DECISIONS);
	struct lines expected = scene_lines(reference, WEIR_TOPIC_DECISIONS);
	assert_true(expected.count > 0);
	assert_int_equal(found.count, expected.count);
	for (size_t i = 0; i < found.count; i++)
		assert_string_equal(found.at[i], expected.at[i]);
	lines_free(&found);
	lines_free(&expected);
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++) {
		struct weir_partition_state one, other;
		assert_int_equal(scene->store->ops->inspect(scene->store, 1, partition, &one, NULL), WEIR_OK);
		assert_int_equal(reference->store->ops->inspect(reference->store, 1, partition, &other, NULL), WEIR_OK);
		assert_int_equal(one.next_offset, other.next_offset);
		assert_int_equal(one.clock_ms, other.clock_ms);
		assert_int_equal(one.policy_version, other.policy_version);
		assert_int_equal(one.extra.length, other.extra.length);
		assert_memory_equal(one.extra.at, other.extra.at, one.extra.length);
	}
}

/* Judges all that the scene was fed by one worker that nothing disturbs, and compares. */
static inline void compare_with_undisturbed(struct scene *scene, struct scene *reference)
{
	struct process process;
	process_start(&process, reference, false, 0);
	process_stop(&process, true);
	assert_same(scene, reference);
}

/* One log twice: for the processes under test, and for one worker that nothing disturbs. */
struct stage {
	struct scene *scene, *reference;
	struct process processes[2];
};

static inline int stage_set_up(void **state)
{
	struct stage *stage = calloc(1, sizeof *stage);
	stage->scene = scene_new(true);
	stage->reference = scene_new(false);
	*state = stage;
	return 0;
}

static inline int stage_tear_down(void **state)
{
	struct stage *stage = *state;
	scene_free(stage->scene);
	scene_free(stage->reference);
	free(stage);
	return 0;
}

static inline void put_policy(struct stage *stage, uint64_t version, const char *zones)
{
	scene_put_policy(stage->scene, version, zones);
	scene_put_policy(stage->reference, version, zones);
}

static inline void feed(struct stage *stage, uint32_t rounds)
{
	scene_feed(stage->scene, rounds);
	scene_feed(stage->reference, rounds);
}

#endif
