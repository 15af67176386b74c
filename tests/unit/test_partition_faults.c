/* SPDX-License-Identifier: Apache-2.0 */
/* One line for a fault that many partitions share, by a clock of the test; and whether a process has run. */
#include "common/log/partition_faults.h"
#include "common/log/stall.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PARTITIONS = 8 };

static int pipe_ends[2];
static int64_t now_ms;
static struct weir_log test_log;
static struct weir_partition_faults faults;

static int64_t test_clock_ms(void)
{
	return now_ms;
}

static int setup(void **state)
{
	(void)state;
	now_ms = 5000;
	assert_int_equal(0, pipe2(pipe_ends, O_NONBLOCK));
	test_log.fd = pipe_ends[1];
	test_log.clock_ms = test_clock_ms;
	weir_partition_faults_init(&faults, PARTITIONS, &test_log, "limiter");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	weir_partition_faults_deinit(&faults);
	close(pipe_ends[0]);
	return close(pipe_ends[1]);
}

/* The owner's loop: a look each half second. @return the lines of that time, without their times */
static const char *said_within(int64_t ms)
{
	static char all[65536], lines[65536];
	for (int64_t end_ms = now_ms + ms; now_ms < end_ms; now_ms += 500)
		weir_partition_faults_tell(&faults);
	ssize_t length = read(pipe_ends[0], all, sizeof all - 1);
	lines[0] = '\0';
	all[length > 0 ? length : 0] = '\0';
	for (char *line = strtok(all, "\n"); line != NULL; line = strtok(NULL, "\n"))
		snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s\n", line + 25);
	return lines;
}

static void stop(uint32_t partition, const char *cause)
{
	weir_partition_faults_raise(&faults, partition, WEIR_LOG_ERROR, "stopped", cause);
}

static void stop_at_gap(uint32_t partition)
{
	char cause[64];
	snprintf(cause, sizeof cause, "%u messages from offset %u on are lost", 386 + partition, 25779 * partition);
	stop(partition, cause);
}

static void partitions_that_stop_one_after_another_are_one_line(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PARTITIONS; i++) {
		stop_at_gap(PARTITIONS - 1 - i);
		assert_string_equal("", said_within(500));
	}
	assert_string_equal("ERROR limiter: partitions 0-7 are stopped (8 of 8): 386 messages from offset 0 on are lost\n",
	                    said_within(3000));
	for (int i = 0; i < 100; i++) { /* each is tried again, and stops again */
		stop_at_gap((uint32_t)i % PARTITIONS);
		assert_string_equal("", said_within(500));
	}
}

static void one_that_joins_is_told_but_not_at_once(void **state)
{
	(void)state;
	stop_at_gap(3);
	assert_string_equal("ERROR limiter: partition 3 is stopped (1 of 8): 389 messages from offset 77337 on are lost\n",
	                    said_within(2000));
	stop_at_gap(1);
	assert_string_equal("", said_within(6000));
	stop_at_gap(2);
	assert_string_equal(
		"ERROR limiter: partitions 1-3 are stopped (3 of 8): 387 messages from offset 25779 on are lost\n",
		said_within(6000));
}

static void recovery_is_one_line_and_does_not_flap(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PARTITIONS; i++)
		weir_partition_faults_raise(&faults, i, WEIR_LOG_ERROR, "paused", "no checkpoint");
	assert_string_equal("ERROR limiter: partitions 0-7 are paused (8 of 8): no checkpoint\n", said_within(2000));
	now_ms += 66000;
	for (int turn = 0; turn < 3; turn++) /* one after another they are free, and some wait again */
		for (uint32_t i = 0; i < PARTITIONS; i++) {
			weir_partition_faults_clear(&faults, i);
			if (turn < 2 && i % 2 == 0)
				weir_partition_faults_raise(&faults, i, WEIR_LOG_ERROR, "paused", "no checkpoint");
			assert_string_equal("", said_within(500));
		}
	assert_string_equal("INFO limiter: recovered after 1 min 22 s: partitions 0-7 are no longer paused\n",
	                    said_within(5000));
	assert_string_equal("", said_within(700000));
}

static void one_of_several_that_works_again_is_told(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PARTITIONS; i++)
		stop_at_gap(i);
	(void)said_within(10000);
	weir_partition_faults_clear(&faults, 5);
	assert_string_equal("INFO limiter: recovered after 13 s: partition 5 is no longer stopped\n", said_within(4000));
	weir_partition_faults_forget(&faults, 6); /* another limiter has it: nothing is said */
	assert_string_equal("", said_within(5000));
	weir_partition_faults_clear(&faults, 0);
	assert_non_null(strstr(said_within(5000), ": partition 0 is no longer stopped\n"));
}

static void it_is_repeated_with_its_age(void **state)
{
	(void)state;
	stop(0, "gone");
	(void)said_within(599000);
	assert_string_equal("ERROR limiter: for 10 min: partition 0 is stopped (1 of 8): gone\n", said_within(10000));
	(void)said_within(590000);
	assert_string_equal("ERROR limiter: for 20 min: partition 0 is stopped (1 of 8): gone\n", said_within(10000));
}

static void causes_have_lines_of_their_own(void **state)
{
	(void)state;
	stop_at_gap(0);
	stop(1, "made anew\x1b[2J");
	stop_at_gap(2);
	assert_string_equal("ERROR limiter: partitions 0, 2 are stopped (2 of 8): 386 messages from offset 0 on are lost\n"
	                    "ERROR limiter: partition 1 is stopped (1 of 8): made anew [2J\n",
	                    said_within(2000));
	stop(0, "made anew\x1b[2J"); /* it has another cause now: that is no recovery */
	assert_string_equal("ERROR limiter: partitions 0-1 are stopped (2 of 8): made anew [2J\n", said_within(15000));
	weir_partition_faults_clear(&faults, 2);
	assert_non_null(strstr(said_within(5000), ": partition 2 is no longer stopped\n"));
}

static void causes_that_always_change_do_not_flood(void **state)
{
	(void)state;
	int lines = 0;
	for (int i = 0; i < 600; i++) {
		char cause[] = {(char)('a' + i % 26), (char)('a' + i / 26), '\0'};
		stop((uint32_t)i % PARTITIONS, cause);
		for (const char *at = said_within(1000); (at = strchr(at, '\n')) != NULL; at++)
			lines++;
	}
	assert_in_range(lines, 1, 600 / 10 * WEIR_PARTITION_CAUSES_MAX);
}

static void partitions_are_ranges_and_not_endless(void **state)
{
	(void)state;
	uint8_t marks[200] = {0};
	struct weir_text text = {0};
	marks[0] = marks[1] = marks[2] = marks[7] = 1;
	assert_int_equal(4, weir_partitions_text(&text, marks, 200, 1));
	assert_int_equal(strlen("partitions 0-2, 7"), text.length);
	assert_memory_equal("partitions 0-2, 7", text.at, text.length);
	weir_text_clear(&text);
	for (int i = 0; i < 200; i += 2)
		marks[i] = 2;
	assert_int_equal(100, weir_partitions_text(&text, marks, 200, 2));
	assert_memory_equal(" and 84 more", text.at + text.length - 12, 12);
	weir_text_deinit(&text);
}

static void a_process_that_did_not_run_sees_it(void **state)
{
	(void)state;
	struct weir_stall stall = {0};
	assert_int_equal(0, weir_stall_turn(&stall, 1000000, 1000)); /* its first turn */
	assert_int_equal(0, weir_stall_turn(&stall, 1001000, 1000));
	assert_int_equal(0, weir_stall_turn(&stall, 1006900, 1000)); /* a busy machine */
	assert_int_equal(34000, weir_stall_turn(&stall, 1041900, 1000));
	assert_int_equal(0, weir_stall_turn(&stall, 1042900, 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(partitions_that_stop_one_after_another_are_one_line, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_joins_is_told_but_not_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(recovery_is_one_line_and_does_not_flap, setup, teardown),
		cmocka_unit_test_setup_teardown(one_of_several_that_works_again_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(it_is_repeated_with_its_age, setup, teardown),
		cmocka_unit_test_setup_teardown(causes_have_lines_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(causes_that_always_change_do_not_flood, setup, teardown),
		cmocka_unit_test(partitions_are_ranges_and_not_endless),
		cmocka_unit_test(a_process_that_did_not_run_sees_it),
	};
	return cmocka_run_group_tests_name("partition faults", tests, NULL, NULL);
}
