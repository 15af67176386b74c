/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps threads about as busy: twice a second it looks whether one has had little
 * rest, and at what each partition gives to do, and gives some of them another
 * place where that helps the busiest thread much.
 *
 * What there is to do is the bytes of frames, of those that were judged and of
 * those that wait in the log: a hot user's events cost less of both bytes and time
 * than others, so bytes stand for time well, and what a machine does beside does
 * not disturb them. That it counts what waits lets threads come to the end of a
 * backlog at one time. A move pauses its partition for some tenth of a second, as
 * a last checkpoint is stored and read: so nothing moves while threads have room,
 * nor again for a while, nor while a partition is on its way or the store away.
 */
#include "limiter/worker/balance.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdlib.h>

enum {
	WINDOW_MS = 500,
	REST_MS = 30000,  /* after partitions have moved */
	BUSY_PERCENT = 50 /* of a window: a thread that judged for less gives nothing away */
};

/* A partition that is given, and has been for all of the window. */
struct seen {
	uint32_t partition;
	uint64_t messages, bytes; /* since its worker began with it */
	uint64_t before;          /* bytes, at the window's begin */
	uint64_t waiting;         /* messages */
};

struct balance {
	struct balance_options options;
	struct weir_counter moves;
	bool *given;
	struct seen *seen; /* those that are given */
	uint32_t count;
	struct placement_load *loads; /* likewise */
	uint64_t assignment_version;  /* that they are of */
	double *judged_s;             /* time in which threads had judged at the window's begin */
	bool *busy;                   /* threads that judged for most of the window */
	int64_t since_ms;             /* monotonic: the window's begin; 0: there is none */
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

/* Which partitions there are, from now on. */
static void begin(struct balance *balance)
{
	balance->assignment_version = weir_assignment_version(balance->options.assignment);
	balance->count = 0;
	weir_assignment_get(balance->options.assignment, balance->given, NULL);
	for (uint32_t partition = 0; partition < balance->options.partitions; partition++)
		if (balance->given[partition])
			balance->seen[balance->count++] = (struct seen){.partition = partition};
}

/* Reads what partitions have given to do by now; false: one of them is on its way. */
static bool read_partitions(struct balance *balance)
{
	const struct balance_options *options = &balance->options;
	for (uint32_t i = 0; i < balance->count; i++) {
		struct seen *seen = &balance->seen[i];
		struct worker_partition look;
		uint32_t thread = placement_of(options->placement, seen->partition);
		worker_view(options->workers[thread], seen->partition, &look);
		if (look.state != WORKER_LIVE && look.state != WORKER_PARKED)
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

/* What waits is as large as what came of its partition; where nothing came yet, as of all. */
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
