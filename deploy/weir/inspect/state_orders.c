/* SPDX-License-Identifier: Apache-2.0 */
/* A prefix has as many values as were given: the last may be cut anywhere. */
#include "deploy/weir/inspect/state_orders.h"

#include "common/json/json_writer.h"
#include "limiter/lane/decision.h"

uint32_t state_order_terms(const struct order *order, struct state_order terms[STATE_ORDER_TERMS])
{
	uint32_t count = 0;
	if (order->block.holds)
		terms[count++] = (struct state_order){ORDER_BLOCK, order, &order->block};
	if (order->allow.holds)
		terms[count++] = (struct state_order){ORDER_ALLOW, order, &order->allow};
	if (order->rate.holds)
		terms[count++] = (struct state_order){ORDER_OVERRIDE, order, &order->rate};
	return count;
}

void state_order_key_json(struct weir_text *text, const struct weir_zone *zone, const struct order *order)
{
	struct weir_zone part = *zone;
	if (order->prefix)
		part.key_count = order_value_count(order->key);
	decision_key_json(text, &part, order->key);
}

void state_order_json(struct weir_text *text, const struct state_order *term, const struct weir_zone *zone,
                      uint32_t partition)
{
	char rate[12];
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "order", order_kind_name(term->kind));
	weir_json_write_words(&json, "zone", zone->name);
	state_order_key_json(weir_json_write_value(&json, "key"), zone, term->order);
	if (term->order->prefix)
		weir_json_write_bool(&json, "prefix", true);
	weir_json_write_uint(&json, "partition", partition);
	if (term->kind == ORDER_OVERRIDE) {
		order_rate_format(term->order->thousandths, rate);
		weir_json_write_words(&json, "rate", rate);
	}
	weir_json_write_int(&json, "at", term->term->at_ms);
	if (term->term->until_ms < ORDER_NO_END)
		weir_json_write_int(&json, "until", term->term->until_ms);
	else
		weir_json_write_null(&json, "until");
	weir_json_write_string(&json, "by", weir_span_of(term->term->by));
	weir_json_write_string(&json, "reason", weir_span_of(term->term->reason));
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}
