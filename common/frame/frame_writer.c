/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing frames.
 *
 * The three lists of a frame (zone sets, keys, events) grow side by side and are
 * put together when it is finished. A key that the frame has already is found by
 * an open-addressing table of 8-byte slots; a slot counts only if it bears the
 * frame's generation, so beginning a frame clears nothing. All memory is kept
 * from frame to frame.
 */
#include "common/base/alloc.h"
#include "common/base/prefetch.h"
#include "common/bytes/scan.h"
#include "common/bytes/varint.h"
#include "common/frame/frame_format.h"
#include "common/policy/policy.h"

#include <assert.h>
#include <stdlib.h>

enum {
	TABLE_LEAST = 256,
	/* The most that one event adds beside its key and its zone set's members: counts, lengths, five numbers. */
	EVENT_MOST_BYTES = 8 * WEIR_VARINT_MAX_BYTES,
	SET_MEMBER_MOST_BYTES = 3, /* a zone id has 16 bits */
	RUN_MOST_BYTES = 3 * WEIR_VARINT_MAX_BYTES,
	RECORD_MOST_BYTES = WEIR_ZONES_MAX * (EVENT_MOST_BYTES + WEIR_KEY_MAX_BYTES + SET_MEMBER_MOST_BYTES) +
	                    RUN_MOST_BYTES + WEIR_FIELDS_MAX_BYTES,
};

_Static_assert(WEIR_FRAME_TARGET_BYTES + RECORD_MOST_BYTES <= WEIR_FRAME_MAX_BYTES,
               "a frame below its target has room for any record");

struct bytes {
	uint8_t *at;
	size_t length, capacity;
};

/* Index of an entry by the hash of its content. */
struct slot {
	uint32_t check; /* upper half of the hash */
	uint16_t generation;
	uint16_t index;
};

struct dictionary {
	struct slot *slots;
	uint32_t mask;
	uint16_t generation; /* of the open frame; 0 is in no frame */
};

struct key_entry {
	uint64_t hash;
	uint32_t offset; /* of its bytes in keys */
	uint32_t length;
};

struct set_entry {
	uint64_t hash;
	uint32_t first; /* in members */
	uint32_t count;
};

/* Events that share their fields. */
struct run {
	uint32_t first, count;
	uint32_t offset, length; /* of the fields, in writer->fields */
};

struct weir_frame_writer {
	struct bytes keys, sets, events, fields, frame;
	struct dictionary key_table, set_table;
	struct key_entry *key_entries; /* WEIR_FRAME_EVENTS_MAX of them at most, as of set_entries */
	uint32_t key_count, key_capacity;
	struct set_entry *set_entries;
	uint32_t set_count, set_capacity;
	uint32_t newest_set;             /* that of the event before: mostly that of the next one too */
	struct weir_frame_zone *members; /* of all sets, one after another */
	uint32_t member_count, member_capacity;
	struct run *runs; /* by events, ascending */
	uint32_t run_count, run_capacity;
	uint32_t event_count, pair_count;
	int64_t base_time_ms, time_ms;
	uint64_t base_position, position, policy_version;
	uint8_t source[WEIR_SOURCE_ID_BYTES];
};

static inline uint8_t *reserve(struct bytes *bytes, size_t more)
{
	if (__builtin_expect(bytes->capacity - bytes->length < more, 0)) {
		size_t capacity = bytes->capacity * 2 > bytes->length + more ? bytes->capacity * 2 : bytes->length + more;
		bytes->at = weir_realloc(bytes->at, capacity, 1);
		bytes->capacity = capacity;
	}
	return bytes->at + bytes->length;
}

/* ---- dictionaries ---- */

static void dictionary_init(struct dictionary *dictionary)
{
	*dictionary = (struct dictionary){.slots = weir_alloc(TABLE_LEAST, sizeof(struct slot)), .mask = TABLE_LEAST - 1};
}

/* Empties it by taking a generation that no slot bears; slots are cleared once in 65535 frames. */
static void dictionary_begin(struct dictionary *dictionary)
{
	if (++dictionary->generation == 0) {
		memset(dictionary->slots, 0, ((size_t)dictionary->mask + 1) * sizeof(struct slot));
		dictionary->generation = 1;
	}
}

static void dictionary_put(struct dictionary *dictionary, uint64_t hash, uint32_t index)
{
	uint32_t at = (uint32_t)hash & dictionary->mask;
	while (dictionary->slots[at].generation == dictionary->generation)
		at = (at + 1) & dictionary->mask;
	dictionary->slots[at] =
		(struct slot){.check = (uint32_t)(hash >> 32), .generation = dictionary->generation, .index = (uint16_t)index};
}

/* Twice the slots, when half of them are taken. The caller puts its entries again. */
static bool dictionary_grow(struct dictionary *dictionary, uint32_t count)
{
	if (count <= dictionary->mask / 2)
		return false;
	size_t slots = 2 * ((size_t)dictionary->mask + 1);
	free(dictionary->slots);
	*dictionary = (struct dictionary){
		.slots = weir_alloc(slots, sizeof(struct slot)), .mask = (uint32_t)slots - 1, .generation = 1};
	return true;
}

/* ---- keys ---- */

static inline bool same_bytes(const char *a, const char *b, size_t length)
{
	if (length < 8 || length > 16)
		return memcmp(a, b, length) == 0;
	return ((weir_scan_load(a) ^ weir_scan_load(b)) |
	        (weir_scan_load(a + length - 8) ^ weir_scan_load(b + length - 8))) == 0;
}

/* As memcpy; keys are mostly addresses of 8 to 15 bytes, for which a call costs more than the copy. */
static inline void copy_key(uint8_t *to, struct weir_span key)
{
	if (key.length < 8 || key.length > 16) {
		if (key.length > 0)
			memcpy(to, key.at, key.length);
		return;
	}
	uint64_t first = weir_scan_load(key.at), last = weir_scan_load(key.at + key.length - 8);
	memcpy(to, &first, sizeof first);
	memcpy(to + key.length - 8, &last, sizeof last);
}

static uint32_t add_key(struct weir_frame_writer *writer, struct weir_span key, uint64_t hash)
{
	uint32_t index = writer->key_count++;
	if (index == writer->key_capacity) {
		writer->key_capacity = index == 0 ? TABLE_LEAST : 2 * index;
		writer->key_entries = weir_realloc(writer->key_entries, writer->key_capacity, sizeof *writer->key_entries);
	}
	uint8_t *start = reserve(&writer->keys, WEIR_VARINT_MAX_BYTES + (size_t)key.length);
	uint8_t *at = weir_varint_put(start, key.length);
	writer->key_entries[index] =
		(struct key_entry){.hash = hash, .offset = (uint32_t)(at - writer->keys.at), .length = key.length};
	copy_key(at, key);
	writer->keys.length += (size_t)(at - start) + key.length;
	if (dictionary_grow(&writer->key_table, index + 1)) {
		for (uint32_t i = 0; i < index; i++)
			dictionary_put(&writer->key_table, writer->key_entries[i].hash, i);
	}
	dictionary_put(&writer->key_table, hash, index);
	return index;
}

/* The key's index, or -1 where the frame does not have it yet. */
static inline int64_t find_key(const struct weir_frame_writer *writer, struct weir_span key, uint64_t hash)
{
	const struct dictionary *table = &writer->key_table;
	for (uint32_t at = (uint32_t)hash & table->mask;; at = (at + 1) & table->mask) {
		const struct slot *slot = &table->slots[at];
		if (slot->generation != table->generation)
			return -1;
		if (slot->check != (uint32_t)(hash >> 32))
			continue;
		const struct key_entry *entry = &writer->key_entries[slot->index];
		if (entry->length == key.length &&
		    same_bytes((const char *)writer->keys.at + entry->offset, key.at, key.length))
			return slot->index;
	}
}

/* ---- zone sets ---- */

static inline bool same_zones(const struct weir_frame_writer *writer, uint32_t index,
                              const struct weir_frame_zone *zones, uint32_t count)
{
	const struct set_entry *entry = &writer->set_entries[index];
	if (entry->count != count)
		return false;
	const struct weir_frame_zone *members = writer->members + entry->first;
	for (uint32_t i = 0; i < count; i++)
		if (members[i].id != zones[i].id || members[i].done != zones[i].done)
			return false;
	return true;
}

static uint64_t hash_zones(const struct weir_frame_zone *zones, uint32_t count)
{
	uint64_t hash = count;
	for (uint32_t i = 0; i < count; i++)
		hash = (hash ^ ((uint64_t)zones[i].id << 1 | zones[i].done)) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static uint32_t add_set(struct weir_frame_writer *writer, const struct weir_frame_zone *zones, uint32_t count,
                        uint64_t hash)
{
	uint32_t index = writer->set_count++;
	if (index == writer->set_capacity) {
		writer->set_capacity = index == 0 ? 16 : 2 * index;
		writer->set_entries = weir_realloc(writer->set_entries, writer->set_capacity, sizeof *writer->set_entries);
	}
	if (writer->member_capacity - writer->member_count < count) {
		writer->member_capacity = 2 * writer->member_capacity + count;
		writer->members = weir_realloc(writer->members, writer->member_capacity, sizeof *writer->members);
	}
	writer->set_entries[index] = (struct set_entry){.hash = hash, .first = writer->member_count, .count = count};
	memcpy(writer->members + writer->member_count, zones, count * sizeof *zones);
	writer->member_count += count;
	uint8_t *at = reserve(&writer->sets, ((size_t)count + 1) * WEIR_VARINT_MAX_BYTES);
	at = weir_varint_put(at, count);
	for (uint32_t i = 0; i < count; i++)
		at = weir_varint_put(at, (uint64_t)zones[i].id << 1 | zones[i].done);
	writer->sets.length = (size_t)(at - writer->sets.at);
	if (dictionary_grow(&writer->set_table, index + 1)) {
		for (uint32_t i = 0; i < index; i++)
			dictionary_put(&writer->set_table, writer->set_entries[i].hash, i);
	}
	dictionary_put(&writer->set_table, hash, index);
	return index;
}

static uint32_t find_or_add_set(struct weir_frame_writer *writer, const struct weir_frame_zone *zones, uint32_t count)
{
	uint64_t hash = hash_zones(zones, count);
	const struct dictionary *table = &writer->set_table;
	for (uint32_t at = (uint32_t)hash & table->mask;; at = (at + 1) & table->mask) {
		const struct slot *slot = &table->slots[at];
		if (slot->generation != table->generation)
			return add_set(writer, zones, count, hash);
		if (slot->check == (uint32_t)(hash >> 32) && same_zones(writer, slot->index, zones, count))
			return slot->index;
	}
}

/* ---- frames ---- */

struct weir_frame_writer *weir_frame_writer_new(void)
{
	struct weir_frame_writer *writer = weir_alloc(1, sizeof *writer);
	dictionary_init(&writer->key_table);
	dictionary_init(&writer->set_table);
	return writer;
}

void weir_frame_writer_free(struct weir_frame_writer *writer)
{
	if (writer == NULL)
		return;
	free(writer->key_table.slots);
	free(writer->set_table.slots);
	free(writer->key_entries);
	free(writer->set_entries);
	free(writer->members);
	free(writer->keys.at);
	free(writer->sets.at);
	free(writer->events.at);
	free(writer->fields.at);
	free(writer->runs);
	free(writer->frame.at);
	free(writer);
}

void weir_frame_begin(struct weir_frame_writer *writer, const uint8_t source[WEIR_SOURCE_ID_BYTES],
                      uint64_t policy_version, int64_t base_time_ms, uint64_t base_position)
{
	dictionary_begin(&writer->key_table);
	dictionary_begin(&writer->set_table);
	writer->keys.length = writer->sets.length = writer->events.length = writer->fields.length = 0;
	writer->run_count = 0;
	writer->key_count = writer->set_count = writer->member_count = 0;
	writer->newest_set = 0;
	writer->event_count = writer->pair_count = 0;
	writer->base_time_ms = writer->time_ms = base_time_ms;
	writer->base_position = writer->position = base_position;
	writer->policy_version = policy_version;
	memcpy(writer->source, source, WEIR_SOURCE_ID_BYTES);
}

enum weir_status weir_frame_add(struct weir_frame_writer *writer, struct weir_span key, uint64_t key_hash,
                                int64_t time_ms, uint64_t position, int64_t cost, const struct weir_frame_zone *zones,
                                uint32_t zone_count)
{
	assert(position >= writer->position && cost >= 0 && cost <= WEIR_COST_MAX);
	assert(zone_count >= 1 && zone_count <= WEIR_ZONE_SET_MAX);
	size_t most = EVENT_MOST_BYTES + (size_t)key.length + (size_t)zone_count * SET_MEMBER_MOST_BYTES;
	if (writer->event_count == WEIR_FRAME_EVENTS_MAX || writer->pair_count + zone_count > WEIR_FRAME_PAIRS_MAX ||
	    weir_frame_size(writer) + most > WEIR_FRAME_MAX_BYTES)
		return WEIR_FULL;
	int64_t key_index = find_key(writer, key, key_hash);
	if (key_index < 0)
		key_index = add_key(writer, key, key_hash);
	if (writer->set_count == 0 || !same_zones(writer, writer->newest_set, zones, zone_count))
		writer->newest_set = find_or_add_set(writer, zones, zone_count);
	uint8_t *at = reserve(&writer->events, 5 * WEIR_VARINT_MAX_BYTES);
	at = weir_varint_put(at, (uint64_t)key_index);
	at = weir_varint_put(at, weir_zigzag(time_ms - writer->time_ms));
	at = weir_varint_put(at, position - writer->position);
	at = weir_varint_put(at, (uint64_t)writer->newest_set << 1 | (cost != 1));
	if (cost != 1)
		at = weir_varint_put(at, (uint64_t)cost);
	writer->events.length = (size_t)(at - writer->events.at);
	writer->time_ms = time_ms;
	writer->position = position;
	writer->event_count++;
	writer->pair_count += zone_count;
	return WEIR_OK;
}

void weir_frame_prefetch(const struct weir_frame_writer *writer, uint64_t key_hash)
{
	weir_prefetch(&writer->key_table.slots[(uint32_t)key_hash & writer->key_table.mask]);
}

enum weir_status weir_frame_add_fields(struct weir_frame_writer *writer, struct weir_span fields)
{
	assert(writer->event_count > 0 && fields.length > 0 && fields.length <= WEIR_FIELDS_MAX_BYTES);
	uint32_t event = writer->event_count - 1;
	struct run *newest = writer->run_count > 0 ? &writer->runs[writer->run_count - 1] : NULL;
	if (newest != NULL && newest->first + newest->count == event && newest->length == fields.length &&
	    memcmp(writer->fields.at + newest->offset, fields.at, fields.length) == 0) {
		newest->count++;
		return WEIR_OK;
	}
	if (weir_frame_size(writer) + RUN_MOST_BYTES + fields.length > WEIR_FRAME_MAX_BYTES)
		return WEIR_FULL;
	if (writer->run_count == writer->run_capacity) {
		writer->run_capacity = 2 * writer->run_capacity + 16;
		writer->runs = weir_realloc(writer->runs, writer->run_capacity, sizeof *writer->runs);
	}
	memcpy(reserve(&writer->fields, fields.length), fields.at, fields.length);
	assert(writer->runs != NULL);
	writer->runs[writer->run_count++] =
		(struct run){.first = event, .count = 1, .offset = (uint32_t)writer->fields.length, .length = fields.length};
	writer->fields.length += fields.length;
	return WEIR_OK;
}

uint32_t weir_frame_events(const struct weir_frame_writer *writer)
{
	return writer->event_count;
}

size_t weir_frame_size(const struct weir_frame_writer *writer)
{
	return WEIR_FRAME_EVENTS_HEADER_BYTES + 3 * 3 + writer->sets.length + writer->keys.length + writer->events.length +
	       writer->fields.length + (size_t)writer->run_count * RUN_MOST_BYTES;
}

bool weir_frame_due(const struct weir_frame_writer *writer)
{
	return weir_frame_size(writer) >= WEIR_FRAME_TARGET_BYTES ||
	       writer->event_count > WEIR_FRAME_EVENTS_MAX - WEIR_ZONES_MAX ||
	       writer->pair_count > WEIR_FRAME_PAIRS_MAX - WEIR_ZONES_MAX;
}

/* One of the lists, with its count in front. */
static uint8_t *put_list(uint8_t *at, uint32_t count, const struct bytes *list)
{
	at = weir_varint_put(at, count);
	if (list->length > 0)
		memcpy(at, list->at, list->length);
	return at + list->length;
}

static uint8_t *put_runs(uint8_t *at, const struct weir_frame_writer *writer)
{
	uint32_t end = 0; /* of the run before */
	at = weir_varint_put(at, writer->run_count);
	for (uint32_t i = 0; i < writer->run_count; i++) {
		const struct run *run = &writer->runs[i];
		at = weir_varint_put(at, run->first - end);
		at = weir_varint_put(at, run->count);
		at = weir_varint_put(at, run->length);
		memcpy(at, writer->fields.at + run->offset, run->length);
		at += run->length;
		end = run->first + run->count;
	}
	return at;
}

/* Header and lists in writer->frame, which has room for `more` bytes behind them. @return the place after the last byte */
static uint8_t *put_lists(struct weir_frame_writer *writer, int64_t sending_time_ms, bool with_runs, size_t more)
{
	writer->frame.length = 0;
	uint8_t *frame = reserve(&writer->frame, weir_frame_size(writer) + more);
	weir_frame_put64(frame + WEIR_FRAME_AT_SENDING_TIME, (uint64_t)sending_time_ms);
	memcpy(frame + WEIR_FRAME_AT_SOURCE, writer->source, WEIR_SOURCE_ID_BYTES);
	weir_frame_put64(frame + WEIR_FRAME_AT_POLICY_VERSION, writer->policy_version);
	weir_frame_put64(frame + WEIR_FRAME_AT_BASE_TIME, (uint64_t)writer->base_time_ms);
	weir_frame_put64(frame + WEIR_FRAME_AT_BASE_POSITION, writer->base_position);
	uint8_t *at = frame + WEIR_FRAME_EVENTS_HEADER_BYTES;
	at = put_list(at, writer->set_count, &writer->sets);
	at = put_list(at, writer->key_count, &writer->keys);
	at = put_list(at, writer->event_count, &writer->events);
	return with_runs ? put_runs(at, writer) : at;
}

static struct weir_span finish(struct weir_frame_writer *writer, const uint8_t *end, uint8_t version,
                               enum weir_frame_kind kind)
{
	size_t length = (size_t)(end - writer->frame.at);
	weir_frame_seal(writer->frame.at, length, version, kind);
	return (struct weir_span){.at = (const char *)writer->frame.at, .length = (uint32_t)length};
}

struct weir_span weir_frame_finish(struct weir_frame_writer *writer, int64_t sending_time_ms)
{
	bool with_runs = writer->run_count > 0;
	const uint8_t *end = put_lists(writer, sending_time_ms, with_runs, 0);
	return finish(writer, end, with_runs ? WEIR_FRAME_EXTENDED : WEIR_FRAME_PLAIN, WEIR_FRAME_EVENTS);
}

/* Of 4 bits for each pair. */
static size_t verdict_bytes(uint32_t pair_count)
{
	return ((size_t)pair_count + 1) / 2;
}

void weir_reservation_id(const uint8_t source[WEIR_SOURCE_ID_BYTES], uint64_t position,
                         uint8_t id[WEIR_RESERVATION_ID_BYTES])
{
	uint8_t place[WEIR_SOURCE_ID_BYTES + sizeof position];
	memcpy(place, source, WEIR_SOURCE_ID_BYTES);
	weir_frame_put64(place + WEIR_SOURCE_ID_BYTES, position);
	weir_hash128(place, sizeof place, id);
}

/* Of one entry, at most: a distance, and an id or a time. */
enum { RESERVATION_BYTES = 5 + WEIR_RESERVATION_ID_BYTES, RESERVATIONS_LENGTH_BYTES = 4 };

static uint8_t *put_reservations(uint8_t *at, const struct weir_frame_reservation *reservations, uint32_t count)
{
	const uint8_t *begin = at;
	uint32_t end = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_frame_reservation *one = &reservations[i];
		at = weir_varint_put(at, one->event - end);
		end = one->event + 1;
		if (one->ttl_ms > 0) {
			at = weir_varint_put(at, (uint64_t)one->ttl_ms);
			continue;
		}
		memcpy(at, one->id, sizeof one->id);
		at += sizeof one->id;
	}
	weir_frame_put32(at, (uint32_t)(at - begin));
	return at + RESERVATIONS_LENGTH_BYTES;
}

struct weir_span weir_frame_finish_checks(struct weir_frame_writer *writer, int64_t sending_time_ms, uint64_t epoch,
                                          const uint8_t *answers, const struct weir_frame_reservation *reservations,
                                          uint32_t reservation_count)
{
	size_t bytes = verdict_bytes(writer->pair_count);
	size_t most = (size_t)reservation_count * RESERVATION_BYTES + RESERVATIONS_LENGTH_BYTES;
	uint8_t *at = put_lists(writer, sending_time_ms, true, most + 8 + bytes);
	at = put_reservations(at, reservations, reservation_count);
	weir_frame_put64(at, epoch);
	if (bytes > 0)
		memcpy(at + 8, answers, bytes);
	return finish(writer, at + 8 + bytes, WEIR_FRAME_EXTENDED, WEIR_FRAME_CHECKS);
}

char *weir_frame_control(enum weir_frame_kind kind, int64_t sending_time_ms, uint64_t policy_version,
                         struct weir_span body, size_t *length)
{
	assert(kind == WEIR_FRAME_POLICY || kind == WEIR_FRAME_COMMAND);
	uint8_t *frame = weir_alloc(WEIR_FRAME_HEADER_BYTES + (size_t)body.length, 1);
	weir_frame_put64(frame + WEIR_FRAME_AT_SENDING_TIME, (uint64_t)sending_time_ms);
	weir_frame_put64(frame + WEIR_FRAME_AT_POLICY_VERSION, policy_version);
	if (body.length > 0)
		memcpy(frame + WEIR_FRAME_HEADER_BYTES, body.at, body.length);
	*length = WEIR_FRAME_HEADER_BYTES + (size_t)body.length;
	weir_frame_seal(frame, *length, WEIR_FRAME_PLAIN, kind);
	return (char *)frame;
}

void weir_frame_extend(char *message, size_t length)
{
	uint8_t *frame = (uint8_t *)message;
	weir_frame_seal(frame, length, WEIR_FRAME_EXTENDED, (enum weir_frame_kind)frame[WEIR_FRAME_AT_KIND]);
}

size_t weir_frame_judged(struct weir_span message, uint64_t offset, const uint8_t *verdicts, uint32_t pair_count,
                         char *out)
{
	uint8_t *frame = (uint8_t *)out;
	size_t bytes = verdict_bytes(pair_count), length = message.length;
	if ((uint8_t)message.at[WEIR_FRAME_AT_KIND] == WEIR_FRAME_CHECKS) {
		length -= RESERVATIONS_LENGTH_BYTES + 8 + bytes;                  /* epoch and answers, */
		length -= weir_frame_get32((const uint8_t *)message.at + length); /* and the reservations before them */
	}
	memcpy(frame, message.at, length);
	weir_frame_put64(frame + length, offset);
	length += 8;
	if (bytes > 0)
		memcpy(frame + length, verdicts, bytes);
	length += bytes;
	weir_frame_seal(frame, length, frame[WEIR_FRAME_AT_VERSION], WEIR_FRAME_JUDGED);
	return length;
}
