/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed set of networks, asked for every record of a zone that exempts some: is this address in one of them? */
#ifndef COLLECTOR_NETWORK_SET_H
#define COLLECTOR_NETWORK_SET_H

#include "common/bytes/address.h"

struct network_range4;
struct network_range6;

struct network_set {
	struct network_range4 *ranges4; /* sorted, none within another */
	struct network_range6 *ranges6;
	uint32_t count4, count6;
};

/** @param networks  borrowed until it returns; in any order, overlapping or not */
void network_set_init(struct network_set *set, const struct weir_network *networks, uint32_t count);
void network_set_deinit(struct network_set *set);

/** Whether some network contains it: as weir_network_contains says of each, in time logarithmic in their number. */
bool network_set_has(const struct network_set *set, const struct weir_address *address);

#endif
