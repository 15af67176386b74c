/* SPDX-License-Identifier: Apache-2.0 */
/* A command that is told of each change, as a target. */
#ifndef DEPLOY_GATEWAYS_TARGET_EXEC_TARGET_EXEC_H
#define DEPLOY_GATEWAYS_TARGET_EXEC_TARGET_EXEC_H

#include "deploy/gateways/target/target.h"

target_make target_exec_make;

#endif
