/* SPDX-License-Identifier: Apache-2.0 */
/* A full disk may have room again once the log's oldest part is given up, which takes a moment. */
#include "common/bus/bus_wait.h"

#include "common/base/clock.h"

#include <string.h>

enum { FAILING_MOST_MS = 2000 };

struct weir_bus_wait weir_bus_wait_begin(int64_t wait_ms)
{
	return (struct weir_bus_wait){.wait_ms = wait_ms, .end_ms = weir_monotonic_ms() + wait_ms};
}

enum weir_status weir_bus_wait_on(struct weir_bus_wait *wait, struct weir_bus *bus, const char *what,
                                  struct weir_error *error)
{
	char problem[WEIR_ERROR_TEXT_BYTES / 2] = "";
	int64_t now_ms = weir_monotonic_ms();
	bool fails = bus->ops->problem(bus, problem, sizeof problem);
	bool local = strcmp(bus->ops->name, "local") == 0;
	if (!fails || !local)
		wait->failing_ms = 0;
	else if (wait->failing_ms == 0)
		wait->failing_ms = now_ms;
	if (wait->failing_ms != 0 && now_ms - wait->failing_ms >= FAILING_MOST_MS)
		return weir_fail(error, WEIR_IO, "the log cannot take %s: %s", what, problem);
	if (now_ms < wait->end_ms)
		return WEIR_OK;
	return weir_fail(error, WEIR_IO, "the %s did not acknowledge %s within %lld s%s%s", local ? "log" : "bus", what,
	                 (long long)(wait->wait_ms / 1000), fails ? ": " : "", problem);
}
