/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fingerprint of a file's content, by which a file is recognised under another
 * name, compressed or copied, and told from another file that got its inode.
 *
 * It is a hash of the first KiB, and marks: hashes of 64 bytes at 64, 256, 1024,
 * 4096, and so on, times 4. So wherever a file is cut, the last mark is at a quarter
 * of that place or later, and two files that begin alike (with a banner or a
 * header) are told apart.
 */
#ifndef COLLECTOR_SOURCE_FINGERPRINT_H
#define COLLECTOR_SOURCE_FINGERPRINT_H

#include "collector/input/input.h"

enum {
	FINGERPRINT_HEAD_BYTES = 1024,
	FINGERPRINT_MARK_BYTES = 64,
	FINGERPRINT_MARKS_MAX = 18, /* 64 x 4^17 is the last below 2^40 */
};

struct fingerprint_mark {
	uint64_t offset;
	uint32_t bytes;
	uint64_t hash;
};

/* Zero-initialised: that of an empty file. */
struct fingerprint {
	uint32_t head_bytes; /* how many of the first bytes are hashed; fewer if the file was smaller then */
	uint64_t head_hash;
	uint32_t mark_count;
	struct fingerprint_mark marks[FINGERPRINT_MARKS_MAX];
};

/** Adds the first bytes of the file, if these are more than before. */
void fingerprint_head(struct fingerprint *fingerprint, const void *head, size_t length);

/** Adds marks from bytes that were read at an offset. Does not add to the head. */
void fingerprint_note(struct fingerprint *fingerprint, uint64_t offset, const void *bytes, size_t length);

/**
 * Whether a file that begins with these bytes (all of it, or FINGERPRINT_HEAD_BYTES) may be the fingerprint's.
 *
 * @param other  what fingerprint_head() made of the same bytes; for most of many fingerprints it suffices
 */
bool fingerprint_begins(const struct fingerprint *fingerprint, const struct fingerprint *other, const void *head);

enum fingerprint_match {
	FINGERPRINT_SAME,    /* it matches all that is known of the first `upto` bytes */
	FINGERPRINT_SHORTER, /* it has fewer bytes, and matches as far as the head or a mark shows */
	FINGERPRINT_OTHER,
	FINGERPRINT_UNREADABLE,
};

/**
 * Compares a file with what is known of another's first `upto` bytes. If it is the same, leaves it at that offset.
 *
 * @param error  filled for FINGERPRINT_UNREADABLE
 */
enum fingerprint_match fingerprint_check(const struct fingerprint *fingerprint, struct input *input, uint64_t upto,
                                         struct weir_error *error);

/** The part of a fingerprint that is about the first `upto` bytes. */
struct fingerprint fingerprint_cut(const struct fingerprint *fingerprint, uint64_t upto);

/** Whether b begins with the first 64 KiB of a, or all of a if it is shorter. False if a is empty. */
bool fingerprint_within(struct input *a, struct input *b);

#endif
