/* SPDX-License-Identifier: Apache-2.0 */
/* Packed bytes in memory, such as a request's body, and what is in them. */
#ifndef COLLECTOR_INPUT_UNPACK_H
#define COLLECTOR_INPUT_UNPACK_H

#include "collector/input/input.h"
#include "common/base/text.h"

/**
 * Unpacks members or frames, one after another, to their end.
 *
 * @param kind   INPUT_GZIP or INPUT_ZSTD
 * @param most   bytes of plain text, however few they are packed in
 * @param plain  appended to
 * @return WEIR_OK; WEIR_FULL: there are more than `most`; WEIR_INVALID: damaged, or they end too early
 */
WEIR_MUST_USE enum weir_status input_unpack(enum input_kind kind, struct weir_span packed, size_t most,
                                            struct weir_text *plain, struct weir_error *error);

#endif
