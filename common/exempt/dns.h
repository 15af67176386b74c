/* SPDX-License-Identifier: Apache-2.0 */
/* The questions of verified_hosts.h to a name server. */
#ifndef WEIR_DNS_H
#define WEIR_DNS_H

#include "common/bytes/address.h"
#include "common/policy/policy.h"

enum { WEIR_DNS_MOST_MS = 5000 };

struct weir_dns; /* belongs to one thread, which waits for the answers */

/**
 * @param resolver  "127.0.0.1:53", IPv4; NULL: the system's
 * @return WEIR_INVALID: it is no such address; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_dns_new(const char *resolver, int64_t patience_ms, struct weir_dns **dns,
                                            struct weir_error *error);
void weir_dns_free(struct weir_dns *dns);

enum weir_dns_outcome {
	WEIR_DNS_SAID,
	WEIR_DNS_FAILED, /* the server says that it cannot tell */
	WEIR_DNS_SILENT, /* it did not answer */
};

/* Whether a name is looked at. A question more is asked only for one that is. */
typedef bool weir_dns_wanted(void *context, const char *name);

/**
 * Finds a name of an address that leads back to it. It takes WEIR_DNS_MOST_MS at most, or two answers where these are slow.
 *
 * @param name  set to it, without a dot at the end; "": it has none that is wanted
 */
enum weir_dns_outcome weir_dns_confirmed_name(struct weir_dns *dns, const struct weir_address *address,
                                              weir_dns_wanted *wanted, void *context,
                                              char name[WEIR_HOST_MAX_BYTES + 1]);

/** Asks for what every server knows, the root's own: whether it is there at all. */
enum weir_dns_outcome weir_dns_probe(struct weir_dns *dns);

#endif
