/* SPDX-License-Identifier: Apache-2.0 */
/* Two clocks cannot be read at one moment: a reading that took long, as the process was stopped, says nothing. */
#include "common/base/clock_step.h"

#include "common/base/clock.h"

#include <stdbool.h>

enum { READING_MS = 500 };

static bool read_offset(int64_t *offset_ms)
{
	int64_t before_ms = weir_monotonic_ms();
	*offset_ms = weir_wall_ms() - before_ms;
	return weir_monotonic_ms() - before_ms < READING_MS;
}

void weir_clock_step_begin(struct weir_clock_step *clock)
{
	while (!read_offset(&clock->offset_ms))
		continue;
}

int64_t weir_clock_step_take(struct weir_clock_step *clock)
{
	int64_t offset_ms;
	if (!read_offset(&offset_ms))
		return 0;
	int64_t step_ms = offset_ms - clock->offset_ms;
	if (step_ms < WEIR_CLOCK_STEP_MS && step_ms > -WEIR_CLOCK_STEP_MS)
		return 0;
	clock->offset_ms = offset_ms;
	return step_ms;
}
