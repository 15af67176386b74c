/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps memory small: forgets, evicts and compacts.
 *
 * One clock hand goes round the pages. It drops buckets that are forgotten. If
 * live blocks exceed what the ceiling allows, it evicts buckets that were not used
 * since its last visit and that the store has in their present version.
 *
 * The ceiling is divided so: a quarter for the snapshot being stored; whatever
 * tables, filters and the frame take; the rest for blocks. Four fifths of that
 * may be live, which leaves room for pages that are not full. Buckets that the
 * store does not have yet (changed, or in a pending snapshot) cannot be evicted.
 * So the shard wants a checkpoint when changed buckets reach an eighth of the
 * ceiling, and reports that it is full at a quarter: most of what is live can
 * then always be evicted.
 *
 * Tables and filters grow with the buckets that only the store has, and have no
 * ceiling of their own. However large they are, three sixteenths of the ceiling
 * may be live: with less, each event would wait for the store. So the ceiling is
 * held until tables and filters take half of it. Tables lie in chunks, where they
 * are fast, as long as what chunks leave unused is little of the ceiling.
 */
#include "limiter/shard/shard_copies.h"

enum {
	AHEAD = 8,            /* buckets from one that is visited to one that is made ready */
	MOVES_A_CHANGE = 3,   /* blocks moved by compaction for each allocated or freed */
	WANTED_SHARE = 8,     /* of the ceiling: as many changed bytes want a checkpoint; fewer would make each cost more */
	FULL_SHARE = 4,       /* of the ceiling: as many changed bytes wait for one */
	LEAST_SIXTEENTHS = 3, /* of the ceiling: as many bytes may be live in any case */
	UNUSED_SHARE = 16,    /* of the ceiling: as many unused bytes of tables are too many where buckets have to leave */
};

uint64_t shard_bytes(const struct shard *shard)
{
	return sizeof *shard + shard->slab.bytes + shard->table.bytes + shard->filter_bytes + shard->swapped.bytes +
	       swap_bytes(&shard->swap) + shard->work.bytes + shard->scratch.bytes[0] + shard->scratch.bytes[1] +
	       shard->snapshot_bytes + shard->source_count * sizeof *shard->sources + shard->overrides.bytes +
	       checks_bytes(shard->checks) + reservations_bytes(&shard->reserved);
}

/* Whether the store has a bucket in its present version. */
static bool is_clean(const struct shard *shard, const struct bucket *bucket)
{
	return !(bucket->flags & BUCKET_DIRTY) &&
	       !(shard->snapshot_pending && bucket_has_generation(bucket, shard->generation));
}

uint64_t shard_index_bytes(const struct shard *shard)
{
	return shard->table.bytes + shard->filter_bytes + shard->swapped.bytes + swap_bytes(&shard->swap);
}

/* The bytes of live blocks that the ceiling allows. */
static uint64_t live_bytes_allowed(const struct shard *shard)
{
	uint64_t ceiling = (uint64_t)shard->options.ceiling_bytes;
	uint64_t others = shard_bytes(shard) - shard->slab.bytes - shard->snapshot_bytes;
	uint64_t blocks = ceiling - ceiling / FULL_SHARE, least = ceiling / 16 * LEAST_SIXTEENTHS;
	uint64_t left = blocks > others ? (blocks - others) / 5 * 4 : 0;
	return left > least ? left : least;
}

static bool is_over(const struct shard *shard)
{
	return shard->options.ceiling_bytes > 0 && shard->slab.live_bytes > live_bytes_allowed(shard);
}

bool shard_has_room(const struct shard *shard)
{
	if (shard->options.ceiling_bytes <= 0)
		return true;
	uint64_t allowed = live_bytes_allowed(shard);
	return shard->slab.live_bytes < allowed - allowed / 8;
}

bool shard_has_slack(const struct shard *shard)
{
	if (shard->options.ceiling_bytes <= 0)
		return true;
	uint64_t allowed = live_bytes_allowed(shard);
	return shard->slab.live_bytes < allowed + allowed / 8;
}

/* Whether what memory has of changed buckets reaches a share of the ceiling, and has to be stored to leave it. */
static bool has_changes(const struct shard *shard, uint64_t share)
{
	return !shard->options.swap_changes && shard->dirty_bytes >= (uint64_t)shard->options.ceiling_bytes / share;
}

bool shard_wants_checkpoint(const struct shard *shard)
{
	return shard->options.ceiling_bytes > 0 && (has_changes(shard, WANTED_SHARE) || (shard->starved && is_over(shard)));
}

bool shard_is_full(const struct shard *shard)
{
	return shard->options.ceiling_bytes > 0 && (has_changes(shard, FULL_SHARE) || (shard->starved && is_over(shard)));
}

/* Notes that a bucket is in the store only. */
static void note_evicted(struct shard *shard, uint32_t number, uint64_t hash)
{
	struct segment *segment = &shard->segments[number];
	if (segment->residence == SEGMENT_UNKNOWN)
		return;
	if (segment->residence == SEGMENT_WHOLE)
		shard_set_residence(shard, number, SEGMENT_PARTIAL);
	if (filter_has(&segment->evicted, hash))
		return;
	shard->filter_bytes -= filter_bytes(&segment->evicted);
	filter_add(&segment->evicted, hash);
	shard->filter_bytes += filter_bytes(&segment->evicted);
}

/* Evicts a bucket: into swap or, if the store has it, to the store alone. Else it stays. */
static void evict_one(struct shard *shard, struct bucket *bucket, uint32_t ref, bool clean)
{
	if (!shard_swap_out(shard, bucket, bucket_used(bucket, shard_layout_of(shard, bucket)))) {
		if (!clean)
			return;
		note_evicted(shard, table_segment_of(bucket_tag(bucket->low)), shard_filter_hash(bucket->low, bucket->high));
	}
	shard_drop(shard, bucket, ref);
	shard->evictions++;
}

/*
 * Visits one bucket. A forgotten one may be dropped only if the store has its
 * present version, or nothing at all: otherwise an older version there would be
 * read again.
 */
static void visit(struct shard *shard, uint32_t ref, bool evicting)
{
	struct bucket *bucket = slab_at(&shard->slab, ref);
	bool clean = is_clean(shard, bucket);
	if (clean && !shard->snapshot_pending && !bucket_has_generation(bucket, shard->generation))
		bucket_set_generation(bucket, shard->generation); /* so that the bits of a later one seldom are the same */
	if ((clean || !shard->has_store) && shard_is_forgotten(shard, bucket, shard->clock_ms)) {
		shard_drop(shard, bucket, ref);
		shard->forgotten++;
	} else if (evicting && (bucket->flags & BUCKET_USED)) {
		bucket->flags &= (uint8_t)~BUCKET_USED;
	} else if (evicting && (clean || shard->options.swap_changes)) {
		evict_one(shard, bucket, ref, clean);
	}
}

/* Has what evicting a bucket reads and writes ready in the processor's cache by then. */
static void look_ahead(const struct shard *shard, uint32_t ref)
{
	const struct bucket *bucket = slab_at(&shard->slab, ref);
	if ((bucket->flags & BUCKET_USED) || !(is_clean(shard, bucket) || shard->options.swap_changes))
		return;
	table_prefetch(&shard->table, bucket_tag(bucket->low));
	table_prefetch(&shard->swapped, bucket_tag(bucket->low));
}

/* Moves the hand over a page or, after the last page, over a large block. @return blocks visited */
static uint32_t advance(struct shard *shard, bool evicting)
{
	uint32_t refs[SLAB_PAGE_BLOCKS];
	uint32_t looked = 0;
	if (shard->clock_hand < slab_page_end(&shard->slab)) {
		looked = slab_page_blocks(&shard->slab, shard->clock_hand++, refs);
		for (uint32_t i = 0; i < looked; i++) {
			if (evicting && i + AHEAD < looked)
				look_ahead(shard, refs[i + AHEAD]);
			visit(shard, refs[i], evicting);
		}
		return looked;
	}
	uint32_t ref = slab_next_large(&shard->slab, &shard->clock_hand_large);
	if (ref == 0) {
		shard->clock_hand = shard->clock_hand_large = 0;
		return 0;
	}
	shard->clock_hand_large++;
	visit(shard, ref, evicting);
	return 1;
}

/* Evicts until the ceiling allows what is live. After two full rounds that evict nothing, nothing can be evicted. */
static void evict(struct shard *shard)
{
	uint32_t rounds = 0;
	uint64_t before = shard->evictions + shard->forgotten;
	while (is_over(shard) && !shard->starved) {
		uint32_t clock_hand = shard->clock_hand;
		advance(shard, true);
		if (shard->evictions + shard->forgotten != before) {
			before = shard->evictions + shard->forgotten;
			rounds = 0;
		} else if (shard->clock_hand < clock_hand || shard->slab.blocks == 0) {
			rounds++;
		}
		shard->starved = rounds > 2;
	}
}

/* Gives free memory back, and moves blocks until no more need to move, or about `moves` were moved. */
static void compact(struct shard *shard, uint32_t moves)
{
	uint32_t refs[SLAB_PAGE_BLOCKS];
	slab_trim(&shard->slab);
	for (uint32_t moved = 0; moved < moves;) {
		uint32_t count = slab_evacuate(&shard->slab, refs);
		if (count == 0)
			return;
		for (uint32_t i = 0; i < count; i++)
			shard_move(shard, refs[i]);
		moved += count;
		slab_trim(&shard->slab);
	}
}

void shard_tidy(struct shard *shard)
{
	if (is_over(shard)) {
		evict(shard);
		if (table_unused_bytes(&shard->table) > (uint64_t)shard->options.ceiling_bytes / UNUSED_SHARE)
			table_loosen(&shard->table);
	}
	compact(shard, shard->churn * MOVES_A_CHANGE);
	shard->churn = 0;
}

void shard_sweep(struct shard *shard, uint32_t budget)
{
	if (shard->work.frame != NULL)
		return;
	for (uint32_t looked = 0; looked < budget && shard->slab.blocks > 0;)
		looked += advance(shard, false) + 1;
	shard_tidy(shard);
	compact(shard, budget);
}
