/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message of a queue as a line: it is one record, whatever bytes it has. Line breaks at its end are cut, and newlines
 * within become spaces, as a line cannot hold them. One of which nothing is left, a tombstone or a blank one, is no line.
 */
#ifndef COLLECTOR_SOURCE_MESSAGE_H
#define COLLECTOR_SOURCE_MESSAGE_H

#include "common/base/text.h"

/** A message's bytes without the line breaks at its end. @param at  NULL: there are none */
struct weir_span source_message_line(const void *at, size_t length);

/** Appends it as one line, with its newline. */
void source_message_put(struct weir_text *lines, struct weir_span line);

#endif
