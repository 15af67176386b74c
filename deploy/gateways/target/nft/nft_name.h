/* SPDX-License-Identifier: Apache-2.0 */
/* What a target's name says of sets of nftables: FAMILY/TABLE/SET[,SET…]. */
#ifndef DEPLOY_GATEWAYS_TARGET_NFT_NFT_NAME_H
#define DEPLOY_GATEWAYS_TARGET_NFT_NFT_NAME_H

#include <stddef.h>

enum { NFT_NAME_BYTES = 200 };

/**
 * Reads the sets' names, each as commands of nft take it: "FAMILY TABLE SET".
 *
 * @param most  of them
 * @return how many; 0: they are none, or too many
 */
size_t nft_names_read(const char *text, char (*names)[NFT_NAME_BYTES], size_t most);

#endif
