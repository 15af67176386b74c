/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blobs: buckets of one segment as the store keeps them.
 *
 * A base holds a whole segment, a delta what changed since. Both have the same
 * form. If a bucket is in several blobs, the newest counts. Little-endian:
 *
 *   bytes  what
 *   2      magic "wS"
 *   1      version: 3; 1 and 2 are read too
 *   1      zero
 *   4      buckets
 *   8      checksum: XXH3-64 of everything after it, from version 3 on combined by exclusive-or with the 8 bytes before it
 *   -- each bucket:
 *   varint bytes after its header
 *   8      fingerprint, its lower bits
 *   2      its upper bits (hash.h); in versions 1 and 2 it had 64 of them, in 8 bytes
 *   6      newest recorded time, Unix ms
 *   4      the clock at its last event, s
 *   3      the number of its layout, which may be a scaled one (compiled_policy.h)
 *   1      form (enum bucket_flags)
 *   …      what is after the header in memory (bucket_layout.h)
 *
 * A blob may still have a bucket that has been forgotten since it was written.
 * That does no harm: a bucket is tested for being forgotten whenever it is read.
 */
#ifndef LIMITER_SEGMENT_BLOB_H
#define LIMITER_SEGMENT_BLOB_H

#include "common/base/span.h"
#include "limiter/bucket/bucket.h"
#include "limiter/bucket/compiled_policy.h"

enum { SEGMENT_BLOB_VERSION = 3, SEGMENT_BLOB_HEAD_BYTES = 16, SEGMENT_BLOB_BUCKET_HEAD_BYTES = 24 };

/* ---- writing ---- */

/** The bytes that a bucket takes in a blob. @param used  its bucket_used() */
size_t segment_blob_bucket_bytes(size_t used);

/** Writes a bucket. @return the place after its last byte */
char *segment_blob_put(char *at, const struct bucket *bucket, size_t used);

/**
 * Writes a blob's header, before its buckets, which are written already.
 *
 * @param length  of the whole blob
 */
void segment_blob_seal(char *blob, size_t length, uint32_t buckets);

/* ---- reading ---- */

struct segment_blob_reader {
	const char *at, *end;
	uint32_t left;       /* buckets not yet read */
	uint32_t high_bytes; /* of the upper bits of a fingerprint */
};

/* A bucket as it is in a blob. Only its bounds have been checked. */
struct segment_blob_bucket {
	struct bucket header; /* its generation is zero */
	const char *body;     /* after the header */
	uint32_t body_bytes;
};

/**
 * Begins reading: checks header and checksum.
 *
 * @return WEIR_OK; WEIR_INVALID: the blob is damaged; WEIR_NEWER: another version wrote it
 */
WEIR_MUST_USE enum weir_status segment_blob_open(struct segment_blob_reader *reader, struct weir_span blob,
                                                 struct weir_error *error);

/** The next bucket. @return WEIR_OK; WEIR_END; WEIR_INVALID: the blob is damaged */
WEIR_MUST_USE enum weir_status segment_blob_next(struct segment_blob_reader *reader, struct segment_blob_bucket *bucket,
                                                 struct weir_error *error);

/**
 * Lays a bucket out as in memory and checks every part of it, so that using it is safe.
 *
 * @param block  sizeof(struct bucket) + body_bytes, aligned as a struct bucket
 */
WEIR_MUST_USE enum weir_status segment_blob_restore(const struct segment_blob_bucket *bucket,
                                                    const struct compiled_policy *compiled, struct bucket *block,
                                                    struct weir_error *error);

/* The set of fingerprints seen so far, while blobs are read newest first. */
struct segment_blob_seen {
	struct weir_fingerprint *prints;
	uint32_t room, count; /* room is a power of two, or 0 */
	bool has_zero;
};

/** Adds a fingerprint. @return whether it is new */
bool segment_blob_see(struct segment_blob_seen *seen, uint64_t low, uint32_t high);
void segment_blob_seen_deinit(struct segment_blob_seen *seen);

/**
 * Merges a segment's blobs into one base: the newest version of each bucket, without buckets whose zone the policy no
 * longer has and those that are forgotten. A pure function, for any thread.
 *
 * @param blobs        the base, then the deltas, oldest first
 * @param compiled     as of the newest blob
 * @param clock_ms     as of the newest blob
 * @param lateness_ms  < 0: nothing is forgotten
 * @param merged       returned, the caller frees
 */
WEIR_MUST_USE enum weir_status segment_blob_merge(const struct weir_span *blobs, size_t count,
                                                  const struct compiled_policy *compiled, int64_t clock_ms,
                                                  int64_t lateness_ms, char **merged, size_t *length,
                                                  struct weir_error *error);

#endif
