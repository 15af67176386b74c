/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that waits for what never comes ends with words. */
#include "tests/support/driver_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

/* What a child says and leaves with. @param over  it is over before the limit */
static int watched(bool over, char *said, size_t room)
{
	int ends[2], result;
	assert_int_equal(0, pipe(ends));
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		driver_watch_for("opening", 100);
		driver_watch_for("closing", 1);
		if (over)
			driver_watch_over();
		for (int i = 0; i < (over ? 15 : 1000); i++)
			usleep(100 * 1000);
		_exit(0);
	}
	close(ends[1]);
	ssize_t got = read(ends[0], said, room - 1);
	said[got > 0 ? got : 0] = '\0';
	close(ends[0]);
	assert_int_equal(child, waitpid(child, &result, 0));
	return WEXITSTATUS(result);
}

static void a_wait_without_an_end_ends_with_words(void **state)
{
	char said[256];
	(void)state;
	assert_int_equal(DRIVER_WATCH_CODE, watched(false, said, sizeof said));
	assert_string_equal("still at work after 1 s: closing\n", said);
	assert_int_equal(0, watched(true, said, sizeof said));
	assert_string_equal("", said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_wait_without_an_end_ends_with_words)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
