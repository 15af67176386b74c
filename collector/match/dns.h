/* SPDX-License-Identifier: Apache-2.0 */
/* The questions of verified_hosts.h to a name server. */
#ifndef COLLECTOR_DNS_H
#define COLLECTOR_DNS_H

#include "common/bytes/address.h"
#include "common/policy/policy.h"

enum { DNS_MOST_MS = 5000 };

struct dns; /* belongs to one thread, which waits for the answers */

/**
 * @param resolver  "127.0.0.1:53", IPv4; NULL: the system's
 * @return WEIR_INVALID: it is no such address; WEIR_IO
 */
WEIR_MUST_USE enum weir_status dns_new(const char *resolver, int64_t patience_ms, struct dns **dns,
                                       struct weir_error *error);
void dns_free(struct dns *dns);

enum dns_outcome {
	DNS_SAID,
	DNS_FAILED, /* the server says that it cannot tell */
	DNS_SILENT, /* it did not answer */
};

/* Whether a name is looked at. A question more is asked only for one that is. */
typedef bool dns_wanted(void *context, const char *name);

/**
 * Finds a name of an address that leads back to it. It takes DNS_MOST_MS at most, or two answers where these are slow.
 *
 * @param name  set to it, without a dot at the end; "": it has none that is wanted
 */
enum dns_outcome dns_confirmed_name(struct dns *dns, const struct weir_address *address, dns_wanted *wanted,
                                    void *context, char name[WEIR_HOST_MAX_BYTES + 1]);

/** Asks for what every server knows, the root's own: whether it is there at all. */
enum dns_outcome dns_probe(struct dns *dns);

#endif
