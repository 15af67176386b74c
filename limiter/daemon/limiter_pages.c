/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health, readiness and status of a limiter. It is ready if all partitions that the
 * group assigned are live; it is unhealthy if it needs an operator.
 */
#include "limiter/daemon/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/cluster/store_metrics.h"
#include "limiter/daemon/limiter_metrics.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- healthy ---- */

static bool healthy(void *context, struct weir_text *why)
{
	const struct limiter *limiter = context;
	if (atomic_load(&limiter->phase) < LIMITER_WORKING)
		return true; /* it waits for its servers, which are not its fault: not ready, but well */
	bool good = true;
	for (uint32_t i = 0; i < limiter->worker_count && good; i++)
		good = !worker_ended(limiter->workers[i]) || atomic_load(&limiter->phase) == LIMITER_STOPPING;
	if (!good || weir_membership_failed(limiter->membership)) {
		weir_text_puts(why, "one of its threads has stopped\n");
		return false;
	}
	for (uint32_t partition = 0; limiter->worker_count > 0 && partition < limiter->bus->partitions; partition++) {
		struct worker_partition look;
		limiter_view(limiter, partition, &look);
		if (look.error[0] == '\0')
			continue;
		weir_text_printf(why, "partition %u is stopped: %s\n", partition, look.error);
		good = false;
	}
	return good;
}

/* ---- ready ---- */

/* The assigned partitions, by what is done with them. */
struct summary {
	bool spoken; /* the consumer group has assigned some, or none */
	uint32_t given, held, paused, parked, missing;
	uint32_t first_parked, first_missing;
	char error[sizeof((struct worker_partition *)NULL)->error]; /* of first_parked */
};

static void summarize(const struct limiter *limiter, struct summary *sum)
{
	*sum = (struct summary){0};
	bool *given = weir_alloc(limiter->bus->partitions, sizeof *given);
	sum->spoken = weir_assignment_get(limiter->assignment, given, &sum->given) > 0;
	for (uint32_t partition = limiter->bus->partitions; partition-- > 0;) {
		struct worker_partition look;
		limiter_view(limiter, partition, &look);
		sum->held += look.state == WORKER_LIVE || look.state == WORKER_PAUSED;
		if (!given[partition] || look.state == WORKER_LIVE)
			continue;
		if (look.state == WORKER_PAUSED) {
			sum->paused++;
		} else if (look.state == WORKER_PARKED && look.error[0] != '\0') {
			sum->parked++;
			sum->first_parked = partition;
			memcpy(sum->error, look.error, sizeof sum->error);
		} else {
			sum->missing++;
			sum->first_missing = partition;
		}
	}
	free(given);
}

/* What the store said last, where it fails, behind a colon. */
static void put_failure(const struct limiter *limiter, struct weir_text *why)
{
	struct checkpoint_io *failing = checkpoint_io_fails(limiter->checkpoint_writer)   ? limiter->checkpoint_writer
	                                : checkpoint_io_fails(limiter->checkpoint_reader) ? limiter->checkpoint_reader
	                                                                                  : NULL;
	char text[WEIR_ERROR_TEXT_BYTES] = "";
	if (failing != NULL)
		checkpoint_io_failure(failing, text, sizeof text);
	weir_text_printf(why, "%s%s\n", failing != NULL ? ": " : "", text);
}

static void put_paused(const struct limiter *limiter, const struct summary *sum, struct weir_text *why)
{
	weir_text_printf(why, "judging is paused in %u of %u assigned partitions: they wait for the store", sum->paused,
	                 sum->given);
	put_failure(limiter, why);
}

/* Of a bus that works. @return whether all that is assigned is judged */
static bool partitions_ready(const struct limiter *limiter, const struct summary *sum, struct weir_text *why)
{
	if (!sum->spoken) {
		weir_text_puts(why, "the consumer group has not assigned partitions yet\n");
		return false;
	}
	if (sum->missing > 0 && policy_registry_newest(limiter->registry) == 0) {
		weir_text_printf(why, "no policy yet: run `weir policy apply %s`\n",
		                 weir_config_zones_words(limiter->daemon->config));
		return false;
	}
	if (sum->parked > 0)
		weir_text_printf(why, "%u of %u assigned partitions are stopped, starting with partition %u: %s\n", sum->parked,
		                 sum->given, sum->first_parked, sum->error);
	if (sum->paused > 0)
		put_paused(limiter, sum, why);
	if (sum->missing > 0) {
		weir_text_printf(why, "%u of %u assigned partitions are not live yet, starting with partition %u", sum->missing,
		                 sum->given, sum->first_missing);
		put_failure(limiter, why);
	}
	return sum->parked + sum->paused + sum->missing == 0;
}

static bool ready(void *context, struct weir_text *why)
{
	const struct limiter *limiter = context;
	int phase = atomic_load(&limiter->phase);
	if (phase == LIMITER_CONNECTING) {
		weir_bus_kafka_awaits(atomic_load(&limiter->awaited), why);
		return false;
	}
	if (phase != LIMITER_WORKING) {
		weir_text_puts(why, phase == LIMITER_OPENING ? "the store has not answered yet\n" : "stopping\n");
		return false;
	}
	struct summary sum;
	char problem[WEIR_ERROR_TEXT_BYTES];
	summarize(limiter, &sum);
	bool good = weir_bus_kafka_ready(limiter->bus, why);
	if (limiter->bus->ops->problem(limiter->bus, problem, sizeof problem)) {
		weir_text_printf(why, "%u partitions last held\n", sum.held);
		return false;
	}
	return partitions_ready(limiter, &sum, why) && good;
}

/* ---- metrics ---- */

static void partition_metrics(const struct limiter *limiter, struct weir_text *page)
{
	uint64_t counts[WORKER_STATE_COUNT] = {0};
	for (uint32_t partition = 0; partition < limiter->bus->partitions; partition++) {
		struct worker_partition look;
		limiter_view(limiter, partition, &look);
		counts[look.state]++;
	}
	uint32_t given;
	weir_assignment_get(limiter->assignment, NULL, &given);
	weir_metrics_gauge(page, &limiter_daemon_metrics[LIMITER_PARTITIONS_GIVEN], given);
	weir_metrics_family(page, &limiter_daemon_metrics[LIMITER_NOT_LIVE]);
	weir_metrics_double(page, &limiter_daemon_metrics[LIMITER_NOT_LIVE], NULL,
	                    (double)live_watch_age_ms(&limiter->live, weir_monotonic_ms()) / 1000.0);
	uint64_t waiting = 0;
	if (!weir_bus_kafka_serves(limiter->bus, WEIR_TOPIC_EVENTS)) { /* they would judge, but nothing comes */
		waiting = counts[WORKER_LIVE];
		counts[WORKER_LIVE] = 0;
	}
	weir_metrics_family(page, &limiter_daemon_metrics[LIMITER_PARTITIONS]);
	for (int state = WORKER_TAKING; state < WORKER_STATE_COUNT; state++) {
		struct weir_span name = weir_span_of(worker_state_name((enum worker_state)state));
		weir_metrics_uint(page, &limiter_daemon_metrics[LIMITER_PARTITIONS], &name, counts[state]);
	}
	struct weir_span name = weir_span_of("waiting");
	weir_metrics_uint(page, &limiter_daemon_metrics[LIMITER_PARTITIONS], &name, waiting);
}

static void counter_metrics(const struct limiter_parts *parts, struct weir_text *page)
{
	static const struct {
		enum limiter_daemon_metric metric;
		size_t counter;
	} counters[] = {
		{LIMITER_PARTITIONS_TAKEN, offsetof(struct worker_stats, taken)},
		{LIMITER_PARTITIONS_LEFT, offsetof(struct worker_stats, given_up)},
		{LIMITER_FENCED, offsetof(struct worker_stats, fenced)},
		{LIMITER_DEAD_LETTERS, offsetof(struct worker_stats, dead_letters)},
		{LIMITER_DEAD_LETTERS_DROPPED, offsetof(struct worker_stats, dead_letters_dropped)},
		{LIMITER_REMINDERS, offsetof(struct worker_stats, reminders)},
		{LIMITER_AHEAD, offsetof(struct worker_stats, ahead)},
		{LIMITER_PUBLISH_FAILURES, offsetof(struct worker_stats, publish_failures)},
		{LIMITER_PRODUCER_RESTARTS, offsetof(struct worker_stats, producer_restarts)},
	};
	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
		weir_metrics_counter(page, &limiter_daemon_metrics[counters[i].metric],
		                     limiter_sum(parts, counters[i].counter));
}

static void thread_metrics(const struct limiter_parts *parts, struct weir_text *page)
{
	weir_metrics_family(page, &limiter_daemon_metrics[LIMITER_BUSY]);
	for (uint32_t i = 0; i < parts->worker_count; i++) {
		char number[12];
		snprintf(number, sizeof number, "%u", i);
		struct weir_span thread = weir_span_of(number);
		double seconds = (double)weir_counter_read(&worker_stats(parts->workers[i])->busy_us) / 1e6;
		weir_metrics_double(page, &limiter_daemon_metrics[LIMITER_BUSY], &thread, seconds);
	}
	weir_metrics_family(page, &limiter_daemon_metrics[LIMITER_LOAD_WAIT]);
	weir_metrics_double(page, &limiter_daemon_metrics[LIMITER_LOAD_WAIT], NULL,
	                    (double)limiter_sum(parts, offsetof(struct worker_stats, load_us)) / 1e6);
}

static void store_metrics(const struct limiter *limiter, int phase, struct weir_text *page)
{
	uint64_t failures = 0;
	bool up = false;
	if (phase >= LIMITER_WORKING) {
		up = !checkpoint_io_fails(limiter->checkpoint_writer) && !checkpoint_io_fails(limiter->checkpoint_reader);
		failures =
			checkpoint_io_failures(limiter->checkpoint_writer) + checkpoint_io_failures(limiter->checkpoint_reader);
	}
	weir_store_metrics(phase > LIMITER_CONNECTING, up, failures, page);
}

static void metrics(void *context, struct weir_text *page)
{
	const struct limiter *limiter = context;
	int phase = atomic_load(&limiter->phase);
	weir_metrics_gauge(page, &limiter_daemon_metrics[LIMITER_IS_WORKING], phase == LIMITER_WORKING);
	weir_bus_kafka_metrics(atomic_load(&limiter->awaited), (uint32_t)limiter->daemon->config->bus.partitions, page);
	store_metrics(limiter, phase, page);
	if (phase < LIMITER_WORKING)
		return;
	struct limiter_parts parts = {.workers = limiter->workers,
	                              .worker_count = limiter->worker_count,
	                              .registry = limiter->registry,
	                              .memory_bytes = limiter->daemon->config->limiter.memory_bytes};
	limiter_metrics(&parts, page);
	limiter_checks_metrics(limiter->checks, &parts, page);
	limiter_checks_lists_metrics(limiter->checks, page);
	partition_metrics(limiter, page);
	counter_metrics(&parts, page);
	weir_metrics_counter(page, &limiter_daemon_metrics[LIMITER_MOVES], balance_moves(limiter->balance));
	thread_metrics(&parts, page);
	limiter_histogram(&parts, page, &limiter_daemon_metrics[LIMITER_TAKE], &weir_latency_scale,
	                  offsetof(struct worker_stats, take));
	weir_lag_metrics(limiter->lag, page, &limiter_daemon_metrics[LIMITER_LAG_MESSAGES],
	                 &limiter_daemon_metrics[LIMITER_LAG_SECONDS]);
}

void limiter_pages_init(struct limiter *limiter)
{
	limiter->pages =
		(struct weir_daemon_pages){.context = limiter, .metrics = metrics, .healthy = healthy, .ready = ready};
}
