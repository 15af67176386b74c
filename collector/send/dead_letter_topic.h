/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters on the bus, which gathers those of many machines' collectors in one place. */
#ifndef COLLECTOR_DEAD_LETTER_TOPIC_H
#define COLLECTOR_DEAD_LETTER_TOPIC_H

#include "collector/send/dead_letter.h"
#include "collector/send/sender.h"

struct dead_letter_topic;

/** @param sender  borrowed; low-water marks wait for dead letters as they do for frames */
struct dead_letter_topic *dead_letter_topic_new(struct sender *sender);
void dead_letter_topic_free(struct dead_letter_topic *topic);

/**
 * A sink that sends each dead letter as one message: the JSON object of the file's line, with "host" (this machine's
 * name) as its first member. held_bytes() counts what was sent in the current day, UTC; the topic's retention limits
 * the rest.
 */
struct dead_letter_sink dead_letter_topic_sink(struct dead_letter_topic *topic);

#endif
