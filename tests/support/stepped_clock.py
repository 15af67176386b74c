# SPDX-License-Identifier: Apache-2.0
"""A wall clock that is set while a program runs, also for its waits by C11 threads, which end at a moment of that clock: librdkafka's."""

import os
import shutil
import struct
import subprocess

from support.cases import Skipped
from support.place import PATIENCE_S

# Waits go on in slices, so that they notice a step as those of the kernel do.
_SOURCE = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
static const volatile int64_t *step_s;
static int (*real_get)(clockid_t, struct timespec *);
static int (*real_wait)(cnd_t *, mtx_t *, const struct timespec *);
__attribute__((constructor)) static void begin(void)
{
	real_get = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	real_wait = (int (*)(cnd_t *, mtx_t *, const struct timespec *))dlsym(RTLD_NEXT, "cnd_timedwait");
	step_s = mmap(NULL, 8, PROT_READ, MAP_SHARED, open(getenv("STEPPED_CLOCK"), O_RDONLY | O_CLOEXEC), 0);
}
int clock_gettime(clockid_t id, struct timespec *at)
{
	int status;
	if (real_get == NULL)
		begin();
	status = real_get(id, at);
	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
		at->tv_sec += *step_s;
	return status;
}
int gettimeofday(struct timeval *at, void *zone)
{
	struct timespec now;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*at = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return 0;
}
int timespec_get(struct timespec *at, int base)
{
	clock_gettime(CLOCK_REALTIME, at);
	return base;
}
time_t time(time_t *at)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (at != NULL)
		*at = now.tv_sec;
	return now.tv_sec;
}
int cnd_timedwait(cnd_t *condition, mtx_t *lock, const struct timespec *until)
{
	for (;;) {
		struct timespec now, slice;
		clock_gettime(CLOCK_REALTIME, &now);
		int64_t left_ms = (int64_t)(until->tv_sec - now.tv_sec) * 1000 + (until->tv_nsec - now.tv_nsec) / 1000000;
		real_get(CLOCK_REALTIME, &slice);
		slice.tv_nsec += (left_ms < 0 ? 0 : left_ms < 20 ? left_ms : 20) * 1000000;
		slice.tv_sec += slice.tv_nsec / 1000000000;
		slice.tv_nsec %= 1000000000;
		int status = real_wait(condition, lock, &slice);
		if (status != thrd_timedout || left_ms <= 20)
			return status;
	}
}
"""


class SteppedClock:
    """The clock of the programs that are started in its environment."""

    def __init__(self, place):
        """A sanitizer's program takes no library before its own."""
        compiler = shutil.which("cc")
        if compiler is None or os.environ.get("WEIR_SANITIZED"):
            raise Skipped("no C compiler, or a sanitizer that wants to be loaded first")
        source, library = place.write("stepped.c", _SOURCE), place.path("stepped.so")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, timeout=PATIENCE_S)
        self._path = place.write("step", struct.pack("=q", 0))
        self.environment = {**os.environ, "LD_PRELOAD": library, "STEPPED_CLOCK": self._path}

    def set(self, step_s):
        """By so many seconds from what it is."""
        with open(self._path, "r+b") as file:
            file.write(struct.pack("=q", step_s))
