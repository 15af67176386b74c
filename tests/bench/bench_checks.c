/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a check costs a shard: judging it on a copy, in groups, and applying it when it comes back; beside judging the
 * same events as if they came from a log. On users chosen evenly, three limits each, as bench_judge has them.
 *
 *   bench_checks [USERS [CHECKS]]
 */
#include "common/base/alloc.h"
#include "limiter/shard/shard_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* As many checks are answered and not back from the log as a pipeline of 64 on fifty connections keeps there. */
enum { FRAME_CHECKS = 1024, FRAMES_IN_FLIGHT = 8, RUNS = 5 };

static const int64_t start_ms = INT64_C(1732173600000);

static double thread_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct buffer {
	struct weir_frame frame;
	struct weir_frame_zone zone;
	struct weir_frame_zone_set set;
	struct weir_frame_event events[FRAME_CHECKS];
	struct weir_span keys[FRAME_CHECKS];
	char bytes[FRAME_CHECKS][16];
	uint8_t answers[FRAME_CHECKS / 2];
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

static void begin(struct buffer *buffer)
{
	buffer->zone.id = 1;
	buffer->set = (struct weir_frame_zone_set){.zones = &buffer->zone, .count = 1};
	buffer->frame = (struct weir_frame){.zone_sets = &buffer->set,
	                                    .zone_set_count = 1,
	                                    .keys = buffer->keys,
	                                    .key_count = FRAME_CHECKS,
	                                    .events = buffer->events,
	                                    .event_count = FRAME_CHECKS,
	                                    .pair_count = FRAME_CHECKS,
	                                    .verdicts = buffer->answers};
}

/* Users of one frame, at a time; an address each. @param position  of the event before */
static void fill(struct buffer *buffer, uint32_t users, uint64_t *random, int64_t t, uint64_t *position)
{
	for (uint32_t i = 0; i < FRAME_CHECKS; i++) {
		uint32_t ip = ((uint32_t)(next_random(random) % users) + 1) * UINT32_C(2654435761);
		int length = snprintf(buffer->bytes[i], 16, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
		buffer->keys[i] = (struct weir_span){.at = buffer->bytes[i], .length = (uint32_t)length};
		buffer->events[i] = (struct weir_frame_event){.key = i, .time_ms = t, .cost = 1, .position = ++*position};
	}
	memset(buffer->answers, 0, sizeof buffer->answers);
	buffer->frame.sending_time_ms = t;
}

static double ask(struct shard *shard, struct buffer *buffer, const struct compiled_zone *zone, int64_t t)
{
	struct shard_check checks[CHECK_GROUP_MAX];
	double begun = thread_seconds();
	for (uint32_t i = 0; i < FRAME_CHECKS; i += CHECK_GROUP_MAX) {
		for (uint32_t j = 0; j < CHECK_GROUP_MAX; j++)
			checks[j] = (struct shard_check){.zone = zone, .key = buffer->keys[i + j], .cost = 1};
		shard_check_judge(shard, checks, CHECK_GROUP_MAX, (struct check_times){t, t});
		for (uint32_t j = 0; j < CHECK_GROUP_MAX; j++)
			if (checks[j].blocked)
				buffer->answers[(i + j) / 2] |= (uint8_t)(WEIR_VERDICT_BLOCK << ((i + j) % 2 * 4));
	}
	return thread_seconds() - begun;
}

static double take(struct shard *shard, const struct buffer *buffer)
{
	struct shard_result result;
	double begun = thread_seconds();
	shard_frame_begin(shard, &buffer->frame, 0);
	shard_frame_judge(shard, &result);
	return thread_seconds() - begun;
}

int main(int argc, char **argv)
{
	uint32_t users = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000;
	uint32_t frames = (argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 2000000) / FRAME_CHECKS;
	struct weir_zone zone = {.id = 1, .name = "site", .description = "", .limit_count = 3};
	zone.limits[0] =
		(struct weir_limit){.algorithm = weir_algorithm_named("sliding_window"), .rate = 10, .window_ms = 60000};
	zone.limits[1] =
		(struct weir_limit){.algorithm = weir_algorithm_named("fixed_window"), .rate = 100, .window_ms = 3600000};
	zone.limits[2] =
		(struct weir_limit){.algorithm = weir_algorithm_named("fixed_window"), .rate = 1000, .window_ms = 86400000};
	struct weir_policy policy = {.version = 1, .zones = &zone, .zone_count = 1};
	const struct weir_policy *policies[] = {&policy};
	struct compiled_policy *compiled = compiled_policy_new(policies, 1);
	struct shard_options options = {.seed = 42, .lateness_ms = 600000};
	struct shard *shard = shard_new(&options, compiled);
	struct buffer *buffers = weir_alloc(FRAMES_IN_FLIGHT, sizeof *buffers);
	uint64_t random = 88172645463325252u;
	double t = (double)start_ms, step = 6000.0 * FRAME_CHECKS / users; /* ten requests a minute */
	uint64_t position = 0;
	for (uint32_t i = 0; i < FRAMES_IN_FLIGHT; i++)
		begin(&buffers[i]);
	shard_checks_begin(shard, buffers->frame.source);
	for (int run = -2; run < RUNS; run++) { /* the first runs fill and warm up */
		double asked = 0, applied = 0, judged = 0;
		for (uint32_t i = 0; i < frames + FRAMES_IN_FLIGHT; i++, t += step) {
			struct buffer *buffer = &buffers[i % FRAMES_IN_FLIGHT];
			if (i >= FRAMES_IN_FLIGHT)
				applied += take(shard, buffer);
			if (i >= frames)
				continue;
			fill(buffer, users, &random, (int64_t)t, &position);
			buffer->frame.kind = WEIR_FRAME_CHECKS;
			asked += ask(shard, buffer, compiled_policy_zone_at(compiled, 0), (int64_t)t);
		}
		for (uint32_t i = 0; i < frames; i++, t += step) {
			fill(buffers, users, &random, (int64_t)t, &position);
			buffers->frame.kind = WEIR_FRAME_EVENTS;
			judged += take(shard, buffers);
		}
		double events = (double)frames * FRAME_CHECKS / 1e9;
		if (run >= 0)
			printf("{\"bench\":\"checks\",\"users\":%u,\"asked_ns\":%.1f,\"applied_ns\":%.1f,\"judged_ns\":%.1f}\n",
			       users, asked / events, applied / events, judged / events);
	}
	shard_free(shard);
	compiled_policy_free(compiled);
	free(buffers);
	return 0;
}
