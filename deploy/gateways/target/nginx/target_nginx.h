/* SPDX-License-Identifier: Apache-2.0 */
/* A file that nginx includes, as a target: a map by key, or a geo by network. */
#ifndef DEPLOY_GATEWAYS_TARGET_NGINX_TARGET_NGINX_H
#define DEPLOY_GATEWAYS_TARGET_NGINX_TARGET_NGINX_H

#include "deploy/gateways/target/target.h"

target_make target_nginx_map_make, target_nginx_geo_make;

#endif
