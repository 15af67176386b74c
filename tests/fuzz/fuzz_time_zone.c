/* SPDX-License-Identifier: Apache-2.0 */
/* tzdata files: any bytes give a zone that answers for every time, or are refused. */
#include "collector/record/time_zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* The file is in memory, and its name is its descriptor. */
	static int file = -1;
	static char name[16];
	if (file < 0) {
		file = memfd_create("zone", 0);
		snprintf(name, sizeof name, "%d", file);
		setenv("TZDIR", "/proc/self/fd", 1);
	}
	if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size)
		abort();
	struct time_zone *zone;
	struct weir_error error;
	if (time_zone_new(name, &zone, &error) != WEIR_OK)
		return 0;
	for (int64_t local_s = -70000000000; local_s < 400000000000; local_s += 1234567891) {
		struct time_zone_span span = time_zone_find(zone, local_s);
		if (local_s < span.from_s || local_s >= span.to_s || abs(span.offset_s) > TIME_ZONE_OFFSET_MAX_S)
			abort();
	}
	time_zone_free(zone);
	return 0;
}
