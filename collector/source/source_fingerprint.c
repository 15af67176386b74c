/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking and comparing fingerprints.
 *
 * Marks are taken from lines as they are handed out, never by reading again: a
 * mark is at the first byte handed out at or after its place. Comparing goes
 * forward through the file, as a compressed one cannot go back.
 */
#include "collector/source/source_fingerprint.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <stdlib.h>
#include <string.h>

enum { MARK_FIRST = 64, MARK_LEAST_BYTES = 16, ALIKE_BYTES = 64 << 10 };

void fingerprint_head(struct fingerprint *fingerprint, const void *head, size_t length)
{
	if (length > FINGERPRINT_HEAD_BYTES)
		length = FINGERPRINT_HEAD_BYTES;
	if (length <= fingerprint->head_bytes)
		return;
	fingerprint->head_bytes = (uint32_t)length;
	fingerprint->head_hash = weir_hash64(head, length);
}

/* The place of the next mark: the first one after the last mark. */
static uint64_t next_place(const struct fingerprint *fingerprint)
{
	uint64_t place = MARK_FIRST;
	if (fingerprint->mark_count > 0) {
		uint64_t last = fingerprint->marks[fingerprint->mark_count - 1].offset;
		while (place <= last)
			place *= 4;
	}
	return place;
}

void fingerprint_note(struct fingerprint *fingerprint, uint64_t offset, const void *bytes, size_t length)
{
	while (fingerprint->mark_count < FINGERPRINT_MARKS_MAX) {
		uint64_t place = next_place(fingerprint);
		if (place < offset)
			place = offset;
		if (place + MARK_LEAST_BYTES > offset + length)
			return;
		uint64_t left = offset + length - place;
		uint32_t taken = left < FINGERPRINT_MARK_BYTES ? (uint32_t)left : FINGERPRINT_MARK_BYTES;
		fingerprint->marks[fingerprint->mark_count++] = (struct fingerprint_mark){
			.offset = place, .bytes = taken, .hash = weir_hash64((const char *)bytes + (place - offset), taken)};
	}
}

bool fingerprint_begins(const struct fingerprint *fingerprint, const struct fingerprint *other, const void *head)
{
	if (fingerprint->head_bytes == 0 || fingerprint->head_bytes == other->head_bytes)
		return fingerprint->head_bytes == 0 || fingerprint->head_hash == other->head_hash;
	return fingerprint->head_bytes < other->head_bytes &&
	       weir_hash64(head, fingerprint->head_bytes) == fingerprint->head_hash;
}

struct fingerprint fingerprint_cut(const struct fingerprint *fingerprint, uint64_t upto)
{
	struct fingerprint cut = *fingerprint;
	if (cut.head_bytes > upto)
		cut.head_bytes = 0;
	while (cut.mark_count > 0 && cut.marks[cut.mark_count - 1].offset + cut.marks[cut.mark_count - 1].bytes > upto)
		cut.mark_count--;
	return cut;
}

/* Compares the bytes at one place. */
static enum fingerprint_match check_place(struct input *input, uint64_t offset, uint32_t length, uint64_t hash,
                                          struct weir_error *error)
{
	char bytes[FINGERPRINT_HEAD_BYTES];
	size_t got = 0;
	enum weir_status status = input_seek(input, offset, error);
	if (status == WEIR_OK)
		status = input_read_full(input, bytes, length, &got, error);
	if (status == WEIR_IO)
		return FINGERPRINT_UNREADABLE;
	/* Damaged or cut: it counts as being as long as it can be read. */
	if (status != WEIR_OK || got < length)
		return FINGERPRINT_SHORTER;
	return weir_hash64(bytes, length) == hash ? FINGERPRINT_SAME : FINGERPRINT_OTHER;
}

enum fingerprint_match fingerprint_check(const struct fingerprint *fingerprint, struct input *input, uint64_t upto,
                                         struct weir_error *error)
{
	bool shorter = false, shown = false;
	if (fingerprint->head_bytes > 0) {
		enum fingerprint_match match = check_place(input, 0, fingerprint->head_bytes, fingerprint->head_hash, error);
		if (match == FINGERPRINT_OTHER || match == FINGERPRINT_UNREADABLE)
			return match;
		shorter = match == FINGERPRINT_SHORTER;
		shown = !shorter;
	}
	for (uint32_t i = 0; i < fingerprint->mark_count; i++) {
		const struct fingerprint_mark *mark = &fingerprint->marks[i];
		if (mark->offset + mark->bytes > upto)
			break;
		if (!shorter && mark->offset + mark->bytes <= fingerprint->head_bytes)
			continue; /* compared with the head */
		enum fingerprint_match match = check_place(input, mark->offset, mark->bytes, mark->hash, error);
		if (match == FINGERPRINT_OTHER || match == FINGERPRINT_UNREADABLE)
			return match;
		shorter = shorter || match == FINGERPRINT_SHORTER;
		if (match == FINGERPRINT_SHORTER)
			break;
		shown = true;
	}
	if (!shorter) {
		enum weir_status status = input_seek(input, upto, error);
		if (status == WEIR_OK)
			return FINGERPRINT_SAME;
		if (status == WEIR_IO)
			return FINGERPRINT_UNREADABLE;
	}
	return shown ? FINGERPRINT_SHORTER : FINGERPRINT_OTHER;
}

bool fingerprint_within(struct input *a, struct input *b)
{
	char *bytes = weir_alloc(2, ALIKE_BYTES), *other = bytes + ALIKE_BYTES;
	size_t length = 0, other_length = 0;
	bool within = false;
	/* Damage further on does not matter: what is before it is compared. */
	if (input_seek(a, 0, NULL) == WEIR_OK && input_seek(b, 0, NULL) == WEIR_OK &&
	    input_read_full(a, bytes, ALIKE_BYTES, &length, NULL) != WEIR_IO &&
	    input_read_full(b, other, ALIKE_BYTES, &other_length, NULL) != WEIR_IO)
		within = length > 0 && length <= other_length && memcmp(bytes, other, length) == 0;
	free(bytes);
	return within;
}
