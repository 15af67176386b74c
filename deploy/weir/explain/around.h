/* SPDX-License-Identifier: Apache-2.0 */
/* Of a key that is asked about, the networks around it that operators blocked: what may keep it out with no decision of its own. */
#ifndef DEPLOY_WEIR_EXPLAIN_AROUND_H
#define DEPLOY_WEIR_EXPLAIN_AROUND_H

#include "common/bytes/address.h"
#include "deploy/weir/explain/question.h"

/* Zero-initialised: of a key that lies in no network. */
struct around {
	bool lies;                 /* it may lie in networks */
	struct weir_network asked; /* the key */
	struct weir_text head;     /* what a decision about a network has behind its id, up to the network */
	struct around_network *networks;
	size_t count;
};

/** @param question  its zone and key are known; @param zone  its zone */
void around_init(struct around *around, const struct question *question, const struct weir_zone *zone);
void around_deinit(struct around *around);

/**
 * Takes a decision if an operator made it about a network around the key, and it is newer than what is known of that.
 *
 * @param rest   of the line, from the member "zone" on
 * @param id     its partition, offset and index are those of the line
 * @param place  where it is, for people
 */
void around_consider(struct around *around, struct weir_span line, struct weir_span rest, const struct question *id,
                     const char *place);

/**
 * Makes the question one about the narrowest network that blocks the key, unless a block of its own is in force.
 *
 * @param now_ms  what ends later is in force
 */
void around_settle(const struct around *around, struct question *question, int64_t now_ms);

#endif
