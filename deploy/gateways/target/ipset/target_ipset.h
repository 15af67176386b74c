/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps sets of ipset, which rules of iptables ask. */
#ifndef DEPLOY_GATEWAYS_TARGET_IPSET_TARGET_IPSET_H
#define DEPLOY_GATEWAYS_TARGET_IPSET_TARGET_IPSET_H

#include "deploy/gateways/target/target.h"

target_make target_ipset_make;

#endif
