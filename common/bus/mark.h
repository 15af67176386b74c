/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is remembered of one message of a topic beside a stored offset, to tell
 * later whether the topic is still the same one. A topic that was deleted and made
 * anew begins at offset 0 again, and may have grown past the stored offset by then.
 *
 * The message's bytes tell. Where the log has a clock of its own, the time at which
 * it took the message tells too: a new topic's is later.
 */
#ifndef WEIR_COMMON_BUS_MARK_H
#define WEIR_COMMON_BUS_MARK_H

#include "common/base/span.h"
#include "common/base/text.h"
#include "common/bytes/bits.h"
#include "common/bytes/hash.h"

struct weir_mark {
	uint64_t offset;     /* of the message */
	int64_t appended_ms; /* when the log took it, by the log's clock; 0: the log stores no such time */
	uint64_t hash;       /* of its bytes; 0: no message is remembered */
};

enum { WEIR_MARK_BYTES = 64 }; /* at each end of a message: a frame's checksum, and what is behind it, are there */

static inline bool weir_mark_is_set(const struct weir_mark *mark)
{
	return mark != NULL && mark->hash != 0;
}

static inline struct weir_mark weir_mark_of(struct weir_span payload, uint64_t offset, int64_t appended_ms)
{
	uint64_t hash = payload.length;
	if (payload.length <= 2 * WEIR_MARK_BYTES)
		hash += weir_hash64(payload.at, payload.length);
	else
		hash += weir_hash64(payload.at, WEIR_MARK_BYTES) ^
		        weir_hash64(payload.at + payload.length - WEIR_MARK_BYTES, WEIR_MARK_BYTES) * 3;
	return (struct weir_mark){.offset = offset, .appended_ms = appended_ms, .hash = hash != 0 ? hash : 1};
}

/* As it is stored: three numbers of eight bytes, little-endian. */
enum { WEIR_MARK_STORED_BYTES = 24 };

static inline void weir_mark_append(struct weir_text *text, const struct weir_mark *mark)
{
	uint8_t bytes[WEIR_MARK_STORED_BYTES];
	weir_bytes_put(bytes, 8, mark->offset);
	weir_bytes_put(bytes + 8, 8, (uint64_t)mark->appended_ms);
	weir_bytes_put(bytes + 16, 8, mark->hash);
	weir_text_append(text, bytes, sizeof bytes);
}

/** @param at  WEIR_MARK_STORED_BYTES */
static inline struct weir_mark weir_mark_read(const char *at)
{
	const uint8_t *bytes = (const uint8_t *)at;
	return (struct weir_mark){.offset = weir_bytes_get(bytes, 8),
	                          .appended_ms = (int64_t)weir_bytes_get(bytes + 8, 8),
	                          .hash = weir_bytes_get(bytes + 16, 8)};
}

/** Whether two marks of one offset are of the same message. */
static inline bool weir_mark_equal(const struct weir_mark *one, const struct weir_mark *other)
{
	return one->offset == other->offset && one->hash == other->hash && one->appended_ms == other->appended_ms;
}

#endif
