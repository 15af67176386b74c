/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people: what is given up is old, and was refused all the time. */
#include "deploy/gateways/target/webhook/webhook_waiting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void add(struct webhook_waiting *waiting, int64_t now_ms, const char *line)
{
	struct weir_text *lines = webhook_waiting_add(waiting, now_ms);
	if (lines != NULL)
		weir_text_puts(lines, line);
}

static void assert_waits(const struct webhook_waiting *waiting, const char *lines)
{
	assert_int_equal(waiting->lines.length, strlen(lines));
	assert_memory_equal(waiting->lines.at, lines, strlen(lines));
}

static void test_only_old_lines_are_given_up(void **state)
{
	(void)state;
	struct webhook_waiting waiting = {0};
	add(&waiting, 1000, "ann\n");
	assert_int_equal(webhook_waiting_refused(&waiting, 1000, 3600), 0);
	add(&waiting, 2000, "bob\n");
	add(&waiting, 4599, "cid\n");
	assert_int_equal(webhook_waiting_refused(&waiting, 4599, 3600), 0);
	assert_int_equal(webhook_waiting_refused(&waiting, 4600, 3600), 1);
	assert_waits(&waiting, "bob\ncid\n");
	assert_int_equal(webhook_waiting_refused(&waiting, 6000, 3600), 1);
	assert_waits(&waiting, "cid\n");
	assert_int_equal(webhook_waiting_refused(&waiting, 9000, 3600), 1);
	assert_waits(&waiting, "");
	assert_int_not_equal(waiting.refused_ms, 0);
	webhook_waiting_deinit(&waiting);
}

static void test_refusals_with_another_end_between_them_are_apart(void **state)
{
	(void)state;
	struct webhook_waiting waiting = {0};
	add(&waiting, 1000, "ann\n");
	assert_int_equal(webhook_waiting_refused(&waiting, 1000, 3600), 0);
	webhook_waiting_not_refused(&waiting);
	assert_int_equal(webhook_waiting_refused(&waiting, 9000, 3600), 0);
	assert_int_equal(webhook_waiting_refused(&waiting, 12599, 3600), 0);
	assert_int_equal(webhook_waiting_refused(&waiting, 12600, 3600), 1);
	webhook_waiting_deinit(&waiting);
}

static void test_what_found_no_room_is_told_last(void **state)
{
	(void)state;
	struct webhook_waiting waiting = {0};
	char line[1025];
	size_t count;
	memset(line, 'x', 1023);
	memcpy(line + 1023, "\n", 2);
	for (int i = 0; i < 66; i++)
		add(&waiting, i, line);
	assert_int_equal(waiting.lines.length, 64 * 1024);
	assert_int_equal(webhook_waiting_message(&waiting, &count).length, 1024);
	assert_int_equal(count, 1);
	webhook_waiting_remove(&waiting, 64);
	assert_waits(&waiting, "and 2 more that found no room\n");
	assert_int_equal(webhook_waiting_message(&waiting, &count).length, waiting.lines.length);
	webhook_waiting_remove(&waiting, count);
	assert_waits(&waiting, "");
	webhook_waiting_deinit(&waiting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_old_lines_are_given_up),
		cmocka_unit_test(test_refusals_with_another_end_between_them_are_apart),
		cmocka_unit_test(test_what_found_no_room_is_told_last),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
