/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop on one thread: receive, take in, end what is over, serve the target.
 *
 * What the target takes long for is waited for here, while the bus keeps what
 * comes: nothing is lost, and the list is as old as the lag says.
 */
#include "deploy/gateways/subscriber/subscriber.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "deploy/gateways/subscriber/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
	BATCH = 1024,
	WAIT_MS = 100,      /* at most for messages: signals are looked at between */
	NAP_MS = 50,        /* after a fault with the bus */
	BUS_LOOK_MS = 1000, /* how often it is asked what hinders it */
	RETRY_LEAST_MS = 200,
	RETRY_MOST_MS = 10000,
	STEADY_MS = 10000, /* a target that holds so long is tried again quickly when it fails */
	NOTICE_MS = 60000,
	LONG_MS = 250,
	CHANGES_MANY = 16384, /* are applied before their interval is over */
	CHANGES_MOST = 65536, /* while a copy waits for its interval */
};

struct subscriber *subscriber_new(const struct subscriber_options *options)
{
	struct subscriber *subscriber = weir_alloc(1, sizeof *subscriber);
	subscriber->options = *options;
	pthread_mutex_init(&subscriber->reason_lock, NULL);
	struct block_table_options table = {
		.partitions = options->partitions, .max = options->max, .keep_json = options->target->ops->keeps_json};
	(void)!getrandom(&table.seed, sizeof table.seed, 0);
	subscriber->table = block_table_new(&table);
	subscriber->copy_wanted = true;
	subscriber->retry_wait_ms = RETRY_LEAST_MS;
	weir_clock_step_begin(&subscriber->clock);
	if (!options->once)
		subscriber->ager = ager_start(options->target, options->log);
	return subscriber;
}

void subscriber_free(struct subscriber *subscriber)
{
	if (subscriber == NULL)
		return;
	ager_stop(subscriber->ager);
	feed_close(atomic_load(&subscriber->feed));
	block_table_free(subscriber->table);
	pthread_mutex_destroy(&subscriber->reason_lock);
	free(subscriber->left_ms);
	free(subscriber);
}

static void nap(int64_t time_ms)
{
	nanosleep(&(struct timespec){.tv_nsec = time_ms * 1000000L}, NULL);
}

/* ---- what goes on is said now and then ---- */

static bool is_news(struct subscriber_notice *notice, uint64_t count, int64_t now_ms)
{
	if (count == notice->told || now_ms < notice->next_ms)
		return false;
	notice->told = count;
	notice->next_ms = now_ms + NOTICE_MS;
	return true;
}

static void log_left_out(struct subscriber *subscriber, int64_t now_ms)
{
	uint64_t left_out = block_table_left_out(subscriber->table);
	uint64_t unfit = weir_counter_read(&subscriber->options.target->unfit);
	if (is_news(&subscriber->left_out_notice, left_out, now_ms))
		weir_log(subscriber->options.log, WEIR_LOG_WARNING, "list",
		         "the list is full (%u blocks, --max): left out the %llu blocks that end first",
		         subscriber->options.max, (unsigned long long)left_out);
	if (is_news(&subscriber->unfit_notice, unfit, now_ms))
		weir_log(subscriber->options.log, WEIR_LOG_WARNING, "list",
		         "%s cannot hold every key: %llu keys left out so far", subscriber->options.target->ops->kind,
		         (unsigned long long)unfit);
}

/* ---- the target ---- */

static void fail(struct subscriber *subscriber, int64_t now_ms, const struct weir_error *error)
{
	weir_counter_add(&subscriber->errors, 1);
	if (atomic_load(&subscriber->in_place) && now_ms - subscriber->in_place_since_ms >= STEADY_MS)
		subscriber->retry_wait_ms = RETRY_LEAST_MS;
	weir_fault_raise(
		&subscriber->target_fault, subscriber->options.log, subscriber->options.target->ops->kind,
		"the list is not written: %s. The gateway goes on with the list that it has: new blocks do not reach it, and "
		"blocks that are over may stay. Retrying until it is written (runbook: gateway-not-blocking)",
		error->text);
	pthread_mutex_lock(&subscriber->reason_lock);
	snprintf(subscriber->reason, sizeof subscriber->reason, "%s", error->text);
	pthread_mutex_unlock(&subscriber->reason_lock);
	atomic_store(&subscriber->in_place, false);
	subscriber->copy_wanted = true;
	subscriber->retry_at_ms = now_ms + subscriber->retry_wait_ms;
	subscriber->retry_wait_ms *= 2;
	if (subscriber->retry_wait_ms > RETRY_MOST_MS)
		subscriber->retry_wait_ms = RETRY_MOST_MS;
}

/* Notes the changes that a whole copy will hold, and settles them: how long they took is known once it is there. */
static void leave_to_copy(struct subscriber *subscriber)
{
	uint32_t count;
	struct block_entry *const *changes = block_table_changes(subscriber->table, &count);
	for (uint32_t i = 0; i < count && subscriber->left_count < CHANGES_MOST; i++) {
		if (changes[i]->state != BLOCK_LIVE && changes[i]->state != BLOCK_LIFTED)
			continue;
		if (subscriber->left_count == subscriber->left_room) {
			subscriber->left_room = subscriber->left_room > 0 ? 2 * subscriber->left_room : BATCH;
			subscriber->left_ms = weir_realloc(subscriber->left_ms, subscriber->left_room, sizeof *subscriber->left_ms);
		}
		subscriber->left_ms[subscriber->left_count++] = changes[i]->at_ms;
	}
	block_table_settle(subscriber->table);
}

/* How long decisions took from their own time to the target: all that it has by now. */
static void observe_delays(struct subscriber *subscriber)
{
	leave_to_copy(subscriber);
	int64_t now_ms = weir_wall_ms();
	for (uint32_t i = 0; i < subscriber->left_count; i++) {
		int64_t at_ms = subscriber->left_ms[i];
		weir_histogram_observe(&subscriber->delay, &weir_delay_scale,
		                       now_ms > at_ms ? (double)(now_ms - at_ms) / 1000.0 : 0);
	}
	subscriber->left_count = 0;
}

/*
 * Changes gather for an interval, and are cheaper together; the first ones after a time of rest do not wait. What took
 * the target long is not asked of it again at once.
 */
static void settle(struct subscriber *subscriber, int64_t started_ms)
{
	block_table_settle(subscriber->table);
	subscriber->overflowed = false;
	int64_t now_ms = weir_monotonic_ms(), interval_ms = subscriber->options.interval_ms, took_ms = now_ms - started_ms;
	int64_t burst = subscriber->options.target->ops->burst;
	if (subscriber->paid_until_ms < now_ms)
		subscriber->paid_until_ms = now_ms;
	subscriber->paid_until_ms += interval_ms;
	subscriber->apply_at_ms = subscriber->paid_until_ms - (burst > 1 ? burst - 1 : 0) * interval_ms;
	if (took_ms >= LONG_MS && subscriber->apply_at_ms < now_ms + took_ms)
		subscriber->apply_at_ms = now_ms + took_ms;
}

static void announce(struct subscriber *subscriber)
{
	weir_log(subscriber->options.log, WEIR_LOG_INFO, subscriber->options.target->ops->kind,
	         "the list is up to date: %u blocks", block_table_count(subscriber->table));
	if (subscriber->options.up_to_date != NULL)
		subscriber->options.up_to_date(subscriber->options.context);
}

/* The whole table; after a fault, at the start, and as every change of a target that knows no other. */
static enum weir_status copy(struct subscriber *subscriber, struct weir_error *error)
{
	struct target *target = subscriber->options.target;
	bool anew = !atomic_load(&subscriber->in_place);
	int64_t started_ms = weir_monotonic_ms();
	enum weir_status status = target->ops->copy(target, subscriber->table, weir_wall_ms(), error);
	int64_t now_ms = weir_monotonic_ms();
	if (status != WEIR_OK) {
		fail(subscriber, now_ms, error);
		return status;
	}
	weir_counter_add(&subscriber->copies, 1);
	observe_delays(subscriber);
	settle(subscriber, started_ms);
	subscriber->copy_wanted = false;
	subscriber->check_at_ms = now_ms + target->ops->check_after_ms;
	if (anew) {
		subscriber->in_place_since_ms = now_ms;
		atomic_store(&subscriber->in_place, true);
		weir_fault_clear(&subscriber->target_fault, subscriber->options.log, target->ops->kind);
		announce(subscriber);
	}
	return WEIR_OK;
}

static enum weir_status apply(struct subscriber *subscriber, struct weir_error *error)
{
	struct target *target = subscriber->options.target;
	if (target->ops->copies_only)
		return copy(subscriber, error);
	int64_t started_ms = weir_monotonic_ms();
	enum weir_status status = target->ops->apply(target, subscriber->table, weir_wall_ms(), error);
	if (status == WEIR_OK)
		observe_delays(subscriber);
	else
		fail(subscriber, weir_monotonic_ms(), error);
	leave_to_copy(subscriber);
	settle(subscriber, started_ms);
	return status;
}

static uint32_t change_count(const struct subscriber *subscriber)
{
	uint32_t count;
	block_table_changes(subscriber->table, &count);
	return count;
}

static enum weir_status check(struct subscriber *subscriber, int64_t now_ms, struct weir_error *error)
{
	struct target *target = subscriber->options.target;
	subscriber->check_at_ms = now_ms + target->ops->check_after_ms;
	enum weir_status status = target->ops->check(target, subscriber->table, weir_wall_ms(), error);
	if (status != WEIR_OK)
		fail(subscriber, now_ms, error);
	if (status == WEIR_AGAIN) /* it is there: at once */
		subscriber->retry_at_ms = now_ms;
	return status;
}

/* @return WEIR_OK, whatever the target says; WEIR_INVALID: it can never serve */
static enum weir_status serve_target(struct subscriber *subscriber, struct weir_error *error)
{
	int64_t now_ms = weir_monotonic_ms();
	enum weir_status status = WEIR_OK;
	if (!subscriber->copy_wanted && now_ms >= subscriber->check_at_ms)
		status = check(subscriber, now_ms, error);
	uint32_t changed = change_count(subscriber);
	bool copies_only = subscriber->options.target->ops->copies_only;
	if (subscriber->copy_wanted) {
		if (subscriber->options.target->ops->pass != NULL)
			subscriber->options.target->ops->pass(subscriber->options.target, subscriber->table);
		leave_to_copy(subscriber);
		if (now_ms >= subscriber->retry_at_ms)
			status = copy(subscriber, error);
	} else if ((changed > 0 || subscriber->overflowed) &&
	           (now_ms >= subscriber->apply_at_ms || (changed >= CHANGES_MANY && !copies_only))) {
		status = apply(subscriber, error);
	} else if (changed >= CHANGES_MOST) {
		leave_to_copy(subscriber);
		subscriber->overflowed = true;
	}
	log_left_out(subscriber, now_ms);
	return status == WEIR_INVALID ? status : WEIR_OK;
}

/* ---- decisions ---- */

static bool is_wanted(const struct subscriber *subscriber, struct weir_span zone)
{
	for (size_t i = 0; i < subscriber->options.zone_count; i++)
		if (weir_span_equal(zone, weir_span_of(subscriber->options.zones[i])))
			return true;
	return subscriber->options.zone_count == 0;
}

static enum subscriber_result take(struct subscriber *subscriber, const struct weir_message *message, int64_t now_ms)
{
	struct decision_record record;
	struct weir_error error;
	if (decision_record_parse(message, &record, &error) != WEIR_OK) {
		uint64_t count = weir_counter_read(&subscriber->results[RESULT_MALFORMED]) + 1;
		if (is_news(&subscriber->malformed_notice, count, weir_monotonic_ms()))
			weir_log(subscriber->options.log, WEIR_LOG_WARNING, "decisions",
			         "skipped %llu malformed records so far; the last is partition %u offset %llu: %s",
			         (unsigned long long)count, message->partition, (unsigned long long)message->offset, error.text);
		return RESULT_MALFORMED;
	}
	if (record.shadow)
		return RESULT_SHADOW;
	if (!is_wanted(subscriber, record.zone))
		return RESULT_OTHER_ZONE;
	return (enum subscriber_result)block_table_apply(subscriber->table, &record, now_ms);
}

static enum weir_status take_all(struct subscriber *subscriber, const struct weir_message *messages, size_t count,
                                 struct weir_error *error)
{
	int64_t now_ms = weir_wall_ms();
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < count && status != WEIR_INVALID; i++) {
		enum subscriber_result result = take(subscriber, &messages[i], now_ms);
		weir_counter_add(&subscriber->results[result], 1);
		if (subscriber->options.target->ops->wants_each && !subscriber->copy_wanted && change_count(subscriber) > 0)
			status = apply(subscriber, error);
	}
	return status == WEIR_INVALID ? status : WEIR_OK;
}

/* Until something may be due. */
static int wait_ms(const struct subscriber *subscriber)
{
	int64_t wait = WAIT_MS, left;
	if (!atomic_load(&subscriber->caught_up))
		return WAIT_MS;
	if (!subscriber->copy_wanted && change_count(subscriber) > 0 &&
	    (left = subscriber->apply_at_ms - weir_monotonic_ms()) < wait)
		wait = left;
	if (subscriber->expire_at_ms < INT64_MAX && (left = subscriber->expire_at_ms - weir_wall_ms()) < wait)
		wait = left;
	return wait > 0 ? (int)wait : 0;
}

/* ---- the bus ---- */

static bool is_kafka(const struct weir_bus *bus)
{
	return strcmp(bus->ops->name, "kafka") == 0;
}

static void open_existing_bus(struct subscriber *subscriber)
{
	struct weir_bus *bus = subscriber->bus;
	char words[WEIR_ERROR_TEXT_BYTES];
	int64_t now_ms = weir_monotonic_ms();
	if (now_ms < subscriber->bus_look_at_ms)
		return;
	subscriber->bus_look_at_ms = now_ms + BUS_LOOK_MS;
	if (is_kafka(bus))
		return; /* that bus tells of itself */
	if (bus->ops->problem(bus, words, sizeof words))
		weir_fault_raise(&subscriber->bus_fault, subscriber->options.log, "bus", "%s", words);
	else
		weir_fault_clear(&subscriber->bus_fault, subscriber->options.log, "bus");
}

static bool stopped(const struct subscriber *subscriber)
{
	return subscriber->options.stop != NULL && *subscriber->options.stop;
}

/* With `once` nobody waits for ever. */
static bool out_of_patience(const struct subscriber *subscriber)
{
	return subscriber->options.once &&
	       weir_monotonic_ms() - subscriber->progress_ms >= subscriber->options.once_wait_ms;
}

static enum weir_status open_feed(struct subscriber *subscriber, struct weir_error *error)
{
	struct feed *feed = NULL;
	enum weir_status status;
	while ((status = feed_open(subscriber->bus, &feed, error)) == WEIR_IO && !stopped(subscriber)) {
		if (out_of_patience(subscriber))
			return WEIR_IO;
		weir_fault_raise(&subscriber->feed_fault, subscriber->options.log, "decisions", "%s", error->text);
		for (int i = 0; i < 1000 / NAP_MS && !stopped(subscriber); i++)
			nap(NAP_MS);
	}
	if (status != WEIR_OK)
		return status;
	weir_fault_clear(&subscriber->feed_fault, subscriber->options.log, "decisions");
	atomic_store(&subscriber->feed, feed);
	return WEIR_OK;
}

/* As after a start: what the target holds stays until all that the topic holds is read. */
static void begin_anew(struct subscriber *subscriber)
{
	atomic_store(&subscriber->caught_up, false);
	atomic_store(&subscriber->in_place, false);
	subscriber->copy_wanted = true;
	if (subscriber->ager == NULL && !subscriber->options.once)
		subscriber->ager = ager_start(subscriber->options.target, subscriber->options.log);
}

static void after_loss(struct subscriber *subscriber)
{
	weir_log(subscriber->options.log, WEIR_LOG_WARNING, "decisions",
	         "retention deleted decisions before they were read: reading the topic from the beginning");
	block_table_clear(subscriber->table);
	begin_anew(subscriber);
}

/*
 * The new topic does not have what is blocked since before, and lifts nothing by being empty.
 *
 * @return WEIR_OK; WEIR_INVALID: the bus is that of a directory, and stays with the one that was removed
 */
static enum weir_status after_recreation(struct subscriber *subscriber, struct weir_error *error)
{
	struct weir_error why = *error;
	if (!is_kafka(subscriber->bus))
		return weir_fail(error, WEIR_INVALID, "%s: restart to read it from its beginning (runbook: topic-recreated)",
		                 why.text);
	weir_log(subscriber->options.log, WEIR_LOG_WARNING, "decisions",
	         "%s. Decisions that the old topic had and that were not read are lost. The list's blocks stay until they "
	         "end or are lifted, and the new topic is read from its beginning. Lift again what was lifted just before "
	         "(runbook: topic-recreated)",
	         why.text);
	block_table_keep(subscriber->table);
	begin_anew(subscriber);
	return WEIR_OK;
}

/*
 * A list that counts down what is left of each block was told it by the clock as it was: it is written again. Others
 * follow the clock; to write them again would take out of a list that several share what this clock says is over. Where the
 * clock was ahead, blocks ended too soon, or were over as they came: the topic still has them. Those that are in force
 * stay, as a topic that was recreated does not have all of them.
 */
static void look_at_clock(struct subscriber *subscriber)
{
	int64_t step_ms = weir_clock_step_take(&subscriber->clock);
	if (step_ms == 0)
		return;
	bool counts_down = subscriber->options.target->ops->counts_down;
	subscriber->copy_wanted |= counts_down;
	struct subscriber_notice *notice = &subscriber->clock_notices[step_ms < 0];
	if (is_news(notice, ++subscriber->clock_steps, weir_monotonic_ms()))
		weir_log(subscriber->options.log, WEIR_LOG_WARNING, "clock",
		         "the clock of this machine was set %s by %lld s: %s (runbook: clock)",
		         step_ms > 0 ? "forward" : "back", (llabs(step_ms) + 500) / 1000,
		         step_ms < 0 ? "blocks may have ended too soon, so the decisions are read from the beginning, and new "
		                       "ones reach the list once that is done"
		         : counts_down ? "the list is written again, with the time that is left of each block"
		                       : "blocks end by it from now on");
	if (step_ms > 0)
		return;
	feed_begin_anew(atomic_load(&subscriber->feed));
	block_table_keep(subscriber->table);
	begin_anew(subscriber);
}

static enum weir_status report_blocked_feed(const struct subscriber *subscriber, struct weir_error *error)
{
	char words[WEIR_ERROR_TEXT_BYTES];
	if (subscriber->bus->ops->problem(subscriber->bus, words, sizeof words))
		return weir_fail(error, WEIR_IO, "%s", words);
	return weir_fail(error, WEIR_IO, "the decisions topic has more messages, but none arrived in %lld s",
	                 (long long)subscriber->options.once_wait_ms / 1000);
}

static enum weir_status receive(struct subscriber *subscriber, struct weir_message *messages, size_t *count,
                                struct weir_error *error)
{
	struct feed *feed = atomic_load(&subscriber->feed);
	uint64_t gaps = feed_gaps(feed);
	error->text[0] = '\0';
	enum weir_status status = feed_receive(feed, messages, BATCH, wait_ms(subscriber), count, error);
	if (status == WEIR_OK && feed_gaps(feed) > gaps && error->text[0] != '\0')
		weir_log(
			subscriber->options.log, WEIR_LOG_WARNING, "decisions",
			"%s. It is passed over: a block or a lift that was in it does not reach the list. Look at the broker's "
			"disk, and order it again (runbook: gateway-not-blocking)",
			error->text);
	open_existing_bus(subscriber);
	if (status == WEIR_ANEW)
		return after_recreation(subscriber, error);
	if (feed_begin_anew_if_lost(feed)) {
		after_loss(subscriber);
		*count = 0;
	}
	if (*count > 0)
		subscriber->progress_ms = weir_monotonic_ms();
	else if (status != WEIR_INVALID && out_of_patience(subscriber) && !feed_caught_up(feed))
		return status == WEIR_IO ? status : report_blocked_feed(subscriber, error);
	if (status == WEIR_IO) {
		if (weir_bus_failure_lasts(subscriber->bus, &subscriber->feed_fails, subscriber->options.log))
			weir_fault_raise(&subscriber->feed_fault, subscriber->options.log, "decisions",
			                 "cannot read the decisions: %s. The list stays as it is, without new blocks. Retrying "
			                 "(runbook: gateway-not-blocking)",
			                 error->text);
		nap(NAP_MS);
		return WEIR_OK;
	}
	if (status == WEIR_OK) {
		weir_lasting_worked(&subscriber->feed_fails);
		weir_fault_over(&subscriber->feed_fault, subscriber->options.log, "decisions", "decisions are read again");
	}
	return status;
}

static void note_catch_up(struct subscriber *subscriber)
{
	if (atomic_load(&subscriber->caught_up) || !feed_caught_up(atomic_load(&subscriber->feed)))
		return;
	ager_stop(subscriber->ager);
	subscriber->ager = NULL;
	atomic_store(&subscriber->caught_up, true);
	weir_log(subscriber->options.log, WEIR_LOG_INFO, "decisions", "read all existing decisions: %u blocks are live",
	         block_table_count(subscriber->table));
}

/* ---- the loop ---- */

static enum weir_status copy_once(struct subscriber *subscriber, struct weir_error *error)
{
	struct target *target = subscriber->options.target;
	if (target->ops->copy(target, subscriber->table, weir_wall_ms(), error) != WEIR_OK)
		return WEIR_IO;
	announce(subscriber);
	log_left_out(subscriber, weir_monotonic_ms());
	return WEIR_END;
}

static enum weir_status turn(struct subscriber *subscriber, struct weir_message *messages, struct weir_error *error)
{
	size_t count;
	if (subscriber->options.take_rewrite != NULL && subscriber->options.take_rewrite(subscriber->options.context))
		subscriber->copy_wanted = true;
	enum weir_status status = receive(subscriber, messages, &count, error);
	if (status == WEIR_OK)
		status = take_all(subscriber, messages, count, error);
	if (status != WEIR_OK)
		return status;
	subscriber->expire_at_ms = block_table_expire(subscriber->table, weir_wall_ms());
	if (!subscriber->options.once)
		look_at_clock(subscriber); /* at once, so that what a wrong clock ended is not taken for right */
	bool was_caught_up = atomic_load(&subscriber->caught_up);
	note_catch_up(subscriber);
	if (!was_caught_up) /* what there was already says nothing of how long anything takes */
		block_table_settle(subscriber->table);
	if (!atomic_load(&subscriber->caught_up))
		return WEIR_OK;
	if (subscriber->options.once)
		return copy_once(subscriber, error);
	return serve_target(subscriber, error);
}

enum weir_status subscriber_run(struct subscriber *subscriber, struct weir_bus *bus, struct weir_error *error)
{
	subscriber->bus = bus;
	subscriber->progress_ms = weir_monotonic_ms();
	enum weir_status status = open_feed(subscriber, error);
	struct weir_message *messages = weir_alloc(BATCH, sizeof *messages);
	while (status == WEIR_OK && !stopped(subscriber))
		status = turn(subscriber, messages, error);
	free(messages);
	if (stopped(subscriber) && status == WEIR_IO)
		status = WEIR_OK; /* it was not let finish */
	return status == WEIR_END ? WEIR_OK : status;
}
