/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which life of the events topic a partition is in.
 *
 * A topic that was made anew numbers its messages from 0 again. But decisions are
 * compared by the number of the record that caused them, and archivers count each
 * number once. So a record's number is `base` plus its offset. `base` is 0 in a
 * topic's first life, and higher in each further one: numbers only grow.
 *
 * It is the beginning of a partition's `extra` in the store.
 */
#ifndef LIMITER_LANE_PLACE_H
#define LIMITER_LANE_PLACE_H

#include "common/base/status.h"
#include "common/base/text.h"
#include "common/bus/mark.h"

struct lane_place {
	uint64_t base;         /* a record's number is this plus its offset */
	struct weir_mark last; /* the last message taken; or, behind a gap, the next one */
};

/**
 * Reads the beginning of an `extra`, and moves the span behind it. What weir 0.1 stored has no such beginning: base 0,
 * and no mark.
 *
 * @return WEIR_OK; WEIR_NEWER: written by a newer version; WEIR_INVALID: truncated
 */
WEIR_MUST_USE enum weir_status lane_place_read(struct weir_span *extra, struct lane_place *place,
                                               struct weir_error *error);
void lane_place_write(const struct lane_place *place, struct weir_text *extra);

/**
 * The base of a topic's next life.
 *
 * The step is so large because the records of the last checkpoint are not the last ones that were judged: decisions
 * about later ones may have been published. It is a power of ten so that a number shows both: 3-10000000535-0 is the
 * decision of offset 535 in the second life. Ids have room for some thousand lives.
 *
 * @param number  of the first record that the last checkpoint does not hold
 */
uint64_t lane_place_next_base(uint64_t number);

#endif
