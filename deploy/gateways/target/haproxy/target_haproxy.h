/* SPDX-License-Identifier: Apache-2.0 */
/* HAProxy's maps, through its socket, as a target. */
#ifndef DEPLOY_GATEWAYS_TARGET_HAPROXY_TARGET_HAPROXY_H
#define DEPLOY_GATEWAYS_TARGET_HAPROXY_TARGET_HAPROXY_H

#include "deploy/gateways/target/target.h"

target_make target_haproxy_make;

#endif
