/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages are made when they are asked for, from counters that their threads own:
 * nothing is counted twice, and nobody waits for a reader.
 */
#include "limiter/daemon/limiter_metrics.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stddef.h>
#include <stdlib.h>

enum {
	VERDICTS,
	LATE,
	DECISIONS,
	OVER,
	EVENTS,
	REPEATED_EVENTS,
	SHARED_FRAMES,
	FRAMES,
	MALFORMED_FRAMES,
	OVERRIDES,
	BUCKETS,
	BUCKETS_SPILLED,
	EVICTED_SEGMENTS,
	STATE_BYTES,
	INDEX_BYTES,
	EVICTIONS,
	SEGMENT_LOADS,
	BUCKET_RECALLS,
	SWAP_FAILURES,
	SWAP_FILE_BYTES,
	FORGOTTEN,
	CHECKPOINTS,
	CHECKPOINT_AGE,
	CLOCK_AHEAD,
	CHECKPOINT,
	BATCH,
	DELAY,
	MEMORY_LIMIT,
	METRIC_COUNT,
};

static const struct weir_metric metrics[METRIC_COUNT] = {
	[VERDICTS] = {"weir_limiter_verdicts_total", WEIR_COUNTER, "verdicts",
                  WEIR_LABELS({"zone", "the zone's name"}, {"verdict", "`pass`, `block`"}),
                  "Verdicts on events, by zone. An event has one in each of its zones."},
	[LATE] =
		{"weir_limiter_late_total", WEIR_COUNTER, "events", WEIR_LABELS({"zone", "the zone's name"}),
         "Events that came too late for at least one of the zone's limits, which let them pass. If this grows, a "
         "source is far behind, a clock is wrong, or a window is too short for how the logs arrive: a sliding window's "
         "lateness judges them all the same."},
	[DECISIONS] = {"weir_limiter_decisions_total", WEIR_COUNTER, "decisions", WEIR_LABELS({"zone", "the zone's name"}),
                   "Decisions published."},
	[OVER] =
		{"weir_limiter_decisions_over_total", WEIR_COUNTER, "decisions", WEIR_NO_LABELS,
         "Blocks whose end had passed as they were published: nobody is blocked by them. That is right while a backlog or "
         "an old log is read. If it grows later, a time_zone is missing, a clock is wrong, or lines come late."},
	[EVENTS] = {"weir_limiter_events_total", WEIR_COUNTER, "events", WEIR_NO_LABELS, "Events judged."},
	[REPEATED_EVENTS] =
		{"weir_limiter_repeated_events_total", WEIR_COUNTER, "events", WEIR_NO_LABELS,
         "Events dropped because they had been judged before: after a failure, a collector resends what was "
         "not acknowledged."},
	[SHARED_FRAMES] =
		{"weir_limiter_shared_source_frames_total", WEIR_COUNTER, "frames", WEIR_NO_LABELS,
         "Frames of collectors' own sources that go back and forth as one collector's cannot, also while its producers are made "
         "anew: two collectors have one identity, as if a state directory was copied, and events of one are dropped as repeated ones of the other."},
	[FRAMES] = {"weir_limiter_frames_total", WEIR_COUNTER, "frames", WEIR_NO_LABELS,
                "Frames judged: messages on the events topic."},
	[MALFORMED_FRAMES] =
		{"weir_limiter_malformed_frames_total", WEIR_COUNTER, "messages", WEIR_NO_LABELS,
         "Messages on the events topic that are not frames, and commands that failed. The dead letters hold "
         "them; something other than weir may be writing there."},
	[OVERRIDES] =
		{"weir_limiter_overrides_total", WEIR_COUNTER, "commands",
         WEIR_LABELS({"command", "`block`, `lift`, `allow`, `override`"}),
         "Operators' commands that took effect. A command for a prefix or a network counts once in each partition."},
	[BUCKETS] = {"weir_limiter_buckets", WEIR_GAUGE, "buckets", WEIR_NO_LABELS,
                 "Buckets in memory: one for each key of a zone that still has state."},
	[BUCKETS_SPILLED] = {"weir_limiter_buckets_spilled", WEIR_GAUGE, "buckets", WEIR_NO_LABELS,
                         "Buckets in the store but not in memory, in the segments read since the start."},
	[EVICTED_SEGMENTS] = {"weir_limiter_evicted_segments", WEIR_GAUGE, "segments", WEIR_NO_LABELS,
                          "Segments (groups of buckets) with some buckets only in the store."},
	[STATE_BYTES] =
		{"weir_limiter_state_bytes", WEIR_GAUGE, "bytes", WEIR_NO_LABELS,
         "Memory of all buckets and their index. limiter.memory is its ceiling, unless the index alone exceeds it."},
	[INDEX_BYTES] =
		{"weir_limiter_index_bytes", WEIR_GAUGE, "bytes", WEIR_NO_LABELS,
         "Of weir_limiter_state_bytes, what finds buckets, those that only the store has among them. Above half of "
         "limiter.memory it is too small: the log says how much is enough."},
	[EVICTIONS] = {"weir_limiter_evictions_total", WEIR_COUNTER, "buckets", WEIR_NO_LABELS,
                   "Buckets evicted from memory to stay below limiter.memory. The store still has them."},
	[SEGMENT_LOADS] = {"weir_limiter_segment_loads_total", WEIR_COUNTER, "segments", WEIR_NO_LABELS,
                       "Segments read back from the store."},
	[BUCKET_RECALLS] =
		{"weir_limiter_bucket_recalls_total", WEIR_COUNTER, "buckets", WEIR_NO_LABELS,
         "Evicted buckets read back from the file in the state directory. If this keeps growing as fast as "
         "weir_limiter_verdicts_total, the buckets in use do not fit limiter.memory: raise it, or add a limiter."},
	[SWAP_FAILURES] =
		{"weir_limiter_swap_failures_total", WEIR_COUNTER, "failures", WEIR_NO_LABELS,
         "Times that evicted buckets could not be written to the file in the state directory, or read back. The store has "
         "them: nothing is lost, but reading them there is slower."},
	[SWAP_FILE_BYTES] =
		{"weir_limiter_swap_file_bytes", WEIR_GAUGE, "bytes", WEIR_NO_LABELS,
         "Disk that evicted buckets take in the state directory, beside the store. At 16 times limiter.memory it grows no "
         "more: further ones are in the store only, and reading them there is slower."},
	[FORGOTTEN] = {"weir_limiter_forgotten_total", WEIR_COUNTER, "buckets", WEIR_NO_LABELS,
                   "Buckets removed because no verdict can depend on them anymore."},
	[CHECKPOINTS] = {"weir_limiter_checkpoints_total", WEIR_COUNTER, "checkpoints", WEIR_NO_LABELS,
                     "Checkpoints stored."},
	[CHECKPOINT_AGE] = {"weir_limiter_unsaved_age_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS,
                        "Age of the oldest change that is in no stored checkpoint. If this grows, the store is slow or "
                        "down; a restart judges everything since then again."},
	[CLOCK_AHEAD] =
		{"weir_limiter_clock_ahead_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS,
         "How far a partition's clock, the highest time at which its log was written to, is ahead of this machine's clock, for "
         "the partition furthest ahead; 0 where none is. Above a minute, a clock was ahead or this one was set back: what "
         "operators commanded before may be over."},
	[CHECKPOINT] = {"weir_limiter_checkpoint_seconds", WEIR_HISTOGRAM, "seconds", WEIR_NO_LABELS,
                    "Time that storing a checkpoint takes, with its retries."},
	[BATCH] = {"weir_limiter_batch_seconds", WEIR_HISTOGRAM, "seconds", WEIR_NO_LABELS,
               "Time from receiving a batch of frames to the last verdict on it."},
	[DELAY] = {"weir_limiter_decision_delay_seconds", WEIR_HISTOGRAM, "seconds", WEIR_NO_LABELS,
               "Time from the line that breached a limit, by the time in it, until its decision is on its topic and "
               "acknowledged. Many formats have whole seconds only. If this grows, some part before a gateway is late, "
               "or a clock is wrong."},
	[MEMORY_LIMIT] = {"weir_limiter_memory_limit_bytes", WEIR_GAUGE, "bytes", WEIR_NO_LABELS,
                      "limiter.memory, the ceiling of weir_limiter_state_bytes."},
};

const struct weir_metric limiter_daemon_metrics[LIMITER_DAEMON_METRIC_COUNT] = {
	[LIMITER_IS_WORKING] = {"weir_limiter_working", WEIR_GAUGE, "1 or 0", WEIR_NO_LABELS,
                            "1 while the limiter is connected to its servers and not stopping."},
	[LIMITER_PARTITIONS_GIVEN] = {"weir_limiter_partitions_given", WEIR_GAUGE, "partitions", WEIR_NO_LABELS,
                                  "Partitions that the consumer group has assigned to this process."},
	[LIMITER_PARTITIONS] =
		{"weir_limiter_partitions", WEIR_GAUGE, "partitions",
         WEIR_LABELS({"state", "`taking`, `live`, `paused`, `waiting`, `leaving`, `dropped`, `stuck`"}),
         "Partitions of this process, each in one state. Only those that are `live` are judged. `paused` ones wait for "
         "the store, `waiting` ones for the brokers or the events topic, `stuck` ones for an operator or another owner: /healthz, /readyz and "
         "the log say why."},
	[LIMITER_NOT_LIVE] =
		{"weir_limiter_not_live_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS,
         "For how long the partition that waits longest has been assigned to this process and not been judged, while it "
         "is neither paused nor stuck. 0 where none waits; moving one takes seconds."},
	[LIMITER_PARTITIONS_TAKEN] = {"weir_limiter_partitions_taken_total", WEIR_COUNTER, "partitions", WEIR_NO_LABELS,
                                  "Partitions that this process, or one of its threads, took over."},
	[LIMITER_PARTITIONS_LEFT] = {"weir_limiter_partitions_left_total", WEIR_COUNTER, "partitions", WEIR_NO_LABELS,
                                 "Partitions that this process, or one of its threads, gave up."},
	[LIMITER_FENCED] =
		{"weir_limiter_fenced_total", WEIR_COUNTER, "partitions", WEIR_NO_LABELS,
         "Partitions that turned out to have another owner: this limiter had stalled for longer than its "
         "session timeout. Nothing is lost or counted twice."},
	[LIMITER_DEAD_LETTERS] =
		{"weir_limiter_dead_letters_total", WEIR_COUNTER, "messages", WEIR_NO_LABELS,
         "Messages counted by weir_limiter_malformed_frames_total that were kept on the dead-letter topic."},
	[LIMITER_DEAD_LETTERS_DROPPED] =
		{"weir_limiter_dead_letters_dropped_total", WEIR_COUNTER, "messages", WEIR_NO_LABELS,
         "Messages counted by weir_limiter_malformed_frames_total that were not kept, because they exceeded "
         "deadletter.rate."},
	[LIMITER_REMINDERS] =
		{"weir_limiter_reminders_total", WEIR_COUNTER, "decisions", WEIR_NO_LABELS,
         "Decisions on operators' blocks that were published again, because the blocks outlast the topic's "
         "retention."},
	[LIMITER_AHEAD] = {"weir_limiter_ahead_total", WEIR_COUNTER, "messages", WEIR_NO_LABELS,
                       "Frames and commands whose sender's clock is ahead of the brokers'. Correct that clock: the log "
                       "names the sender."},
	[LIMITER_MOVES] = {"weir_limiter_moves_total", WEIR_COUNTER, "partitions", WEIR_NO_LABELS,
                       "Partitions moved from a busy thread to a less busy one."},
	[LIMITER_BUSY] = {"weir_limiter_busy_seconds_total", WEIR_COUNTER, "seconds",
                      WEIR_LABELS({"thread", "its number, from 0"}),
                      "Time that a thread has spent judging. A rate near 1 means a saturated thread: add a limiter, or "
                      "raise limiter.threads. What waits for the store is in "
                      "weir_limiter_segment_wait_seconds_total."},
	[LIMITER_TAKE] = {"weir_limiter_take_seconds", WEIR_HISTOGRAM, "seconds", WEIR_NO_LABELS,
                      "Time from a partition's assignment until it is live: waiting for its previous owner, taking it "
                      "over, reading its checkpoint."},
	[LIMITER_LAG_MESSAGES] =
		{"weir_limiter_lag_messages", WEIR_GAUGE, "messages", WEIR_NO_LABELS,
         "Messages on the events topic that have not been judged. If this grows, add limiters or threads. "
         "Absent while unknown, as in an outage of the bus."},
	[LIMITER_LAG_SECONDS] =
		{"weir_limiter_lag_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS,
         "How long the oldest message that is not judged has been on its topic, for the partition furthest behind; 0 "
         "if everything is judged. What was there before this process started counts by the time of its sender. "
         "Absent while unknown, as in an outage of the bus."},
	[LIMITER_PUBLISH_FAILURES] =
		{"weir_limiter_publish_failures_total", WEIR_COUNTER, "failures", WEIR_NO_LABELS,
         "Times that a message could not be published. Its partitions then go back to their last checkpoints, and what "
         "follows these is judged and published again. The log says which topic."},
	[LIMITER_PRODUCER_RESTARTS] = {"weir_limiter_producer_restarts_total", WEIR_COUNTER, "producers", WEIR_NO_LABELS,
                                   "Producers replaced because a message could not be published."},
	[LIMITER_LOAD_WAIT] =
		{"weir_limiter_segment_wait_seconds_total", WEIR_COUNTER, "seconds", WEIR_NO_LABELS,
         "Time that partitions have waited for segments to be read back from the store, or for a policy, summed over "
         "partitions. If its rate nears the number of partitions, judging is as slow as the store: raise "
         "limiter.memory."},
};

const struct weir_metric_table limiter_metric_table = {metrics, METRIC_COUNT};
const struct weir_metric_table limiter_daemon_metric_table = {limiter_daemon_metrics, LIMITER_DAEMON_METRIC_COUNT};

uint64_t limiter_sum(const struct limiter_parts *parts, size_t counter)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < parts->worker_count; i++) {
		const char *stats = (const char *)worker_stats(parts->workers[i]);
		total += weir_counter_read((const struct weir_counter *)(const void *)(stats + counter));
	}
	return total;
}

#define SUM(parts, member) limiter_sum(parts, offsetof(struct worker_stats, member))

struct worker_zone limiter_zone(const struct limiter_parts *parts, uint32_t zone_id)
{
	struct worker_zone sum = {0};
	for (uint32_t i = 0; i < parts->worker_count; i++) {
		struct worker_zone numbers;
		worker_zone(parts->workers[i], zone_id, &numbers);
		sum.passed += numbers.passed;
		sum.blocked += numbers.blocked;
		sum.late += numbers.late;
		sum.decisions += numbers.decisions;
	}
	return sum;
}

static void zone_metrics(const struct limiter_parts *parts, struct weir_text *page)
{
	const struct weir_policy *policy = policy_registry_policy(parts->registry, policy_registry_newest(parts->registry));
	weir_metrics_family(page, &metrics[VERDICTS]);
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct worker_zone numbers = limiter_zone(parts, policy->zones[i].id);
		struct weir_span passed[] = {weir_span_of(policy->zones[i].name), weir_span_of("pass")};
		struct weir_span blocked[] = {weir_span_of(policy->zones[i].name), weir_span_of("block")};
		weir_metrics_uint(page, &metrics[VERDICTS], passed, numbers.passed);
		weir_metrics_uint(page, &metrics[VERDICTS], blocked, numbers.blocked);
	}
	weir_metrics_family(page, &metrics[LATE]);
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct weir_span zone = weir_span_of(policy->zones[i].name);
		weir_metrics_uint(page, &metrics[LATE], &zone, limiter_zone(parts, policy->zones[i].id).late);
	}
	weir_metrics_family(page, &metrics[DECISIONS]);
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct weir_span zone = weir_span_of(policy->zones[i].name);
		weir_metrics_uint(page, &metrics[DECISIONS], &zone, limiter_zone(parts, policy->zones[i].id).decisions);
	}
}

void limiter_histogram(const struct limiter_parts *parts, struct weir_text *page, const struct weir_metric *metric,
                       const struct weir_histogram_scale *scale, size_t member)
{
	const struct weir_histogram **histograms = weir_alloc(parts->worker_count, sizeof(const struct weir_histogram *));
	for (uint32_t i = 0; i < parts->worker_count; i++) {
		const char *stats = (const char *)worker_stats(parts->workers[i]);
		histograms[i] = (const struct weir_histogram *)(const void *)(stats + member);
	}
	weir_metrics_histogram(page, metric, scale, histograms, parts->worker_count);
	free(histograms);
}

static void override_metrics(const struct limiter_parts *parts, struct weir_text *page)
{
	weir_metrics_family(page, &metrics[OVERRIDES]);
	for (int kind = 0; kind < OVERRIDE_KIND_COUNT; kind++) {
		struct weir_span name = weir_span_of(override_kind_name((enum override_kind)kind));
		size_t counter = offsetof(struct worker_stats, overrides) + (size_t)kind * sizeof(struct weir_counter);
		weir_metrics_uint(page, &metrics[OVERRIDES], &name, limiter_sum(parts, counter));
	}
}

static double checkpoint_age_s(const struct limiter_parts *parts)
{
	uint64_t oldest_ms = 0;
	for (uint32_t i = 0; i < parts->worker_count; i++) {
		uint64_t age_ms = weir_counter_read(&worker_stats(parts->workers[i])->checkpoint_age_ms);
		oldest_ms = age_ms > oldest_ms ? age_ms : oldest_ms;
	}
	return (double)oldest_ms / 1000.0;
}

int64_t limiter_clock_ahead_ms(const struct limiter_parts *parts)
{
	int64_t ahead_ms = 0, now_ms = weir_wall_ms();
	for (uint32_t i = 0; i < parts->worker_count; i++) {
		int64_t clock_ms = (int64_t)weir_counter_read(&worker_stats(parts->workers[i])->clock_ms);
		ahead_ms = clock_ms - now_ms > ahead_ms ? clock_ms - now_ms : ahead_ms;
	}
	return ahead_ms;
}

void limiter_metrics(const struct limiter_parts *parts, struct weir_text *page)
{
	if (policy_registry_newest(parts->registry) > 0)
		zone_metrics(parts, page);
	weir_metrics_counter(page, &metrics[OVER], SUM(parts, over));
	weir_metrics_counter(page, &metrics[EVENTS], SUM(parts, events));
	weir_metrics_counter(page, &metrics[REPEATED_EVENTS], SUM(parts, repeated));
	weir_metrics_counter(page, &metrics[SHARED_FRAMES], SUM(parts, shared));
	weir_metrics_counter(page, &metrics[FRAMES], SUM(parts, frames));
	weir_metrics_counter(page, &metrics[MALFORMED_FRAMES], SUM(parts, malformed));
	override_metrics(parts, page);
	weir_metrics_gauge(page, &metrics[BUCKETS], (double)SUM(parts, buckets));
	weir_metrics_gauge(page, &metrics[BUCKETS_SPILLED], (double)SUM(parts, spilled));
	weir_metrics_gauge(page, &metrics[EVICTED_SEGMENTS], (double)SUM(parts, evicted_segments));
	weir_metrics_gauge(page, &metrics[STATE_BYTES], (double)SUM(parts, bytes));
	weir_metrics_gauge(page, &metrics[INDEX_BYTES], (double)SUM(parts, index_bytes));
	weir_metrics_counter(page, &metrics[EVICTIONS], SUM(parts, evictions));
	weir_metrics_counter(page, &metrics[SEGMENT_LOADS], SUM(parts, loads));
	weir_metrics_counter(page, &metrics[BUCKET_RECALLS], SUM(parts, recalls));
	weir_metrics_counter(page, &metrics[SWAP_FAILURES], SUM(parts, swap_failures));
	weir_metrics_gauge(page, &metrics[SWAP_FILE_BYTES], (double)SUM(parts, swap_file_bytes));
	weir_metrics_counter(page, &metrics[FORGOTTEN], SUM(parts, forgotten));
	weir_metrics_counter(page, &metrics[CHECKPOINTS], SUM(parts, checkpoints));
	weir_metrics_gauge(page, &metrics[CHECKPOINT_AGE], checkpoint_age_s(parts));
	weir_metrics_gauge(page, &metrics[CLOCK_AHEAD], (double)limiter_clock_ahead_ms(parts) / 1000.0);
	limiter_histogram(parts, page, &metrics[CHECKPOINT], &weir_latency_scale,
	                  offsetof(struct worker_stats, checkpoint));
	limiter_histogram(parts, page, &metrics[BATCH], &weir_latency_scale, offsetof(struct worker_stats, batch));
	limiter_histogram(parts, page, &metrics[DELAY], &weir_delay_scale, offsetof(struct worker_stats, delay));
	weir_metrics_gauge(page, &metrics[MEMORY_LIMIT], (double)parts->memory_bytes);
}

void limiter_figures(const struct limiter_parts *parts, struct weir_text *members)
{
	weir_text_printf(members, "\"%s\":%llu", metrics[EVENTS].name, (unsigned long long)SUM(parts, events));
	weir_text_printf(members, ",\"%s\":%llu", metrics[BUCKETS].name, (unsigned long long)SUM(parts, buckets));
	weir_text_printf(members, ",\"%s\":%llu", metrics[BUCKETS_SPILLED].name, (unsigned long long)SUM(parts, spilled));
	weir_text_printf(members, ",\"%s\":%llu", metrics[STATE_BYTES].name, (unsigned long long)SUM(parts, bytes));
	weir_text_printf(members, ",\"%s\":%.3f", metrics[CHECKPOINT_AGE].name, checkpoint_age_s(parts));
}
