/* SPDX-License-Identifier: Apache-2.0 */
/* The questions of verified_hosts.h to a name server. */
#ifndef COLLECTOR_DNS_H
#define COLLECTOR_DNS_H

#include "common/bytes/address.h"
#include "common/policy/policy.h"

struct dns; /* belongs to one thread, which waits for the answers */

/**
 * @param resolver  "127.0.0.1:53", IPv4; NULL: the system's
 * @return WEIR_INVALID: it is no such address; WEIR_IO
 */
WEIR_MUST_USE enum weir_status dns_new(const char *resolver, int64_t patience_ms, struct dns **dns,
                                       struct weir_error *error);
void dns_free(struct dns *dns);

/**
 * Finds a name of an address that leads back to it.
 *
 * @param name  set to it, without a dot at the end; "": it has none
 * @return false: the servers did not say
 */
bool dns_confirmed_name(struct dns *dns, const struct weir_address *address, char name[WEIR_HOST_MAX_BYTES + 1]);

#endif
