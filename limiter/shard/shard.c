/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard's life, its policy, its positions, and its numbers.
 */
#include "limiter/shard/shard_copies.h"
#include "limiter/shard/shard_reserve.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>

/*
 * A source without frames for SOURCE_MEMORY_MS may be forgotten (not with --once), but only when a new one comes while
 * SOURCES_KEPT are known. Forgetting sooner would be wrong: after an outage the first frame advances the clock by all
 * of it, and what the sources send again comes later.
 */
static const int64_t SOURCE_MEMORY_MS = INT64_C(7) * 86400000;
enum { SOURCES_KEPT = 1024 };

/* What 32-bit references can address, less a sixteenth as reserve. */
static const int64_t CEILING_MOST_BYTES = (int64_t)SLAB_CHUNKS_MAX * CHUNK_BYTES / 16 * 15;

/* Sizes the paces for the policy's zones, and clears them. */
static void reset_paces(struct shard *shard)
{
	uint32_t zones = compiled_policy_zone_count(shard->compiled);
	shard->paces = weir_realloc(shard->paces, zones, sizeof *shard->paces);
	memset(shard->paces, 0, zones * sizeof *shard->paces);
}

void shard_set_ceiling(struct shard *shard, int64_t ceiling_bytes)
{
	shard->options.ceiling_bytes = ceiling_bytes < CEILING_MOST_BYTES ? ceiling_bytes : CEILING_MOST_BYTES;
	int64_t swap_bytes = shard->options.swap_bytes;
	if (swap_bytes == 0)
		swap_bytes = shard->options.ceiling_bytes * SHARD_SWAP_CEILINGS;
	swap_set_ceiling(&shard->swap, (uint64_t)swap_bytes);
	shard->starved = false;
}

struct shard *shard_new(const struct shard_options *options, const struct compiled_policy *compiled)
{
	struct shard *shard = weir_alloc(1, sizeof *shard);
	shard->options = *options;
	shard->compiled = compiled;
	shard->policy_version = compiled_policy_version(compiled);
	reset_paces(shard);
	overrides_init(&shard->overrides, options->lateness_ms, options->partition, options->partitions);
	slab_init(&shard->slab);
	table_init(&shard->table);
	table_init_loose(&shard->swapped);
	swap_init(&shard->swap, options->swap_directory);
	shard_set_ceiling(shard, options->ceiling_bytes);
	return shard;
}

void shard_free(struct shard *shard)
{
	if (shard == NULL)
		return;
	struct shard_frame *work = &shard->work;
	void *arrays[] = {work->set_first, work->set_zones, work->key_first, work->runs,
	                  work->lookups,   work->verdicts,  work->decisions, shard->paces};
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
		free(arrays[i]);
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		filter_deinit(&shard->segments[i].evicted);
	checks_free(shard->checks);
	reservations_deinit(&shard->reserved);
	bucket_scratch_deinit(&shard->scratch);
	overrides_deinit(&shard->overrides);
	table_deinit(&shard->table);
	table_deinit(&shard->swapped);
	swap_deinit(&shard->swap);
	slab_deinit(&shard->slab);
	free(shard->switches);
	free(shard->sources);
	free(shard);
}

void shard_set_residence(struct shard *shard, uint32_t segment, enum segment_residence residence)
{
	uint8_t *own = &shard->segments[segment].residence;
	shard->evicted_segments -= *own != SEGMENT_WHOLE;
	shard->evicted_segments += residence != SEGMENT_WHOLE;
	*own = (uint8_t)residence;
}

void shard_set_stored(struct shard *shard, uint32_t segment)
{
	shard->has_store = true;
	shard_set_residence(shard, segment, SEGMENT_UNKNOWN);
}

uint32_t shard_unread(const struct shard *shard, uint32_t *segments, uint32_t most)
{
	uint32_t count = 0;
	if (shard->evicted_segments == 0 || !shard_has_room(shard))
		return 0;
	for (uint32_t i = 0; i < SHARD_SEGMENTS && count < most; i++)
		if (shard->segments[i].residence == SEGMENT_UNKNOWN)
			segments[count++] = i;
	return count;
}

/* ---- policy ---- */

static bool is_in_force(const void *compiled, uint32_t zone_id)
{
	return compiled_policy_zone(compiled, zone_id) != NULL;
}

void shard_set_policy(struct shard *shard, const struct compiled_policy *compiled)
{
	assert(shard->work.frame == NULL);
	uint64_t version = compiled_policy_version(compiled);
	if (version > shard->policy_version)
		shard_void_changed(shard, compiled);
	shard->compiled = compiled;
	shard->last_scaled = NULL;
	reset_paces(shard);
	if (version <= shard->policy_version)
		return; /* the same policy, or a restart whose checkpoint has the switch already */
	shard->policy_version = version;
	if (shard->checks != NULL)
		copies_outdate(shard->checks);
	overrides_keep_zones(&shard->overrides, is_in_force, compiled);
	shard->switches = weir_realloc(shard->switches, shard->switch_count + 1u, sizeof *shard->switches);
	shard->switches[shard->switch_count++] =
		(struct policy_activation){.version = version, .clock_ms = shard->clock_ms};
	swap_all_due(&shard->swap);
}

/* ---- sources ---- */

static bool is_source_forgotten(const struct shard *shard, const struct source_position *source, int64_t clock_ms)
{
	return shard->options.lateness_ms >= 0 && clock_ms > source->used_ms + SOURCE_MEMORY_MS;
}

/* The first place whose source is not less than `source`. */
static uint32_t source_place(const struct shard *shard, const uint8_t *source)
{
	uint32_t low = 0, high = shard->source_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (memcmp(shard->sources[middle].source, source, WEIR_SOURCE_ID_BYTES) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void drop_forgotten_sources(struct shard *shard, int64_t clock_ms)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < shard->source_count; i++)
		if (!is_source_forgotten(shard, &shard->sources[i], clock_ms))
			shard->sources[kept++] = shard->sources[i];
	shard->source_count = kept;
}

struct source_position *shard_source(struct shard *shard, const uint8_t source[WEIR_SOURCE_ID_BYTES], int64_t clock_ms)
{
	uint32_t place = source_place(shard, source);
	if (place < shard->source_count && memcmp(shard->sources[place].source, source, WEIR_SOURCE_ID_BYTES) == 0)
		return &shard->sources[place];
	if (shard->source_count >= SOURCES_KEPT)
		drop_forgotten_sources(shard, clock_ms);
	place = source_place(shard, source);
	shard->sources = weir_realloc(shard->sources, shard->source_count + 1u, sizeof *shard->sources);
	memmove(&shard->sources[place + 1], &shard->sources[place], (shard->source_count - place) * sizeof *shard->sources);
	shard->source_count++;
	struct source_position *made = &shard->sources[place];
	*made = (struct source_position){.used_ms = clock_ms};
	memcpy(made->source, source, WEIR_SOURCE_ID_BYTES);
	return made;
}

/* ---- numbers ---- */

uint64_t shard_policy_version(const struct shard *shard)
{
	return shard->policy_version;
}

int64_t shard_clock_ms(const struct shard *shard)
{
	return shard->clock_ms;
}

void shard_set_clock_ms(struct shard *shard, int64_t clock_ms)
{
	shard->clock_ms = clock_ms;
}

void shard_stats(const struct shard *shard, struct shard_stats *stats)
{
	*stats = (struct shard_stats){.buckets = shard->slab.blocks,
	                              .spilled = shard->swapped.count,
	                              .evicted_segments = shard->evicted_segments,
	                              .bytes = shard_bytes(shard),
	                              .index_bytes = shard_index_bytes(shard),
	                              .overrides = shard->overrides.count,
	                              .evictions = shard->evictions,
	                              .loads = shard->loads,
	                              .recalls = shard->recalls,
	                              .swap_failures = shard->swap_failures,
	                              .swap_file_bytes = swap_file_bytes(&shard->swap),
	                              .forgotten = shard->forgotten};
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		if (shard->segments[i].residence == SEGMENT_PARTIAL)
			stats->spilled += shard->segments[i].evicted.count;
}
