/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments are written in transactions of a few MiB, so that neither MySQL's
 * binary log nor other writers have to wait for one of gigabytes. They stay
 * invisible until the last transaction, which checks the epoch.
 */
#include "limiter/checkpoint/checkpoint.h"

#include "common/base/alloc.h"
#include "limiter/shard/segment_blob.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	WRITE_BYTES = 4 << 20,    /* a transaction ends when it has this much */
	WRITE_BLOBS = 256,        /* or this many blobs */
	MERGE_AT_ONCE = 32,       /* segments read at once to be merged */
	DELTAS_MAX = 8,           /* a segment that would have more is merged: bounds what a load must read */
	CLEAN_PERIOD = 4,         /* the store is cleaned at every so many checkpoints */
	MERGE_LEAST_BYTES = 4096, /* the deltas' size is no reason to merge below this */
};

static void note_segment(void *context, uint32_t segment, uint32_t deltas, uint64_t base_bytes, uint64_t delta_bytes)
{
	struct checkpoint_partition *partition = context;
	if (segment < SHARD_SEGMENTS)
		partition->segments[segment] = (struct checkpoint_segment){base_bytes, delta_bytes, deltas};
}

enum weir_status checkpoint_take(struct checkpoint_partition *partition, struct weir_store *store, uint32_t number,
                                 struct weir_partition_state *state, struct weir_text *extra, struct weir_error *error)
{
	int64_t lateness_ms = partition->lateness_ms;
	*partition = (struct checkpoint_partition){.partition = number, .lateness_ms = lateness_ms};
	enum weir_status status = store->ops->take(store, WEIR_STORE_ROLE_LIMITER, number, state, error);
	if (status != WEIR_OK)
		return status;
	weir_text_clear(extra);
	weir_text_append(extra, state->extra.at, state->extra.length);
	state->extra.at = extra->at;
	partition->epoch = state->epoch;
	partition->current = state->checkpoint;
	if (state->checkpoint == 0)
		return WEIR_OK;
	return store->ops->list_segments(store, number, state->epoch, state->checkpoint, note_segment, partition, error);
}

enum weir_status checkpoint_restore(const struct checkpoint_partition *partition,
                                    const struct weir_partition_state *state, struct lane *lane,
                                    struct weir_error *error)
{
	if (state->checkpoint == 0)
		return WEIR_OK;
	enum weir_status status = lane_restore(lane, state, error);
	for (uint32_t i = 0; status == WEIR_OK && i < SHARD_SEGMENTS; i++)
		if (partition->segments[i].base_bytes > 0 || partition->segments[i].deltas > 0)
			shard_set_stored(lane_shard(lane), i);
	return status;
}

void checkpoint_cut(struct checkpoint_cut *cut, struct lane *lane, struct checkpoint_partition *partition)
{
	*cut = (struct checkpoint_cut){.partition = partition};
	lane_state(lane, &cut->state, &cut->extra);
	cut->state.epoch = partition->epoch;
	cut->state.checkpoint = partition->current + 1;
	cut->compiled = lane_compiled_policy(lane);
	shard_snapshot(lane_shard(lane), &cut->snapshot);
	cut->in_parts = shard_snapshot_in_parts(lane_shard(lane)) ? lane_shard(lane) : NULL;
}

/* The blobs of one transaction, with the merged bases, which it owns. */
struct write {
	struct weir_segment_blob blobs[WRITE_BLOBS];
	char *owned[WRITE_BLOBS];
	size_t count, bytes;
};

static void write_clear(struct write *write)
{
	for (size_t i = 0; i < write->count; i++)
		free(write->owned[i]);
	write->count = write->bytes = 0;
}

/* After a refused write: WEIR_OK if the checkpoint is current already, by an earlier commit whose answer was lost. */
static enum weir_status refused(struct weir_store *store, const struct checkpoint_cut *cut, struct weir_error *error)
{
	struct weir_partition_state found;
	enum weir_status status = store->ops->inspect(store, WEIR_STORE_ROLE_LIMITER, cut->state.partition, &found, error);
	if (status == WEIR_IO)
		return status;
	return status == WEIR_OK && found.epoch == cut->state.epoch && found.checkpoint == cut->state.checkpoint
	           ? WEIR_OK
	           : WEIR_INVALID;
}

static enum weir_status write_flush(struct write *write, struct weir_store *store, const struct checkpoint_cut *cut,
                                    struct weir_error *error)
{
	if (write->count == 0)
		return WEIR_OK;
	enum weir_status status =
		store->ops->write_segments(store, cut->state.partition, cut->state.epoch, write->blobs, write->count, error);
	if (status == WEIR_INVALID)
		status = refused(store, cut, error);
	write_clear(write);
	return status;
}

static bool outgrown(const struct checkpoint_segment *segment, size_t more)
{
	uint64_t bytes = segment->delta_bytes + more;
	uint64_t least = segment->base_bytes > MERGE_LEAST_BYTES ? segment->base_bytes : MERGE_LEAST_BYTES;
	return segment->deltas >= DELTAS_MAX || bytes > least;
}

static bool is_to_merge(const struct checkpoint_segment *stored, struct weir_span delta)
{
	return stored->base_bytes > 0 && outgrown(stored, delta.length);
}

/* What the store has of the next segments to merge. They are read together, which costs a server less. */
struct ahead {
	struct checkpoint_blobs stored;
	size_t next;  /* the next of its blobs to use */
	size_t until; /* index in the cut: of the segments before it, all that must be merged have been read */
};

static enum weir_status read_ahead(struct ahead *ahead, struct weir_store *store, const struct checkpoint_cut *cut,
                                   size_t place, const struct checkpoint_segment *after, struct weir_error *error)
{
	uint32_t segments[MERGE_AT_ONCE];
	size_t count = 0;
	uint64_t bytes = 0;
	for (; place < cut->snapshot.segment_count && count < MERGE_AT_ONCE && bytes < WRITE_BYTES; place++) {
		const struct checkpoint_segment *stored = &after[cut->snapshot.segments[place]];
		if (!is_to_merge(stored, cut->snapshot.deltas[place]))
			continue;
		segments[count++] = cut->snapshot.segments[place];
		bytes += stored->base_bytes + stored->delta_bytes;
	}
	checkpoint_blobs_deinit(&ahead->stored);
	ahead->next = 0;
	ahead->until = place;
	return checkpoint_read(store, cut->partition->partition, cut->partition->epoch, cut->partition->current, segments,
	                       count, &ahead->stored, error);
}

/*
 * Merges the segment's blobs in the store and its new delta into one base. Refuses if the store does not return all
 * blobs that were stored (it has lost some, or does not show them yet): the base would hide the missing ones for ever.
 *
 * @param known  what was stored of the segment
 */
static enum weir_status merge_segment(struct ahead *ahead, const struct checkpoint_cut *cut, size_t place,
                                      const struct checkpoint_segment *known, struct weir_segment_blob *blob,
                                      char **owned, struct weir_error *error)
{
	uint32_t segment = cut->snapshot.segments[place];
	const struct checkpoint_blobs *stored = &ahead->stored;
	struct weir_span *parts = weir_alloc(stored->count - ahead->next + 1, sizeof *parts);
	size_t count = 0, length = 0;
	uint64_t bytes = 0;
	bool written = false;
	for (; ahead->next < stored->count && stored->blobs[ahead->next].segment == segment; ahead->next++) {
		const struct checkpoint_blob *part = &stored->blobs[ahead->next];
		parts[count++] = (struct weir_span){stored->bytes.at + part->at, (uint32_t)part->length};
		bytes += part->length;
		written = part->checkpoint == cut->state.checkpoint;
	}
	enum weir_status status = WEIR_OK;
	if (written) {
		/* The store has this very base: a commit whose answer was lost made it current. */
		length = parts[count - 1].length;
		*owned = weir_copy(parts[count - 1].at, length);
	} else if (bytes != known->base_bytes + known->delta_bytes) {
		status = weir_fail(error, WEIR_FENCED,
		                   "segment %u of partition %u has %" PRIu64 " bytes in the store instead of the %" PRIu64
		                   " that were stored",
		                   segment, cut->state.partition, bytes, known->base_bytes + known->delta_bytes);
	} else {
		parts[count++] = cut->snapshot.deltas[place];
		status = segment_blob_merge(parts, count, cut->compiled, cut->state.clock_ms, cut->partition->lateness_ms,
		                            owned, &length, error);
		if (status != WEIR_OK)
			weir_error_prefix(error, "segment %u", segment);
	}
	free(parts);
	if (status == WEIR_OK)
		*blob = (struct weir_segment_blob){
			.segment = segment, .checkpoint = cut->state.checkpoint, .base = true, .bytes = {*owned, (uint32_t)length}};
	return status;
}

/* Writes the snapshot, or the part of it that was made last. */
static enum weir_status write_part(struct weir_store *store, struct checkpoint_cut *cut,
                                   struct checkpoint_segment *after, struct weir_error *error)
{
	struct write write = {.count = 0};
	struct ahead ahead = {.until = 0};
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; status == WEIR_OK && i < cut->snapshot.segment_count; i++) {
		uint32_t segment = cut->snapshot.segments[i];
		struct weir_span delta = cut->snapshot.deltas[i];
		struct checkpoint_segment *stored = &after[segment];
		struct weir_segment_blob *blob = &write.blobs[write.count];
		write.owned[write.count] = NULL;
		if (is_to_merge(stored, delta)) {
			if (i >= ahead.until)
				status = read_ahead(&ahead, store, cut, i, after, error);
			if (status == WEIR_OK)
				status = merge_segment(&ahead, cut, i, stored, blob, &write.owned[write.count], error);
			if (status != WEIR_OK)
				break;
		} else {
			*blob = (struct weir_segment_blob){segment, cut->state.checkpoint, stored->base_bytes == 0, delta};
		}
		if (blob->base)
			*stored = (struct checkpoint_segment){.base_bytes = blob->bytes.length};
		else
			*stored =
				(struct checkpoint_segment){stored->base_bytes, stored->delta_bytes + delta.length, stored->deltas + 1};
		write.bytes += blob->bytes.length;
		if (++write.count == WRITE_BLOBS || write.bytes >= WRITE_BYTES)
			status = write_flush(&write, store, cut, error);
	}
	if (status == WEIR_OK)
		status = write_flush(&write, store, cut, error);
	write_clear(&write);
	checkpoint_blobs_deinit(&ahead.stored);
	return status;
}

static enum weir_status write_cut(struct weir_store *store, struct checkpoint_cut *cut,
                                  struct checkpoint_segment *after, struct weir_error *error)
{
	if (cut->in_parts == NULL)
		return write_part(store, cut, after, error);
	enum weir_status status = WEIR_OK;
	cut->snapshot.next_segment = 0;
	while (status == WEIR_OK) {
		status = shard_snapshot_part(cut->in_parts, &cut->snapshot, error);
		if (status == WEIR_OK)
			status = write_part(store, cut, after, error);
	}
	return status == WEIR_END ? WEIR_OK : status;
}

/* Blobs that were not cleaned up cost space, not correctness. After a failure the next call tries again. */
static void clean_now_and_then(struct weir_store *store, const struct checkpoint_partition *partition)
{
	if (partition->current % CLEAN_PERIOD != 0)
		return;
	enum weir_status ignored = store->ops->clean(store, partition->partition, partition->epoch, NULL);
	(void)ignored;
}

enum weir_status checkpoint_store(struct weir_store *store, struct checkpoint_cut *cuts, size_t count,
                                  const struct weir_archive_batch *batch, const char *const *names,
                                  const struct weir_span *values, size_t note_count, struct weir_error *error)
{
	/* partition->segments changes only once the checkpoint is current, as a failed attempt is repeated. */
	struct checkpoint_segment(*after)[SHARD_SEGMENTS] = weir_alloc(count, sizeof *after);
	struct weir_partition_state *states = weir_alloc(count, sizeof *states);
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		memcpy(after[i], cuts[i].partition->segments, sizeof after[i]);
		states[i] = cuts[i].state;
		status = write_cut(store, &cuts[i], after[i], error);
	}
	if (status == WEIR_OK)
		status =
			store->ops->archive(store, WEIR_STORE_ROLE_LIMITER, batch, states, count, names, values, note_count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct checkpoint_partition *partition = cuts[i].partition;
		memcpy(partition->segments, after[i], sizeof after[i]);
		partition->current = cuts[i].state.checkpoint;
		clean_now_and_then(store, partition);
	}
	free(after);
	free(states);
	return status;
}

void checkpoint_finish(struct checkpoint_cut *cut, struct lane *lane, bool stored)
{
	shard_snapshot_done(lane_shard(lane), &cut->snapshot, stored);
	weir_text_deinit(&cut->extra);
}

static enum weir_status keep_blob(void *context, const struct weir_segment_blob *blob)
{
	struct checkpoint_blobs *blobs = context;
	if (blobs->count == blobs->capacity) {
		blobs->capacity = blobs->capacity == 0 ? 16 : blobs->capacity * 2;
		blobs->blobs = weir_realloc(blobs->blobs, blobs->capacity, sizeof *blobs->blobs);
	}
	blobs->blobs[blobs->count++] = (struct checkpoint_blob){.segment = blob->segment,
	                                                        .checkpoint = blob->checkpoint,
	                                                        .at = blobs->bytes.length,
	                                                        .length = blob->bytes.length};
	weir_text_append(&blobs->bytes, blob->bytes.at, blob->bytes.length);
	return WEIR_OK;
}

enum weir_status checkpoint_read(struct weir_store *store, uint32_t partition, uint64_t epoch, uint64_t at_least,
                                 const uint32_t *segments, size_t count, struct checkpoint_blobs *blobs,
                                 struct weir_error *error)
{
	*blobs = (struct checkpoint_blobs){0};
	return store->ops->read_segments(store, partition, epoch, at_least, segments, count, keep_blob, blobs, error);
}

void checkpoint_blobs_deinit(struct checkpoint_blobs *blobs)
{
	weir_text_deinit(&blobs->bytes);
	free(blobs->blobs);
	*blobs = (struct checkpoint_blobs){0};
}

enum weir_status checkpoint_load(struct lane *lane, const uint32_t *segments, size_t count,
                                 const struct checkpoint_blobs *blobs, struct weir_error *error)
{
	struct weir_span *parts = weir_alloc(blobs->count, sizeof *parts);
	enum weir_status status = WEIR_OK;
	size_t next = 0; /* blobs are in the order of `segments` */
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		size_t found = 0;
		for (; next < blobs->count && blobs->blobs[next].segment == segments[i]; next++)
			parts[found++] =
				(struct weir_span){blobs->bytes.at + blobs->blobs[next].at, (uint32_t)blobs->blobs[next].length};
		status = shard_load(lane_shard(lane), segments[i], parts, found, error);
		if (status != WEIR_OK)
			weir_error_prefix(error, "segment %u", segments[i]);
	}
	free(parts);
	return status;
}
