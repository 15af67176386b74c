/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever asks a process that takes no connections any more is told so in time. */
#include "deploy/weir/overrides/control.c" /* of a program, which no library has */
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MOST = 64 };

/* A listener whose backlog is full. @return the connections that wait there */
static int fill(int listener, const struct sockaddr_un *address, int waiting[MOST])
{
	int count = 0;
	assert_int_equal(bind(listener, (const struct sockaddr *)address, sizeof *address), 0);
	assert_int_equal(listen(listener, 0), 0);
	for (bool full = false; !full; count++) {
		assert_true(count < MOST);
		waiting[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		full = connect(waiting[count], (const struct sockaddr *)address, sizeof *address) != 0;
		if (full)
			assert_int_equal(errno, EAGAIN);
	}
	return count;
}

static void a_full_backlog_is_told_in_time(void **folder)
{
	int waiting[MOST], listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int directory = open(*folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sockaddr_un address = address_in(directory);
	int count = fill(listener, &address, waiting);
	struct weir_text answer = {0};
	struct weir_error error;
	int64_t begin_ms = weir_monotonic_ms();
	alarm(60); /* without a bound it would wait for ever */
	assert_int_equal(control_ask(*folder, weir_span_of("{}"), &answer, &error), WEIR_IO);
	alarm(0);
	assert_true(weir_monotonic_ms() - begin_ms >= CONTROL_READ_MS - 100);
	assert_non_null(strstr(error.text, "is in use by a process that accepts no commands at"));
	while (count > 0)
		close(waiting[--count]);
	close(listener);
	close(directory);
	weir_text_deinit(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_full_backlog_is_told_in_time, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
