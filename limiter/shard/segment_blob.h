/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blobs: buckets of one segment as the store keeps them.
 *
 * A base holds a segment whole, a delta what changed since; both are written
 * alike, and of a bucket that is in several blobs the newest counts. Little-endian:
 *
 *   bytes  what
 *   2      magic "wS"
 *   1      version (SEGMENT_BLOB_VERSION)
 *   1      zero
 *   4      buckets
 *   8      checksum: XXH3-64 of everything after it
 *   -- each bucket:
 *   varint bytes after its header
 *   16     fingerprint
 *   6      newest recorded time, Unix ms
 *   4      the clock at its last event, s
 *   3      the number of its layout, which may be a scaled one (compiled_policy.h)
 *   1      form (enum bucket_flags)
 *   …      what is after the header in memory (bucket_layout.h)
 *
 * A bucket that has been forgotten since a blob was written may still be in it:
 * whether it counts as empty is tested when it is looked at, so it does no harm.
 */
#ifndef LIMITER_SEGMENT_BLOB_H
#define LIMITER_SEGMENT_BLOB_H

#include "common/base/span.h"
#include "limiter/bucket/bucket.h"
#include "limiter/bucket/compiled_policy.h"

enum { SEGMENT_BLOB_VERSION = 1, SEGMENT_BLOB_HEAD_BYTES = 16, SEGMENT_BLOB_BUCKET_HEAD_BYTES = 30 };

/* ---- writing ---- */

/** Bytes that a bucket takes in a blob. @param used  bucket_used() of it */
size_t segment_blob_bucket_bytes(size_t used);

/** Writes a bucket. @return after its last byte */
char *segment_blob_put(char *at, const struct bucket *bucket, size_t used);

/** Writes the head of a blob whose buckets lie behind it. @param length  of the whole blob */
void segment_blob_seal(char *blob, size_t length, uint32_t buckets);

/* ---- reading ---- */

struct segment_blob_reader {
	const char *at, *end;
	uint32_t left; /* buckets not yet read */
};

/* A bucket as it stands in a blob: nothing but its place is checked. */
struct segment_blob_bucket {
	struct bucket header; /* size class and generation are zero */
	const char *body;     /* after the header */
	uint32_t body_bytes;
};

/**
 * Begins to read: checks head and checksum.
 *
 * @return WEIR_OK; WEIR_INVALID: the blob is damaged; WEIR_NEWER: another version wrote it
 */
WEIR_MUST_USE enum weir_status segment_blob_open(struct segment_blob_reader *reader, struct weir_span blob,
                                                 struct weir_error *error);

/** The next bucket. @return WEIR_OK; WEIR_END; WEIR_INVALID: the blob is damaged */
WEIR_MUST_USE enum weir_status segment_blob_next(struct segment_blob_reader *reader, struct segment_blob_bucket *bucket,
                                                 struct weir_error *error);

/**
 * Lays a bucket out as in memory and checks every part of it: one that passes breaks nothing.
 *
 * @param block  sizeof(struct bucket) + body_bytes, aligned as a struct bucket
 */
WEIR_MUST_USE enum weir_status segment_blob_restore(const struct segment_blob_bucket *bucket,
                                                    const struct compiled_policy *compiled, struct bucket *block,
                                                    struct weir_error *error);

/* Fingerprints that were seen, while blobs are read from the newest on. */
struct segment_blob_seen {
	struct {
		uint64_t low, high;
	} * prints;
	uint32_t room, count; /* room is a power of two, or 0 */
	bool has_zero;
};

/** Adds a fingerprint. @return whether it is new */
bool segment_blob_see(struct segment_blob_seen *seen, uint64_t low, uint64_t high);
void segment_blob_seen_deinit(struct segment_blob_seen *seen);

/**
 * Makes one base of a segment's blobs: of each bucket the newest, without those whose zone the policy no longer has and
 * those that are forgotten. A pure function, for any thread.
 *
 * @param blobs        the base, then the deltas, oldest first
 * @param compiled        as of the newest blob
 * @param clock_ms     the same
 * @param lateness_ms  < 0: nothing is forgotten
 * @param merged       returned, the caller frees
 */
WEIR_MUST_USE enum weir_status segment_blob_merge(const struct weir_span *blobs, size_t count,
                                                  const struct compiled_policy *compiled, int64_t clock_ms,
                                                  int64_t lateness_ms, char **merged, size_t *length,
                                                  struct weir_error *error);

#endif
