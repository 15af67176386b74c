/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deleting what archiver.keep_* says is too old, in steps, beside the work.
 *
 * By what time rows were last deleted is a note in the store, as all archivers of it delete the same rows: so a clock
 * that is far ahead is known as such, at the first deletion after a start, too.
 */
#include "archiver/work/internal.h"

#include "common/base/clock.h"
#include "common/cluster/kept_note.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PERIOD_MS = 600000, STEP_MS = 100, RETRY_MS = 10000, NOTE_MS = 60000 };

#define KEPT_NOTE "archive.kept"

static bool keeps_for_ever(const struct archiver *archiver)
{
	for (int i = 0; i < WEIR_ARCHIVE_TABLES; i++)
		if (archiver->options.config->archiver.keep_ms[i] > 0)
			return false;
	return true;
}

/* Before the first deletion: the newest sending time that is archived. */
static enum weir_status read_newest(const struct archiver *archiver, int64_t *newest_ms, struct weir_error *error)
{
	struct weir_store *store = archiver->store;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++) {
		struct weir_partition_state state;
		enum weir_status status = store->ops->inspect(store, WEIR_STORE_ROLE_ARCHIVER, i, &state, error);
		if (status != WEIR_OK)
			return status;
		if (state.checkpoint > 0 && state.clock_ms > *newest_ms)
			*newest_ms = state.clock_ms;
	}
	return WEIR_OK;
}

/*
 * By what time rows were last deleted; 0: nothing is archived.
 *
 * @param noted  set to whether it was noted: else it moves on with what is archived
 */
static enum weir_status read_last(const struct archiver *archiver, int64_t *last_ms, bool *noted,
                                  struct weir_error *error)
{
	char *value;
	size_t length;
	struct weir_store *store = archiver->store;
	*last_ms = 0;
	*noted = false;
	enum weir_status status = store->ops->note_get(store, KEPT_NOTE, &value, &length, error);
	if (status != WEIR_OK)
		return status;
	if (value == NULL)
		return read_newest(archiver, last_ms, error);
	char digits[32];
	snprintf(digits, sizeof digits, "%.*s", (int)length, value);
	*last_ms = strtoll(digits, NULL, 10);
	*noted = true;
	free(value);
	return WEIR_OK;
}

static enum weir_status note_last(const struct archiver *archiver, int64_t now_ms, struct weir_error *error)
{
	char digits[32];
	snprintf(digits, sizeof digits, "%" PRId64, now_ms);
	struct weir_store *store = archiver->store;
	return store->ops->note_put(store, KEPT_NOTE, weir_span_of(digits), error);
}

/*
 * Notes from when on all rows are kept, before others are deleted. For the next minute they are deleted by that time, so
 * that the note is never behind what is done.
 *
 * @param now_ms  by what time rows are to be deleted; set to by what time they may be
 */
static enum weir_status note_kept(struct archiver *archiver, int64_t *now_ms, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (archiver->kept_ms == 0 || *now_ms - archiver->kept_ms >= NOTE_MS)
		status = weir_kept_note_add(archiver->store, archiver->options.config->archiver.keep_ms, *now_ms, error);
	else if (*now_ms > archiver->kept_ms)
		*now_ms = archiver->kept_ms;
	if (status == WEIR_OK && *now_ms > archiver->kept_ms)
		archiver->kept_ms = *now_ms;
	return status;
}

static void tell_clock(struct archiver *archiver, int64_t now_ms, int64_t wall_ms)
{
	char day[32];
	struct tm utc;
	time_t seconds = (time_t)(now_ms / 1000);
	const struct weir_log *log = archiver->options.log;
	if (now_ms == wall_ms) {
		weir_fault_over(&archiver->clock_fault, log, "archiver", "old rows are deleted by the clock again");
		return;
	}
	strftime(day, sizeof day, "%Y-%m-%d %H:%M", gmtime_r(&seconds, &utc));
	weir_fault_raise(
		&archiver->clock_fault, log, "archiver",
		"the clock is %" PRId64
		" days ahead of the last deletion of old rows, or of the newest event (%s UTC). It may be "
		"wrong, so no more rows are deleted by it for six hours; everything else goes on. If it is right, nothing need "
		"be done; else set it (runbook: clock)",
		(wall_ms - now_ms) / WEIR_DAY_MS, day);
}

/* Deletes a step. @param more  set: there may be more to delete */
static enum weir_status keep(struct archiver *archiver, bool *more, struct weir_error *error)
{
	struct weir_store *store = archiver->store;
	int64_t wall_ms = weir_wall_ms(), now_ms = wall_ms, last_ms = 0;
	bool forever = keeps_for_ever(archiver), noted = false;
	enum weir_status status = forever ? WEIR_OK : read_last(archiver, &last_ms, &noted, error);
	if (status != WEIR_OK)
		return status;
	if (!forever) {
		now_ms = keep_clock_now(&archiver->keep_clock, wall_ms, last_ms, weir_monotonic_ms());
		tell_clock(archiver, now_ms, wall_ms);
	}
	if (!forever)
		status = note_kept(archiver, &now_ms, error);
	if (status == WEIR_OK)
		status = store->ops->keep(store, archiver->options.config->archiver.keep_ms, now_ms, more, error);
	if (status == WEIR_OK && !forever && (!noted || llabs(now_ms - last_ms) >= NOTE_MS))
		status = note_last(archiver, now_ms, error);
	return status;
}

void archiver_keep_if_due(struct archiver *archiver)
{
	struct weir_error error;
	bool more = false;
	if (weir_monotonic_ms() < archiver->keep_due_ms)
		return;
	enum weir_status status = keep(archiver, &more, &error);
	if (status == WEIR_OK)
		weir_fault_over(&archiver->keep_fault, archiver->options.log, "archiver", "old rows are deleted again");
	else if (status != WEIR_AGAIN)
		weir_fault_raise(
			&archiver->keep_fault, archiver->options.log, "archiver",
			"cannot delete old rows: the archive grows until it can; nothing else waits for it. Retrying. The "
			"store: %s",
			error.text);
	archiver->keep_due_ms = weir_monotonic_ms() + (status != WEIR_OK ? RETRY_MS : more ? STEP_MS : PERIOD_MS);
}
