/* SPDX-License-Identifier: Apache-2.0 */
/* Only the ledger knows what an archiver's row means, so it is asked. */
#include "archiver/daemon/archiver_check.h"

#include "archiver/ledger/ledger.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/cluster/partition_note.h"

#include <stdlib.h>

enum { READ_MS = 3000 };

struct positions {
	bool *known;
	uint64_t *judged, *decisions;
	struct weir_mark *judged_marks, *decisions_marks;
};

/* @return whether all could be read; a partition of which nothing is stored begins where its topics begin */
static bool read_rows(const struct weir_check *check, struct weir_store *store, struct positions *positions,
                      uint32_t partitions)
{
	struct weir_partition_state row;
	struct weir_error error;
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; i < partitions && status == WEIR_OK; i++) {
		struct ledger *ledger = ledger_new(i);
		status = store->ops->inspect(store, WEIR_STORE_ROLE_ARCHIVER, i, &row, &error);
		if (status == WEIR_OK)
			status = ledger_restore(ledger, &row, &error);
		positions->known[i] = status == WEIR_OK && !ledger->fresh;
		positions->judged[i] = ledger->positions[WEIR_TOPIC_JUDGED].next;
		positions->decisions[i] = ledger->positions[WEIR_TOPIC_DECISIONS].next;
		positions->judged_marks[i] = ledger->positions[WEIR_TOPIC_JUDGED].last;
		positions->decisions_marks[i] = ledger->positions[WEIR_TOPIC_DECISIONS].last;
		ledger_free(ledger);
	}
	if (status != WEIR_OK)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, "archive",
			"archiver: %s\nWhere the archive continues is not known\nrun the command again once the store "
			"answers (runbook: archive-stuck)",
			error.text);
	return status == WEIR_OK;
}

/* Partitions whose limiter publishes no judged frames. */
static void check_unfed(const struct weir_check *check, struct weir_store *store, uint32_t partitions)
{
	char *machine, *first = NULL;
	uint32_t count = 0;
	for (uint32_t i = 0; i < partitions; i++) {
		if (weir_partition_note_get(store, WEIR_PARTITION_UNARCHIVED, i, &machine, NULL) != WEIR_OK)
			break; /* a store that cannot be read is among the findings */
		if (machine == NULL)
			continue;
		if (count++ == 0)
			first = machine;
		else
			free(machine);
	}
	if (count > 0)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, "archive",
			"%u of %u partitions are not archived whole: a limiter on %s has \"archiver.enabled\": false, and publishes no "
			"judged frames\nThe counts of what it judges are missing from the archive for good; verdicts go on\nset "
			"\"archiver.enabled\" to true in every limiter's configuration, and restart that one (runbook: archive-stuck)",
			count, partitions, first);
	free(first);
}

/*
 * Whether decisions of zones in shadow mode can be read, by one of them: an archiver goes on without, and by itself where
 * their topic was made anew, so that their stored positions stop nothing.
 */
static void check_shadow(const struct weir_check *check, struct weir_bus *bus, uint32_t partitions)
{
	struct weir_mark ignored;
	struct weir_error error;
	enum weir_status status = WEIR_END;
	int64_t left_ms = check->end_ms - weir_monotonic_ms();
	for (uint32_t i = 0; i < partitions && status == WEIR_END && left_ms > 0; i++) {
		int wait_ms = left_ms < READ_MS ? (int)left_ms : READ_MS;
		status = weir_bus_read_mark(bus, WEIR_TOPIC_SHADOW, i, 0, wait_ms, &ignored, &error);
		left_ms = check->end_ms - weir_monotonic_ms();
	}
	if (status != WEIR_OK && status != WEIR_END)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, "archive",
			"decisions of zones in shadow mode cannot be read: %s\nThey are missing from the archive; everything else is "
			"archived, and verdicts go on\ngive the archiver's user the right to read topic decisions.shadow (runbook: "
			"archive-behind)",
			error.text);
}

void archiver_check_state(const struct weir_check *check, struct weir_bus *bus, const bool good[WEIR_TOPIC_COUNT],
                          struct weir_store *store, int64_t *oldest_ms)
{
	uint32_t partitions = (uint32_t)check->config->bus.partitions;
	struct positions rows = {.known = weir_alloc(partitions, sizeof *rows.known),
	                         .judged = weir_alloc(partitions, sizeof *rows.judged),
	                         .decisions = weir_alloc(partitions, sizeof *rows.decisions),
	                         .judged_marks = weir_alloc(partitions, sizeof *rows.judged_marks),
	                         .decisions_marks = weir_alloc(partitions, sizeof *rows.decisions_marks)};
	struct weir_check_positions judged = {.role = "archiver",
	                                      .topic = WEIR_TOPIC_JUDGED,
	                                      .partitions = partitions,
	                                      .known = rows.known,
	                                      .next = rows.judged,
	                                      .marks = rows.judged_marks,
	                                      .oldest_ms = -1};
	struct weir_check_positions decisions = judged;
	decisions.topic = WEIR_TOPIC_DECISIONS;
	decisions.next = rows.decisions;
	decisions.marks = rows.decisions_marks;
	bool all = read_rows(check, store, &rows, partitions);
	if (all && good[WEIR_TOPIC_JUDGED])
		weir_check_positions(check, bus, &judged);
	if (all && good[WEIR_TOPIC_DECISIONS])
		weir_check_positions(check, bus, &decisions);
	if (good[WEIR_TOPIC_SHADOW])
		check_shadow(check, bus, partitions);
	check_unfed(check, store, partitions);
	*oldest_ms = judged.oldest_ms > decisions.oldest_ms ? judged.oldest_ms : decisions.oldest_ms;
	if (all && judged.asked && decisions.asked && judged.stuck + decisions.stuck == 0)
		weir_findings_good(check->findings, "archive: every partition continues where it stands");
	free(rows.known);
	free(rows.judged);
	free(rows.decisions);
	free(rows.judged_marks);
	free(rows.decisions_marks);
}
