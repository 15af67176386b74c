/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps threads about equally busy. Twice a second it checks which threads are
 * busy and how much work each partition causes, and moves partitions if that helps
 * the busiest thread much.
 *
 * Work is measured in bytes of frames, judged or waiting in the log. A hot user's
 * events take fewer bytes and less time than others, so bytes represent time well,
 * and other load on the machine does not distort them. Because waiting frames
 * count, threads reach the end of a backlog together. A move pauses its partition
 * for about a tenth of a second, while a last checkpoint is stored and read. So
 * nothing moves while threads have spare time, for a while after a move, while a
 * partition is being taken or left, or while the store is down.
 */
#include "limiter/worker/balance.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdlib.h>

enum {
	WINDOW_MS = 500,
	REST_MS = 30000,  /* pause after partitions have moved */
	BUSY_PERCENT = 50 /* of a window: a thread that judged for less gives nothing away */
};

/* A partition that was assigned for all of the window. */
struct seen {
	uint32_t partition;
	uint64_t messages, bytes; /* that its worker has received of it */
	uint64_t before;          /* `bytes` at the beginning of the window */
	uint64_t waiting;         /* messages */
};

struct balance {
	struct balance_options options;
	struct weir_counter moves;
	bool *given;
	struct seen *seen; /* the assigned partitions */
	uint32_t count;
	struct placement_load *loads; /* parallel to `seen` */
	uint64_t assignment_version;  /* of the assignment that `seen` is from */
	double *judged_s;             /* by thread: seconds spent judging until the beginning of the window */
	bool *busy;                   /* by thread: it judged for at least BUSY_PERCENT of the window */
	int64_t since_ms;             /* monotonic: the beginning of the window; 0: there is none */
	int64_t rest_end_ms;
};

struct balance *balance_new(const struct balance_options *options)
{
	struct balance *balance = weir_alloc(1, sizeof *balance);
	balance->options = *options;
	balance->given = weir_alloc(options->partitions, sizeof *balance->given);
	balance->seen = weir_alloc(options->partitions, sizeof *balance->seen);
	balance->loads = weir_alloc(options->partitions, sizeof *balance->loads);
	balance->judged_s = weir_alloc(options->worker_count, sizeof *balance->judged_s);
	balance->busy = weir_alloc(options->worker_count, sizeof *balance->busy);
	return balance;
}

void balance_free(struct balance *balance)
{
	if (balance == NULL)
		return;
	free(balance->given);
	free(balance->seen);
	free(balance->loads);
	free(balance->judged_s);
	free(balance->busy);
	free(balance);
}

/* ---- a window ---- */

/* Notes which partitions are assigned. */
static void begin(struct balance *balance)
{
	balance->assignment_version = weir_assignment_version(balance->options.assignment);
	balance->count = 0;
	weir_assignment_get(balance->options.assignment, balance->given, NULL);
	for (uint32_t partition = 0; partition < balance->options.partitions; partition++)
		if (balance->given[partition])
			balance->seen[balance->count++] = (struct seen){.partition = partition};
}

/* Reads the partitions' counters; false: one of them is being taken or left. */
static bool read_partitions(struct balance *balance)
{
	const struct balance_options *options = &balance->options;
	for (uint32_t i = 0; i < balance->count; i++) {
		struct seen *seen = &balance->seen[i];
		struct worker_partition look;
		uint32_t thread = placement_of(options->placement, seen->partition);
		worker_view(options->workers[thread], seen->partition, &look);
		if (look.state != WORKER_LIVE && look.state != WORKER_PAUSED && look.state != WORKER_PARKED)
			return false;
		seen->before = seen->bytes;
		seen->messages = look.messages;
		seen->bytes = look.bytes;
		seen->waiting = look.waiting;
		balance->loads[i].thread = thread;
	}
	return true;
}

static void read_threads(struct balance *balance, int64_t window_ms)
{
	for (uint32_t i = 0; i < balance->options.worker_count; i++) {
		double judged_s = atomic_load(&worker_stats(balance->options.workers[i])->batch.sum);
		balance->busy[i] = (judged_s - balance->judged_s[i]) * 1000 * 100 >= (double)(window_ms * BUSY_PERCENT);
		balance->judged_s[i] = judged_s;
	}
}

/* Waiting messages count with the mean size of those received of their partition; if none were, of all partitions. */
static void weigh(struct balance *balance)
{
	double messages = 1, bytes = 0;
	for (uint32_t i = 0; i < balance->count; i++) {
		messages += (double)balance->seen[i].messages;
		bytes += (double)balance->seen[i].bytes;
	}
	for (uint32_t i = 0; i < balance->count; i++) {
		const struct seen *seen = &balance->seen[i];
		double mean = seen->messages > 0 ? (double)seen->bytes / (double)seen->messages : bytes / messages;
		balance->loads[i].work = seen->bytes - seen->before + (uint64_t)((double)seen->waiting * mean);
	}
}

static void move(struct balance *balance)
{
	const struct balance_options *options = &balance->options;
	for (uint32_t i = 0; i < balance->count; i++) {
		uint32_t partition = balance->seen[i].partition, to = balance->loads[i].thread;
		uint32_t from = placement_of(options->placement, partition);
		if (from == to)
			continue;
		weir_log(options->log, WEIR_LOG_INFO, "limiter",
		         "partition %u moves from thread %u to thread %u, which is less busy", partition, from, to);
		placement_move(options->placement, partition, to);
		weir_counter_add(&balance->moves, 1);
	}
}

void balance_turn(struct balance *balance)
{
	const struct balance_options *options = &balance->options;
	int64_t now_ms = weir_monotonic_ms(), window_ms = now_ms - balance->since_ms;
	if (now_ms < balance->rest_end_ms || window_ms < WINDOW_MS)
		return;
	if (checkpoint_io_fails(options->checkpoint_writer) || checkpoint_io_fails(options->checkpoint_reader)) {
		balance->since_ms = 0;
		return;
	}
	bool begun = balance->since_ms > 0 && weir_assignment_version(options->assignment) == balance->assignment_version;
	if (!begun)
		begin(balance);
	bool settled = read_partitions(balance);
	read_threads(balance, window_ms);
	balance->since_ms = settled ? now_ms : 0;
	if (!begun || !settled)
		return;
	weigh(balance);
	if (placement_improve(balance->loads, balance->count, options->worker_count, balance->busy) == 0)
		return;
	move(balance);
	balance->rest_end_ms = now_ms + REST_MS;
	balance->since_ms = 0;
}

uint64_t balance_moves(const struct balance *balance)
{
	return weir_counter_read(&balance->moves);
}
