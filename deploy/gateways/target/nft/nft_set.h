/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of an nftables set, with timeouts by which the kernel ends them.
 *
 * A key is an element if it is an address or a network of the set's family; a
 * network needs a set of intervals.
 */
#ifndef DEPLOY_GATEWAYS_TARGET_NFT_NFT_SET_H
#define DEPLOY_GATEWAYS_TARGET_NFT_NFT_SET_H

#include "common/base/text.h"
#include "common/bytes/address.h"

struct nft_set {
	bool v6;       /* else IPv4 */
	bool interval; /* takes networks */
	bool timeout;  /* its elements may end */
	bool ends;     /* what is added without a timeout gets the set's own */
	bool merges;   /* neighbours become one element, whatever their timeouts */
	uint32_t most; /* its size: so many elements and no more, unless it takes networks, which count as more; 0: any */
};

/** Reads `nft list set`. @return false: it tells of no set of addresses */
bool nft_set_read(struct weir_span listing, struct nft_set *set);

/** Calls with each element of such a listing. */
void nft_set_elements(struct weir_span listing, void (*seen)(void *context, struct weir_span element), void *context);

enum { NFT_SET_ELEMENT_BYTES = WEIR_ADDRESS_TEXT_BYTES + 4 };

/** A key as an element's text; false: it cannot be one of this set. @param any_size  as network_key() */
bool nft_set_element(const struct nft_set *set, struct weir_span key, bool any_size, char text[NFT_SET_ELEMENT_BYTES]);

/** Appends " timeout 1234ms" as of now; for what does not end nothing, or a hundred years where the set ends it. */
void nft_set_timeout(const struct nft_set *set, struct weir_text *text, int64_t until_ms, int64_t now_ms);

#endif
