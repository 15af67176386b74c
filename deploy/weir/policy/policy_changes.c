/* SPDX-License-Identifier: Apache-2.0 */
/* Zones are compared by their canonical text, in which every default is filled in: what differs there differs. */
#include "deploy/weir/policy/policy_changes.h"

#include "common/json/json.h"

#include <stdlib.h>
#include <string.h>

void policy_words_zones(struct weir_text *text, const struct weir_policy *policy)
{
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		char *sentence = weir_zone_describe(&policy->zones[i]);
		weir_text_printf(text, "%u  ", policy->zones[i].id);
		weir_text_puts(text, sentence);
		weir_text_puts(text, "\n");
		free(sentence);
	}
}

/* A policy's zones as JSON, by id. */
static json_t *zones_of(const struct weir_policy *policy)
{
	json_t *root = policy != NULL ? json_loads(policy->text, 0, NULL) : NULL;
	json_t *zones = json_incref(json_object_get(root, "zones"));
	json_decref(root);
	return zones;
}

static const json_t *find_zone(const json_t *zones, json_int_t id)
{
	for (size_t i = 0; i < json_array_size(zones); i++)
		if (json_integer_value(json_object_get(json_array_get(zones, i), "id")) == id)
			return json_array_get(zones, i);
	return NULL;
}

static void put_change(struct weir_text *text, size_t start, const json_t *zone, const char *words)
{
	weir_text_puts(text, text->length > start ? ", " : "");
	weir_text_puts(text, json_string_value(json_object_get(zone, "name")));
	weir_text_puts(text, words);
}

void policy_words_changes(struct weir_text *text, const struct weir_policy *before, const struct weir_policy *after)
{
	json_t *old = zones_of(before), *new = zones_of(after);
	size_t start = text->length;
	for (size_t i = 0; i < json_array_size(new); i++) {
		const json_t *zone = json_array_get(new, i);
		const json_t *was = find_zone(old, json_integer_value(json_object_get(zone, "id")));
		if (was == NULL)
			put_change(text, start, zone, " new");
		else if (!json_equal(was, zone))
			put_change(text, start, zone, " changed");
	}
	for (size_t i = 0; i < json_array_size(old); i++) {
		const json_t *zone = json_array_get(old, i);
		if (find_zone(new, json_integer_value(json_object_get(zone, "id"))) == NULL)
			put_change(text, start, zone, " removed");
	}
	if (text->length == start)
		weir_text_puts(text, "no zone differs");
	json_decref(old);
	json_decref(new);
}
