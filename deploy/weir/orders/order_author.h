/* SPDX-License-Identifier: Apache-2.0 */
/* The author of a command: the name that is stored with it, and the command's own number. */
#ifndef DEPLOY_WEIR_ORDERS_ORDER_AUTHOR_H
#define DEPLOY_WEIR_ORDERS_ORDER_AUTHOR_H

#include "limiter/orders/order_command.h"

/**
 * Signs a command.
 *
 * @param by  NULL: the login name
 * @return WEIR_OK; WEIR_IO: no random bytes
 */
WEIR_MUST_USE enum weir_status order_author(const char *by, struct order_command *command, struct weir_error *error);

#endif
