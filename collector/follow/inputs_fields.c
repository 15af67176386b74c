/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the zones of a policy that the sources of one configuration can never match, and what they ask in vain. Formats
 * are created as readers would create them, and asked which fields they lack, and which values they never give.
 */
#include "collector/follow/inputs.h"

#include "collector/source/kinds/source_kinds.h"
#include "common/base/alloc.h"
#include "common/base/suggest.h"
#include "common/base/text.h"
#include "common/match/wildcard.h"

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
	/* Who is told, and in which words: in a cluster other collectors may have what this one lacks. */
	const char *of_these, *here;
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

/* "no source provides the field "ipp" (did you mean "ip"?)" */
static void put_lack(struct weir_text *words, const struct judge *judge, const char *field)
{
	const char *names[WEIR_FIELD_MAX + 1];
	size_t count = 0;
	for (uint32_t i = 0; i < judge->fields.count; i++)
		if (!all_lack(judge, judge->fields.names[i]))
			names[count++] = judge->fields.names[i];
	names[count] = NULL;
	const char *near = weir_nearest_name(field, names);
	weir_text_printf(words, "no source%s provides the field \"%.80s\"", judge->of_these, field);
	if (near != NULL)
		weir_text_printf(words, " (did you mean \"%s\"?)", near);
}

/* @param words  are let go */
static void tell_words(const struct judge *judge, const char *member, struct weir_text *words)
{
	weir_text_append(words, "", 1);
	judge->tell(judge->context, judge->number, member, words->at);
	weir_text_deinit(words);
}

/* @param so  what comes of it */
static void tell_lack(const struct judge *judge, const char *member, const char *field, const char *so)
{
	struct weir_text words = {0};
	put_lack(&words, judge, field);
	weir_text_printf(&words, ", so %s%s", so, judge->here);
	tell_words(judge, member, &words);
}

static void tell_unmatched(const struct judge *judge, const char *field)
{
	struct weir_text words = {0};
	weir_text_printf(&words, "never matches%s: ", judge->here);
	put_lack(&words, judge, field);
	tell_words(judge, NULL, &words);
}

/* ---- values that no line can have ---- */

static bool is_among(const struct weir_match_value *value, const char *const *names)
{
	struct wildcard pattern = {0};
	bool found = false;
	if (value->wildcard)
		wildcard_init(&pattern, weir_span_of(value->text));
	for (; *names != NULL && !found; names++)
		found = value->wildcard ? wildcard_match(&pattern, weir_span_of(*names)) : strcmp(*names, value->text) == 0;
	wildcard_deinit(&pattern);
	return found;
}

/* @param known  set to the values that there are, where the format knows them all */
static bool may_have(const struct format *format, uint32_t field, const struct weir_match_value *value,
                     const char *const **known)
{
	const char *const *names = format_values(format, field);
	if (names != NULL)
		*known = names;
	return names != NULL ? is_among(value, names) : !format->dash_is_absent || strcmp(value->text, "-") != 0;
}

/* @return whether it was told */
static bool judge_value(const struct judge *judge, const char *member, const char *field,
                        const struct weir_match_value *value)
{
	uint32_t index = (uint32_t)weir_field_table_find(&judge->fields, weir_span_of(field));
	const char *const *known = NULL;
	struct weir_text words = {0};
	bool may = all_lack(judge, field);
	for (size_t i = 0; i < judge->take_count && !may; i++)
		may = !format_lacks(judge->takes[i], index) && may_have(judge->takes[i], index, value, &known);
	if (may)
		return false;
	const char *near = known != NULL ? weir_nearest_name(value->text, known) : NULL;
	weir_text_printf(&words, "\"%.80s\" is no value that a source%s can give", value->text, judge->of_these);
	if (near != NULL)
		weir_text_printf(&words, ": did you mean \"%s\"?", near);
	else if (known != NULL)
		weir_text_printf(&words, ", as \"%.80s\" can be %s", field, *known);
	else
		weir_text_puts(&words, ": it stands for an absent field, which {\"not\": [\"*\"]} matches");
	for (known = near == NULL && known != NULL ? known + 1 : NULL; known != NULL && *known != NULL; known++)
		weir_text_printf(&words, known[1] != NULL ? ", %s" : " or %s", *known);
	tell_words(judge, member, &words);
	return true;
}

/* @param prefix  before the field: "match", "exempt", "limits[0].done" */
static void judge_values(const struct judge *judge, const char *prefix, const struct weir_match *match)
{
	char member[WEIR_JSON_PATH_BYTES];
	for (uint32_t i = 0; i < match->field_count; i++) {
		const struct weir_match_field *field = &match->fields[i];
		snprintf(member, sizeof member, "%s.%.200s", prefix, field->field);
		for (uint32_t k = 0, told = 0; !field->any_case && k < field->value_count && told < DOUBTS_TOLD; k++)
			told += judge_value(judge, member, field->field, &field->values[k]);
	}
}

static void judge_matches(const struct judge *judge)
{
	const struct weir_zone *zone = judge->zone;
	char done[32];
	judge_values(judge, "match", &zone->match);
	for (uint32_t i = 0; i < zone->exempt_match_count; i++)
		judge_values(judge, "exempt", &zone->exempt_matches[i]);
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		snprintf(done, sizeof done, "limits[%u].done", i);
		judge_values(judge, done, &zone->limits[i].done);
	}
}

/* ---- a zone ---- */

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
	judge_matches(judge);
}

/* @param checks  whether somebody asks: who does knows the zone's fields, or its key */
static void judge_zone(struct judge *judge, bool checks)
{
	const struct weir_zone *zone = judge->zone;
	const char *field = NULL;
	bool matches = false;
	bool asked = zone->feed == WEIR_FEED_CHECK || (checks && zone->feed == WEIR_FEED_BOTH);
	if (asked || (judge->decisions && weir_zone_counts_decisions(zone)))
		return;
	judge->take_count = 0;
	for (size_t i = 0; i < judge->count; i++) {
		if (!weir_zone_takes_source(zone, judge->names[i]))
			continue;
		judge->takes[judge->take_count++] = judge->formats[i];
		const char *lack = lacking(judge, judge->formats[i]);
		matches = matches || lack == NULL;
		field = field != NULL ? field : lack;
	}
	if (matches)
		judge_uses(judge);
	else if (field != NULL)
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
	bool cluster = config->bus.type == WEIR_BUS_KAFKA;
	struct judge judge = {.formats = weir_alloc(config->source_count, sizeof *judge.formats),
	                      .takes = weir_alloc(config->source_count, sizeof *judge.takes),
	                      .names = weir_alloc(config->source_count, sizeof *judge.names),
	                      .of_these = cluster ? " of this collector" : "",
	                      .here = cluster ? " here" : "",
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
