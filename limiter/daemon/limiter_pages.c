/*
 * What operators ask a limiter: is it well, is it ready, what does it do. Ready
 * is who has all that the group gave it; not well is who needs a person.
 */
#include "limiter/daemon/internal.h"

#include "common/base/alloc.h"
#include "limiter/daemon/limiter_metrics.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- healthy ---- */

static bool healthy(void *context, struct weir_text *why)
{
	const struct limiter *limiter = context;
	if (atomic_load(&limiter->phase) == LIMITER_CONNECTING)
		return true; /* it waits for its servers, which are not its fault: not ready, but well */
	bool good = true;
	for (uint32_t i = 0; i < limiter->worker_count && good; i++)
		good = !worker_ended(limiter->workers[i]) || atomic_load(&limiter->phase) == LIMITER_STOPPING;
	if (!good || weir_membership_failed(limiter->membership)) {
		weir_text_puts(why, "a part of it has ended\n");
		return false;
	}
	for (uint32_t partition = 0; limiter->worker_count > 0 && partition < limiter->bus->partitions; partition++) {
		struct worker_partition look;
		limiter_look(limiter, partition, &look);
		if (look.trouble[0] == '\0')
			continue;
		weir_text_printf(why, "partition %u stands still: %s\n", partition, look.trouble);
		good = false;
	}
	return good;
}

/* ---- ready ---- */

static bool ready(void *context, struct weir_text *why)
{
	const struct limiter *limiter = context;
	int phase = atomic_load(&limiter->phase);
	if (phase != LIMITER_WORKING) {
		weir_text_puts(why, phase == LIMITER_CONNECTING ? "waiting for the servers\n" : "stopping\n");
		return false;
	}
	bool *given = weir_alloc(limiter->bus->partitions, sizeof *given);
	uint32_t count, missing = 0, first = 0;
	bool spoken = weir_share_get(limiter->share, given, &count) > 0;
	for (uint32_t partition = limiter->bus->partitions; partition-- > 0;) {
		struct worker_partition look;
		limiter_look(limiter, partition, &look);
		if (!given[partition] || look.state == WORKER_LIVE)
			continue;
		missing++;
		first = partition;
	}
	free(given);
	if (!spoken)
		weir_text_puts(why, "the group has not said which partitions are ours\n");
	else if (missing > 0 && rulebook_newest(limiter->book) == 0)
		weir_text_puts(why, "there is no policy yet: run `weir policy apply`\n");
	else if (missing > 0)
		weir_text_printf(why, "%u of %u partitions are not here yet, partition %u first\n", missing, count, first);
	return spoken && missing == 0;
}

/* ---- metrics ---- */

static void partition_metrics(const struct limiter *limiter, struct weir_text *page)
{
	uint64_t counts[WORKER_STATE_COUNT] = {0};
	for (uint32_t partition = 0; partition < limiter->bus->partitions; partition++) {
		struct worker_partition look;
		limiter_look(limiter, partition, &look);
		counts[look.state]++;
	}
	uint32_t given;
	weir_share_get(limiter->share, NULL, &given);
	weir_metrics_gauge(page, "weir_limiter_partitions_given", "Partitions that the group has given to this process.",
	                   given);
	weir_metrics_family(page, "weir_limiter_partitions", "gauge",
	                    "Partitions of this process by what becomes of them.");
	for (int state = WORKER_TAKING; state < WORKER_STATE_COUNT; state++) {
		struct weir_label label = {"state", weir_span_of(worker_state_name((enum worker_state)state))};
		weir_metrics_uint(page, "weir_limiter_partitions", &label, 1, counts[state]);
	}
}

static void thread_metrics(const struct limiter_parts *parts, struct weir_text *page)
{
	weir_metrics_family(page, "weir_limiter_busy_seconds_total", "counter", "Time in which a thread judged.");
	for (uint32_t i = 0; i < parts->worker_count; i++) {
		char number[12];
		snprintf(number, sizeof number, "%u", i);
		struct weir_label label = {"thread", weir_span_of(number)};
		double seconds = atomic_load(&worker_stats(parts->workers[i])->batch.sum);
		weir_metrics_double(page, "weir_limiter_busy_seconds_total", &label, 1, seconds);
	}
}

static void metrics(void *context, struct weir_text *page)
{
	const struct limiter *limiter = context;
	int phase = atomic_load(&limiter->phase);
	weir_metrics_gauge(page, "weir_limiter_working", "Whether it has its servers, and is not about to end.",
	                   phase == LIMITER_WORKING);
	if (phase == LIMITER_CONNECTING)
		return;
	struct limiter_parts parts = {
		.workers = limiter->workers, .worker_count = limiter->worker_count, .book = limiter->book};
	limiter_metrics(&parts, page);
	partition_metrics(limiter, page);
	weir_metrics_counter(page, "weir_limiter_partitions_taken_total", "Partitions that came to this process.",
	                     limiter_sum(&parts, offsetof(struct worker_stats, taken)));
	weir_metrics_counter(page, "weir_limiter_partitions_left_total", "Partitions that went.",
	                     limiter_sum(&parts, offsetof(struct worker_stats, given_up)));
	weir_metrics_counter(page, "weir_limiter_fenced_total", "Partitions that were found to be another's.",
	                     limiter_sum(&parts, offsetof(struct worker_stats, fenced)));
	weir_metrics_counter(page, "weir_limiter_dead_letters_total", "Messages that were no frames, and were kept.",
	                     limiter_sum(&parts, offsetof(struct worker_stats, dead_letters)));
	weir_metrics_counter(page, "weir_limiter_dead_letters_dropped_total",
	                     "Messages that were no frames, and too many to be kept.",
	                     limiter_sum(&parts, offsetof(struct worker_stats, dead_letters_dropped)));
	weir_metrics_counter(page, "weir_limiter_reminders_total",
	                     "Operators' blocks published again, as they outlast the topic's retention.",
	                     limiter_sum(&parts, offsetof(struct worker_stats, reminders)));
	weir_metrics_counter(page, "weir_limiter_ahead_total",
	                     "Frames and commands whose sender's clock is ahead of the log's.",
	                     limiter_sum(&parts, offsetof(struct worker_stats, ahead)));
	weir_metrics_counter(page, "weir_limiter_moves_total",
	                     "Partitions moved from one thread to another, which had less to do.",
	                     balance_moves(limiter->balance));
	thread_metrics(&parts, page);
	limiter_histogram(&parts, page, "weir_limiter_take_seconds",
	                  "From a partition's being given to its being live: waiting for the last owner, taking, reading.",
	                  offsetof(struct worker_stats, take));
	weir_lag_metrics(limiter->lag, page, "weir_limiter_lag_messages", "Messages of the log that are not judged yet.",
	                 "weir_limiter_lag_seconds", "Since the newest judged message was sent, where there are more.");
}

void limiter_pages_init(struct limiter *limiter)
{
	limiter->pages =
		(struct weir_daemon_pages){.context = limiter, .metrics = metrics, .healthy = healthy, .ready = ready};
}
