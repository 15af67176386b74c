/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From matched records to frames: one open frame a partition, all of one
 * source.
 *
 * All events of one record for one partition travel in one frame; a frame is
 * handed on when it reaches its target size or when the caller flushes.
 */
#ifndef COLLECTOR_FRAMER_H
#define COLLECTOR_FRAMER_H

#include "collector/match/matcher.h"
#include "common/frame/frame.h"

struct framer;

/** Takes a finished frame; its bytes are borrowed until it returns. */
typedef void framer_emit(void *context, uint32_t partition, struct weir_span frame);

struct framer *framer_new(uint32_t partitions, framer_emit *emit, void *context);
void framer_free(struct framer *framer);

/**
 * Adds a record's events.
 *
 * @param source    16 bytes; where it differs from the source before, open frames are flushed first
 * @param position  just after the record; where it lies before that of the record before, open frames are flushed first
 * @param now_ms    the sending time of frames that this finishes
 */
void framer_add(struct framer *framer, const uint8_t *source, uint64_t policy_version, const struct matched *matched,
                const struct record *record, uint64_t position, int64_t now_ms);

/** Hands on every open frame. */
void framer_flush(struct framer *framer, int64_t now_ms);

/** Throws open frames away: what is in them is read again. */
void framer_discard(struct framer *framer);

/** Events in open frames. */
uint64_t framer_pending(const struct framer *framer);

#endif
