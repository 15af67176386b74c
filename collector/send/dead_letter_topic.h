/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters on the bus: where many machines' collectors have theirs in one place. */
#ifndef COLLECTOR_DEAD_LETTER_TOPIC_H
#define COLLECTOR_DEAD_LETTER_TOPIC_H

#include "collector/send/dead_letter.h"
#include "collector/send/sender.h"

struct dead_letter_topic;

/** @param sender  borrowed; low-water marks wait for dead letters as for frames */
struct dead_letter_topic *dead_letter_topic_new(struct sender *sender);
void dead_letter_topic_free(struct dead_letter_topic *topic);

/**
 * A letter is one message: the object of the file's line, with "host" (this machine's name) before the others. It holds
 * what was sent within one day, UTC: retention takes care of the rest.
 */
struct dead_letter_sink dead_letter_topic_sink(struct dead_letter_topic *topic);

#endif
