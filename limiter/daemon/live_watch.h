/* SPDX-License-Identifier: Apache-2.0 */
/* Since when the partitions that are assigned to this process are not judged: moves take seconds, and no longer. */
#ifndef LIMITER_DAEMON_LIVE_WATCH_H
#define LIMITER_DAEMON_LIVE_WATCH_H

#include "limiter/worker/worker.h"

/* Zero-initialised. */
struct live_watch {
	uint32_t partitions;
	int64_t *since_ms;         /* by partition, monotonic; 0: it is judged, or not this process's */
	int64_t found_ms;          /* the oldest of those looked at in this turn */
	_Atomic int64_t oldest_ms; /* of the last whole turn */
};

void live_watch_init(struct live_watch *watch, uint32_t partitions);
void live_watch_deinit(struct live_watch *watch);

/** Whether an assigned partition is on its way; what is paused or stuck is not, and has words of its own. */
bool live_watch_awaits(enum worker_state state);

/** Looks at each partition in order, the last one last. @param awaited  it is assigned, and live_watch_awaits() */
void live_watch_look(struct live_watch *watch, uint32_t partition, bool awaited, int64_t now_ms);

/** For how long the one that waits longest has done so; 0: none waits. @thread any */
int64_t live_watch_age_ms(const struct live_watch *watch, int64_t now_ms);

#endif
