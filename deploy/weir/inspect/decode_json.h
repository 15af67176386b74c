/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the log as JSON lines, for people: what `weir decode` prints. */
#ifndef DEPLOY_WEIR_INSPECT_DECODE_JSON_H
#define DEPLOY_WEIR_INSPECT_DECODE_JSON_H

#include "common/base/text.h"
#include "common/bus/bus.h"

struct decode_json;

/** @param flat  a line for each event, not for each frame */
struct decode_json *decode_json_new(bool flat);
void decode_json_free(struct decode_json *decoder);

/**
 * Appends a message's lines.
 *
 * @param placed  whether topic, partition and offset are known and to be shown
 * @return WEIR_OK; WEIR_INVALID, WEIR_NEWER: it cannot be decoded: nothing was appended, the words say why
 */
WEIR_MUST_USE enum weir_status decode_json_put(struct decode_json *decoder, const struct weir_message *message,
                                               bool placed, struct weir_text *text, struct weir_error *error);

#endif
