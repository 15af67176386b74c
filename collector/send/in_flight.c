/* SPDX-License-Identifier: Apache-2.0 */
/* Two rings that grow by doubling: sending times by frame number, and marks in order. */
#include "collector/send/in_flight.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>

enum { ACKNOWLEDGED = -1 };

struct in_flight {
	int64_t *sent_ms;     /* ring by number: the sending time, or ACKNOWLEDGED */
	uint64_t first, next; /* numbers [first, next) are in the ring; if any are, `first` is not acknowledged */
	uint64_t capacity;    /* a power of two */
	uint64_t waiting;
	struct in_flight_mark *marks;
	uint64_t mark_first, mark_next, mark_capacity;
};

struct in_flight *in_flight_new(void)
{
	struct in_flight *flight = weir_alloc(1, sizeof *flight);
	flight->capacity = flight->mark_capacity = 1024;
	flight->sent_ms = weir_alloc(flight->capacity, sizeof *flight->sent_ms);
	flight->marks = weir_alloc(flight->mark_capacity, sizeof *flight->marks);
	return flight;
}

void in_flight_free(struct in_flight *flight)
{
	if (flight == NULL)
		return;
	free(flight->sent_ms);
	free(flight->marks);
	free(flight);
}

uint64_t in_flight_send(struct in_flight *flight, int64_t now_ms)
{
	if (flight->next - flight->first == flight->capacity) {
		int64_t *wider = weir_alloc(flight->capacity * 2, sizeof *wider);
		for (uint64_t i = flight->first; i < flight->next; i++)
			wider[i & (flight->capacity * 2 - 1)] = flight->sent_ms[i & (flight->capacity - 1)];
		free(flight->sent_ms);
		flight->sent_ms = wider;
		flight->capacity *= 2;
	}
	flight->sent_ms[flight->next & (flight->capacity - 1)] = now_ms;
	flight->waiting++;
	return flight->next++;
}

int64_t in_flight_acknowledge(struct in_flight *flight, uint64_t number, int64_t now_ms)
{
	assert(number >= flight->first && number < flight->next);
	int64_t *sent_ms = &flight->sent_ms[number & (flight->capacity - 1)];
	int64_t took_ms = now_ms - *sent_ms;
	*sent_ms = ACKNOWLEDGED;
	flight->waiting--;
	while (flight->first < flight->next && flight->sent_ms[flight->first & (flight->capacity - 1)] == ACKNOWLEDGED)
		flight->first++;
	return took_ms;
}

uint64_t in_flight_count(const struct in_flight *flight)
{
	return flight->waiting;
}

int64_t in_flight_oldest_ms(const struct in_flight *flight, int64_t now_ms)
{
	return flight->first < flight->next ? flight->sent_ms[flight->first & (flight->capacity - 1)] : now_ms;
}

/* The stream's mark, if one waits for the same frames, to be updated in place: so marks stay few. */
static struct in_flight_mark *same_mark(struct in_flight *flight, const void *stream)
{
	for (uint64_t i = flight->mark_next; i-- > flight->mark_first;) {
		struct in_flight_mark *mark = &flight->marks[i & (flight->mark_capacity - 1)];
		if (mark->below != flight->next)
			return NULL;
		if (mark->stream == stream)
			return mark;
	}
	return NULL;
}

void in_flight_mark(struct in_flight *flight, void *stream, uint64_t position, uint64_t lines)
{
	struct in_flight_mark *same = same_mark(flight, stream);
	if (same != NULL) {
		same->position = position;
		same->lines = lines;
		return;
	}
	if (flight->mark_next - flight->mark_first == flight->mark_capacity) {
		struct in_flight_mark *wider = weir_alloc(flight->mark_capacity * 2, sizeof *wider);
		for (uint64_t i = flight->mark_first; i < flight->mark_next; i++)
			wider[i & (flight->mark_capacity * 2 - 1)] = flight->marks[i & (flight->mark_capacity - 1)];
		free(flight->marks);
		flight->marks = wider;
		flight->mark_capacity *= 2;
	}
	flight->marks[flight->mark_next++ & (flight->mark_capacity - 1)] =
		(struct in_flight_mark){.stream = stream, .position = position, .lines = lines, .below = flight->next};
}

bool in_flight_safe(struct in_flight *flight, struct in_flight_mark *mark)
{
	if (flight->mark_first == flight->mark_next)
		return false;
	const struct in_flight_mark *oldest = &flight->marks[flight->mark_first & (flight->mark_capacity - 1)];
	if (oldest->below > flight->first)
		return false;
	*mark = *oldest;
	flight->mark_first++;
	return true;
}
