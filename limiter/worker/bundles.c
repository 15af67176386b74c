/* SPDX-License-Identifier: Apache-2.0 */
/* Parts have tickets of their own, which say whose they are; what is released is asked for nobody. */
#include "limiter/worker/bundles.h"

#include "common/base/alloc.h"
#include "common/policy/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PART_BITS = 8, FOR_NOBODY = 1 << 20 };

/* What a caller asked, with checks of one key and zone as one: they count all or none, and so pass if their sum does. */
struct parts {
	uint32_t count, caller_count;
	struct check_ask asks[CHECK_BUNDLE_MAX];
	uint64_t tickets[CHECK_BUNDLE_MAX]; /* the callers' */
	uint8_t part_of[CHECK_BUNDLE_MAX];  /* likewise: the part that each is in */
};

struct bundle {
	bool used;
	bool reserves; /* else it looks */
	bool blocked;  /* some would be blocked: these alone are asked, to be counted as blocked */
	uint32_t open; /* parts that are not answered */
	struct parts parts;
	struct check_answer answers[CHECK_BUNDLE_MAX];                                  /* of parts */
	char bytes[CHECK_BUNDLE_MAX * (WEIR_KEY_MAX_BYTES + WEIR_ZONE_NAME_MAX_BYTES)]; /* of keys and zones */
	uint32_t bytes_used;
};

void bundles_deinit(struct bundles *bundles)
{
	free(bundles->all);
	bundles->all = NULL;
}

static bool refuses(const struct check_answer *answer)
{
	return answer->outcome != CHECK_PASSED && answer->outcome != CHECK_BLOCKED;
}

/* A zone on trial has no say: one that cannot be judged there passes, and is not counted. */
static void pass_on_trial(const struct check_ask *ask, struct check_answer *answer)
{
	if (ask->shadow && answer->outcome == CHECK_UNAVAILABLE)
		*answer = (struct check_answer){.outcome = CHECK_PASSED, .retry_after_ms = -1, .ticket = answer->ticket};
}

/* One that could not be answered is the answer of all, unless one comes later: that has been told already. */
static void spread_refusal(struct check_answer *answers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (answers[i].outcome == CHECK_LATER)
			return;
	for (uint32_t i = 0; i < count; i++) {
		if (!refuses(&answers[i]))
			continue;
		struct check_answer refusal = answers[i];
		for (uint32_t k = 0; k < count; k++)
			answers[k] = refusal;
		return;
	}
}

/* Gives each caller's ask the answer of its part. */
static void hand_out(const struct parts *parts, const struct check_answer *part_answers, struct check_answer *answers)
{
	for (uint32_t i = 0; i < parts->caller_count; i++) {
		answers[i] = part_answers[parts->part_of[i]];
		assert(answers[i].outcome != CHECK_LATER || parts->count == parts->caller_count);
		answers[i].ticket = parts->tickets[i];
		answers[i].reserved = false;
	}
}

static struct check_ask *find_alike(struct parts *parts, const struct check_ask *ask)
{
	for (uint32_t i = 0; i < parts->count && !check_is_peek(ask); i++)
		if (!check_is_peek(&parts->asks[i]) && weir_span_equal(parts->asks[i].key, ask->key) &&
		    weir_span_equal(parts->asks[i].zone, ask->zone))
			return &parts->asks[i];
	return NULL;
}

static void divide(struct parts *parts, const struct check_ask *asks, uint32_t count)
{
	parts->count = 0;
	parts->caller_count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct check_ask *alike = find_alike(parts, &asks[i]);
		parts->tickets[i] = asks[i].ticket;
		if (alike == NULL) {
			alike = &parts->asks[parts->count++];
			*alike = asks[i];
		} else {
			alike->cost = alike->cost < WEIR_COST_MAX - asks[i].cost ? alike->cost + asks[i].cost : WEIR_COST_MAX;
			alike->durable |= asks[i].durable;
			alike->tries &= asks[i].tries;
		}
		parts->part_of[i] = (uint8_t)(alike - parts->asks);
	}
}

/* ---- all of it here ---- */

/* Counts those that would be blocked, together, but for those that try. @param answers  what would be; what is */
static void count_blocked(struct bundles *bundles, const struct check_ask *asks, uint32_t count,
                          struct check_answer *answers)
{
	struct check_ask blocked[CHECK_BUNDLE_MAX];
	struct check_answer counted[CHECK_BUNDLE_MAX];
	uint32_t blocks = 0;
	for (uint32_t i = 0; i < count; i++)
		if (answers[i].outcome == CHECK_BLOCKED && !asks[i].tries)
			blocked[blocks++] = asks[i];
	if (blocks > 0)
		bundles->ask(bundles->context, blocked, blocks, bundles->now, true, counted);
	for (uint32_t i = 0, next = 0; next < blocks; i++)
		if (answers[i].outcome == CHECK_BLOCKED && !asks[i].tries)
			answers[i] = counted[next++];
}

/* Looks, then counts. @return false: something is not in memory, or has no room now, and nothing was counted */
static bool ask_here(struct bundles *bundles, const struct check_ask *asks, uint32_t count,
                     struct check_answer *answers)
{
	struct check_ask peeks[CHECK_BUNDLE_MAX];
	bool refused = false, blocked = false;
	uint32_t looks = 0;
	do { /* there is one at least */
		peeks[looks] = asks[looks];
		peeks[looks].peek = true;
		peeks[looks].beside = count;
		peeks[looks].ticket = CHECK_TICKET_OF_BUNDLE | FOR_NOBODY;
	} while (++looks < count);
	bundles->ask(bundles->context, peeks, count, bundles->now, false, answers);
	for (uint32_t i = 0; i < count; i++) {
		if (answers[i].outcome == CHECK_LATER || answers[i].why == CHECK_WHY_FULL)
			return false;
		pass_on_trial(&asks[i], &answers[i]);
		refused |= refuses(&answers[i]);
		blocked |= answers[i].outcome == CHECK_BLOCKED;
	}
	if (blocked && !refused)
		count_blocked(bundles, asks, count, answers);
	else if (!refused)
		bundles->ask(bundles->context, asks, count, bundles->now, true, answers);
	for (uint32_t i = 0; i < count; i++)
		pass_on_trial(&asks[i], &answers[i]);
	spread_refusal(answers, count);
	return true;
}

/* ---- some of it elsewhere ---- */

static struct bundle *take_bundle(struct bundles *bundles)
{
	if (bundles->all == NULL)
		bundles->all = weir_alloc(BUNDLES_MAX, sizeof *bundles->all);
	for (uint32_t i = 0; i < BUNDLES_MAX; i++) {
		struct bundle *bundle = &bundles->all[i];
		if (bundle->used)
			continue;
		bundle->used = true;
		bundle->reserves = bundle->blocked = false;
		bundle->bytes_used = 0;
		return bundle;
	}
	return NULL;
}

static struct weir_span keep(struct bundle *bundle, struct weir_span span)
{
	char *at = bundle->bytes + bundle->bytes_used;
	assert(bundle->bytes_used + span.length <= sizeof bundle->bytes);
	if (span.length > 0)
		memcpy(at, span.at, span.length);
	bundle->bytes_used += span.length;
	return (struct weir_span){.at = at, .length = span.length};
}

/*
 * Whether a part is asked in the bundle's step: all are looked at, and what counts is reserved, or counted as blocked, unless
 * it tries.
 */
static bool is_asked(const struct bundle *bundle, uint32_t part)
{
	const struct check_ask *ask = &bundle->parts.asks[part];
	if (!bundle->reserves)
		return true;
	if (check_is_peek(ask))
		return false;
	return !bundle->blocked || (bundle->answers[part].outcome == CHECK_BLOCKED && !ask->tries);
}

static void ask_step(struct bundles *bundles, struct bundle *bundle)
{
	struct check_ask asks[CHECK_BUNDLE_MAX];
	struct check_answer answers[CHECK_BUNDLE_MAX];
	uint32_t count = 0;
	for (uint32_t i = 0; i < bundle->parts.count; i++) {
		if (!is_asked(bundle, i))
			continue;
		struct check_ask *ask = &asks[count++];
		*ask = bundle->parts.asks[i];
		ask->ticket = CHECK_TICKET_OF_BUNDLE | (uint64_t)(bundle - bundles->all) << PART_BITS | i;
		if (bundle->reserves) {
			ask->kind = CHECK_RESERVES;
			ask->ttl_ms = BUNDLE_TTL_MS;
		} else {
			ask->peek = true;
			ask->ticket |= CHECK_TICKET_LOOKS;
		}
	}
	bundle->open = count;
	if (count > 0)
		bundles->ask(bundles->context, asks, count, bundles->now, true, answers);
	for (uint32_t i = 0; i < count; i++)
		if (answers[i].outcome != CHECK_LATER)
			bundles_take(bundles, &answers[i]);
}

/* Whether one would be blocked, and none is refused: then those that would be are counted. */
static bool is_blocked(const struct bundle *bundle)
{
	bool blocked = false;
	for (uint32_t i = 0; i < bundle->parts.count; i++) {
		if (refuses(&bundle->answers[i]))
			return false;
		blocked |= bundle->answers[i].outcome == CHECK_BLOCKED;
	}
	return blocked;
}

static bool all_pass(const struct bundle *bundle)
{
	for (uint32_t i = 0; i < bundle->parts.count; i++)
		if (bundle->answers[i].outcome != CHECK_PASSED)
			return false;
	return true;
}

static void release(struct bundles *bundles, const struct bundle *bundle)
{
	struct check_ask releases[CHECK_BUNDLE_MAX];
	struct check_answer ignored[CHECK_BUNDLE_MAX];
	uint32_t count = 0;
	for (uint32_t i = 0; i < bundle->parts.count; i++) {
		if (!bundle->answers[i].reserved)
			continue;
		struct check_ask *ask = &releases[count++];
		*ask = bundle->parts.asks[i];
		ask->kind = CHECK_SETTLES;
		ask->cost = 0;
		ask->durable = false;
		ask->ticket = CHECK_TICKET_OF_BUNDLE | FOR_NOBODY;
		memcpy(ask->reservation, bundle->answers[i].reservation, sizeof ask->reservation);
	}
	if (count > 0)
		bundles->ask(bundles->context, releases, count, bundles->now, false, ignored);
}

/* From looking to reserving. @return false: there is nothing to ask */
static bool begin_reserving(struct bundle *bundle)
{
	bundle->blocked = is_blocked(bundle);
	if (!bundle->blocked && !all_pass(bundle))
		return false;
	bundle->reserves = true;
	for (uint32_t i = 0; i < bundle->parts.count; i++)
		if (is_asked(bundle, i))
			return true;
	return false;
}

/* Asks what comes next, as long as all is answered. @return whether the bundle is at its end */
static bool go_on(struct bundles *bundles, struct bundle *bundle)
{
	while (bundle->open == 0) {
		bundles->whole--;
		if (bundle->reserves || !begin_reserving(bundle))
			return true;
		ask_step(bundles, bundle);
	}
	return false;
}

/* @param answers  set, of the callers' asks; the bundle is free then */
static void finish(struct bundles *bundles, struct bundle *bundle, struct check_answer *answers)
{
	if (bundle->blocked || !all_pass(bundle))
		release(bundles, bundle);
	spread_refusal(bundle->answers, bundle->parts.count);
	hand_out(&bundle->parts, bundle->answers, answers);
	bundle->used = false;
}

static void ask_apart(struct bundles *bundles, const struct parts *parts, struct check_answer *answers)
{
	struct bundle *bundle = take_bundle(bundles);
	if (bundle == NULL) {
		for (uint32_t i = 0; i < parts->caller_count; i++)
			answers[i] = (struct check_answer){
				.outcome = CHECK_UNAVAILABLE, .retry_after_ms = -1, .why = CHECK_WHY_FULL, .ticket = parts->tickets[i]};
		return;
	}
	bundle->parts = *parts;
	for (uint32_t i = 0; i < parts->count; i++) {
		bundle->parts.asks[i].zone = keep(bundle, parts->asks[i].zone);
		bundle->parts.asks[i].key = keep(bundle, parts->asks[i].key);
	}
	ask_step(bundles, bundle);
	if (go_on(bundles, bundle)) {
		finish(bundles, bundle, answers);
		return;
	}
	for (uint32_t i = 0; i < parts->caller_count; i++)
		answers[i] = (struct check_answer){.outcome = CHECK_LATER, .ticket = parts->tickets[i]};
}

/* An answer that comes later is for one ticket: where two asks became one part, finish() hands it to both. */
void bundles_ask(struct bundles *bundles, const struct check_ask *asks, uint32_t count, struct check_time now,
                 struct check_answer *answers)
{
	struct parts parts = {.count = 0};
	struct check_answer part_answers[CHECK_BUNDLE_MAX];
	assert(count <= CHECK_BUNDLE_MAX);
	bundles->now = now;
	divide(&parts, asks, count);
	bool here = parts.count == count;
	for (uint32_t i = 0; i < parts.count; i++)
		here &= bundles->is_here(bundles->context, &parts.asks[i]);
	if (here && ask_here(bundles, parts.asks, parts.count, part_answers))
		hand_out(&parts, part_answers, answers);
	else
		ask_apart(bundles, &parts, answers);
}

/* A part that had been looked at as blocked, and would pass by now, stays blocked: others were not reserved. */
void bundles_take(struct bundles *bundles, const struct check_answer *answer)
{
	uint64_t ticket = answer->ticket & ~(CHECK_TICKET_OF_BUNDLE | CHECK_TICKET_LOOKS);
	if (ticket & FOR_NOBODY)
		return;
	struct bundle *bundle = &bundles->all[ticket >> PART_BITS];
	uint32_t part = (uint32_t)ticket & ((1u << PART_BITS) - 1);
	struct check_answer *taken = &bundle->answers[part], given = *answer;
	pass_on_trial(&bundle->parts.asks[part], &given);
	if (!bundle->blocked || given.outcome != CHECK_PASSED) {
		*taken = given;
	} else {
		taken->reserved = given.reserved;
		memcpy(taken->reservation, given.reservation, sizeof taken->reservation);
	}
	if (--bundle->open == 0)
		bundles->whole++;
}

void bundles_step(struct bundles *bundles, struct check_time now)
{
	struct check_answer answers[CHECK_BUNDLE_MAX];
	bundles->now = now;
	for (uint32_t i = 0; bundles->whole > 0 && i < BUNDLES_MAX; i++) {
		struct bundle *bundle = &bundles->all[i];
		if (!bundle->used || bundle->open > 0 || !go_on(bundles, bundle))
			continue;
		uint32_t count = bundle->parts.caller_count;
		finish(bundles, bundle, answers);
		for (uint32_t j = 0; j < count; j++)
			bundles->answered(bundles->context, &answers[j]);
	}
}
