/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint I/O on a store that fails, partition by partition: what waits, in which order, and what it is told in the end. */
#include "limiter/checkpoint/checkpoint_io.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000, EPOCH = 7 };

static struct weir_error error;

/* A store of which a test sets what it answers; read by the thread. */
struct odd_store {
	struct weir_store store;
	_Atomic uint32_t down;         /* this partition + 1 is WEIR_IO; 0: none */
	_Atomic uint32_t locked;       /* so many partitions from 0 on are WEIR_IO, after a wait */
	_Atomic uint64_t epoch;        /* that a look shows */
	_Atomic int refused;           /* so many of the next readings are WEIR_FENCED */
	_Atomic int failed_notes;      /* so many of the next notes are WEIR_IO */
	_Atomic uint64_t at_least;     /* of the last reading */
	char notes[4][40];             /* as they were put */
	_Atomic unsigned put, reading; /* how many were */
};

static struct odd_store odd;

static enum weir_status odd_read(struct weir_store *store, uint32_t partition, uint64_t epoch, uint64_t at_least,
                                 const uint32_t *segments, size_t count,
                                 enum weir_status (*each)(void *context, const struct weir_segment_blob *blob),
                                 void *context, struct weir_error *why)
{
	(void)store, (void)epoch, (void)segments, (void)count, (void)each, (void)context;
	atomic_store(&odd.at_least, at_least);
	atomic_fetch_add(&odd.reading, 1);
	if (partition < atomic_load(&odd.locked)) {
		nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 100000000}, NULL);
		return weir_fail(why, WEIR_IO, "the row is locked");
	}
	if (atomic_load(&odd.down) == partition + 1)
		return weir_fail(why, WEIR_IO, "the row is locked");
	if (atomic_load(&odd.refused) > 0) {
		atomic_fetch_sub(&odd.refused, 1);
		return weir_fail(why, WEIR_FENCED, "it is gone");
	}
	return WEIR_OK;
}

static enum weir_status odd_inspect(struct weir_store *store, int role, uint32_t partition,
                                    struct weir_partition_state *state, struct weir_error *why)
{
	(void)store, (void)role, (void)why;
	*state = (struct weir_partition_state){.partition = partition, .epoch = atomic_load(&odd.epoch)};
	return WEIR_OK;
}

static enum weir_status odd_note(struct weir_store *store, const char *name, struct weir_span value,
                                 struct weir_error *why)
{
	(void)store, (void)name;
	if (atomic_load(&odd.failed_notes) > 0) {
		atomic_fetch_sub(&odd.failed_notes, 1);
		return weir_fail(why, WEIR_IO, "the row is locked");
	}
	memcpy(odd.notes[odd.put], value.at, value.length);
	atomic_fetch_add(&odd.put, 1);
	return WEIR_OK;
}

static void odd_close(struct weir_store *store)
{
	(void)store;
}

static enum weir_status open_odd(void *context, struct weir_store **store, struct weir_error *why)
{
	(void)context, (void)why;
	*store = &odd.store;
	return WEIR_OK;
}

struct scene {
	struct weir_log log;
	struct checkpoint_io *io;
	struct checkpoint_replies replies;
};

static int set_up(void **state)
{
	static const struct weir_store_ops ops = {
		.name = "odd", .read_segments = odd_read, .inspect = odd_inspect, .note_put = odd_note, .close = odd_close};
	static struct scene scene;
	memset(&odd, 0, sizeof odd);
	odd.store.ops = &ops;
	odd.epoch = EPOCH;
	scene.log = (struct weir_log){.level = WEIR_LOG_ERROR};
	checkpoint_replies_init(&scene.replies, -1);
	*state = &scene;
	return checkpoint_io_start(open_odd, NULL, &scene.log, &scene.io, &error) == WEIR_OK ? 0 : -1;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	checkpoint_io_stop(scene->io);
	checkpoint_replies_deinit(&scene->replies);
	return 0;
}

static void submit(struct scene *scene, enum checkpoint_job_kind kind, uint32_t partition, bool left)
{
	struct checkpoint_job *job = weir_alloc(1, sizeof *job);
	*job = (struct checkpoint_job){
		.kind = kind, .partition = partition, .replies = &scene->replies, .epoch = EPOCH, .at_least = 3, .left = left};
	checkpoint_io_submit(scene->io, job);
}

/* The next one that is done. */
static struct checkpoint_job *await(struct scene *scene)
{
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	struct checkpoint_job *job;
	while ((job = checkpoint_replies_take(&scene->replies)) == NULL) {
		if (weir_monotonic_ms() > end_ms)
			fail_msg("no job is done");
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return job;
}

static void expect(struct scene *scene, uint32_t partition, enum weir_status status, bool lost)
{
	struct checkpoint_job *job = await(scene);
	assert_int_equal(partition, job->partition);
	assert_int_equal(status, job->status);
	assert_int_equal(lost, job->lost);
	checkpoint_job_free(job);
}

static void a_partition_with_a_fault_holds_up_no_other(void **state)
{
	struct scene *scene = *state;
	atomic_store(&odd.down, 1);
	for (uint32_t round = 0; round < 3; round++) {
		if (round == 0)
			submit(scene, CHECKPOINT_LOAD, 0, false);
		for (uint32_t i = 1; i < 40; i++)
			submit(scene, CHECKPOINT_LOAD, i, false);
		for (uint32_t i = 1; i < 40; i++)
			expect(scene, i, WEIR_OK, false);
	}
	assert_true(checkpoint_io_fails(scene->io));
	assert_int_equal(3, atomic_load(&odd.at_least));
	atomic_store(&odd.down, 0);
	expect(scene, 0, WEIR_OK, false);
	assert_false(checkpoint_io_fails(scene->io));
}

/* Each failure takes longer than the wait for the next try: so one of them is always due. */
static void partitions_with_slow_faults_hold_up_no_other(void **state)
{
	struct scene *scene = *state;
	atomic_store(&odd.locked, 2);
	for (uint32_t i = 0; i < 2; i++)
		submit(scene, CHECKPOINT_LOAD, i, false);
	while (atomic_load(&odd.reading) < 4)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	for (uint32_t i = 2; i < 4; i++)
		submit(scene, CHECKPOINT_LOAD, i, false);
	for (uint32_t i = 2; i < 4; i++)
		expect(scene, i, WEIR_OK, false);
	atomic_store(&odd.locked, 0);
	checkpoint_job_free(await(scene));
	checkpoint_job_free(await(scene));
}

static void jobs_of_a_partition_are_done_in_their_order(void **state)
{
	struct scene *scene = *state;
	atomic_store(&odd.failed_notes, 2);
	submit(scene, CHECKPOINT_ANNOUNCE, 5, false);
	submit(scene, CHECKPOINT_ANNOUNCE, 5, true);
	submit(scene, CHECKPOINT_LOAD, 6, false);
	expect(scene, 6, WEIR_OK, false);
	expect(scene, 5, WEIR_OK, false);
	expect(scene, 5, WEIR_OK, false);
	assert_string_equal("leaving 7", odd.notes[0]);
	assert_string_equal("left 7", odd.notes[1]);
}

static void a_store_that_lags_is_asked_again(void **state)
{
	struct scene *scene = *state;
	atomic_store(&odd.refused, 1);
	submit(scene, CHECKPOINT_LOAD, 0, false);
	submit(scene, CHECKPOINT_LOAD, 1, false);
	expect(scene, 1, WEIR_OK, false);
	expect(scene, 0, WEIR_OK, false);
}

static void what_a_store_has_lost_is_told_from_another_owner(void **state)
{
	struct scene *scene = *state;
	atomic_store(&odd.refused, 1000);
	submit(scene, CHECKPOINT_LOAD, 0, false);
	expect(scene, 0, WEIR_FENCED, true);
	assert_true(atomic_load(&odd.reading) > 1);
	atomic_store(&odd.reading, 0);
	atomic_store(&odd.epoch, EPOCH + 1);
	submit(scene, CHECKPOINT_LOAD, 0, false);
	expect(scene, 0, WEIR_FENCED, false);
	assert_int_equal(1, atomic_load(&odd.reading));
}

static void what_waits_is_given_back_at_the_end(void **state)
{
	struct scene *scene = *state;
	atomic_store(&odd.down, 1);
	for (int i = 0; i < 3; i++)
		submit(scene, CHECKPOINT_LOAD, 0, false);
	submit(scene, CHECKPOINT_LOAD, 1, false);
	expect(scene, 1, WEIR_OK, false);
	int64_t began_ms = weir_monotonic_ms();
	checkpoint_io_stop(scene->io);
	scene->io = NULL;
	assert_true(weir_monotonic_ms() - began_ms < PATIENCE_MS);
	for (int i = 0; i < 3; i++)
		expect(scene, 0, WEIR_IO, false);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(a_partition_with_a_fault_holds_up_no_other), test(jobs_of_a_partition_are_done_in_their_order),
		test(a_store_that_lags_is_asked_again),           test(what_a_store_has_lost_is_told_from_another_owner),
		test(what_waits_is_given_back_at_the_end),        test(partitions_with_slow_faults_hold_up_no_other),
	};
	return cmocka_run_group_tests_name("checkpoint_io", tests, NULL, NULL);
}
