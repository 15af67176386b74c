/* SPDX-License-Identifier: Apache-2.0 */
/* A set of nftables as a target. */
#ifndef DEPLOY_GATEWAYS_TARGET_NFT_TARGET_NFT_H
#define DEPLOY_GATEWAYS_TARGET_NFT_TARGET_NFT_H

#include "deploy/gateways/target/target.h"

target_make target_nft_make;

#endif
