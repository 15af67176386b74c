/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a checkpoint stores of a shard besides its buckets, as bytes:
 * little-endian u64s; a source's id is 16 bytes.
 *
 *   version of this form (4 where the overrides' clock is another, 3 where reservations are open, 2 where a network has an
 *   override, else 1), clock, events judged, policy version
 *   policy switches: count, then for each: version, clock
 *   sources: count, then for each, by id: id, position, clock at its last frame with events
 *   versions 3 and 4: open reservations (reservations.c)
 *   version 4: the overrides' clock
 *   the operators' overrides (overrides_blob.c)
 */
#include "limiter/shard/internal.h"

#include "common/base/alloc.h"

#include <stdlib.h>

enum { EXTRA_PLAIN = 1, EXTRA_WITH_NETWORKS = 2, EXTRA_WITH_RESERVATIONS = 3, EXTRA_WITH_CLOCK = 4, NUMBER = 8 };

static uint8_t *put(uint8_t *at, uint64_t number)
{
	weir_bytes_put(at, NUMBER, number);
	return at + NUMBER;
}

/* The overrides' clock is ahead of the shard's only while a frame waits, which advances it again when it is read again. */
static uint64_t version_of(const struct shard *shard)
{
	if (overrides_any(&shard->overrides) && shard->overrides.clock_ms < shard->clock_ms)
		return EXTRA_WITH_CLOCK;
	if (shard->reserved.count > 0)
		return EXTRA_WITH_RESERVATIONS;
	return overrides_have_networks(&shard->overrides) ? EXTRA_WITH_NETWORKS : EXTRA_PLAIN;
}

char *shard_export_extra(const struct shard *shard, size_t *length)
{
	struct weir_text overrides = {0}; /* and what is before them */
	uint64_t version = version_of(shard);
	uint8_t clock[NUMBER];
	if (version >= EXTRA_WITH_RESERVATIONS)
		reservations_export(&shard->reserved, &overrides);
	if (version == EXTRA_WITH_CLOCK) {
		(void)put(clock, (uint64_t)shard->overrides.clock_ms);
		weir_text_append(&overrides, clock, sizeof clock);
	}
	overrides_export(&shard->overrides, &overrides);
	*length = (6 + 2 * (size_t)shard->switch_count) * NUMBER +
	          (size_t)shard->source_count * (WEIR_SOURCE_ID_BYTES + 2 * NUMBER) + overrides.length;
	char *extra = weir_alloc(*length, 1);
	uint8_t *at = put((uint8_t *)extra, version);
	at = put(at, (uint64_t)shard->clock_ms);
	at = put(at, shard->events);
	at = put(at, shard->policy_version);
	at = put(at, shard->switch_count);
	for (uint32_t i = 0; i < shard->switch_count; i++)
		at = put(put(at, shard->switches[i].version), (uint64_t)shard->switches[i].clock_ms);
	at = put(at, shard->source_count);
	for (uint32_t i = 0; i < shard->source_count; i++) {
		const struct source_position *source = &shard->sources[i];
		memcpy(at, source->source, WEIR_SOURCE_ID_BYTES);
		at = put(put(at + WEIR_SOURCE_ID_BYTES, source->position), (uint64_t)source->used_ms);
	}
	memcpy(at, overrides.at, overrides.length);
	weir_text_deinit(&overrides);
	return extra;
}

/* Reads a number and moves past it. */
static bool get(struct weir_span *bytes, uint64_t *number)
{
	if (bytes->length < NUMBER)
		return false;
	*number = weir_bytes_get((const uint8_t *)bytes->at, NUMBER);
	bytes->at += NUMBER;
	bytes->length -= NUMBER;
	return true;
}

static bool get_clock(struct weir_span *bytes, int64_t *clock_ms)
{
	uint64_t number;
	if (!get(bytes, &number) || number > WEIR_TIME_MASK)
		return false;
	*clock_ms = (int64_t)number;
	return true;
}

static bool import_switches(struct shard *shard, struct weir_span *bytes)
{
	uint64_t count, version = 0;
	if (!get(bytes, &count) || count > bytes->length / (2 * NUMBER))
		return false;
	shard->switches = weir_realloc(shard->switches, count, sizeof *shard->switches);
	for (shard->switch_count = 0; shard->switch_count < count; shard->switch_count++) {
		struct policy_activation *next = &shard->switches[shard->switch_count];
		if (!get(bytes, &next->version) || !get_clock(bytes, &next->clock_ms) || next->version <= version)
			return false;
		version = next->version;
	}
	return version <= shard->policy_version;
}

static bool import_sources(struct shard *shard, struct weir_span *bytes)
{
	uint64_t count;
	if (!get(bytes, &count) || count > bytes->length / (WEIR_SOURCE_ID_BYTES + 2 * NUMBER))
		return false;
	shard->sources = weir_realloc(shard->sources, count, sizeof *shard->sources);
	for (shard->source_count = 0; shard->source_count < count; shard->source_count++) {
		struct source_position *next = &shard->sources[shard->source_count];
		*next = (struct source_position){0};
		memcpy(next->source, bytes->at, WEIR_SOURCE_ID_BYTES);
		bytes->at += WEIR_SOURCE_ID_BYTES;
		bytes->length -= WEIR_SOURCE_ID_BYTES;
		bool is_sorted = shard->source_count == 0 || memcmp(next[-1].source, next->source, WEIR_SOURCE_ID_BYTES) < 0;
		if (!is_sorted || !get(bytes, &next->position) || !get_clock(bytes, &next->used_ms))
			return false;
	}
	return true;
}

static bool import_overrides(struct shard *shard, uint64_t version, struct weir_span *bytes)
{
	int64_t clock_ms = shard->clock_ms;
	if (version >= EXTRA_WITH_RESERVATIONS && !reservations_import(&shard->reserved, bytes))
		return false;
	if (version == EXTRA_WITH_CLOCK && (!get_clock(bytes, &clock_ms) || clock_ms >= shard->clock_ms))
		return false;
	if (!overrides_import(&shard->overrides, *bytes))
		return false;
	shard->overrides.clock_ms = clock_ms;
	return true;
}

enum weir_status shard_import_extra(struct shard *shard, struct weir_span extra, struct weir_error *error)
{
	uint64_t version;
	if (!get(&extra, &version))
		return weir_fail(error, WEIR_INVALID, "the partition state is truncated");
	if (version > EXTRA_WITH_CLOCK)
		return weir_fail(error, WEIR_NEWER,
		                 "partition state version %llu is newer than this program, which reads up to %d",
		                 (unsigned long long)version, EXTRA_WITH_CLOCK);
	shard->source_count = shard->switch_count = 0;
	reservations_deinit(&shard->reserved);
	if (version > 0 && get_clock(&extra, &shard->clock_ms) && get(&extra, &shard->events) &&
	    get(&extra, &shard->policy_version) && import_switches(shard, &extra) && import_sources(shard, &extra) &&
	    import_overrides(shard, version, &extra))
		return WEIR_OK;
	shard->source_count = shard->switch_count = 0;
	overrides_deinit(&shard->overrides);
	reservations_deinit(&shard->reserved);
	return weir_fail(error, WEIR_INVALID, "the partition state is damaged");
}
