/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys are ordered by their counts, the largest first. When a key is counted, it
 * becomes the first of those that had the same count, by swapping places with the
 * one that was first, which is found by binary search. So keeping the order moves
 * nothing else, and the last key has the least count. An index by hash, with
 * linear probing, says where a key is.
 */
#include "limiter/lane/top_keys.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1024 }; /* of the index: a power of two, four times TOP_KEYS */

struct top_entry {
	struct top_key key; /* first, as top_keys.keys points to keys */
	uint32_t place;     /* in the order */
	uint32_t names;     /* how many keys it has had */
};

struct top_keys {
	uint32_t count;
	uint64_t counts[TOP_KEYS]; /* decreasing: the keys' counts, adjacent for the binary search */
	struct top_key *keys[TOP_KEYS];
	uint64_t hashes[TOP_KEYS];
	uint16_t slots[TOP_KEYS]; /* the key's slot of the index */
	uint16_t index[SLOTS];    /* place + 1, 0: free */
};

struct top_keys *top_keys_new(void)
{
	return weir_alloc(1, sizeof(struct top_keys));
}

void top_keys_free(struct top_keys *top)
{
	if (top == NULL)
		return;
	for (uint32_t i = 0; i < top->count; i++)
		free(top->keys[i]);
	free(top);
}

static uint64_t hash_of(uint32_t zone_id, struct weir_span key)
{
	return weir_hash64(key.at, key.length) ^ (zone_id * UINT64_C(0x9E3779B97F4A7C15));
}

static bool is_key(const struct top_key *entry, uint32_t zone_id, struct weir_span key)
{
	return entry->zone_id == zone_id && entry->key_length == key.length &&
	       (key.length == 0 || memcmp(entry->key, key.at, key.length) == 0);
}

/* ---- the index ---- */

static uint32_t next_slot(uint32_t slot)
{
	return (slot + 1) & (SLOTS - 1);
}

static uint32_t home_slot(const struct top_keys *top, uint32_t place)
{
	return top->hashes[place] & (SLOTS - 1);
}

static void point(struct top_keys *top, uint32_t slot, uint32_t place)
{
	top->index[slot] = (uint16_t)(place + 1);
	top->slots[place] = (uint16_t)slot;
}

static void index_add(struct top_keys *top, uint32_t place)
{
	uint32_t slot = home_slot(top, place);
	while (top->index[slot] != 0)
		slot = next_slot(slot);
	point(top, slot, place);
}

/* Removes a key from the index, and moves keys that it displaced nearer to their homes (Knuth 6.4, algorithm R). */
static void index_remove(struct top_keys *top, uint32_t place)
{
	uint32_t gap = top->slots[place];
	for (uint32_t slot = next_slot(gap); top->index[slot] != 0; slot = next_slot(slot)) {
		uint32_t other = top->index[slot] - 1u;
		uint32_t from_home = (slot - home_slot(top, other)) & (SLOTS - 1), from_gap = (slot - gap) & (SLOTS - 1);
		if (from_home < from_gap)
			continue;
		point(top, gap, other);
		gap = slot;
	}
	top->index[gap] = 0;
}

/* Finds the place of a key; TOP_KEYS: it has none. */
static uint32_t find(const struct top_keys *top, uint32_t zone_id, struct weir_span key, uint64_t hash)
{
	for (uint32_t slot = hash & (SLOTS - 1); top->index[slot] != 0; slot = next_slot(slot)) {
		uint32_t place = top->index[slot] - 1u;
		if (top->hashes[place] == hash && is_key(top->keys[place], zone_id, key))
			return place;
	}
	return TOP_KEYS;
}

/* ---- order ---- */

/* The first place whose count is not above `count`. */
static uint32_t first_of(const struct top_keys *top, uint64_t count)
{
	uint32_t from = 0, length = top->count;
	while (length > 0) {
		uint32_t half = length / 2;
		bool more = top->counts[from + half] > count;
		from = more ? from + half + 1 : from;
		length = more ? length - half - 1 : half;
	}
	return from;
}

static struct top_entry *entry_at(const struct top_keys *top, uint32_t place)
{
	return (struct top_entry *)top->keys[place];
}

static void set_key(struct top_keys *top, uint32_t place, struct top_key *key)
{
	top->keys[place] = key;
	entry_at(top, place)->place = place;
}

/* Moves a key to another place, overwriting what was there. */
static void put_at(struct top_keys *top, uint32_t place, struct top_key *key, uint64_t hash, uint32_t slot)
{
	set_key(top, place, key);
	top->hashes[place] = hash;
	top->counts[place] = key->count;
	point(top, slot, place);
}

static void count_one(struct top_keys *top, uint32_t place)
{
	struct top_key *key = top->keys[place];
	if (place == 0 || top->counts[place - 1] > key->count) { /* as for most keys that are counted often */
		top->counts[place] = ++key->count;
		return;
	}
	uint32_t first = first_of(top, key->count);
	uint64_t hash = top->hashes[place];
	uint32_t slot = top->slots[place];
	key->count++;
	put_at(top, place, top->keys[first], top->hashes[first], top->slots[first]);
	put_at(top, first, key, hash, slot);
}

/* Moves a key after all others, whatever its count. */
static void move_last(struct top_keys *top, uint32_t place)
{
	struct top_key *key = top->keys[place];
	uint64_t hash = top->hashes[place];
	uint32_t slot = top->slots[place], last = top->count - 1;
	for (; place < last; place++)
		put_at(top, place, top->keys[place + 1], top->hashes[place + 1], top->slots[place + 1]);
	put_at(top, last, key, hash, slot);
}

/* Puts this key into the entry at a place. */
static void enter(struct top_keys *top, uint32_t place, uint32_t zone_id, struct weir_span key, uint64_t count,
                  uint64_t error)
{
	struct top_key *entry = top->keys[place];
	entry_at(top, place)->names++;
	entry->zone_id = zone_id;
	entry->key_length = key.length;
	entry->count = top->counts[place] = count;
	entry->error = error;
	if (key.length > 0)
		memcpy(entry->key, key.at, key.length);
	top->hashes[place] = hash_of(zone_id, key);
	index_add(top, place);
}

/* ---- counting ---- */

/* The entry of a key. A new key gets a new entry with count 0 if there is room; otherwise it replaces the least one. */
static struct top_entry *entry_of(struct top_keys *top, uint32_t zone_id, struct weir_span key)
{
	uint32_t place = find(top, zone_id, key, hash_of(zone_id, key));
	if (place == TOP_KEYS && top_keys_add(top, zone_id, key, 0, 0)) {
		place = top->count - 1;
	} else if (place == TOP_KEYS) {
		uint64_t least = top->counts[--place];
		index_remove(top, place);
		enter(top, place, zone_id, key, least, least);
	}
	return entry_at(top, place);
}

void top_keys_count(struct top_keys *top, uint32_t zone_id, struct weir_span key, struct top_mark *mark)
{
	if (key.length > WEIR_KEY_MAX_BYTES)
		return;
	if (mark->entry == NULL || mark->entry->names != mark->names) {
		struct top_entry *entry = entry_of(top, zone_id, key);
		*mark = (struct top_mark){.entry = entry, .names = entry->names};
	}
	count_one(top, mark->entry->place);
}

void top_keys_forget(struct top_keys *top, uint32_t zone_id, struct weir_span key)
{
	uint32_t place = find(top, zone_id, key, hash_of(zone_id, key)), last = top->count - 1;
	uint64_t least = top->counts[TOP_KEYS - 1];
	if (place == TOP_KEYS)
		return;
	move_last(top, place);
	index_remove(top, last);
	if (top->count == TOP_KEYS) {
		enter(top, last, 0, (struct weir_span){.at = "", .length = 0}, least, least);
	} else {
		free(top->keys[last]);
		top->count--;
	}
}

bool top_keys_add(struct top_keys *top, uint32_t zone_id, struct weir_span key, uint64_t count, uint64_t error)
{
	if (top->count == TOP_KEYS || key.length > WEIR_KEY_MAX_BYTES)
		return false;
	uint32_t place = top->count++;
	for (; place > 0 && top->counts[place - 1] < count; place--)
		put_at(top, place, top->keys[place - 1], top->hashes[place - 1], top->slots[place - 1]);
	set_key(top, place, weir_alloc(1, sizeof(struct top_entry)));
	enter(top, place, zone_id, key, count, error);
	return true;
}

size_t top_keys_list(const struct top_keys *top, const struct top_key *const **keys)
{
	*keys = (const struct top_key *const *)top->keys;
	return top->count;
}
