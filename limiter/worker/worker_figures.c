/* SPDX-License-Identifier: Apache-2.0 */
/* What other threads see of a worker: updated periodically by its thread, read by any. */
#include "limiter/worker/internal.h"

#include "common/base/clock.h"

enum { GAUGES_MS = 1000, PLACES_MS = 100 };

/* ---- set ---- */

static void add_shard(struct shard_stats *sum, const struct shard *shard)
{
	struct shard_stats stats;
	shard_stats(shard, &stats);
	sum->buckets += stats.buckets;
	sum->spilled += stats.spilled;
	sum->bytes += stats.bytes;
	sum->index_bytes += stats.index_bytes;
	sum->evicted_segments += stats.evicted_segments;
	sum->evictions += stats.evictions;
	sum->loads += stats.loads;
	sum->recalls += stats.recalls;
	sum->swap_failures += stats.swap_failures;
	sum->swap_file_bytes += stats.swap_file_bytes;
	sum->forgotten += stats.forgotten;
}

/* For how long something of the partition has been in no stored checkpoint. */
static int64_t unstored_ms(const struct partition *partition, int64_t now_ms)
{
	const struct checkpointing *checkpointing = &partition->checkpointing;
	if (!partition_state_works(partition->state) || checkpointing_is_done(checkpointing, partition->lane))
		return 0;
	return now_ms - checkpointing->safe_ms;
}

static void refresh_gauges(struct worker *worker, int64_t now_ms)
{
	struct worker_stats *stats = &worker->core.stats;
	struct shard_stats sum = {0};
	int64_t oldest_ms = 0, clock_ms = 0;
	uint64_t pending = 0, unacknowledged = 0;
	for (uint32_t i = 0; i < worker->partition_count; i++) {
		const struct partition *partition = &worker->partitions[i];
		if (partition->lane == NULL)
			continue;
		add_shard(&sum, lane_shard(partition->lane));
		if (partition->checks.lane != NULL)
			pending += lane_checks_pending(partition->lane);
		unacknowledged += partition->checks.unacknowledged;
		if (shard_clock_ms(lane_shard(partition->lane)) > clock_ms)
			clock_ms = shard_clock_ms(lane_shard(partition->lane));
		int64_t age_ms = unstored_ms(partition, now_ms);
		oldest_ms = age_ms > oldest_ms ? age_ms : oldest_ms;
	}
	weir_counter_set(&stats->buckets, sum.buckets);
	weir_counter_set(&stats->spilled, sum.spilled);
	weir_counter_set(&stats->bytes, sum.bytes);
	weir_counter_set(&stats->index_bytes, sum.index_bytes);
	weir_counter_set(&stats->evicted_segments, sum.evicted_segments);
	weir_counter_set(&stats->evictions, sum.evictions);
	weir_counter_set(&stats->loads, sum.loads);
	weir_counter_set(&stats->recalls, sum.recalls);
	weir_counter_set(&stats->swap_failures, sum.swap_failures);
	weir_counter_set(&stats->swap_file_bytes, sum.swap_file_bytes);
	weir_counter_set(&stats->forgotten, sum.forgotten);
	weir_counter_set(&stats->checks_pending, pending);
	weir_counter_set(&stats->checks_unacknowledged, unacknowledged);
	weir_counter_set(&stats->checkpoint_age_ms, (uint64_t)oldest_ms);
	weir_counter_set(&stats->clock_ms, (uint64_t)clock_ms);
}

void worker_refresh(struct worker *worker, bool all)
{
	int64_t now_ms = weir_monotonic_ms();
	if (all || now_ms >= worker->places_due_ms) {
		for (uint32_t i = 0; i < worker->partition_count; i++)
			partition_show(&worker->partitions[i]);
		worker->places_due_ms = now_ms + PLACES_MS;
	}
	if (all || now_ms >= worker->gauges_due_ms) {
		refresh_gauges(worker, now_ms);
		worker->gauges_due_ms = now_ms + GAUGES_MS;
	}
}

/* ---- read ---- */

const struct worker_stats *worker_stats(const struct worker *worker)
{
	return &worker->core.stats;
}

uint32_t worker_lanes(const struct worker *worker, struct lane **lanes)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < worker->partition_count; i++)
		if (worker->partitions[i].lane != NULL)
			lanes[count++] = worker->partitions[i].lane;
	return count;
}

void worker_zone(struct worker *worker, uint32_t zone_id, struct worker_zone *numbers)
{
	view_zone(&worker->view, zone_id, numbers);
}

void worker_view(struct worker *worker, uint32_t partition, struct worker_partition *look)
{
	view_partition(&worker->view, partition, look);
	look->messages = weir_counter_read(&worker->partitions[partition].messages);
	look->bytes = weir_counter_read(&worker->partitions[partition].bytes);
}
