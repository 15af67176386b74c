/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer's place in each partition is kept here too, so that a consumer
 * that the log refuses to continue with is replaced by one behind the gap, or is
 * led past what is damaged.
 *
 * Ends are asked for on a thread of their own: a broker that does not answer
 * must not hold up the list.
 */
#include "deploy/gateways/subscriber/feed.h"

#include "common/base/alloc.h"
#include "common/base/deadline.h"
#include "common/log/metrics.h"

#include <stdlib.h>

enum { ENDS_EACH_MS = 1000, AGAIN_AFTER_MS = 1000 };

struct place {
	_Atomic uint64_t next;    /* of the next message to be received */
	_Atomic uint64_t end;     /* the partition's next offset, as last heard */
	_Atomic int64_t heard_ms; /* monotonic: when that was */
	uint64_t start;           /* where reading began */
	uint64_t start_end;       /* the same when reading began */
	uint64_t refused;         /* where it was refused last, + 1; 0: it was not */
	bool passing;             /* nothing was received since a message was passed over */
};

struct feed {
	struct weir_bus *bus;
	struct weir_consumer *consumer; /* NULL: it was refused, and another is made at again_at_ms (monotonic) */
	int64_t again_at_ms;
	struct weir_error refusal;
	struct place *places;
	struct weir_counter gaps;
	bool begun;      /* a consumer was made since reading began */
	bool lost;       /* what followed on something that was read went before it was */
	uint32_t behind; /* partitions that are before their start_end */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stopping;
};

static uint64_t load(const _Atomic uint64_t *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

static void store(_Atomic uint64_t *number, uint64_t value)
{
	atomic_store_explicit(number, value, memory_order_relaxed);
}

static void note_end(struct place *place, uint64_t end)
{
	store(&place->end, end);
	atomic_store_explicit(&place->heard_ms, weir_monotonic_ms(), memory_order_relaxed);
}

/* ---- reading ---- */

/* Assigns a partition at its place; at its first message where reading begins, or where that is behind its place. */
static enum weir_status assign(struct feed *feed, uint32_t partition, struct weir_error *error)
{
	struct place *place = &feed->places[partition];
	uint64_t first, next;
	enum weir_status status = feed->bus->ops->extent(feed->bus, WEIR_TOPIC_DECISIONS, partition, &first, &next, error);
	if (status != WEIR_OK)
		return WEIR_IO;
	if (next < load(&place->next))
		return weir_bus_ends_before(error, weir_topic_name(WEIR_TOPIC_DECISIONS), partition, next, load(&place->next));
	if (feed->begun && first > load(&place->next)) {
		weir_counter_add(&feed->gaps, 1);
		feed->lost |= load(&place->next) > place->start;
	}
	if (!feed->begun || first > load(&place->next)) {
		place->start = first;
		store(&place->next, first);
	}
	note_end(place, next);
	/* Between the two calls its beginning may be trimmed: then the next try finds another first. */
	return feed->bus->ops->assign(feed->consumer, partition, load(&place->next), error) == WEIR_OK ? WEIR_OK : WEIR_IO;
}

/* Anew, where a gap may have moved places past their end of the start. */
static void count_behind(struct feed *feed)
{
	feed->behind = 0;
	for (uint32_t i = 0; i < feed->bus->partitions; i++)
		feed->behind += load(&feed->places[i].next) < feed->places[i].start_end;
}

static enum weir_status begin(struct feed *feed, struct weir_error *error)
{
	enum weir_status status =
		feed->bus->ops->consumer_new(feed->bus, WEIR_TOPIC_DECISIONS, NULL, &feed->consumer, error);
	if (status != WEIR_OK) {
		feed->consumer = NULL;
		return WEIR_IO;
	}
	for (uint32_t i = 0; i < feed->bus->partitions && status == WEIR_OK; i++)
		status = assign(feed, i, error);
	if (status != WEIR_OK) {
		feed->bus->ops->consumer_free(feed->consumer);
		feed->consumer = NULL;
		return status;
	}
	for (uint32_t i = 0; i < feed->bus->partitions && !feed->begun; i++)
		feed->places[i].start_end = load(&feed->places[i].end);
	feed->begun = true;
	count_behind(feed);
	return WEIR_OK;
}

/* Takes down how far each partition is read. */
static void note_places(struct feed *feed)
{
	for (uint32_t i = 0; i < feed->bus->partitions; i++) {
		struct place *place = &feed->places[i];
		uint64_t before = load(&place->next), next = feed->bus->ops->position(feed->consumer, i);
		if (next <= before)
			continue;
		place->passing = false;
		store(&place->next, next);
		if (next > load(&place->end))
			store(&place->end, next);
		if (before < place->start_end && next >= place->start_end)
			feed->behind--;
	}
}

/* Another consumer in place of one that was refused, not at once: it may be refused as well. */
static enum weir_status begin_again(struct feed *feed, int timeout_ms, struct weir_error *error)
{
	int64_t left_ms = feed->again_at_ms - weir_monotonic_ms();
	if (left_ms > 0) {
		left_ms = left_ms < timeout_ms ? left_ms : timeout_ms;
		nanosleep(&(struct timespec){.tv_nsec = left_ms % 1000 * 1000000L}, NULL);
		return weir_fail(error, WEIR_IO, "%s", feed->refusal.text);
	}
	feed->again_at_ms = weir_monotonic_ms() + AGAIN_AFTER_MS;
	enum weir_status status = begin(feed, error);
	if (status == WEIR_IO)
		feed->refusal = *error;
	return status;
}

/*
 * A message that is refused with the consumer that was made for it, too, is no gap that a new place mends: its bytes are
 * damaged. It is passed over, with the consumer that there is, as the others of its batch come next and are refused alike.
 */
static bool pass_over(struct feed *feed, uint32_t partition, uint64_t offset)
{
	struct place *place = &feed->places[partition];
	bool known = place->passing || place->refused == offset + 1;
	place->refused = offset + 1;
	struct weir_error error;
	if (!known || feed->bus->ops->assign(feed->consumer, partition, offset + 1, &error) != WEIR_OK)
		return false;
	weir_counter_add(&feed->gaps, !place->passing);
	place->passing = true;
	store(&place->next, offset + 1);
	count_behind(feed);
	return true;
}

void feed_begin_anew(struct feed *feed)
{
	feed->lost = feed->begun = false;
	feed->again_at_ms = 0;
	if (feed->consumer != NULL)
		feed->bus->ops->consumer_free(feed->consumer);
	feed->consumer = NULL;
	for (uint32_t i = 0; i < feed->bus->partitions; i++) {
		store(&feed->places[i].next, 0);
		feed->places[i].refused = 0;
		feed->places[i].passing = false;
	}
}

enum weir_status feed_receive(struct feed *feed, struct weir_message *messages, size_t most, int timeout_ms,
                              size_t *count, struct weir_error *error)
{
	*count = 0;
	enum weir_status status = feed->consumer == NULL ? begin_again(feed, timeout_ms, error) : WEIR_OK;
	if (status == WEIR_IO)
		return status;
	if (status == WEIR_OK)
		status = feed->bus->ops->receive(feed->consumer, messages, most, timeout_ms, count, error);
	if (status == WEIR_ANEW) {
		*count = 0;
		feed_begin_anew(feed);
		return status;
	}
	if (status != WEIR_INVALID) {
		note_places(feed);
		return status;
	}
	*count = 0;
	if (pass_over(feed, messages[0].partition, messages[0].offset))
		return WEIR_OK;
	feed->bus->ops->consumer_free(feed->consumer);
	feed->consumer = NULL;
	feed->refusal = *error;
	return WEIR_IO;
}

bool feed_caught_up(const struct feed *feed)
{
	return feed->begun && feed->behind == 0;
}

bool feed_begin_anew_if_lost(struct feed *feed)
{
	bool lost = feed->lost;
	if (lost)
		feed_begin_anew(feed);
	return lost;
}

/* ---- ends ---- */

static void *ask_for_ends(void *context)
{
	struct feed *feed = context;
	pthread_mutex_lock(&feed->lock);
	while (!feed->stopping) {
		struct weir_deadline deadline = weir_deadline_in_ms(ENDS_EACH_MS);
		while (!feed->stopping && weir_condition_wait(&feed->wake, &feed->lock, &deadline))
			continue;
		for (uint32_t i = 0; i < feed->bus->partitions && !feed->stopping; i++) {
			pthread_mutex_unlock(&feed->lock);
			uint64_t first, next;
			if (feed->bus->ops->extent(feed->bus, WEIR_TOPIC_DECISIONS, i, &first, &next, NULL) == WEIR_OK)
				note_end(&feed->places[i], next);
			pthread_mutex_lock(&feed->lock);
		}
	}
	pthread_mutex_unlock(&feed->lock);
	return NULL;
}

uint64_t feed_lag(const struct feed *feed)
{
	uint64_t lag = 0;
	for (uint32_t i = 0; i < feed->bus->partitions; i++) {
		uint64_t next = load(&feed->places[i].next), end = load(&feed->places[i].end);
		lag += end > next ? end - next : 0;
	}
	return lag;
}

int64_t feed_ends_age_ms(const struct feed *feed)
{
	int64_t now_ms = weir_monotonic_ms(), age_ms = 0;
	for (uint32_t i = 0; i < feed->bus->partitions; i++) {
		int64_t heard_ms = atomic_load_explicit(&feed->places[i].heard_ms, memory_order_relaxed);
		age_ms = now_ms - heard_ms > age_ms ? now_ms - heard_ms : age_ms;
	}
	return age_ms;
}

uint64_t feed_gaps(const struct feed *feed)
{
	return weir_counter_read(&feed->gaps);
}

/* ---- */

enum weir_status feed_open(struct weir_bus *bus, struct feed **feed, struct weir_error *error)
{
	struct feed *made = weir_alloc(1, sizeof *made);
	made->bus = bus;
	made->places = weir_alloc(bus->partitions, sizeof *made->places);
	enum weir_status status = begin(made, error);
	if (status != WEIR_OK) {
		free(made->places);
		free(made);
		return status;
	}
	pthread_mutex_init(&made->lock, NULL);
	weir_condition_init(&made->wake);
	if (pthread_create(&made->thread, NULL, ask_for_ends, made) != 0) {
		bus->ops->consumer_free(made->consumer);
		free(made->places);
		free(made);
		return weir_fail(error, WEIR_IO, "cannot start a thread");
	}
	*feed = made;
	return WEIR_OK;
}

void feed_close(struct feed *feed)
{
	if (feed == NULL)
		return;
	pthread_mutex_lock(&feed->lock);
	feed->stopping = true;
	pthread_cond_signal(&feed->wake);
	pthread_mutex_unlock(&feed->lock);
	pthread_join(feed->thread, NULL);
	if (feed->consumer != NULL)
		feed->bus->ops->consumer_free(feed->consumer);
	pthread_cond_destroy(&feed->wake);
	pthread_mutex_destroy(&feed->lock);
	free(feed->places);
	free(feed);
}
