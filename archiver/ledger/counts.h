/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of one partition since they were last stored: how many events of each
 * (zone, bucket, hour) passed, were blocked, were late.
 *
 * Plain structure: no clock, no store. tests/unit/test_ledger.c compares it with
 * a list that is searched from its beginning.
 *
 * @thread one at a time
 */
#ifndef ARCHIVER_COUNTS_H
#define ARCHIVER_COUNTS_H

#include "common/store/archive.h"

/* Of each array when it is cleared: what one busy hour needed is no need of all that follow. */
enum { COUNTS_KEPT_BYTES = 1 << 20 };

struct counts;

struct counts *counts_new(void);
/** NULL is fine. */
void counts_free(struct counts *counts);

/** A bucket's hash in these counts, once for all of its events in a frame. */
uint64_t counts_hash(const struct counts *counts, struct weir_span bucket);

/**
 * Adds events of one bucket and hour in one zone.
 *
 * @param bucket   copied if it is new
 * @param hash     counts_hash(counts, bucket)
 * @param hour_ms  the beginning of the events' hour
 */
void counts_add(struct counts *counts, uint32_t zone, struct weir_span bucket, uint64_t hash, int64_t hour_ms,
                uint64_t passed, uint64_t blocked, uint64_t late);

/** How many (zone, bucket, hour) there are. */
size_t counts_size(const struct counts *counts);
/** Bytes that they take, about; what is kept for more is not counted. */
size_t counts_bytes(const struct counts *counts);

/** Row number i; its bucket is borrowed until the next call that changes. */
void counts_row(const struct counts *counts, size_t i, struct weir_archive_count *row);

/** Empties it; of its memory no more than COUNTS_KEPT_BYTES an array is kept for what comes. */
void counts_clear(struct counts *counts);

#endif
