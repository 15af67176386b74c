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

/** The end of a line of which no more than the first `most` bytes are handed out: what a chunk has of it. */
struct weir_span source_message_tail(struct weir_span line, size_t most);

/** Appends the first `most` bytes of a longer line, and its end behind them. @return how many bytes that end has there */
uint32_t source_message_put_long(struct weir_text *lines, struct weir_span line, size_t most);

#endif
