/* SPDX-License-Identifier: Apache-2.0 */
/* Seats of partitions are atomics, which every ask reads; addresses stand behind a lock, as they are read seldom. */
#include "limiter/owners/owners.h"

#include "common/base/alloc.h"
#include "common/bytes/listen_address.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct seat {
	_Atomic uint32_t place;
	_Atomic uint64_t taken;   /* the epoch under which this process has the partition; 0: it does not */
	_Atomic uint64_t lost;    /* an epoch of `taken` that is not the store's any more */
	_Atomic uint64_t highest; /* under which it ever had it */
	uint64_t first;           /* epoch that the store was read to have; the feed's, like what follows */
	bool read;                /* in the reading that goes on */
};

struct owners {
	uint32_t partitions;
	struct owners_place self;
	_Atomic bool doubt, shared;
	bool twin;            /* the reading that goes on has found this process's address at another; the feed's, */
	bool moved;           /* a partition was taken since the first reading: the consumer group works; */
	bool settled;         /* that is long ago, so whoever has a partition has taken it since */
	int64_t first_ms;     /* monotonic, of the first reading; 0: there was none */
	pthread_mutex_t lock; /* for: */
	struct owners_place places[OWNERS_PLACES_MAX];
	struct seat seats[];
};

struct owners *owners_new(uint32_t partitions, const char *host, uint16_t port)
{
	struct owners *owners = weir_alloc(1, sizeof *owners + partitions * sizeof owners->seats[0]);
	owners->partitions = partitions;
	snprintf(owners->self.host, sizeof owners->self.host, "%s", host);
	owners->self.port = port;
	owners->self.version = 1;
	pthread_mutex_init(&owners->lock, NULL);
	for (uint32_t i = 0; i < partitions; i++)
		atomic_init(&owners->seats[i].place, OWNERS_NONE);
	return owners;
}

void owners_free(struct owners *owners)
{
	if (owners == NULL)
		return;
	pthread_mutex_destroy(&owners->lock);
	free(owners);
}

uint32_t owners_partitions(const struct owners *owners)
{
	return owners->partitions;
}

const struct owners_place *owners_self(const struct owners *owners)
{
	return &owners->self;
}

/* ---- what this process has ---- */

void owners_took(struct owners *owners, uint32_t partition, uint64_t epoch)
{
	struct seat *seat = &owners->seats[partition];
	atomic_store(&seat->highest, epoch);
	atomic_store(&seat->taken, epoch);
	atomic_store(&seat->place, OWNERS_NONE);
}

void owners_left(struct owners *owners, uint32_t partition)
{
	atomic_store(&owners->seats[partition].taken, 0);
}

uint64_t owners_epoch(const struct owners *owners, uint32_t partition)
{
	return atomic_load(&owners->seats[partition].taken);
}

bool owners_lost(const struct owners *owners, uint32_t partition)
{
	uint64_t lost = atomic_load_explicit(&owners->seats[partition].lost, memory_order_relaxed);
	return lost != 0 && lost == atomic_load(&owners->seats[partition].taken);
}

/* ---- what others have ---- */

uint32_t owners_of(const struct owners *owners, uint32_t partition)
{
	return atomic_load_explicit(&owners->seats[partition].place, memory_order_relaxed);
}

bool owners_place(struct owners *owners, uint32_t number, struct owners_place *place)
{
	pthread_mutex_lock(&owners->lock);
	*place = owners->places[number];
	pthread_mutex_unlock(&owners->lock);
	return place->version > 0;
}

bool owners_share_address(const struct owners *owners)
{
	return atomic_load_explicit(&owners->shared, memory_order_relaxed);
}

void owners_doubt(struct owners *owners)
{
	atomic_store_explicit(&owners->doubt, true, memory_order_relaxed);
}

bool owners_take_doubt(struct owners *owners)
{
	return atomic_exchange(&owners->doubt, false);
}

static bool is_used(const struct owners *owners, uint32_t number)
{
	for (uint32_t i = 0; i < owners->partitions; i++)
		if (atomic_load(&owners->seats[i].place) == number)
			return true;
	return false;
}

/* The number of an address, which is given if it has none. @return OWNERS_NONE: all numbers are in use */
static uint32_t number_of(struct owners *owners, const char *host, uint16_t port)
{
	uint32_t unused = OWNERS_NONE, found = OWNERS_NONE;
	pthread_mutex_lock(&owners->lock);
	for (uint32_t i = 0; i < OWNERS_PLACES_MAX && found == OWNERS_NONE; i++) {
		struct owners_place *place = &owners->places[i];
		if (place->version > 0 && place->port == port && strcmp(place->host, host) == 0)
			found = i;
		else if (unused == OWNERS_NONE && (place->version == 0 || !is_used(owners, i)))
			unused = i;
	}
	if (found == OWNERS_NONE && unused != OWNERS_NONE) {
		struct owners_place *place = &owners->places[found = unused];
		snprintf(place->host, sizeof place->host, "%s", host);
		place->port = port;
		place->version++;
	}
	pthread_mutex_unlock(&owners->lock);
	return found;
}

/* @return false: it is no row */
static bool read_row(struct weir_span row, uint64_t *epoch, char **host, uint16_t *port)
{
	char text[OWNERS_ROW_BYTES];
	char *end = text;
	if (row.length >= sizeof text)
		return false;
	memcpy(text, row.at, row.length);
	text[row.length] = '\0';
	if (text[0] >= '0' && text[0] <= '9')
		*epoch = strtoull(text, &end, 10);
	if (end == text || *end != ' ' || !weir_listen_address(end + 1, host, port))
		return false;
	if (**host != '\0' && strcmp(*host, "*") != 0 && strlen(*host) < OWNERS_HOST_BYTES)
		return true;
	free(*host);
	return false;
}

void owners_read_begin(struct owners *owners, int64_t now_ms)
{
	if (owners->first_ms == 0)
		owners->first_ms = now_ms;
	owners->settled = owners->moved && now_ms - owners->first_ms >= OWNERS_SETTLED_MS;
	for (uint32_t i = 0; i < owners->partitions; i++)
		owners->seats[i].read = false;
	owners->twin = false;
}

void owners_learn(struct owners *owners, uint32_t partition, uint64_t stored_epoch, struct weir_span row)
{
	uint64_t epoch;
	uint16_t port;
	char *host = NULL;
	if (partition >= owners->partitions || !read_row(row, &epoch, &host, &port))
		return;
	struct seat *seat = &owners->seats[partition];
	uint64_t taken = atomic_load(&seat->taken);
	if (taken != 0 && stored_epoch > taken)
		atomic_store(&seat->lost, taken);
	bool self = port == owners->self.port && strcmp(host, owners->self.host) == 0;
	bool others = epoch == stored_epoch && epoch > atomic_load(&seat->highest);
	if (seat->first == 0)
		seat->first = stored_epoch;
	owners->moved |= stored_epoch > seat->first || taken != 0;
	owners->twin |= self && others && (epoch > seat->first || owners->settled);
	if (!self && others) {
		atomic_store(&seat->place, number_of(owners, host, port));
		seat->read = true;
	}
	free(host);
}

void owners_read_end(struct owners *owners)
{
	for (uint32_t i = 0; i < owners->partitions; i++)
		if (!owners->seats[i].read)
			atomic_store(&owners->seats[i].place, OWNERS_NONE);
	atomic_store(&owners->shared, owners->twin);
}

struct weir_span owners_row(const struct owners *owners, uint64_t epoch, char *row)
{
	bool v6 = strchr(owners->self.host, ':') != NULL;
	int length = snprintf(row, OWNERS_ROW_BYTES, "%" PRIu64 " %s%s%s:%u", epoch, v6 ? "[" : "", owners->self.host,
	                      v6 ? "]" : "", owners->self.port);
	return (struct weir_span){.at = row, .length = (uint32_t)length};
}
