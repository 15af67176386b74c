/* SPDX-License-Identifier: Apache-2.0 */
/* Two marks for each partition: the cause that was found, and the one that the log tells of it. */
#include "common/log/partition_faults.h"

#include "common/base/alloc.h"
#include "common/base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	JOIN_MS = 1000,   /* a set that has not grown for so long is told */
	GROW_MS = 5000,   /* and one that grows all the time after this */
	LEAVE_MS = 3000,  /* a set out of which none has gone for so long */
	APART_MS = 10000, /* lines that say that a set has grown */
	REPEAT_MS = 10 * 60 * 1000,
	RANGES_MAX = 16, /* in a line; further ones are only counted */
};

void weir_partition_faults_init(struct weir_partition_faults *faults, uint32_t partitions, const struct weir_log *log,
                                const char *part)
{
	*faults = (struct weir_partition_faults){.log = log, .part = part, .partitions = partitions};
	faults->now = weir_alloc(partitions, sizeof *faults->now);
	faults->told = weir_alloc(partitions, sizeof *faults->told);
}

void weir_partition_faults_deinit(struct weir_partition_faults *faults)
{
	free(faults->now);
	free(faults->told);
	*faults = (struct weir_partition_faults){0};
}

uint32_t weir_partitions_text(struct weir_text *text, const uint8_t *marks, uint32_t partitions, uint8_t mark)
{
	uint32_t count = 0, ranges = 0, left_out = 0;
	for (uint32_t i = 0; i < partitions; i++)
		count += marks[i] == mark;
	weir_text_puts(text, count == 1 ? "partition " : "partitions ");
	for (uint32_t first = 0, end; first < partitions; first = end) {
		for (end = first; end < partitions && marks[end] == mark; end++)
			;
		if (end == first)
			end++;
		else if (ranges == RANGES_MAX)
			left_out += end - first;
		else if (end - first > 1)
			weir_text_printf(text, "%s%u-%u", ranges++ > 0 ? ", " : "", first, end - 1);
		else
			weir_text_printf(text, "%s%u", ranges++ > 0 ? ", " : "", first);
	}
	if (left_out > 0)
		weir_text_printf(text, " and %u more", left_out);
	return count;
}

/* ---- what is found ---- */

static void mark(struct weir_partition_faults *faults, uint32_t partition, uint8_t found)
{
	int64_t now_ms = weir_log_clock_ms(faults->log);
	uint8_t before = faults->now[partition];
	if (before == found)
		return;
	faults->now[partition] = found;
	if (before > 0)
		faults->causes[before - 1].changed_ms = now_ms;
	if (found > 0)
		faults->causes[found - 1].changed_ms = now_ms;
}

/* The cause with these words: one that is on, or a free one. With none left the last one is taken for all others. */
static uint8_t find_cause(const struct weir_partition_faults *faults, const char *state, const char *words)
{
	uint8_t free_one = WEIR_PARTITION_CAUSES_MAX - 1;
	for (uint8_t i = WEIR_PARTITION_CAUSES_MAX; i-- > 0;) {
		const struct weir_partition_cause *cause = &faults->causes[i];
		if (!cause->on)
			free_one = i;
		else if (strcmp(cause->state, state) == 0 && weir_words_alike(cause->text, words))
			return i;
	}
	return free_one;
}

void weir_partition_faults_raise(struct weir_partition_faults *faults, uint32_t partition, enum weir_log_level level,
                                 const char *state, const char *words)
{
	char text[sizeof faults->causes[0].text];
	snprintf(text, sizeof text, "%s", words);
	weir_words_clean(text);
	uint8_t number = find_cause(faults, state, text);
	struct weir_partition_cause *cause = &faults->causes[number];
	if (!cause->on)
		*cause =
			(struct weir_partition_cause){.on = true, .lowest = partition, .since_ms = weir_log_clock_ms(faults->log)};
	mark(faults, partition, (uint8_t)(number + 1));
	cause->level = level;
	cause->state = state;
	if (partition <= cause->lowest || faults->now[cause->lowest] != number + 1) {
		cause->lowest = partition;
		memcpy(cause->text, text, sizeof text);
	}
}

void weir_partition_faults_clear(struct weir_partition_faults *faults, uint32_t partition)
{
	mark(faults, partition, 0);
}

void weir_partition_faults_forget(struct weir_partition_faults *faults, uint32_t partition)
{
	mark(faults, partition, 0);
	faults->told[partition] = 0;
}

/* ---- what is told ---- */

struct change {
	uint32_t has, joined, told, left; /* partitions: with the cause; not yet told; told; told, and without any */
};

static struct change look(const struct weir_partition_faults *faults, uint8_t cause)
{
	struct change change = {0};
	for (uint32_t i = 0; i < faults->partitions; i++) {
		change.has += faults->now[i] == cause;
		change.joined += faults->now[i] == cause && faults->told[i] != cause;
		change.told += faults->told[i] == cause;
		change.left += faults->told[i] == cause && faults->now[i] == 0;
	}
	return change;
}

static void tell_cause(struct weir_partition_faults *faults, uint8_t number, int64_t now_ms)
{
	struct weir_partition_cause *cause = &faults->causes[number - 1];
	struct weir_text words = {0};
	char age[WEIR_AGE_BYTES];
	if (cause->told && now_ms - cause->since_ms >= REPEAT_MS)
		weir_text_printf(&words, "for %s: ", weir_age(now_ms - cause->since_ms, age));
	uint32_t count = weir_partitions_text(&words, faults->now, faults->partitions, number);
	weir_text_printf(&words, " %s %s", count == 1 ? "is" : "are", cause->state);
	if (faults->partitions > 1)
		weir_text_printf(&words, " (%u of %u)", count, faults->partitions);
	weir_log(faults->log, cause->level, faults->part, "%.*s: %s", (int)words.length, words.at, cause->text);
	weir_text_deinit(&words);
	for (uint32_t i = 0; i < faults->partitions; i++)
		if (faults->now[i] == number)
			faults->told[i] = number;
	cause->told = true;
	cause->told_ms = now_ms;
}

static void tell_recovery(struct weir_partition_faults *faults, uint8_t number, int64_t now_ms)
{
	enum { GONE = WEIR_PARTITION_CAUSES_MAX + 1 };
	const struct weir_partition_cause *cause = &faults->causes[number - 1];
	struct weir_text words = {0};
	char age[WEIR_AGE_BYTES];
	for (uint32_t i = 0; i < faults->partitions; i++)
		if (faults->told[i] == number && faults->now[i] == 0)
			faults->told[i] = GONE;
	uint32_t count = weir_partitions_text(&words, faults->told, faults->partitions, GONE);
	weir_log(faults->log, WEIR_LOG_INFO, faults->part, "recovered after %s: %.*s %s no longer %s",
	         weir_age(now_ms - cause->since_ms, age), (int)words.length, words.at, count == 1 ? "is" : "are",
	         cause->state);
	for (uint32_t i = 0; i < faults->partitions; i++)
		if (faults->told[i] == GONE)
			faults->told[i] = 0;
	weir_text_deinit(&words);
}

static void tell_one(struct weir_partition_faults *faults, uint8_t number, int64_t now_ms)
{
	struct weir_partition_cause *cause = &faults->causes[number - 1];
	struct change change = look(faults, number);
	int64_t calm_ms = now_ms - cause->changed_ms;
	bool rests = calm_ms >= JOIN_MS || now_ms - cause->since_ms >= GROW_MS;
	if (change.left > 0 && calm_ms >= LEAVE_MS)
		tell_recovery(faults, number, now_ms);
	if (change.joined > 0 ? rests && (!cause->told || now_ms - cause->told_ms >= APART_MS)
	                      : change.has > 0 && now_ms - cause->told_ms >= REPEAT_MS)
		tell_cause(faults, number, now_ms);
	if (change.has == 0)
		cause->on = look(faults, number).told > 0; /* one that has another cause now belongs to that once it is told */
}

void weir_partition_faults_tell(struct weir_partition_faults *faults)
{
	int64_t now_ms = weir_log_clock_ms(faults->log);
	for (uint32_t i = 0; i < WEIR_PARTITION_CAUSES_MAX; i++)
		if (faults->causes[i].on)
			tell_one(faults, (uint8_t)(i + 1), now_ms);
}
