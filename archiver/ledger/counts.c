/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows in order of arrival, found through an index of open addressing
 * whose entries hold half of the hash: a bucket's bytes are looked at once, in
 * the row that is right. A frame's events come in runs of a few buckets and one
 * hour, so most of the rows that are touched are still in the cache.
 */
#include "archiver/ledger/counts.h"

#include "common/base/alloc.h"
#include "common/base/text.h"
#include "common/bytes/hash.h"

#include <stdlib.h>
#include <sys/random.h>

enum { INDEX_LEAST = 1024 };

struct row {
	uint64_t hash; /* of zone, bucket and hour */
	int64_t hour_ms;
	size_t bucket_at; /* in `names` */
	uint32_t bucket_length;
	uint32_t zone;
	uint64_t passed, blocked, late;
};

struct entry {
	uint32_t tag; /* the hash's upper half */
	uint32_t row; /* + 1; 0: empty */
};

struct counts {
	struct row *rows;
	size_t count, room;
	struct entry *index;
	size_t mask;            /* of the index's size, a power of two */
	struct weir_text names; /* buckets' bytes */
	uint64_t seed; /* secret: keys are what clients make of them, and would else meet in one place of the index */
};

struct counts *counts_new(void)
{
	struct counts *counts = weir_alloc(1, sizeof *counts);
	(void)!getrandom(&counts->seed, sizeof counts->seed, 0);
	counts->index = weir_alloc(INDEX_LEAST, sizeof *counts->index);
	counts->mask = INDEX_LEAST - 1;
	weir_text_reserve(&counts->names, 1); /* so that a bucket without bytes has an address, too */
	return counts;
}

void counts_free(struct counts *counts)
{
	if (counts == NULL)
		return;
	free(counts->rows);
	free(counts->index);
	weir_text_deinit(&counts->names);
	free(counts);
}

uint64_t counts_hash(const struct counts *counts, struct weir_span bucket)
{
	return XXH3_64bits_withSeed(bucket.at, bucket.length, counts->seed);
}

/* The finalizer of splitmix64: zones and hours are small numbers, and near each other. */
static uint64_t mix(uint64_t hash, uint32_t zone, int64_t hour_ms)
{
	uint64_t x = hash ^ ((uint64_t)zone << 48) ^ (uint64_t)(hour_ms / WEIR_HOUR_MS);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static void put_in_index(struct counts *counts, size_t row)
{
	uint64_t hash = counts->rows[row].hash;
	size_t at = hash & counts->mask;
	while (counts->index[at].row != 0)
		at = (at + 1) & counts->mask;
	counts->index[at] = (struct entry){.tag = (uint32_t)(hash >> 32), .row = (uint32_t)row + 1};
}

static void grow_index(struct counts *counts)
{
	size_t size = (counts->mask + 1) * 2;
	free(counts->index);
	counts->index = weir_alloc(size, sizeof *counts->index);
	counts->mask = size - 1;
	for (size_t row = 0; row < counts->count; row++)
		put_in_index(counts, row);
}

static bool is_row(const struct counts *counts, const struct row *row, uint64_t hash, uint32_t zone,
                   struct weir_span bucket, int64_t hour_ms)
{
	return row->hash == hash && row->zone == zone && row->hour_ms == hour_ms &&
	       weir_span_equal((struct weir_span){counts->names.at + row->bucket_at, row->bucket_length}, bucket);
}

static struct row *add_row(struct counts *counts, uint64_t hash, uint32_t zone, struct weir_span bucket,
                           int64_t hour_ms)
{
	if ((counts->count + 1) * 2 > counts->mask + 1)
		grow_index(counts);
	if (counts->count == counts->room) {
		counts->room = counts->room > 0 ? counts->room * 2 : INDEX_LEAST;
		counts->rows = weir_realloc(counts->rows, counts->room, sizeof *counts->rows);
	}
	struct row *row = &counts->rows[counts->count];
	*row = (struct row){.hash = hash,
	                    .hour_ms = hour_ms,
	                    .bucket_at = counts->names.length,
	                    .bucket_length = bucket.length,
	                    .zone = zone};
	weir_text_append(&counts->names, bucket.at, bucket.length);
	put_in_index(counts, counts->count++);
	return row;
}

void counts_add(struct counts *counts, uint32_t zone, struct weir_span bucket, uint64_t bucket_hash, int64_t hour_ms,
                uint64_t passed, uint64_t blocked, uint64_t late)
{
	uint64_t hash = mix(bucket_hash, zone, hour_ms);
	struct row *row = NULL;
	for (size_t at = hash & counts->mask; counts->index[at].row != 0; at = (at + 1) & counts->mask) {
		if (counts->index[at].tag != (uint32_t)(hash >> 32))
			continue;
		row = &counts->rows[counts->index[at].row - 1];
		if (is_row(counts, row, hash, zone, bucket, hour_ms))
			break;
		row = NULL;
	}
	if (row == NULL)
		row = add_row(counts, hash, zone, bucket, hour_ms);
	row->passed += passed;
	row->blocked += blocked;
	row->late += late;
}

size_t counts_size(const struct counts *counts)
{
	return counts->count;
}

size_t counts_bytes(const struct counts *counts)
{
	return counts->count * (sizeof *counts->rows + 4 * sizeof *counts->index) + counts->names.length;
}

void counts_row(const struct counts *counts, size_t i, struct weir_archive_count *row)
{
	const struct row *at = &counts->rows[i];
	*row = (struct weir_archive_count){.zone = at->zone,
	                                   .bucket = {counts->names.at + at->bucket_at, at->bucket_length},
	                                   .begin_ms = at->hour_ms,
	                                   .passed = at->passed,
	                                   .blocked = at->blocked,
	                                   .late = at->late};
}

void counts_clear(struct counts *counts)
{
	counts->count = 0;
	if (counts->room * sizeof *counts->rows > COUNTS_KEPT_BYTES) {
		free(counts->rows);
		counts->rows = NULL;
		counts->room = 0;
	}
	weir_text_clear_to(&counts->names, COUNTS_KEPT_BYTES);
	weir_text_reserve(&counts->names, 1);
	if ((counts->mask + 1) * sizeof *counts->index > COUNTS_KEPT_BYTES) {
		free(counts->index);
		counts->index = weir_alloc(INDEX_LEAST, sizeof *counts->index);
		counts->mask = INDEX_LEAST - 1;
	} else {
		memset(counts->index, 0, (counts->mask + 1) * sizeof *counts->index);
	}
}
