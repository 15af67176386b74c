/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets as blocks: where one lies, and what is kept in step with that: the
 * table, the marks of changed ones, the bytes that a checkpoint would write.
 */
#include "limiter/shard/internal.h"

uint32_t shard_find_ref(const struct shard *shard, uint64_t low, uint32_t high)
{
	for (uint32_t skip = 0;; skip++) {
		uint32_t ref = table_find(&shard->table, bucket_tag(low), skip);
		if (ref == 0)
			return 0;
		const struct bucket *bucket = slab_at(&shard->slab, ref);
		if (bucket->low == low && bucket->high == high)
			return ref;
	}
}

const struct layout *shard_layout(struct shard *shard, uint32_t number, uint32_t scale)
{
	const struct layout *last = shard->last_scaled;
	if (scale == SCALE_ONE)
		return compiled_policy_layout(shard->compiled, number, scale);
	if (last == NULL || last->id != (number | LAYOUT_SCALED) || last->scale != scale)
		shard->last_scaled = compiled_policy_layout(shard->compiled, number | LAYOUT_SCALED, scale);
	return shard->last_scaled;
}

const struct layout *shard_layout_in_force(const struct layout *layout)
{
	while (layout != NULL && layout->ended_version != 0)
		layout = layout->next;
	return layout;
}

/* The clock at which the shard switched to a version, or to the first one after it. */
static int64_t switch_clock(const struct shard *shard, uint64_t version)
{
	for (uint32_t i = 0; i < shard->switch_count; i++)
		if (shard->switches[i].version >= version)
			return shard->switches[i].clock_ms;
	return shard->clock_ms;
}

/* Whether its zone goes on, and its last event is not long ago: what nearly all are, by the header alone. */
static bool is_fresh(const struct shard *shard, const struct bucket *bucket, const struct layout *layout,
                     int64_t clock_ms)
{
	return layout != NULL && layout->ended_version == 0 &&
	       clock_ms <= bucket_remembered_until(bucket, layout, shard->options.lateness_ms, 0);
}

bool shard_is_forgotten(struct shard *shard, const struct bucket *bucket, int64_t clock_ms)
{
	const struct layout *layout = shard_layout_of(shard, bucket);
	if (is_fresh(shard, bucket, layout, clock_ms))
		return false;
	int64_t blocked_ms = bucket_blocked_until(bucket);
	for (; layout != NULL; layout = layout->next) {
		bool ended = layout->ended_version != 0;
		int64_t clock = ended ? switch_clock(shard, layout->ended_version) : clock_ms;
		if (shard->options.lateness_ms >= 0 &&
		    clock > bucket_remembered_until(bucket, layout, shard->options.lateness_ms, blocked_ms))
			return true;
		if (!ended)
			return false;
		if (layout->next != NULL && layout->next->ends_shadow)
			blocked_ms = 0;
	}
	return true; /* its zone was removed */
}

int64_t shard_blocked_until(struct shard *shard, const struct bucket *bucket)
{
	if (!(bucket->flags & BUCKET_DECIDED))
		return 0;
	for (const struct layout *layout = shard_layout_of(shard, bucket); layout->next != NULL; layout = layout->next)
		if (layout->next->ends_shadow)
			return 0;
	return bucket_blocked_until(bucket);
}

void shard_open(struct shard *shard, struct bucket *bucket, uint64_t low, uint32_t high, const struct layout *layout,
                int64_t c, struct bucket_work *work)
{
	if (bucket == NULL) {
		bucket_work_new(work, &shard->scratch, layout, c);
		work->view.bucket->low = low;
		work->view.bucket->high = high & WEIR_FINGERPRINT_HIGH_MASK;
	} else if (bucket->layout == layout->id && bucket_scale(bucket) == layout->scale &&
	           !(bucket->flags & BUCKET_SINGLE)) {
		bucket_work_open(work, &shard->scratch, bucket, layout);
	} else {
		bucket_work_convert(work, &shard->scratch, bucket, shard_layout_of(shard, bucket), layout, c);
	}
}

void shard_set_dirty(struct shard *shard, struct bucket *bucket, uint32_t ref)
{
	if (bucket->flags & BUCKET_DIRTY)
		return;
	bucket->flags |= BUCKET_DIRTY;
	slab_mark(&shard->slab, ref);
	shard->dirty_bytes += slab_block_bytes(&shard->slab, ref);
}

static void free_block(struct shard *shard, struct bucket *bucket, uint32_t ref)
{
	if (bucket->flags & BUCKET_DIRTY)
		shard->dirty_bytes -= slab_block_bytes(&shard->slab, ref);
	bucket->low = ~bucket->low; /* so that a stale lookup does not match it */
	slab_free(&shard->slab, ref);
	shard->churn++;
}

/* Points the table to the new block and frees the old one (0: none). */
static void enter(struct shard *shard, const struct bucket *bucket, uint32_t ref, uint32_t old_ref)
{
	uint32_t tag = bucket_tag(bucket->low);
	shard->churn++;
	if (old_ref == 0) {
		table_add(&shard->table, tag, ref);
		return;
	}
	table_replace(&shard->table, tag, old_ref, ref);
	free_block(shard, slab_at(&shard->slab, old_ref), old_ref);
}

uint32_t shard_place(struct shard *shard, const struct bucket *image, const struct layout *layout, uint32_t old_ref)
{
	uint32_t rooms[WEIR_ZONE_LIMITS_MAX];
	uint32_t ref = slab_alloc(&shard->slab, bucket_plan(image, layout, rooms));
	struct bucket *bucket = slab_at(&shard->slab, ref);
	bucket_place(bucket, slab_block_bytes(&shard->slab, ref), image, layout, rooms);
	bucket->flags &= (uint8_t)~BUCKET_DIRTY;
	enter(shard, bucket, ref, old_ref);
	return ref;
}

uint32_t shard_place_single(struct shard *shard, const struct bucket *header, uint32_t old_ref)
{
	uint32_t ref = slab_alloc(&shard->slab, sizeof *header);
	struct bucket *bucket = slab_at(&shard->slab, ref);
	*bucket = *header;
	bucket->flags = BUCKET_SINGLE;
	enter(shard, bucket, ref, old_ref);
	return ref;
}

void shard_drop(struct shard *shard, struct bucket *bucket, uint32_t ref)
{
	table_remove(&shard->table, bucket_tag(bucket->low), ref);
	free_block(shard, bucket, ref);
}

void shard_move(struct shard *shard, uint32_t ref)
{
	const struct bucket *old = slab_at(&shard->slab, ref);
	size_t bytes = slab_block_bytes(&shard->slab, ref);
	uint32_t moved = slab_alloc(&shard->slab, bytes);
	memcpy(slab_at(&shard->slab, moved), old, bytes);
	if (old->flags & BUCKET_DIRTY)
		slab_mark(&shard->slab, moved);
	table_replace(&shard->table, bucket_tag(old->low), ref, moved);
	slab_free(&shard->slab, ref);
}
