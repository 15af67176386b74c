/* The log's end less what is judged, a second after the other. While no server answers the last figures stand. */
#include "limiter/lag.h"

#include "common/alloc.h"
#include "common/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { PERIOD_S = 1 };

struct lag {
	struct weir_bus *bus;
	struct worker *const *workers;
	uint32_t worker_count;
	pthread_t thread;
	_Atomic uint64_t messages, milliseconds;
	_Atomic bool known; /* a partition was live, and its end known, at least once */
};

/* Adds one partition's; false: nobody answers. */
static bool add(const struct lag *lag, uint32_t partition, uint32_t *live, uint64_t *messages, int64_t *late_ms)
{
	struct worker_partition look;
	struct weir_error error;
	uint64_t first, next;
	worker_look(lag->workers[partition % lag->worker_count], partition, &look);
	if (look.state != WORKER_LIVE)
		return true;
	if (lag->bus->ops->extent(lag->bus, WEIR_TOPIC_EVENTS, partition, &first, &next, &error) != WEIR_OK)
		return false;
	++*live;
	if (next <= look.next_offset)
		return true;
	*messages += next - look.next_offset;
	int64_t behind_ms = look.clock_ms > 0 ? weir_wall_ms() - look.clock_ms : 0;
	if (behind_ms > *late_ms)
		*late_ms = behind_ms;
	return true;
}

static void measure(struct lag *lag)
{
	uint64_t messages = 0;
	int64_t late_ms = 0;
	uint32_t live = 0;
	for (uint32_t partition = 0; partition < lag->bus->partitions; partition++)
		if (!add(lag, partition, &live, &messages, &late_ms))
			return;
	atomic_store(&lag->messages, messages);
	atomic_store(&lag->milliseconds, (uint64_t)late_ms);
	if (live > 0)
		atomic_store(&lag->known, true);
}

static void *work(void *context)
{
	struct lag *lag = context;
	for (;;) {
		measure(lag);
		nanosleep(&(struct timespec){.tv_sec = PERIOD_S}, NULL);
	}
	return NULL;
}

enum weir_status lag_start(struct weir_bus *bus, struct worker *const *workers, uint32_t worker_count, struct lag **out,
                           struct weir_error *error)
{
	struct lag *lag = weir_alloc(1, sizeof *lag);
	lag->bus = bus;
	lag->workers = workers;
	lag->worker_count = worker_count;
	int failed = pthread_create(&lag->thread, NULL, work, lag);
	if (failed != 0) {
		free(lag);
		return weir_fail(error, WEIR_IO, "cannot start a thread: %s", strerror(failed));
	}
	*out = lag;
	return WEIR_OK;
}

bool lag_read(const struct lag *lag, uint64_t *messages, double *seconds)
{
	if (!atomic_load(&lag->known))
		return false;
	*messages = atomic_load(&lag->messages);
	*seconds = (double)atomic_load(&lag->milliseconds) / 1000.0;
	return true;
}
