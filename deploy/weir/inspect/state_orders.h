/* SPDX-License-Identifier: Apache-2.0 */
/* Operators' orders as JSON lines. */
#ifndef DEPLOY_WEIR_INSPECT_STATE_ORDERS_H
#define DEPLOY_WEIR_INSPECT_STATE_ORDERS_H

#include "limiter/orders/orders.h"

enum { STATE_ORDER_TERMS = 3 };

/* One command that holds, as the lines have it. */
struct state_order {
	enum order_kind kind; /* block, allow, override */
	const struct order *order;
	const struct order_term *term;
};

/** What holds of an order, at most three. @return how many */
uint32_t state_order_terms(const struct order *order, struct state_order terms[STATE_ORDER_TERMS]);

/**
 * Appends {"order":"block","zone":…,"key":[…],"partition":…,"at":…,"until":…,"by":…,"reason":…} and a newline; until is
 * null where there is no end.
 */
void state_order_json(struct weir_text *text, const struct state_order *term, const struct weir_zone *zone,
                      uint32_t partition);

/** Appends a joined key, or a prefix of one, as a JSON array of its values. */
void state_order_key_json(struct weir_text *text, const struct weir_zone *zone, const struct order *order);

#endif
