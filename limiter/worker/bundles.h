/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks that count all or none.
 *
 * Where all of a bundle are this worker's and in memory, nothing comes between looking and counting: they are looked at,
 * and counted if all would pass; else those that are blocked are counted, as blocked, but for those that try. Otherwise each is looked at where it
 * is. If all would pass, each is reserved there, and if not all do by then, what passed is released; else those that are
 * blocked are counted. So no limit is passed either way, and who is refused takes nothing from others, but for the moment
 * in which two bundles reserve the last of something. What was reserved and cannot be released, as its answer was lost, is
 * counted when it ends.
 *
 * Checks of one key and zone are asked as one, which costs what they cost together.
 *
 * @thread its worker
 */
#ifndef LIMITER_BUNDLES_H
#define LIMITER_BUNDLES_H

#include "limiter/check/check.h"

enum { BUNDLES_MAX = 256 /* of a worker, under way */, BUNDLE_TTL_MS = 3000 /* longer than any answer takes */ };

/* Who judges: asks without bundles. @param counted  whether the answers count as given */
typedef void bundle_ask(void *context, const struct check_ask *asks, uint32_t count, struct check_time now,
                        bool counted, struct check_answer *answers);

struct bundle;

struct bundles {
	void *context;
	bundle_ask *ask;
	/** Whether an ask is for a partition of this worker. */
	bool (*is_here)(void *context, const struct check_ask *ask);
	/** Takes an answer whose bundle was told CHECK_LATER. */
	void (*answered)(void *context, const struct check_answer *answer);
	struct bundle *all;    /* BUNDLES_MAX of them; NULL: none was needed yet */
	uint32_t whole;        /* all that they had asked is answered, and they have not gone on */
	struct check_time now; /* of what is asked now: what was looked at is counted at the same time */
};

void bundles_deinit(struct bundles *bundles);
/** Asks a bundle. @param count  CHECK_BUNDLE_MAX at most @param answers  CHECK_LATER: of all of them */
void bundles_ask(struct bundles *bundles, const struct check_ask *asks, uint32_t count, struct check_time now,
                 struct check_answer *answers);
/** Takes the answer to a part, whose ticket has CHECK_TICKET_OF_BUNDLE. Asks nothing. */
void bundles_take(struct bundles *bundles, const struct check_answer *answer);
/** Goes on with what has been answered, and answers what is at its end. */
void bundles_step(struct bundles *bundles, struct check_time now);

#endif
