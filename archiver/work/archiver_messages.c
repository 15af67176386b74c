/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves messages from the topics into ledgers. A message that is not a judged
 * frame or a decision is counted and skipped: other programs may write there. A
 * message from a newer weir is not skipped: its partition waits for an upgrade.
 *
 * So is a judged frame whose record does not exist: all frames up to its number would be taken for repetitions of it.
 */
#include "archiver/work/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/store/record_base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	MESSAGES = 64,
	NAP_MS = 100,
	RETAKE_MS = 1000,
	TOPICS = 3,
	LEAP = 1024, /* records between two judged frames: more have no events in a row where somebody has made them up */
};

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
}

static void malformed(struct archiver *archiver, const struct weir_message *message, const char *why)
{
	weir_counter_add(&archiver->stats.malformed, 1);
	weir_notice_log(
		&archiver->skipped, archiver->options.log, WEIR_LOG_WARNING, "archiver",
		"skipped %s partition %u offset %" PRIu64
		": %s. It is not in the archive; nothing else is missing. A message that weir did not write, or damage: "
		"find who writes to the topic (runbook: foreign-messages)",
		weir_topic_name(message->topic), message->partition, message->offset, why);
}

/*
 * Whether a number is of a record that the topic of events does not have yet. A frame comes after its record, so the end
 * that is asked for here is behind it. Where limiters have stored more than the topic has, it is not the one that they
 * judged, and nothing is known.
 *
 * @return WEIR_OK; else the bus or the store did not answer
 */
static enum weir_status look_beyond(const struct archiver *archiver, uint32_t partition, uint64_t number, bool *beyond,
                                    struct weir_error *error)
{
	struct weir_bus *bus = archiver->options.bus;
	struct weir_partition_state row;
	uint64_t first, end, base = 0;
	*beyond = false;
	enum weir_status status = bus->ops->extent(bus, WEIR_TOPIC_EVENTS, partition, &first, &end, error);
	if (status != WEIR_OK)
		return status;
	status = archiver->store->ops->inspect(archiver->store, WEIR_STORE_ROLE_LIMITER, partition, &row, error);
	if (status != WEIR_OK) {
		weir_error_prefix(error, "the store");
		return status;
	}
	struct weir_span extra = row.extra;
	if (row.checkpoint > 0 && weir_record_base_read(&extra, &base, error) != WEIR_OK)
		return WEIR_OK;
	/* One below the base is of the topic that was there before. */
	*beyond = end >= row.next_offset && number >= base && number - base >= end;
	return WEIR_OK;
}

/* Of a frame that leaps: rare, so that the servers are asked. @return as take_judged() */
static bool is_of_record(struct archiver *archiver, const struct ledger *ledger, const struct weir_message *message,
                         uint64_t number, bool *real)
{
	struct weir_error error;
	bool beyond;
	*real = true;
	if (number < ledger->events_next || number - ledger->events_next <= LEAP)
		return true;
	enum weir_status status = look_beyond(archiver, message->partition, number, &beyond, &error);
	if (status != WEIR_OK) {
		archiver_bus_fails(archiver, &error);
		return false;
	}
	*real = !beyond;
	if (beyond) {
		char why[128];
		snprintf(why, sizeof why, "it judges record %" PRIu64 ", which topic events does not have", number);
		malformed(archiver, message, why);
	}
	return true;
}

static void tell_no_policy(struct archiver *archiver, const struct weir_message *message, uint64_t version)
{
	weir_notice_log(&archiver->no_policy, archiver->options.log, WEIR_LOG_WARNING, "archiver",
	                "partition %u offset %" PRIu64 " was judged by policy %" PRIu64
	                ", which this archiver's store does not have, or which a newer weir wrote: which of its zones keep "
	                "histories is unknown, so those lack its events; counts and decisions have them. Look whether the "
	                "store is the limiters' own, and upgrade this archiver (runbook: archive-behind)",
	                message->partition, message->offset, version);
}

/* @return false: the message was not taken, and none after it may be; the reason is logged */
static bool take_judged(struct archiver *archiver, struct ledger *ledger, const struct weir_message *message)
{
	struct weir_frame frame;
	struct weir_error error;
	enum weir_status status = weir_frame_decode(archiver->reader, message->payload, &frame, &error);
	if (status == WEIR_NEWER) {
		archiver_stick(
			archiver, message->partition,
			"a newer weir wrote its next message. Nothing is archived meanwhile, and nothing is lost while the topics "
			"keep it. Upgrade this archiver (runbook: foreign-messages)");
		return false;
	}
	if (status == WEIR_OK && frame.kind != WEIR_FRAME_JUDGED)
		status = weir_fail(&error, WEIR_INVALID, "it is not a judged frame");
	if (status != WEIR_OK) {
		malformed(archiver, message, error.text);
		ledger_skip(ledger, WEIR_TOPIC_JUDGED, message->offset);
		return true;
	}
	/*
	 * A judged frame has the times of its sender. The limiter has bounded them by when the log took the events; when they
	 * were judged is later by the limiter's lag, and nearer than a time of tomorrow.
	 */
	(void)weir_frame_bound_times(archiver->reader, &frame, message->appended_ms);
	bool real;
	if (!is_of_record(archiver, ledger, message, frame.judged_offset, &real))
		return false;
	if (!real) {
		ledger_skip(ledger, WEIR_TOPIC_JUDGED, message->offset);
		return true;
	}
	/* Which zones keep a history is in the store. */
	status = histories_know(archiver->histories, archiver->store, frame.policy_version, &error);
	if (status != WEIR_OK) {
		archiver_note_store(archiver, status, &error);
		archiver_store_fails(archiver, &error);
		return false;
	}
	if (!histories_has(archiver->histories, frame.policy_version))
		tell_no_policy(archiver, message, frame.policy_version);
	uint64_t before = ledger->event_total;
	if (ledger_judged(ledger, message->offset, &frame, archiver->histories))
		weir_counter_add(&archiver->stats.frames, 1);
	else
		weir_counter_add(&archiver->stats.repeated, 1);
	weir_counter_add(&archiver->stats.events, ledger->event_total - before);
	return true;
}

bool archiver_take_decision(struct archiver *archiver, struct ledger *ledger, const struct weir_message *message)
{
	struct decision_row row;
	struct weir_error error;
	bool shadow = message->topic == WEIR_TOPIC_SHADOW;
	enum weir_status status = decision_row_read(message, &row, &error);
	if (status == WEIR_OK && row.shadow != shadow) {
		status = weir_fail(&error, WEIR_INVALID, "its mode is of another topic");
		decision_row_deinit(&row);
	}
	if (status == WEIR_OK) {
		ledger_decision(ledger, message->topic, message->offset, &row);
		weir_counter_add(shadow ? &archiver->stats.shadow_decisions : &archiver->stats.decisions, 1);
	} else {
		malformed(archiver, message, error.text);
		ledger_skip(ledger, message->topic, message->offset);
	}
	return true;
}

void archiver_bus_fails(struct archiver *archiver, const struct weir_error *error)
{
	if (weir_bus_failure_lasts(archiver->options.bus, &archiver->bus_fails, archiver->options.log))
		weir_fault_raise(
			&archiver->bus_fault, archiver->options.log, "archiver",
			"cannot read the topics: %s. Nothing is archived meanwhile; verdicts go on, and nothing is lost "
			"while the topics keep it. Retrying. %s",
			error->text, bus_of(archiver)->advice);
}

void archiver_take_messages(struct archiver *archiver, const struct weir_message *messages, size_t count,
                            archiver_take *take)
{
	for (size_t i = 0; i < count; i++) {
		struct partition *partition = &archiver->partitions[messages[i].partition];
		if (partition->state != PARTITION_LIVE)
			continue;
		if (take(archiver, partition->ledger, &messages[i])) {
			ledger_mark(partition->ledger, &messages[i]);
			continue;
		}
		/* Its rows are dropped too: it is read again from where it was last stored. */
		if (partition->state == PARTITION_LIVE)
			archiver_drop(archiver, messages[i].partition, PARTITION_EMPTY);
		archiver->retake_ms = weir_monotonic_ms() + RETAKE_MS;
	}
	if (count > 0 && weir_counter_read(&archiver->stats.oldest_ms) == 0)
		atomic_store_explicit(&archiver->stats.oldest_ms.value, (uint64_t)weir_monotonic_ms(), memory_order_relaxed);
}

/* @return whether there may be more at once */
static bool receive_from(struct archiver *archiver, struct weir_consumer *consumer, int timeout_ms, archiver_take *take)
{
	struct weir_message messages[MESSAGES];
	struct weir_error error;
	size_t count = 0;
	enum weir_status status = bus_of(archiver)->receive(consumer, messages, MESSAGES, timeout_ms, &count, &error);
	if (status == WEIR_INVALID || status == WEIR_ANEW) {
		/* The topic may no longer have what came before the gap, so that is stored first. The gap is reported again. */
		if (!archiver_store(archiver)) {
			nap();
			return false;
		}
		const struct ledger *ledger = archiver->partitions[messages[0].partition].ledger;
		archiver_stand_at_gap(archiver, messages[0].partition, ledger != NULL ? ledger->checkpoint : 0, &error);
		return false;
	}
	if (status != WEIR_OK) {
		archiver_bus_fails(archiver, &error);
		nap();
		return false;
	}
	if (count > 0) { /* no messages are no sign that a fault is over: the brokers may not have been asked again yet */
		weir_lasting_worked(&archiver->bus_fails);
		weir_fault_over(&archiver->bus_fault, archiver->options.log, "archiver", "messages arrive again");
	}
	archiver_take_messages(archiver, messages, count, take);
	return count == MESSAGES;
}

void archiver_receive(struct archiver *archiver, int timeout_ms)
{
	/* Of topics that have much to catch up with no turn waits for another. */
	(void)receive_from(archiver, archiver->judged, archiver->behind ? 0 : timeout_ms, take_judged);
	archiver->behind = false;
	if (!archiver->unsettled) /* storing at a gap in the first topic may have failed */
		archiver->behind = receive_from(archiver, archiver->decisions, 0, archiver_take_decision);
	if (!archiver->unsettled)
		archiver->behind |= archiver_receive_shadow(archiver);
}

/* ---- positions ---- */

/* The consumer's position may be further: a topic may end in offsets without messages, such as transaction markers. */
static uint64_t next_of(const struct archiver *archiver, const struct weir_consumer *consumer, uint32_t partition,
                        uint64_t taken)
{
	uint64_t read = bus_of(archiver)->position(consumer, partition);
	return read > taken ? read : taken;
}

void archiver_tell_places(struct archiver *archiver)
{
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++) {
		const struct ledger *ledger = archiver->partitions[i].ledger;
		struct place *place = &archiver->places[i];
		bool live = archiver->partitions[i].state == PARTITION_LIVE;
		if (live) {
			const struct ledger_position *at = ledger->positions;
			atomic_store(&place->judged_next, next_of(archiver, archiver->judged, i, at[WEIR_TOPIC_JUDGED].next));
			atomic_store(&place->decisions_next,
			             next_of(archiver, archiver->decisions, i, at[WEIR_TOPIC_DECISIONS].next));
			atomic_store(&place->clock_ms, ledger->clock_ms);
		}
		atomic_store(&place->live, live);
	}
}

bool archiver_place(const struct archiver *archiver, enum weir_topic topic, uint32_t partition, uint64_t *next_offset,
                    int64_t *clock_ms)
{
	const struct place *place = &archiver->places[partition];
	bool judged = topic == WEIR_TOPIC_JUDGED;
	*next_offset = atomic_load(judged ? &place->judged_next : &place->decisions_next);
	*clock_ms = judged ? atomic_load(&place->clock_ms) : 0;
	return atomic_load(&place->live);
}

/* ---- the topics' ends ---- */

static const enum weir_topic topics[TOPICS] = {WEIR_TOPIC_JUDGED, WEIR_TOPIC_DECISIONS, WEIR_TOPIC_SHADOW};

uint64_t *archiver_ends(struct archiver *archiver, struct weir_error *error)
{
	struct weir_bus *bus = archiver->options.bus;
	uint32_t count = bus->partitions;
	uint64_t *ends = weir_alloc(TOPICS * count, sizeof *ends), first;
	bool answers = true; /* one that does not is asked once: each question takes a while */
	for (uint32_t i = 0; i < TOPICS * count; i++) {
		enum weir_topic topic = topics[i / count];
		answers = answers && bus->ops->extent(bus, topic, i % count, &first, &ends[i], error) == WEIR_OK;
		if (answers)
			continue;
		if (topic != WEIR_TOPIC_SHADOW) {
			free(ends);
			return NULL;
		}
		ends[i] = ARCHIVER_END_UNKNOWN;
	}
	return ends;
}

bool archiver_caught_up(struct archiver *archiver, const uint64_t *ends)
{
	uint32_t count = archiver->options.bus->partitions;
	for (uint32_t i = 0; i < TOPICS * count; i++) {
		const struct partition *partition = &archiver->partitions[i % count];
		enum weir_topic topic = topics[i / count];
		bool waited_for = partition->state == PARTITION_LIVE && ends[i] != ARCHIVER_END_UNKNOWN &&
		                  (topic != WEIR_TOPIC_SHADOW || partition->shadow_due_ms == 0);
		if (waited_for && partition->ledger->positions[topic].next < ends[i])
			return false;
	}
	return true;
}
