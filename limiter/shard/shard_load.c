/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads segments from the store: all of them after a start, later those whose
 * evicted buckets a frame needs. Buckets in memory are newer than those in the
 * store, so they stay.
 */
#include "limiter/shard/shard_copies.h"

#include "common/base/alloc.h"
#include "limiter/shard/segment_blob.h"

#include <stdlib.h>

/* A segment being loaded. */
struct load {
	struct shard *shard;
	struct segment *segment;
	struct segment_blob_seen seen; /* used if there are several blobs */
	bool has_many;
	uint64_t *left_out; /* filter hashes of buckets that there was no room for */
	uint32_t left_out_count, left_out_room;
	struct bucket *block; /* the bucket being checked */
	size_t block_bytes;
};

/* Whether the waiting frame, or a check, needs the bucket. */
static bool is_missing(const struct load *load, uint64_t low, uint32_t high)
{
	const struct shard_frame *work = &load->shard->work;
	if (shard_check_wants(load->shard, low, high))
		return true;
	if (work->frame == NULL)
		return false;
	for (uint32_t i = load->segment->missing; i != 0; i = work->lookups[i - 1].next_missing)
		if (work->lookups[i - 1].low == low && work->lookups[i - 1].high == high)
			return true;
	return false;
}

static void leave_out(struct load *load, uint64_t hash)
{
	if (load->left_out_count == load->left_out_room) {
		load->left_out_room = load->left_out_room == 0 ? 64 : load->left_out_room * 2;
		load->left_out = weir_realloc(load->left_out, load->left_out_room, sizeof *load->left_out);
	}
	load->left_out[load->left_out_count++] = hash;
}

/* Puts the checked bucket into memory. It is clean, as the store has it. */
static void take(struct load *load, size_t used)
{
	struct shard *shard = load->shard;
	uint32_t ref = slab_alloc(&shard->slab, used);
	struct bucket *bucket = slab_at(&shard->slab, ref);
	memcpy(bucket, load->block, used);
	bucket_set_generation(bucket, shard->generation - 1);
	table_add(&shard->table, bucket_tag(bucket->low), ref);
	shard->churn++;
}

static enum weir_status load_bucket(struct load *load, const struct segment_blob_bucket *stored,
                                    struct weir_error *error)
{
	struct shard *shard = load->shard;
	uint64_t low = stored->header.low;
	uint32_t high = stored->header.high;
	if (load->has_many && !segment_blob_see(&load->seen, low, high))
		return WEIR_OK;
	if (&shard->segments[table_segment_of(bucket_tag(low))] != load->segment)
		return weir_fail(error, WEIR_INVALID, "a stored bucket is in the wrong segment");
	size_t used = sizeof stored->header + stored->body_bytes;
	if (used > load->block_bytes) {
		load->block_bytes = used + used / 2;
		load->block = weir_realloc(load->block, load->block_bytes, 1);
	}
	enum weir_status status = segment_blob_restore(stored, shard->compiled, load->block, error);
	if (status != WEIR_OK)
		return status;
	if (shard_is_forgotten(shard, load->block, shard->clock_ms) || shard_find_ref(shard, low, high) != 0 ||
	    shard_is_swapped(shard, low, high))
		return WEIR_OK;
	if (shard_has_room(shard) || is_missing(load, low, high))
		take(load, used);
	else if (!shard_swap_out(shard, load->block, used))
		leave_out(load, shard_filter_hash(low, high));
	return WEIR_OK;
}

/* How many buckets a blob has: what it says, but no more than its bytes can hold. */
static uint32_t buckets_in(const struct segment_blob_reader *reader)
{
	size_t most = (size_t)(reader->end - reader->at) / SEGMENT_BLOB_BUCKET_HEAD_BYTES;
	return reader->left < most ? reader->left : (uint32_t)most;
}

static enum weir_status load_blob(struct load *load, struct weir_span blob, struct weir_error *error)
{
	struct segment_blob_reader reader;
	struct segment_blob_bucket bucket;
	enum weir_status status = segment_blob_open(&reader, blob, error);
	if (status == WEIR_OK && shard_has_room(load->shard))
		table_reserve(&load->shard->table, (uint32_t)(load->segment - load->shard->segments), buckets_in(&reader));
	while (status == WEIR_OK) {
		status = segment_blob_next(&reader, &bucket, error);
		if (status == WEIR_OK)
			status = load_bucket(load, &bucket, error);
	}
	return status == WEIR_END ? WEIR_OK : status;
}

/* Replaces the segment's filter by one over the buckets that were left out. */
static void set_filter(struct load *load, uint32_t number)
{
	struct shard *shard = load->shard;
	struct filter *filter = &load->segment->evicted;
	shard->filter_bytes -= filter_bytes(filter);
	filter_deinit(filter);
	filter_init(filter, load->left_out_count);
	for (uint32_t i = 0; i < load->left_out_count; i++)
		filter_add(filter, load->left_out[i]);
	shard->filter_bytes += filter_bytes(filter);
	shard_set_residence(shard, number, load->left_out_count > 0 ? SEGMENT_PARTIAL : SEGMENT_WHOLE);
}

enum weir_status shard_load(struct shard *shard, uint32_t segment, const struct weir_span *blobs, size_t count,
                            struct weir_error *error)
{
	if (segment >= SHARD_SEGMENTS)
		return weir_fail(error, WEIR_INVALID, "there is no segment %u", segment);
	uint64_t failures = shard->swap_failures;
	struct load load = {.shard = shard, .segment = &shard->segments[segment], .has_many = count > 1};
	enum weir_status status = WEIR_OK;
	for (size_t i = count; i-- > 0 && status == WEIR_OK;)
		status = load_blob(&load, blobs[i], error);
	if (status == WEIR_OK) {
		set_filter(&load, segment);
		if (shard->swap_failures == failures)
			shard_check_loaded(shard, segment);
		else /* swap lost one that was left out, perhaps of this very segment; a check may have wanted it from there */
			shard_set_residence(shard, segment, SEGMENT_UNKNOWN);
		/*
		 * In either case: what the waiting frame needs is in memory now, and stays there. What was in swap was recalled
		 * when the frame began; if that failed, the segment was unknown, and each of the frame's buckets was taken from it.
		 */
		load.segment->loaded_for_frame = true;
		shard->loads++;
	}
	segment_blob_seen_deinit(&load.seen);
	free(load.left_out);
	free(load.block);
	return status;
}
