/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of nftables that `weir setup nft` has made on this machine. */
#ifndef DEPLOY_WEIR_SETUP_NFT_RULES_H
#define DEPLOY_WEIR_SETUP_NFT_RULES_H

#include <stdbool.h>

/** Whether there are some that do not spare loopback, as earlier versions made them. */
bool nft_rules_drop_loopback(void);

#endif
