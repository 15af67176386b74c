/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the decisions of zones in shadow mode. weir works on without their topic
 * (weir_topic_may_be_missed()), so nothing waits for it here either: where it
 * cannot be read, the partition's counts and enforced decisions are archived all
 * the same; and where it was made anew, or no longer has what comes next, reading
 * continues with its first message, and the log says what is missing. What is
 * damaged in the log of a standalone process is passed over, likewise: that log
 * keeps all that a reader has not consumed, so it would grow until its disk is full.
 *
 * The position is stored with the partition's others, in one transaction with its
 * rows: each decision is kept once.
 */
#include "archiver/work/internal.h"

#include "common/base/clock.h"

#include <inttypes.h>

enum {
	MESSAGES = 64,
	LOOK_MS = 5000, /* between attempts to read a partition */
	SLOW_MS = 500,  /* a server that takes so long may be away: its next answer is not waited for at once */
	TURN_MS = 500,  /* other topics do not wait longer than about this */
	REFUSED_SHARE = 8,
};

#define NO_OFFSET UINT64_MAX

static void put_off(struct archiver *archiver, uint32_t number, int64_t due_ms)
{
	struct partition *partition = &archiver->partitions[number];
	archiver_leave_shadow(archiver, number);
	partition->shadow_due_ms = due_ms;
}

void archiver_leave_shadow(struct archiver *archiver, uint32_t number)
{
	struct partition *partition = &archiver->partitions[number];
	if (partition->shadow_read)
		bus_of(archiver)->unassign(archiver->shadow, number);
	partition->shadow_read = false;
}

/* ---- troubles ---- */

static void tell(struct archiver *archiver, const struct weir_error *error)
{
	archiver->shadow_failed_ms = weir_monotonic_ms();
	weir_counter_set(&archiver->stats.shadow_fails, 1);
	if (weir_bus_failure_lasts(archiver->options.bus, &archiver->shadow_fails, archiver->options.log))
		weir_fault_raise(
			&archiver->shadow_fault, archiver->options.log, "archiver",
			"cannot read the decisions of zones in shadow mode: %s. They are not archived meanwhile; everything else is, "
			"and verdicts go on. Retrying every 5 s. Look at that topic, and at the right to read it (runbook: "
			"archive-behind)",
			error->text);
}

/* Its words do not say when it works again: so it must have done for a while. */
static void tell_over(struct archiver *archiver)
{
	if (archiver->shadow_failed_ms == 0 || weir_monotonic_ms() - archiver->shadow_failed_ms < 2 * LOOK_MS)
		return;
	archiver->shadow_failed_ms = 0;
	weir_counter_set(&archiver->stats.shadow_fails, 0);
	weir_lasting_worked(&archiver->shadow_fails);
	weir_fault_over(&archiver->shadow_fault, archiver->options.log, "archiver",
	                "decisions of zones in shadow mode are archived again");
}

void archiver_tell_unread_shadow(const struct archiver *archiver, const uint64_t *ends)
{
	uint32_t unread = 0;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++) {
		const struct partition *partition = &archiver->partitions[i];
		unread += partition->state == PARTITION_LIVE &&
		          (ends[i] == ARCHIVER_END_UNKNOWN || partition->ledger->positions[WEIR_TOPIC_SHADOW].next < ends[i]);
	}
	if (unread > 0)
		weir_log(
			archiver->options.log, WEIR_LOG_WARNING, "archiver",
			"not all decisions of zones in shadow mode could be read before the end, of %u of %u partitions: the next "
			"start archives those that their topic still has (runbook: archive-behind)",
			unread, archiver->options.bus->partitions);
}

/* The topic failed as a whole, as far as can be told. */
static void fails(struct archiver *archiver, const struct weir_error *error)
{
	int64_t due_ms = weir_monotonic_ms() + LOOK_MS;
	tell(archiver, error);
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++)
		put_off(archiver, i, due_ms);
}

/* ---- where it goes on ---- */

static enum weir_status resume(struct archiver *archiver, struct ledger *ledger, struct weir_error *error)
{
	const struct ledger_position *at = &ledger->positions[WEIR_TOPIC_SHADOW];
	enum weir_status status = bus_of(archiver)->resume(archiver->shadow, ledger->partition, at->next, &at->last, error);
	struct partition *partition = &archiver->partitions[ledger->partition];
	partition->shadow_read = status == WEIR_OK;
	if (partition->shadow_read)
		partition->shadow_due_ms = 0;
	return status;
}

static void tell_gap(struct archiver *archiver, const struct ledger *ledger, uint64_t first,
                     const struct weir_error *why)
{
	const struct weir_log *log = archiver->options.log;
	uint64_t next = ledger->positions[WEIR_TOPIC_SHADOW].next;
	if (why->status == WEIR_ANEW)
		weir_notice_log(&archiver->shadow_gaps, log, WEIR_LOG_WARNING, "archiver",
		                "%s: decisions of zones in shadow mode are archived from its first message on", why->text);
	else if (next > 0)
		weir_notice_log(&archiver->shadow_gaps, log, WEIR_LOG_WARNING, "archiver",
		                "partition %u: %" PRIu64
		                " messages of %s are gone, as no archiver was there for longer than the topic keeps them, and "
		                "missing from the archive; what came after them is archived",
		                ledger->partition, first - next, weir_topic_name(WEIR_TOPIC_SHADOW));
}

/*
 * Passes over a message that is damaged. Of a file that cannot be read as a whole each message is refused: so a step grows
 * with what was refused before it, and at most an eighth more than that is passed over.
 */
static enum weir_status pass_refused(struct archiver *archiver, struct ledger *ledger, uint64_t refused, uint64_t end,
                                     struct weir_error *error)
{
	struct partition *partition = &archiver->partitions[ledger->partition];
	uint64_t step = 1 + partition->shadow_refused / REFUSED_SHARE;
	uint64_t next = step < end - refused ? refused + step : end;
	partition->shadow_refused += step;
	weir_notice_log(
		&archiver->shadow_gaps, archiver->options.log, WEIR_LOG_WARNING, "archiver",
		"partition %u: %s. Decisions of zones in shadow mode from offset %" PRIu64 " to %" PRIu64
		" are lost, and missing from the archive; what came after them is archived, and verdicts do not depend "
		"on it. Look at the disk (runbook: archive-behind)",
		ledger->partition, error->text, refused, next - 1);
	ledger->positions[WEIR_TOPIC_SHADOW] = (struct ledger_position){.next = next};
	ledger->changed = true;
	return resume(archiver, ledger, error);
}

/*
 * Goes on with the topic's first message, where it was made anew, or no longer has the next one; or behind one that is
 * damaged, where the topic belongs to this process alone.
 *
 * @param refused  the offset of the message that is damaged, or NO_OFFSET
 * @param error  why it cannot be read on; set where that stays so
 * @return WEIR_OK: it is read; WEIR_INVALID: it is damaged; else as extent()
 */
static enum weir_status step_over(struct archiver *archiver, struct ledger *ledger, uint64_t refused,
                                  struct weir_error *error)
{
	struct weir_bus *bus = archiver->options.bus;
	const struct weir_error why = *error;
	uint64_t first, next;
	enum weir_status status = bus->ops->extent(bus, WEIR_TOPIC_SHADOW, ledger->partition, &first, &next, error);
	if (status != WEIR_OK)
		return status;
	if (why.status != WEIR_ANEW && ledger->positions[WEIR_TOPIC_SHADOW].next >= first) {
		*error = why;
		if (archiver->options.standalone && refused < next)
			return pass_refused(archiver, ledger, refused, next, error);
		return why.status;
	}
	tell_gap(archiver, ledger, first, &why);
	ledger->positions[WEIR_TOPIC_SHADOW] = (struct ledger_position){.next = first};
	ledger->changed = true;
	return resume(archiver, ledger, error);
}

/* What one partition's failure means. @return whether the others can be read */
static bool take_failure(struct archiver *archiver, uint32_t number, enum weir_status status,
                         const struct weir_error *error)
{
	if (status != WEIR_INVALID && status != WEIR_ANEW) {
		fails(archiver, error);
		return false;
	}
	tell(archiver, error);
	put_off(archiver, number, weir_monotonic_ms() + LOOK_MS);
	return true;
}

/* Begins to read partitions whose other topics are read. */
static void begin_due(struct archiver *archiver)
{
	struct weir_error error;
	int64_t begun_ms = weir_monotonic_ms(), before_ms = begun_ms, now_ms = begun_ms;
	for (uint32_t i = 0; i < archiver->options.bus->partitions && now_ms - begun_ms < TURN_MS; i++) {
		struct partition *partition = &archiver->partitions[i];
		if (partition->state != PARTITION_LIVE || partition->shadow_read || begun_ms < partition->shadow_due_ms)
			continue;
		enum weir_status status = resume(archiver, partition->ledger, &error);
		if (status == WEIR_INVALID || status == WEIR_ANEW)
			status = step_over(archiver, partition->ledger, NO_OFFSET, &error);
		if (status != WEIR_OK && !take_failure(archiver, i, status, &error))
			return;
		now_ms = weir_monotonic_ms();
		for (uint32_t j = i + 1; now_ms - before_ms > SLOW_MS && j < archiver->options.bus->partitions; j++)
			if (!archiver->partitions[j].shadow_read)
				archiver->partitions[j].shadow_due_ms = now_ms + LOOK_MS;
		before_ms = now_ms;
	}
}

/* ---- messages ---- */

bool archiver_receive_shadow(struct archiver *archiver)
{
	struct weir_message messages[MESSAGES];
	struct weir_error error;
	size_t count = 0;
	begin_due(archiver);
	enum weir_status status = bus_of(archiver)->receive(archiver->shadow, messages, MESSAGES, 0, &count, &error);
	if (status == WEIR_INVALID || status == WEIR_ANEW) {
		uint32_t number = messages[0].partition;
		struct ledger *ledger = archiver->partitions[number].ledger;
		archiver_leave_shadow(archiver, number);
		status = ledger != NULL ? step_over(archiver, ledger, messages[0].offset, &error) : WEIR_OK;
		if (status != WEIR_OK)
			(void)take_failure(archiver, number, status, &error);
		return false;
	}
	if (status != WEIR_OK) {
		fails(archiver, &error);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		archiver->partitions[messages[i].partition].shadow_refused = 0;
	archiver_take_messages(archiver, messages, count, archiver_take_decision);
	tell_over(archiver);
	return count == MESSAGES;
}
