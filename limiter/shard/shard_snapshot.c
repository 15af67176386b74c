/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: what changed since the last one, as a blob for each segment.
 *
 * Changed buckets are found by their marks, in the order of their addresses, and
 * written straight to their place, so that memory is read from front to back. A
 * bucket is clean again at once, but may be evicted only when the store has the
 * snapshot; the bucket's generation says which snapshot that is.
 */
#include "limiter/shard/internal.h"

#include "common/base/alloc.h"
#include "limiter/shard/segment_blob.h"

#include <assert.h>
#include <stdlib.h>

struct changes {
	struct shard *shard;
	uint32_t *refs;
	size_t count, room;
	size_t bytes[SHARD_SEGMENTS]; /* of the changed buckets of each segment, as written */
	uint32_t buckets[SHARD_SEGMENTS];
	unsigned forms[SHARD_SEGMENTS]; /* theirs together */
};

static void add_change(void *context, uint32_t ref)
{
	struct changes *changes = context;
	if (changes->count == changes->room) {
		changes->room = changes->room == 0 ? 1024 : changes->room * 2;
		changes->refs = weir_realloc(changes->refs, changes->room, sizeof *changes->refs);
	}
	changes->refs[changes->count++] = ref;
	const struct bucket *bucket = slab_at(&changes->shard->slab, ref);
	uint32_t segment = table_segment_of(bucket_tag(bucket->low));
	size_t used = bucket_used(bucket, shard_layout_of(changes->shard, bucket));
	changes->bytes[segment] += segment_blob_bucket_bytes(used);
	changes->buckets[segment]++;
	changes->forms[segment] |= bucket->flags & BUCKET_FORM;
}

/* Allocates one block for numbers, spans and blobs, and sets cursors to where each segment's buckets go. */
static void lay_out(struct shard_snapshot *snapshot, const struct changes *changes, char **cursors)
{
	size_t blobs = 0;
	*snapshot = (struct shard_snapshot){0};
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++) {
		if (changes->buckets[i] == 0)
			continue;
		snapshot->segment_count++;
		blobs += SEGMENT_BLOB_HEAD_BYTES + changes->bytes[i];
	}
	size_t head = snapshot->segment_count * (sizeof *snapshot->deltas + sizeof *snapshot->segments);
	snapshot->memory = weir_realloc(NULL, head + blobs, 1);
	snapshot->bytes = blobs;
	snapshot->deltas = snapshot->memory;
	snapshot->segments = (uint32_t *)(void *)(snapshot->deltas + snapshot->segment_count);
	char *at = (char *)snapshot->memory + head;
	uint32_t place = 0;
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++) {
		if (changes->buckets[i] == 0)
			continue;
		size_t length = SEGMENT_BLOB_HEAD_BYTES + changes->bytes[i];
		snapshot->segments[place] = i;
		snapshot->deltas[place++] = (struct weir_span){.at = at, .length = (uint32_t)length};
		cursors[i] = at + SEGMENT_BLOB_HEAD_BYTES;
		at += length;
	}
}

void shard_snapshot(struct shard *shard, struct shard_snapshot *snapshot)
{
	assert(!shard->snapshot_pending && shard->work.frame == NULL);
	struct changes *changes = weir_alloc(1, sizeof *changes);
	char **cursors = weir_alloc(SHARD_SEGMENTS, sizeof *cursors);
	changes->shard = shard;
	slab_take_marked(&shard->slab, add_change, changes);
	lay_out(snapshot, changes, cursors);
	shard->generation++;
	for (size_t i = 0; i < changes->count; i++) {
		struct bucket *bucket = slab_at(&shard->slab, changes->refs[i]);
		char **cursor = &cursors[table_segment_of(bucket_tag(bucket->low))];
		*cursor = segment_blob_put(*cursor, bucket, bucket_used(bucket, shard_layout_of(shard, bucket)));
		bucket->flags &= (uint8_t)~BUCKET_DIRTY;
		bucket->generation = shard->generation;
	}
	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		uint32_t segment = snapshot->segments[i];
		segment_blob_seal((char *)snapshot->deltas[i].at, snapshot->deltas[i].length, changes->buckets[segment],
		                  changes->forms[segment]);
	}
	shard->dirty_bytes = 0;
	shard->snapshot_pending = true;
	shard->has_store = true;
	shard->snapshot_bytes = snapshot->bytes;
	free(changes->refs);
	free(changes);
	free(cursors);
}

/* Marks the snapshot's buckets as changed again, as no checkpoint has them. */
static void give_up(struct shard *shard)
{
	uint32_t refs[SLAB_PAGE_BLOCKS];
	for (uint32_t page = 0; page < slab_page_end(&shard->slab); page++) {
		uint32_t count = slab_page_blocks(&shard->slab, page, refs);
		for (uint32_t i = 0; i < count; i++) {
			struct bucket *bucket = slab_at(&shard->slab, refs[i]);
			if (bucket->generation == shard->generation)
				shard_set_dirty(shard, bucket, refs[i]);
		}
	}
	for (uint32_t place = 0, ref; (ref = slab_next_large(&shard->slab, &place)) != 0; place++) {
		struct bucket *bucket = slab_at(&shard->slab, ref);
		if (bucket->generation == shard->generation)
			shard_set_dirty(shard, bucket, ref);
	}
}

void shard_snapshot_done(struct shard *shard, struct shard_snapshot *snapshot, bool stored)
{
	if (!stored)
		give_up(shard);
	else
		swap_retry(&shard->swap);
	shard->snapshot_pending = false;
	shard->snapshot_bytes = 0;
	shard->starved = false;
	free(snapshot->memory);
	*snapshot = (struct shard_snapshot){0};
}
