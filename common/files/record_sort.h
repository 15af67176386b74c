/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An external sort: any number of records by (time, rank, order of arrival), within a bounded memory.
 *
 * Records are collected in memory. What does not fit is written, sorted, to a temporary file that has no name in its
 * directory, so that it is gone however the process ends. At the end the sorted runs are merged.
 *
 *   memory   memory_bytes for the records and their order, once more for the merge of as many runs as there may be
 *   disk     what the records take, with 16 bytes each, as soon as they do not fit; from 256 times the memory on, the
 *            same again for a short while
 *
 * @thread the one that reads
 */
#ifndef WEIR_COMMON_RECORD_SORT_H
#define WEIR_COMMON_RECORD_SORT_H

#include "common/base/span.h"
#include "common/base/status.h"

#include <stdatomic.h>
#include <stdint.h>

enum { WEIR_RECORD_SORT_LEAST_BYTES = 4096 };

struct weir_record_sort;

struct weir_record_sort_options {
	size_t memory_bytes;      /* WEIR_RECORD_SORT_LEAST_BYTES at least */
	const char *directory;    /* where the temporary file is; NULL: $TMPDIR, or /var/tmp. Borrowed */
	const _Atomic bool *stop; /* once it is set, long steps end with WEIR_AGAIN. Borrowed */
};

struct weir_record_sort *weir_record_sort_new(const struct weir_record_sort_options *options);
/** NULL is fine. What was on disk is gone. */
void weir_record_sort_free(struct weir_record_sort *sort);

/**
 * Adds a record.
 *
 * @param rank   goes before the order of arrival among equal times
 * @param bytes  borrowed, copied
 * @return WEIR_OK; WEIR_IO: the temporary file cannot be written, the words say where it is and why; WEIR_AGAIN: stopped
 */
WEIR_MUST_USE enum weir_status weir_record_sort_add(struct weir_record_sort *sort, int64_t time_ms, uint32_t rank,
                                                    struct weir_span bytes, struct weir_error *error);

/** No more records come: weir_record_sort_next() gives the first one. @return likewise */
WEIR_MUST_USE enum weir_status weir_record_sort_finish(struct weir_record_sort *sort, struct weir_error *error);

/**
 * The next record in order.
 *
 * @param bytes  borrowed until the next call
 * @return WEIR_OK; WEIR_END: that was all; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_record_sort_next(struct weir_record_sort *sort, int64_t *time_ms,
                                                     struct weir_span *bytes, struct weir_error *error);

/** Records added so far. */
uint64_t weir_record_sort_count(const struct weir_record_sort *sort);
/** Bytes on disk. */
uint64_t weir_record_sort_disk_bytes(const struct weir_record_sort *sort);
/** Where they are. */
const char *weir_record_sort_directory(const struct weir_record_sort *sort);

#endif
