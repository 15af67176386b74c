/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a limiter's stored state begins with: which number the first record of its topic has.
 *
 * A topic that was made anew numbers its messages from 0 again, and its records' numbers go on (limiter/lane/
 * lane_place.h): a number is the base plus the offset. Who compares a limiter's place with an archiver's needs it.
 *
 * The beginning is, all little-endian: the length 8 and a version, each where earlier programs look for the shard's part
 * and its version, so that they say that a newer one wrote it; then the base.
 */
#ifndef WEIR_COMMON_RECORD_BASE_H
#define WEIR_COMMON_RECORD_BASE_H

#include "common/base/status.h"
#include "common/base/text.h"

/**
 * Reads the beginning of a limiter's `extra`, and moves the span behind it. What weir 0.1 stored has none: the base is 0,
 * and the span stays where it is.
 *
 * @return WEIR_OK; WEIR_NEWER: written by a newer version; WEIR_INVALID: truncated
 */
WEIR_MUST_USE enum weir_status weir_record_base_read(struct weir_span *extra, uint64_t *base, struct weir_error *error);
void weir_record_base_write(uint64_t base, struct weir_text *extra);

#endif
