/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every second: the log's end minus the position. If some server does not answer, the last known end is used.
 *
 * How late a partition is does not come from clocks of several machines, one of which may be wrong: it is how long ago
 * the log's end was first seen behind the position, by this machine's monotonic clock.
 */
#include "common/cluster/lag.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	PERIOD_S = 1,
	FRESH_MS = 10000, /* when none is as young as this, nobody knows how far behind the process is */
	SEEN_MOST = 64,
};

/* Where a log's end was, and when it was first seen to be there. */
struct seen {
	uint64_t offset;
	int64_t at_ms; /* monotonic */
};

struct end {
	uint64_t offset; /* the last known one */
	bool known;
	int64_t heard_ms;            /* monotonic: when it was told last */
	struct seen seen[SEEN_MOST]; /* growing; when it is full, every second one is dropped, so that it covers all */
	uint32_t seen_count;
	int64_t stride_ms; /* at least so long between two of them */
	bool silent;       /* its server did not answer; that takes seconds, so only one of these is asked at a time */
};

struct weir_lag {
	struct weir_lag_options options;
	pthread_t thread;
	pthread_mutex_t mutex; /* held while inspect() is called, and never while a server is asked */
	bool left;
	struct end *ends; /* of each topic's partitions, one topic after the other */
	size_t turn;      /* the silent one that was asked last */
	_Atomic uint64_t messages, milliseconds;
	_Atomic bool known; /* some partition is processed here, and its end was told just now */
};

struct sum {
	uint64_t messages;
	int64_t late_ms;
	uint32_t places; /* whose end was told just now */
};

static size_t count_ends(const struct weir_lag *lag)
{
	return lag->options.topic_count * lag->options.bus->partitions;
}

static bool inspect(struct weir_lag *lag, size_t index, struct weir_lag_place *place)
{
	uint32_t partitions = lag->options.bus->partitions;
	pthread_mutex_lock(&lag->mutex);
	bool worked_on = !lag->left && lag->options.inspect(lag->options.context, lag->options.topics[index / partitions],
	                                                    (uint32_t)(index % partitions), place);
	pthread_mutex_unlock(&lag->mutex);
	return worked_on;
}

static void drop_every_second(struct end *end)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < end->seen_count; i += 2)
		end->seen[kept++] = end->seen[i];
	end->seen_count = kept;
	end->stride_ms = end->stride_ms > 0 ? 2 * end->stride_ms : 2000 * PERIOD_S;
}

/* Notes an end, and forgets what has been processed: of the ends at or below the position only the last says anything. */
static void note_end(struct end *end, uint64_t offset, uint64_t position, int64_t now_ms)
{
	if (offset < end->offset) /* the topic was made anew */
		end->seen_count = 0;
	end->offset = offset;
	end->known = true;
	end->heard_ms = now_ms;
	uint32_t done = 0;
	while (done + 1 < end->seen_count && end->seen[done + 1].offset <= position)
		done++;
	end->seen_count -= done;
	memmove(end->seen, end->seen + done, end->seen_count * sizeof *end->seen);
	if (end->seen_count <= 1)
		end->stride_ms = 0;
	struct seen *last = end->seen_count > 0 ? &end->seen[end->seen_count - 1] : NULL;
	if (last != NULL && (offset == last->offset || now_ms - last->at_ms < end->stride_ms))
		return;
	if (end->seen_count == SEEN_MOST)
		drop_every_second(end);
	end->seen[end->seen_count++] = (struct seen){offset, now_ms};
}

/*
 * How long the message at the position has been there. What was there before the first look counts by the time that the
 * newest processed message was sent, as nothing else is known of it, and at least since then.
 */
static int64_t late_ms(const struct end *end, const struct weir_lag_place *place, int64_t now_ms)
{
	uint32_t i = 0;
	while (i < end->seen_count && end->seen[i].offset <= place->next_offset)
		i++;
	if (i == end->seen_count) /* it came after the last look that was noted */
		i--;
	int64_t seen_ms = now_ms - end->seen[i].at_ms;
	if (i > 0 || end->seen[0].offset <= place->next_offset)
		return seen_ms;
	int64_t sent_ms = place->clock_ms > 0 ? weir_wall_ms() - place->clock_ms : 0;
	return sent_ms > seen_ms ? sent_ms : seen_ms;
}

/* Asks for one end. @return false: no server answered */
static bool ask(struct weir_lag *lag, size_t index)
{
	struct weir_bus *bus = lag->options.bus;
	struct weir_lag_place place;
	struct weir_error error;
	uint64_t first, next;
	struct end *end = &lag->ends[index];
	end->silent = false;
	if (!inspect(lag, index, &place))
		return true;
	if (bus->ops->extent(bus, lag->options.topics[index / bus->partitions], (uint32_t)(index % bus->partitions), &first,
	                     &next, &error) == WEIR_OK)
		note_end(end, next, place.next_offset, weir_monotonic_ms());
	else
		end->silent = true;
	return !end->silent;
}

/* Asks for all ends. Stops after one that is not answered, so that figures stay current while servers are down. */
static void ask_all(struct weir_lag *lag)
{
	for (size_t i = 0; i < count_ends(lag); i++)
		if (!lag->ends[i].silent && !ask(lag, i))
			return;
	for (size_t i = 0; i < count_ends(lag); i++) {
		lag->turn = (lag->turn + 1) % count_ends(lag);
		if (lag->ends[lag->turn].silent && !ask(lag, lag->turn))
			return;
	}
}

/* Adds one partition's lag. */
static void add(struct weir_lag *lag, size_t index, struct sum *sum)
{
	struct weir_lag_place place = {0};
	const struct end *end = &lag->ends[index];
	if (!end->known || !inspect(lag, index, &place))
		return;
	int64_t now_ms = weir_monotonic_ms();
	sum->places += now_ms - end->heard_ms <= FRESH_MS;
	if (end->offset <= place.next_offset)
		return;
	sum->messages += end->offset - place.next_offset;
	int64_t behind_ms = late_ms(end, &place, now_ms);
	if (behind_ms > sum->late_ms)
		sum->late_ms = behind_ms;
}

static void measure(struct weir_lag *lag)
{
	struct sum sum = {0};
	ask_all(lag);
	for (size_t i = 0; i < count_ends(lag); i++)
		add(lag, i, &sum);
	atomic_store(&lag->messages, sum.messages);
	atomic_store(&lag->milliseconds, (uint64_t)sum.late_ms);
	atomic_store(&lag->known, sum.places > 0);
}

static void *work(void *context)
{
	struct weir_lag *lag = context;
	for (;;) {
		measure(lag);
		nanosleep(&(struct timespec){.tv_sec = PERIOD_S}, NULL);
	}
	return NULL;
}

enum weir_status weir_lag_start(const struct weir_lag_options *options, struct weir_lag **out, struct weir_error *error)
{
	struct weir_lag *lag = weir_alloc(1, sizeof *lag);
	lag->options = *options;
	lag->ends = weir_alloc(count_ends(lag), sizeof *lag->ends);
	pthread_mutex_init(&lag->mutex, NULL);
	int failed = pthread_create(&lag->thread, NULL, work, lag);
	if (failed != 0) {
		pthread_mutex_destroy(&lag->mutex);
		free(lag->ends);
		free(lag);
		return weir_fail(error, WEIR_IO, "cannot start a thread: %s", weir_errno_words(failed));
	}
	*out = lag;
	return WEIR_OK;
}

void weir_lag_leave(struct weir_lag *lag)
{
	if (lag == NULL)
		return;
	pthread_mutex_lock(&lag->mutex);
	lag->left = true;
	pthread_mutex_unlock(&lag->mutex);
}

bool weir_lag_read(const struct weir_lag *lag, uint64_t *messages, double *seconds)
{
	if (!atomic_load(&lag->known))
		return false;
	*messages = atomic_load(&lag->messages);
	*seconds = (double)atomic_load(&lag->milliseconds) / 1000.0;
	return true;
}

void weir_lag_metrics(const struct weir_lag *lag, struct weir_text *page, const struct weir_metric *messages_gauge,
                      const struct weir_metric *seconds_gauge)
{
	uint64_t messages;
	double seconds;
	if (!weir_lag_read(lag, &messages, &seconds))
		return; /* a 0 would mean that it has caught up */
	weir_metrics_gauge(page, messages_gauge, (double)messages);
	weir_metrics_gauge(page, seconds_gauge, seconds);
}
