/* SPDX-License-Identifier: Apache-2.0 */
/* Parts have tickets of their own, which say whose they are; what is released is asked for nobody. */
#include "limiter/worker/bundles.h"

#include "common/base/alloc.h"
#include "common/policy/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PART_BITS = 8, FOR_NOBODY = 1 << 20 };

struct bundle {
	bool used;
	uint32_t count, open; /* asks; of which are not answered */
	struct check_ask asks[CHECK_BUNDLE_MAX];
	struct check_answer answers[CHECK_BUNDLE_MAX];
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

/* One that could not be answered is the answer of all. */
static void spread_refusal(struct check_answer *answers, const struct check_ask *asks, uint32_t count)
{
	const struct check_answer *refusal = NULL;
	for (uint32_t i = 0; i < count && refusal == NULL; i++)
		if (refuses(&answers[i]))
			refusal = &answers[i];
	struct check_answer all = refusal != NULL ? *refusal : (struct check_answer){0};
	for (uint32_t i = 0; i < count; i++) {
		if (refusal != NULL)
			answers[i] = all;
		answers[i].ticket = asks[i].ticket;
	}
}

/* ---- all of it here ---- */

/* Counts those that would be blocked, together. @param answers  what would be; what is */
static void count_blocked(struct bundles *bundles, const struct check_ask *asks, uint32_t count,
                          struct check_answer *answers)
{
	struct check_ask blocked[CHECK_BUNDLE_MAX];
	struct check_answer counted[CHECK_BUNDLE_MAX];
	uint32_t blocks = 0;
	for (uint32_t i = 0; i < count; i++)
		if (answers[i].outcome == CHECK_BLOCKED)
			blocked[blocks++] = asks[i];
	bundles->ask(bundles->context, blocked, blocks, true, counted);
	for (uint32_t i = 0, next = 0; i < count; i++) {
		if (answers[i].outcome == CHECK_BLOCKED)
			answers[i] = counted[next++];
		answers[i].ticket = asks[i].ticket;
	}
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
	bundles->ask(bundles->context, peeks, count, false, answers);
	for (uint32_t i = 0; i < count; i++) {
		if (answers[i].outcome == CHECK_LATER || answers[i].why == CHECK_WHY_FULL)
			return false;
		refused |= refuses(&answers[i]);
		blocked |= answers[i].outcome == CHECK_BLOCKED;
	}
	if (refused || !blocked) {
		if (!refused)
			bundles->ask(bundles->context, asks, count, true, answers);
		else
			spread_refusal(answers, asks, count);
		return true;
	}
	count_blocked(bundles, asks, count, answers);
	return true;
}

/* ---- reserved first ---- */

static struct bundle *take_bundle(struct bundles *bundles)
{
	if (bundles->all == NULL)
		bundles->all = weir_alloc(BUNDLES_MAX, sizeof *bundles->all);
	for (uint32_t i = 0; i < BUNDLES_MAX; i++) {
		struct bundle *bundle = &bundles->all[i];
		if (bundle->used)
			continue;
		bundle->used = true;
		bundle->count = bundle->bytes_used = 0;
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

/* What all have answered. @param answers  set, with the callers' tickets; the bundle is free then */
static void finish(struct bundles *bundles, struct bundle *bundle, struct check_answer *answers)
{
	struct check_ask releases[CHECK_BUNDLE_MAX];
	struct check_answer ignored[CHECK_BUNDLE_MAX];
	uint32_t release_count = 0;
	bool passed = true;
	memcpy(answers, bundle->answers, bundle->count * sizeof *answers);
	for (uint32_t i = 0; i < bundle->count; i++)
		passed &= answers[i].outcome == CHECK_PASSED;
	for (uint32_t i = 0; i < bundle->count; i++) {
		if (!passed && answers[i].reserved) {
			struct check_ask *release = &releases[release_count++];
			*release = bundle->asks[i];
			release->kind = CHECK_SETTLES;
			release->cost = 0;
			release->durable = false;
			release->ticket = CHECK_TICKET_OF_BUNDLE | FOR_NOBODY;
			memcpy(release->reservation, answers[i].reservation, sizeof release->reservation);
		}
		answers[i].reserved = false;
	}
	spread_refusal(answers, bundle->asks, bundle->count);
	if (release_count > 0)
		bundles->ask(bundles->context, releases, release_count, false, ignored);
	bundle->used = false;
}

static void ask_apart(struct bundles *bundles, const struct check_ask *asks, uint32_t count,
                      struct check_answer *answers)
{
	struct check_ask parts[CHECK_BUNDLE_MAX];
	struct bundle *bundle = take_bundle(bundles);
	for (uint32_t i = 0; bundle == NULL && i < count; i++)
		answers[i] = (struct check_answer){
			.outcome = CHECK_UNAVAILABLE, .retry_after_ms = -1, .why = CHECK_WHY_FULL, .ticket = asks[i].ticket};
	if (bundle == NULL)
		return;
	bundle->count = bundle->open = count;
	for (uint32_t i = 0; i < count; i++) {
		bundle->asks[i] = asks[i];
		bundle->asks[i].zone = keep(bundle, asks[i].zone);
		bundle->asks[i].key = keep(bundle, asks[i].key);
		parts[i] = bundle->asks[i];
		parts[i].kind = check_is_peek(&asks[i]) ? CHECK_COUNTS : CHECK_RESERVES;
		parts[i].ttl_ms = BUNDLE_TTL_MS;
		parts[i].ticket = CHECK_TICKET_OF_BUNDLE | (uint64_t)(bundle - bundles->all) << PART_BITS | i;
	}
	bundles->ask(bundles->context, parts, count, true, answers);
	for (uint32_t i = 0; i < count; i++) {
		if (answers[i].outcome != CHECK_LATER)
			bundles_take(bundles, &answers[i]);
		answers[i] = (struct check_answer){.outcome = CHECK_LATER, .ticket = asks[i].ticket};
	}
	if (bundle->open > 0)
		return;
	bundles->whole--;
	finish(bundles, bundle, answers);
}

/* Whether a key comes twice in a zone: looking at each would not see the other. */
static bool has_twins(const struct check_ask *asks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (weir_span_equal(asks[i].key, asks[j].key) && weir_span_equal(asks[i].zone, asks[j].zone))
				return true;
	return false;
}

void bundles_ask(struct bundles *bundles, const struct check_ask *asks, uint32_t count, struct check_answer *answers)
{
	bool here = !has_twins(asks, count);
	assert(count <= CHECK_BUNDLE_MAX);
	for (uint32_t i = 0; i < count; i++)
		here &= bundles->is_here(bundles->context, &asks[i]);
	if (!here || !ask_here(bundles, asks, count, answers))
		ask_apart(bundles, asks, count, answers);
}

void bundles_take(struct bundles *bundles, const struct check_answer *answer)
{
	uint64_t ticket = answer->ticket & ~CHECK_TICKET_OF_BUNDLE;
	if (ticket & FOR_NOBODY)
		return;
	struct bundle *bundle = &bundles->all[ticket >> PART_BITS];
	bundle->answers[ticket & ((1u << PART_BITS) - 1)] = *answer;
	if (--bundle->open == 0)
		bundles->whole++;
}

void bundles_step(struct bundles *bundles)
{
	struct check_answer answers[CHECK_BUNDLE_MAX];
	for (uint32_t i = 0; bundles->whole > 0 && i < BUNDLES_MAX; i++) {
		struct bundle *bundle = &bundles->all[i];
		if (!bundle->used || bundle->open > 0)
			continue;
		uint32_t count = bundle->count;
		bundles->whole--;
		finish(bundles, bundle, answers);
		for (uint32_t j = 0; j < count; j++)
			bundles->answered(bundles->context, &answers[j]);
	}
}
