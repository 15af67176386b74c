/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Redis server answers (RESP2), token by token as it arrives: so that memory is bounded whatever an entry holds.
 *
 * A list comes as its own token and then its elements; `depth` says how many lists a token is in, `index` which element
 * of the innermost it is. Of a text that is longer than the bound the first bytes come, the rest is thrown away as it
 * arrives.
 *
 * @thread one owner
 */
#ifndef WEIR_COMMON_RESP_H
#define WEIR_COMMON_RESP_H

#include "common/base/span.h"
#include "common/base/status.h"

enum { WEIR_RESP_DEPTH_MAX = 8 };

enum weir_resp_kind {
	WEIR_RESP_NIL,
	WEIR_RESP_NUMBER,
	WEIR_RESP_TEXT,
	WEIR_RESP_ERROR, /* in `text`: "WRONGTYPE Operation against ..." */
	WEIR_RESP_LIST,
};

struct weir_resp_token {
	enum weir_resp_kind kind;
	int depth;
	uint64_t index;
	int64_t number;        /* of a list: how many elements */
	struct weir_span text; /* borrowed until the next call */
	uint64_t whole;        /* bytes of the text, of which `text` may be the first */
};

struct weir_resp {
	char *buffer;
	size_t room, start, end; /* what is not taken yet is at start..end */
	uint32_t text_max;
	uint64_t skip; /* bytes of a text that are thrown away as they come */
	int depth;     /* of the next token; 0: an answer ends here */
	struct {
		uint64_t index, count;
	} open[WEIR_RESP_DEPTH_MAX];
};

/** @param text_max  bytes of a text that are kept */
void weir_resp_init(struct weir_resp *resp, uint32_t text_max);
void weir_resp_deinit(struct weir_resp *resp);
/** Forgets what came: of another connection. */
void weir_resp_reset(struct weir_resp *resp);

/** Where to put what arrives: `*room` bytes, at least 1 after WEIR_AGAIN; then weir_resp_filled(). */
char *weir_resp_room(struct weir_resp *resp, size_t *room);
void weir_resp_filled(struct weir_resp *resp, size_t bytes);

/** @return WEIR_OK; WEIR_AGAIN: more must arrive; WEIR_INVALID: this is no Redis, or one of another protocol */
WEIR_MUST_USE enum weir_status weir_resp_next(struct weir_resp *resp, struct weir_resp_token *token,
                                              struct weir_error *error);

#endif
