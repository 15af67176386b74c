/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chained hash table by key alone, so that the entries of one key in several
 * zones meet in one chain: a gateway's list often knows no zones, and a key is
 * on it for as long as any zone blocks it.
 */
#include "deploy/gateways/table/block_table.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <assert.h>
#include <stdlib.h>

enum { SLOTS_LEAST = 1024 };

struct block_table {
	struct block_table_options options;
	struct block_entry **slots;
	uint32_t slot_count; /* a power of two */
	uint32_t held;       /* entries in it, marks included */
	struct block_heap heap;
	struct block_entry **changes;
	uint32_t change_count, change_capacity;
	struct decision_version *seen; /* by partition */
	_Atomic uint32_t live;
	struct weir_counter left_out;
};

struct block_table *block_table_new(const struct block_table_options *options)
{
	assert(options->max > 0);
	struct block_table *table = weir_alloc(1, sizeof *table);
	table->options = *options;
	table->slot_count = SLOTS_LEAST;
	table->slots = weir_alloc(table->slot_count, sizeof(struct block_entry *));
	table->seen = weir_alloc(options->partitions, sizeof *table->seen);
	return table;
}

static void entry_free(struct block_entry *entry)
{
	free(entry->json);
	free(entry);
}

void block_table_clear(struct block_table *table)
{
	block_table_settle(table);
	for (uint32_t i = 0; i < table->slot_count; i++) {
		for (struct block_entry *entry = table->slots[i], *next; entry != NULL; entry = next) {
			next = entry->next;
			entry_free(entry);
		}
		table->slots[i] = NULL;
	}
	table->held = 0;
	atomic_store_explicit(&table->live, 0, memory_order_relaxed);
	block_heap_deinit(&table->heap);
}

void block_table_keep(struct block_table *table)
{
	for (uint32_t i = 0; i < table->slot_count; i++)
		for (struct block_entry *entry = table->slots[i]; entry != NULL; entry = entry->next)
			entry->kept = true;
}

void block_table_free(struct block_table *table)
{
	if (table == NULL)
		return;
	block_table_clear(table);
	free(table->slots);
	free(table->changes);
	free(table->seen);
	free(table);
}

/* ---- the hash table ---- */

static uint64_t key_hash(const struct block_table *table, struct weir_span key)
{
	return weir_fingerprint(table->options.seed, 0, key).low;
}

static struct block_entry **slot_of(const struct block_table *table, uint64_t hash)
{
	return &table->slots[hash & (table->slot_count - 1)];
}

static bool is_of_key(const struct block_entry *entry, uint64_t hash, struct weir_span key)
{
	return entry->hash == hash && weir_span_equal(block_entry_key(entry), key);
}

static struct block_entry *find(const struct block_table *table, struct weir_span zone, struct weir_span key)
{
	uint64_t hash = key_hash(table, key);
	struct block_entry *entry = *slot_of(table, hash);
	while (entry != NULL && !(is_of_key(entry, hash, key) && weir_span_equal(block_entry_zone(entry), zone)))
		entry = entry->next;
	return entry;
}

static void grow(struct block_table *table)
{
	struct block_entry **old = table->slots;
	uint32_t old_count = table->slot_count;
	table->slot_count *= 2;
	table->slots = weir_alloc(table->slot_count, sizeof(struct block_entry *));
	for (uint32_t i = 0; i < old_count; i++)
		for (struct block_entry *entry = old[i], *next; entry != NULL; entry = next) {
			next = entry->next;
			struct block_entry **slot = slot_of(table, entry->hash);
			entry->next = *slot;
			*slot = entry;
		}
	free(old);
}

static struct block_entry *insert(struct block_table *table, const struct decision_record *record)
{
	if (table->held >= table->slot_count && table->slot_count <= UINT32_MAX / 2)
		grow(table);
	struct block_entry *entry = weir_alloc(1, sizeof *entry + record->zone.length + record->key.length);
	entry->hash = key_hash(table, record->key);
	entry->state = BLOCK_ENDED;
	entry->partition = record->partition;
	entry->zone_length = (uint8_t)record->zone.length;
	entry->key_length = record->key.length;
	memcpy(entry->bytes, record->zone.at, record->zone.length);
	if (record->key.length > 0)
		memcpy(entry->bytes + record->zone.length, record->key.at, record->key.length);
	struct block_entry **slot = slot_of(table, entry->hash);
	entry->next = *slot;
	*slot = entry;
	table->held++;
	return entry;
}

static void take_out(struct block_table *table, struct block_entry *entry)
{
	struct block_entry **link = slot_of(table, entry->hash);
	while (*link != entry)
		link = &(*link)->next;
	*link = entry->next;
	table->held--;
	block_heap_take(&table->heap, &entry->due);
	if (entry->changed)
		entry->gone = true;
	else
		entry_free(entry);
}

/* ---- changes ---- */

static void note_change(struct block_table *table, struct block_entry *entry)
{
	if (entry->changed)
		return;
	if (table->change_count == table->change_capacity) {
		table->change_capacity = table->change_capacity > 0 ? 2 * table->change_capacity : 256;
		table->changes = weir_realloc(table->changes, table->change_capacity, sizeof(struct block_entry *));
	}
	table->changes[table->change_count++] = entry;
	entry->changed = true;
}

struct block_entry *const *block_table_changes(const struct block_table *table, uint32_t *count)
{
	*count = table->change_count;
	return table->changes;
}

void block_table_settle(struct block_table *table)
{
	for (uint32_t i = 0; i < table->change_count; i++) {
		struct block_entry *entry = table->changes[i];
		entry->changed = false;
		entry->told = entry->state == BLOCK_LIVE;
		if (entry->gone) {
			entry_free(entry);
		} else if (entry->state != BLOCK_LIVE) {
			free(entry->json);
			entry->json = NULL;
			entry->json_length = 0;
		}
	}
	table->change_count = 0;
}

/* ---- what decisions and time do ---- */

/* What is live ends; it stays as a mark where an older version of it could come again and would still block. */
static void end(struct block_table *table, struct block_entry *entry, enum block_state state, int64_t now_ms)
{
	atomic_fetch_sub_explicit(&table->live, 1, memory_order_relaxed);
	entry->state = state;
	note_change(table, entry);
	int64_t mark_ms = entry->guard_ms;
	if (mark_ms > now_ms + BLOCK_TABLE_GUARD_MAX_MS)
		mark_ms = now_ms + BLOCK_TABLE_GUARD_MAX_MS;
	if (state == BLOCK_LEFT_OUT || mark_ms <= now_ms)
		take_out(table, entry);
	else
		block_heap_put(&table->heap, &entry->due, mark_ms);
}

/* The heap holds the first member of entries. */
static struct block_entry *first_due(const struct block_table *table)
{
	return (struct block_entry *)(void *)block_heap_first(&table->heap);
}

int64_t block_table_expire(struct block_table *table, int64_t now_ms)
{
	struct block_entry *entry;
	while ((entry = first_due(table)) != NULL && entry->due.due_ms <= now_ms) {
		if (entry->state == BLOCK_LIVE)
			end(table, entry, BLOCK_ENDED, now_ms);
		else
			take_out(table, entry);
	}
	return entry != NULL ? entry->due.due_ms : INT64_MAX;
}

/* Room for one that ends then: false where all that is there ends no sooner. */
static bool make_room(struct block_table *table, int64_t until_ms, int64_t now_ms)
{
	if (table->held < table->options.max)
		return true;
	struct block_entry *first = first_due(table);
	bool live = first->state == BLOCK_LIVE;
	if (live)
		weir_counter_add(&table->left_out, 1);
	if (live && first->due.due_ms >= until_ms)
		return false;
	if (live)
		end(table, first, BLOCK_LEFT_OUT, now_ms);
	else
		take_out(table, first);
	return true;
}

static void keep_json(struct block_entry *entry, struct weir_span json)
{
	free(entry->json);
	entry->json = weir_copy(json.at, json.length);
	entry->json_length = json.length;
	/* A line break stands only between its tokens, and would end the line that it becomes. */
	for (uint32_t i = 0; i < json.length; i++)
		if ((unsigned char)entry->json[i] < ' ')
			entry->json[i] = ' ';
}

static void begin(struct block_table *table, struct block_entry *entry, const struct decision_record *record)
{
	if (entry->state != BLOCK_LIVE)
		atomic_fetch_add_explicit(&table->live, 1, memory_order_relaxed);
	entry->state = BLOCK_LIVE;
	entry->until_ms = record->until_ms;
	entry->by_operator = record->by_operator;
	if (record->until_ms > entry->guard_ms)
		entry->guard_ms = record->until_ms;
	if (table->options.keep_json)
		keep_json(entry, record->json);
	block_heap_put(&table->heap, &entry->due, entry->until_ms);
	note_change(table, entry);
}

static void note_version(struct block_entry *entry, const struct decision_record *record)
{
	entry->version = record->version;
	entry->kept = false;
	entry->at_ms = record->at_ms;
}

static bool is_newer(const struct decision_record *record, const struct block_entry *than)
{
	return than->kept || decision_version_newer(record->version, than->version);
}

static enum block_outcome lift_zone(struct block_table *table, const struct decision_record *record, int64_t now_ms)
{
	enum block_outcome outcome = BLOCK_OVER;
	for (uint32_t i = 0; i < table->slot_count; i++)
		for (struct block_entry *entry = table->slots[i], *next; entry != NULL; entry = next) {
			next = entry->next;
			if (entry->partition != record->partition || !is_newer(record, entry) ||
			    !weir_span_equal(block_entry_zone(entry), record->zone))
				continue;
			note_version(entry, record);
			if (entry->state != BLOCK_LIVE)
				continue;
			end(table, entry, BLOCK_LIFTED, now_ms);
			outcome = BLOCK_APPLIED;
		}
	return outcome;
}

enum block_outcome block_table_apply(struct block_table *table, const struct decision_record *record, int64_t now_ms)
{
	assert(record->partition < table->options.partitions);
	block_table_expire(table, now_ms);
	struct decision_version *seen = &table->seen[record->partition];
	if (decision_version_newer(record->version, *seen))
		*seen = record->version;
	if (record->whole_zone)
		return lift_zone(table, record, now_ms);
	struct block_entry *entry = find(table, record->zone, record->key);
	if (entry != NULL && !is_newer(record, entry))
		return BLOCK_OLDER;
	bool over = record->lift || record->until_ms <= now_ms;
	if (entry == NULL && over)
		return BLOCK_OVER;
	if (entry == NULL && !make_room(table, record->until_ms, now_ms))
		return BLOCK_NO_ROOM;
	if (entry == NULL)
		entry = insert(table, record);
	note_version(entry, record);
	if (!over)
		begin(table, entry, record);
	else if (entry->state == BLOCK_LIVE)
		end(table, entry, BLOCK_LIFTED, now_ms);
	else
		return BLOCK_OVER;
	return BLOCK_APPLIED;
}

/* ---- looking ---- */

uint32_t block_table_count(const struct block_table *table)
{
	return atomic_load_explicit(&table->live, memory_order_relaxed);
}

uint64_t block_table_left_out(const struct block_table *table)
{
	return weir_counter_read(&table->left_out);
}

const struct block_entry *block_table_find(const struct block_table *table, struct weir_span zone, struct weir_span key)
{
	const struct block_entry *entry = find(table, zone, key);
	return entry != NULL && entry->state == BLOCK_LIVE ? entry : NULL;
}

const struct block_entry *block_table_find_key(const struct block_table *table, struct weir_span key)
{
	uint64_t hash = key_hash(table, key);
	const struct block_entry *found = NULL;
	for (const struct block_entry *entry = *slot_of(table, hash); entry != NULL; entry = entry->next)
		if (entry->state == BLOCK_LIVE && is_of_key(entry, hash, key) &&
		    (found == NULL || entry->until_ms > found->until_ms))
			found = entry;
	return found;
}

bool block_table_has_operators(const struct block_table *table, struct weir_span key)
{
	uint64_t hash = key_hash(table, key);
	const struct block_entry *entry = *slot_of(table, hash);
	while (entry != NULL && !(entry->state == BLOCK_LIVE && entry->by_operator && is_of_key(entry, hash, key)))
		entry = entry->next;
	return entry != NULL;
}

bool block_table_was_told(const struct block_table *table, struct weir_span key)
{
	uint64_t hash = key_hash(table, key);
	const struct block_entry *entry = *slot_of(table, hash);
	while (entry != NULL && !(entry->told && is_of_key(entry, hash, key)))
		entry = entry->next;
	return entry != NULL;
}

struct decision_version block_table_seen(const struct block_table *table, uint32_t partition)
{
	return table->seen[partition];
}

const struct block_entry *block_table_next(const struct block_table *table, struct block_walk *walk)
{
	const struct block_entry *entry = walk->entry != NULL ? walk->entry->next : NULL;
	for (;;) {
		for (; entry != NULL; entry = entry->next)
			if (entry->state == BLOCK_LIVE)
				return walk->entry = entry;
		if (walk->slot == table->slot_count)
			return walk->entry = NULL;
		entry = table->slots[walk->slot++];
	}
}
