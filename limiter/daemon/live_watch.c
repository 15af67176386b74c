/* SPDX-License-Identifier: Apache-2.0 */
/* A partition that is judged for a moment begins anew; so many restarts in a row are not taken for one that is lost. */
#include "limiter/daemon/live_watch.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

void live_watch_init(struct live_watch *watch, uint32_t partitions)
{
	watch->partitions = partitions;
	watch->since_ms = weir_alloc(partitions, sizeof *watch->since_ms);
	memset(watch->since_ms, 0, partitions * sizeof *watch->since_ms);
}

void live_watch_deinit(struct live_watch *watch)
{
	free(watch->since_ms);
}

bool live_watch_awaits(enum worker_state state)
{
	return state != WORKER_LIVE && state != WORKER_PAUSED && state != WORKER_PARKED;
}

void live_watch_look(struct live_watch *watch, uint32_t partition, bool awaited, int64_t now_ms)
{
	int64_t *since_ms = &watch->since_ms[partition];
	if (!awaited)
		*since_ms = 0;
	else if (*since_ms == 0)
		*since_ms = now_ms;
	if (partition == 0 || (*since_ms != 0 && (watch->found_ms == 0 || *since_ms < watch->found_ms)))
		watch->found_ms = *since_ms;
	if (partition + 1 == watch->partitions)
		atomic_store(&watch->oldest_ms, watch->found_ms);
}

int64_t live_watch_age_ms(const struct live_watch *watch, int64_t now_ms)
{
	int64_t oldest_ms = atomic_load(&watch->oldest_ms);
	return oldest_ms != 0 && now_ms > oldest_ms ? now_ms - oldest_ms : 0;
}
