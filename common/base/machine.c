/* SPDX-License-Identifier: Apache-2.0 */
/* Read once, if the configuration leaves threads or memory to the machine. */
#include "common/base/machine.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

uint32_t weir_machine_processors(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
		return (uint32_t)CPU_COUNT(&set);
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? (uint32_t)online : 1;
}

/* The number in a file of the control group; -1 where there is none ("max", or no such file). */
static int64_t read_limit(const char *path)
{
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return -1;
	long long bytes = -1;
	if (fscanf(file, "%lld", &bytes) != 1)
		bytes = -1;
	fclose(file);
	return bytes;
}

int64_t weir_machine_memory_bytes(void)
{
	int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	static const char *const limits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
	for (int i = 0; i < 2; i++) {
		int64_t limit = read_limit(limits[i]);
		if (limit > 0 && limit < bytes)
			bytes = limit;
	}
	return bytes;
}
