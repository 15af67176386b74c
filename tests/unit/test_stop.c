/* SPDX-License-Identifier: Apache-2.0 */
/* A signal is heard from the beginning on; a process that hangs in its end leaves all the same, with its code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/stop.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int end_of_child(int64_t within_ms, bool hangs)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		weir_stop_within(within_ms, WEIR_EXIT_INTERRUPTED);
		while (hangs)
			pause();
		_exit(WEIR_EXIT_DONE);
	}
	assert_int_equal(child, waitpid(child, &status, 0));
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void an_end_that_hangs_is_bounded(void **state)
{
	(void)state;
	assert_int_equal(WEIR_EXIT_INTERRUPTED, end_of_child(20, true));
	assert_int_equal(WEIR_EXIT_DONE, end_of_child(60000, false));
}

/* Signals of a program's start, then those of its run; the last code tells that all came as they should. */
static void start_and_run(void)
{
	enum { NO_RELOAD = 10, SECOND_RELOAD, NOT_STOPPED, ALL_HEARD };
	weir_stop_begin(WEIR_EXIT_INTERRUPTED);
	raise(SIGHUP);
	raise(SIGPIPE);
	weir_stop_install();
	if (!weir_stop_take_reload())
		_exit(NO_RELOAD);
	if (weir_stop_take_reload())
		_exit(SECOND_RELOAD);
	raise(SIGTERM);
	_exit(atomic_load(weir_stop_flag()) ? ALL_HEARD : NOT_STOPPED);
}

static void stop_at_the_start(void)
{
	weir_stop_begin(WEIR_EXIT_INTERRUPTED);
	raise(SIGTERM);
	_exit(WEIR_EXIT_FAILED);
}

static int code_of(void (*program)(void))
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		program();
	assert_int_equal(child, waitpid(child, &status, 0));
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_signal_is_heard_while_a_program_starts(void **state)
{
	(void)state;
	assert_int_equal(13, code_of(start_and_run));
	assert_int_equal(WEIR_EXIT_INTERRUPTED, code_of(stop_at_the_start));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_is_heard_while_a_program_starts),
		cmocka_unit_test(an_end_that_hangs_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
