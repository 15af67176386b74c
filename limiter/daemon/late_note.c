/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A late event passes without a word, so a log out of order lets clients through
 * that are over the limit. Some events are late in any log; more than one in a
 * hundred mean that its lines are not in order.
 */
#include "limiter/daemon/late_note.h"

#include "common/base/clock.h"

#include <stddef.h>
#include <string.h>

enum { PARTS = 100, LOOK_PERIOD_MS = 1000, EVENTS_LEAST = 1000, AHEAD_MS = 60000 };

void late_zone_consider(struct late_zone *worst, const struct weir_zone *zone, uint64_t late, uint64_t judged)
{
	if ((double)late * PARTS <= (double)judged)
		return;
	if (worst->zone != NULL && (double)late * (double)worst->judged <= (double)worst->late * (double)judged)
		return;
	*worst = (struct late_zone){.zone = zone, .late = late, .judged = judged};
}

static bool has_sliding_window(const struct weir_zone *zone)
{
	for (uint32_t i = 0; i < zone->limit_count; i++)
		if (strcmp(zone->limits[i].algorithm->name, "sliding_window") == 0)
			return true;
	return false;
}

void late_zone_words(struct weir_text *text, const struct late_zone *worst, bool sorts)
{
	weir_text_printf(text,
	                 "%.1f %% of the events of zone \"%s\" are late (%llu of %llu): so much older than the newest of "
	                 "their key that a limit cannot judge them, so it lets them pass. Their lines are not in the order "
	                 "of time; ",
	                 100 * (double)worst->late / (double)worst->judged, worst->zone->name,
	                 (unsigned long long)worst->late, (unsigned long long)worst->judged);
	if (sorts)
		weir_text_puts(text, "--sort puts them in that order");
	else if (has_sliding_window(worst->zone))
		weir_text_puts(text,
		               "\"lateness\" of a sliding_window says how late it judges them all the same, such as \"2m\"");
	else
		weir_text_puts(text, "a longer window has fewer of them, and a sliding_window can be given a \"lateness\"");
}

/* Words that are right for a backlog, too: who follows a log cannot tell here. */
static void tell_over(struct late_note *note, const struct limiter_parts *parts, const struct weir_log *log)
{
	uint64_t over = limiter_sum(parts, offsetof(struct worker_stats, over));
	if (over == 0)
		return;
	weir_log(
		log, WEIR_LOG_INFO, "limiter",
		"%llu block%s over as %s made: %s from lines that are older, and nobody is blocked by %s now. That is right "
		"while a backlog or an old log is read. Of lines that are written now, it means that a \"time_zone\" is missing "
		"or a clock is wrong (runbook: clock)",
		(unsigned long long)over, over == 1 ? " was" : "s were", over == 1 ? "it was" : "they were",
		over == 1 ? "it comes" : "they come", over == 1 ? "it" : "them");
	note->over_is_said = true;
}

/* Whoever commanded something for an hour must know that it may be over already. */
static void tell_ahead(struct late_note *note, const struct limiter_parts *parts, const struct weir_log *log)
{
	char ahead[WEIR_AGE_BYTES];
	int64_t ahead_ms = limiter_clock_ahead_ms(parts);
	bool was_said = note->ahead_is_said;
	/* Not again where it goes a little up and down. */
	note->ahead_is_said = ahead_ms >= (was_said ? AHEAD_MS / 2 : AHEAD_MS);
	if (was_said || ahead_ms < AHEAD_MS)
		return;
	weir_log(
		log, WEIR_LOG_WARNING, "limiter",
		"the log was written to at a time that is %s ahead of this machine's clock: a clock was ahead for a while, or this one "
		"was set back. What operators commanded until now may end too early: look at weir state --orders, and command it again. Keys "
		"that were asked at the later times need a later end (runbook: clock)",
		weir_age(ahead_ms, ahead));
}

void late_note_watch(struct late_note *note, const struct limiter_parts *parts, const struct weir_log *log)
{
	int64_t now_ms = weir_monotonic_ms();
	if (now_ms < note->look_ms)
		return;
	note->look_ms = now_ms + LOOK_PERIOD_MS;
	tell_ahead(note, parts, log);
	if (!note->over_is_said)
		tell_over(note, parts, log);
	if (note->is_said)
		return;
	uint64_t version = policy_registry_newest(parts->registry);
	const struct weir_policy *policy = version > 0 ? policy_registry_policy(parts->registry, version) : NULL;
	struct late_zone worst = {0};
	for (uint32_t i = 0; policy != NULL && i < policy->zone_count; i++) {
		struct worker_zone numbers = limiter_zone(parts, policy->zones[i].id);
		uint64_t judged = numbers.passed + numbers.blocked;
		if (judged >= EVENTS_LEAST)
			late_zone_consider(&worst, &policy->zones[i], numbers.late, judged);
	}
	if (worst.zone == NULL)
		return;
	struct weir_text words = {0};
	late_zone_words(&words, &worst, false);
	weir_log(log, WEIR_LOG_WARNING, "limiter", "%.*s", (int)words.length, words.at);
	weir_text_deinit(&words);
	note->is_said = true;
}
