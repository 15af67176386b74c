/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of HAProxy's runtime interface that keep a map: a key is a string,
 * its value the Unix second (rounded up) at which the block ends, so that
 * HAProxy can tell by itself how long it has still to run.
 */
#ifndef DEPLOY_GATEWAYS_TARGET_HAPROXY_HAPROXY_MAP_H
#define DEPLOY_GATEWAYS_TARGET_HAPROXY_HAPROXY_MAP_H

#include "common/base/text.h"

enum {
	HAPROXY_MAP_KEY_MAX_BYTES = 1024,
	HAPROXY_MAP_COMMAND_MAX_BYTES = 8 * 1024, /* of one request: HAProxy's buffer takes 16 KiB by default */
};

/** Whether a map can hold this key. */
bool haproxy_map_fits(struct weir_span key);

/** Whether a key can stand in a payload's line, which knows no escapes; any that fits can in a command. */
bool haproxy_map_is_plain(struct weir_span key);

/** Appends a key as a word of a command. */
void haproxy_map_word(struct weir_text *text, struct weir_span key);

/** Appends the value. */
void haproxy_map_until(struct weir_text *text, int64_t until_ms);

#endif
