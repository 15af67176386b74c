/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a server, a chat or a mailbox of blocks. */
#ifndef DEPLOY_GATEWAYS_TARGET_WEBHOOK_TARGET_WEBHOOK_H
#define DEPLOY_GATEWAYS_TARGET_WEBHOOK_TARGET_WEBHOOK_H

#include "deploy/gateways/target/target.h"

target_make target_webhook_make;

#endif
