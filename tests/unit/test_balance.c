/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions that move between the threads of one process: at any moment, and as
 * the balance finds, decisions and states are those of one undisturbed worker.
 */
#include "limiter/worker/balance.h"
#include "worker_results.h"

enum { THREADS = 2, SEND_TAKES_MS = 5 };

static int set_up(void **state)
{
	stage_set_up(state);
	struct stage *stage = *state;
	put_policy(stage, 1, scene_config);
	process_start_threads(&stage->processes[0], stage->scene, true, 0, THREADS);
	return 0;
}

static void end(struct stage *stage)
{
	AWAIT(all_done(stage->processes, 1));
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(weir_counter_read(&worker_stats(stage->processes[0].workers[i])->fenced), 0);
	process_stop(&stage->processes[0], false);
	compare_with_undisturbed(stage->scene, stage->reference);
}

static void partitions_move_between_threads_while_the_log_grows(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	process_give(process, 15);
	uint32_t seed = 1;
	for (int i = 0; i < 40; i++) {
		feed(stage, 6);
		for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++) {
			seed = seed * 1103515245 + 12345;
			placement_move(process->placement, partition, seed >> 20 & 1);
		}
		if (i % 4 == 3)
			AWAIT(all_done(process, 1));
		if (i % 10 == 9)
			process_give(process, 15 & ~(1u << (seed >> 24 & 3)));
		else if (i % 10 == 0)
			process_give(process, 15);
	}
	process_give(process, 15);
	end(stage);
}

/* Frames by partition: threads 0 and 1 have 0 and 2, 1 and 3. */
static void feed_unevenly(struct scene *scene)
{
	static const uint32_t frames[SCENE_PARTITIONS] = {300, 50, 200, 50};
	uint32_t sent = 0;
	for (uint32_t round = 0; round < 50; round++)
		for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
			for (uint32_t i = 0; i < frames[partition] / 50; i++, sent++)
				scene_feed_frame(scene, partition);
	scene_settle(scene, sent);
}

static struct balance *balance_of(struct stage *stage)
{
	struct process *process = &stage->processes[0];
	struct balance_options options = {
		.assignment = process->assignment,
		.placement = process->placement,
		.partitions = SCENE_PARTITIONS,
		.workers = process->workers,
		.worker_count = THREADS,
		.checkpoint_writer = process->checkpoint_writer,
		.checkpoint_reader = process->checkpoint_reader,
		.log = &stage->scene->log,
	};
	return balance_new(&options);
}

/* Lets the balance look; gives whether all is judged. */
static bool balance_turn_and_tell(struct balance *balance, struct process *process)
{
	balance_turn(balance);
	return all_done(process, 1);
}

static uint64_t moves_after_a_turn(struct balance *balance)
{
	balance_turn(balance);
	return balance_moves(balance);
}

/* Those two partitions that have the most come to have a thread each. */
static void a_hot_partition_ends_with_less_beside_it(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	struct balance *balance = balance_of(stage);
	faults.send_takes_ms = SEND_TAKES_MS; /* so that threads are busy, on any machine */
	feed_unevenly(stage->scene);
	feed_unevenly(stage->reference);
	process_give(process, 15);
	AWAIT(moves_after_a_turn(balance) > 0);
	uint64_t moves = balance_moves(balance);
	assert_int_not_equal(placement_of(process->placement, 0), placement_of(process->placement, 2));
	faults.send_takes_ms = 0;
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		AWAIT(placement_holder(process->placement, partition) == placement_of(process->placement, partition) &&
		      process_state(process, partition) == WORKER_LIVE);
	balance_turn(balance);
	assert_int_equal(balance_moves(balance), moves); /* it rests */
	balance_free(balance);
	end(stage);
}

/* What would move could not be stored nor taken, and the process is to judge on. */
static void nothing_moves_while_the_store_is_away(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	struct balance *balance = balance_of(stage);
	process_give(process, 15);
	feed(stage, 1);
	AWAIT(all_done(process, 1));
	faults.store_down = true;
	feed(stage, 1);
	AWAIT(checkpoint_io_fails(process->checkpoint_writer));
	faults.send_takes_ms = SEND_TAKES_MS;
	feed_unevenly(stage->scene);
	feed_unevenly(stage->reference);
	AWAIT(balance_turn_and_tell(balance, process));
	assert_int_equal(balance_moves(balance), 0);
	faults.store_down = false;
	faults.send_takes_ms = 0;
	balance_free(balance);
	end(stage);
}

int main(int argc, char **argv)
{
	scene_end_at_failure();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(partitions_move_between_threads_while_the_log_grows, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(a_hot_partition_ends_with_less_beside_it, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(nothing_moves_while_the_store_is_away, set_up, stage_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
