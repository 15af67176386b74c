/* SPDX-License-Identifier: Apache-2.0 */
/* A Redis server's keys, one a blocked bucket, as a target. */
#ifndef DEPLOY_GATEWAYS_TARGET_REDIS_TARGET_REDIS_H
#define DEPLOY_GATEWAYS_TARGET_REDIS_TARGET_REDIS_H

#include "deploy/gateways/target/target.h"

target_make target_redis_make;

#endif
