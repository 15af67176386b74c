/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: what changed since the last one, as a blob for each segment.
 *
 * Changed buckets are found by their marks, in the order of their addresses, and
 * written straight to their place, so that memory is read from front to back. A
 * bucket is clean again at once, but may be evicted only when the store has the
 * snapshot; the bucket's generation says which snapshot that is.
 *
 * With options.swap_changes changed buckets may be in swap, and more than memory holds. Then the shard stands still while
 * it is stored, part by part: a range of segments, for each of which memory's marks and all of swap are looked through.
 * Nothing is clean before all is stored.
 */
#include "limiter/shard/internal.h"

#include "common/base/alloc.h"
#include "limiter/shard/segment_blob.h"

#include <assert.h>
#include <stdlib.h>

enum {
	PART_LEAST_BYTES = 64000, /* a part costs a look through all of swap */
	COPY_ALIGNMENT = 8,
};

/* The changed buckets of the segments from `first` to before `end`. */
struct changes {
	struct shard *shard;
	uint32_t first, end;
	uint32_t *refs; /* those in memory */
	size_t count, room;
	char *copies; /* those in swap, each aligned, with its length before it */
	size_t copied, copies_room;
	size_t bytes[SHARD_SEGMENTS]; /* of the changed buckets of each segment, as written */
	uint32_t buckets[SHARD_SEGMENTS];
};

static uint32_t segment_of(const struct bucket *bucket)
{
	return table_segment_of(bucket_tag(bucket->low));
}

static void count_change(struct changes *changes, const struct bucket *bucket, size_t used)
{
	uint32_t segment = segment_of(bucket);
	changes->bytes[segment] += segment_blob_bucket_bytes(used);
	changes->buckets[segment]++;
}

static void add_change(void *context, uint32_t ref)
{
	struct changes *changes = context;
	const struct bucket *bucket = slab_at(&changes->shard->slab, ref);
	uint32_t segment = segment_of(bucket);
	if (segment < changes->first || segment >= changes->end)
		return;
	if (changes->count == changes->room) {
		changes->room = changes->room == 0 ? 1024 : changes->room * 2;
		changes->refs = weir_realloc(changes->refs, changes->room, sizeof *changes->refs);
	}
	changes->refs[changes->count++] = ref;
	count_change(changes, bucket, bucket_used(bucket, shard_layout_of(changes->shard, bucket)));
}

static void add_swapped_change(void *context, const struct bucket *bucket, size_t used)
{
	struct changes *changes = context;
	uint64_t length = used;
	size_t wanted = changes->copied + sizeof length + used + COPY_ALIGNMENT;
	if (wanted > changes->copies_room) {
		changes->copies_room = wanted + wanted / 2;
		changes->copies = weir_realloc(changes->copies, changes->copies_room, 1);
	}
	memcpy(changes->copies + changes->copied, &length, sizeof length);
	memcpy(changes->copies + changes->copied + sizeof length, bucket, used);
	changes->copied += sizeof length + (used + COPY_ALIGNMENT - 1) / COPY_ALIGNMENT * COPY_ALIGNMENT;
	count_change(changes, bucket, used);
}

/* Allocates one block for numbers, spans and blobs, and sets cursors to where each segment's buckets go. */
static void lay_out(struct shard_snapshot *snapshot, const struct changes *changes, char **cursors)
{
	size_t blobs = 0;
	*snapshot = (struct shard_snapshot){.next_segment = changes->end};
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

static void put_change(char **cursors, const struct bucket *bucket, size_t used)
{
	char **cursor = &cursors[segment_of(bucket)];
	*cursor = segment_blob_put(*cursor, bucket, used);
}

/* Makes a snapshot of the changes, and frees them. */
static void serialise(struct changes *changes, struct shard_snapshot *snapshot)
{
	struct shard *shard = changes->shard;
	char **cursors = weir_alloc(SHARD_SEGMENTS, sizeof *cursors);
	lay_out(snapshot, changes, cursors);
	for (size_t i = 0; i < changes->count; i++) {
		const struct bucket *bucket = slab_at(&shard->slab, changes->refs[i]);
		put_change(cursors, bucket, bucket_used(bucket, shard_layout_of(shard, bucket)));
	}
	for (size_t at = 0; at < changes->copied;) {
		uint64_t used;
		memcpy(&used, changes->copies + at, sizeof used);
		put_change(cursors, (const void *)(changes->copies + at + sizeof used), used);
		at += sizeof used + (used + COPY_ALIGNMENT - 1) / COPY_ALIGNMENT * COPY_ALIGNMENT;
	}
	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		uint32_t segment = snapshot->segments[i];
		segment_blob_seal((char *)snapshot->deltas[i].at, snapshot->deltas[i].length, changes->buckets[segment]);
	}
	shard->snapshot_bytes = snapshot->bytes;
	free(changes->refs);
	free(changes->copies);
	free(changes);
	free(cursors);
}

static struct changes *new_changes(struct shard *shard, uint32_t first, uint32_t end)
{
	struct changes *changes = weir_alloc(1, sizeof *changes);
	changes->shard = shard;
	changes->first = first;
	changes->end = end;
	return changes;
}

/* A bucket in memory is in the snapshot now. */
static void set_clean(void *context, uint32_t ref)
{
	struct shard *shard = context;
	struct bucket *bucket = slab_at(&shard->slab, ref);
	bucket->flags &= (uint8_t)~BUCKET_DIRTY;
	bucket_set_generation(bucket, shard->generation);
}

static void set_all_clean(struct shard *shard)
{
	shard->generation++;
	slab_take_marked(&shard->slab, set_clean, shard);
	shard->dirty_bytes = 0;
}

void shard_snapshot(struct shard *shard, struct shard_snapshot *snapshot)
{
	assert(!shard->snapshot_pending && shard->work.frame == NULL);
	*snapshot = (struct shard_snapshot){0};
	if (!shard->options.swap_changes) {
		struct changes *changes = new_changes(shard, 0, SHARD_SEGMENTS);
		slab_each_marked(&shard->slab, add_change, changes);
		serialise(changes, snapshot);
		set_all_clean(shard);
	}
	shard->snapshot_pending = true;
	shard->has_store = true;
}

bool shard_snapshot_in_parts(const struct shard *shard)
{
	return shard->options.swap_changes;
}

/* So many segments that what changed of them, as far as is known, takes no more than a part may. */
static uint32_t part_segments(const struct shard *shard)
{
	uint64_t file = swap_file_bytes(&shard->swap);
	uint64_t swapped = shard->swapped_changes < file ? shard->swapped_changes : file;
	uint64_t changed = shard->dirty_bytes + swapped, part = (uint64_t)shard->options.part_bytes;
	if (shard->options.ceiling_bytes == 0)
		return SHARD_SEGMENTS;
	part = part > PART_LEAST_BYTES ? part : PART_LEAST_BYTES;
	uint64_t segments = part * SHARD_SEGMENTS / (changed + 1);
	return segments == 0 ? 1 : segments < SHARD_SEGMENTS ? (uint32_t)segments : SHARD_SEGMENTS;
}

enum weir_status shard_snapshot_part(struct shard *shard, struct shard_snapshot *snapshot, struct weir_error *error)
{
	uint32_t first = snapshot->next_segment, end = first + part_segments(shard);
	if (first >= SHARD_SEGMENTS)
		return WEIR_END;
	assert(shard->options.swap_changes && shard->snapshot_pending);
	free(snapshot->memory);
	struct changes *changes = new_changes(shard, first, end < SHARD_SEGMENTS ? end : SHARD_SEGMENTS);
	enum weir_status status =
		shard_each_swapped_change(shard, changes->first, changes->end, add_swapped_change, changes, error);
	slab_each_marked(&shard->slab, add_change, changes);
	serialise(changes, snapshot);
	return status;
}

enum weir_status shard_check_whole(const struct shard *shard, struct weir_error *error)
{
	if (!shard->has_lost)
		return WEIR_OK;
	return weir_fail(error, WEIR_INVALID,
	                 "the file of evicted buckets in %s could not be read, and had changes that were not stored yet: "
	                 "run it again, and it goes on from what was stored last",
	                 shard->options.swap_directory);
}

/* Marks the snapshot's buckets as changed again, as no checkpoint has them. */
static void give_up(struct shard *shard)
{
	uint32_t refs[SLAB_PAGE_BLOCKS];
	for (uint32_t page = 0; page < slab_page_end(&shard->slab); page++) {
		uint32_t count = slab_page_blocks(&shard->slab, page, refs);
		for (uint32_t i = 0; i < count; i++) {
			struct bucket *bucket = slab_at(&shard->slab, refs[i]);
			if (bucket_has_generation(bucket, shard->generation))
				shard_set_dirty(shard, bucket, refs[i]);
		}
	}
	for (uint32_t place = 0, ref; (ref = slab_next_large(&shard->slab, &place)) != 0; place++) {
		struct bucket *bucket = slab_at(&shard->slab, ref);
		if (bucket_has_generation(bucket, shard->generation))
			shard_set_dirty(shard, bucket, ref);
	}
}

void shard_snapshot_done(struct shard *shard, struct shard_snapshot *snapshot, bool stored)
{
	if (stored && shard->options.swap_changes) {
		set_all_clean(shard);
		shard->swapped_changes = 0;
	} else if (!stored && !shard->options.swap_changes) {
		give_up(shard);
	}
	if (stored)
		swap_retry(&shard->swap);
	shard->snapshot_pending = false;
	shard->snapshot_bytes = 0;
	shard->starved = false;
	free(snapshot->memory);
	*snapshot = (struct shard_snapshot){0};
}
