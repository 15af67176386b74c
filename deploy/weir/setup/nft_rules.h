/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of nftables that `weir setup nft` has made on this machine. */
#ifndef DEPLOY_WEIR_SETUP_NFT_RULES_H
#define DEPLOY_WEIR_SETUP_NFT_RULES_H

#include <stdbool.h>

/* What is wrong with those that earlier versions made. */
struct nft_rules_faults {
	bool drop_loopback; /* they do not spare it */
	bool pass_udp;      /* of a port they drop TCP alone: HTTP/3 goes on */
};

struct nft_rules_faults nft_rules_find_faults(void);

#endif
