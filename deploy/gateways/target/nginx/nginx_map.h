/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of an nginx `map` block, or `geo`: `"KEY" "DATE";` lines, for
 *
 *   map $remote_addr $weir_until { default ""; include weir.map; }
 *   geo $weir_until { default ""; include weir.map; }
 *
 * nginx does no arithmetic, so the value is what Retry-After may hold besides
 * seconds: an HTTP date, rounded up. nginx compares without regard to the case
 * of letters, and refuses a map in which a key stands twice so.
 */
#ifndef DEPLOY_GATEWAYS_TARGET_NGINX_NGINX_MAP_H
#define DEPLOY_GATEWAYS_TARGET_NGINX_NGINX_MAP_H

#include "common/base/text.h"
#include "common/bytes/address.h"

enum {
	NGINX_MAP_KEY_MAX_BYTES = 255, /* what fits a map_hash_bucket_size of 512: one longer key would spoil the map */
	NGINX_MAP_DATE_BYTES = 32,
	NGINX_GEO_KEY_BYTES = WEIR_ADDRESS_TEXT_BYTES + 4,
};

/** Whether a map can hold this key. */
bool nginx_map_fits(struct weir_span key);

/** A key as a `geo` takes it, an address or a network; false: it is none. */
bool nginx_geo_key(struct weir_span key, char text[NGINX_GEO_KEY_BYTES]);

/** Appends a line for a key that fits. */
void nginx_map_line(struct weir_text *text, struct weir_span key, int64_t until_ms);

/** Moves past such a line, and says when its block ends, in Unix ms. @return false: it is none */
bool nginx_map_read(const char **at, const char *end, int64_t *until_ms);

/** The order in which keys that are one to nginx stand together. */
int nginx_map_compare(struct weir_span a, struct weir_span b);

#endif
