/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where copies lie: found by fingerprint, in blocks that are kept from copy to copy, so that a check seldom allocates.
 * A copy lives for as long as a record takes through the log, some milliseconds.
 */
#include "limiter/shard/shard_copies.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>

enum { SLOTS_LEAST = 1024, PENDING_LEAST = 1024 };

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
	give_block(checks, copy->block, copy->bytes);
	copy->block = NULL;
	copy->bytes = 0;
}

void copies_take(struct shard_checks *checks, struct copy *copy, const struct bucket *bucket, size_t used)
{
	size_t bytes = used;
	struct bucket *block = take_block(checks, &bytes);
	memcpy(block, bucket, used);
	copies_empty(checks, copy);
	copy->block = block;
	copy->bytes = bytes;
}

void copies_place(struct shard_checks *checks, struct copy *copy, const struct bucket *image,
                  const struct layout *layout)
{
	struct bucket_view from, to;
	uint32_t rooms[WEIR_ZONE_LIMITS_MAX];
	unsigned form = image->flags & BUCKET_FORM;
	bucket_open(&from, (struct bucket *)image, layout);
	bucket_rooms(&from, rooms);
	bucket_grow(layout, rooms);
	size_t bytes = bucket_bytes(layout, form, rooms);
	struct bucket *block = take_block(checks, &bytes);
	bucket_widen(layout, form, bytes, rooms);
	bucket_init(block, layout, form, rooms);
	bucket_open(&to, block, layout);
	bucket_copy(&to, &from);
	copies_empty(checks, copy);
	copy->block = block;
	copy->bytes = bytes;
}

/* ---- the table ---- */

static void put_slot(struct shard_checks *checks, uint32_t copy)
{
	uint32_t at = (uint32_t)checks->copies[copy].low & checks->slot_mask;
	while (checks->slots[at] != 0)
		at = (at + 1) & checks->slot_mask;
	checks->slots[at] = copy + 1;
}

static void grow_slots(struct shard_checks *checks)
{
	uint32_t room = checks->slots == NULL ? SLOTS_LEAST : 2 * (checks->slot_mask + 1);
	free(checks->slots);
	checks->slots = weir_alloc(room, sizeof *checks->slots);
	checks->slot_mask = room - 1;
	for (uint32_t i = 0; i < checks->copy_count; i++)
		if (checks->copies[i].pending > 0)
			put_slot(checks, i);
}

uint32_t copies_find(const struct shard_checks *checks, uint64_t low, uint64_t high)
{
	if (checks->used == 0)
		return NO_COPY;
	for (uint32_t at = (uint32_t)low & checks->slot_mask; checks->slots[at] != 0; at = (at + 1) & checks->slot_mask) {
		const struct copy *copy = &checks->copies[checks->slots[at] - 1];
		if (copy->low == low && copy->high == high)
			return checks->slots[at] - 1;
	}
	return NO_COPY;
}

uint32_t copies_add(struct shard_checks *checks, uint64_t low, uint64_t high)
{
	if (checks->slots == NULL || 2 * (checks->used + 1) > checks->slot_mask + 1)
		grow_slots(checks);
	uint32_t copy = checks->free_copy - 1;
	if (checks->free_copy == 0) {
		copy = checks->copy_count++;
		if (copy == checks->copy_room) {
			checks->copy_room = copy == 0 ? SLOTS_LEAST / 2 : 2 * copy;
			checks->copies = weir_realloc(checks->copies, checks->copy_room, sizeof *checks->copies);
		}
	} else {
		checks->free_copy = checks->copies[copy].next_free;
	}
	checks->copies[copy] = (struct copy){.low = low, .high = high};
	checks->used++;
	put_slot(checks, copy);
	return copy;
}

/* Frees a slot; those behind it move up where a search would not find them any more. */
static void clear_slot(struct shard_checks *checks, uint32_t at)
{
	uint32_t mask = checks->slot_mask, hole = at;
	for (uint32_t next = (at + 1) & mask; checks->slots[next] != 0; next = (next + 1) & mask) {
		uint32_t home = (uint32_t)checks->copies[checks->slots[next] - 1].low & mask;
		if (((next - home) & mask) < ((next - hole) & mask))
			continue;
		checks->slots[hole] = checks->slots[next];
		hole = next;
	}
	checks->slots[hole] = 0;
}

void copies_drop(struct shard_checks *checks, uint32_t copy)
{
	struct copy *dropped = &checks->copies[copy];
	uint32_t at = (uint32_t)dropped->low & checks->slot_mask;
	while (checks->slots[at] != copy + 1)
		at = (at + 1) & checks->slot_mask;
	clear_slot(checks, at);
	copies_empty(checks, dropped);
	*dropped = (struct copy){.next_free = checks->free_copy};
	checks->free_copy = copy + 1;
	checks->used--;
}

/* ---- what has not come back ---- */

static void grow_pending(struct shard_checks *checks)
{
	uint32_t room = checks->pending_room == 0 ? PENDING_LEAST : 2 * checks->pending_room;
	struct pending_check *ring = weir_alloc(room, sizeof *ring);
	for (uint32_t i = 0; i < checks->pending_count; i++)
		ring[i] = checks->pending[(checks->pending_head + i) & (checks->pending_room - 1)];
	free(checks->pending);
	checks->pending = ring;
	checks->pending_room = room;
	checks->pending_head = 0;
}

void pending_push(struct shard_checks *checks, const struct pending_check *check)
{
	if (checks->pending_count == checks->pending_room)
		grow_pending(checks);
	uint32_t at = (checks->pending_head + checks->pending_count) & (checks->pending_room - 1);
	checks->pending[at] = *check;
	checks->pending_count++;
	checks->copies[check->copy].pending++;
}

void pending_pop(struct shard_checks *checks)
{
	assert(checks->pending_count > 0);
	uint32_t copy = checks->pending[checks->pending_head].copy;
	checks->pending_head = (checks->pending_head + 1) & (checks->pending_room - 1);
	checks->pending_count--;
	if (--checks->copies[copy].pending == 0)
		copies_drop(checks, copy);
}

size_t checks_bytes(const struct shard_checks *checks)
{
	if (checks == NULL)
		return 0;
	size_t slots = checks->slots == NULL ? 0 : checks->slot_mask + 1u;
	return sizeof *checks + reservations_bytes(&checks->open) + checks->bytes +
	       checks->copy_room * sizeof *checks->copies + slots * sizeof *checks->slots +
	       checks->pending_room * sizeof *checks->pending;
}

void checks_free(struct shard_checks *checks)
{
	if (checks == NULL)
		return;
	for (uint32_t i = 0; i < checks->copy_count; i++)
		if (checks->copies[i].block != NULL)
			free(checks->copies[i].block);
	for (unsigned i = 0; i < COPY_CLASSES; i++) {
		for (void *block = checks->free_blocks[i], *next; block != NULL; block = next) {
			memcpy(&next, block, sizeof next);
			free(block);
		}
	}
	reservations_deinit(&checks->open);
	free(checks->copies);
	free(checks->slots);
	free(checks->pending);
	free(checks);
}
