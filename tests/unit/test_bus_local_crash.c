/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local bus under kill -9: a child produces, is killed at a moment of its own, and everything that it saw delivered
 * is there, in order, once. WEIR_ROUNDS sets how often (200).
 */
#include "bus_fixture.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* What the child tells before it dies. */
struct told {
	_Atomic uint64_t delivered[FIXTURE_PARTITIONS]; /* next offset that it knows to be durable */
	_Atomic bool ready;                             /* the bus is open */
};

/* Goes on where the log ends, so that a message's payload is its offset, and never stops. */
static void produce_until_killed(struct fixture *fixture, struct told *told, unsigned seed)
{
	uint64_t next[FIXTURE_PARTITIONS], first;
	struct weir_delivery deliveries[64];
	struct weir_message messages[64];
	size_t count;
	fixture_open(fixture);
	for (uint32_t i = 0; i < FIXTURE_PARTITIONS; i++)
		fixture_extent(fixture, i, &first, &next[i]);
	struct weir_consumer *consumer = fixture_consumer(fixture, "limiter");
	fixture_extent(fixture, 0, &first, &next[0]);
	fixture_assign(fixture, consumer, 0, next[0]);
	told->ready = true;
	for (;;) {
		uint32_t partition = (uint32_t)rand_r(&seed) % FIXTURE_PARTITIONS;
		size_t bytes = rand_r(&seed) % 50 == 0 ? 30000 : (size_t)(rand_r(&seed) % 700);
		if (fixture_send_number(fixture, partition, next[partition], bytes) == WEIR_OK)
			next[partition]++;
		count = fixture->ops->poll(fixture->producer, deliveries, 64, rand_r(&seed) % 30 == 0 ? 1 : 0);
		for (size_t i = 0; i < count; i++) {
			if (deliveries[i].status != WEIR_OK)
				_exit(1);
			told->delivered[deliveries[i].partition] = deliveries[i].offset + 1;
		}
		if (fixture->ops->receive(consumer, messages, 64, 0, &count, &fixture->error) != WEIR_OK)
			_exit(2);
		for (size_t i = 0; i < count; i++)
			fixture->ops->consumed(consumer, 0, messages[i].offset + 1);
	}
}

static void what_was_delivered_survives(void **state)
{
	struct fixture *fixture = *state;
	const char *rounds_text = getenv("WEIR_ROUNDS");
	int rounds = rounds_text != NULL ? atoi(rounds_text) : 200;
	struct told *told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(told != MAP_FAILED);
	unsigned seed = 1;
	uint64_t lost = 0;
	fixture->options.retention_bytes = 4 << 20;
	fixture_close(fixture);
	for (int round = 0; round < rounds; round++) {
		fflush(stdout);
		unsigned child_seed = (unsigned)rand_r(&seed);
		pid_t child = fork();
		if (child == 0) {
			produce_until_killed(fixture, told, child_seed);
			_exit(3);
		}
		/* Most of them die while they produce, some while they open the bus. */
		for (int wait = 0; round % 4 != 0 && wait < 10000 && !told->ready; wait++)
			usleep(1000);
		usleep((useconds_t)(rand_r(&seed) % 20000));
		told->ready = false;
		assert_int_equal(0, kill(child, SIGKILL));
		int status;
		assert_int_equal(child, waitpid(child, &status, 0));
		assert_true(WIFSIGNALED(status));

		fixture_open(fixture);
		for (uint32_t i = 0; i < FIXTURE_PARTITIONS; i++) {
			uint64_t next = fixture_check_numbers(fixture, i);
			if (next < told->delivered[i])
				fail_msg("round %d: partition %u ends at %llu, delivered were %llu", round, i, (unsigned long long)next,
				         (unsigned long long)told->delivered[i]);
			lost += next - told->delivered[i];
			told->delivered[i] = next;
		}
		fixture_close(fixture);
	}
	uint64_t total = 0;
	for (uint32_t i = 0; i < FIXTURE_PARTITIONS; i++)
		total += told->delivered[i];
	print_message("%d rounds, %" PRIu64 " messages, %" PRIu64 " written and not yet told\n", rounds, total, lost);
	assert_true(total > 0);
	munmap(told, sizeof *told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_delivered_survives, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("bus_local_crash", tests, NULL, NULL);
}
