/* SPDX-License-Identifier: Apache-2.0 */
/* What a page says of its process is what the kernel says of it by other ways. */
#include "common/daemon/process_metrics.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { MIB = 1024 * 1024 };

/* A sample of the page; fails if it is not there. */
static double sample(const char *name)
{
	struct weir_text page = {0};
	char wanted[128];
	weir_process_metrics("test", weir_process_start_s(), &page);
	weir_text_append(&page, "", 1);
	assert_non_null(page.at);
	snprintf(wanted, sizeof wanted, "\n%s ", name);
	const char *found = strstr(page.at, wanted);
	if (found == NULL)
		fail_msg("%s is not on the page", name);
	double value = strtod(found + strlen(wanted), NULL);
	weir_text_deinit(&page);
	return value;
}

static void open_files_are_counted(void **state)
{
	(void)state;
	struct rlimit limit;
	double before = sample("process_open_fds");
	int fds[3] = {open("/dev/null", O_RDONLY), open("/dev/null", O_RDONLY), open("/dev/null", O_RDONLY)};
	assert_true(sample("process_open_fds") == before + 3);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	assert_true(sample("process_open_fds") == before);
	getrlimit(RLIMIT_NOFILE, &limit);
	assert_true(sample("process_max_fds") == (double)limit.rlim_cur);
}

static void memory_that_is_used_counts(void **state)
{
	(void)state;
	double resident = sample("process_resident_memory_bytes"), virtual = sample("process_virtual_memory_bytes");
	size_t bytes = (size_t)64 * MIB;
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	assert_true(sample("process_virtual_memory_bytes") >= virtual + (double)bytes);
	memset(memory, 1, bytes);
	assert_true(sample("process_resident_memory_bytes") >= resident + 32.0 * MIB);
	munmap(memory, bytes);
}

static void processor_time_grows_as_it_is_used(void **state)
{
	(void)state;
	struct rusage used;
	double before = sample("process_cpu_seconds_total"), spent;
	do {
		getrusage(RUSAGE_SELF, &used);
		spent = (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
		        (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
	} while (spent < before + 0.2);
	assert_true(sample("process_cpu_seconds_total") >= before + 0.1);
}

/* The kernel puts the program's name, whatever it is, before the numbers. */
static void a_name_with_brackets_and_blanks_moves_no_number(void **state)
{
	(void)state;
	double start = sample("process_start_time_seconds");
	assert_true(start > 0 && start <= (double)time(NULL) + 1 && start > (double)time(NULL) - 3600);
	prctl(PR_SET_NAME, "a) R 1 (b", 0, 0, 0);
	assert_true(sample("process_start_time_seconds") == start);
}

static void the_build_is_named(void **state)
{
	(void)state;
	assert_true(sample("weir_build_info{version=\"" WEIR_VERSION "\",role=\"test\"}") == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_files_are_counted),
		cmocka_unit_test(memory_that_is_used_counts),
		cmocka_unit_test(processor_time_grows_as_it_is_used),
		cmocka_unit_test(a_name_with_brackets_and_blanks_moves_no_number),
		cmocka_unit_test(the_build_is_named),
	};
	return cmocka_run_group_tests_name("process_metrics", tests, NULL, NULL);
}
