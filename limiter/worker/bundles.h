/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks that count all or none.
 *
 * Where all of a bundle are this worker's and in memory, nothing comes between looking and counting: they are looked at,
 * and counted if all would pass; else those that are blocked are counted, as blocked. Otherwise each is reserved where it
 * is, and when all have answered, what passed is released unless all did. So no limit is passed either way; meanwhile
 * others may be told of less than there is. What was reserved and cannot be released, as its answer was lost, is counted
 * when it ends.
 *
 * @thread its worker
 */
#ifndef LIMITER_BUNDLES_H
#define LIMITER_BUNDLES_H

#include "limiter/check/check.h"

enum { BUNDLES_MAX = 256 /* of a worker, under way */, BUNDLE_TTL_MS = 3000 /* longer than any answer takes */ };

/* Who judges: asks without bundles. @param counted  whether the answers count as given */
typedef void bundle_ask(void *context, const struct check_ask *asks, uint32_t count, bool counted,
                        struct check_answer *answers);

struct bundle;

struct bundles {
	void *context;
	bundle_ask *ask;
	/** Whether an ask is for a partition of this worker. */
	bool (*is_here)(void *context, const struct check_ask *ask);
	/** Takes an answer whose bundle was told CHECK_LATER. */
	void (*answered)(void *context, const struct check_answer *answer);
	struct bundle *all; /* BUNDLES_MAX of them; NULL: none was needed yet */
	uint32_t whole;     /* all of their asks are answered, and they are not */
};

void bundles_deinit(struct bundles *bundles);
/** Asks a bundle. @param count  CHECK_BUNDLE_MAX at most @param answers  CHECK_LATER: of all of them */
void bundles_ask(struct bundles *bundles, const struct check_ask *asks, uint32_t count, struct check_answer *answers);
/** Takes the answer to a part, whose ticket has CHECK_TICKET_OF_BUNDLE. Asks nothing. */
void bundles_take(struct bundles *bundles, const struct check_answer *answer);
/** Answers what has become whole. */
void bundles_step(struct bundles *bundles);

#endif
