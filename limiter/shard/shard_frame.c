/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame: which buckets it needs. Its dictionary holds each key once, so each
 * (key, zone) pair is looked up once, however many events it has.
 *
 * Fingerprints are computed for the whole frame at once. The table and the
 * buckets are read while it is judged (shard_judge.c), or before that, if some
 * buckets may have to be loaded first.
 */
#include "limiter/shard/shard_frame.h"

#include "common/base/alloc.h"

#include <assert.h>

void *shard_room_for(struct shard_frame *work, void *array, size_t *room, size_t wanted, size_t bytes)
{
	if (wanted <= *room)
		return array;
	size_t grown = wanted + wanted / 2 + 16;
	work->bytes += (grown - *room) * bytes;
	*room = grown;
	return weir_realloc(array, grown, bytes);
}

/* A bucket of the zone with this clock_s or a later one is not forgotten, whatever its last decision. */
static uint32_t kept_clock(const struct shard *shard, const struct compiled_zone *zone)
{
	int64_t lateness_ms = shard->options.lateness_ms;
	int64_t kept_ms = shard->work.clock_ms - zone->layout->memory_ms - lateness_ms;
	if (lateness_ms < 0 || kept_ms <= 0)
		return 0;
	int64_t kept_s = (kept_ms + 999) / 1000;
	return kept_s < UINT32_MAX ? (uint32_t)kept_s : UINT32_MAX;
}

/* The zones in force of every set. */
static void resolve_sets(struct shard *shard)
{
	struct shard_frame *work = &shard->work;
	const struct weir_frame *frame = work->frame;
	size_t zones = 1; /* one more: set_first of a last set without zones points after the others */
	for (uint32_t i = 0; i < frame->zone_set_count; i++)
		zones += frame->zone_sets[i].count;
	work->set_first =
		shard_room_for(work, work->set_first, &work->room_sets, frame->zone_set_count, sizeof *work->set_first);
	work->set_zones =
		shard_room_for(work, work->set_zones, &work->room_set_zones, zones, sizeof(const struct compiled_zone *));
	uint32_t next = 0;
	for (uint32_t i = 0; i < frame->zone_set_count; i++) {
		const struct weir_frame_zone_set *set = &frame->zone_sets[i];
		work->set_first[i] = next;
		for (uint32_t j = 0; j < set->count; j++) {
			const struct compiled_zone *zone = compiled_policy_zone(shard->compiled, set->zones[j].id);
			work->set_zones[next++] = zone;
			if (zone != NULL)
				shard->paces[zone->order].kept_s = kept_clock(shard, zone);
		}
	}
}

/* The first lookup of the same key in a zone, or NO_LOOKUP. */
static uint32_t find_alias(const struct shard_frame *work, uint32_t run, const struct compiled_zone *zone)
{
	for (; run != 0; run = work->runs[run].next) {
		const struct lookup_run *earlier = &work->runs[run];
		uint32_t count = work->frame->zone_sets[earlier->zone_set].count;
		for (uint32_t j = 0; j < count; j++) {
			const struct lookup *lookup = &work->lookups[earlier->first + j];
			if (lookup->zone == zone)
				return lookup->alias != NO_LOOKUP ? lookup->alias : earlier->first + j;
		}
	}
	return NO_LOOKUP;
}

static void make_room_for_lookups(struct shard_frame *work, uint32_t count)
{
	work->lookups = shard_room_for(work, work->lookups, &work->room_lookups, (size_t)work->lookup_count + count,
	                               sizeof *work->lookups);
}

/* Fills a lookup of a key in a zone in force. */
static inline void look_up(struct lookup *lookup, const struct shard *shard, bool any_overrides,
                           const struct compiled_zone *zone, struct weir_span key)
{
	struct weir_fingerprint print = weir_fingerprint(shard->options.seed, zone->zone->id, key);
	*lookup =
		(struct lookup){.low = print.low, .high = print.high, .zone = zone, .alias = NO_LOOKUP, .state = LOOKUP_NEW};
	if (__builtin_expect(any_overrides, 0))
		lookup->overridden = overrides_touch(&shard->overrides, zone->zone->id, key);
}

/* Adds the lookups of a key in a zone set. @param run  the key's last run, 0: none @return the first lookup */
static uint32_t add_lookups(struct shard *shard, struct weir_span key, uint32_t zone_set, uint32_t run)
{
	struct shard_frame *work = &shard->work;
	uint32_t first = work->lookup_count, count = work->frame->zone_sets[zone_set].count;
	make_room_for_lookups(work, count);
	const struct compiled_zone **zones = &work->set_zones[work->set_first[zone_set]];
	bool any_overrides = overrides_any(&shard->overrides);
	for (uint32_t j = 0; j < count; j++) {
		struct lookup *lookup = &work->lookups[first + j];
		const struct compiled_zone *zone = zones[j];
		uint32_t alias = zone != NULL && run != 0 ? find_alias(work, run, zone) : NO_LOOKUP;
		if (zone == NULL || alias != NO_LOOKUP)
			*lookup = (struct lookup){.zone = zone, .alias = alias, .state = LOOKUP_NONE};
		else
			look_up(lookup, shard, any_overrides, zone, key);
	}
	work->lookup_count = first + count;
	return first;
}

/* Adds the lookups of an event, if its key has not been seen in its zone set. */
static void look_up_in_sets(struct shard *shard, const struct weir_frame_event *event)
{
	struct shard_frame *work = &shard->work;
	uint32_t last = work->key_first[event->key];
	for (uint32_t run = last; run != 0; run = work->runs[run].next)
		if (work->runs[run].zone_set == event->zone_set)
			return;
	uint32_t first = add_lookups(shard, work->frame->keys[event->key], event->zone_set, last);
	work->runs = shard_room_for(work, work->runs, &work->room_runs, work->run_count + 2u, sizeof *work->runs);
	work->runs[++work->run_count] = (struct lookup_run){.zone_set = event->zone_set, .first = first, .next = last};
	work->key_first[event->key] = work->run_count;
}

/* For frames of one zone in force: a tight loop that adds one lookup per key. */
static void look_up_in_zone(struct shard *shard, uint32_t first_event)
{
	struct shard_frame *work = &shard->work;
	const struct weir_frame *frame = work->frame;
	const struct compiled_zone *zone = work->set_zones[0];
	bool any_overrides = overrides_any(&shard->overrides);
	uint32_t *key_first = work->key_first;
	uint32_t count = 0;
	make_room_for_lookups(work, frame->key_count);
	for (uint32_t i = first_event; i < frame->event_count; i++) {
		uint32_t key = frame->events[i].key;
		if (key_first[key] != 0)
			continue;
		look_up(&work->lookups[count++], shard, any_overrides, zone, frame->keys[key]);
		key_first[key] = count;
	}
	work->lookup_count = count;
}

/* Adds the lookups of all events but repeats, which come first, as positions do not decrease. */
static void look_up_events(struct shard *shard)
{
	struct shard_frame *work = &shard->work;
	const struct weir_frame *frame = work->frame;
	uint32_t i = 0;
	while (i < frame->event_count && frame->events[i].position <= work->position_before)
		i++;
	work->first_event = i;
	if (frame->zone_set_count > 1) {
		for (; i < frame->event_count; i++)
			look_up_in_sets(shard, &frame->events[i]);
		return;
	}
	uint32_t *key_first = work->key_first;
	const struct weir_frame_event *events = frame->events;
	if (shard_only_zone(work) != NULL) {
		look_up_in_zone(shard, i);
		return;
	}
	for (uint32_t count = frame->event_count; i < count; i++)
		if (key_first[events[i].key] == 0)
			key_first[events[i].key] = add_lookups(shard, frame->keys[events[i].key], 0, 0) + 1;
}

static uint32_t group_end(const struct shard_frame *work, uint32_t first)
{
	return first + AHEAD_GROUP < work->lookup_count ? first + AHEAD_GROUP : work->lookup_count;
}

void shard_ask_for_lines(struct shard *shard)
{
	struct shard_frame *work = &shard->work;
	for (uint32_t end = group_end(work, work->asked); work->asked < end; work->asked++)
		if (work->lookups[work->asked].state == LOOKUP_NEW)
			table_prefetch(&shard->table, bucket_tag(work->lookups[work->asked].low));
}

void shard_ask_for_blocks(struct shard *shard)
{
	struct shard_frame *work = &shard->work;
	uint32_t first = work->guessed, end = group_end(work, first);
	for (uint32_t i = first; i < end; i++)
		shard_guess(shard, &work->lookups[i]);
	for (uint32_t i = first; i < end; i++)
		if (work->lookups[i].bucket != NULL)
			weir_prefetch_far(work->lookups[i].bucket);
	work->guessed = end;
}

/* Covers blocks of up to 96 bytes, as most are. */
void shard_ask_for_rest(struct shard *shard)
{
	struct shard_frame *work = &shard->work;
	for (uint32_t end = group_end(work, work->fetched); work->fetched < end; work->fetched++) {
		const char *block = (const char *)work->lookups[work->fetched].bucket;
		if (block == NULL)
			continue;
		weir_prefetch_far(block + 63);
		weir_prefetch_far(block + 95);
	}
}

/* Looks a bucket up that was not in memory before. */
static void look_again(struct shard *shard, struct lookup *lookup)
{
	lookup->state = LOOKUP_NEW;
	shard_guess(shard, lookup);
	shard_make_sure(shard, lookup);
}

/* Finds all lookups' buckets before judging, if not all of them may be in memory. */
static void find_early(struct shard *shard)
{
	struct shard_frame *work = &shard->work;
	if (shard->evicted_segments == 0 && shard->swapped.count == 0)
		return;
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		shard->segments[i].loaded_for_frame = false;
	for (uint32_t i = 0; i < work->lookup_count; i++) {
		struct lookup *lookup = &work->lookups[i];
		shard_look_ahead(shard, i);
		if (i + AHEAD_LINE < work->lookup_count)
			table_prefetch(&shard->swapped, bucket_tag(work->lookups[i + AHEAD_LINE].low));
		if (lookup->state != LOOKUP_GUESSED)
			continue;
		shard_make_sure(shard, lookup);
		if (lookup->ref == 0 && shard_recall(shard, lookup->low, lookup->high) != 0) {
			lookup->recalled = true;
			look_again(shard, lookup);
		}
	}
}

void shard_frame_begin(struct shard *shard, const struct weir_frame *frame, uint64_t offset)
{
	struct shard_frame *work = &shard->work;
	assert(work->frame == NULL && !(shard->options.swap_changes && shard->snapshot_pending));
	work->frame = frame;
	work->offset = offset;
	work->clock_ms = frame->sending_time_ms > shard->clock_ms ? frame->sending_time_ms : shard->clock_ms;
	overrides_advance(&shard->overrides, frame->sending_time_ms);
	work->position_before = shard_source(shard, frame->source, work->clock_ms)->position;
	work->run_count = work->lookup_count = work->decision_count = 0;
	work->asked = work->guessed = work->fetched = 0;
	resolve_sets(shard);
	work->key_first = shard_room_for(work, work->key_first, &work->room_keys, frame->key_count, sizeof(uint32_t));
	if (frame->key_count > 0) /* otherwise key_first may be NULL */
		memset(work->key_first, 0, frame->key_count * sizeof(uint32_t));
	look_up_events(shard);
	find_early(shard);
}

void shard_command_look_up(struct shard *shard, const struct compiled_zone *zone, struct weir_span key)
{
	struct shard_frame *work = &shard->work;
	shard->paces[zone->order].kept_s = kept_clock(shard, zone);
	make_room_for_lookups(work, 1);
	look_up(&work->lookups[work->lookup_count++], shard, false, zone, key);
	find_early(shard);
}

/* Whether the store may have a bucket that is not in memory. */
static bool may_be_stored(struct shard *shard, struct lookup *lookup)
{
	const struct segment *segment = &shard->segments[table_segment_of(bucket_tag(lookup->low))];
	if (lookup->ref != 0 || lookup->settled || segment->residence == SEGMENT_WHOLE)
		return false;
	if (segment->loaded_for_frame) {
		lookup->settled = true;
		return false;
	}
	return segment->residence == SEGMENT_UNKNOWN ||
	       filter_has(&segment->evicted, shard_filter_hash(lookup->low, lookup->high));
}

/* Lists the missing segments, and links the lookups that wait for each. */
static uint32_t find_missing(struct shard *shard, uint32_t *segments)
{
	uint64_t missing[SHARD_SEGMENTS / 64] = {0};
	struct shard_frame *work = &shard->work;
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		shard->segments[i].missing = 0;
	for (uint32_t i = 0; i < work->lookup_count; i++) {
		struct lookup *lookup = &work->lookups[i];
		if (lookup->state == LOOKUP_NONE)
			continue;
		uint32_t number = table_segment_of(bucket_tag(lookup->low));
		struct segment *segment = &shard->segments[number];
		if (lookup->ref == 0 && segment->loaded_for_frame)
			look_again(shard, lookup);
		if (!may_be_stored(shard, lookup))
			continue;
		missing[number / 64] |= UINT64_C(1) << (number % 64);
		lookup->next_missing = segment->missing;
		segment->missing = i + 1;
	}
	uint32_t count = 0;
	for (uint32_t i = 0; i < SHARD_SEGMENTS && count < SHARD_MISSING_MOST; i++)
		if (missing[i / 64] >> (i % 64) & 1)
			segments[count++] = i;
	return count;
}

uint32_t shard_missing(struct shard *shard, uint32_t *segments)
{
	/*
	 * By now buckets have been looked up only if something was evicted when the frame began. That must decide, not what
	 * is evicted now: after the last such segment has been loaded, lookups must still find what it brought.
	 */
	return shard->work.guessed > 0 ? find_missing(shard, segments) : 0;
}
