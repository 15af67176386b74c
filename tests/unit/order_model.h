/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The obvious orders: a list of every command so far for each key or prefix, and
 * what holds of them by the words of the specification. The part of the obvious shard
 * (shard_model.h) that operators command.
 */
#ifndef TESTS_UNIT_ORDER_MODEL_H
#define TESTS_UNIT_ORDER_MODEL_H

#include "limiter/orders/order_command.h"
#include "tests/unit/limit_model.h"

#include <assert.h>

enum { MODEL_ORDERS = 4096 };

/* What was commanded last for a key, or a prefix; an end of 0 holds for nothing. */
struct model_order {
	uint32_t zone_id;
	bool prefix;
	char key[64];
	uint32_t key_length;
	int64_t block_until, allow_until, rate_until;
	int64_t thousandths;
};

struct model_orders {
	struct model_order all[MODEL_ORDERS];
	uint32_t count;
};

struct model_effect {
	bool blocked, allowed;
	int64_t thousandths;
};

static inline struct model_order *model_order_of(struct model_orders *orders, uint32_t zone_id, bool prefix,
                                                 struct weir_span key)
{
	for (uint32_t i = 0; i < orders->count; i++) {
		struct model_order *order = &orders->all[i];
		if (order->zone_id == zone_id && order->prefix == prefix && order->key_length == key.length &&
		    memcmp(order->key, key.at, key.length) == 0)
			return order;
	}
	assert(orders->count < MODEL_ORDERS && key.length < sizeof orders->all[0].key);
	struct model_order *order = &orders->all[orders->count++];
	*order = (struct model_order){.zone_id = zone_id, .prefix = prefix, .key_length = key.length};
	memcpy(order->key, key.at, key.length);
	return order;
}

static inline bool model_order_matches(const struct model_order *order, uint32_t zone_id, struct weir_span key)
{
	if (order->zone_id != zone_id || order->key_length > key.length ||
	    (!order->prefix && order->key_length < key.length))
		return false;
	return memcmp(order->key, key.at, order->key_length) == 0;
}

/* A block or an allow is remembered until the clock is past its end and the lateness. */
static inline bool model_holds(int64_t until, int64_t t, int64_t clock_ms, int64_t lateness_ms)
{
	return t < until && (until >= ORDER_NO_END || lateness_ms < 0 || clock_ms <= until + lateness_ms);
}

static inline struct model_effect model_effect(const struct model_orders *orders, uint32_t zone_id,
                                               struct weir_span key, int64_t t, int64_t clock_ms, int64_t lateness_ms)
{
	struct model_effect effect = {.thousandths = 1000};
	int64_t best = -1;
	for (uint32_t i = 0; i < orders->count; i++) {
		const struct model_order *order = &orders->all[i];
		if (!model_order_matches(order, zone_id, key))
			continue;
		if (!order->prefix) {
			effect.blocked = model_holds(order->block_until, t, clock_ms, lateness_ms);
			effect.allowed = model_holds(order->allow_until, t, clock_ms, lateness_ms);
		}
		int64_t weight = order->prefix ? order->key_length : INT64_MAX;
		if ((clock_ms < order->rate_until || order->rate_until >= ORDER_NO_END) && weight > best) {
			effect.thousandths = order->thousandths;
			best = weight;
		}
	}
	return effect;
}

static inline int64_t model_times(int64_t number, int64_t thousandths, int64_t least)
{
	model_wide times = (model_wide)number * thousandths / 1000;
	if (times > WEIR_RATE_MAX)
		return WEIR_RATE_MAX;
	return times < least ? least : (int64_t)times;
}

/* A limit as an override has it. */
static inline struct weir_limit model_scaled(const struct weir_limit *limit, int64_t thousandths)
{
	struct weir_limit scaled = *limit;
	if (model_kind(limit) == MODEL_UNIFORM)
		scaled.window_ms = (int64_t)model_ceil_div((model_wide)limit->window_ms * 1000, thousandths);
	else
		scaled.rate = model_times(limit->rate, thousandths, 1);
	if (model_kind(limit) == MODEL_TOKEN_BUCKET)
		scaled.burst = model_times(limit->burst, thousandths, 1);
	else if (model_kind(limit) == MODEL_GCRA)
		scaled.burst = model_times(limit->burst, thousandths, 0);
	return scaled;
}

#endif
