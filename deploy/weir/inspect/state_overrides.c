/* SPDX-License-Identifier: Apache-2.0 */
/* A prefix has as many values as were given: the last may be cut anywhere. */
#include "deploy/weir/inspect/state_overrides.h"

#include "common/json/json_writer.h"
#include "limiter/lane/decision.h"

uint32_t state_override_settings(const struct override *override,
                                 struct state_override settings[STATE_OVERRIDE_SETTINGS])
{
	uint32_t count = 0;
	if (override->block.active)
		settings[count++] = (struct state_override){OVERRIDE_BLOCK, override, &override->block};
	if (override->allow.active)
		settings[count++] = (struct state_override){OVERRIDE_ALLOW, override, &override->allow};
	if (override->rate.active)
		settings[count++] = (struct state_override){OVERRIDE_RATE, override, &override->rate};
	return count;
}

void state_override_key_json(struct weir_text *text, const struct weir_zone *zone, const struct override *override)
{
	struct weir_zone part = *zone;
	if (override->scope == OVERRIDE_OF_PREFIX)
		part.key_count = override_value_count(override->key);
	decision_key_json(text, &part, override->key);
}

void state_override_json(struct weir_text *text, const struct state_override *entry, const struct weir_zone *zone,
                         uint32_t partition)
{
	char rate[12];
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "order", override_kind_name(entry->kind));
	weir_json_write_words(&json, "zone", zone->name);
	state_override_key_json(weir_json_write_value(&json, "key"), zone, entry->override);
	if (entry->override->scope == OVERRIDE_OF_PREFIX)
		weir_json_write_bool(&json, "prefix", true);
	if (entry->override->scope == OVERRIDE_OF_NETWORK)
		weir_json_write_bool(&json, "network", true);
	weir_json_write_uint(&json, "partition", partition);
	if (entry->kind == OVERRIDE_RATE) {
		override_rate_format(entry->override->thousandths, rate);
		weir_json_write_words(&json, "rate", rate);
	}
	weir_json_write_int(&json, "at", entry->setting->at_ms);
	if (entry->setting->until_ms < OVERRIDE_NO_END)
		weir_json_write_int(&json, "until", entry->setting->until_ms);
	else
		weir_json_write_null(&json, "until");
	weir_json_write_string(&json, "by", weir_span_of(entry->setting->by));
	weir_json_write_string(&json, "reason", weir_span_of(entry->setting->reason));
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}
