/* SPDX-License-Identifier: Apache-2.0 */
/* What the algorithms share of judging: a limit's shape, and showing times. */
#include "common/algorithm/limit_state.h"

struct weir_limit_shape weir_limit_shape_of(const struct weir_limit *limit, bool counts_past)
{
	struct weir_limit_shape shape = {.limit = *limit, .capacity = limit->rate, .counts_past = counts_past};
	memset(&shape.limit.done, 0, sizeof shape.limit.done);
	limit->algorithm->shape(&shape);
	return shape;
}

int64_t weir_limit_capacity_ms(const struct weir_limit_shape *shape)
{
	int64_t rate = shape->limit.rate;
	if (rate <= 0 || rate == shape->capacity)
		return shape->limit.window_ms;
	return (int64_t)(((weir_wide)shape->capacity * shape->limit.window_ms + rate - 1) / rate);
}

void weir_limit_show_times(struct weir_text *text, const struct weir_times *times, int64_t unit_ms, int64_t after_ms)
{
	const char *before = "{\"times\":[[";
	int64_t run_ms = 0, count = 0;
	for (uint32_t i = 0; i <= times->length; i++) {
		int64_t time_ms = i < times->length ? weir_times_at(times, i) * unit_ms : INT64_MAX;
		if (time_ms <= after_ms)
			continue;
		if (count > 0 && time_ms != run_ms) { /* equal times are one pair */
			weir_text_puts(text, before);
			weir_text_int(text, run_ms);
			weir_text_puts(text, ",");
			weir_text_int(text, count);
			before = "],[";
			count = 0;
		}
		run_ms = time_ms;
		if (i < times->length)
			count += (int64_t)weir_times_count_at(times, i);
	}
	weir_text_puts(text, before[0] == '{' ? "{\"times\":[]}" : "]]}");
}
