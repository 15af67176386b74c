/* SPDX-License-Identifier: Apache-2.0 */
/* A million buckets of 72 bytes as the blobs of 1,024 segments, written as a checkpoint does and read back. */
#ifndef TESTS_BENCH_STORE_BENCH_H
#define TESTS_BENCH_STORE_BENCH_H

#include "common/base/alloc.h"
#include "common/store/store.h"
#include "tests/bench/measure.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	SEGMENTS = 1024,
	BUCKET_BYTES = 72,
	TRANSACTION_BYTES = 4 * 1024 * 1024,
	RUNS = 5,
};

/* Writes a blob for every segment in transactions of a few MiB and makes the checkpoint current. */
static inline void write_checkpoint(struct weir_store *store, struct weir_partition_state *mine, bool base,
                                    const char *bytes, size_t blob_bytes)
{
	struct weir_segment_blob blobs[SEGMENTS];
	struct weir_error error;
	size_t count = 0;
	for (uint32_t segment = 0; segment < SEGMENTS; segment++) {
		blobs[count++] = (struct weir_segment_blob){
			segment, mine->checkpoint + 1, base, {.at = bytes, .length = (uint32_t)blob_bytes}};
		if (count * blob_bytes < TRANSACTION_BYTES && segment < SEGMENTS - 1)
			continue;
		check(store->ops->write_segments(store, 0, mine->epoch, blobs, count, &error), &error);
		count = 0;
	}
	mine->checkpoint++;
	mine->extra = (struct weir_span){0};
	check(store->ops->commit(store, WEIR_STORE_ROLE_LIMITER, mine, 1, NULL, NULL, 0, &error), &error);
}

static inline enum weir_status sum_bytes(void *context, const struct weir_segment_blob *blob)
{
	*(size_t *)context += blob->bytes.length;
	return WEIR_OK;
}

static inline size_t read_checkpoint(struct weir_store *store, const struct weir_partition_state *mine)
{
	uint32_t segments[SEGMENTS];
	struct weir_error error;
	size_t total = 0;
	for (uint32_t i = 0; i < SEGMENTS; i++)
		segments[i] = i;
	check(store->ops->read_segments(store, 0, mine->epoch, 0, segments, SEGMENTS, sum_bytes, &total, &error), &error);
	return total;
}

struct store_bench {
	size_t runs, blob_bytes, total;
	char *bytes; /* TRANSACTION_BYTES */
	double write[RUNS], read[RUNS], delta[RUNS], clean[RUNS], list[RUNS];
};

static inline void store_bench_init(struct store_bench *bench)
{
	bool smoke = is_smoke();
	bench->runs = smoke ? 1 : RUNS;
	bench->blob_bytes = (smoke ? 20000 : 1000000) / SEGMENTS * BUCKET_BYTES;
	bench->total = bench->blob_bytes * SEGMENTS;
	bench->bytes = weir_alloc(TRANSACTION_BYTES, 1);
	for (size_t i = 0; i < TRANSACTION_BYTES; i++)
		bench->bytes[i] = (char)(i * 2654435761u >> 13);
}

static inline void count_segment(void *context, uint32_t segment, uint32_t deltas, uint64_t base_bytes,
                                 uint64_t delta_bytes)
{
	(void)segment;
	(void)deltas;
	*(size_t *)context += (size_t)(base_bytes + delta_bytes);
}

/* One run on an empty store. */
static inline void store_bench_run(struct store_bench *bench, struct weir_store *store, size_t run)
{
	struct weir_partition_state mine;
	struct weir_error error;
	check(store->ops->take(store, WEIR_STORE_ROLE_LIMITER, 0, &mine, &error), &error);
	double start = wall_seconds();
	write_checkpoint(store, &mine, true, bench->bytes, bench->blob_bytes);
	bench->write[run] = wall_seconds() - start;

	start = wall_seconds();
	if (read_checkpoint(store, &mine) != bench->total)
		exit(1);
	bench->read[run] = wall_seconds() - start;

	start = wall_seconds();
	write_checkpoint(store, &mine, false, bench->bytes, bench->blob_bytes / 20);
	bench->delta[run] = wall_seconds() - start;

	size_t listed = 0;
	start = wall_seconds();
	check(store->ops->list_segments(store, 0, mine.epoch, mine.checkpoint, count_segment, &listed, &error), &error);
	bench->list[run] = wall_seconds() - start;
	if (listed != (bench->blob_bytes + bench->blob_bytes / 20) * SEGMENTS)
		exit(1);

	write_checkpoint(store, &mine, true, bench->bytes, bench->blob_bytes);
	start = wall_seconds();
	check(store->ops->clean(store, 0, mine.epoch, &error), &error);
	bench->clean[run] = wall_seconds() - start;
}

static inline void print(const char *name, double took, double plain, double goal, size_t bytes)
{
	printf("{\"bench\":\"%s\",\"unit\":\"s\",\"rate\":%.3f,\"ceiling\":%.3f,\"ratio\":%.2f,\"goal\":%.1f,"
	       "\"megabytes\":%.1f}\n",
	       name, took, plain, plain / took, goal, (double)bytes / 1e6);
}

#endif
