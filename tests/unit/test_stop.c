/* SPDX-License-Identifier: Apache-2.0 */
/* A process that hangs in its end leaves all the same, with the code that it was to end with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/stop.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_that_hangs_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
