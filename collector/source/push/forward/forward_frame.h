/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one message of the Fluent Forward protocol says (v1).
 *
 *     [tag, time, record, options]              Message
 *     [tag, [[time, record], ...], options]     Forward
 *     [tag, bytes, options]                     PackedForward: the bytes are such pairs, one after another; with
 *                                               {"compressed": "gzip"}, or "zstd", CompressedPackedForward
 *     ["PING", host, salt, digest, user, password digest]
 *     nil                                       a heartbeat
 *
 * Options that matter: chunk, compressed, fluent_signal.
 *
 * @thread any
 */
#ifndef COLLECTOR_FORWARD_FRAME_H
#define COLLECTOR_FORWARD_FRAME_H

#include "collector/source/push/forward/msgpack_json.h"

enum forward_kind { FORWARD_HEARTBEAT, FORWARD_PING, FORWARD_MESSAGE, FORWARD_LIST, FORWARD_PACKED };
enum forward_packing { FORWARD_PLAIN, FORWARD_GZIP, FORWARD_ZSTD };

enum {
	FORWARD_CHUNK_MOST_BYTES = 512,
	FORWARD_TAG_MOST_BYTES = 1024,
	FORWARD_PING_WORDS = 5,
};

/* The words of a PING, in their order. */
enum forward_ping_word { PING_HOST, PING_SALT, PING_DIGEST, PING_USER, PING_PASSWORD };

/* Spans and entries are borrowed from the bytes of the message. */
struct forward_frame {
	enum forward_kind kind;
	struct weir_span ping[FORWARD_PING_WORDS];
	struct weir_span tag;
	struct weir_span chunk; /* at NULL: it asks for no acknowledgement */
	enum forward_packing packing;
	bool other_signal;      /* it is no log: Fluent Bit's metrics or traces */
	struct msgpack entries; /* pairs one after another; of a message its time and record; packed: as they came */
};

/**
 * Reads a whole message.
 *
 * @return WEIR_OK; WEIR_INVALID: it is none; the error says what was expected
 */
WEIR_MUST_USE enum weir_status forward_frame_read(const void *bytes, size_t length, struct forward_frame *frame,
                                                  struct weir_error *error);

#endif
