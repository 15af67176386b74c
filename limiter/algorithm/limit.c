/* What the algorithms share: choosing their table, and reading times out. */
#include "limiter/algorithm/limit.h"

#include "common/base/alloc.h"

static const struct limit_ops *ops_of(const struct weir_limit *limit)
{
	switch (limit->algorithm) {
	case WEIR_FIXED_WINDOW: return &limit_fixed_window;
	case WEIR_TOKEN_BUCKET: return limit->penalize ? &limit_penalizing_bucket : &limit_token_bucket;
	case WEIR_GCRA: return &limit_gcra;
	case WEIR_QUEUE: return &limit_queue;
	default: return &limit_sliding_window; /* uniform is one of rate 1 */
	}
}

struct limit_shape limit_shape_of(const struct weir_limit *limit, bool counts_past)
{
	struct limit_shape shape = {.ops = ops_of(limit), .limit = *limit, .counts_past = counts_past};
	memset(&shape.limit.done, 0, sizeof shape.limit.done);
	shape.ops->shape(&shape);
	return shape;
}

void limit_image_runs(struct limit_image *image, const struct times *times, int64_t unit_ms, int64_t after_ms)
{
	image->runs = weir_alloc(times->length, sizeof *image->runs);
	for (uint32_t i = 0; i < times->length; i++) {
		int64_t time_ms = times_at(times, i) * unit_ms, count = (int64_t)times_count_at(times, i);
		if (time_ms <= after_ms)
			continue;
		if (image->run_count > 0 && image->runs[image->run_count - 1].time_ms == time_ms)
			image->runs[image->run_count - 1].count += count;
		else
			image->runs[image->run_count++] = (struct limit_run){time_ms, count};
	}
}
