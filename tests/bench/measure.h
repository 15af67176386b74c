/* SPDX-License-Identifier: Apache-2.0 */
/* What benchmarks measure by: clocks, medians, random numbers that are the same in every run, and how much to do. */
#ifndef TESTS_BENCH_MEASURE_H
#define TESTS_BENCH_MEASURE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double clock_seconds(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline double wall_seconds(void)
{
	return clock_seconds(CLOCK_MONOTONIC);
}

/* The thread's own time: what else the machine does counts as little as it can. */
static inline double thread_seconds(void)
{
	return clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

static inline int compare_doubles(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;
	return first < second ? -1 : first > second;
}

/* The value that this part of them is not above: 0.5 the median, 0.99. Sorts them. */
static inline double part_of(double *values, size_t count, double part)
{
	qsort(values, count, sizeof *values, compare_doubles);
	return values[(size_t)((double)(count - 1) * part)];
}

static inline double median(double *values, size_t count)
{
	return part_of(values, count, 0.5);
}

/* One line on how long messages took, in seconds, and what they are held against. Sorts both. */
static inline void print_latency(const char *name, size_t bytes, double *times, double *ceilings, size_t count)
{
	double rate = part_of(times, count, 0.5) * 1e3, ceiling = part_of(ceilings, count, 0.5) * 1e3;
	printf("{\"bench\":\"%s\",\"unit\":\"ms, %zu bytes\",\"rate\":%.3f,\"ceiling\":%.3f,\"ratio\":%.2f,\"p99\":%.3f,"
	       "\"ceiling_p99\":%.3f}\n",
	       name, bytes, rate, ceiling, rate / ceiling, part_of(times, count, 0.99) * 1e3,
	       part_of(ceilings, count, 0.99) * 1e3);
}

/* Not 0 at first. */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A small size, only to show that it works: WEIR_BENCH=smoke. */
static inline bool is_smoke(void)
{
	const char *mode = getenv("WEIR_BENCH");
	return mode != NULL && strcmp(mode, "smoke") == 0;
}

/* A failure of what is measured ends it. */
static inline void check(enum weir_status status, const struct weir_error *error)
{
	if (status == WEIR_OK)
		return;
	fprintf(stderr, "%s\n", error->text);
	exit(1);
}

#endif
