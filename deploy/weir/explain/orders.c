/* SPDX-License-Identifier: Apache-2.0 */
/* What a command did may be published nowhere, as an allow that ends no block is: so the limiter's own state is asked. */
#include "deploy/weir/explain/orders.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "deploy/weir/inspect/state_overrides.h"

#include <stdlib.h>

static struct weir_span key_of(const struct question *question)
{
	return (struct weir_span){.at = question->key.at, .length = (uint32_t)question->key.length};
}

static bool is_network_block(const struct override *override)
{
	return override->scope == OVERRIDE_OF_NETWORK && override->block.active;
}

/* A question about the decision by which a network is blocked: the partition of its text has published that. */
static void ask_about(struct orders *orders, size_t place, const struct override *network)
{
	struct question *own = &orders->questions[place], *other = &orders->questions[orders->count];
	*other = (struct question){.zone_id = own->zone_id, .key_known = true};
	weir_text_append(&other->key, network->key.at, network->key.length);
	weir_text_append(&other->order, own->order.at, own->order.length);
	other->partition = weir_partition(weir_slot(network->key), orders->read.partitions);
	own->network = orders->count++;
}

static void take(struct orders *orders, size_t place, const struct overrides *overrides)
{
	struct question *question = &orders->questions[place];
	const struct weir_zone *zone = weir_policy_zone(orders->policy, question->zone_id);
	struct state_override settings[STATE_OVERRIDE_SETTINGS];
	struct overrides_walk walk = {0};
	const struct override *first =
							  overrides_next(overrides, question->zone_id, key_of(question), orders->now_ms, &walk),
						  *wider = first;
	if (first == NULL)
		return;
	(void)state_override_settings(first, settings); /* a block or an allow stands before a rate */
	state_override_json(&question->order, &settings[0], zone, question->partition);
	question->order.length--; /* the newline */
	question->shadow = zone->mode == WEIR_SHADOW;
	if (question->shadow)
		return;
	if (is_network_block(first)) {
		ask_about(orders, place, first);
		return;
	}
	while (first->allow.active && wider != NULL && !is_network_block(wider))
		wider = overrides_next(overrides, question->zone_id, key_of(question), orders->now_ms, &walk);
	if (first->allow.active && wider != NULL)
		weir_text_append(&question->held, wider->key.at, wider->key.length);
}

static bool is_asked(const struct orders *orders, size_t place)
{
	return !orders->questions[place].by_id && orders->questions[place].partition == orders->partition;
}

static void take_all(void *context, const struct overrides *overrides)
{
	struct orders *orders = context;
	for (size_t i = 0; i < orders->asked; i++)
		if (is_asked(orders, i))
			take(orders, i, overrides);
}

static void find_in_partition(struct orders *orders)
{
	struct weir_error error;
	if (overrides_read(&orders->read, (uint32_t)orders->partition, &error) == WEIR_OK)
		return;
	for (size_t i = 0; i < orders->asked; i++)
		if (is_asked(orders, i))
			weir_text_printf(&orders->questions[i].unknown,
			                 "What operators' commands hold for it now is not known: %s.", error.text);
}

void orders_find(struct orders *orders)
{
	bool *wanted = weir_alloc(orders->read.partitions, sizeof *wanted);
	orders->asked = orders->count;
	orders->read.overrides = take_all;
	orders->read.context = orders;
	for (size_t i = 0; i < orders->asked; i++)
		wanted[orders->questions[i].partition] |= !orders->questions[i].by_id;
	for (orders->partition = 0; orders->partition < orders->read.partitions; orders->partition++)
		if (wanted[orders->partition])
			find_in_partition(orders);
	free(wanted);
}
