/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as the addresses and networks that a gateway's list holds. */
#ifndef DEPLOY_GATEWAYS_TARGET_NETWORK_KEY_H
#define DEPLOY_GATEWAYS_TARGET_NETWORK_KEY_H

#include "common/bytes/address.h"

enum { NETWORK_KEY_LEAST4 = 16, NETWORK_KEY_LEAST6 = 32 };

/**
 * Whether a key is an address, or a network of at most a /16, a /32 of IPv6: no limit is about more, and who writes the
 * field that is counted by, as X-Forwarded-For, could have everybody blocked by 0.0.0.0/0.
 *
 * @param any_size  an operator named it, who may block more than that
 */
bool network_key(struct weir_span key, bool any_size, struct weir_network *network);

/**
 * Whether a network of IPv6 is around ::ffff:0:0/96, as ::/64 is, in which ::1 is counted by prefix6 64. No address of
 * IPv4 is in it; but a gateway that looks for those as ::ffff:a.b.c.d finds them all there.
 */
bool network_key_has_mapped(const struct weir_network *network);

#endif
