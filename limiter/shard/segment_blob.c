/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket is written as it is in memory, except for its header, so a checkpoint
 * costs one copy. What is read back is checked in full: bytes from a store are
 * trusted no more than those of a file.
 */
#include "limiter/shard/segment_blob.h"

#include "common/base/alloc.h"
#include "common/bytes/bits.h"
#include "common/bytes/varint.h"

#include <stdlib.h>

enum {
	HIGH_BYTES = 2,
	HIGH_BYTES_BEFORE = 8, /* in versions 1 and 2 */
	VERSION_OF_76_BITS = 3,
};

size_t segment_blob_bucket_bytes(size_t used)
{
	size_t body = used - sizeof(struct bucket);
	return weir_varint_size(body) + SEGMENT_BLOB_BUCKET_HEAD_BYTES + body;
}

static char *put_bucket(char *at, const struct bucket *bucket, unsigned form, const void *body, size_t body_bytes)
{
	uint8_t *next = weir_varint_put((uint8_t *)at, body_bytes);
	weir_bytes_put(next, 8, bucket->low);
	weir_bytes_put(next + 8, HIGH_BYTES, bucket->high);
	weir_time_put(next + 10, bucket->newest_ms);
	weir_bytes_put(next + 16, 4, bucket->clock_s);
	weir_bytes_put(next + 20, 2, bucket->layout & 0xffff);
	next[22] = (uint8_t)(bucket->layout >> 16);
	next[23] = (uint8_t)form;
	memcpy(next + SEGMENT_BLOB_BUCKET_HEAD_BYTES, body, body_bytes);
	return (char *)next + SEGMENT_BLOB_BUCKET_HEAD_BYTES + body_bytes;
}

char *segment_blob_put(char *at, const struct bucket *bucket, size_t used)
{
	return put_bucket(at, bucket, bucket->flags & BUCKET_FORM, bucket + 1, used - sizeof *bucket);
}

/* From version 3 on with what stands before it in the header. */
static uint64_t checksum(const uint8_t *blob, size_t length)
{
	uint64_t hash = weir_hash64(blob + SEGMENT_BLOB_HEAD_BYTES, length - SEGMENT_BLOB_HEAD_BYTES);
	return blob[2] < VERSION_OF_76_BITS ? hash : hash ^ weir_bytes_get(blob, 8);
}

void segment_blob_seal(char *blob, size_t length, uint32_t buckets)
{
	uint8_t *head = (uint8_t *)blob;
	memcpy(head, "wS", 2);
	head[2] = SEGMENT_BLOB_VERSION;
	head[3] = 0;
	weir_bytes_put(head + 4, 4, buckets);
	weir_bytes_put(head + 8, 8, checksum(head, length));
}

enum weir_status segment_blob_open(struct segment_blob_reader *reader, struct weir_span blob, struct weir_error *error)
{
	const uint8_t *head = (const uint8_t *)blob.at;
	if (blob.length < SEGMENT_BLOB_HEAD_BYTES || memcmp(head, "wS", 2) != 0)
		return weir_fail(error, WEIR_INVALID, "not a segment blob");
	if (head[2] > SEGMENT_BLOB_VERSION)
		return weir_fail(error, WEIR_NEWER, "segment blob version %u is newer than this program, which reads up to %u",
		                 head[2], SEGMENT_BLOB_VERSION);
	if (head[2] == 0 || head[3] != 0)
		return weir_fail(error, WEIR_INVALID, "the segment blob has a damaged header");
	if (weir_bytes_get(head + 8, 8) != checksum(head, blob.length))
		return weir_fail(error, WEIR_INVALID, "the segment blob does not match its checksum");
	*reader = (struct segment_blob_reader){.at = blob.at + SEGMENT_BLOB_HEAD_BYTES,
	                                       .end = blob.at + blob.length,
	                                       .left = (uint32_t)weir_bytes_get(head + 4, 4),
	                                       .high_bytes = head[2] < VERSION_OF_76_BITS ? HIGH_BYTES_BEFORE : HIGH_BYTES};
	return WEIR_OK;
}

static enum weir_status cut_short(struct weir_error *error)
{
	return weir_fail(error, WEIR_INVALID, "the segment blob ends within a bucket");
}

/* The upper bits of a fingerprint. @return false: it has none that high */
static bool get_high(const uint8_t *at, uint32_t bytes, uint32_t *high)
{
	uint64_t number = weir_bytes_get(at, bytes);
	*high = bytes == HIGH_BYTES_BEFORE ? weir_fingerprint_high(number) : (uint32_t)number;
	return *high <= WEIR_FINGERPRINT_HIGH_MASK;
}

enum weir_status segment_blob_next(struct segment_blob_reader *reader, struct segment_blob_bucket *bucket,
                                   struct weir_error *error)
{
	if (reader->left == 0) {
		if (reader->at != reader->end)
			return weir_fail(error, WEIR_INVALID, "the segment blob has bytes after its last bucket");
		return WEIR_END;
	}
	uint64_t body;
	const uint8_t *end = (const uint8_t *)reader->end;
	const uint8_t *at = weir_varint_get((const uint8_t *)reader->at, end, &body);
	uint64_t head = SEGMENT_BLOB_BUCKET_HEAD_BYTES - HIGH_BYTES + reader->high_bytes;
	if (at == NULL || (uint64_t)(end - at) < head || body > (uint64_t)(end - at) - head)
		return cut_short(error);
	uint32_t high;
	if (!get_high(at + 8, reader->high_bytes, &high))
		return weir_fail(error, WEIR_INVALID, "the segment blob has a fingerprint of more than 76 bits");
	const uint8_t *rest = at + 8 + reader->high_bytes;
	bucket->header = (struct bucket){
		.low = weir_bytes_get(at, 8),
		.high = high & WEIR_FINGERPRINT_HIGH_MASK,
		.newest_ms = (uint64_t)weir_time_get(rest) & WEIR_TIME_MASK,
		.clock_s = (uint32_t)weir_bytes_get(rest + 6, 4),
		.layout = ((uint32_t)weir_bytes_get(rest + 10, 2) | (uint32_t)rest[12] << 16) & LAYOUT_NUMBER_MASK,
		.flags = rest[13],
	};
	bucket->body = (const char *)at + head;
	bucket->body_bytes = (uint32_t)body;
	reader->at = bucket->body + body;
	reader->left--;
	return WEIR_OK;
}

/* The layout of a stored bucket; NULL: no policy has it. */
static const struct layout *layout_of(const struct segment_blob_bucket *bucket, const struct compiled_policy *compiled)
{
	uint32_t scale = SCALE_ONE;
	if (bucket->header.layout & LAYOUT_SCALED)
		scale =
			bucket->body_bytes < SCALE_BYTES ? 0 : (uint32_t)weir_bytes_get((const uint8_t *)bucket->body, SCALE_BYTES);
	return compiled_policy_layout(compiled, bucket->header.layout, scale);
}

enum weir_status segment_blob_restore(const struct segment_blob_bucket *bucket, const struct compiled_policy *compiled,
                                      struct bucket *block, struct weir_error *error)
{
	const struct layout *layout = layout_of(bucket, compiled);
	if (layout == NULL)
		return weir_fail(error, WEIR_INVALID, "a stored bucket has layout %u, which no policy uses",
		                 (unsigned)bucket->header.layout);
	*block = bucket->header;
	memcpy(block + 1, bucket->body, bucket->body_bytes);
	if ((block->flags & ~BUCKET_FORM) != 0 || !bucket_check(block, layout, sizeof *block + bucket->body_bytes))
		return weir_fail(error, WEIR_INVALID, "a stored bucket of layout %u is damaged",
		                 (unsigned)bucket->header.layout);
	return WEIR_OK;
}

/* ---- the set of fingerprints ---- */

static uint32_t place_of(const struct segment_blob_seen *seen, uint64_t low, uint32_t high)
{
	uint32_t at = (uint32_t)low & (seen->room - 1);
	while ((seen->prints[at].low | seen->prints[at].high) != 0 &&
	       (seen->prints[at].low != low || seen->prints[at].high != high))
		at = (at + 1) & (seen->room - 1);
	return at;
}

static void grow(struct segment_blob_seen *seen)
{
	struct segment_blob_seen old = *seen;
	seen->room = old.room == 0 ? 256 : old.room * 2;
	seen->prints = weir_alloc(seen->room, sizeof *seen->prints);
	for (uint32_t i = 0; i < old.room; i++)
		if ((old.prints[i].low | old.prints[i].high) != 0)
			seen->prints[place_of(seen, old.prints[i].low, old.prints[i].high)] = old.prints[i];
	free(old.prints);
}

bool segment_blob_see(struct segment_blob_seen *seen, uint64_t low, uint32_t high)
{
	if ((low | high) == 0) { /* zero marks a free place, so it is kept apart */
		bool is_new = !seen->has_zero;
		seen->has_zero = true;
		return is_new;
	}
	if (seen->count >= seen->room / 4 * 3)
		grow(seen);
	uint32_t at = place_of(seen, low, high);
	if ((seen->prints[at].low | seen->prints[at].high) != 0)
		return false;
	seen->prints[at].low = low;
	seen->prints[at].high = high;
	seen->count++;
	return true;
}

void segment_blob_seen_deinit(struct segment_blob_seen *seen)
{
	free(seen->prints);
	*seen = (struct segment_blob_seen){0};
}

/* ---- merging ---- */

/*
 * Whether a bucket need not be kept. Only the layout in force is asked. The bucket
 * may have been forgotten under an older layout; then it is kept, but counts as
 * empty wherever it is read.
 */
static bool is_gone(const struct segment_blob_bucket *bucket, const struct layout *layout, int64_t clock_ms,
                    int64_t lateness_ms)
{
	while (layout != NULL && layout->ended_version != 0)
		layout = layout->next;
	if (layout == NULL)
		return true;
	if (lateness_ms < 0)
		return false;
	int64_t blocked_until_ms = 0;
	uint32_t decided_at = bucket->header.layout & LAYOUT_SCALED ? SCALE_BYTES : 0;
	if ((bucket->header.flags & BUCKET_DECIDED) && bucket->body_bytes >= decided_at + 2 * WEIR_TIME_BYTES)
		blocked_until_ms = weir_time_get((const uint8_t *)bucket->body + decided_at + WEIR_TIME_BYTES);
	return clock_ms > bucket_remembered_until(&bucket->header, layout, lateness_ms, blocked_until_ms);
}

struct merge {
	const struct compiled_policy *compiled;
	int64_t clock_ms, lateness_ms;
	struct segment_blob_seen seen;
	char *at;
	uint32_t buckets;
};

static enum weir_status merge_blob(struct merge *merge, struct weir_span blob, struct weir_error *error)
{
	struct segment_blob_reader reader;
	struct segment_blob_bucket bucket;
	enum weir_status status = segment_blob_open(&reader, blob, error);
	while (status == WEIR_OK) {
		status = segment_blob_next(&reader, &bucket, error);
		if (status != WEIR_OK)
			break;
		const struct layout *layout = layout_of(&bucket, merge->compiled);
		if (layout == NULL)
			return weir_fail(error, WEIR_INVALID, "a stored bucket has layout %u, which no policy uses",
			                 (unsigned)bucket.header.layout);
		if (!segment_blob_see(&merge->seen, bucket.header.low, bucket.header.high) ||
		    is_gone(&bucket, layout, merge->clock_ms, merge->lateness_ms))
			continue;
		merge->at = put_bucket(merge->at, &bucket.header, bucket.header.flags, bucket.body, bucket.body_bytes);
		merge->buckets++;
	}
	return status == WEIR_END ? WEIR_OK : status;
}

enum weir_status segment_blob_merge(const struct weir_span *blobs, size_t count, const struct compiled_policy *compiled,
                                    int64_t clock_ms, int64_t lateness_ms, char **merged, size_t *length,
                                    struct weir_error *error)
{
	size_t room = SEGMENT_BLOB_HEAD_BYTES;
	for (size_t i = 0; i < count; i++)
		room += blobs[i].length;
	char *base = weir_alloc(room, 1);
	struct merge merge = {.compiled = compiled, .clock_ms = clock_ms, .lateness_ms = lateness_ms};
	merge.at = base + SEGMENT_BLOB_HEAD_BYTES;
	enum weir_status status = WEIR_OK;
	for (size_t i = count; i-- > 0 && status == WEIR_OK;)
		status = merge_blob(&merge, blobs[i], error);
	segment_blob_seen_deinit(&merge.seen);
	if (status != WEIR_OK) {
		free(base);
		return status;
	}
	*length = (size_t)(merge.at - base);
	segment_blob_seal(base, *length, merge.buckets);
	*merged = base;
	return WEIR_OK;
}
