/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of addresses at a provider, replaced whole through its API: what both kinds share.
 *
 * The provider ends no entry by itself: while weir is away, blocks stay there.
 */
#ifndef DEPLOY_GATEWAYS_TARGET_CLOUD_CLOUD_H
#define DEPLOY_GATEWAYS_TARGET_CLOUD_CLOUD_H

#include "common/bytes/address.h"
#include "common/http_client/http_client.h"
#include "common/json/json.h"
#include "deploy/gateways/target/target.h"

enum {
	CLOUD_ADDRESSES_MAX = 10000, /* what both providers take in one list */
	CLOUD_ADDRESS_BYTES = WEIR_ADDRESS_TEXT_BYTES + 4,
};

/* The beginning of both kinds' structs. */
struct cloud_target {
	struct target target;
	struct weir_json_document *document; /* its settings: texts below are borrowed from it */
	char *url;                           /* owned, without a slash at its end */
	char *name;                          /* owned: what may be shown */
	const char *ca;
	struct weir_http_client *client;
	const _Atomic bool *stop;
	int64_t pause_end_ms; /* monotonic: the provider asks for a pause until then */
};

/**
 * Reads the file of settings and makes the client.
 *
 * @param names  members that it may have, ended by NULL
 * @param url    where none is written; NULL: it is left to the caller then, as its name
 */
WEIR_MUST_USE enum weir_status cloud_open(struct cloud_target *cloud, const char *path, const char *const *names,
                                          const char *url, const struct target_options *options,
                                          struct weir_error *error);
void cloud_deinit(struct cloud_target *cloud);

/** A text that must be there, of letters, digits, _ and -. @param words  what to write */
WEIR_MUST_USE enum weir_status cloud_word(const struct cloud_target *cloud, const char *name, const char *words,
                                          const char **out, struct weir_error *error);
/** A secret without blanks; NULL where it may be left out and is. */
WEIR_MUST_USE enum weir_status cloud_secret(const struct cloud_target *cloud, const char *name, bool needed, char **out,
                                            struct weir_error *error);

/** Takes a key as an address of the list; false: the list cannot hold it. */
typedef bool cloud_fits(const void *context, const struct weir_network *network);

/**
 * Appends the addresses that are blocked, as elements of a JSON list, those that end last where there are too many.
 *
 * @param before, after  what stands around each address
 * @param all_as_networks  "192.0.2.1/32" for one address
 */
void cloud_put_addresses(struct cloud_target *cloud, const struct block_table *table, cloud_fits *fits,
                         const void *context, bool all_as_networks, const char *before, const char *after,
                         struct weir_text *out);

/**
 * Asks, and parses the answer.
 *
 * @param answer  set to it, json_decref() is due; NULL: it is no JSON
 * @return WEIR_OK: an answer of 2xx; WEIR_IO: all else, *answer may hold what it says about that
 */
WEIR_MUST_USE enum weir_status cloud_ask(struct cloud_target *cloud, const struct weir_http_call *call, json_t **answer,
                                         struct weir_error *error);
/** WEIR_IO while the provider wants a pause. */
WEIR_MUST_USE enum weir_status cloud_wait(const struct cloud_target *cloud, struct weir_error *error);

extern target_make target_cloudflare_make, target_aws_make;

#endif
