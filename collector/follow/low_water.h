/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The low-water mark of each stream: from the positions that its reader has taken,
 * through the marks that wait for the bus, to the position its source is told.
 *
 * @thread the one that reads
 */
#ifndef COLLECTOR_LOW_WATER_H
#define COLLECTOR_LOW_WATER_H

#include "collector/follow/inputs.h"
#include "collector/send/sender.h"

/** All that was read has been sent by now: marks how far that is, for every stream. */
void low_water_mark(struct inputs *inputs, struct sender *sender);

/** Notes the marks that have become safe; false: none has. Their sources do not know yet. */
bool low_water_take(struct sender *sender);

/** Tells the sources what is safe: what they remember next continues after it. */
void low_water_acknowledge(struct inputs *inputs);

/**
 * Of a source that cannot be read again: the lines that were sent and are not known to have arrived. They count as gone
 * from then on.
 */
uint64_t low_water_give_up(struct inputs *inputs, size_t place);

/** States how many lines were read of each stream, for its source's status. */
void low_water_publish_lines(struct inputs *inputs);

#endif
