/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uniform I: one event in any span of I, a sliding window of rate 1. What it has
 * of its own is how it is written and read.
 */
#include "common/algorithm/internal.h"

static const char *shorthand(struct weir_limit *limit)
{
	return limit->rate == 1 ? NULL : "uniform lets 1 pass in each interval: write 1/INTERVAL:uniform";
}

static void describe(struct weir_text *text, const struct weir_limit *limit)
{
	weir_text_puts(text, "1 in any ");
	weir_limit_put_time(text, limit->window_ms);
}

static void brief(struct weir_text *text, const struct weir_limit *limit)
{
	weir_text_puts(text, "one in ");
	weir_limit_put_time(text, limit->window_ms);
}

/* An interval is divided, and rounded up. */
static void scale(struct weir_limit *limit, uint32_t thousandths)
{
	int64_t interval_ms = weir_limit_divide_up(limit->window_ms * WEIR_SCALE_ONE, thousandths);
	limit->window_ms = interval_ms < WEIR_WINDOW_MAX_MS ? interval_ms : WEIR_WINDOW_MAX_MS;
}

const struct weir_algorithm weir_limit_uniform = {
	.name = "uniform",
	.members = {{.name = "interval",
                 .meaning = "the least time between two events",
                 .kind = WEIR_MEMBER_TIME,
                 .at = offsetof(struct weir_limit, window_ms),
                 .needed = "the least time between two events, such as \"500ms\"",
                 .least = 1,
                 .most = WEIR_WINDOW_MAX_MS}},
	.shorthand = shorthand,
	.describe = describe,
	.brief = brief,
	.is_window = true,
	.most_within = weir_limit_sliding_most,
	.met = weir_limit_sliding_met,
	.scale = scale,
	.shape = weir_limit_sliding_shape,
	.shown = "{\"times\":[[time,count],...]}",
};
