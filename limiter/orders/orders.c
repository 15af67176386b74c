/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list with a hash index over it. Orders are few and change seldom, while
 * every key of every frame asks whether there is one for it: so looking up is
 * one probe and one more for each length of prefix that there is, and changing
 * may cost a walk over all.
 */
#include "limiter/orders/orders.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <stdlib.h>

enum { INDEX_LEAST = 16, RATE_ONE = 1000 };

static uint64_t hash_of(uint32_t zone_id, bool prefix, struct weir_span key)
{
	uint64_t place = ((uint64_t)zone_id << 1 | prefix) * UINT64_C(0x9e3779b97f4a7c15);
	return weir_hash64(key.at, key.length) ^ place;
}

static bool is_of(const struct order *order, uint32_t zone_id, bool prefix, struct weir_span key)
{
	return order->zone_id == zone_id && order->prefix == prefix && weir_span_equal(order->key, key);
}

static struct order *find(const struct orders *orders, uint32_t zone_id, bool prefix, struct weir_span key)
{
	if (orders->count == 0)
		return NULL;
	uint64_t hash = hash_of(zone_id, prefix, key);
	for (uint32_t at = (uint32_t)hash & (orders->index_room - 1); orders->index[at] != 0;
	     at = (at + 1) & (orders->index_room - 1)) {
		struct order *order = orders->list[orders->index[at] - 1];
		if (order->hash == hash && is_of(order, zone_id, prefix, key))
			return order;
	}
	return NULL;
}

/* The longest prefix of a key from some length on. @param from  place in prefix_lengths; gives that behind the found */
static struct order *find_prefix(const struct orders *orders, uint32_t zone_id, struct weir_span key, uint32_t *from)
{
	while (*from < orders->prefix_length_count) {
		uint16_t length = orders->prefix_lengths[(*from)++];
		if (length > key.length)
			continue;
		struct order *order = find(orders, zone_id, true, (struct weir_span){.at = key.at, .length = length});
		if (order != NULL)
			return order;
	}
	return NULL;
}

bool orders_touch(const struct orders *orders, uint32_t zone_id, struct weir_span key)
{
	uint32_t from = 0;
	return find(orders, zone_id, false, key) != NULL || find_prefix(orders, zone_id, key, &from) != NULL;
}

struct order_effect orders_effect(const struct orders *orders, uint32_t zone_id, struct weir_span key, int64_t t)
{
	struct order_effect effect = {.thousandths = RATE_ONE};
	uint32_t from = 0;
	const struct order *order = find(orders, zone_id, false, key);
	if (order != NULL) {
		effect.blocked = order->block.holds && t < order->block.until_ms;
		effect.allowed = order->allow.holds && t < order->allow.until_ms;
	}
	if (order == NULL || !order->rate.holds)
		order = find_prefix(orders, zone_id, key, &from);
	if (order != NULL)
		effect.thousandths = order->thousandths;
	return effect;
}

const struct order_term *orders_block_after(const struct orders *orders, uint32_t zone_id, struct weir_span key,
                                            int64_t at_ms)
{
	const struct order *order = find(orders, zone_id, false, key);
	return order != NULL && order->block.holds && order->block.until_ms > at_ms ? &order->block : NULL;
}

/* ---- changing ---- */

static size_t term_bytes(const struct order_term *term)
{
	return term->holds ? strlen(term->by) + strlen(term->reason) + 2 : 0;
}

static void clear_term(struct orders *orders, struct order_term *term)
{
	orders->bytes -= term_bytes(term);
	free(term->by);
	free(term->reason);
	*term = (struct order_term){0};
}

void orders_set_term(struct orders *orders, struct order_term *term, int64_t at_ms, int64_t until_ms, uint64_t offset,
                     const char *by, const char *reason)
{
	clear_term(orders, term);
	*term = (struct order_term){.holds = true,
	                            .at_ms = at_ms,
	                            .until_ms = until_ms,
	                            .offset = offset,
	                            .by = weir_copy(by, strlen(by)),
	                            .reason = weir_copy(reason, strlen(reason))};
	orders->bytes += term_bytes(term);
}

static void free_order(struct orders *orders, struct order *order)
{
	clear_term(orders, &order->block);
	clear_term(orders, &order->allow);
	clear_term(orders, &order->rate);
	orders->bytes -= sizeof *order + order->key.length;
	orders->prefix_count -= order->prefix;
	free((char *)order->key.at);
	free(order);
}

void orders_init(struct orders *orders, int64_t lateness_ms)
{
	*orders = (struct orders){.lateness_ms = lateness_ms, .next_end_ms = INT64_MAX};
}

void orders_deinit(struct orders *orders)
{
	for (uint32_t i = 0; i < orders->count; i++)
		free_order(orders, orders->list[i]);
	free(orders->list);
	free(orders->index);
	free(orders->prefix_lengths);
	orders_init(orders, orders->lateness_ms);
}

static void index_add(struct orders *orders, uint32_t place)
{
	uint32_t at = (uint32_t)orders->list[place]->hash & (orders->index_room - 1);
	while (orders->index[at] != 0)
		at = (at + 1) & (orders->index_room - 1);
	orders->index[at] = place + 1;
}

static void rebuild_index(struct orders *orders)
{
	uint32_t room = INDEX_LEAST;
	while (room < orders->room * 2)
		room *= 2;
	free(orders->index);
	orders->index = weir_alloc(room, sizeof *orders->index);
	orders->index_room = room;
	for (uint32_t i = 0; i < orders->count; i++)
		index_add(orders, i);
}

struct order *orders_make(struct orders *orders, uint32_t zone_id, bool prefix, struct weir_span key)
{
	struct order *order = find(orders, zone_id, prefix, key);
	if (order != NULL)
		return order;
	order = weir_alloc(1, sizeof *order);
	*order = (struct order){.zone_id = zone_id,
	                        .prefix = prefix,
	                        .key = {.at = weir_copy(key.at, key.length), .length = key.length},
	                        .hash = hash_of(zone_id, prefix, key),
	                        .thousandths = RATE_ONE};
	orders->bytes += sizeof *order + key.length;
	orders->prefix_count += prefix;
	if (orders->count == orders->room) {
		orders->room = orders->room == 0 ? INDEX_LEAST : orders->room * 2;
		orders->list = weir_realloc(orders->list, orders->room, sizeof(struct order *));
		rebuild_index(orders);
	}
	orders->list[orders->count++] = order;
	index_add(orders, orders->count - 1);
	return order;
}

static int longer_first(const void *a, const void *b)
{
	const uint16_t *left = a, *right = b;
	return (*left < *right) - (*left > *right);
}

static void note_prefixes(struct orders *orders)
{
	uint32_t count = 0, each = 0;
	orders->prefix_lengths = weir_realloc(orders->prefix_lengths, orders->prefix_count, sizeof *orders->prefix_lengths);
	for (uint32_t i = 0; i < orders->count; i++)
		if (orders->list[i]->prefix)
			orders->prefix_lengths[count++] = (uint16_t)orders->list[i]->key.length;
	if (count > 0)
		qsort(orders->prefix_lengths, count, sizeof *orders->prefix_lengths, longer_first);
	for (uint32_t i = 0; i < count; i++)
		if (i == 0 || orders->prefix_lengths[i] != orders->prefix_lengths[each - 1])
			orders->prefix_lengths[each++] = orders->prefix_lengths[i];
	orders->prefix_length_count = each;
}

/* The first clock at which a block or an allow is forgotten, INT64_MAX: never. */
static int64_t forgotten_at(const struct orders *orders, const struct order_term *term)
{
	if (!term->holds || term->until_ms >= ORDER_NO_END || orders->lateness_ms < 0)
		return INT64_MAX;
	return term->until_ms + orders->lateness_ms + 1;
}

static int64_t ended_at(const struct order_term *term)
{
	return term->holds && term->until_ms < ORDER_NO_END ? term->until_ms : INT64_MAX;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* When something of an order ends first. */
static int64_t next_end(const struct orders *orders, const struct order *order)
{
	int64_t verdict = earlier(forgotten_at(orders, &order->block), forgotten_at(orders, &order->allow));
	return earlier(verdict, ended_at(&order->rate));
}

void orders_settle(struct orders *orders)
{
	orders->next_end_ms = INT64_MAX;
	for (uint32_t i = 0; i < orders->count; i++)
		orders->next_end_ms = earlier(orders->next_end_ms, next_end(orders, orders->list[i]));
	note_prefixes(orders);
}

/* Takes out the orders of which nothing holds. */
static void drop_empty(struct orders *orders)
{
	uint32_t kept = 0, before = orders->count;
	for (uint32_t i = 0; i < before; i++) {
		struct order *order = orders->list[i];
		if (order->block.holds || order->allow.holds || order->rate.holds)
			orders->list[kept++] = order;
		else
			free_order(orders, order);
	}
	orders->count = kept;
	if (kept < before)
		rebuild_index(orders);
	orders_settle(orders);
}

void orders_purge(struct orders *orders, int64_t clock_ms)
{
	if (orders->count == 0 || clock_ms < orders->next_end_ms)
		return;
	for (uint32_t i = 0; i < orders->count; i++) {
		struct order *order = orders->list[i];
		if (clock_ms >= forgotten_at(orders, &order->block))
			clear_term(orders, &order->block);
		if (clock_ms >= forgotten_at(orders, &order->allow))
			clear_term(orders, &order->allow);
		if (clock_ms >= ended_at(&order->rate))
			clear_term(orders, &order->rate);
	}
	drop_empty(orders);
}

void orders_keep_zones(struct orders *orders, bool (*in_force)(const void *context, uint32_t zone_id),
                       const void *context)
{
	if (orders->count == 0)
		return;
	for (uint32_t i = 0; i < orders->count; i++) {
		struct order *order = orders->list[i];
		if (in_force(context, order->zone_id))
			continue;
		clear_term(orders, &order->block);
		clear_term(orders, &order->allow);
		clear_term(orders, &order->rate);
	}
	drop_empty(orders);
}

/* Whether one more order, or longer words, would be too much. */
static bool is_full(const struct orders *orders, const struct order *known, const struct order_command *command)
{
	size_t more = strlen(command->by) + strlen(command->reason) + 2;
	if (known == NULL)
		more += sizeof *known + command->key_length;
	return (known == NULL && orders->count >= ORDERS_MAX) || orders->bytes + more > ORDERS_BYTES_MAX;
}

static bool ends_something(const struct order_command *command, int64_t at_ms)
{
	switch (command->kind) {
	case ORDER_LIFT: return true;
	case ORDER_ALLOW: return command->until_ms <= at_ms;
	case ORDER_OVERRIDE: return command->thousandths == RATE_ONE;
	default: return false;
	}
}

enum weir_status orders_apply(struct orders *orders, uint32_t zone_id, const struct order_command *command,
                              int64_t at_ms, struct weir_error *error)
{
	struct weir_span key = order_key(command);
	struct order *order = find(orders, zone_id, command->prefix, key);
	bool ends = ends_something(command, at_ms);
	if (!ends && is_full(orders, order, command))
		return weir_fail(error, WEIR_FULL,
		                 "this partition holds %u overrides (%zu bytes); the limit is %d (%d bytes): lift some",
		                 orders->count, orders->bytes, ORDERS_MAX, ORDERS_BYTES_MAX);
	if (ends && order == NULL)
		return WEIR_OK;
	bool is_new = order == NULL;
	if (is_new)
		order = orders_make(orders, zone_id, command->prefix, key);
	struct order_term *term = command->kind == ORDER_OVERRIDE ? &order->rate
	                          : command->kind == ORDER_ALLOW  ? &order->allow
	                                                          : &order->block;
	clear_term(orders, term);
	if (command->kind == ORDER_BLOCK)
		clear_term(orders, &order->allow);
	if (command->kind == ORDER_ALLOW && !ends)
		clear_term(orders, &order->block);
	if (command->kind == ORDER_OVERRIDE)
		order->thousandths = command->thousandths;
	if (ends) {
		drop_empty(orders);
		return WEIR_OK;
	}
	orders_set_term(orders, term, at_ms, command->until_ms, command->offset, command->by, command->reason);
	/* What ended sooner and was replaced costs a walk too many later, not one now. */
	orders->next_end_ms = earlier(orders->next_end_ms, next_end(orders, order));
	if (is_new && command->prefix)
		note_prefixes(orders);
	return WEIR_OK;
}
