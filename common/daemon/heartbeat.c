/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of its own, as any other may wait for a server, or for its turn. */
#include "common/daemon/heartbeat.h"

#include "common/base/alloc.h"
#include "common/base/deadline.h"
#include "common/log/stall.h"

#include <pthread.h>
#include <stdlib.h>

enum { PERIOD_MS = 1000 };

struct weir_heartbeat {
	const struct weir_log *log;
	const char *directory; /* NULL: none */
	const struct weir_directory_lock *held;
	struct weir_fault fault;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stopping;
};

/* Another process could be started in what takes the directory's place, and would do the same work. */
static void look_at_directory(struct weir_heartbeat *heartbeat)
{
	if (heartbeat->directory == NULL)
		return;
	if (weir_directory_stands(heartbeat->directory, heartbeat->held))
		weir_fault_over(&heartbeat->fault, heartbeat->log, "state", "the state directory %s is there again",
		                heartbeat->directory);
	else
		weir_fault_raise_at(
			&heartbeat->fault, heartbeat->log, WEIR_LOG_ERROR, "state",
			"the state directory %s, or the file lock in it, was removed or replaced while this process works in it. It "
			"goes on, but what it keeps there may be gone at the next start. Move it back; if it is lost, restart this "
			"process (runbook: positions-unsaved)",
			heartbeat->directory);
}

static void *beat(void *context)
{
	struct weir_heartbeat *heartbeat = context;
	struct weir_stall stall = {0};
	char age[WEIR_AGE_BYTES];
	pthread_mutex_lock(&heartbeat->lock);
	while (!heartbeat->stopping) {
		int64_t late_ms = weir_stall_turn(&stall, weir_clock_ms(CLOCK_BOOTTIME), PERIOD_MS);
		if (late_ms > 0)
			weir_log(heartbeat->log, WEIR_LOG_WARNING, "process",
			         "this process did not run for %s: it was suspended, swapped out, or starved of CPU. What others "
			         "had of it meanwhile (partitions, connections) may have been taken over; it goes on, and nothing "
			         "is lost. If nobody stopped it, look at the machine's load and memory "
			         "(runbook: process-suspended)",
			         weir_age(late_ms, age));
		pthread_mutex_unlock(&heartbeat->lock);
		int64_t began_ms = weir_clock_ms(CLOCK_BOOTTIME);
		look_at_directory(heartbeat);
		if (weir_clock_ms(CLOCK_BOOTTIME) - began_ms > PERIOD_MS)
			stall = (struct weir_stall){0}; /* a disk that hangs is no machine that does not run */
		pthread_mutex_lock(&heartbeat->lock);
		struct weir_deadline deadline = weir_deadline_in_ms(PERIOD_MS);
		while (!heartbeat->stopping && weir_condition_wait(&heartbeat->wake, &heartbeat->lock, &deadline))
			;
	}
	pthread_mutex_unlock(&heartbeat->lock);
	return NULL;
}

static void free_all(struct weir_heartbeat *heartbeat)
{
	pthread_mutex_destroy(&heartbeat->lock);
	pthread_cond_destroy(&heartbeat->wake);
	free(heartbeat);
}

struct weir_heartbeat *weir_heartbeat_start(const struct weir_log *log, const char *directory,
                                            const struct weir_directory_lock *lock)
{
	struct weir_heartbeat *heartbeat = weir_alloc(1, sizeof *heartbeat);
	heartbeat->log = log;
	heartbeat->directory = directory;
	heartbeat->held = lock;
	pthread_mutex_init(&heartbeat->lock, NULL);
	weir_condition_init(&heartbeat->wake);
	if (pthread_create(&heartbeat->thread, NULL, beat, heartbeat) == 0)
		return heartbeat;
	free_all(heartbeat);
	return NULL;
}

void weir_heartbeat_stop(struct weir_heartbeat *heartbeat)
{
	if (heartbeat == NULL)
		return;
	pthread_mutex_lock(&heartbeat->lock);
	heartbeat->stopping = true;
	pthread_cond_signal(&heartbeat->wake);
	pthread_mutex_unlock(&heartbeat->lock);
	pthread_join(heartbeat->thread, NULL);
	free_all(heartbeat);
}
