/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an operator's command, and as the overrides that a checkpoint holds:
 * they are refused, or they say the same when written again. The first byte says
 * which.
 */
#include "common/base/alloc.h"
#include "limiter/overrides/overrides.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct weir_span span_of_text(const struct weir_text *text)
{
	return (struct weir_span){.at = text->at, .length = (uint32_t)text->length};
}

/* A command that was read is done: nothing it says may break the table. */
static void command_overrides(const struct override_command *command)
{
	struct overrides overrides;
	struct weir_error error;
	overrides_init(&overrides, 0, 0, 1);
	enum weir_status status = overrides_apply(&overrides, 1, command, 1000, &error);
	assert(status == WEIR_OK);
	(void)status;
	overrides_effect(&overrides, 1, override_key(command), 1000, 1000);
	overrides_advance(&overrides, command->until_ms + 1);
	assert(overrides.count == 0 || command->until_ms == OVERRIDE_NO_END);
	overrides_deinit(&overrides);
}

static void try_command(struct weir_span body)
{
	struct override_command command, again;
	struct weir_error error;
	struct weir_text text = {0};
	if (override_command_parse(body, &command, &error) != WEIR_OK)
		return;
	command_overrides(&command);
	override_command_json(&text, &command);
	enum weir_status status = override_command_parse(span_of_text(&text), &again, &error);
	assert(status == WEIR_OK && again.kind == command.kind && again.until_ms == command.until_ms);
	assert(weir_span_equal(override_key(&again), override_key(&command)) && again.scope == command.scope);
	assert(again.thousandths == command.thousandths && strcmp(again.reason, command.reason) == 0);
	(void)status;
	weir_text_deinit(&text);
}

static void try_overrides(struct weir_span bytes)
{
	struct overrides overrides, again;
	struct weir_text text = {0}, twice = {0};
	overrides_init(&overrides, 0, 0, 1);
	overrides_init(&again, 0, 0, 1);
	if (overrides_import(&overrides, bytes)) {
		overrides_export(&overrides, &text);
		bool good = overrides_import(&again, span_of_text(&text));
		overrides_export(&again, &twice);
		assert(good && weir_span_equal(span_of_text(&text), span_of_text(&twice)));
		(void)good;
		for (uint32_t i = 0; i < overrides.count; i++)
			assert(overrides_touch(&overrides, overrides.list[i]->zone_id, overrides.list[i]->key));
		overrides_advance(&overrides, INT64_C(1) << 40);
	}
	weir_text_deinit(&text);
	weir_text_deinit(&twice);
	overrides_deinit(&overrides);
	overrides_deinit(&again);
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
		try_overrides(span);
	free(bytes);
	return 0;
}
