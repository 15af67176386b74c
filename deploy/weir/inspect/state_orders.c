/* A prefix has as many values as were given: the last may be cut anywhere. */
#include "deploy/weir/inspect/state_orders.h"

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
	weir_text_printf(text, "{\"order\":\"%s\",\"zone\":\"%s\",\"key\":", order_kind_name(term->kind), zone->name);
	state_order_key_json(text, zone, term->order);
	if (term->order->prefix)
		weir_text_puts(text, ",\"prefix\":true");
	weir_text_printf(text, ",\"partition\":%u", partition);
	if (term->kind == ORDER_OVERRIDE) {
		order_rate_format(term->order->thousandths, rate);
		weir_text_printf(text, ",\"rate\":\"%s\"", rate);
	}
	weir_text_printf(text, ",\"at\":%lld,\"until\":", (long long)term->term->at_ms);
	if (term->term->until_ms < ORDER_NO_END)
		weir_text_int(text, term->term->until_ms);
	else
		weir_text_puts(text, "null");
	weir_text_puts(text, ",\"by\":");
	weir_text_json(text, weir_span_of(term->term->by));
	weir_text_puts(text, ",\"reason\":");
	weir_text_json(text, weir_span_of(term->term->reason));
	weir_text_puts(text, "}\n");
}
