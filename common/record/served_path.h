/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path that a server served, out of the target that a client wrote: the rule of the field `path` in every format.
 *
 *   1. cut at the first '?' or '#'
 *   2. an absolute form (scheme "://" authority path) loses scheme and authority; if nothing is left, the path is "/":
 *      servers answer "?a=b" as they do "/?a=b"
 *   3. what does not begin with '/' then ("*", the authority of CONNECT, a name) stays as it is
 *   4. percent-decoded once; an escape that is none stays as it is
 *   5. runs of '/' become one
 *   6. dot segments are removed (RFC 3986, 5.2.4)
 *
 * So a client cannot write one path in many ways to be counted under many keys, or under none.
 */
#ifndef WEIR_SERVED_PATH_H
#define WEIR_SERVED_PATH_H

#include "common/base/span.h"

/* Room for the path of a line that is not simply a part of its target. Owned by one thread; zeroed is empty. */
struct weir_served_path_room {
	char *bytes;
	uint32_t capacity;
};

void weir_served_path_room_deinit(struct weir_served_path_room *room);

/**
 * Whether the path of a target is the target as it stands, or up to its '?': as most are. False: it is to be looked at more
 * closely, for a backslash too, by which a log may have escaped it.
 *
 * @param target  borrowed; not empty
 * @param path    set: a part of the target
 */
bool weir_served_path_stands(struct weir_span target, struct weir_span *path);

/**
 * The served path of a target: never longer than it.
 *
 * @param target  borrowed; not empty
 * @return a part of the target, or bytes in the room, valid until it is used again; never empty
 */
struct weir_span weir_served_path(struct weir_span target, struct weir_served_path_room *room);

#endif
