/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host that a client asked for, in one form: the rule of the field `host` in every format, and of requests.
 *
 *   1. a port behind it is cut, one without digits too, and whatever else stands behind the colon: servers look no further
 *   2. a dot at its end is cut
 *   3. letters of ASCII become small
 *
 * What is neither a name nor an address in brackets stays as it is. So a client cannot write one host in many ways to be
 * counted under many keys, or under none.
 */
#ifndef WEIR_SERVED_HOST_H
#define WEIR_SERVED_HOST_H

#include "common/base/span.h"

enum { WEIR_SERVED_HOST_BYTES = 256 };

/**
 * The one form of a host: never longer than it, never empty.
 *
 * @param host  borrowed; not empty. A name may have `*` in it, as that of a policy; a name longer than the room stays
 * @return a part of the host, or bytes in the room
 */
struct weir_span weir_served_host(struct weir_span host, char room[WEIR_SERVED_HOST_BYTES]);

#endif
