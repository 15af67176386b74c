/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path that a server served, out of the target that a client wrote: the rule of the field `path` in every format.
 *
 *   1. cut at the first '?' or '#'
 *   2. an absolute form (scheme "://" authority path) loses scheme and authority; an empty path becomes "/"
 *   3. what does not begin with '/' then ("*", the authority of CONNECT, a name) stays as it is
 *   4. percent-decoded once; an escape that is none stays as it is
 *   5. runs of '/' become one
 *   6. dot segments are removed (RFC 3986, 5.2.4)
 *
 * So a client cannot write one path in many ways to be counted under many keys, or under none.
 */
#ifndef COLLECTOR_SERVED_PATH_H
#define COLLECTOR_SERVED_PATH_H

#include "collector/record/find.h"
#include "common/base/span.h"

/* Room for the path of a line that is not simply a part of its target. Owned by one thread; zeroed is empty. */
struct served_path_room {
	char *bytes;
	uint32_t capacity;
};

/**
 * Marks, a bit each, of the bytes of a block at which a target may not be its path: what find_path_mark() finds, and a '/'
 * or '.' behind a '/'. Up to the first of them it is, and if that is a '?', no further.
 *
 * @param slash  1 where the byte before the block is '/', else 0; set for the next block
 */
static inline uint64_t served_path_marks(find_block block, unsigned *slash)
{
	uint64_t slashes = find_bits(find_equal(block, '/')), behind = slashes << 1 | *slash;
	*slash = (unsigned)(slashes >> (FIND_BYTES - 1) & 1);
	return find_bits(find_path_mark(block)) | (behind & find_bits(find_slash_or_dot(block)));
}

void served_path_room_deinit(struct served_path_room *room);

/**
 * The served path of a target: never longer than it.
 *
 * @param target  borrowed; not empty
 * @return a part of the target, or bytes in the room, valid until it is used again; may be empty ("?a=b")
 */
struct weir_span served_path(struct weir_span target, struct served_path_room *room);

#endif
