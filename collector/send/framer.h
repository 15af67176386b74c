/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From matched records to frames: one open frame per partition, all of one source.
 *
 * All events of one record for one partition are in one frame. A frame is emitted
 * when it reaches its target size, when the source, the policy or the order of
 * positions changes, or when the caller flushes.
 */
#ifndef COLLECTOR_FRAMER_H
#define COLLECTOR_FRAMER_H

#include "common/frame/frame.h"
#include "common/matcher/matcher.h"

struct framer;

/** Takes a finished frame; its bytes are borrowed until it returns. */
typedef void framer_emit(void *context, uint32_t partition, struct weir_span frame);

struct framer *framer_new(uint32_t partitions, framer_emit *emit, void *context);
void framer_free(struct framer *framer);

/**
 * Adds a record's events.
 *
 * @param source    16 bytes; if it differs from the previous record's, open frames are flushed first
 * @param is_common  other collectors may read it under the same id: its frames say so
 * @param position  just after the record; if it is below the previous record's, open frames are flushed first
 * @param now_ms    the sending time of frames that this finishes
 */
void framer_add(struct framer *framer, const uint8_t *source, bool is_common, uint64_t policy_version,
                const struct weir_matched *matched, const struct weir_record *record, uint64_t position,
                int64_t now_ms);

/** Emits every open frame. */
void framer_flush(struct framer *framer, int64_t now_ms);

/** Discards open frames, as their events will be read again. */
void framer_discard(struct framer *framer);

/** The number of events in open frames. */
uint64_t framer_pending(const struct framer *framer);

#endif
