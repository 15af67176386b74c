/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are run: what they get, what they say, and that none outlives its time. */
#include "common/base/clock.h"
#include "deploy/gateways/target/exec/program.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static enum weir_status run_shell(const char *command, const char *input, int64_t timeout_ms, struct weir_text *said,
                                  struct weir_error *error)
{
	const char *arguments[] = {"/bin/sh", "-c", command, NULL};
	struct program_run run = {.arguments = arguments,
	                          .input = input,
	                          .input_bytes = input != NULL ? strlen(input) : 0,
	                          .timeout_ms = timeout_ms,
	                          .said = said};
	return program_run(&run, error);
}

static void test_it_reads_and_says(void **state)
{
	(void)state;
	struct weir_text said = {0};
	struct weir_error error;
	assert_int_equal(WEIR_OK, run_shell("tr a-z A-Z; echo more >&2", "hello\n", 30000, &said, &error));
	weir_text_append(&said, "", 1);
	assert_string_equal("HELLO\nmore\n", said.at);
	weir_text_deinit(&said);
	assert_int_equal(WEIR_OK, run_shell("cat >/dev/null", NULL, 30000, NULL, &error));
}

static void test_a_failure_says_the_line_that_tells_why(void **state)
{
	(void)state;
	struct weir_error error;
	assert_int_equal(WEIR_IO, run_shell("echo first; echo it is broken >&2; exit 3", NULL, 30000, NULL, &error));
	assert_non_null(strstr(error.text, "exited with status 3: it is broken"));
	static const char *const said[][2] = {
		{"Error: No such file or directory\\nlist set inet filter nosuch\\n                     ^^^^^^\\n",
	     ": Error: No such file or directory"},
		{"/dev/stdin:1:25-30: Error: No such file\\nadd element\\n    ^\\n",
	     ": /dev/stdin:1:25-30: Error: No such file"},
		{"nginx: [emerg] unknown directive\\nnginx: configuration file nginx.conf test failed\\n",
	     ": nginx: [emerg] unknown directive"},
		{"[NOTICE]  : version\\n[ALERT]  : unknown keyword\\n[ALERT]  : Fatal errors found\\n",
	     ": [ALERT]  : unknown keyword"},
		{"it begins\\nit is broken\\n    ^^^^^^\\n\\n", ": it is broken"},
		{"-- 5 --\\n", "with status 3"},
	};
	for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
		char command[256];
		snprintf(command, sizeof command, "printf -- '%s' >&2; exit 3", said[i][0]);
		assert_int_equal(WEIR_IO, run_shell(command, NULL, 30000, NULL, &error));
		size_t length = strlen(error.text), end = strlen(said[i][1]);
		assert_true(length >= end);
		assert_string_equal(error.text + length - end, said[i][1]);
	}
	assert_int_equal(WEIR_IO, run_shell("kill -9 $$", NULL, 30000, NULL, &error));
	assert_non_null(strstr(error.text, "signal 9"));
	const char *arguments[] = {"weir-no-such-program", NULL};
	struct program_run run = {.arguments = arguments, .timeout_ms = 30000};
	assert_int_equal(WEIR_IO, program_run(&run, &error));
	assert_non_null(strstr(error.text, "PATH"));
}

static void test_more_than_is_kept(void **state)
{
	(void)state;
	struct weir_text said = {0};
	struct weir_error error;
	assert_int_equal(WEIR_OK,
	                 run_shell("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end", NULL, 60000, &said, &error));
	assert_int_equal(PROGRAM_OUTPUT_MAX_BYTES, said.length);
	assert_memory_equal("end\n", said.at + said.length - 4, 4);
	weir_text_deinit(&said);
}

static void test_one_that_takes_too_long_is_ended_with_what_it_started(void **state)
{
	(void)state;
	struct weir_text said = {0};
	struct weir_error error;
	int64_t start_ms = weir_monotonic_ms();
	assert_int_equal(WEIR_IO, run_shell("sleep 1000 & echo $!; wait", NULL, 500, &said, &error));
	assert_true(weir_monotonic_ms() - start_ms < 60000);
	weir_text_append(&said, "", 1);
	pid_t child = (pid_t)strtol(said.at, NULL, 10);
	assert_true(child > 1);
	/* Nobody waits for the child of a child here: it may stay as a zombie, which is no longer running. */
	bool running = true;
	for (int i = 0; i < 3000 && running; i++) {
		char path[64], line[256] = "";
		snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
		FILE *stat = fopen(path, "r");
		char *got = stat != NULL ? fgets(line, sizeof line, stat) : NULL;
		if (stat != NULL)
			fclose(stat);
		running = got != NULL && strstr(line, ") Z ") == NULL;
		usleep(10000);
	}
	assert_false(running);
	weir_text_deinit(&said);
}

static void test_one_that_is_kept_running(void **state)
{
	(void)state;
	struct weir_error error;
	pid_t pid;
	int input;
	assert_int_equal(WEIR_OK, program_start("read -r line; [ \"$line\" = go ]", &pid, &input, &error));
	assert_int_equal(WEIR_AGAIN, program_ended(pid, "it", &error));
	assert_int_equal(3, write(input, "go\n", 3));
	close(input);
	assert_int_equal(WEIR_OK, program_end(pid, "it", 30000, &error));

	assert_int_equal(WEIR_OK, program_start("trap '' TERM; while :; do sleep 0.1; done", &pid, &input, &error));
	close(input);
	assert_int_equal(WEIR_IO, program_end(pid, "it", 100, &error));
	assert_int_equal(-1, kill(pid, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_reads_and_says),
		cmocka_unit_test(test_a_failure_says_the_line_that_tells_why),
		cmocka_unit_test(test_more_than_is_kept),
		cmocka_unit_test(test_one_that_takes_too_long_is_ended_with_what_it_started),
		cmocka_unit_test(test_one_that_is_kept_running),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
