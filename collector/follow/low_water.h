/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The low-water mark of each stream: from the position that its reader has taken,
 * through marks that wait for the bus, to the position that its source is told.
 *
 * @thread the one that reads
 */
#ifndef COLLECTOR_LOW_WATER_H
#define COLLECTOR_LOW_WATER_H

#include "collector/follow/inputs.h"
#include "collector/send/sender.h"

/** Marks the position of every stream. Called when all that was read has been sent. */
void low_water_mark(struct inputs *inputs, struct sender *sender);

/** Notes the marks that have become safe; false: none has. The sources are not told yet. */
bool low_water_take(struct sender *sender);

/** Whether some stream went back to its low-water mark and has not been read again to where it was. */
bool low_water_is_behind(struct inputs *inputs);

/** Tells the sources which positions are safe, so that they save them. */
void low_water_acknowledge(struct inputs *inputs);

/**
 * Gives up the lines of a source that cannot be read again and that are not known to have arrived.
 *
 * @return how many those are; a later call does not count them again
 */
uint64_t low_water_give_up(struct inputs *inputs, size_t place);

/** Sets how many lines were read of each stream, for its source's status. */
void low_water_publish_lines(struct inputs *inputs);

#endif
