/* SPDX-License-Identifier: Apache-2.0 */
/*
 * {"verified": [...]} of "exempt": robots whose user agent anybody can claim, and whose hosts can be asked for by name.
 *
 * An entry is a search engine by its name, or {"agent": TEXT, "hosts": [DOMAIN, ...]}. The client's address must have a
 * name in one of the domains, and that name the address (common/exempt/verified_hosts.h asks).
 */
#ifndef WEIR_COMMON_VERIFIED_H
#define WEIR_COMMON_VERIFIED_H

#include "common/base/span.h"
#include "common/json/json.h"

enum { WEIR_VERIFIED_MAX = 32, WEIR_VERIFIED_HOSTS_MAX = 8, WEIR_HOST_MAX_BYTES = 253 };

struct weir_verified {
	char *name;                           /* of an engine; NULL: the configuration's own */
	char *agent;                          /* a part of its user agent, whatever the case of letters */
	char *hosts[WEIR_VERIFIED_HOSTS_MAX]; /* "DOMAIN", or "PREFIX*.DOMAIN": the names right in it that begin so */
	uint32_t host_count;
};

/** One entry. @param verified  zeroed; weir_verified_free() on failure, too */
WEIR_MUST_USE enum weir_status weir_verified_parse(const struct weir_json *at, struct weir_verified *verified,
                                                   struct weir_error *error);
void weir_verified_free(struct weir_verified *verified);
/** In full, by agent and hosts, so that a weir that knows other engines reads it as it was meant. */
json_t *weir_verified_json(const struct weir_verified *verified);
/** What an entry may be (common/json/json_shape.h). */
json_t *weir_verified_shape(void);

/** Whether a user agent is one that the robot has. */
bool weir_verified_claims(const struct weir_verified *verified, struct weir_span agent);
/** Whether a host's name is one of those that an element of `hosts` says. */
bool weir_verified_host(const char *hosts, const char *name);
/** Whether a host's name is one of its hosts: a domain, below it, or of the prefix in it. */
bool weir_verified_is_host(const struct weir_verified *verified, const char *name);

#endif
