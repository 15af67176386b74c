/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zone counters are in a fixed array, so they never move under a reader on another
 * thread.
 */
#include "limiter/lane/tally.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>

enum { PAIRS_A_WORD = 16 }; /* verdicts in 64 bits */

struct tally {
	struct tally_zone zones[WEIR_ZONES_MAX];
	_Atomic uint32_t zone_count;     /* entries that are, or were, in use */
	uint16_t places[WEIR_ZONES_MAX]; /* a cache of zones' indexes, by id modulo WEIR_ZONES_MAX; only for the writer */
	struct top_keys *keys;
	struct top_mark *marks; /* by key of the current frame */
	uint32_t mark_room;
	uint32_t *set_passed; /* by zone set of the current frame: events that have passed in all its zones */
	uint32_t set_room;
};

struct tally *tally_new(void)
{
	struct tally *tally = weir_alloc(1, sizeof *tally);
	tally->keys = top_keys_new();
	return tally;
}

void tally_free(struct tally *tally)
{
	if (tally == NULL)
		return;
	top_keys_free(tally->keys);
	free(tally->marks);
	free(tally->set_passed);
	free(tally);
}

static inline uint32_t id_at(const struct tally *tally, uint32_t place)
{
	return atomic_load_explicit(&tally->zones[place].zone_id, memory_order_acquire);
}

const struct tally_zone *tally_zone(const struct tally *tally, uint32_t zone_id)
{
	uint32_t count = atomic_load_explicit(&tally->zone_count, memory_order_acquire);
	for (uint32_t i = 0; i < count; i++)
		if (id_at(tally, i) == zone_id)
			return &tally->zones[i];
	return NULL;
}

/* Makes an entry for a zone, which other threads see only once its counters are zero. @return NULL: none is free */
static struct tally_zone *make_zone(struct tally *tally, uint32_t zone_id)
{
	uint32_t count = atomic_load_explicit(&tally->zone_count, memory_order_relaxed), place = 0;
	while (place < count && id_at(tally, place) != 0)
		place++;
	if (place == WEIR_ZONES_MAX)
		return NULL;
	struct tally_zone *zone = &tally->zones[place];
	atomic_store_explicit(&zone->passed, 0, memory_order_relaxed);
	atomic_store_explicit(&zone->blocked, 0, memory_order_relaxed);
	atomic_store_explicit(&zone->late, 0, memory_order_relaxed);
	atomic_store_explicit(&zone->decisions, 0, memory_order_relaxed);
	atomic_store_explicit(&zone->zone_id, zone_id, memory_order_release);
	if (place == count)
		atomic_store_explicit(&tally->zone_count, count + 1, memory_order_release);
	return zone;
}

/* The zone's counters, new ones if needed; NULL: no entry is free. */
static struct tally_zone *own_zone(struct tally *tally, uint32_t zone_id)
{
	uint16_t *known = &tally->places[zone_id % WEIR_ZONES_MAX];
	if (id_at(tally, *known) == zone_id)
		return &tally->zones[*known];
	struct tally_zone *zone = (struct tally_zone *)tally_zone(tally, zone_id);
	if (zone == NULL)
		zone = make_zone(tally, zone_id);
	if (zone != NULL)
		*known = (uint16_t)(zone - tally->zones);
	return zone;
}

void tally_keep_zones(struct tally *tally, const struct weir_policy *policy)
{
	uint32_t count = atomic_load_explicit(&tally->zone_count, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++)
		if (id_at(tally, i) != 0 && weir_policy_zone(policy, id_at(tally, i)) == NULL)
			atomic_store_explicit(&tally->zones[i].zone_id, 0, memory_order_release);
}

/* Adds without a locked instruction, as there is only one writer. */
static inline void add(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

void tally_fold(struct tally *into, const struct tally *of, bool subtract, const struct weir_policy *policy)
{
	tally_keep_zones(into, policy);
	uint32_t count = atomic_load_explicit(&of->zone_count, memory_order_acquire);
	uint64_t sign = subtract ? UINT64_MAX : 1; /* UINT64_MAX is -1, as sums are modulo 2^64 */
	for (uint32_t i = 0; i < count; i++) {
		const struct tally_zone *from = &of->zones[i];
		if (id_at(of, i) == 0 || weir_policy_zone(policy, id_at(of, i)) == NULL)
			continue;
		struct tally_zone *to = own_zone(into, id_at(of, i));
		assert(to != NULL);
		add(&to->passed, sign * from->passed);
		add(&to->blocked, sign * from->blocked);
		add(&to->late, sign * from->late);
		add(&to->decisions, sign * from->decisions);
	}
}

struct top_keys *tally_keys(const struct tally *tally)
{
	return tally->keys;
}

static void count_pair(struct tally *tally, uint32_t zone_id, struct weir_span key, unsigned bits,
                       struct top_mark *mark)
{
	if (bits & WEIR_VERDICT_NONE)
		return;
	struct tally_zone *zone = own_zone(tally, zone_id);
	if (zone == NULL)
		return;
	if (bits & WEIR_VERDICT_BLOCK) {
		add(&zone->blocked, 1);
		top_keys_count(tally->keys, zone_id, key, mark);
	} else {
		add(&zone->passed, 1);
	}
	if (bits & WEIR_VERDICT_LATE)
		add(&zone->late, 1);
}

/* Whether all pairs of the word of verdicts that begins here have simply passed. */
static inline bool all_passed(const struct shard_result *result, uint32_t pair)
{
	uint64_t word;
	if (pair % 2 != 0 || result->pair_count - pair < PAIRS_A_WORD)
		return false;
	memcpy(&word, result->verdicts + pair / 2, sizeof word);
	return word == 0;
}

/* Clears a mark for each key of the frame. They pay, as blocked keys come often within a frame. */
static struct top_mark *clear_marks(struct tally *tally, uint32_t count)
{
	if (count > tally->mark_room) {
		tally->mark_room = count + count / 2;
		tally->marks = weir_realloc(tally->marks, tally->mark_room, sizeof *tally->marks);
	}
	if (count > 0)
		memset(tally->marks, 0, count * sizeof *tally->marks);
	return tally->marks;
}

static uint32_t *clear_passed(struct tally *tally, uint32_t sets)
{
	if (sets > tally->set_room) {
		tally->set_room = sets + sets / 2;
		tally->set_passed = weir_realloc(tally->set_passed, tally->set_room, sizeof *tally->set_passed);
	}
	if (sets > 0)
		memset(tally->set_passed, 0, sets * sizeof *tally->set_passed);
	return tally->set_passed;
}

/* Counts a frame of one zone, with one pair per event. Most have passed, and are counted many at a time. */
static void count_one_zone(struct tally *tally, const struct weir_frame *frame, const struct shard_result *result)
{
	uint32_t zone_id = frame->zone_sets[0].zones[0].id;
	struct top_mark *marks = clear_marks(tally, frame->key_count);
	uint64_t passed = 0;
	for (uint32_t i = 0; i < frame->event_count;) {
		if (all_passed(result, i)) {
			passed += PAIRS_A_WORD;
			i += PAIRS_A_WORD;
			continue;
		}
		unsigned bits = weir_verdict_of(result->verdicts, i);
		uint32_t key = frame->events[i].key;
		if (bits == 0)
			passed++;
		else
			count_pair(tally, zone_id, frame->keys[key], bits, &marks[key]);
		i++;
	}
	struct tally_zone *zone = passed > 0 ? own_zone(tally, zone_id) : NULL;
	if (zone != NULL)
		add(&zone->passed, passed);
}

/* By themselves, as a done record has a decision and no verdict. */
static void count_decisions(struct tally *tally, const struct shard_result *result)
{
	for (uint32_t i = 0; i < result->decision_count; i++) {
		struct tally_zone *zone = own_zone(tally, result->decisions[i].zone->zone->id);
		if (zone != NULL)
			add(&zone->decisions, 1);
	}
}

/* Whether all pairs of an event have simply passed. */
static bool event_passed(const struct shard_result *result, uint32_t pair, uint32_t count)
{
	uint32_t end = pair + count;
	while (pair < end) {
		bool many = end - pair >= PAIRS_A_WORD && all_passed(result, pair);
		if (!many && weir_verdict_of(result->verdicts, pair) != 0)
			return false;
		pair += many ? PAIRS_A_WORD : 1;
	}
	return true;
}

/* Counts a frame's pairs. Of most events all have passed: those are counted by zone set, and then added to its zones. */
static void count_sets(struct tally *tally, const struct weir_frame *frame, const struct shard_result *result)
{
	uint32_t *passed = clear_passed(tally, frame->zone_set_count), pair = 0;
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		if (event_passed(result, pair, set->count)) {
			passed[event->zone_set]++;
			pair += set->count;
			continue;
		}
		for (uint32_t j = 0; j < set->count; j++, pair++) {
			struct top_mark mark = {0};
			count_pair(tally, set->zones[j].id, frame->keys[event->key], weir_verdict_of(result->verdicts, pair),
			           &mark);
		}
	}
	for (uint32_t i = 0; i < frame->zone_set_count; i++)
		for (uint32_t j = 0; passed[i] > 0 && j < frame->zone_sets[i].count; j++) {
			struct tally_zone *zone = own_zone(tally, frame->zone_sets[i].zones[j].id);
			if (zone != NULL)
				add(&zone->passed, passed[i]);
		}
}

void tally_frame(struct tally *tally, const struct weir_frame *frame, const struct shard_result *result)
{
	count_decisions(tally, result);
	if (frame->zone_set_count == 1 && frame->zone_sets[0].count == 1)
		count_one_zone(tally, frame, result);
	else
		count_sets(tally, frame, result);
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
	uint32_t places = atomic_load_explicit(&tally->zone_count, memory_order_relaxed), zones = 0;
	for (uint32_t i = 0; i < places; i++)
		zones += id_at(tally, i) != 0;
	const struct top_key *const *keys;
	size_t key_count = top_keys_list(tally->keys, &keys);
	put(bytes, zones);
	put(bytes, key_count);
	for (uint32_t i = 0; i < places; i++) {
		const struct tally_zone *zone = &tally->zones[i];
		if (zone->zone_id == 0)
			continue;
		put(bytes, zone->zone_id);
		put(bytes, zone->passed);
		put(bytes, zone->blocked);
		put(bytes, zone->late);
		put(bytes, zone->decisions);
	}
	for (size_t i = 0; i < key_count; i++) {
		const struct top_key *key = keys[i];
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
	    !get(bytes, &decisions) || id == 0 || id > WEIR_ZONE_ID_MAX)
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
	    id > WEIR_ZONE_ID_MAX || length > bytes->length || length > WEIR_KEY_MAX_BYTES)
		return false;
	struct weir_span key = {.at = bytes->at, .length = (uint32_t)length};
	bytes->at += length;
	bytes->length -= (uint32_t)length;
	return top_keys_add(tally->keys, (uint32_t)id, key, count, error);
}

static void empty(struct tally *tally)
{
	top_keys_free(tally->keys);
	*tally = (struct tally){.keys = top_keys_new(), .marks = tally->marks, .mark_room = tally->mark_room};
}

enum weir_status tally_import(struct tally *tally, struct weir_span bytes, struct weir_error *error)
{
	uint64_t zones = 0, keys = 0;
	empty(tally);
	bool good = get(&bytes, &zones) && get(&bytes, &keys) && zones <= WEIR_ZONES_MAX && keys <= TOP_KEYS;
	for (uint64_t i = 0; good && i < zones; i++)
		good = import_zone(tally, &bytes);
	for (uint64_t i = 0; good && i < keys; i++)
		good = import_key(tally, &bytes);
	if (good && bytes.length == 0)
		return WEIR_OK;
	empty(tally);
	return weir_fail(error, WEIR_INVALID, "the counters in the checkpoint are damaged");
}
