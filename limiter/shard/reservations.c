/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table by id, which is a hash already. What has ended stays until there is need of its place. */
#include "limiter/shard/reservations.h"

#include "common/base/alloc.h"
#include "common/bytes/bits.h"

#include <stdlib.h>
#include <string.h>

enum { SWEEP_MS = 100, ROOM_LEAST = 64, NUMBER = 8, RECORD_BYTES = WEIR_RESERVATION_ID_BYTES + 8 * NUMBER };

void reservations_deinit(struct reservations *reservations)
{
	free(reservations->held);
	*reservations = (struct reservations){0};
}

static uint16_t *cell_of(struct reservations *reservations, uint64_t low)
{
	return &reservations->cells[low % RESERVATION_CELLS];
}

static uint32_t home_of(const struct reservations *reservations, const uint8_t *id)
{
	return (uint32_t)weir_bytes_get(id, NUMBER) & (reservations->room - 1);
}

/* Where one of the id is, or would be. There is a free place. */
static uint32_t place_of(const struct reservations *reservations, const uint8_t *id)
{
	uint32_t at = home_of(reservations, id);
	while (reservations->held[at].ends_ms != 0 && memcmp(reservations->held[at].id, id, WEIR_RESERVATION_ID_BYTES) != 0)
		at = (at + 1) & (reservations->room - 1);
	return at;
}

struct reservation *reservations_find(const struct reservations *reservations, const uint8_t *id, int64_t t)
{
	if (reservations->count == 0)
		return NULL;
	struct reservation *found = &reservations->held[place_of(reservations, id)];
	return found->ends_ms > t ? found : NULL;
}

static void put(struct reservations *reservations, const struct reservation *one)
{
	struct reservation *place = &reservations->held[place_of(reservations, one->id)];
	if (place->ends_ms == 0)
		reservations->count++;
	else /* two events of one position: the later one counts */
		(*cell_of(reservations, place->low))--;
	(*cell_of(reservations, one->low))++;
	if (reservations->count == 1 || one->ends_ms < reservations->first_end_ms)
		reservations->first_end_ms = one->ends_ms;
	*place = *one;
}

/* Lays the table out anew, without what has ended by t. */
static void rebuild(struct reservations *reservations, uint32_t room, int64_t t)
{
	struct reservations before = *reservations;
	*reservations =
		(struct reservations){.held = weir_alloc(room, sizeof *before.held), .room = room, .swept_ms = before.swept_ms};
	for (uint32_t i = 0; i < before.room; i++)
		if (before.held[i].ends_ms > t)
			put(reservations, &before.held[i]);
	free(before.held);
}

/* Makes room for one more. @return false: there are too many */
static bool make_room(struct reservations *reservations, int64_t t)
{
	if (reservations->count >= RESERVATIONS_MAX && t >= reservations->first_end_ms)
		rebuild(reservations, reservations->room, t);
	if (reservations->count >= RESERVATIONS_MAX)
		return false;
	if (2 * (reservations->count + 1) > reservations->room)
		rebuild(reservations, reservations->room > 0 ? 2 * reservations->room : ROOM_LEAST, 0);
	return true;
}

bool reservations_add(struct reservations *reservations, const struct reservation *one)
{
	if (!make_room(reservations, one->t))
		return false;
	put(reservations, one);
	return true;
}

static bool is_full(struct reservations *reservations, uint64_t low, uint32_t under_way)
{
	return reservations->count + under_way >= RESERVATIONS_MAX ||
	       *cell_of(reservations, low) + under_way >= RESERVATIONS_OF_A_KEY_MAX;
}

bool reservations_have_room(struct reservations *reservations, uint64_t low, int64_t t, uint32_t under_way)
{
	bool full = is_full(reservations, low, under_way);
	if (full && t >= reservations->first_end_ms && t >= reservations->swept_ms + SWEEP_MS) {
		reservations->swept_ms = t; /* whoever is refused again and again shall not cost a sweep each time */
		rebuild(reservations, reservations->room, t);
		full = is_full(reservations, low, under_way);
	}
	return !full;
}

/* Those behind it move up where a search would not find them any more. */
void reservations_remove(struct reservations *reservations, const uint8_t *id)
{
	if (reservations->count == 0)
		return;
	uint32_t mask = reservations->room - 1, hole = place_of(reservations, id);
	if (reservations->held[hole].ends_ms == 0)
		return;
	(*cell_of(reservations, reservations->held[hole].low))--;
	reservations->count--;
	for (uint32_t next = (hole + 1) & mask; reservations->held[next].ends_ms != 0; next = (next + 1) & mask) {
		uint32_t home = home_of(reservations, reservations->held[next].id);
		if (((next - home) & mask) < ((next - hole) & mask))
			continue;
		reservations->held[hole] = reservations->held[next];
		hole = next;
	}
	reservations->held[hole] = (struct reservation){.ends_ms = 0};
}

void reservations_void_bucket(struct reservations *reservations, uint64_t low, uint32_t high)
{
	for (uint32_t i = 0; reservations->count > 0 && i < reservations->room; i++)
		if (reservations->held[i].low == low && reservations->held[i].high == high)
			reservations->held[i].counts = false;
}

void reservations_void_zone(struct reservations *reservations, uint32_t zone_id)
{
	for (uint32_t i = 0; reservations->count > 0 && i < reservations->room; i++)
		if (reservations->held[i].zone_id == zone_id)
			reservations->held[i].counts = false;
}

void reservations_copy(struct reservations *to, const struct reservations *from)
{
	reservations_deinit(to);
	*to = *from;
	to->held = weir_alloc(from->room, sizeof *to->held);
	if (from->room > 0)
		memcpy(to->held, from->held, from->room * sizeof *to->held);
}

size_t reservations_bytes(const struct reservations *reservations)
{
	return reservations->room * sizeof *reservations->held;
}

/* ---- as bytes ---- */

static int by_id(const void *left, const void *right)
{
	const struct reservation *const *a = left, *const *b = right;
	return memcmp((*a)->id, (*b)->id, WEIR_RESERVATION_ID_BYTES);
}

static void put_number(struct weir_text *bytes, uint64_t number)
{
	uint8_t eight[NUMBER];
	weir_bytes_put(eight, NUMBER, number);
	weir_text_append(bytes, (const char *)eight, NUMBER);
}

void reservations_export(const struct reservations *reservations, struct weir_text *bytes)
{
	const struct reservation **sorted = weir_alloc(reservations->count + 1u, sizeof *sorted);
	uint32_t count = 0;
	for (uint32_t i = 0; i < reservations->room; i++)
		if (reservations->held[i].ends_ms != 0)
			sorted[count++] = &reservations->held[i];
	qsort(sorted, count, sizeof *sorted, by_id);
	put_number(bytes, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct reservation *one = sorted[i];
		const uint64_t numbers[] = {one->low,
		                            (uint64_t)one->high << (64 - WEIR_FINGERPRINT_HIGH_BITS),
		                            (uint64_t)one->t,
		                            (uint64_t)one->cost,
		                            (uint64_t)one->ends_ms,
		                            one->zone_id,
		                            one->thousandths,
		                            one->counts};
		weir_text_append(bytes, (const char *)one->id, sizeof one->id);
		for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++)
			put_number(bytes, numbers[j]);
	}
	free(sorted);
}

static uint64_t number_at(const struct weir_span *bytes, size_t place)
{
	return weir_bytes_get((const uint8_t *)bytes->at + place, NUMBER);
}

/* A time or a cost that fits. */
static bool is_good(const struct reservation *one)
{
	return one->t >= 0 && one->t < one->ends_ms && one->ends_ms <= (int64_t)WEIR_TIME_MASK && one->cost >= 0 &&
	       one->cost <= INT64_C(1) << 40;
}

bool reservations_import(struct reservations *reservations, struct weir_span *bytes)
{
	reservations_deinit(reservations);
	if (bytes->length < NUMBER)
		return false;
	uint64_t count = number_at(bytes, 0);
	if (count > RESERVATIONS_MAX || (bytes->length - NUMBER) / RECORD_BYTES < count)
		return false;
	bytes->at += NUMBER;
	bytes->length -= NUMBER;
	for (uint64_t i = 0; i < count; i++) {
		struct reservation one = {.counts = number_at(bytes, WEIR_RESERVATION_ID_BYTES + 7 * NUMBER) == 1};
		bool ascends = i == 0 || memcmp(bytes->at - RECORD_BYTES, bytes->at, sizeof one.id) < 0;
		memcpy(one.id, bytes->at, sizeof one.id);
		one.low = number_at(bytes, WEIR_RESERVATION_ID_BYTES);
		one.high = weir_fingerprint_high(number_at(bytes, WEIR_RESERVATION_ID_BYTES + NUMBER));
		one.t = (int64_t)number_at(bytes, WEIR_RESERVATION_ID_BYTES + 2 * NUMBER);
		one.cost = (int64_t)number_at(bytes, WEIR_RESERVATION_ID_BYTES + 3 * NUMBER);
		one.ends_ms = (int64_t)number_at(bytes, WEIR_RESERVATION_ID_BYTES + 4 * NUMBER);
		one.zone_id = (uint32_t)number_at(bytes, WEIR_RESERVATION_ID_BYTES + 5 * NUMBER);
		one.thousandths = (uint32_t)number_at(bytes, WEIR_RESERVATION_ID_BYTES + 6 * NUMBER);
		bytes->at += RECORD_BYTES;
		bytes->length -= RECORD_BYTES;
		if (!ascends || !is_good(&one) || !make_room(reservations, 0))
			return false;
		put(reservations, &one);
	}
	return true;
}
