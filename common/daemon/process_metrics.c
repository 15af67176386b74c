/* SPDX-License-Identifier: Apache-2.0 */
/* The names are those of Prometheus' client libraries, so that dashboards of other programs show weir's too. */
#include "common/daemon/process_metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
	CPU,
	RESIDENT,
	VIRTUAL,
	OPEN_FDS,
	MAX_FDS,
	START_TIME,
	BUILD_INFO,
	METRIC_COUNT,
};

static const struct weir_metric metrics[METRIC_COUNT] = {
	[CPU] = {"process_cpu_seconds_total", WEIR_COUNTER, "seconds", WEIR_NO_LABELS,
             "Processor time that the process has used, in user and in system mode."},
	[RESIDENT] = {"process_resident_memory_bytes", WEIR_GAUGE, "bytes", WEIR_NO_LABELS,
                  "Memory of the process that is in RAM."},
	[VIRTUAL] = {"process_virtual_memory_bytes", WEIR_GAUGE, "bytes", WEIR_NO_LABELS, "Address space of the process."},
	[OPEN_FDS] = {"process_open_fds", WEIR_GAUGE, "descriptors", WEIR_NO_LABELS, "File descriptors that are open."},
	[MAX_FDS] = {"process_max_fds", WEIR_GAUGE, "descriptors", WEIR_NO_LABELS,
                 "File descriptors that may be open at once."},
	[START_TIME] = {"process_start_time_seconds", WEIR_GAUGE, "Unix time", WEIR_NO_LABELS,
                    "When the process started. It changes with every restart."},
	[BUILD_INFO] = {"weir_build_info", WEIR_GAUGE, "1",
                    WEIR_LABELS({"version", "as --version says it"}, {"role", "what the program is, such as limiter"}),
                    "Always 1. Its labels say which weir this is."},
};

const struct weir_metric_table weir_process_metric_table = {metrics, METRIC_COUNT};

struct process_stat {
	double cpu_s, start_s; /* start_s: since the machine's start */
	double virtual_bytes, resident_bytes;
};

/* proc(5): the second field, the program's name, may contain anything, so that fields are counted from its ")". */
static bool read_stat(struct process_stat *stat)
{
	char line[1024];
	unsigned long long user, system, start, bytes;
	long long pages;
	FILE *file = fopen("/proc/self/stat", "re");
	if (file == NULL)
		return false;
	size_t length = fread(line, 1, sizeof line - 1, file);
	fclose(file);
	line[length] = '\0';
	const char *at = strrchr(line, ')');
	if (at == NULL || sscanf(at + 1,
	                         " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu %llu "
	                         "%lld",
	                         &user, &system, &start, &bytes, &pages) != 5)
		return false;
	double ticks = (double)sysconf(_SC_CLK_TCK);
	*stat = (struct process_stat){.cpu_s = (double)(user + system) / ticks,
	                              .start_s = (double)start / ticks,
	                              .virtual_bytes = (double)bytes,
	                              .resident_bytes = (double)pages * (double)sysconf(_SC_PAGESIZE)};
	return true;
}

/* When the machine started, as Unix time by the clock as it is now. */
static bool read_boot(double *boot_s)
{
	char line[256];
	unsigned long long seconds;
	bool found = false;
	FILE *file = fopen("/proc/stat", "re");
	while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
		found = sscanf(line, "btime %llu", &seconds) == 1;
	if (file != NULL)
		fclose(file);
	*boot_s = found ? (double)seconds : 0;
	return found;
}

/* Without the one that the reading itself needs. */
static bool count_fds(double *count)
{
	DIR *directory = opendir("/proc/self/fd");
	if (directory == NULL)
		return false;
	*count = -1;
	for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
		*count += entry->d_name[0] != '.';
	closedir(directory);
	return true;
}

static void put(struct weir_text *page, int metric, bool known, double value)
{
	weir_metrics_family(page, &metrics[metric]);
	if (known)
		weir_metrics_double(page, &metrics[metric], NULL, value);
}

double weir_process_start_s(void)
{
	struct process_stat stat = {0};
	double boot_s;
	return read_stat(&stat) && read_boot(&boot_s) ? boot_s + stat.start_s : 0;
}

void weir_process_metrics(const char *role, double start_s, struct weir_text *page)
{
	struct process_stat stat = {0};
	struct rlimit limit = {0};
	double fds = 0;
	bool known = read_stat(&stat);
	put(page, CPU, known, stat.cpu_s);
	put(page, RESIDENT, known, stat.resident_bytes);
	put(page, VIRTUAL, known, stat.virtual_bytes);
	known = count_fds(&fds);
	put(page, OPEN_FDS, known, fds);
	known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
	put(page, MAX_FDS, known, (double)limit.rlim_cur);
	put(page, START_TIME, start_s > 0, start_s);
	struct weir_span labels[] = {weir_span_of(WEIR_VERSION), weir_span_of(role)};
	weir_metrics_family(page, &metrics[BUILD_INFO]);
	weir_metrics_uint(page, &metrics[BUILD_INFO], labels, 1);
}
