/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition's checkpoints: what each waits for, and what a failed one and one
 * that is given up leave. The lane, checkpoint I/O and the store are real.
 */
#include "held_bus.h"

#include "common/base/clock.h"
#include "common/store/sqlite/store_sqlite.h"
#include "limiter/worker/checkpointing.h"
#include "scratch.h"

#include <time.h>

enum { PATIENCE_MS = 60000, PARTITION = 1 };

static const char policy[] =
	"{\"zones\":[{\"id\":1,\"name\":\"site\",\"key\":[\"user\"],\"limits\":[{\"algorithm\":\"sliding_window\","
	"\"rate\":5,\"window\":\"1m\"}]}]}";

struct scene {
	struct held held;
	char *directory;
	struct weir_store *store;
	struct checkpoint_io *io;
	struct policy_registry *registry;
	struct lane *lane;
	struct checkpointing checkpointing;
	uint64_t offset; /* of the next message */
};

static enum weir_status open_store(void *context, struct weir_store **store, struct weir_error *error)
{
	return weir_store_sqlite_open(context, store, error);
}

static int set_up(void **state)
{
	static struct scene scene;
	scene = (struct scene){.directory = scratch_new(), .registry = policy_registry_new()};
	struct weir_error *error = &scene.held.error;
	held_begin(&scene.held);
	checkpoint_replies_init(&scene.held.core.replies, -1);
	assert_int_equal(weir_store_sqlite_open(scene.directory, &scene.store, error), WEIR_OK);
	assert_int_equal(checkpoint_io_start(open_store, scene.directory, &scene.held.log, &scene.io, error), WEIR_OK);
	scene.held.core.options.checkpoint_writer = scene.io;
	assert_int_equal(policy_registry_add(scene.registry, 1, weir_span_of(policy), error), WEIR_OK);
	struct shard_options options = {.partition = PARTITION, .ceiling_bytes = 64 << 20, .lateness_ms = 1000};
	scene.lane = lane_new(&options, scene.registry, 1);
	struct checkpoint_partition *taken = calloc(1, sizeof *taken);
	struct weir_partition_state row;
	struct weir_text extra = {0};
	assert_int_equal(checkpoint_take(taken, scene.store, PARTITION, &row, &extra, error), WEIR_OK);
	checkpointing_begin(&scene.checkpointing, taken, &row);
	weir_text_deinit(&extra);
	free(taken);
	*state = &scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	checkpoint_io_stop(scene->io);
	checkpoint_replies_deinit(&scene->held.core.replies);
	held_end(&scene->held);
	lane_free(scene->lane);
	policy_registry_free(scene->registry);
	scene->store->ops->close(scene->store);
	scratch_remove(scene->directory);
	free(scene->directory);
	return 0;
}

/* ---- steps ---- */

/* What is no frame is passed over, and moves the lane on. */
static void change(struct scene *scene)
{
	struct lane_result result;
	assert_int_equal(lane_offer(scene->lane, weir_span_of("no frame"), scene->offset++, 0, &result, &scene->held.error),
	                 WEIR_INVALID);
}

static void cut(struct scene *scene)
{
	checkpointing_cut(&scene->checkpointing, &scene->held.publisher, scene->lane, weir_monotonic_ms());
}

static void go_on(struct scene *scene)
{
	checkpointing_go_on(&scene->checkpointing, &scene->held.publisher, scene->lane, weir_monotonic_ms());
}

static struct checkpoint_job *await_answer(struct scene *scene)
{
	struct checkpoint_job *job;
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while ((job = checkpoint_replies_take(&scene->held.core.replies)) == NULL) {
		assert_true(weir_monotonic_ms() < end_ms);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	checkpointing_answered(&scene->checkpointing, scene->lane, job);
	return job;
}

static uint64_t stored_offset(struct scene *scene)
{
	struct weir_partition_state row;
	assert_int_equal(scene->store->ops->inspect(scene->store, WEIR_STORE_ROLE_LIMITER, PARTITION, &row, NULL), WEIR_OK);
	return row.next_offset;
}

/* ---- tests ---- */

static void nothing_new_is_not_cut(void **state)
{
	struct scene *scene = *state;
	assert_true(checkpointing_is_done(&scene->checkpointing, scene->lane));
	cut(scene);
	assert_int_equal(scene->checkpointing.state, CHECKPOINTING_IDLE);
	change(scene);
	assert_false(checkpointing_is_done(&scene->checkpointing, scene->lane));
	cut(scene);
	assert_int_equal(scene->checkpointing.state, CHECKPOINTING_CUT);
	checkpointing_give_up(&scene->checkpointing, scene->lane);
}

static void a_cut_waits_for_what_was_published_before_it(void **state)
{
	struct scene *scene = *state;
	struct checkpointing *checkpointing = &scene->checkpointing;
	change(scene);
	held_publish(&scene->held, PARTITION, WEIR_TOPIC_DECISIONS);
	held_publish(&scene->held, PARTITION, WEIR_TOPIC_JUDGED);
	cut(scene);
	change(scene);
	held_publish(&scene->held, PARTITION, WEIR_TOPIC_JUDGED); /* behind the cut: it is not waited for */
	go_on(scene);
	held_answer(&scene->held, 1, WEIR_OK);
	go_on(scene);
	assert_int_equal(checkpointing->state, CHECKPOINTING_CUT);
	assert_int_equal(stored_offset(scene), 0);
	held_answer(&scene->held, 0, WEIR_OK);
	go_on(scene);
	assert_int_equal(checkpointing->state, CHECKPOINTING_STORING);
	cut(scene); /* one at a time */
	assert_int_equal(checkpointing->state, CHECKPOINTING_STORING);
	struct checkpoint_job *job = await_answer(scene);
	assert_int_equal(job->status, WEIR_OK);
	assert_int_equal(checkpointing->state, CHECKPOINTING_IDLE);
	assert_int_equal(bus.consumed, 0);
	checkpointing_advance(checkpointing, &scene->held.core, job);
	checkpoint_job_free(job);
	assert_int_equal(checkpointing->current, 1);
	assert_int_equal(checkpointing->stored, 1);
	assert_int_equal(bus.consumed, 1);
	assert_int_equal(stored_offset(scene), 1);
	assert_false(checkpointing_is_done(checkpointing, scene->lane)); /* the second message is in none */
}

static void who_is_fenced_stores_nothing(void **state)
{
	struct scene *scene = *state;
	struct checkpoint_partition *other = calloc(1, sizeof *other);
	struct weir_partition_state row;
	struct weir_text extra = {0};
	change(scene);
	cut(scene);
	assert_int_equal(checkpoint_take(other, scene->store, PARTITION, &row, &extra, &scene->held.error), WEIR_OK);
	weir_text_deinit(&extra);
	free(other);
	go_on(scene);
	struct checkpoint_job *job = await_answer(scene);
	assert_int_equal(job->status, WEIR_FENCED);
	assert_false(job->lost); /* it has another owner */
	checkpoint_job_free(job);
	assert_int_equal(scene->checkpointing.state, CHECKPOINTING_IDLE);
	assert_int_equal(scene->checkpointing.stored, 0);
	assert_int_equal(stored_offset(scene), 0);
}

static void what_is_given_up_is_cut_again_with_what_comes(void **state)
{
	struct scene *scene = *state;
	change(scene);
	cut(scene);
	checkpointing_give_up(&scene->checkpointing, scene->lane);
	assert_int_equal(scene->checkpointing.state, CHECKPOINTING_IDLE);
	checkpointing_give_up(&scene->checkpointing, scene->lane); /* there is none */
	change(scene);
	cut(scene);
	go_on(scene);
	checkpointing_give_up(&scene->checkpointing, scene->lane); /* nothing takes it back from checkpoint I/O */
	assert_int_equal(scene->checkpointing.state, CHECKPOINTING_STORING);
	struct checkpoint_job *job = await_answer(scene);
	assert_int_equal(job->status, WEIR_OK);
	checkpoint_job_free(job);
	assert_int_equal(stored_offset(scene), 2);
}

static void a_change_that_no_checkpoint_holds_grows_old(void **state)
{
	struct scene *scene = *state;
	struct checkpointing *checkpointing = &scene->checkpointing;
	checkpointing->safe_ms -= 10000;
	assert_false(checkpointing_is_overdue(checkpointing, scene->lane, 1000)); /* nothing has changed */
	change(scene);
	assert_true(checkpointing_is_overdue(checkpointing, scene->lane, 1000));
	assert_false(checkpointing_is_overdue(checkpointing, scene->lane, 1000000));
	assert_false(checkpointing_is_overdue(checkpointing, scene->lane, 0)); /* no limit */
}

static void only_these_changes_are_legal(void **state)
{
	(void)state;
	static const bool legal[CHECKPOINTING_STATE_COUNT][CHECKPOINTING_STATE_COUNT] = {
		[CHECKPOINTING_IDLE] = {[CHECKPOINTING_CUT] = true},
		[CHECKPOINTING_CUT] = {[CHECKPOINTING_STORING] = true, [CHECKPOINTING_IDLE] = true},
		[CHECKPOINTING_STORING] = {[CHECKPOINTING_IDLE] = true},
	};
	for (int from = 0; from < CHECKPOINTING_STATE_COUNT; from++)
		for (int to = 0; to < CHECKPOINTING_STATE_COUNT; to++)
			assert_int_equal(
				checkpointing_state_may_follow((enum checkpointing_state)from, (enum checkpointing_state)to),
				legal[from][to]);
}

static void answer_what_nobody_asked(void *context)
{
	struct scene *scene = context;
	struct checkpoint_job job = {.status = WEIR_OK};
	checkpointing_answered(&scene->checkpointing, scene->lane, &job);
}

static void an_answer_that_nobody_waits_for_ends_the_program(void **state)
{
#ifndef WEIR_LIBRARIES_ASSERT
	skip();
#endif
	assert_true(held_is_asserted(answer_what_nobody_asked, *state));
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(nothing_new_is_not_cut),
		test(a_cut_waits_for_what_was_published_before_it),
		test(who_is_fenced_stores_nothing),
		test(what_is_given_up_is_cut_again_with_what_comes),
		test(a_change_that_no_checkpoint_holds_grows_old),
		test(only_these_changes_are_legal),
		test(an_answer_that_nobody_waits_for_ends_the_program),
	};
	return cmocka_run_group_tests_name("checkpointing", tests, NULL, NULL);
}
