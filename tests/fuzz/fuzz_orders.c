/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an operator's command, and as the orders that a checkpoint holds:
 * they are refused, or they say the same when written again. The first byte says
 * which.
 */
#include "common/base/alloc.h"
#include "limiter/orders/orders.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct weir_span span_of_text(const struct weir_text *text)
{
	return (struct weir_span){.at = text->at, .length = (uint32_t)text->length};
}

/* A command that was read is done: nothing it says may break the table. */
static void command_orders(const struct order_command *command)
{
	struct orders orders;
	struct weir_error error;
	orders_init(&orders, 0);
	enum weir_status status = orders_apply(&orders, 1, command, 1000, &error);
	assert(status == WEIR_OK);
	(void)status;
	orders_effect(&orders, 1, order_key(command), 1000);
	orders_purge(&orders, command->until_ms + 1);
	assert(orders.count == 0 || command->until_ms == ORDER_NO_END);
	orders_deinit(&orders);
}

static void try_command(struct weir_span body)
{
	struct order_command command, again;
	struct weir_error error;
	struct weir_text text = {0};
	if (order_command_parse(body, &command, &error) != WEIR_OK)
		return;
	command_orders(&command);
	order_command_json(&text, &command);
	enum weir_status status = order_command_parse(span_of_text(&text), &again, &error);
	assert(status == WEIR_OK && again.kind == command.kind && again.until_ms == command.until_ms);
	assert(weir_span_equal(order_key(&again), order_key(&command)) && again.prefix == command.prefix);
	assert(again.thousandths == command.thousandths && strcmp(again.reason, command.reason) == 0);
	(void)status;
	weir_text_deinit(&text);
}

static void try_orders(struct weir_span bytes)
{
	struct orders orders, again;
	struct weir_text text = {0}, twice = {0};
	orders_init(&orders, 0);
	orders_init(&again, 0);
	if (orders_import(&orders, bytes)) {
		orders_export(&orders, &text);
		bool good = orders_import(&again, span_of_text(&text));
		orders_export(&again, &twice);
		assert(good && weir_span_equal(span_of_text(&text), span_of_text(&twice)));
		(void)good;
		for (uint32_t i = 0; i < orders.count; i++)
			assert(orders_touch(&orders, orders.list[i]->zone_id, orders.list[i]->key));
		orders_purge(&orders, INT64_C(1) << 40);
	}
	weir_text_deinit(&text);
	weir_text_deinit(&twice);
	orders_deinit(&orders);
	orders_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *bytes = weir_copy(data + 1, size - 1);
	struct weir_span span = {.at = bytes, .length = (uint32_t)(size - 1)};
	if (data[0] % 2 == 0)
		try_command(span);
	else
		try_orders(span);
	free(bytes);
	return 0;
}
