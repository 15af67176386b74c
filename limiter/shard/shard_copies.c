/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where copies lie: found by fingerprint, each with its bucket inside or, if that is large, in a block that is kept for the
 * next one, so that a check seldom allocates. A copy lives for as long as a record takes through the log, some
 * milliseconds; thousands of them are more than the nearest cache holds, so all that is about to be read is prefetched.
 */
#include "limiter/shard/shard_copies.h"

#include "common/base/alloc.h"
#include "common/base/prefetch.h"

#include <assert.h>
#include <stdlib.h>

enum {
	COPIES_LEAST = 512,
	PENDING_LEAST = 1024,
	SETTLEMENTS_LEAST = 16,
	POP_AHEAD = 8, /* so many before it is popped, what a check needs is prefetched */
};

/* ---- blocks ---- */

static unsigned class_of(size_t bytes)
{
	unsigned which = 0;
	for (size_t size = COPY_LEAST_BYTES; size < bytes && which < COPY_CLASSES; size *= 2)
		which++;
	return which;
}

static size_t class_bytes(unsigned which)
{
	return (size_t)COPY_LEAST_BYTES << which;
}

/* A block of at least so many bytes; larger than the largest class: of just so many. */
static struct bucket *take_block(struct shard_checks *checks, size_t *bytes)
{
	unsigned which = class_of(*bytes);
	void *block = NULL;
	if (which < COPY_CLASSES) {
		block = checks->free_blocks[which];
		*bytes = class_bytes(which);
	}
	checks->used_bytes += *bytes;
	if (block != NULL) {
		memcpy(&checks->free_blocks[which], block, sizeof block);
		return block;
	}
	checks->bytes += *bytes;
	return weir_alloc(*bytes, 1);
}

/* Keeps the block for the next copy, unless there are many of other classes. */
static void give_block(struct shard_checks *checks, struct bucket *block, size_t bytes)
{
	unsigned which = class_of(bytes);
	if (block == NULL)
		return;
	checks->used_bytes -= bytes;
	if (which < COPY_CLASSES && checks->bytes <= SHARD_CHECKS_BYTES_MAX) {
		memcpy(block, &checks->free_blocks[which], sizeof(void *));
		checks->free_blocks[which] = block;
		return;
	}
	checks->bytes -= bytes;
	free(block);
}

void copies_empty(struct shard_checks *checks, struct copy *copy)
{
	give_block(checks, copy->outside, copy->bytes);
	copy->outside = NULL;
	copy->bytes = 0;
}

/* Room for at least so many bytes, in place of what the copy was. @param bytes  set to how many there are */
static struct bucket *make_room(struct shard_checks *checks, struct copy *copy, size_t *bytes)
{
	copies_empty(checks, copy);
	if (*bytes > COPY_INSIDE_BYTES)
		copy->outside = take_block(checks, bytes);
	else
		*bytes = COPY_INSIDE_BYTES;
	copy->bytes = (uint32_t)*bytes;
	return copy_bucket(copy);
}

void copies_take(struct shard_checks *checks, struct copy *copy, const struct bucket *bucket, size_t used)
{
	size_t bytes = used;
	memcpy(make_room(checks, copy, &bytes), bucket, used);
}

void copies_place(struct shard_checks *checks, struct copy *copy, const struct bucket *image,
                  const struct layout *layout)
{
	uint32_t rooms[WEIR_ZONE_LIMITS_MAX];
	size_t bytes = bucket_plan(image, layout, rooms);
	struct bucket *block = make_room(checks, copy, &bytes);
	bucket_place(block, bytes, image, layout, rooms);
}

bool copies_grow(struct shard_checks *checks, struct copy *copy, const struct layout *layout)
{
	struct bucket *bucket = copy_bucket(copy);
	bool is_empty = bucket == NULL;
	if (!is_empty && !(bucket->flags & BUCKET_SINGLE))
		return bucket_spread(bucket, copy->bytes, layout);
	struct bucket single = {.low = copy->low, .high = copy->high & WEIR_FINGERPRINT_HIGH_MASK, .flags = BUCKET_SINGLE};
	if (!is_empty)
		single = *bucket;
	uint32_t rooms[WEIR_ZONE_LIMITS_MAX];
	if (layout->fast == LAYOUT_SLOW || bucket_plan(&single, layout, rooms) > COPY_INSIDE_BYTES)
		return false;
	size_t bytes = COPY_INSIDE_BYTES;
	bucket = make_room(checks, copy, &bytes);
	if (!is_empty) {
		bucket_place(bucket, bytes, &single, layout, rooms);
		return true;
	}
	bucket_widen(layout, 0, bytes, rooms);
	bucket_init(bucket, layout, 0, rooms);
	bucket->low = single.low;
	bucket->high = single.high;
	return true;
}

/* ---- the table ---- */

static void put_slot(struct shard_checks *checks, uint32_t copy)
{
	uint32_t tag = (uint32_t)checks->copies[copy].low, at = tag & checks->slot_mask;
	while (checks->slots[at].copy != 0)
		at = (at + 1) & checks->slot_mask;
	checks->slots[at] = (struct copy_slot){.tag = tag, .copy = copy + 1};
}

/* Twice as many copies, and slots: at most half of these are taken. */
static void grow(struct shard_checks *checks)
{
	uint32_t room = checks->copy_room == 0 ? COPIES_LEAST : 2 * checks->copy_room, slots = 2 * room;
	checks->copies = weir_realloc(checks->copies, room, sizeof *checks->copies);
	checks->free_copies = weir_realloc(checks->free_copies, room, sizeof *checks->free_copies);
	checks->copy_room = room;
	free(checks->slots);
	checks->slots = weir_alloc(slots, sizeof *checks->slots);
	checks->slot_mask = slots - 1;
	for (uint32_t i = 0; i < checks->copy_count; i++) /* none of them is free, or there was no need to grow */
		put_slot(checks, i);
}

uint32_t copies_find(const struct shard_checks *checks, uint64_t low, uint32_t high)
{
	const uint32_t tag = (uint32_t)low, mask = checks->slot_mask;
	if (checks->used == 0)
		return NO_COPY;
	for (uint32_t at = tag & mask; checks->slots[at].copy != 0; at = (at + 1) & mask) {
		if (checks->slots[at].tag != tag)
			continue;
		const struct copy *copy = &checks->copies[checks->slots[at].copy - 1];
		if (copy->low == low && copy->high == high)
			return checks->slots[at].copy - 1;
	}
	return NO_COPY;
}

void copies_prefetch(const struct shard_checks *checks, uint64_t low)
{
	if (checks->used > 0)
		weir_prefetch(&checks->slots[(uint32_t)low & checks->slot_mask]);
}

static void prefetch_copy(const struct copy *copy)
{
	weir_prefetch(copy);
	weir_prefetch((const char *)copy + 64);
	weir_prefetch((const char *)copy + sizeof *copy - 1);
}

bool copies_prefetch_found(const struct shard_checks *checks, uint64_t low)
{
	if (checks->used == 0)
		return false;
	const struct copy_slot *slot = &checks->slots[(uint32_t)low & checks->slot_mask];
	if (slot->copy == 0 || slot->tag != (uint32_t)low)
		return false;
	prefetch_copy(&checks->copies[slot->copy - 1]);
	return true;
}

void copies_prefetch_free(const struct shard_checks *checks, uint32_t after)
{
	if (after < checks->free_count)
		prefetch_copy(&checks->copies[checks->free_copies[checks->free_count - 1 - after]]);
}

uint32_t copies_add(struct shard_checks *checks, uint64_t low, uint32_t high)
{
	if (checks->free_count == 0 && checks->copy_count == checks->copy_room)
		grow(checks);
	uint32_t number = checks->free_count > 0 ? checks->free_copies[--checks->free_count] : checks->copy_count++;
	struct copy *copy = &checks->copies[number];
	copy->low = low;
	copy->high = high;
	copy->stale = false;
	copy->outside = NULL;
	copy->bytes = copy->pending = 0;
	checks->used++;
	put_slot(checks, number);
	return number;
}

void copies_outdate(struct shard_checks *checks)
{
	for (uint32_t i = 0; i < checks->copy_count; i++)
		checks->copies[i].stale = true;
}

void copies_outdate_one(struct shard_checks *checks, uint64_t low, uint32_t high)
{
	uint32_t number = copies_find(checks, low, high);
	if (number != NO_COPY)
		checks->copies[number].stale = true;
}

/* Frees a slot; those behind it move up where a search would not find them any more. */
static void clear_slot(struct shard_checks *checks, uint32_t at)
{
	uint32_t mask = checks->slot_mask, hole = at;
	for (uint32_t next = (at + 1) & mask; checks->slots[next].copy != 0; next = (next + 1) & mask) {
		uint32_t home = checks->slots[next].tag & mask;
		if (((next - home) & mask) < ((next - hole) & mask))
			continue;
		checks->slots[hole] = checks->slots[next];
		hole = next;
	}
	checks->slots[hole].copy = 0;
}

static void drop(struct shard_checks *checks, uint32_t number)
{
	struct copy *copy = &checks->copies[number];
	uint32_t at = (uint32_t)copy->low & checks->slot_mask;
	while (checks->slots[at].copy != number + 1)
		at = (at + 1) & checks->slot_mask;
	clear_slot(checks, at);
	copies_empty(checks, copy);
	checks->free_copies[checks->free_count++] = number;
	checks->used--;
}

/* ---- what has not come back ---- */

/* Room for one more element of a ring. @return its array */
static void *make_room_in(struct ring *ring, void *array, uint32_t least, size_t bytes)
{
	if (ring->count < ring->room)
		return array;
	struct ring grown = {
		.count = ring->count, .room = ring->room == 0 ? least : 2 * ring->room, .popped = ring->popped};
	char *to = weir_alloc(grown.room, bytes);
	for (uint32_t i = 0; i < ring->count; i++)
		memcpy(to + i * bytes, (const char *)array + ring_at(ring, i) * bytes, bytes);
	free(array);
	*ring = grown;
	return to;
}

void pending_push(struct shard_checks *checks, const struct pending_check *check,
                  const struct pending_settlement *settlement)
{
	struct ring *ring = &checks->pending_ring, *settlements = &checks->settlement_ring;
	struct copy *copy = &checks->copies[check->copy];
	checks->pending = make_room_in(ring, checks->pending, PENDING_LEAST, sizeof *checks->pending);
	struct pending_check *pushed = &checks->pending[ring_at(ring, ring->count++)];
	*pushed = *check;
	pushed->tag = (uint32_t)copy->low;
	pushed->settles = settlement != NULL;
	if (copy->pending++ == 0) {
		copy->first_pending = ring->popped + ring->count - 1;
		copy->first_settlement = settlements->popped + settlements->count;
	}
	if (settlement == NULL)
		return;
	checks->settlements =
		make_room_in(settlements, checks->settlements, SETTLEMENTS_LEAST, sizeof *checks->settlements);
	checks->settlements[ring_at(settlements, settlements->count++)] = *settlement;
}

static void pop(struct ring *ring)
{
	ring->head = ring_at(ring, 1);
	ring->count--;
	ring->popped++;
}

void pending_pop(struct shard_checks *checks, uint32_t count)
{
	struct ring *ring = &checks->pending_ring;
	assert(count <= ring->count);
	for (; count > 0; count--) {
		const struct pending_check *check = &checks->pending[ring->head];
		if (count > POP_AHEAD) {
			const struct pending_check *later = &checks->pending[ring_at(ring, POP_AHEAD)];
			copies_prefetch(checks, later->tag);
			weir_prefetch(&checks->copies[later->copy]);
		}
		if (check->settles)
			pop(&checks->settlement_ring);
		struct copy *copy = &checks->copies[check->copy];
		copy->first_pending = ring->popped + 1;
		copy->first_settlement = checks->settlement_ring.popped;
		if (--copy->pending == 0)
			drop(checks, check->copy);
		pop(ring);
	}
}

size_t checks_bytes(const struct shard_checks *checks)
{
	if (checks == NULL)
		return 0;
	size_t slots = checks->slots == NULL ? 0 : checks->slot_mask + 1u;
	return sizeof *checks + reservations_bytes(&checks->open) + checks->bytes +
	       checks->copy_room * (sizeof *checks->copies + sizeof *checks->free_copies) + slots * sizeof *checks->slots +
	       checks->pending_ring.room * sizeof *checks->pending +
	       checks->settlement_ring.room * sizeof *checks->settlements;
}

void checks_free(struct shard_checks *checks)
{
	if (checks == NULL)
		return;
	for (uint32_t i = 0; i < checks->copy_count; i++)
		if (checks->copies[i].pending > 0)
			free(checks->copies[i].outside);
	for (unsigned i = 0; i < COPY_CLASSES; i++) {
		for (void *block = checks->free_blocks[i], *next; block != NULL; block = next) {
			memcpy(&next, block, sizeof next);
			free(block);
		}
	}
	reservations_deinit(&checks->open);
	free(checks->copies);
	free(checks->free_copies);
	free(checks->slots);
	free(checks->pending);
	free(checks->settlements);
	free(checks);
}
