/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane shares with the part of it that answers checks. Only they include it. */
#ifndef LIMITER_LANE_INTERNAL_H
#define LIMITER_LANE_INTERNAL_H

#include "limiter/lane/lane.h"

struct lane_checks;

/** Where the lane keeps them; NULL there: nobody has asked yet. */
struct lane_checks **lane_checks_of(struct lane *lane);
void lane_checks_free(struct lane_checks *checks);

/** Looks at a frame of checks that the lane has taken. */
void lane_checks_see(struct lane *lane, const struct weir_frame *frame);

#endif
