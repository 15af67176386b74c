# SPDX-License-Identifier: Apache-2.0
"""A wall clock that is two hours ahead, for a process that is started in this environment. Its monotonic one is right."""

import os
import subprocess

from support.place import PATIENCE_S

_SOURCE = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at)
{
	static int (*real)(clockid_t, struct timespec *);
	if (real == NULL)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int status = real(id, at);
	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
		at->tv_sec += 7200;
	return status;
}
int gettimeofday(struct timeval *at, void *zone)
{
	struct timespec now;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	at->tv_sec = now.tv_sec;
	at->tv_usec = now.tv_nsec / 1000;
	return 0;
}
time_t time(time_t *at)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (at != NULL)
		*at = now.tv_sec;
	return now.tv_sec;
}
"""


def environment(place):
    """That of the process. A sanitizer's program takes no library before its own."""
    source, library = place.write("clock.c", _SOURCE), place.path("clock.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, timeout=PATIENCE_S)
    return {**os.environ, "LD_PRELOAD": library}
