/* SPDX-License-Identifier: Apache-2.0 */
/* What follows where a stream's lines end: each situation, and the action that it asks for. */
#include "collector/source/file/file_rotation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define CASE(situation, followed, once)                                     \
	{                                                                       \
#situation, SITUATION_##situation, ACTION_##followed, ACTION_##once \
	}

static const struct {
	const char *name;
	enum file_situation situation;
	enum file_action followed, once;
} cases[] = {
	/* nothing can be begun, or nobody can tell what is there */
	CASE(NO_ROOM, WAIT, FAIL),
	CASE(UNREADABLE, FAIL, FAIL),
	/* all that is known is read */
	CASE(NOTHING_THERE, WAIT, END),
	CASE(NEXT_THERE, BEGIN, BEGIN),
	/* a file that may grow is waited for; where nothing is followed, what it has is all */
	CASE(QUIET, WAIT, FINISH),
	CASE(QUIET_OPEN_LINE, WAIT, HAND_OUT_REST),
	CASE(PACKED_CUT, WAIT, FINISH),
	CASE(PACKED_READ, SETTLE, FINISH),
	CASE(PACKED_OPEN_LINE, HAND_OUT_REST, HAND_OUT_REST),
	CASE(REMOVED, SETTLE, SETTLE),
	/* another file is there; only one that a writer may still have open is waited for */
	CASE(OVERLOOKED, INTERRUPT, INTERRUPT),
	CASE(COPY_AT_PATH, REOPEN, REOPEN),
	CASE(PACKED_SUCCEEDED, SETTLE, SETTLE),
	CASE(PACKED_CUT_SUCCEEDED, LEAVE_AT_LINE, LEAVE),
	CASE(RETURNING, LEAVE_AT_LINE, LEAVE),
	CASE(SUCCESSOR_SEEN, READ_ON, LEAVE),
	CASE(SUCCESSOR_WAITING, WAIT, LEAVE),
	CASE(SUCCESSOR_DUE, LEAVE, LEAVE),
	/* the file was cut, replaced or removed */
	CASE(TRUNCATED, START_OVER, START_OVER),
	CASE(TRUNCATED_COPIED, GO_ON_IN_COPY, GO_ON_IN_COPY),
	CASE(TRUNCATED_UNREADABLE, CLOSE_AND_FAIL, CLOSE_AND_FAIL),
	CASE(GONE, FAIL, FAIL),
	CASE(REPLACED, GIVE_UP, GIVE_UP),
	/* a file that was left */
	CASE(LEFT_CLOSED, OPEN_LEFT, OPEN_LEFT),
	CASE(LEFT_QUIET, WAIT, WAIT),
	CASE(LEFT_LINES, INSERT_LINES, INSERT_LINES),
	CASE(LEFT_REWRITTEN, CLOSE_LEFT, CLOSE_LEFT),
	CASE(LEFT_OVER, SETTLE_LEFT, SETTLE_LEFT),
	CASE(LEFT_OVER_OPEN_LINE, INSERT_OPEN_LINE, INSERT_OPEN_LINE),
	CASE(LEFT_TRUNCATED, SETTLE_LEFT, SETTLE_LEFT),
	CASE(LEFT_UNREADABLE, WAIT, WAIT),
	CASE(LEFT_ABSENT, COUNT_ABSENCE, COUNT_ABSENCE),
	CASE(LEFT_GONE, SETTLE_LEFT, SETTLE_LEFT),
};

enum { CASES = sizeof cases / sizeof *cases };

static void each_situation_asks_for_its_action(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		if (file_rotation_decide(cases[i].situation, true) != cases[i].followed)
			fail_msg("%s, followed: action %d", cases[i].name, file_rotation_decide(cases[i].situation, true));
		if (file_rotation_decide(cases[i].situation, false) != cases[i].once)
			fail_msg("%s, read once: action %d", cases[i].name, file_rotation_decide(cases[i].situation, false));
	}
}

static void every_situation_has_its_case(void **state)
{
	(void)state;
	bool met[SITUATION_COUNT] = {false};
	for (size_t i = 0; i < CASES; i++) {
		if (met[cases[i].situation])
			fail_msg("%s has two cases", cases[i].name);
		met[cases[i].situation] = true;
	}
	for (int i = 0; i < SITUATION_COUNT; i++)
		if (!met[i])
			fail_msg("situation %d has no case", i);
}

/* A stream that is read once has no later: it waits for nothing, but for what a file that was left may still get. */
static void what_is_read_once_never_waits(void **state)
{
	(void)state;
	for (int i = 0; i < SITUATION_LEFT_CLOSED; i++)
		assert_int_not_equal(file_rotation_decide((enum file_situation)i, false), ACTION_WAIT);
}

/* A stream that is followed never ends. */
static void what_is_followed_never_ends(void **state)
{
	(void)state;
	for (int i = 0; i < SITUATION_COUNT; i++) {
		enum file_action action = file_rotation_decide((enum file_situation)i, true);
		assert_int_not_equal(action, ACTION_END);
		assert_int_not_equal(action, ACTION_FINISH);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_situation_asks_for_its_action),
		cmocka_unit_test(every_situation_has_its_case),
		cmocka_unit_test(what_is_read_once_never_waits),
		cmocka_unit_test(what_is_followed_never_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
