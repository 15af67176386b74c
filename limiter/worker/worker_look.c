/*
 * What other threads see of a worker: how its partitions stand, and counters.
 *
 * Lanes come and go, and are freed, so whoever reads their tallies holds the
 * worker's lock, as the worker does while it adds or removes one. A lane's
 * tally counts from its partition's beginning: what it came with is taken off,
 * and what it had counted stays when it goes, so that sums only grow.
 */
#include "limiter/worker/internal.h"

#include <stdio.h>

enum { GAUGES_MS = 1000, LOOKS_MS = 100 };

static const char *const state_names[WORKER_STATE_COUNT] = {"empty", "taking", "live", "leaving", "dropped", "stuck"};

const char *worker_state_name(enum worker_state state)
{
	return state_names[state];
}

void worker_set_state(struct worker *worker, struct slot *slot, enum worker_state state)
{
	slot->state = state;
	if (state == WORKER_EMPTY)
		placement_release(worker->options.placement, slot->partition);
	uint64_t waiting = state == WORKER_LIVE ? worker->bus->waiting(worker->consumer, slot->partition) : 0;
	pthread_mutex_lock(&worker->lock);
	slot->look.state = state;
	slot->look.waiting = waiting;
	if (state == WORKER_LIVE || (state == WORKER_EMPTY && !slot->wanted))
		slot->look.trouble[0] = '\0';
	if (slot->lane != NULL) {
		slot->look.next_offset = lane_next_offset(slot->lane);
		slot->look.clock_ms = shard_clock_ms(lane_shard(slot->lane));
	}
	pthread_mutex_unlock(&worker->lock);
}

void worker_set_trouble(struct worker *worker, struct slot *slot, const char *trouble)
{
	pthread_mutex_lock(&worker->lock);
	snprintf(slot->look.trouble, sizeof slot->look.trouble, "%s", trouble);
	pthread_mutex_unlock(&worker->lock);
}

void worker_set_place(struct worker *worker, struct slot *slot, struct lane *lane)
{
	pthread_mutex_lock(&worker->lock);
	slot->look.next_offset = lane_next_offset(lane);
	slot->look.clock_ms = shard_clock_ms(lane_shard(lane));
	pthread_mutex_unlock(&worker->lock);
}

static void fold_tally(struct worker *worker, struct lane *lane, bool subtract)
{
	struct rulebook *book = worker->options.book;
	tally_fold(worker->retired, lane_tally(lane), subtract, rulebook_policy(book, rulebook_newest(book)));
}

void worker_add_lane(struct worker *worker, struct slot *slot, struct lane *lane)
{
	pthread_mutex_lock(&worker->lock);
	slot->lane = lane;
	worker->lanes[worker->lane_count++] = lane;
	if (worker->options.assignment != NULL)
		fold_tally(worker, lane, true);
	pthread_mutex_unlock(&worker->lock);
}

void worker_remove_lane(struct worker *worker, struct slot *slot)
{
	struct lane *lane = slot->lane;
	pthread_mutex_lock(&worker->lock);
	slot->lane = NULL;
	for (uint32_t i = 0; i < worker->lane_count; i++)
		if (worker->lanes[i] == lane)
			worker->lanes[i--] = worker->lanes[--worker->lane_count];
	fold_tally(worker, lane, false);
	pthread_mutex_unlock(&worker->lock);
	lane_free(lane);
}

static void add_shard(struct shard_stats *sum, const struct shard *shard)
{
	struct shard_stats stats;
	shard_stats(shard, &stats);
	sum->buckets += stats.buckets;
	sum->spilled += stats.spilled;
	sum->bytes += stats.bytes;
	sum->evicted_segments += stats.evicted_segments;
	sum->evictions += stats.evictions;
	sum->loads += stats.loads;
	sum->forgotten += stats.forgotten;
}

/* While it works, what is received is judged by now, or queued; behind it there may be offsets that no message has. */
static uint64_t place_of(const struct worker *worker, const struct slot *slot)
{
	uint64_t judged = lane_next_offset(slot->lane);
	if (slot->state != WORKER_LIVE || slot->queued > 0 || !worker_works(worker))
		return judged;
	uint64_t read = worker->bus->position(worker->consumer, slot->partition);
	return read > judged ? read : judged;
}

static void refresh_looks(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	for (uint32_t i = 0; i < worker->slot_count; i++) {
		struct slot *slot = &worker->slots[i];
		if (slot->lane == NULL)
			continue;
		slot->look.next_offset = place_of(worker, slot);
		slot->look.waiting = worker->bus->waiting(worker->consumer, slot->partition);
		slot->look.clock_ms = shard_clock_ms(lane_shard(slot->lane));
	}
	pthread_mutex_unlock(&worker->lock);
}

static void refresh_gauges(struct worker *worker, int64_t now_ms)
{
	struct shard_stats sum = {0};
	int64_t oldest_ms = 0;
	for (uint32_t i = 0; i < worker->slot_count; i++) {
		struct slot *slot = &worker->slots[i];
		if (slot->lane == NULL)
			continue;
		add_shard(&sum, lane_shard(slot->lane));
		if (worker_has(slot) && !worker_is_stored(slot) && now_ms - slot->safe_ms > oldest_ms)
			oldest_ms = now_ms - slot->safe_ms;
	}
	weir_counter_set(&worker->stats.buckets, sum.buckets);
	weir_counter_set(&worker->stats.spilled, sum.spilled);
	weir_counter_set(&worker->stats.bytes, sum.bytes);
	weir_counter_set(&worker->stats.evicted_segments, sum.evicted_segments);
	weir_counter_set(&worker->stats.evictions, sum.evictions);
	weir_counter_set(&worker->stats.loads, sum.loads);
	weir_counter_set(&worker->stats.forgotten, sum.forgotten);
	weir_counter_set(&worker->stats.checkpoint_age_ms, (uint64_t)oldest_ms);
}

void worker_refresh(struct worker *worker, bool all)
{
	int64_t now_ms = weir_monotonic_ms();
	if (all || now_ms >= worker->looks_due_ms) {
		refresh_looks(worker);
		worker->looks_due_ms = now_ms + LOOKS_MS;
	}
	if (all || now_ms >= worker->gauges_due_ms) {
		refresh_gauges(worker, now_ms);
		worker->gauges_due_ms = now_ms + GAUGES_MS;
	}
}

const struct worker_stats *worker_stats(const struct worker *worker)
{
	return &worker->stats;
}

struct lane *const *worker_lanes(const struct worker *worker, uint32_t *count)
{
	*count = worker->lane_count;
	return worker->lanes;
}

static void add_zone(struct worker_zone *numbers, const struct tally_zone *zone)
{
	if (zone == NULL)
		return;
	numbers->passed += zone->passed;
	numbers->blocked += zone->blocked;
	numbers->late += zone->late;
	numbers->decisions += zone->decisions;
}

void worker_zone(struct worker *worker, uint32_t zone_id, struct worker_zone *numbers)
{
	*numbers = (struct worker_zone){0};
	pthread_mutex_lock(&worker->lock);
	add_zone(numbers, tally_zone(worker->retired, zone_id));
	for (uint32_t i = 0; i < worker->lane_count; i++)
		add_zone(numbers, tally_zone(lane_tally(worker->lanes[i]), zone_id));
	pthread_mutex_unlock(&worker->lock);
}

void worker_look(struct worker *worker, uint32_t partition, struct worker_partition *look)
{
	const struct slot *slot = worker_slot(worker, partition);
	pthread_mutex_lock(&worker->lock);
	*look = slot->look;
	pthread_mutex_unlock(&worker->lock);
	look->messages = weir_counter_read(&slot->messages);
	look->bytes = weir_counter_read(&slot->bytes);
}
