/*
 * Zone counters sit in a fixed array, so that a reader on another thread never
 * sees one move. The most blocked keys follow Space-Saving (Metwally, Agrawal,
 * El Abbadi 2005): a new key takes the place of the least one and inherits its
 * count as its error, so a key that was blocked often is never missed.
 */
#include "limiter/tally.h"

#include "common/alloc.h"

#include <stdlib.h>

enum { SLOTS = 1024 }; /* of the key index: a power of two, four times TALLY_TOP_KEYS */

struct tally {
	struct tally_zone zones[WEIR_ZONES_MAX];
	_Atomic uint32_t zone_count;
	struct tally_key *keys[TALLY_TOP_KEYS];
	uint64_t hashes[TALLY_TOP_KEYS];
	uint32_t key_count;
	uint16_t index[SLOTS]; /* place in keys + 1, by hash, linear probing; 0: free */
};

struct tally *tally_new(void)
{
	return weir_alloc(1, sizeof(struct tally));
}

void tally_free(struct tally *tally)
{
	if (tally == NULL)
		return;
	for (uint32_t i = 0; i < tally->key_count; i++)
		free(tally->keys[i]);
	free(tally);
}

const struct tally_zone *tally_zone(const struct tally *tally, uint32_t zone_id)
{
	uint32_t count = atomic_load_explicit(&tally->zone_count, memory_order_acquire);
	for (uint32_t i = 0; i < count; i++)
		if (tally->zones[i].zone_id == zone_id)
			return &tally->zones[i];
	return NULL;
}

/* The zone's counters, made where they are new; NULL past the bound. */
static struct tally_zone *own_zone(struct tally *tally, uint32_t zone_id)
{
	uint32_t count = atomic_load_explicit(&tally->zone_count, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++)
		if (tally->zones[i].zone_id == zone_id)
			return &tally->zones[i];
	if (count == WEIR_ZONES_MAX)
		return NULL;
	tally->zones[count].zone_id = zone_id;
	atomic_store_explicit(&tally->zone_count, count + 1, memory_order_release);
	return &tally->zones[count];
}

/* The only writer adds without a locked instruction. */
static inline void add(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

static bool same_key(const struct tally_key *entry, uint32_t zone_id, struct weir_span key)
{
	return entry->zone_id == zone_id && entry->key_length == key.length &&
	       (key.length == 0 || memcmp(entry->key, key.at, key.length) == 0);
}

static void index_add(struct tally *tally, uint32_t place)
{
	size_t slot = tally->hashes[place] & (SLOTS - 1);
	while (tally->index[slot] != 0)
		slot = (slot + 1) & (SLOTS - 1);
	tally->index[slot] = (uint16_t)(place + 1);
}

static void index_rebuild(struct tally *tally)
{
	memset(tally->index, 0, sizeof tally->index);
	for (uint32_t i = 0; i < tally->key_count; i++)
		index_add(tally, i);
}

static uint32_t least_counted(const struct tally *tally)
{
	uint32_t least = 0;
	for (uint32_t i = 1; i < tally->key_count; i++)
		if (tally->keys[i]->count < tally->keys[least]->count)
			least = i;
	return least;
}

static struct tally_key *fill_key(struct tally *tally, uint32_t place, uint64_t hash, uint32_t zone_id,
                                  struct weir_span key)
{
	struct tally_key *entry = tally->keys[place];
	entry->zone_id = zone_id;
	entry->key_length = key.length;
	if (key.length > 0)
		memcpy(entry->key, key.at, key.length);
	tally->hashes[place] = hash;
	return entry;
}

static uint64_t hash_of(uint32_t zone_id, struct weir_span key)
{
	return weir_hash64(key.at, key.length) ^ (zone_id * UINT64_C(0x9E3779B97F4A7C15));
}

/* The place of a key; TALLY_TOP_KEYS: it has none. */
static uint32_t find_key(const struct tally *tally, uint32_t zone_id, struct weir_span key, uint64_t hash)
{
	for (size_t slot = hash & (SLOTS - 1); tally->index[slot] != 0; slot = (slot + 1) & (SLOTS - 1)) {
		uint32_t place = tally->index[slot] - 1u;
		if (tally->hashes[place] == hash && same_key(tally->keys[place], zone_id, key))
			return place;
	}
	return TALLY_TOP_KEYS;
}

/*
 * While there is room the counts are exact, and its place is given up. Once there is none, a key that comes is counted
 * from the least count on, which it may have reached before: a place that is nobody's stands for that.
 */
void tally_forget(struct tally *tally, uint32_t zone_id, struct weir_span key)
{
	uint32_t place = find_key(tally, zone_id, key, hash_of(zone_id, key));
	if (place == TALLY_TOP_KEYS)
		return;
	struct tally_key *entry = tally->keys[place];
	if (tally->key_count < TALLY_TOP_KEYS) {
		tally->keys[place] = tally->keys[--tally->key_count];
		tally->hashes[place] = tally->hashes[tally->key_count];
		free(entry);
	} else {
		uint64_t least = tally->keys[least_counted(tally)]->count;
		*entry = (struct tally_key){.count = least, .error = least};
		tally->hashes[place] = hash_of(0, (struct weir_span){entry->key, 0});
	}
	index_rebuild(tally);
}

static void count_blocked_key(struct tally *tally, uint32_t zone_id, struct weir_span key)
{
	if (key.length > WEIR_KEY_MAX_BYTES)
		return;
	uint64_t hash = hash_of(zone_id, key);
	uint32_t known = find_key(tally, zone_id, key, hash);
	if (known < TALLY_TOP_KEYS) {
		tally->keys[known]->count++;
		return;
	}
	if (tally->key_count < TALLY_TOP_KEYS) {
		uint32_t place = tally->key_count++;
		tally->keys[place] = weir_alloc(1, sizeof(struct tally_key));
		fill_key(tally, place, hash, zone_id, key)->count = 1;
		index_add(tally, place);
		return;
	}
	uint32_t place = least_counted(tally);
	uint64_t inherited = tally->keys[place]->count;
	struct tally_key *entry = fill_key(tally, place, hash, zone_id, key);
	entry->count = inherited + 1;
	entry->error = inherited;
	index_rebuild(tally);
}

void tally_fold(struct tally *into, const struct tally *of, bool subtract)
{
	uint32_t count = atomic_load_explicit(&of->zone_count, memory_order_acquire);
	uint64_t sign = subtract ? UINT64_MAX : 1; /* modulo 2^64, as all sums of them are */
	for (uint32_t i = 0; i < count; i++) {
		const struct tally_zone *from = &of->zones[i];
		struct tally_zone *to = own_zone(into, from->zone_id);
		if (to == NULL)
			continue; /* the next may be one that is there */
		add(&to->passed, sign * from->passed);
		add(&to->blocked, sign * from->blocked);
		add(&to->late, sign * from->late);
		add(&to->decisions, sign * from->decisions);
	}
}

size_t tally_keys(const struct tally *tally, const struct tally_key *const **keys)
{
	*keys = (const struct tally_key *const *)tally->keys;
	return tally->key_count;
}

void tally_frame(struct tally *tally, const struct weir_frame *frame, const struct shard_result *result)
{
	uint32_t pair = 0;
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		for (uint32_t j = 0; j < set->count; j++, pair++) {
			unsigned bits = (result->verdicts[pair / 2] >> (pair % 2 * 4)) & 15;
			if (bits & WEIR_VERDICT_NONE)
				continue;
			struct tally_zone *zone = own_zone(tally, set->zones[j].id);
			if (zone == NULL)
				continue;
			if (bits & WEIR_VERDICT_BLOCK) {
				add(&zone->blocked, 1);
				count_blocked_key(tally, zone->zone_id, frame->keys[event->key]);
			} else {
				add(&zone->passed, 1);
			}
			if (bits & WEIR_VERDICT_LATE)
				add(&zone->late, 1);
			if (bits & WEIR_VERDICT_DECIDED)
				add(&zone->decisions, 1);
		}
	}
}

/* ---- as bytes: little-endian u64s; counts of zones and keys, then each ---- */

static void put(struct weir_text *bytes, uint64_t number)
{
	unsigned char out[8];
	for (int i = 0; i < 8; i++)
		out[i] = (unsigned char)(number >> (8 * i));
	weir_text_append(bytes, out, sizeof out);
}

static bool get(struct weir_span *bytes, uint64_t *number)
{
	if (bytes->length < 8)
		return false;
	*number = 0;
	for (int i = 0; i < 8; i++)
		*number |= (uint64_t)(unsigned char)bytes->at[i] << (8 * i);
	bytes->at += 8;
	bytes->length -= 8;
	return true;
}

void tally_export(const struct tally *tally, struct weir_text *bytes)
{
	uint32_t zones = atomic_load_explicit(&tally->zone_count, memory_order_relaxed);
	put(bytes, zones);
	put(bytes, tally->key_count);
	for (uint32_t i = 0; i < zones; i++) {
		const struct tally_zone *zone = &tally->zones[i];
		put(bytes, zone->zone_id);
		put(bytes, zone->passed);
		put(bytes, zone->blocked);
		put(bytes, zone->late);
		put(bytes, zone->decisions);
	}
	for (uint32_t i = 0; i < tally->key_count; i++) {
		const struct tally_key *key = tally->keys[i];
		put(bytes, key->zone_id);
		put(bytes, key->count);
		put(bytes, key->error);
		put(bytes, key->key_length);
		weir_text_append(bytes, key->key, key->key_length);
	}
}

static bool import_zone(struct tally *tally, struct weir_span *bytes)
{
	uint64_t id, passed, blocked, late, decisions;
	if (!get(bytes, &id) || !get(bytes, &passed) || !get(bytes, &blocked) || !get(bytes, &late) ||
	    !get(bytes, &decisions) || id > WEIR_ZONE_ID_MAX)
		return false;
	struct tally_zone *zone = own_zone(tally, (uint32_t)id);
	if (zone == NULL)
		return false;
	atomic_store(&zone->passed, passed);
	atomic_store(&zone->blocked, blocked);
	atomic_store(&zone->late, late);
	atomic_store(&zone->decisions, decisions);
	return true;
}

static bool import_key(struct tally *tally, struct weir_span *bytes)
{
	uint64_t id, count, error, length;
	if (!get(bytes, &id) || !get(bytes, &count) || !get(bytes, &error) || !get(bytes, &length) ||
	    id > WEIR_ZONE_ID_MAX || length > WEIR_KEY_MAX_BYTES || length > bytes->length ||
	    tally->key_count == TALLY_TOP_KEYS)
		return false;
	struct weir_span key = {.at = bytes->at, .length = (uint32_t)length};
	uint64_t hash = hash_of((uint32_t)id, key);
	uint32_t place = tally->key_count++;
	tally->keys[place] = weir_alloc(1, sizeof(struct tally_key));
	struct tally_key *entry = fill_key(tally, place, hash, (uint32_t)id, key);
	entry->count = count;
	entry->error = error;
	index_add(tally, place);
	bytes->at += length;
	bytes->length -= (uint32_t)length;
	return true;
}

static void empty(struct tally *tally)
{
	for (uint32_t i = 0; i < tally->key_count; i++)
		free(tally->keys[i]);
	memset(tally, 0, sizeof *tally);
}

enum weir_status tally_import(struct tally *tally, struct weir_span bytes, struct weir_error *error)
{
	uint64_t zones = 0, keys = 0;
	empty(tally);
	bool good = get(&bytes, &zones) && get(&bytes, &keys) && zones <= WEIR_ZONES_MAX && keys <= TALLY_TOP_KEYS;
	for (uint64_t i = 0; good && i < zones; i++)
		good = import_zone(tally, &bytes);
	for (uint64_t i = 0; good && i < keys; i++)
		good = import_key(tally, &bytes);
	if (good && bytes.length == 0)
		return WEIR_OK;
	empty(tally);
	return weir_fail(error, WEIR_INVALID, "the counters saved with a checkpoint are damaged");
}
