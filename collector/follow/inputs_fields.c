/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the zones of a policy that the sources of one collector can never match, and what they ask to keep in vain. Formats are created as readers would
 * create them, and asked what they lack.
 */
#include "collector/follow/inputs.h"

#include "collector/source/kinds/source_kinds.h"
#include "common/base/alloc.h"

#include <stdlib.h>

/* The first field of the zone's key or match that a format lacks, or NULL. */
static const char *lacking(const struct format *format, const struct weir_field_table *fields,
                           const struct weir_zone *zone)
{
	for (uint32_t i = 0; i < zone->key_count; i++)
		if (format_lacks(format, (uint32_t)weir_field_table_find(fields, weir_span_of(zone->key[i].field))))
			return zone->key[i].field;
	for (uint32_t i = 0; i < zone->match.field_count; i++)
		if (format_lacks(format, (uint32_t)weir_field_table_find(fields, weir_span_of(zone->match.fields[i].field))))
			return zone->match.fields[i].field;
	return NULL;
}

/* Whether every format lacks a field. */
static bool all_lack(struct format *const *formats, size_t count, const struct weir_field_table *fields,
                     const char *field)
{
	for (size_t i = 0; i < count; i++)
		if (!format_lacks(formats[i], (uint32_t)weir_field_table_find(fields, weir_span_of(field))))
			return false;
	return count > 0;
}

static void judge_zone(struct format *const *formats, size_t count, const struct weir_field_table *fields,
                       const struct weir_zone *zone, inputs_lack *call, void *context)
{
	const char *field = NULL;
	bool matches = false;
	for (size_t i = 0; i < count; i++) {
		const char *lacks = lacking(formats[i], fields, zone);
		matches = matches || lacks == NULL;
		field = field != NULL ? field : lacks;
	}
	if (field != NULL && !matches)
		call(context, zone, field, INPUTS_MATCHES);
	for (uint32_t i = 0; matches && i < zone->history_field_count; i++)
		if (all_lack(formats, count, fields, zone->history_fields[i]))
			call(context, zone, zone->history_fields[i], INPUTS_KEEPS);
	if (matches && zone->exempt_verified_count > 0 && all_lack(formats, count, fields, "agent"))
		call(context, zone, "agent", INPUTS_VERIFIES);
}

enum weir_status inputs_each_lack(const struct weir_config *config, const struct weir_policy *policy,
                                  struct weir_exempt_lists *lists, inputs_lack *call, void *context,
                                  struct weir_error *error)
{
	struct weir_field_table fields;
	struct weir_matcher *matcher = NULL;
	struct format **formats = weir_alloc(config->source_count, sizeof(struct format *));
	size_t made = 0;
	weir_field_table_init(&fields);
	enum weir_status status =
		weir_matcher_new(policy, lists, &fields, (uint32_t)config->bus.partitions, &matcher, error);
	bool decisions = false;
	for (size_t i = 0; status == WEIR_OK && i < config->source_count; i++) {
		struct weir_json source = weir_json_element(&config->sources, i);
		if (source_kind(&source) != NULL && source_kind(&source)->own_name != NULL) {
			decisions = true; /* for the zones that name it, and they know its fields */
			continue;
		}
		status = inputs_format(config, &fields, i, &formats[made], error);
		made += status == WEIR_OK;
	}
	for (uint32_t i = 0; status == WEIR_OK && i < policy->zone_count; i++) {
		const struct weir_zone *zone = &policy->zones[i];
		/* Who asks for a check knows the zone's fields, or its key. */
		if (zone->feed != WEIR_FEED_CHECK && !(decisions && weir_zone_counts_decisions(zone)))
			judge_zone(formats, made, &fields, zone, call, context);
	}
	for (size_t i = 0; i < made; i++)
		format_free(formats[i]);
	free(formats);
	weir_matcher_free(matcher);
	weir_field_table_deinit(&fields);
	return status;
}
