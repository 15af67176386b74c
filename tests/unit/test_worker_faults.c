/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may befall a limiter: a producer that breaks, a store that is down, a
 * log with a gap, messages that are no frames, policies that come late. It goes
 * on, and in the end decisions and states are those of one undisturbed worker.
 */
#include "worker_results.h"

static const char second_policy[] =
	"{\"zones\":[{\"id\":1,\"name\":\"site\",\"key\":[\"user\"],\"limits\":[{\"algorithm\":\"sliding_window\","
	"\"rate\":3,\"window\":\"1m\"}]}]}";

/* The scene's zone, and one more, which is lifted when it goes. */
static const char third_policy[] =
	"{\"zones\":[{\"id\":1,\"name\":\"site\",\"key\":[\"user\"],\"limits\":[{\"algorithm\":\"sliding_window\","
	"\"rate\":5,\"window\":\"1m\"},{\"algorithm\":\"fixed_window\",\"rate\":40,\"window\":\"1h\"}]},"
	"{\"id\":2,\"name\":\"more\",\"key\":[\"user\"],\"limits\":[{\"algorithm\":\"sliding_window\","
	"\"rate\":3,\"window\":\"1m\"}]}]}";

static struct process *begin(struct stage *stage, int64_t age_limit_ms)
{
	put_policy(stage, 1, scene_config);
	process_start(&stage->processes[0], stage->scene, true, age_limit_ms);
	process_give(&stage->processes[0], 15);
	return &stage->processes[0];
}

static void end(struct stage *stage)
{
	AWAIT(all_done(stage->processes, 1));
	process_stop(&stage->processes[0], false);
	compare_with_undisturbed(stage->scene, stage->reference);
}

static void a_broken_producer_is_replaced_and_nothing_is_lost(void **state)
{
	struct stage *stage = *state;
	struct process *process = begin(stage, 0);
	for (int i = 0; i < 3; i++) {
		feed(stage, 10);
		faults.producers_refused = i;
		faults.failed_deliveries = 1;
		feed(stage, 10);
		AWAIT(faults.producers == i + 2);
	}
	AWAIT(PROCESS_COUNT(process, taken) > SCENE_PARTITIONS);
	end(stage);
}

static void a_store_that_is_down_stops_only_checkpoints(void **state)
{
	struct stage *stage = *state;
	struct process *process = begin(stage, 0);
	feed(stage, 10);
	AWAIT(all_done(process, 1) && PROCESS_COUNT(process, checkpoints) > 0);
	faults.store_down = true;
	feed(stage, 10);
	AWAIT(all_done(process, 1)); /* verdicts go on */
	uint64_t checkpoints = PROCESS_COUNT(process, checkpoints);
	feed(stage, 10);
	AWAIT(all_done(process, 1));
	assert_true(PROCESS_COUNT(process, checkpoints) <= checkpoints + 4); /* those that were committed by then */
	faults.store_down = false;
	AWAIT(PROCESS_COUNT(process, checkpoints) > checkpoints + 4 || PROCESS_COUNT(process, checkpoint_age_ms) == 0);
	end(stage);
}

static uint64_t stored_offset(struct stage *stage, uint32_t partition)
{
	struct weir_partition_state row;
	struct scene *scene = stage->scene;
	assert_int_equal(scene->store->ops->inspect(scene->store, 1, partition, &row, NULL), WEIR_OK);
	return row.next_offset;
}

static uint64_t log_end(struct stage *stage, uint32_t partition)
{
	uint64_t first, next;
	struct scene *scene = stage->scene;
	assert_int_equal(scene->own->extent(scene->bus, WEIR_TOPIC_EVENTS, partition, &first, &next, NULL), WEIR_OK);
	return next;
}

/* What metrics show of a zone, and of a worker. */
struct figures {
	struct worker_zone zone;
	uint64_t events, frames, malformed, dead_letters;
};

static struct figures figures_of(struct process *process)
{
	struct figures figures = {.events = PROCESS_COUNT(process, events),
	                          .frames = PROCESS_COUNT(process, frames),
	                          .malformed = PROCESS_COUNT(process, malformed),
	                          .dead_letters = PROCESS_COUNT(process, dead_letters)};
	worker_zone(process->worker, 1, &figures.zone);
	return figures;
}

/* Both scenes have had the same, so what was counted is equal, however often it was judged. */
static void assert_figures_of_undisturbed(struct stage *stage)
{
	struct process undisturbed;
	AWAIT(all_done(stage->processes, 1));
	struct figures found = figures_of(&stage->processes[0]);
	process_start(&undisturbed, stage->reference, true, 0);
	process_give(&undisturbed, 15);
	AWAIT(all_done(&undisturbed, 1));
	struct figures expected = figures_of(&undisturbed);
	process_stop(&undisturbed, false);
	assert_true(expected.zone.blocked > 0 && expected.zone.decisions > 0 && expected.malformed > 0);
	assert_int_equal(found.zone.passed, expected.zone.passed);
	assert_int_equal(found.zone.blocked, expected.zone.blocked);
	assert_int_equal(found.zone.late, expected.zone.late);
	assert_int_equal(found.zone.decisions, expected.zone.decisions);
	assert_int_equal(found.events, expected.events);
	assert_int_equal(found.frames, expected.frames);
	assert_int_equal(found.malformed, expected.malformed);
	assert_int_equal(found.dead_letters, expected.dead_letters);
}

static void send_garbage(struct stage *stage)
{
	scene_send(stage->scene, 1, weir_span_of("no frame"));
	scene_send(stage->reference, 1, weir_span_of("no frame"));
}

/* Goes back to checkpoints far behind, and back again while what was counted is still judged again. */
static void what_is_judged_again_is_not_counted_again(void **state)
{
	struct stage *stage = *state;
	struct process *process = begin(stage, 0);
	feed(stage, 10);
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		AWAIT(stored_offset(stage, partition) == log_end(stage, partition));
	for (int i = 0; i < 2; i++) {
		faults.store_down = true; /* so what follows is in no checkpoint */
		feed(stage, 30);
		send_garbage(stage);
		AWAIT(all_done(process, 1));
		struct figures before = figures_of(process);
		int restarts = 1 + i, producers = faults.producers;
		faults.failed_deliveries = restarts;
		feed(stage, 1);
		AWAIT(process_state(process, 0) != WORKER_LIVE);
		faults.store_down = false;
		AWAIT(faults.producers == producers + restarts && all_done(process, 1));
		struct figures after = figures_of(process);
		assert_in_range(after.events, before.events, before.events + SCENE_PARTITIONS * SCENE_FRAME_EVENTS);
	}
	assert_figures_of_undisturbed(stage);
	end(stage);
}

/* While one topic acknowledges nothing, the other's acknowledgements, however many more they are, let no cut pass. */
static void no_checkpoint_passes_what_is_withheld(struct stage *stage, enum weir_topic topic, uint64_t version)
{
	struct process *process = &stage->processes[0];
	uint64_t before[SCENE_PARTITIONS];
	feed(stage, 10);
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		AWAIT((before[partition] = stored_offset(stage, partition)) == log_end(stage, partition));
	faults.withheld = (int)topic + 1;
	/* Each partition publishes to the topic at once: a lift with the second policy, a judged frame with what follows. */
	put_policy(stage, version, third_policy);
	put_policy(stage, version + 1, scene_config);
	for (int round = 0; round < 5; round++) {
		feed(stage, 2);
		AWAIT(all_done(process, 1));
		usleep(60000); /* two intervals of checkpoints: nothing says that none was stored */
	}
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		assert_in_range(stored_offset(stage, partition), before[partition],
		                before[partition] + (topic == WEIR_TOPIC_JUDGED ? 2 : 1));
	faults.withheld = 0;
}

static void a_checkpoint_waits_for_the_acknowledgements_of_each_topic(void **state)
{
	struct stage *stage = *state;
	begin(stage, 0);
	no_checkpoint_passes_what_is_withheld(stage, WEIR_TOPIC_DECISIONS, 2);
	no_checkpoint_passes_what_is_withheld(stage, WEIR_TOPIC_JUDGED, 4);
	end(stage);
}

/* Whoever ends it is told that the next owner judges again what it had judged. */
static void an_end_without_last_checkpoints_is_told(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	begin(stage, 0);
	const struct weir_counter *unstored = &worker_stats(process->workers[0])->unstored;
	feed(stage, 10);
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		AWAIT(stored_offset(stage, partition) == log_end(stage, partition));
	faults.withheld = WEIR_TOPIC_JUDGED + 1;
	feed(stage, 2);
	AWAIT(all_done(process, 1));
	worker_stop(process->workers[0], false);
	AWAIT(worker_ended(process->workers[0]));
	assert_int_equal(weir_counter_read(unstored), SCENE_PARTITIONS);
	faults.withheld = 0;
	process_stop(process, false);
	begin(stage, 0); /* and it does */
	unstored = &worker_stats(process->workers[0])->unstored;
	AWAIT(all_done(process, 1));
	worker_stop(process->workers[0], false);
	AWAIT(worker_ended(process->workers[0]));
	assert_int_equal(weir_counter_read(unstored), 0);
	process_stop(process, false);
	compare_with_undisturbed(stage->scene, stage->reference);
}

static bool is_behind(struct process *process)
{
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		if (process_is_done(process, partition))
			return false;
	return true;
}

static void a_checkpoint_that_is_too_old_holds_up_its_partition(void **state)
{
	struct stage *stage = *state;
	struct process *process = begin(stage, 300);
	feed(stage, 10);
	AWAIT(all_done(process, 1) && PROCESS_COUNT(process, checkpoints) > 0);
	faults.store_down = true;
	/* Each frame that is judged while the age is below the limit is fine; in the end none is. */
	int64_t end_ms = weir_monotonic_ms() + SCENE_PATIENCE_MS;
	for (bool held = false; !held;) {
		assert_true(weir_monotonic_ms() < end_ms);
		feed(stage, 1);
		usleep(100000);
		held = is_behind(process);
	}
	faults.store_down = false;
	end(stage);
}

/* The topic's retention may be changed at any time: the limit follows, both ways, and who looks sees what is judged. */
static void the_limit_of_a_checkpoints_age_follows_the_topic(void **state)
{
	struct stage *stage = *state;
	struct process *process = begin(stage, 0);
	feed(stage, 10);
	AWAIT(all_done(process, 1));
	faults.store_down = true;
	feed(stage, 10);
	AWAIT(all_done(process, 1)); /* there is no limit */
	worker_set_limits(process->worker, 50, 0);
	feed(stage, 10);
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		AWAIT(process_state(process, partition) == WORKER_PAUSED);
	assert_false(all_done(process, 1));
	worker_set_limits(process->worker, 3600000, 0);
	AWAIT(all_done(process, 1)); /* though the store is still down */
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		AWAIT(process_state(process, partition) == WORKER_LIVE);
	faults.store_down = false;
	end(stage);
}

static void a_gap_stops_its_partition_and_no_other(void **state)
{
	struct stage *stage = *state;
	faults.gap = 2 + 1;
	struct process *process = begin(stage, 0);
	feed(stage, 10);
	struct worker_partition look;
	AWAIT(process_state(process, 2) == WORKER_PARKED);
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		if (partition != 2)
			AWAIT(process_is_done(process, partition));
	worker_view(process->worker, 2, &look);
	assert_non_null(strstr(look.error, "weir recover --accept-gap"));
	worker_view(process->worker, 1, &look);
	assert_string_equal(look.error, "");
	faults.gap = 0;
	process_give(process, 15);
	AWAIT(process_state(process, 2) == WORKER_LIVE);
	worker_view(process->worker, 2, &look);
	assert_string_equal(look.error, "");
	end(stage);
}

/* Partition 2 meets a gap behind what is judged, of which the last is not stored. */
static struct process *meet_gap(struct stage *stage, bool cut_off)
{
	struct process *process = begin(stage, 0);
	feed(stage, 10);
	AWAIT(all_done(process, 1) && stored_offset(stage, 2) == log_end(stage, 2));
	faults.withheld = WEIR_TOPIC_JUDGED + 1;
	feed(stage, 10);
	AWAIT(all_done(process, 1));
	faults.cut_off = cut_off;
	faults.gap = 2 + 1;
	return process;
}

/* The log has it no more: nobody could judge it again. */
static void what_was_judged_before_a_gap_is_stored(void **state)
{
	struct stage *stage = *state;
	struct process *process = meet_gap(stage, false);
	struct worker_partition look;
	AWAIT(process_state(process, 2) == WORKER_LEAVING);
	worker_view(process->worker, 2, &look);
	assert_non_null(strstr(look.error, "weir recover --accept-gap"));
	assert_true(stored_offset(stage, 2) < look.next_offset);
	faults.withheld = 0;
	AWAIT(process_state(process, 2) == WORKER_PARKED);
	assert_int_equal(stored_offset(stage, 2), look.next_offset);
	faults.gap = 0;
	process_give(process, 15);
	AWAIT(process_state(process, 2) == WORKER_LIVE);
	end(stage);
}

/* A log that was cut off has other messages there next. */
static void what_was_judged_of_a_lost_end_is_not_stored(void **state)
{
	struct stage *stage = *state;
	struct process *process = meet_gap(stage, true);
	uint64_t stored = stored_offset(stage, 2);
	AWAIT(process_state(process, 2) == WORKER_PARKED);
	faults.withheld = 0;
	AWAIT(process_is_done(process, 1) && stored_offset(stage, 1) > stored);
	assert_int_equal(stored_offset(stage, 2), stored);
	faults.cut_off = false;
	faults.gap = 0;
	process_give(process, 15);
	end(stage);
}

static void what_is_no_frame_goes_to_the_dead_letters(void **state)
{
	struct stage *stage = *state;
	struct process *process = begin(stage, 0);
	feed(stage, 5);
	scene_send(stage->scene, 1, weir_span_of("not a frame \"at all\""));
	scene_send(stage->reference, 1, weir_span_of("not a frame \"at all\""));
	feed(stage, 5);
	AWAIT(all_done(process, 1));
	assert_int_equal(PROCESS_COUNT(process, malformed), 1);
	assert_int_equal(PROCESS_COUNT(process, dead_letters), 1);
	end(stage);
	struct lines dead_letters = scene_lines(stage->scene, WEIR_TOPIC_DEADLETTER);
	assert_int_equal(dead_letters.count, 1);
	assert_non_null(strstr(dead_letters.at[0], "\"partition\":1,\"position\":6,\"reason\":"));
	assert_non_null(strstr(dead_letters.at[0], "not a frame \\\"at all\\\""));
	lines_free(&dead_letters);
}

static void a_flood_of_what_is_no_frame_is_only_counted(void **state)
{
	struct stage *stage = *state;
	struct process *process = begin(stage, 0);
	for (int i = 0; i < 1000; i++) {
		scene_send(stage->scene, 0, weir_span_of("x"));
		scene_send(stage->reference, 0, weir_span_of("x"));
	}
	feed(stage, 5);
	AWAIT(all_done(process, 1));
	assert_int_equal(PROCESS_COUNT(process, malformed), 1000);
	assert_int_equal(PROCESS_COUNT(process, dead_letters) + PROCESS_COUNT(process, dead_letters_dropped), 1000);
	end(stage);
}

static void no_policy_is_waited_for(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	process_start(process, stage->scene, true, 0);
	process_give(process, 15);
	AWAIT(process_state(process, 3) == WORKER_TAKING);
	assert_int_equal(PROCESS_COUNT(process, taken), 0);
	put_policy(stage, 1, scene_config);
	feed(stage, 5);
	end(stage);
}

static void a_policy_that_the_log_names_first_is_read_from_the_store(void **state)
{
	struct stage *stage = *state;
	begin(stage, 0);
	feed(stage, 10);
	put_policy(stage, 2, second_policy);
	feed(stage, 10);
	put_policy(stage, 3, scene_config);
	feed(stage, 10);
	AWAIT(all_done(stage->processes, 1));
	assert_int_equal(policy_registry_newest(stage->processes[0].registry), 3);
	end(stage);
}

/* A store that is a moment behind: the partitions wait, say so, and are under the policy in the end. */
static void a_policy_that_the_store_does_not_show_yet_is_waited_for(void **state)
{
	struct stage *stage = *state;
	struct process *process = begin(stage, 0);
	feed(stage, 10);
	faults.hidden_policy = 2;
	put_policy(stage, 2, second_policy);
	feed(stage, 10);
	struct worker_partition look;
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++) {
		AWAIT((process_view(process, partition, &look), look.error[0] != '\0'));
		assert_non_null(strstr(look.error, "policy 2 is in the log but not in the store"));
		AWAIT((process_view(process, partition, &look), look.next_offset == 11));
	}
	faults.hidden_policy = 0;
	AWAIT(all_done(process, 1));
	process_view(process, 0, &look);
	assert_string_equal(look.error, "");
	assert_int_equal(PROCESS_COUNT(process, malformed), 0);
	end(stage);
}

/* A number that nobody can have given, or no policy at all: passed over, as is whatever else is no message. */
static void a_policy_that_nobody_has_numbered_is_not_waited_for(void **state)
{
	struct stage *stage = *state;
	struct process *process = begin(stage, 0);
	const char *zones = stage->scene->config->policy->text;
	const struct {
		uint64_t version;
		const char *text;
	} foreign[] = {{9, zones}, {2, "{}"}, {UINT64_MAX, zones}};
	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
		size_t length;
		char *message = weir_frame_control(WEIR_FRAME_POLICY, SCENE_START_MS, foreign[i].version,
		                                   weir_span_of(foreign[i].text), &length);
		scene_send(stage->scene, 1, (struct weir_span){message, (uint32_t)length});
		free(message);
	}
	AWAIT(PROCESS_COUNT(process, malformed) == sizeof foreign / sizeof *foreign);
	AWAIT(all_done(process, 1));
	process_stop(process, false);
}

/* A frame of a newer weir: the partition stands, says so, and is stored when it goes. */
static void what_is_newer_is_waited_at(void **state)
{
	struct stage *stage = *state;
	struct process *process = begin(stage, 0);
	feed(stage, 5);
	size_t length;
	char *message = weir_frame_control(WEIR_FRAME_POLICY, SCENE_START_MS, 9, weir_span_of("{}"), &length);
	message[2] = 99;
	scene_send(stage->scene, 3, (struct weir_span){message, (uint32_t)length});
	free(message);
	struct worker_partition look;
	AWAIT((worker_view(process->worker, 3, &look), look.error[0] != '\0'));
	assert_non_null(strstr(look.error, "newer"));
	AWAIT(process_state(process, 3) == WORKER_PARKED); /* whoever counts what is judged does not count it */
	scene_feed(stage->scene, 5);
	for (uint32_t partition = 0; partition < 3; partition++)
		AWAIT(process_is_done(process, partition));
	process_give(process, 7);
	AWAIT(process_state(process, 3) == WORKER_EMPTY);
	worker_view(process->worker, 3, &look);
	assert_string_equal(look.error, "");
	assert_int_equal(look.next_offset, 6);
	process_stop(process, false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_broken_producer_is_replaced_and_nothing_is_lost, stage_set_up,
	                                    stage_tear_down),
		cmocka_unit_test_setup_teardown(what_is_judged_again_is_not_counted_again, stage_set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(a_store_that_is_down_stops_only_checkpoints, stage_set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(a_checkpoint_waits_for_the_acknowledgements_of_each_topic, stage_set_up,
	                                    stage_tear_down),
		cmocka_unit_test_setup_teardown(an_end_without_last_checkpoints_is_told, stage_set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(a_checkpoint_that_is_too_old_holds_up_its_partition, stage_set_up,
	                                    stage_tear_down),
		cmocka_unit_test_setup_teardown(the_limit_of_a_checkpoints_age_follows_the_topic, stage_set_up,
	                                    stage_tear_down),
		cmocka_unit_test_setup_teardown(a_gap_stops_its_partition_and_no_other, stage_set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(what_was_judged_before_a_gap_is_stored, stage_set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(what_was_judged_of_a_lost_end_is_not_stored, stage_set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_frame_goes_to_the_dead_letters, stage_set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(a_flood_of_what_is_no_frame_is_only_counted, stage_set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(no_policy_is_waited_for, stage_set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(a_policy_that_the_log_names_first_is_read_from_the_store, stage_set_up,
	                                    stage_tear_down),
		cmocka_unit_test_setup_teardown(a_policy_that_the_store_does_not_show_yet_is_waited_for, stage_set_up,
	                                    stage_tear_down),
		cmocka_unit_test_setup_teardown(a_policy_that_nobody_has_numbered_is_not_waited_for, stage_set_up,
	                                    stage_tear_down),
		cmocka_unit_test_setup_teardown(what_is_newer_is_waited_at, stage_set_up, stage_tear_down),
	};
	scene_end_at_failure();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
