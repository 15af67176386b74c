/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQLite store: a million buckets of 72 bytes as the blobs of 1,024
 * segments, written as a checkpoint does, read back, changed by deltas.
 *
 * One JSON line a measurement. WEIR_BENCH=smoke runs each on a small size.
 */
#include "common/store/sqlite/store_sqlite.h"
#include "tests/bench/scratch.h"
#include "tests/bench/store_bench.h"

#include <fcntl.h>

/* What the disk takes for as many bytes, synced as often. */
static double write_plainly(const char *directory, const char *bytes, size_t total)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/file", directory);
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	double start = wall_seconds();
	for (size_t at = 0; at < total; at += TRANSACTION_BYTES)
		if (write(fd, bytes, TRANSACTION_BYTES) != TRANSACTION_BYTES || fdatasync(fd) != 0)
			exit(1);
	double took = wall_seconds() - start;
	close(fd);
	return took;
}

int main(void)
{
	struct store_bench bench;
	struct weir_error error;
	double plain[RUNS];
	store_bench_init(&bench);
	for (size_t run = 0; run < bench.runs; run++) {
		char *directory = bench_scratch("store");
		struct weir_store *store;
		check(weir_store_sqlite_open(directory, &store, &error), &error);
		plain[run] = write_plainly(directory, bench.bytes, bench.total);
		store_bench_run(&bench, store, run);
		store->ops->close(store);
		bench_scratch_remove(directory);
	}
	double disk = median(plain, bench.runs);
	print("store_write_million", median(bench.write, bench.runs), disk, 1, bench.total);
	print("store_read_million", median(bench.read, bench.runs), disk, 1, bench.total);
	print("store_write_delta_5_percent", median(bench.delta, bench.runs), disk / 20, 0.2, bench.total / 20);
	print("store_clean_million", median(bench.clean, bench.runs), disk, 1, bench.total);
	free(bench.bytes);
	return 0;
}
