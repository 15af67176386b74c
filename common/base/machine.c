/* SPDX-License-Identifier: Apache-2.0 */
/* Read once, if the configuration leaves threads or memory to the machine. */
#include "common/base/machine.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
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

/* The least of a group and all above it, as each bounds what is below it. @param least  -1: none yet */
static int64_t least_up(const char *root, const char *group, const char *name, int64_t least)
{
	char path[PATH_MAX];
	int used = snprintf(path, sizeof path, "%s%s", root, group);
	size_t stem = strlen(root), length = used > 0 && (size_t)used < sizeof path ? (size_t)used : stem;
	if (strstr(group, "/..") != NULL) /* a group outside of what is mounted here */
		length = stem;
	for (;;) {
		if (snprintf(path + length, sizeof path - length, "/%s", name) < (int)(sizeof path - length)) {
			int64_t limit = read_limit(path);
			if (limit > 0 && (least < 0 || limit < least))
				least = limit;
		}
		if (length <= stem)
			return least;
		while (length > stem && path[--length] != '/')
			;
	}
}

/* Whether a list "cpu,memory" has the memory in it. */
static bool has_memory(const char *controllers)
{
	static const char name[] = "memory";
	for (const char *at = controllers; (at = strstr(at, name)) != NULL; at += sizeof name - 1)
		if ((at == controllers || at[-1] == ',') && (at[sizeof name - 1] == ',' || at[sizeof name - 1] == '\0'))
			return true;
	return false;
}

int64_t weir_machine_group_bytes(const char *groups, const char *mounted)
{
	char line[PATH_MAX], first_root[PATH_MAX];
	snprintf(first_root, sizeof first_root, "%s/memory", mounted); /* of version 1 */
	/* the roots count also where the list of groups cannot be read */
	int64_t least = least_up(mounted, "", "memory.max", -1);
	least = least_up(first_root, "", "memory.limit_in_bytes", least);
	FILE *file = fopen(groups, "r");
	while (file != NULL && fgets(line, sizeof line, file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		char *controllers = strchr(line, ':'), *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
		if (group == NULL)
			continue;
		*group++ = '\0';
		if (*++controllers == '\0')
			least = least_up(mounted, group, "memory.max", least);
		else if (has_memory(controllers))
			least = least_up(first_root, group, "memory.limit_in_bytes", least);
	}
	if (file != NULL)
		fclose(file);
	return least;
}

int64_t weir_machine_memory_bytes(void)
{
	int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	int64_t limit = weir_machine_group_bytes("/proc/self/cgroup", "/sys/fs/cgroup");
	return limit > 0 && limit < bytes ? limit : bytes;
}
