/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions that come and go between limiters while frames are judged: whatever
 * the group says and however late, decisions and states are those of one
 * undisturbed worker.
 */
#include "worker_results.h"

static int set_up(void **state)
{
	stage_set_up(state);
	struct stage *stage = *state;
	put_policy(stage, 1, scene_config);
	return 0;
}

static void start_two(struct stage *stage)
{
	process_start(&stage->processes[0], stage->scene, true, 0);
	process_start(&stage->processes[1], stage->scene, true, 0);
}

static void end_two(struct stage *stage)
{
	AWAIT(all_done(stage->processes, 2));
	process_stop(&stage->processes[0], false);
	process_stop(&stage->processes[1], false);
	compare_with_undisturbed(stage->scene, stage->reference);
}

static void nothing_is_taken_before_the_group_speaks(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	process_start(process, stage->scene, true, 0);
	feed(stage, 20);
	usleep(50000); /* it would have been taken by then, but it is no failure of the test if not */
	assert_int_equal(PROCESS_COUNT(process, taken), 0);
	process_give(process, 15);
	AWAIT(all_done(process, 1));
	assert_int_equal(PROCESS_COUNT(process, taken), 4);
	process_stop(process, false);
	compare_with_undisturbed(stage->scene, stage->reference);
}

static void partitions_move_while_the_log_grows(void **state)
{
	struct stage *stage = *state;
	struct process *one = &stage->processes[0], *other = &stage->processes[1];
	start_two(stage);
	process_give(one, 15);
	uint32_t seed = 1;
	for (int i = 0; i < 30; i++) {
		feed(stage, 8);
		seed = seed * 1103515245 + 12345;
		unsigned mask = seed >> 20 & 15;
		process_give(one, mask);
		process_give(other, 15 & ~mask);
		if (i % 5 == 4)
			AWAIT(all_done(stage->processes, 2));
	}
	end_two(stage);
}

static void what_stays_goes_on_and_what_goes_is_stored(void **state)
{
	struct stage *stage = *state;
	struct process *one = &stage->processes[0], *other = &stage->processes[1];
	start_two(stage);
	process_give(one, 15);
	feed(stage, 20);
	AWAIT(all_done(one, 1));
	process_give(one, 7);
	AWAIT(process_state(one, 3) == WORKER_EMPTY);
	struct weir_partition_state row;
	uint64_t first, next;
	assert_int_equal(stage->scene->own->extent(stage->scene->bus, WEIR_TOPIC_EVENTS, 3, &first, &next, NULL), WEIR_OK);
	assert_int_equal(stage->scene->store->ops->inspect(stage->scene->store, 1, 3, &row, NULL), WEIR_OK);
	assert_int_equal(row.next_offset, next); /* its last checkpoint holds all of it */
	assert_int_equal(PROCESS_COUNT(one, fenced), 0);
	uint64_t taken = PROCESS_COUNT(one, taken);
	process_give(other, 8);
	feed(stage, 20);
	AWAIT(all_done(stage->processes, 2));
	assert_int_equal(PROCESS_COUNT(one, taken), taken); /* those that stayed were not taken anew */
	end_two(stage);
}

/* A zombie: it does not know that its partitions are another's. */
static void who_is_fenced_drops_it_and_waits_for_the_group(void **state)
{
	struct stage *stage = *state;
	struct process *zombie = &stage->processes[0], *other = &stage->processes[1];
	start_two(stage);
	process_give(zombie, 15);
	feed(stage, 20);
	AWAIT(all_done(zombie, 1));
	process_give(other, 15);
	AWAIT(process_state(other, 0) == WORKER_LIVE && process_state(other, 3) == WORKER_LIVE);
	feed(stage, 20);
	AWAIT(PROCESS_COUNT(zombie, fenced) == 4);
	feed(stage, 20);
	AWAIT(all_done(other, 1));
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		assert_int_equal(process_state(zombie, partition), WORKER_PARKED);
	assert_int_equal(PROCESS_COUNT(other, fenced), 0);
	assert_int_equal(PROCESS_COUNT(zombie, taken), 4);
	process_give(other, 0);
	process_give(zombie, 15);
	feed(stage, 20);
	AWAIT(all_done(zombie, 1));
	assert_int_equal(PROCESS_COUNT(zombie, taken), 8);
	end_two(stage);
}

/* No other owner is waited for: its partition is judged again from what the store has. */
static void what_the_store_has_lost_is_taken_again_at_once(void **state)
{
	struct stage *stage = *state;
	struct process *one = &stage->processes[0];
	start_two(stage);
	process_give(one, 15);
	feed(stage, 20);
	AWAIT(all_done(one, 1));
	atomic_store(&faults.lost, 2);
	feed(stage, 20);
	AWAIT(PROCESS_COUNT(one, taken) > 4);
	atomic_store(&faults.lost, 0);
	feed(stage, 20);
	AWAIT(all_done(one, 1));
	assert_int_equal(PROCESS_COUNT(one, fenced), 0);
	end_two(stage);
}

/* Both believe that they have everything, for as long as they like. */
static void two_that_fight_over_partitions_do_no_harm(void **state)
{
	struct stage *stage = *state;
	start_two(stage);
	for (int i = 0; i < 20; i++) {
		process_give(&stage->processes[i % 2], 15);
		feed(stage, 6);
	}
	process_give(&stage->processes[0], 0);
	AWAIT(process_state(&stage->processes[0], 0) == WORKER_EMPTY);
	process_give(&stage->processes[1], 15);
	/* It may have judged all, and not know yet that a partition was taken from it: then it stores nothing. Its next life does. */
	AWAIT(all_done(stage->processes, 2));
	process_stop(&stage->processes[1], false);
	process_start(&stage->processes[1], stage->scene, true, 0);
	process_give(&stage->processes[1], 15);
	end_two(stage);
}

static void what_the_process_counts_only_grows(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	process_start(process, stage->scene, true, 0);
	process_give(process, 15);
	feed(stage, 20);
	AWAIT(all_done(process, 1));
	struct worker_zone before, after;
	worker_zone(process->worker, 1, &before);
	assert_int_equal(before.passed + before.blocked, 20 * SCENE_PARTITIONS * SCENE_FRAME_EVENTS);
	process_give(process, 0);
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		AWAIT(process_state(process, partition) == WORKER_EMPTY);
	worker_zone(process->worker, 1, &after);
	assert_memory_equal(&before, &after, sizeof before);
	process_give(process, 15);
	AWAIT(all_done(process, 1));
	worker_zone(process->worker, 1, &after);
	assert_memory_equal(&before, &after, sizeof before);
	process_stop(process, false);
	compare_with_undisturbed(stage->scene, stage->reference);
}

static void what_was_stored_comes_back_without_being_asked_for(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	process_start(process, stage->scene, true, 0);
	process_give(process, 15);
	feed(stage, 20);
	AWAIT(all_done(process, 1));
	AWAIT(PROCESS_COUNT(process, buckets) == SCENE_USERS * SCENE_PARTITIONS);
	process_stop(process, false);
	process_start(process, stage->scene, true, 0);
	process_give(process, 15);
	AWAIT(PROCESS_COUNT(process, buckets) == SCENE_USERS * SCENE_PARTITIONS);
	AWAIT(PROCESS_COUNT(process, evicted_segments) == 0);
	feed(stage, 20);
	AWAIT(all_done(process, 1));
	process_stop(process, false);
	compare_with_undisturbed(stage->scene, stage->reference);
}

/* ---- operators' blocks that outlast the topic's retention ---- */

enum { OVERRIDES_PARTITION = 2 };

static void command(struct scene *scene, const char *body)
{
	size_t length;
	char *message = weir_frame_control(WEIR_FRAME_COMMAND, SCENE_START_MS, 0, weir_span_of(body), &length);
	scene_send(scene, OVERRIDES_PARTITION, (struct weir_span){message, (uint32_t)length});
	free(message);
}

/* How often the newest decision of a key stands at the topic's end side: its copies, which must be alike. */
static uint64_t copies(struct scene *scene, const char *key, char *newest, size_t room)
{
	struct weir_consumer *consumer;
	struct weir_message messages[64];
	uint64_t first, next, found = 0;
	assert_int_equal(scene->own->extent(scene->bus, WEIR_TOPIC_DECISIONS, OVERRIDES_PARTITION, &first, &next, NULL),
	                 WEIR_OK);
	assert_int_equal(scene->own->consumer_new(scene->bus, WEIR_TOPIC_DECISIONS, NULL, &consumer, NULL), WEIR_OK);
	assert_int_equal(scene->own->assign(consumer, OVERRIDES_PARTITION, first, NULL), WEIR_OK);
	newest[0] = '\0';
	while (first < next) {
		size_t count;
		assert_int_equal(scene->own->receive(consumer, messages, 64, SCENE_PATIENCE_MS, &count, NULL), WEIR_OK);
		assert_true(count > 0);
		for (size_t i = 0; i < count; i++, first++) {
			char line[512];
			snprintf(line, sizeof line, "%.*s", (int)messages[i].payload.length, messages[i].payload.at);
			if (strstr(line, key) == NULL)
				continue;
			found = strcmp(line, newest) == 0 ? found + 1 : 1;
			snprintf(newest, room, "%s", line);
		}
	}
	scene->own->consumer_free(consumer);
	return found;
}

static void a_block_that_outlasts_the_topic_is_published_again(void **state)
{
	struct stage *stage = *state;
	struct scene *scene = stage->scene;
	struct process *process = &stage->processes[0];
	char ann[512], bob[512], short_one[512], later[512];
	scene->remind_ms = 100;
	process_start(process, scene, true, 0);
	process_give(process, 15);
	feed(stage, 1);
	command(scene, "{\"command\":\"block\",\"zone\":\"site\",\"key\":[\"ann\"],\"by\":\"op\",\"reason\":\"why\"}");
	command(scene, "{\"command\":\"block\",\"zone\":\"site\",\"key\":[\"bob\"],\"by\":\"op\"}");
	command(scene, "{\"command\":\"block\",\"zone\":\"site\",\"key\":[\"eve\"],\"until\":1732173600150,\"by\":\"op\"}");
	AWAIT(copies(scene, "[\"ann\"]", ann, sizeof ann) >= 3 && copies(scene, "[\"bob\"]", bob, sizeof bob) >= 3);
	assert_int_equal(copies(scene, "[\"eve\"]", short_one, sizeof short_one), 1);
	assert_non_null(strstr(ann, "\"id\":\"2-2-0\""));
	assert_non_null(strstr(ann, "\"reason\":\"why\""));
	AWAIT(all_done(process, 1));
	process_stop(process, false);

	/* the next owner knows them from the checkpoint; what is lifted does not come back */
	process_start(process, scene, true, 0);
	process_give(process, 15);
	command(scene, "{\"command\":\"lift\",\"zone\":\"site\",\"key\":[\"bob\"],\"by\":\"op\"}");
	uint64_t before = copies(scene, "[\"ann\"]", later, sizeof later);
	AWAIT(copies(scene, "[\"bob\"]", bob, sizeof bob) == 1 && strstr(bob, "\"lift\"") != NULL);
	AWAIT(copies(scene, "[\"ann\"]", later, sizeof later) >= before + 3);
	assert_string_equal(later, ann);
	assert_int_equal(copies(scene, "[\"bob\"]", bob, sizeof bob), 1);
	process_stop(process, false);
}

int main(int argc, char **argv)
{
	scene_end_at_failure();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_taken_before_the_group_speaks, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(partitions_move_while_the_log_grows, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(what_stays_goes_on_and_what_goes_is_stored, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(who_is_fenced_drops_it_and_waits_for_the_group, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(what_the_store_has_lost_is_taken_again_at_once, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(two_that_fight_over_partitions_do_no_harm, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(what_the_process_counts_only_grows, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(what_was_stored_comes_back_without_being_asked_for, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(a_block_that_outlasts_the_topic_is_published_again, set_up, stage_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
