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

#endif
