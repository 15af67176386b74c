/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A partition's states: which may follow which, held against a list of its own;
 * that no other change goes through; and that every way leads back to EMPTY.
 */
#include "limiter/worker/partition_state.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct pair {
	enum partition_state from, to;
};

static const struct pair legal[] = {
	{PARTITION_EMPTY, PARTITION_TAKING},

	{PARTITION_TAKING, PARTITION_EMPTY}, /* not yet, or no more */
	{PARTITION_TAKING, PARTITION_LIVE},
	{PARTITION_TAKING, PARTITION_PARKED}, /* its checkpoint cannot be read, its log has a gap */

	{PARTITION_LIVE, PARTITION_LOADING},
	{PARTITION_LIVE, PARTITION_HELD},
	{PARTITION_LIVE, PARTITION_HALTED},
	{PARTITION_LIVE, PARTITION_LEAVING},
	{PARTITION_LIVE, PARTITION_RELEASING}, /* fenced, or its producer broke */

	{PARTITION_LOADING, PARTITION_LIVE},
	{PARTITION_LOADING, PARTITION_HELD},
	{PARTITION_LOADING, PARTITION_HALTED},
	{PARTITION_LOADING, PARTITION_FINISHING}, /* what waits is judged first */
	{PARTITION_LOADING, PARTITION_RELEASING},

	{PARTITION_HELD, PARTITION_LIVE},
	{PARTITION_HELD, PARTITION_LOADING},
	{PARTITION_HELD, PARTITION_HALTED},
	{PARTITION_HELD, PARTITION_LEAVING},
	{PARTITION_HELD, PARTITION_RELEASING},

	{PARTITION_HALTED, PARTITION_LEAVING},
	{PARTITION_HALTED, PARTITION_RELEASING},

	{PARTITION_FINISHING, PARTITION_LEAVING},
	{PARTITION_FINISHING, PARTITION_RELEASING}, /* too late for a last checkpoint */

	{PARTITION_LEAVING, PARTITION_ANNOUNCING},
	{PARTITION_LEAVING, PARTITION_RELEASING},

	{PARTITION_ANNOUNCING, PARTITION_RELEASING},

	{PARTITION_RELEASING, PARTITION_EMPTY},
	{PARTITION_RELEASING, PARTITION_PARKED},

	{PARTITION_PARKED, PARTITION_EMPTY},
};

enum { LEGAL = sizeof legal / sizeof *legal };

static bool is_legal(enum partition_state from, enum partition_state to)
{
	for (size_t i = 0; i < LEGAL; i++)
		if (legal[i].from == from && legal[i].to == to)
			return true;
	return false;
}

/* Whether the program ends where it goes from one state to the other. */
static bool is_asserted(enum partition_state from, enum partition_state to)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		partition_state_set(&from, to);
		_exit(from == to ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void legal_pairs_pass(void **state)
{
	(void)state;
	for (size_t i = 0; i < LEGAL; i++) {
		enum partition_state at = legal[i].from;
		assert_true(partition_state_may_follow(at, legal[i].to));
		partition_state_set(&at, legal[i].to);
		assert_int_equal(at, legal[i].to);
	}
}

static void every_other_pair_is_refused(void **state)
{
	(void)state;
	for (int from = 0; from < PARTITION_STATE_COUNT; from++)
		for (int to = 0; to < PARTITION_STATE_COUNT; to++)
			if (!is_legal((enum partition_state)from, (enum partition_state)to))
				assert_false(partition_state_may_follow((enum partition_state)from, (enum partition_state)to));
}

static void an_illegal_change_ends_the_program(void **state)
{
	(void)state;
#ifndef WEIR_LIBRARIES_ASSERT
	skip();
#endif
	assert_false(is_asserted(PARTITION_EMPTY, PARTITION_TAKING));
	assert_true(is_asserted(PARTITION_EMPTY, PARTITION_LIVE));      /* nothing is judged that is not taken */
	assert_true(is_asserted(PARTITION_LIVE, PARTITION_EMPTY));      /* nor forgotten before answers are there */
	assert_true(is_asserted(PARTITION_LEAVING, PARTITION_LIVE));    /* the bus has let it go */
	assert_true(is_asserted(PARTITION_LOADING, PARTITION_LEAVING)); /* it cannot be cut */
	assert_true(is_asserted(PARTITION_RELEASING, PARTITION_TAKING));
	assert_true(is_asserted(PARTITION_LIVE, PARTITION_LIVE));
}

/* From a state, over what may follow: whether all can be reached. */
static unsigned reached_from(enum partition_state begin)
{
	unsigned reached = 1U << begin, before = 0;
	while (reached != before) {
		before = reached;
		for (size_t i = 0; i < LEGAL; i++)
			if ((reached >> legal[i].from & 1U) != 0)
				reached |= 1U << legal[i].to;
	}
	return reached;
}

static void every_state_is_reached_and_none_is_the_end(void **state)
{
	(void)state;
	for (int begin = 0; begin < PARTITION_STATE_COUNT; begin++)
		assert_int_equal(reached_from((enum partition_state)begin), (1U << PARTITION_STATE_COUNT) - 1);
}

/* A partition that leaves receives nothing; one that loads or receives has a lane; without a lane it does neither. */
static void kinds_of_states_agree(void **state)
{
	(void)state;
	for (int i = 0; i < PARTITION_STATE_COUNT; i++) {
		enum partition_state at = (enum partition_state)i;
		if (partition_state_receives(at) || partition_state_loads(at))
			assert_true(partition_state_works(at));
		/* What works goes through RELEASING, where its lane is freed; what does not never gets there by itself. */
		assert_int_equal(partition_state_works(at), partition_state_may_follow(at, PARTITION_RELEASING));
	}
	assert_true(partition_state_receives(PARTITION_HALTED));
	assert_false(partition_state_receives(PARTITION_FINISHING));
	assert_true(partition_state_loads(PARTITION_FINISHING));
	assert_false(partition_state_loads(PARTITION_HELD));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(legal_pairs_pass),
		cmocka_unit_test(every_other_pair_is_refused),
		cmocka_unit_test(an_illegal_change_ends_the_program),
		cmocka_unit_test(every_state_is_reached_and_none_is_the_end),
		cmocka_unit_test(kinds_of_states_agree),
	};
	return cmocka_run_group_tests_name("partition_state", tests, NULL, NULL);
}
