/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of a loop that does other things, too: which policies are new, whether the log has come past a day, whether all of
 * that is archived, what it says. Only how often it looks goes by a clock.
 */
#include "archiver/arming/arming.h"

#include "archiver/arming/day_counts.h"
#include "archiver/arming/passage.h"
#include "archiver/arming/waiting.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/cluster/policy_log.h"
#include "common/cluster/shadow_note.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIRST_POLICY = 1,
	PERIOD_MS = 1000,
	RETRY_MS = 5000,
	GRACE_MS = WEIR_HOUR_MS,
	PASSAGE_LONG_MS = 600000,
	OUTSIDE_LONG_MS = 180000,
	QUERIES = 20, /* of a step */
};

enum { DAYS_BELOW, DAYS_NEEDED, SHARE, METRIC_COUNT };

static const struct weir_metric metrics[METRIC_COUNT] = {
	[DAYS_BELOW] =
		{"weir_archiver_shadow_days", WEIR_GAUGE, "days", WEIR_LABELS({"zone", "the zone's name"}),
         "Days in a row on which a zone with shadow_until was below its share, so far. `weir policy show` says "
         "why it stays in shadow."},
	[DAYS_NEEDED] = {"weir_archiver_shadow_days_needed", WEIR_GAUGE, "days", WEIR_LABELS({"zone", "the zone's name"}),
                     "How many of them make weir let the zone enforce."},
	[SHARE] = {"weir_archiver_shadow_blocked_share", WEIR_GAUGE, "share", WEIR_LABELS({"zone", "the zone's name"}),
               "Of the keys of the newest whole day, which a zone with shadow_until would have blocked: from 0 to 1."},
};

const struct weir_metric_table arming_metric_table = {metrics, METRIC_COUNT};

/* Goes on in the next step of the process, which has other things to do: days may have millions of keys. */
struct look {
	bool on;
	int64_t newest_ms; /* the archive's newest hour as it began */
	size_t zone;       /* of those that wait */
	bool judging;      /* that: days from the newest on, up to the one that is counted */
	struct arming_verdict verdict;
	struct day_count count;
	uint64_t keys; /* counted in this step */
};

struct arming {
	struct arming_options options;
	struct weir_store *store; /* NULL: not open */
	struct weir_policy *previous, *newest;
	uint64_t settled; /* a version that is known to be in the whole log, or that others put there */
	bool failed;      /* the last try to write a policy in which zones enforce did */
	bool untold;      /* such a policy may be in the log without a line that says so */
	struct waiting *waiting;
	struct passage passage;
	struct look look;
	int64_t until_ms;   /* where the day begins that is not over, as of the passage */
	int64_t due_ms;     /* by the log's clock, as all that follows */
	int64_t began_ms;   /* the passage */
	int64_t outside_ms; /* since when the newest policy is not in the whole log; 0: it is */
	bool mine;          /* this process looks */
	struct weir_fault fault, slow_fault, outside_fault;
	pthread_mutex_t lock; /* of the page */
	struct weir_text page;
};

/* What it was to find is of no use any more, or was found. */
static void end_look(struct arming *arming)
{
	passage_deinit(&arming->passage);
	day_count_deinit(&arming->look.count);
	arming->look = (struct look){0};
}

void arming_free(struct arming *arming)
{
	if (arming == NULL)
		return;
	if (arming->store != NULL)
		arming->store->ops->close(arming->store);
	waiting_deinit(arming->waiting);
	free(arming->waiting);
	end_look(arming);
	weir_policy_free(arming->previous);
	weir_policy_free(arming->newest);
	weir_text_deinit(&arming->page);
	pthread_mutex_destroy(&arming->lock);
	free(arming);
}

/* ---- what is shown ---- */

void arming_metrics(struct arming *arming, struct weir_text *page)
{
	pthread_mutex_lock(&arming->lock);
	weir_text_append(page, arming->page.at, arming->page.length);
	pthread_mutex_unlock(&arming->lock);
}

static double share_of(const struct arming_day *day)
{
	return day->keys > 0 ? (double)day->blocked / (double)day->keys : 0;
}

/* @param count  of the zones that wait: 0 where another archiver looks at them */
static void write_page(struct arming *arming, size_t count)
{
	struct weir_text page = {0};
	const struct waiting_zone *zones = count > 0 ? arming->waiting->zones : NULL;
	weir_metrics_family(&page, &metrics[DAYS_BELOW]);
	for (size_t i = 0; i < count; i++) {
		const struct weir_span name = weir_span_of(zones[i].name);
		weir_metrics_uint(&page, &metrics[DAYS_BELOW], &name, zones[i].verdict.below);
	}
	weir_metrics_family(&page, &metrics[DAYS_NEEDED]);
	for (size_t i = 0; i < count; i++) {
		const struct weir_span name = weir_span_of(zones[i].name);
		weir_metrics_uint(&page, &metrics[DAYS_NEEDED], &name, arming_days_needed(&zones[i].terms));
	}
	weir_metrics_family(&page, &metrics[SHARE]);
	for (size_t i = 0; i < count; i++) {
		const struct weir_span name = weir_span_of(zones[i].name);
		weir_metrics_double(&page, &metrics[SHARE], &name, share_of(&zones[i].verdict.newest));
	}
	pthread_mutex_lock(&arming->lock);
	struct weir_text before = arming->page;
	arming->page = page;
	pthread_mutex_unlock(&arming->lock);
	weir_text_deinit(&before);
}

struct arming *arming_new(const struct arming_options *options)
{
	struct arming *arming = weir_alloc(1, sizeof *arming);
	arming->options = *options;
	arming->waiting = weir_alloc(1, sizeof *arming->waiting);
	pthread_mutex_init(&arming->lock, NULL);
	write_page(arming, 0);
	return arming;
}

static enum weir_status put_note(struct arming *arming, const struct waiting_zone *zone, const char *words,
                                 struct weir_error *error)
{
	struct weir_shadow_note note = {.version = zone->version, .since_ms = zone->since_ms};
	snprintf(note.words, sizeof note.words, "%s", words);
	return weir_shadow_note_put(arming->store, zone->id, &note, error);
}

/* ---- policies ---- */

struct taking {
	struct arming *arming;
	struct weir_error *error;
};

static enum weir_status take_policy(void *context, uint64_t version, struct weir_span text)
{
	struct taking *taking = context;
	struct arming *arming = taking->arming;
	struct weir_policy *policy;
	enum weir_status status = weir_policy_decode(version, text.at, text.length, &policy, taking->error);
	if (status != WEIR_OK)
		return status;
	waiting_take(arming->waiting, policy);
	end_look(arming);
	weir_policy_free(arming->previous);
	arming->previous = arming->newest;
	arming->newest = policy;
	return WEIR_OK;
}

static enum weir_status take_policies(struct arming *arming, struct weir_error *error)
{
	struct taking taking = {arming, error};
	uint64_t next = arming->newest != NULL ? arming->newest->version + 1 : 1;
	return arming->store->ops->policy_each(arming->store, next, take_policy, &taking, error);
}

/* Whoever put it there, and however often that failed before: what blocks from there on is said. */
static void tell_armed(const struct arming *arming, const struct weir_policy *before, const struct weir_policy *after,
                       uint64_t version)
{
	for (uint32_t i = 0; i < after->zone_count; i++) {
		const struct weir_zone *zone = &after->zones[i], *was = weir_policy_zone(before, zone->id);
		if (zone->arming.armed != NULL && was != NULL && weir_zone_waits(was))
			weir_log(arming->options.log, WEIR_LOG_WARNING, "shadow",
			         "zone \"%s\" leaves shadow mode and blocks from policy %" PRIu64
			         " on: %s. If that is not wanted, give it \"mode\": \"shadow\" (runbook: zone-armed)",
			         zone->name, version, zone->arming.armed);
	}
}

static enum weir_status apply(struct arming *arming, const struct weir_policy *before, struct weir_policy *policy,
                              struct weir_error *error)
{
	enum weir_status status =
		arming->options.apply(arming->options.context, arming->store, before->version, policy, error);
	arming->failed = status != WEIR_OK && status != WEIR_AGAIN;
	arming->untold = arming->untold || arming->failed;
	return status;
}

/*
 * Whether the newest policy is in the whole log. One that armed a zone and was not finished, as its process was killed or
 * the store or the bus failed, is finished; others belong to those who wrote them.
 */
static enum weir_status settle(struct arming *arming, bool *settled, struct weir_error *error)
{
	uint64_t appended, version = arming->newest->version;
	*settled = arming->settled == version;
	if (*settled)
		return WEIR_OK;
	enum weir_status status = weir_policy_appended(arming->store, NULL, &appended, error);
	bool arms = status == WEIR_OK && (appended < version || arming->untold) &&
	            weir_policy_is_arming(arming->previous, arming->newest);
	if (arms && appended < version) {
		arming->untold = true;
		status = apply(arming, arming->previous, arming->newest, error);
		appended = status == WEIR_OK ? version : appended;
		if (status == WEIR_AGAIN)
			status = WEIR_OK;
	}
	*settled = status == WEIR_OK && appended >= version;
	if (!*settled)
		return status;
	if (arms)
		tell_armed(arming, arming->previous, arming->newest, version);
	arming->settled = version;
	arming->untold = false;
	return WEIR_OK;
}

/* ---- one look ---- */

/*
 * Days count from the one after all that was archived when the policy was first seen. The log has begun with its first
 * policy: all that the archive has was judged by that, so that they count from the one after the zone's first.
 */
static enum weir_status find_since(struct arming *arming, struct waiting_zone *zone, int64_t newest_ms,
                                   struct weir_error *error)
{
	struct weir_shadow_note note;
	int64_t from_ms = newest_ms;
	enum weir_status status = weir_shadow_note_get(arming->store, zone->id, &note, error);
	if (status == WEIR_OK && note.version == zone->version && note.since_ms > 0) {
		zone->since_ms = note.since_ms;
		zone->noted = true;
		return WEIR_OK;
	}
	if (status == WEIR_OK && zone->version == FIRST_POLICY)
		status = day_counts_oldest_hour(arming->store, zone->id, &from_ms, error);
	if (status != WEIR_OK)
		return status;
	if (from_ms < 0)
		return put_note(arming, zone, "nobody has come to it yet", error);
	zone->since_ms = weir_day_of(from_ms) + WEIR_DAY_MS;
	zone->noted = true;
	return put_note(arming, zone, "no whole day has been counted yet", error);
}

static enum weir_status tell(struct arming *arming, const struct waiting_zone *zone, struct weir_error *error)
{
	struct weir_text words = {0};
	arming_rule_words(&words, &zone->terms, &zone->verdict);
	weir_text_append(&words, "", 1);
	if (!zone->verdict.arms)
		weir_log(arming->options.log, WEIR_LOG_INFO, "shadow", "zone \"%s\" stays in shadow and blocks nobody: %s",
		         zone->name, words.at);
	enum weir_status status = put_note(arming, zone, words.at, error);
	weir_text_deinit(&words);
	return status;
}

/* The days of one zone, from the newest on, up to the first that matters no more. */
static enum weir_status judge(struct arming *arming, struct waiting_zone *zone, bool *judged, struct weir_error *error)
{
	struct look *look = &arming->look;
	int64_t first_ms = arming->until_ms - zone->terms.span_ms * ARMING_PATIENCE;
	bool whole = false;
	first_ms = zone->since_ms > first_ms ? zone->since_ms : first_ms;
	*judged = look->count.day.begin_ms < first_ms;
	if (*judged)
		return WEIR_OK;
	uint64_t before = look->count.day.keys;
	enum weir_status status = day_counts_step(arming->store, zone->id, &look->count, &whole, error);
	look->keys += look->count.day.keys - before;
	if (status != WEIR_OK || !whole)
		return status;
	int64_t day_ms = look->count.day.begin_ms;
	*judged = !arming_rule_add(&look->verdict, &zone->terms, &look->count.day);
	day_count_deinit(&look->count);
	look->count.day.begin_ms = day_ms - WEIR_DAY_MS;
	return WEIR_OK;
}

static enum weir_status begin_zone(struct arming *arming, struct waiting_zone *zone, struct weir_error *error)
{
	struct look *look = &arming->look;
	enum weir_status status = WEIR_OK;
	if (!zone->noted)
		status = find_since(arming, zone, look->newest_ms, error);
	if (status == WEIR_OK && !zone->noted) /* nobody came: nothing to look at before the next day */
		zone->until_ms = arming->until_ms;
	look->judging = status == WEIR_OK && zone->until_ms < arming->until_ms;
	look->zone += status == WEIR_OK && !look->judging;
	look->verdict = (struct arming_verdict){0};
	look->count.day.begin_ms = arming->until_ms - WEIR_DAY_MS;
	return status;
}

/* Asks the store a few times at most, and for few keys. @return whether all zones are looked at in *done */
static enum weir_status look_on(struct arming *arming, bool *done, struct weir_error *error)
{
	struct look *look = &arming->look;
	enum weir_status status = WEIR_OK;
	look->keys = 0;
	for (int i = 0;
	     status == WEIR_OK && i < QUERIES && look->keys < DAY_COUNTS_STEP && look->zone < arming->waiting->count; i++) {
		struct waiting_zone *zone = &arming->waiting->zones[look->zone];
		bool judged = false;
		if (!look->judging) {
			status = begin_zone(arming, zone, error);
			continue;
		}
		status = judge(arming, zone, &judged, error);
		if (status != WEIR_OK || !judged)
			continue;
		zone->verdict = look->verdict;
		status = tell(arming, zone, error);
		if (status == WEIR_OK && !zone->verdict.arms)
			zone->until_ms = arming->until_ms;
		look->judging = false;
		look->zone++;
	}
	*done = look->zone >= arming->waiting->count;
	return status;
}

/* One policy for all zones that may enforce. Where another came in between, they are looked at again under that. */
static enum weir_status arm(struct arming *arming, struct weir_error *error)
{
	struct weir_policy *policy = NULL;
	enum weir_status status =
		weir_policy_decode(arming->newest->version, arming->newest->text, strlen(arming->newest->text), &policy, error);
	bool any = false;
	for (size_t i = 0; status == WEIR_OK && i < arming->waiting->count; i++) {
		const struct waiting_zone *zone = &arming->waiting->zones[i];
		struct weir_text words = {0};
		if (!zone->verdict.arms)
			continue;
		arming_rule_words(&words, &zone->terms, &zone->verdict);
		weir_text_append(&words, "", 1);
		weir_policy_arm(policy, zone->id, words.at);
		weir_text_deinit(&words);
		any = true;
	}
	if (status == WEIR_OK && any)
		status = apply(arming, arming->newest, policy, error);
	if (status == WEIR_OK && any) {
		tell_armed(arming, arming->newest, policy, arming->newest->version + 1);
		arming->untold = false;
	}
	weir_policy_free(policy);
	return status == WEIR_AGAIN ? WEIR_OK : status;
}

/* Whether some zone has days to look at: one that is new was looked at up to none. */
static bool is_due(const struct arming *arming)
{
	for (size_t i = 0; i < arming->waiting->count; i++)
		if (arming->waiting->zones[i].until_ms < arming->until_ms)
			return true;
	return false;
}

/* Whoever put it in the store appends it; where he failed, zones wait until he does it again. */
static void tell_outside(struct arming *arming, bool settled)
{
	int64_t now_ms = weir_log_clock_ms(arming->options.log);
	if (settled)
		weir_fault_over(&arming->outside_fault, arming->options.log, "shadow", "the newest policy is in the whole log");
	if (settled || arming->outside_ms == 0)
		arming->outside_ms = settled ? 0 : now_ms;
	else if (now_ms - arming->outside_ms > OUTSIDE_LONG_MS)
		weir_fault_raise(
			&arming->outside_fault, arming->options.log, "shadow",
			"policy %" PRIu64
			" is not in the whole log after minutes: partitions without it go by the one before, and zones "
			"that wait in shadow stay there. Waiting for it: apply it again (runbook: zone-armed)",
			arming->newest->version);
}

/* A partition that is stopped holds it up for as long as that lasts. */
static void tell_passage(struct arming *arming, bool passed)
{
	if (passed)
		weir_fault_over(&arming->slow_fault, arming->options.log, "shadow", "the archive has what it waited for");
	else if (weir_log_clock_ms(arming->options.log) - arming->began_ms > PASSAGE_LONG_MS)
		weir_fault_raise(
			&arming->slow_fault, arming->options.log, "shadow",
			"zones that wait in shadow stay there: partition %" PRIu32
			" is not %s up to where its log ended more than ten minutes ago. Waiting for it; see to that partition "
			"(runbook: zone-armed)",
			arming->passage.behind, arming->passage.phase == PASSAGE_JUDGING ? "judged and checkpointed" : "archived");
}

/* Whether some zone has days to look at, and all that the log had behind them is archived. */
static enum weir_status await_days(struct arming *arming, bool *passed, struct weir_error *error)
{
	int64_t hour_ms;
	enum weir_status status = WEIR_OK;
	if (arming->passage.phase == PASSAGE_IDLE) {
		status = day_counts_newest_hour(arming->store, weir_wall_ms(), &hour_ms, error);
		if (status != WEIR_OK || hour_ms < 0)
			return status;
		arming->until_ms = weir_day_of(hour_ms - GRACE_MS);
		if (!is_due(arming))
			return WEIR_OK;
		status = passage_begin(&arming->passage, arming->options.bus, error);
		arming->began_ms = weir_log_clock_ms(arming->options.log);
	}
	if (status == WEIR_OK)
		status = passage_look(&arming->passage, arming->options.bus, arming->store, passed, error);
	if (status == WEIR_OK)
		tell_passage(arming, *passed);
	return status;
}

static enum weir_status look(struct arming *arming, struct weir_error *error)
{
	bool passed = false, done = false;
	enum weir_status status = WEIR_OK;
	if (!arming->look.on)
		status = await_days(arming, &passed, error);
	if (status == WEIR_OK && passed) {
		status = day_counts_newest_hour(arming->store, weir_wall_ms(), &arming->look.newest_ms, error);
		arming->look.on = true;
	}
	if (status == WEIR_OK && arming->look.on)
		status = look_on(arming, &done, error);
	if (arming->look.on && (status != WEIR_OK || done))
		end_look(arming);
	return status == WEIR_OK && done ? arm(arming, error) : status;
}

static enum weir_status work(struct arming *arming, struct weir_error *error)
{
	bool settled = false;
	enum weir_status status = WEIR_OK;
	if (arming->store == NULL)
		status = arming->options.open_store(arming->options.store_context, &arming->store, error);
	if (status != WEIR_OK)
		return status;
	status = take_policies(arming, error);
	if (status == WEIR_OK)
		arming->failed = false;
	if (status == WEIR_OK && arming->newest != NULL)
		status = settle(arming, &settled, error);
	if (status == WEIR_OK && arming->newest != NULL)
		tell_outside(arming, settled);
	return status == WEIR_OK && settled && arming->waiting->count > 0 ? look(arming, error) : status;
}

/* What a failure means for the zones goes by whether the store has the policy: partitions may have it then. */
static void tell_failure(struct arming *arming, const char *why)
{
	struct weir_error unread;
	bool read = arming->store != NULL && take_policies(arming, &unread) == WEIR_OK;
	uint64_t newest = arming->newest != NULL ? arming->newest->version : 0;
	bool taken = newest > 0 && newest != arming->settled && weir_policy_is_arming(arming->previous, arming->newest);
	if (taken || (arming->failed && !read))
		weir_fault_raise(&arming->fault, arming->options.log, "shadow",
		                 "policy %" PRIu64
		                 ", in which zones leave shadow mode, is not known to be in the whole log: they block where a "
		                 "partition has it. Retrying: %s (runbook: zone-armed)",
		                 taken ? newest : newest + 1, why);
	else if (arming->failed)
		weir_fault_raise(
			&arming->fault, arming->options.log, "shadow",
			"zones that wait in shadow may enforce, but the policy for that cannot be written: they stay in "
			"shadow meanwhile, and nothing else waits for it. Retrying: %s (runbook: zone-armed)",
			why);
	else
		weir_fault_raise(
			&arming->fault, arming->options.log, "shadow",
			"cannot tell whether zones that wait in shadow may enforce: they stay in shadow meanwhile, and "
			"nothing else waits for it. Retrying: %s (runbook: zone-armed)",
			why);
}

/* Another archiver looks from now on: what was found here says nothing more. */
static void hand_over(struct arming *arming)
{
	struct weir_fault *faults[] = {&arming->fault, &arming->slow_fault, &arming->outside_fault};
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		weir_fault_over(faults[i], arming->options.log, "shadow",
		                "another archiver looks at zones that wait in shadow");
	arming->outside_ms = 0;
	end_look(arming);
	write_page(arming, 0);
}

void arming_step(struct arming *arming)
{
	struct weir_error error;
	int64_t now_ms = weir_log_clock_ms(arming->options.log);
	bool mine = arming->options.is_mine(arming->options.context);
	if (arming->mine && !mine)
		hand_over(arming);
	arming->mine = mine;
	if (now_ms < arming->due_ms || !mine)
		return;
	enum weir_status status = work(arming, &error);
	int64_t wait_ms = status != WEIR_OK ? RETRY_MS : arming->look.on ? 0 : PERIOD_MS;
	arming->due_ms = weir_log_clock_ms(arming->options.log) + wait_ms;
	write_page(arming, arming->waiting->count);
	if (status == WEIR_OK)
		weir_fault_over(&arming->fault, arming->options.log, "shadow", "zones that wait in shadow are looked at again");
	else
		tell_failure(arming, error.text);
}
