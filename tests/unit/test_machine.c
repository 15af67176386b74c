/* SPDX-License-Identifier: Apache-2.0 */
/* What a systemd unit or a container lets a process use: the least limit of its control group and of those above. */
#include "common/base/machine.h"

#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

/* A file in the scratch directory, the folders before it made. */
static const char *put(void **state, const char *name, const char *text)
{
	static char path[1024];
	snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
	for (char *slash = path + strlen(*state) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
		*slash = '\0';
		(void)mkdir(path, 0700);
	}
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return path;
}

static int64_t bytes_of(void **state, const char *groups)
{
	char mounted[512];
	snprintf(mounted, sizeof mounted, "%s/cgroup", (const char *)*state);
	return weir_machine_group_bytes(put(state, "self", groups), mounted);
}

static void a_unit_of_version_2_is_bounded_by_all_above_it(void **state)
{
	static const char unit[] = "0::/system.slice/weir.service\n";
	assert_int_equal(-1, bytes_of(state, unit));
	put(state, "cgroup/system.slice/memory.max", "max\n");
	put(state, "cgroup/system.slice/weir.service/memory.max", "536870912\n");
	assert_int_equal(536870912, bytes_of(state, unit));
	put(state, "cgroup/system.slice/memory.max", "268435456\n");
	assert_int_equal(268435456, bytes_of(state, unit));
	put(state, "cgroup/memory.max", "134217728\n");
	assert_int_equal(134217728, bytes_of(state, unit));
	put(state, "cgroup/system.slice/weir.service/memory.max", "1048576\n");
	assert_int_equal(1048576, bytes_of(state, unit));
	assert_int_equal(268435456 / 2, bytes_of(state, "0::/system.slice/another.service\n"));
}

static void a_unit_of_version_1_is_bounded_likewise(void **state)
{
	static const char unit[] = "9:name=systemd:/a\n5:cpu,memory:/system.slice/weir.service\n4:memoryless:/x\n0::/\n";
	put(state, "cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put(state, "cgroup/memory/x/memory.limit_in_bytes", "1\n");
	put(state, "cgroup/memory/system.slice/weir.service/memory.limit_in_bytes", "536870912\n");
	assert_int_equal(536870912, bytes_of(state, unit));
	put(state, "cgroup/memory/system.slice/memory.limit_in_bytes", "268435456\n");
	assert_int_equal(268435456, bytes_of(state, unit));
}

/* Its path may be that of the host, of which nothing is mounted, or one that is not mounted at all. */
static void a_container_has_its_limit_at_the_root(void **state)
{
	put(state, "cgroup/memory.max", "536870912\n");
	put(state, "memory.max", "1\n");
	assert_int_equal(536870912, bytes_of(state, "0::/\n"));
	assert_int_equal(536870912, bytes_of(state, "0::/docker/0123456789abcdef\n"));
	assert_int_equal(536870912, bytes_of(state, "0::/..\n"));
	assert_int_equal(536870912, bytes_of(state, ""));
	assert_int_equal(536870912, bytes_of(state, "nothing of the kind\n0:\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_unit_of_version_2_is_bounded_by_all_above_it, scratch_setup,
	                                    scratch_teardown),
		cmocka_unit_test_setup_teardown(a_unit_of_version_1_is_bounded_likewise, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_container_has_its_limit_at_the_root, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
