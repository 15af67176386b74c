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
	NGINX_MAP_HASH_SIZE = 16384, /* the map_hash_max_size that the example sets */
};

/** Whether a map can hold this key. */
bool nginx_map_fits(struct weir_span key);

/** A key as a `geo` takes it, an address or a network; false: it is none. @param any_size  as network_key() */
bool nginx_geo_key(struct weir_span key, bool any_size, char text[NGINX_GEO_KEY_BYTES]);

/** Appends a line for a key that fits. */
void nginx_map_line(struct weir_text *text, struct weir_span key, int64_t until_ms);

/** Moves past such a line, and says when its block ends, in Unix ms. @return false: it is none */
bool nginx_map_read(const char **at, const char *end, int64_t *until_ms);

/*
 * What each bucket of nginx's hash would hold. Its hash has no secret, so clients can choose keys that all fall into one
 * bucket; and nginx refuses a map of which one has 64 KiB: then it takes no change any more, and does not start either.
 * The places are those of a map of NGINX_MAP_HASH_SIZE buckets, or of a multiple or an eighth of it, and of keys whose
 * whole hash is the same, which fall together whatever the size is.
 */
struct nginx_map_buckets {
	uint32_t *bytes; /* owned */
	uint32_t most;   /* of one */
};

/** @param bytes  of all keys together, by nginx_map_bytes(): of an even share a bucket may hold several times as much */
void nginx_map_buckets_init(struct nginx_map_buckets *buckets, uint64_t bytes);
void nginx_map_buckets_deinit(struct nginx_map_buckets *buckets);
/** What a key takes in a bucket. */
uint32_t nginx_map_bytes(struct weir_span key);
/** Whether its bucket has room for a key, which it takes then. */
bool nginx_map_buckets_take(struct nginx_map_buckets *buckets, struct weir_span key);

/** The order in which keys that are one to nginx stand together. */
int nginx_map_compare(struct weir_span a, struct weir_span b);

#endif
