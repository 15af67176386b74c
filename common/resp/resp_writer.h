/* SPDX-License-Identifier: Apache-2.0 */
/* What a Redis server answers, appended to a text: in RESP2 and RESP3, whose replies differ in maps and in nothing. */
#ifndef WEIR_COMMON_RESP_WRITER_H
#define WEIR_COMMON_RESP_WRITER_H

#include "common/base/text.h"

enum weir_resp_protocol { WEIR_RESP2 = 2, WEIR_RESP3 = 3 };

/** "+OK" */
void weir_resp_simple(struct weir_text *text, const char *words);
/** "-ERR no such thing": control characters become spaces, and a long text is cut. @param format  with its code: "ERR …" */
void weir_resp_error(struct weir_text *text, const char *format, ...) WEIR_PRINTF(2, 3);
void weir_resp_bulk(struct weir_text *text, struct weir_span bytes);
void weir_resp_string(struct weir_text *text, const char *string);
void weir_resp_integer(struct weir_text *text, int64_t number);
/** Nothing. */
void weir_resp_nil(struct weir_text *text, enum weir_resp_protocol protocol);
/** So many elements follow. */
void weir_resp_array(struct weir_text *text, size_t count);
/** So many pairs follow: in RESP2 an array of twice as many. */
void weir_resp_map(struct weir_text *text, size_t count, enum weir_resp_protocol protocol);
/** An array of integers, at most WEIR_RESP_INTEGERS_MAX. */
enum { WEIR_RESP_INTEGERS_MAX = 9 };
void weir_resp_integers(struct weir_text *text, const int64_t *numbers, size_t count);

#endif
