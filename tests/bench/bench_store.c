/*
 * The SQLite store: a million buckets of 72 bytes as the blobs of 1,024
 * segments, written as a checkpoint does, read back, changed by deltas.
 *
 * One JSON line a measurement. WEIR_BENCH=smoke runs each on a small size.
 */
#include "common/alloc.h"
#include "common/store.h"
#include "tests/bench/scratch.h"

#include <fcntl.h>
#include <stdbool.h>
#include <time.h>

enum {
	SEGMENTS = 1024,
	BUCKET_BYTES = 72,
	TRANSACTION_BYTES = 4 * 1024 * 1024,
	RUNS = 5,
};

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;
	return first < second ? -1 : first > second;
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, compare);
	return values[count / 2];
}

static void check(enum weir_status status, const struct weir_error *error)
{
	if (status == WEIR_OK)
		return;
	fprintf(stderr, "%s\n", error->text);
	exit(1);
}

/* Writes a blob for every segment in transactions of a few MiB and makes the checkpoint current. */
static void write_checkpoint(struct weir_store *store, struct weir_partition_state *mine, bool base, const char *bytes,
                             size_t blob_bytes)
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

static enum weir_status sum_bytes(void *context, const struct weir_segment_blob *blob)
{
	*(size_t *)context += blob->bytes.length;
	return WEIR_OK;
}

static size_t read_checkpoint(struct weir_store *store, const struct weir_partition_state *mine)
{
	uint32_t segments[SEGMENTS];
	struct weir_error error;
	size_t total = 0;
	for (uint32_t i = 0; i < SEGMENTS; i++)
		segments[i] = i;
	check(store->ops->read_segments(store, 0, mine->epoch, segments, SEGMENTS, sum_bytes, &total, &error), &error);
	return total;
}

/* What the disk takes for as many bytes, synced as often. */
static double write_plainly(const char *directory, const char *bytes, size_t total)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/file", directory);
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	double start = seconds();
	for (size_t at = 0; at < total; at += TRANSACTION_BYTES)
		if (write(fd, bytes, TRANSACTION_BYTES) != TRANSACTION_BYTES || fdatasync(fd) != 0)
			exit(1);
	double took = seconds() - start;
	close(fd);
	return took;
}

static void print(const char *name, double took, double plain, double goal, size_t bytes)
{
	printf("{\"bench\":\"%s\",\"unit\":\"s\",\"rate\":%.3f,\"ceiling\":%.3f,\"ratio\":%.2f,\"goal\":%.1f,"
	       "\"megabytes\":%.1f}\n",
	       name, took, plain, plain / took, goal, (double)bytes / 1e6);
}

int main(void)
{
	const char *mode = getenv("WEIR_BENCH");
	bool smoke = mode != NULL && strcmp(mode, "smoke") == 0;
	size_t buckets = smoke ? 20000 : 1000000, runs = smoke ? 1 : RUNS;
	size_t blob_bytes = buckets / SEGMENTS * BUCKET_BYTES, total = blob_bytes * SEGMENTS;
	double plain[RUNS], write[RUNS], read[RUNS], delta[RUNS], clean[RUNS];
	char *bytes = weir_alloc(TRANSACTION_BYTES, 1);
	struct weir_error error;
	for (size_t i = 0; i < TRANSACTION_BYTES; i++)
		bytes[i] = (char)(i * 2654435761u >> 13);

	for (size_t run = 0; run < runs; run++) {
		char *directory = bench_scratch("store");
		struct weir_store *store;
		struct weir_partition_state mine;
		check(weir_store_sqlite_open(directory, &store, &error), &error);
		check(store->ops->take(store, WEIR_STORE_ROLE_LIMITER, 0, &mine, &error), &error);
		plain[run] = write_plainly(directory, bytes, total);

		double start = seconds();
		write_checkpoint(store, &mine, true, bytes, blob_bytes);
		write[run] = seconds() - start;

		start = seconds();
		if (read_checkpoint(store, &mine) != total)
			exit(1);
		read[run] = seconds() - start;

		start = seconds();
		write_checkpoint(store, &mine, false, bytes, blob_bytes / 20);
		delta[run] = seconds() - start;

		write_checkpoint(store, &mine, true, bytes, blob_bytes);
		start = seconds();
		check(store->ops->clean(store, 0, mine.epoch, &error), &error);
		clean[run] = seconds() - start;
		store->ops->close(store);
		bench_scratch_remove(directory);
	}
	double disk = median(plain, runs);
	print("store_write_million", median(write, runs), disk, 1, total);
	print("store_read_million", median(read, runs), disk, 1, total);
	print("store_write_delta_5_percent", median(delta, runs), disk / 20, 0.2, total / 20);
	print("store_clean_million", median(clean, runs), disk, 1, total);
	free(bytes);
	return 0;
}
