/*
 * A frame. Its dictionary holds each key once, so each (key, zone) pair is
 * looked up once, however many events it has.
 *
 * Random access is what judging costs most, and memory answers many questions at
 * once if they are asked together: fingerprints are computed for the whole
 * frame, asking for the table's lines; while events are judged the buckets of
 * those to come are asked for.
 */
#include "limiter/shard_parts.h"

#include "common/alloc.h"

#include <assert.h>

enum { LOOKUPS_AHEAD = 24 }; /* buckets that are on their way while one is judged */

/* Room for so many, contents kept. */
static void *room_for(struct shard_frame *work, void *array, size_t *room, size_t wanted, size_t bytes)
{
	if (wanted <= *room)
		return array;
	size_t grown = wanted + wanted / 2 + 16;
	work->bytes += (grown - *room) * bytes;
	*room = grown;
	return weir_realloc(array, grown, bytes);
}

/* ---- step 1 ---- */

/* The zones in force of every set. */
static void resolve_sets(struct shard *shard)
{
	struct shard_frame *work = &shard->work;
	const struct weir_frame *frame = work->frame;
	size_t zones = 0;
	for (uint32_t i = 0; i < frame->zone_set_count; i++)
		zones += frame->zone_sets[i].count;
	work->set_first = room_for(work, work->set_first, &work->room_sets, frame->zone_set_count, sizeof *work->set_first);
	work->set_zones = room_for(work, work->set_zones, &work->room_set_zones, zones, sizeof(const struct zone_rules *));
	uint32_t next = 0;
	for (uint32_t i = 0; i < frame->zone_set_count; i++) {
		const struct weir_frame_zone_set *set = &frame->zone_sets[i];
		work->set_first[i] = next;
		for (uint32_t j = 0; j < set->count; j++)
			work->set_zones[next++] = rules_zone(shard->rules, set->zones[j].id);
	}
}

/* The lookup of a pair that an earlier run of the key already has. */
static uint32_t find_lookup(const struct shard_frame *work, uint32_t run, const struct zone_rules *zone)
{
	for (; run != 0; run = work->runs[run].next) {
		const struct lookup_run *earlier = &work->runs[run];
		uint32_t count = work->frame->zone_sets[earlier->zone_set].count;
		for (uint32_t j = 0; j < count; j++) {
			uint32_t lookup = work->pair_lookups[earlier->first + j];
			if (lookup != NO_LOOKUP && work->lookups[lookup].zone == zone)
				return lookup;
		}
	}
	return NO_LOOKUP;
}

static inline uint32_t add_lookup(struct shard *shard, const struct zone_rules *zone, struct weir_span key)
{
	struct shard_frame *work = &shard->work;
	work->lookups = room_for(work, work->lookups, &work->room_lookups, work->lookup_count + 1u, sizeof *work->lookups);
	struct weir_fingerprint print = weir_fingerprint(shard->options.seed, zone->zone->id, key);
	table_prefetch(&shard->table, bucket_tag(print.low));
	work->lookups[work->lookup_count] = (struct lookup){.low = print.low, .high = print.high, .zone = zone};
	return work->lookup_count++;
}

/* The run of an event's key and zone set. */
static inline uint32_t run_of(struct shard *shard, const struct weir_frame_event *event)
{
	struct shard_frame *work = &shard->work;
	uint32_t first_run = work->key_runs[event->key];
	for (uint32_t run = first_run; run != 0; run = work->runs[run].next)
		if (work->runs[run].zone_set == event->zone_set)
			return run;
	uint32_t count = work->frame->zone_sets[event->zone_set].count;
	work->pair_lookups = room_for(work, work->pair_lookups, &work->room_pair_lookups,
	                              (size_t)work->pair_lookup_count + count, sizeof *work->pair_lookups);
	const struct zone_rules **zones = &work->set_zones[work->set_first[event->zone_set]];
	uint32_t first = work->pair_lookup_count;
	for (uint32_t j = 0; j < count; j++) {
		uint32_t lookup = NO_LOOKUP;
		if (zones[j] != NULL && first_run != 0)
			lookup = find_lookup(work, first_run, zones[j]);
		if (zones[j] != NULL && lookup == NO_LOOKUP)
			lookup = add_lookup(shard, zones[j], work->frame->keys[event->key]);
		work->pair_lookups[first + j] = lookup;
	}
	work->pair_lookup_count += count;
	uint32_t run = ++work->run_count;
	work->runs[run] = (struct lookup_run){.zone_set = event->zone_set, .first = first, .next = first_run};
	work->key_runs[event->key] = run;
	return run;
}

/* Finds what has the key's tag, and asks for its block. */
static inline void guess(struct shard *shard, struct lookup *lookup)
{
	lookup->ref = table_find(&shard->table, bucket_tag(lookup->low), 0);
	lookup->bucket = NULL;
	lookup->state = LOOKUP_GUESSED;
	if (lookup->ref == 0)
		return;
	lookup->bucket = slab_at(&shard->slab, lookup->ref);
	__builtin_prefetch(lookup->bucket, 1);
	__builtin_prefetch((const char *)lookup->bucket + sizeof(struct table_line) - 1, 1);
}

/* Makes sure of the guess. A bucket that counts as empty is none; its block stays to be taken over. */
static inline void find(struct shard *shard, struct lookup *lookup)
{
	struct bucket *bucket = lookup->bucket;
	lookup->state = LOOKUP_FOUND;
	if (bucket == NULL)
		return;
	if (__builtin_expect(bucket->low != lookup->low || bucket->high != lookup->high, 0)) {
		lookup->ref = shard_find_ref(shard, lookup->low, lookup->high);
		bucket = lookup->ref == 0 ? NULL : slab_at(&shard->slab, lookup->ref);
		lookup->bucket = bucket;
		if (bucket == NULL)
			return;
	}
	const struct layout *layout = lookup->zone->layout;
	int64_t lateness_ms = shard->options.lateness_ms;
	if (__builtin_expect(bucket->layout == layout->id, 1)) {
		if (lateness_ms >= 0 && shard->work.clock_ms > bucket_remembered_until(bucket, layout, lateness_ms))
			lookup->bucket = NULL;
	} else if (shard_is_forgotten(shard, bucket, shard->work.clock_ms)) {
		lookup->bucket = NULL;
	}
}

void shard_frame_begin(struct shard *shard, const struct weir_frame *frame, uint64_t offset)
{
	struct shard_frame *work = &shard->work;
	assert(work->frame == NULL);
	work->frame = frame;
	work->offset = offset;
	work->clock_ms = frame->sending_time_ms > shard->clock_ms ? frame->sending_time_ms : shard->clock_ms;
	work->position_before = shard_source(shard, frame->source, work->clock_ms)->position;
	work->run_count = work->pair_lookup_count = work->lookup_count = work->guessed = work->decision_count = 0;
	resolve_sets(shard);
	work->key_runs = room_for(work, work->key_runs, &work->room_keys, frame->key_count, sizeof *work->key_runs);
	memset(work->key_runs, 0, frame->key_count * sizeof *work->key_runs);
	size_t room_events = work->room_events;
	work->event_runs =
		room_for(work, work->event_runs, &room_events, frame->event_count + 1u, sizeof *work->event_runs);
	work->runs = room_for(work, work->runs, &work->room_events, frame->event_count + 1u, sizeof *work->runs);
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		work->event_runs[i] = event->position > work->position_before ? run_of(shard, event) : 0;
	}
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		shard->segments[i].loaded_for_frame = false;
	if (shard->evicted_segments == 0)
		return;
	for (uint32_t i = 0; i < work->lookup_count; i++)
		guess(shard, &work->lookups[i]);
	for (uint32_t i = 0; i < work->lookup_count; i++)
		find(shard, &work->lookups[i]);
	work->guessed = work->lookup_count;
}

/* ---- step 2 ---- */

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
	return segment->residence == SEGMENT_UNKNOWN || filter_has(&segment->evicted, lookup->high);
}

uint32_t shard_missing(struct shard *shard, uint32_t *segments)
{
	uint64_t missing[SHARD_SEGMENTS / 64] = {0};
	struct shard_frame *work = &shard->work;
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		shard->segments[i].missing = 0;
	/* Those that were looked for: none, if nothing was evicted when the frame began. Whether anything still is does not
	 * matter: the load of the last such segment has brought what must be found. */
	for (uint32_t i = 0; i < work->guessed; i++) {
		struct lookup *lookup = &work->lookups[i];
		uint32_t number = table_segment_of(bucket_tag(lookup->low));
		struct segment *segment = &shard->segments[number];
		if (lookup->ref == 0 && segment->loaded_for_frame) {
			guess(shard, lookup);
			find(shard, lookup);
		}
		if (!may_be_stored(shard, lookup))
			continue;
		missing[number / 64] |= UINT64_C(1) << (number % 64);
		lookup->next_missing = segment->missing;
		segment->missing = i + 1;
	}
	uint32_t count = 0;
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		if (missing[i / 64] >> (i % 64) & 1)
			segments[count++] = i;
	return count;
}

/* ---- step 3 ---- */

/* The clock as a bucket notes it. */
static uint32_t noted_clock(int64_t clock_ms)
{
	int64_t seconds = (clock_ms + 999) / 1000;
	return seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
}

static void take_block(struct shard *shard, struct lookup *lookup, uint32_t ref)
{
	lookup->ref = ref;
	lookup->bucket = slab_at(&shard->slab, ref);
}

/* An empty bucket's first event of cost 1 passes, whatever the limits. */
static void record_first(struct shard *shard, struct lookup *lookup, int64_t t)
{
	struct bucket header = {.low = lookup->low, .high = lookup->high, .newest_ms = (uint64_t)t & TIME_MASK};
	header.layout = lookup->zone->layout->id & LAYOUT_ID_MAX;
	take_block(shard, lookup, shard_place_single(shard, &header, lookup->ref));
}

/* Judges in a copy: of nothing, a single bucket or an older layout. Whether the bucket changed. */
static bool judge_copy(struct shard *shard, struct lookup *lookup, int64_t t, int64_t c, bool done,
                       struct bucket_work *work, struct bucket_verdict *verdict)
{
	const struct layout *layout = lookup->zone->layout;
	if (lookup->bucket == NULL) {
		bucket_work_new(work, &shard->scratch, layout, c);
		work->view.bucket->low = lookup->low;
		work->view.bucket->high = lookup->high;
	} else {
		const struct layout *from = rules_layout(shard->rules, lookup->bucket->layout);
		bucket_work_convert(work, &shard->scratch, lookup->bucket, from, layout, c);
	}
	if (done)
		bucket_done(work, t);
	else
		bucket_judge(work, lookup->zone->zone, t, c, verdict);
	return work->changed;
}

/* Judges one event in one zone. */
static inline void judge_pair(struct shard *shard, struct lookup *lookup, const struct weir_frame_event *event,
                              bool done, uint32_t clock_s, struct bucket_verdict *verdict)
{
	int64_t t = event->time_ms, c = event->cost;
	struct bucket *bucket = lookup->bucket;
	struct bucket_work work;
	bool changed;
	if (bucket == NULL && done)
		return;
	if (bucket == NULL && c == 1) {
		record_first(shard, lookup, t);
		changed = true;
	} else if (bucket != NULL && bucket->layout == lookup->zone->layout->id && !(bucket->flags & BUCKET_SINGLE)) {
		bucket_work_open(&work, &shard->scratch, bucket, lookup->zone->layout);
		if (done)
			bucket_done(&work, t);
		else
			bucket_judge(&work, lookup->zone->zone, t, c, verdict);
		changed = work.changed;
		if (work.moved)
			take_block(shard, lookup, shard_place(shard, work.view.bucket, work.view.layout, lookup->ref));
	} else {
		changed = judge_copy(shard, lookup, t, c, done, &work, verdict);
		if (changed)
			take_block(shard, lookup, shard_place(shard, work.view.bucket, work.view.layout, lookup->ref));
		else if (bucket == NULL)
			return; /* nothing is there, and nothing is to be kept */
	}
	bucket = lookup->bucket;
	changed |= bucket->clock_s != clock_s;
	bucket->clock_s = clock_s;
	bucket->flags |= BUCKET_USED;
	if (changed && !(bucket->flags & BUCKET_DIRTY))
		shard_set_dirty(shard, bucket, lookup->ref);
}

static void add_decision(struct shard *shard, uint32_t event, uint32_t pair, uint32_t place,
                         const struct lookup *lookup, const struct bucket_verdict *verdict)
{
	struct shard_frame *work = &shard->work;
	const struct weir_frame_event *judged = &work->frame->events[event];
	bool by_event = shard->options.count_events;
	work->decisions =
		room_for(work, work->decisions, &work->room_decisions, work->decision_count + 1u, sizeof *work->decisions);
	work->decisions[work->decision_count++] =
		(struct shard_decision){.event = event,
	                            .pair = pair,
	                            .id_offset = by_event ? shard->events : work->offset,
	                            .id_index = by_event ? place : pair,
	                            .zone = lookup->zone,
	                            .limit = verdict->limit,
	                            .key = work->frame->keys[judged->key],
	                            .at_ms = judged->time_ms,
	                            .until_ms = verdict->until_ms,
	                            .count = verdict->count};
}

static inline void put_verdict(uint8_t *verdicts, uint32_t pair, unsigned bits)
{
	if (pair % 2 == 0)
		verdicts[pair / 2] = (uint8_t)bits;
	else
		verdicts[pair / 2] |= (uint8_t)(bits << 4);
}

/* Asks for the blocks of lookups up to some way behind one. */
static inline void look_ahead(struct shard *shard, uint32_t lookup)
{
	struct shard_frame *work = &shard->work;
	uint32_t end = lookup + LOOKUPS_AHEAD < work->lookup_count ? lookup + LOOKUPS_AHEAD : work->lookup_count;
	while (work->guessed < end)
		guess(shard, &work->lookups[work->guessed++]);
}

/* Judges an event in its zones; pair is the number of its first. */
static inline void judge_event(struct shard *shard, uint32_t i, uint32_t pair, uint32_t clock_s)
{
	struct shard_frame *work = &shard->work;
	const struct weir_frame_event *event = &work->frame->events[i];
	const struct weir_frame_zone_set *set = &work->frame->zone_sets[event->zone_set];
	const uint32_t *lookups = &work->pair_lookups[work->runs[work->event_runs[i]].first];
	for (uint32_t j = 0; j < set->count; j++, pair++) {
		if (lookups[j] == NO_LOOKUP) {
			put_verdict(work->verdicts, pair, WEIR_VERDICT_NONE);
			continue;
		}
		look_ahead(shard, lookups[j] + 1);
		struct lookup *lookup = &work->lookups[lookups[j]];
		if (lookup->state != LOOKUP_FOUND)
			find(shard, lookup);
		struct bucket_verdict verdict = {.bits = 0};
		judge_pair(shard, lookup, event, set->zones[j].done, clock_s, &verdict);
		put_verdict(work->verdicts, pair, set->zones[j].done ? WEIR_VERDICT_NONE : verdict.bits);
		if (verdict.bits & WEIR_VERDICT_DECIDED)
			add_decision(shard, i, pair, j, lookup, &verdict);
	}
}

void shard_frame_judge(struct shard *shard, struct shard_result *result)
{
	struct shard_frame *work = &shard->work;
	const struct weir_frame *frame = work->frame;
	assert(frame != NULL);
	shard->clock_ms = work->clock_ms;
	uint32_t clock_s = noted_clock(work->clock_ms);
	work->verdicts = room_for(work, work->verdicts, &work->room_pairs, frame->pair_count / 2 + 1u, 1);
	uint64_t position = work->position_before;
	uint32_t taken = 0, pair = 0;
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		uint32_t zones = frame->zone_sets[event->zone_set].count;
		if (work->event_runs[i] == 0) {
			for (uint32_t j = 0; j < zones; j++)
				put_verdict(work->verdicts, pair + j, WEIR_VERDICT_NONE);
		} else {
			judge_event(shard, i, pair, clock_s);
			position = event->position > position ? event->position : position;
			shard->events++;
			taken++;
		}
		pair += zones;
	}
	if (frame->event_count > 0) {
		struct source_position *source = shard_source(shard, frame->source, shard->clock_ms);
		source->position = position;
		source->used_ms = shard->clock_ms;
	}
	work->frame = NULL;
	*result = (struct shard_result){.verdicts = work->verdicts,
	                                .pair_count = pair,
	                                .decisions = work->decisions,
	                                .decision_count = work->decision_count,
	                                .events_taken = taken,
	                                .events_repeated = frame->event_count - taken};
	shard_tidy(shard);
}
