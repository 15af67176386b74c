/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the zones of a policy that the sources of one configuration can never match, and what they ask to keep in vain.
 * Formats are created as readers would create them, and asked what they lack.
 */
#include "collector/follow/inputs.h"

#include "collector/source/kinds/source_kinds.h"
#include "common/base/alloc.h"
#include "common/base/text.h"

#include <stdlib.h>

struct judge {
	struct weir_field_table fields;
	struct format **formats; /* of the sources that have one */
	const char **names;      /* of these sources; NULL: it has none */
	size_t count;
	bool decisions; /* are a source, too */
	/* The zone in question. */
	uint32_t number;
	const struct weir_zone *zone;
	struct format **takes; /* the formats of its sources */
	size_t take_count;
	/* Who is told. In a cluster other collectors may have what this one lacks. */
	bool cluster;
	policy_doubt *tell;
	void *context;
};

static bool lacks(const struct judge *judge, const struct format *format, const char *field)
{
	return format_lacks(format, (uint32_t)weir_field_table_find(&judge->fields, weir_span_of(field)));
}

/* The first field without which no record is in the zone and that a format lacks, or NULL. What is "not" holds without it. */
static const char *lacking(const struct judge *judge, const struct format *format)
{
	const struct weir_zone *zone = judge->zone;
	for (uint32_t i = 0; i < zone->key_count; i++)
		if (lacks(judge, format, zone->key[i].field))
			return zone->key[i].field;
	for (uint32_t i = 0; i < zone->match.field_count; i++)
		if (!zone->match.fields[i].negated && lacks(judge, format, zone->match.fields[i].field))
			return zone->match.fields[i].field;
	return NULL;
}

/* Whether the zone's sources all lack a field. */
static bool all_lack(const struct judge *judge, const char *field)
{
	for (size_t i = 0; i < judge->take_count; i++)
		if (!lacks(judge, judge->takes[i], field))
			return false;
	return judge->take_count > 0;
}

/* @param so  what comes of it */
static void tell_lack(const struct judge *judge, const char *member, const char *field, const char *so)
{
	struct weir_text words = {0};
	weir_text_printf(&words, "no source%s provides the field \"%.80s\", so %s%s",
	                 judge->cluster ? " of this collector" : "", field, so, judge->cluster ? " here" : "");
	weir_text_append(&words, "", 1);
	judge->tell(judge->context, judge->number, member, words.at);
	weir_text_deinit(&words);
}

static void tell_unmatched(const struct judge *judge, const char *field)
{
	struct weir_text words = {0};
	weir_text_printf(&words, "never matches%s: no source%s provides the field \"%.80s\"", judge->cluster ? " here" : "",
	                 judge->cluster ? " of this collector" : "", field);
	weir_text_append(&words, "", 1);
	judge->tell(judge->context, judge->number, NULL, words.at);
	weir_text_deinit(&words);
}

/* Of a zone that records can be in. */
static void judge_uses(const struct judge *judge)
{
	const struct weir_zone *zone = judge->zone;
	char member[WEIR_JSON_PATH_BYTES];
	for (uint32_t i = 0; i < zone->match.field_count; i++) {
		const struct weir_match_field *field = &zone->match.fields[i];
		snprintf(member, sizeof member, "match.%.200s", field->field);
		if (field->negated && all_lack(judge, field->field))
			tell_lack(judge, member, field->field, "\"not\" holds for every record");
	}
	for (uint32_t i = 0; i < zone->history_field_count; i++)
		if (all_lack(judge, zone->history_fields[i]))
			tell_lack(judge, "history.fields", zone->history_fields[i], "none is kept");
	if (zone->exempt_verified_count > 0 && all_lack(judge, "agent"))
		tell_lack(judge, "exempt", "agent", "no robot is exempt as verified");
}

static bool takes(const struct weir_zone *zone, const char *source)
{
	bool named = zone->source_count == 0;
	for (uint32_t i = 0; i < zone->source_count && !named; i++)
		named = source != NULL && strcmp(zone->sources[i], source) == 0;
	return named;
}

/* @param checks  whether somebody asks: who does knows the zone's fields, or its key */
static void judge_zone(struct judge *judge, bool checks)
{
	const struct weir_zone *zone = judge->zone;
	const char *field = NULL;
	bool matches = false;
	if (zone->feed == WEIR_FEED_CHECK || (judge->decisions && weir_zone_counts_decisions(zone)))
		return;
	judge->take_count = 0;
	for (size_t i = 0; i < judge->count; i++) {
		if (!takes(zone, judge->names[i]))
			continue;
		judge->takes[judge->take_count++] = judge->formats[i];
		const char *lack = lacking(judge, judge->formats[i]);
		matches = matches || lack == NULL;
		field = field != NULL ? field : lack;
	}
	if (matches)
		judge_uses(judge);
	else if (field != NULL && !(checks && zone->feed == WEIR_FEED_BOTH))
		tell_unmatched(judge, field);
}

/* Makes the formats of all sources. Decisions have none: the zones that name them know their fields. */
static enum weir_status make_formats(struct judge *judge, const struct weir_config *config, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; status == WEIR_OK && i < config->source_count; i++) {
		struct weir_json source = weir_json_element(&config->sources, i);
		const struct source_ops *kind = source_kind(&source);
		if (kind != NULL && kind->own_name != NULL) {
			judge->decisions = true;
			continue;
		}
		status = inputs_format(config, &judge->fields, i, &judge->formats[judge->count], error);
		if (status == WEIR_OK)
			judge->names[judge->count++] = source_zones_name(&source);
	}
	return status;
}

enum weir_status inputs_each_lack(const struct weir_config *config, const struct weir_policy *policy,
                                  struct weir_exempt_lists *lists, policy_doubt *tell, void *context,
                                  struct weir_error *error)
{
	struct weir_matcher *matcher = NULL;
	struct judge judge = {.formats = weir_alloc(config->source_count, sizeof *judge.formats),
	                      .takes = weir_alloc(config->source_count, sizeof *judge.takes),
	                      .names = weir_alloc(config->source_count, sizeof *judge.names),
	                      .cluster = config->bus.type == WEIR_BUS_KAFKA,
	                      .tell = tell,
	                      .context = context};
	weir_field_table_init(&judge.fields);
	enum weir_status status =
		weir_matcher_new(policy, lists, &judge.fields, (uint32_t)config->bus.partitions, &matcher, error);
	if (status == WEIR_OK)
		status = make_formats(&judge, config, error);
	for (; status == WEIR_OK && judge.number < policy->zone_count; judge.number++) {
		judge.zone = &policy->zones[judge.number];
		judge_zone(&judge, weir_config_takes_checks(config));
	}
	for (size_t i = 0; i < judge.count; i++)
		format_free(judge.formats[i]);
	free(judge.formats);
	free(judge.takes);
	free(judge.names);
	weir_matcher_free(matcher);
	weir_field_table_deinit(&judge.fields);
	return status;
}
