/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One note a partition: "limiter-owner-P". A taker that is slow may write its row after the next one's; so whoever has the
 * partition looks whether its row stands, and writes it again.
 */
#include "limiter/owners/owners_feed.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	LOOK_MS = 25,
	READ_MS = 1000,
	DOUBT_MS = 100, /* between readings, however great the doubts */
	NAME_BYTES = 40,
};

#define NOTE_PREFIX "limiter-owner-"

static const char read_rows[] =
	"SELECT s.partition_id, s.epoch, n.value FROM partition_state AS s"
	" JOIN note AS n ON n.name = CONCAT('" NOTE_PREFIX "', s.partition_id) WHERE s.role = 1";

struct owners_feed {
	struct owners_feed_options options;
	struct weir_store *store; /* NULL: it is not open */
	struct weir_fault fault, shared;
	pthread_t thread;
	_Atomic bool stop;
	uint64_t published[]; /* by partition: the epoch whose row was written, or read */
};

static enum weir_status publish(struct owners_feed *feed, struct weir_error *error)
{
	const struct owners *owners = feed->options.owners;
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; i < owners_partitions(owners) && status == WEIR_OK; i++) {
		uint64_t epoch = owners_epoch(owners, i);
		char name[NAME_BYTES], row[OWNERS_ROW_BYTES];
		if (epoch == 0 || feed->published[i] == epoch)
			continue;
		snprintf(name, sizeof name, NOTE_PREFIX "%" PRIu32, i);
		status = feed->store->ops->note_put(feed->store, name, owners_row(owners, epoch, row), error);
		if (status == WEIR_OK)
			feed->published[i] = epoch;
	}
	return status;
}

static enum weir_status take_row(void *context, const struct weir_sql_value *columns, unsigned count)
{
	struct owners_feed *feed = context;
	struct owners *owners = feed->options.owners;
	char own[OWNERS_ROW_BYTES];
	uint32_t partition = (uint32_t)columns[0].number;
	(void)count;
	if (columns[2].type != WEIR_SQL_TEXT || partition >= owners_partitions(owners))
		return WEIR_OK;
	uint64_t epoch = owners_epoch(owners, partition), stored_epoch = (uint64_t)columns[1].number;
	if (epoch != 0 && epoch == stored_epoch && !weir_span_equal(columns[2].text, owners_row(owners, epoch, own)))
		feed->published[partition] = 0; /* a late row of another stands there: it is written over */
	owners_learn(owners, partition, stored_epoch, columns[2].text);
	uint32_t place = owners_of(owners, partition);
	if (place != OWNERS_NONE)
		feed->options.found(feed->options.found_context, place);
	return WEIR_OK;
}

static enum weir_status read_all(struct owners_feed *feed, struct weir_error *error)
{
	const struct owners_feed_options *options = &feed->options;
	enum weir_status status =
		options->look != NULL ? options->look(options->look_context, feed->store, error) : WEIR_OK;
	if (status != WEIR_OK)
		return status;
	owners_read_begin(feed->options.owners, weir_monotonic_ms());
	status = feed->store->ops->query(feed->store, read_rows, NULL, 0, take_row, feed, error);
	if (status == WEIR_OK)
		owners_read_end(feed->options.owners);
	return status;
}

static void note_result(struct owners_feed *feed, enum weir_status status, const struct weir_error *error)
{
	if (status == WEIR_OK)
		weir_fault_over(&feed->fault, feed->options.log, "checks", "the store says which limiter answers which checks");
	else
		weir_fault_raise(&feed->fault, feed->options.log, "checks",
		                 "cannot learn from the store which limiter answers which checks: %s. What was known before "
		                 "holds. Retrying (runbook: store-away)",
		                 error->text);
}

static void note_address(struct owners_feed *feed)
{
	const struct owners *owners = feed->options.owners;
	const struct owners_place *self = owners_self(owners);
	if (owners_share_address(owners))
		weir_fault_raise_at(&feed->shared, feed->options.log, WEIR_LOG_ERROR, "checks",
		                    "another limiter says that it answers checks at %s port %u, as this one does: a check of "
		                    "what that one has is unavailable here. Give each limiter a checks.advertise of its own "
		                    "(runbook: checks-unavailable)",
		                    self->host, self->port);
	else
		weir_fault_over(&feed->shared, feed->options.log, "checks", "no other limiter has the address of this one");
}

static void *serve(void *context)
{
	struct owners_feed *feed = context;
	int64_t read_ms = 0;
	while (!atomic_load(&feed->stop)) {
		struct weir_error error;
		enum weir_status status = WEIR_OK;
		int64_t now_ms = weir_monotonic_ms(), since_ms = now_ms - read_ms;
		bool reads = since_ms >= READ_MS || (since_ms >= DOUBT_MS && owners_take_doubt(feed->options.owners));
		if (feed->store == NULL && reads)
			status = feed->options.open(feed->options.open_context, &feed->store, &error);
		if (feed->store != NULL && status == WEIR_OK)
			status = publish(feed, &error);
		if (feed->store != NULL && status == WEIR_OK && reads)
			status = read_all(feed, &error);
		if (reads || status != WEIR_OK) {
			read_ms = now_ms;
			if (!atomic_load(&feed->stop))
				note_result(feed, status, &error);
			note_address(feed);
		}
		nanosleep(&(struct timespec){.tv_nsec = (status == WEIR_OK ? LOOK_MS : DOUBT_MS) * 1000000L}, NULL);
	}
	if (feed->store != NULL)
		feed->store->ops->close(feed->store);
	return NULL;
}

enum weir_status owners_feed_start(const struct owners_feed_options *options, struct owners_feed **out,
                                   struct weir_error *error)
{
	struct owners_feed *feed =
		weir_alloc(1, sizeof *feed + owners_partitions(options->owners) * sizeof feed->published[0]);
	feed->options = *options;
	int failed = pthread_create(&feed->thread, NULL, serve, feed);
	if (failed != 0) {
		free(feed);
		return weir_fail(error, WEIR_IO, "cannot start a thread for the owners of checks: %s",
		                 weir_errno_words(failed));
	}
	*out = feed;
	return WEIR_OK;
}

void owners_feed_stop(struct owners_feed *feed)
{
	if (feed == NULL)
		return;
	atomic_store(&feed->stop, true);
	pthread_join(feed->thread, NULL);
	free(feed);
}
