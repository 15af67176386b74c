/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of networks, asked for every record of a zone that exempts some: is this address in one of them?
 *
 * Ten million IPv4 networks take 128 MiB, ten million of IPv6 384 MiB.
 */
#ifndef WEIR_NETWORK_SET_H
#define WEIR_NETWORK_SET_H

#include "common/bytes/address.h"

struct network_slot6;

/* Zeroed: the empty set. */
struct weir_network_set {
	uint64_t *slots4;
	struct network_slot6 *slots6;
	uint32_t slot_count4, slot_count6; /* powers of two, or 0 */
	uint32_t count4, count6;
	uint64_t prefixes4;    /* a bit for each length of prefix that some network has */
	uint64_t prefixes6[3]; /* 0..128 */
};

/** Adds a network, if it is not there yet. */
void weir_network_set_add(struct weir_network_set *set, const struct weir_network *network);
/** The set of `count` networks, in any order, overlapping or not. @param networks  borrowed until it returns */
void weir_network_set_init(struct weir_network_set *set, const struct weir_network *networks, uint32_t count);
void weir_network_set_deinit(struct weir_network_set *set);

/**
 * Whether some network contains it: as weir_network_contains says of each. It takes as many steps as the networks have
 * different lengths of prefix, however many networks there are.
 */
bool weir_network_set_has(const struct weir_network_set *set, const struct weir_address *address);

#endif
