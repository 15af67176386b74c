/* SPDX-License-Identifier: Apache-2.0 */
/* Commands through the control socket: both ends. */
#ifndef DEPLOY_WEIR_ORDERS_ORDER_CONTROL_H
#define DEPLOY_WEIR_ORDERS_ORDER_CONTROL_H

#include "deploy/weir/orders/control.h"
#include "deploy/weir/orders/order_append.h"
#include "limiter/lane/rulebook.h"

/* What the running process appends with. Both are safe to use from any thread. */
struct order_control {
	struct weir_bus *bus;
	struct rulebook *book;
	const struct weir_log *log;
};

/** Of the running process. @param context  a struct order_control */
control_answer order_control_answer;

/** Of the command: as order_append(), by way of the process that holds the directory. */
WEIR_MUST_USE enum weir_status order_control_append(const char *directory, const struct order_command *command,
                                                    struct order_place *places, uint32_t *count,
                                                    struct weir_error *error);

#endif
