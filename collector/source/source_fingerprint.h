/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file's bytes look like, so that the file is known again: under another
 * name, compressed, copied, or as another that merely has its inode.
 *
 * A hash of the first KiB, and marks: hashes of 64 bytes at 64, 256, 1024, 4096,
 * ... times 4. So wherever a file is cut, a mark lies within the quarter before
 * that place, and two files that begin alike (a banner, a header) are told apart.
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

/* Zero-initialised: of nothing, as an empty file has it. */
struct fingerprint {
	uint32_t head_bytes; /* how many of the first bytes are hashed: fewer while the file was smaller */
	uint64_t head_hash;
	uint32_t mark_count;
	struct fingerprint_mark marks[FINGERPRINT_MARKS_MAX];
};

/** Takes more of the head into account, if it is more. */
void fingerprint_head(struct fingerprint *fingerprint, const void *head, size_t length);

/** Takes bytes into account that were read at an offset; those of the head are not looked at. */
void fingerprint_note(struct fingerprint *fingerprint, uint64_t offset, const void *bytes, size_t length);

/**
 * Whether a file that begins with these bytes (all of it, or FINGERPRINT_HEAD_BYTES) may be the one.
 *
 * @param other  what fingerprint_head() made of the same bytes: asked for many files, most are told by it alone
 */
bool fingerprint_begins(const struct fingerprint *fingerprint, const struct fingerprint *other, const void *head);

enum fingerprint_match {
	FINGERPRINT_SAME,    /* all that is known of its first `upto` bytes is there */
	FINGERPRINT_SHORTER, /* what is there is the same, as far as a mark or the head shows it, but it is less */
	FINGERPRINT_OTHER,
	FINGERPRINT_UNREADABLE,
};

/**
 * Compares a file with what is known of another's first `upto` bytes, and leaves it at that offset where it is the same.
 *
 * @param error  filled for FINGERPRINT_UNREADABLE
 */
enum fingerprint_match fingerprint_check(const struct fingerprint *fingerprint, struct input *input, uint64_t upto,
                                         struct weir_error *error);

/** What is known of the first `upto` bytes alone. */
struct fingerprint fingerprint_cut(const struct fingerprint *fingerprint, uint64_t upto);

/** Whether b begins with what a holds: its first 64 KiB, or as many as it has, but at least one byte. */
bool fingerprint_within(struct input *a, struct input *b);

#endif
