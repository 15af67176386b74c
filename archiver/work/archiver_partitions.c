/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions come and go as the consumer group assigns them. Taking one raises its
 * epoch, so the previous owner can store nothing more, even if the group has not
 * told it yet.
 */
#include "archiver/work/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/cluster/partition_note.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { RETAKE_MS = 1000, GAP_LOOK_MS = 5000, UNFED_LOOK_MS = 10000, TELL_MS = 500 };

static void count_partitions(struct archiver *archiver)
{
	uint64_t live = 0, parked = 0, unfed = 0;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++) {
		live += archiver->partitions[i].state == PARTITION_LIVE;
		parked += archiver->partitions[i].state == PARTITION_PARKED;
		unfed += archiver->partitions[i].state == PARTITION_LIVE && archiver->partitions[i].unfed;
	}
	atomic_store_explicit(&archiver->stats.partitions.value, live, memory_order_relaxed);
	atomic_store_explicit(&archiver->stats.parked.value, parked, memory_order_relaxed);
	atomic_store_explicit(&archiver->stats.unfed.value, unfed, memory_order_relaxed);
}

static void set_reason(struct archiver *archiver, uint32_t number, const char *why)
{
	pthread_mutex_lock(&archiver->reasons.lock);
	snprintf(archiver->reasons.parked[number], sizeof archiver->reasons.parked[number], "%s", why);
	pthread_mutex_unlock(&archiver->reasons.lock);
}

void archiver_drop(struct archiver *archiver, uint32_t number, enum partition_state state)
{
	struct partition *partition = &archiver->partitions[number];
	if (partition->state == PARTITION_LIVE) {
		bus_of(archiver)->unassign(archiver->judged, number);
		bus_of(archiver)->unassign(archiver->decisions, number);
		archiver_leave_shadow(archiver, number);
		ledger_free(partition->ledger);
		partition->ledger = NULL;
	}
	partition->state = state;
	partition->at_gap = false;
	set_reason(archiver, number, "");
	count_partitions(archiver);
}

void archiver_stick(struct archiver *archiver, uint32_t number, const char *why)
{
	weir_partition_faults_raise(&archiver->faults, number, WEIR_LOG_ERROR, "stopped", why);
	archiver_drop(archiver, number, PARTITION_PARKED);
	set_reason(archiver, number, why);
}

/* A limiter with "archiver.enabled": false says so in the store; its judged frames are missing for good. */
static void look_for_unfed(struct archiver *archiver, int64_t now_ms)
{
	if (archiver->options.standalone || now_ms < archiver->unfed_look_ms)
		return;
	archiver->unfed_look_ms = now_ms + UNFED_LOOK_MS;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++) {
		char *machine, why[ARCHIVER_REASON_BYTES];
		struct partition *partition = &archiver->partitions[i];
		if (partition->state != PARTITION_LIVE)
			continue;
		if (weir_partition_note_get(archiver->store, WEIR_PARTITION_UNARCHIVED, i, &machine, NULL) != WEIR_OK)
			break; /* what was known holds */
		partition->unfed = machine != NULL;
		if (partition->unfed) {
			snprintf(
				why, sizeof why,
				"the limiter that has it, on %s, has \"archiver.enabled\": false and publishes no judged frames. Its "
				"counts are missing from the archive for good; verdicts go on. Set it to true in every limiter's "
				"configuration, and restart that one (runbook: archive-stuck)",
				machine);
			weir_partition_faults_raise(&archiver->faults, i, WEIR_LOG_ERROR, "not archived whole", why);
		}
		free(machine);
	}
	count_partitions(archiver);
}

void archiver_tell_partitions(struct archiver *archiver)
{
	int64_t now_ms = weir_monotonic_ms();
	if (now_ms < archiver->tell_ms)
		return;
	archiver->tell_ms = now_ms + TELL_MS;
	look_for_unfed(archiver, now_ms);
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++)
		if (archiver->partitions[i].state == PARTITION_LIVE && !archiver->partitions[i].unfed)
			weir_partition_faults_clear(&archiver->faults, i);
	weir_partition_faults_tell(&archiver->faults);
}

void archiver_store_fails(struct archiver *archiver, const struct weir_error *error)
{
	weir_fault_raise(&archiver->store_fault, archiver->options.log, "archiver",
	                 "cannot archive. Verdicts go on, and nothing is lost while topics judged and decisions keep it. "
	                 "Retrying every second. The store: %s",
	                 error->text);
}

void archiver_stand_at_gap(struct archiver *archiver, uint32_t number, uint64_t checkpoint,
                           const struct weir_error *why)
{
	struct weir_error error;
	struct partition *partition = &archiver->partitions[number];
	const char *first = archiver->options.standalone ? "Stop weir run, then " : "";
	if (archiver->options.standalone && why->status != WEIR_ANEW)
		(void)weir_fail(&error, WEIR_INVALID, "%s", why->text); /* its log is trimmed up to what was consumed: no gap */
	else
		(void)weir_fail(
			&error, WEIR_INVALID,
			why->status == WEIR_ANEW
				? "%s: nothing more of it is archived meanwhile; verdicts go on. %s`weir recover --accept-gap %s --partition "
				  "%u --yes` (or --all) continues with its first message; what was archived of it does not count again "
				  "(runbook: topic-recreated)"
				: "%s: the messages in between are gone, and will be missing from the archive. Nothing more of it is "
				  "archived meanwhile; verdicts go on. %s`weir recover --accept-gap %s --partition %u --yes` (or "
				  "--all) continues after them (runbook: archive-stuck)",
			why->text, first, weir_config_words(archiver->options.config), number);
	archiver_stick(archiver, number, error.text);
	partition->at_gap = !archiver->options.standalone;
	partition->checkpoint = checkpoint;
}

/* Frees partitions whose gap a person has accepted, so that they are taken again. */
static void inspect_gaps(struct archiver *archiver)
{
	struct weir_partition_state state;
	int64_t now_ms = weir_monotonic_ms();
	if (now_ms < archiver->gap_look_ms)
		return;
	archiver->gap_look_ms = now_ms + GAP_LOOK_MS;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++) {
		struct partition *partition = &archiver->partitions[i];
		if (partition->state != PARTITION_PARKED || !partition->at_gap ||
		    archiver->store->ops->inspect(archiver->store, WEIR_STORE_ROLE_ARCHIVER, i, &state, NULL) != WEIR_OK ||
		    state.checkpoint == partition->checkpoint)
			continue;
		weir_log(archiver->options.log, WEIR_LOG_INFO, "archiver",
		         "partition %u continues: `weir recover` has accepted what is missing", i);
		archiver_drop(archiver, i, PARTITION_EMPTY);
		archiver->retake_ms = now_ms;
	}
}

/*
 * A partition that was never archived begins where its topics begin. So does one of a standalone process whose topics
 * no longer have the next messages: they are trimmed up to what their readers consumed, and a process without an
 * archiver drops the archiver as a reader.
 */
static enum weir_status find_beginning(struct archiver *archiver, struct ledger *ledger, enum weir_topic topic,
                                       struct weir_error *error)
{
	uint64_t first, next, *place = &ledger->positions[topic].next;
	struct weir_bus *bus = archiver->options.bus;
	if (!ledger->fresh && !archiver->options.standalone)
		return WEIR_OK;
	enum weir_status status = bus->ops->extent(bus, topic, ledger->partition, &first, &next, error);
	if (status != WEIR_OK || (!ledger->fresh && *place >= first))
		return status;
	if (!ledger->fresh)
		weir_log(
			archiver->options.log, WEIR_LOG_WARNING, "archiver",
			"partition %u: %" PRIu64
			" messages of %s arrived while archiver.enabled was off. They are gone from the log, and missing from the "
			"archive; what came after them is archived",
			ledger->partition, first - *place, weir_topic_name(topic));
	*place = first;
	return WEIR_OK;
}

static enum weir_status assign(struct archiver *archiver, const struct ledger *ledger, struct weir_error *error)
{
	const struct weir_bus_ops *bus = bus_of(archiver);
	const struct ledger_position *judged = &ledger->positions[WEIR_TOPIC_JUDGED];
	const struct ledger_position *decisions = &ledger->positions[WEIR_TOPIC_DECISIONS];
	enum weir_status status = bus->resume(archiver->judged, ledger->partition, judged->next, &judged->last, error);
	if (status != WEIR_OK)
		return status;
	status = bus->resume(archiver->decisions, ledger->partition, decisions->next, &decisions->last, error);
	if (status != WEIR_OK)
		bus->unassign(archiver->judged, ledger->partition);
	return status;
}

/* Raises the epoch of its row; what the store says is told here. */
static enum weir_status take_row(struct archiver *archiver, uint32_t number, struct weir_partition_state *state,
                                 struct weir_error *error)
{
	enum weir_status status =
		archiver->store->ops->take(archiver->store, WEIR_STORE_ROLE_ARCHIVER, number, state, error);
	archiver_note_store(archiver, status, error);
	if (status == WEIR_OK)
		weir_fault_over(&archiver->store_fault, archiver->options.log, "archiver", "the store takes rows again");
	else if (status == WEIR_IO || status == WEIR_AGAIN)
		archiver_store_fails(archiver, error);
	return status;
}

/* Finds where it goes on, and begins to read there. @return as take() */
static enum weir_status read_on(struct archiver *archiver, struct ledger *ledger, struct weir_error *error)
{
	enum weir_status status = find_beginning(archiver, ledger, WEIR_TOPIC_JUDGED, error);
	if (status == WEIR_OK)
		status = find_beginning(archiver, ledger, WEIR_TOPIC_DECISIONS, error);
	if (status == WEIR_OK) {
		status = assign(archiver, ledger, error);
		if (status == WEIR_INVALID || status == WEIR_ANEW) {
			archiver_stand_at_gap(archiver, ledger->partition, ledger->checkpoint, error);
			status = WEIR_END;
		}
	}
	if (status == WEIR_IO || status == WEIR_AGAIN)
		archiver_bus_fails(archiver, error);
	return status;
}

/* @return WEIR_IO, WEIR_AGAIN: try again, which is logged; WEIR_END: it is parked at a gap, which is logged */
static enum weir_status take(struct archiver *archiver, uint32_t number, struct weir_error *error)
{
	struct weir_partition_state state;
	struct ledger *ledger = ledger_new(number);
	enum weir_status status = take_row(archiver, number, &state, error);
	if (status == WEIR_OK)
		status = ledger_restore(ledger, &state, error);
	if (status == WEIR_OK)
		status = read_on(archiver, ledger, error);
	if (status != WEIR_OK) {
		ledger_free(ledger);
		return status;
	}
	archiver->partitions[number] = (struct partition){.state = PARTITION_LIVE, .ledger = ledger};
	weir_counter_add(&archiver->stats.taken, 1);
	return WEIR_OK;
}

static void take_missing(struct archiver *archiver, const bool *given)
{
	struct weir_error error;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++) {
		if (archiver->partitions[i].state != PARTITION_EMPTY || !given[i])
			continue;
		enum weir_status status = take(archiver, i, &error);
		if (status == WEIR_IO || status == WEIR_AGAIN) {
			archiver->retake_ms = weir_monotonic_ms() + RETAKE_MS;
			break;
		}
		if (status != WEIR_OK && status != WEIR_END)
			archiver_stick(archiver, i, error.text);
	}
	count_partitions(archiver);
}

/* Gives up partitions that are no longer assigned; all rows are stored first, to spare the next owner the work. */
static void give_up(struct archiver *archiver, const bool *given)
{
	bool leaving = false;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++)
		leaving = leaving || (archiver->partitions[i].state == PARTITION_LIVE && !given[i]);
	if (leaving)
		(void)archiver_store(archiver);
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++) {
		if (archiver->partitions[i].state == PARTITION_EMPTY || given[i])
			continue;
		archiver_drop(archiver, i, PARTITION_EMPTY);
		weir_partition_faults_forget(&archiver->faults, i);
		weir_counter_add(&archiver->stats.given_up, 1);
	}
}

void archiver_follow_assignment(struct archiver *archiver)
{
	struct weir_assignment *assignment = archiver->options.assignment;
	uint64_t version = weir_assignment_version(assignment);
	bool changed = version != archiver->assignment_version;
	inspect_gaps(archiver);
	if (!changed && (archiver->retake_ms == 0 || weir_monotonic_ms() < archiver->retake_ms))
		return;
	bool *given = weir_alloc(archiver->options.bus->partitions, sizeof *given);
	bool known = weir_assignment_get(assignment, given, NULL) != 0;
	archiver->assignment_version = version;
	archiver->retake_ms = 0;
	if (known) {
		give_up(archiver, given);
		take_missing(archiver, given);
	}
	free(given);
}
