/* SPDX-License-Identifier: Apache-2.0 */
/* "zones": from the configuration, or from a policy record's text, to a policy. */
#include "common/base/alloc.h"
#include "common/policy/internal.h"

#include <stdlib.h>
#include <string.h>

static const char *const zone_names[] = {"id",    "name",      "description",   "key",  "match",   "exempt",  "limits",
                                         "count", "block_for", "forgive_after", "mode", "history", "sources", NULL};

static enum weir_status parse_name(const struct weir_json *object, struct weir_zone *zone, struct weir_error *error)
{
	static const char accepted[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
	struct weir_json at = weir_json_member(object, "name");
	const char *name = "";
	enum weir_status status = weir_json_require(&at, "a short name for people and decisions, such as \"site\"", error);
	if (status == WEIR_OK)
		status = weir_json_string(&at, &name, error);
	if (status != WEIR_OK)
		return status;
	size_t length = strlen(name);
	if (length == 0 || length > WEIR_ZONE_NAME_MAX_BYTES || strspn(name, accepted) != length)
		return weir_json_fail(&at, error, "must be 1 to %d of the characters A-Z a-z 0-9 _ . -, not \"%.80s\"",
		                      WEIR_ZONE_NAME_MAX_BYTES, name);
	zone->name = weir_copy(name, length);
	return WEIR_OK;
}

static enum weir_status parse_description(const struct weir_json *object, struct weir_zone *zone,
                                          struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, "description");
	const char *description = "";
	enum weir_status status = weir_json_string(&at, &description, error);
	if (status != WEIR_OK)
		return status;
	size_t length = strlen(description);
	if (length > WEIR_ZONE_DESCRIPTION_MAX_BYTES)
		return weir_json_fail(&at, error, "must have at most %d bytes, not %zu", WEIR_ZONE_DESCRIPTION_MAX_BYTES,
		                      length);
	zone->description = weir_copy(description, length);
	return WEIR_OK;
}

/* A field's name, or {"field": NAME, "prefix4": N, "prefix6": N}. */
static enum weir_status parse_key_field(const struct weir_json *at, struct weir_key_field *field,
                                        struct weir_error *error)
{
	static const char *const names[] = {"field", "prefix4", "prefix6", NULL};
	*field = (struct weir_key_field){.prefix4 = 32, .prefix6 = 128};
	enum weir_status status;
	const char *name = "";
	struct weir_json name_at = *at;
	if (json_is_object(at->value)) {
		struct weir_json prefix4 = weir_json_member(at, "prefix4"), prefix6 = weir_json_member(at, "prefix6");
		int64_t bits4 = field->prefix4, bits6 = field->prefix6;
		name_at = weir_json_member(at, "field");
		if ((status = weir_json_only(at, names, error)) != WEIR_OK ||
		    (status = weir_json_require(&name_at, "the name of a field, such as \"ip\"", error)) != WEIR_OK ||
		    (status = weir_json_int(&prefix4, 0, 32, &bits4, error)) != WEIR_OK ||
		    (status = weir_json_int(&prefix6, 0, 128, &bits6, error)) != WEIR_OK)
			return status;
		field->grouped = weir_json_exists(&prefix4) || weir_json_exists(&prefix6);
		field->prefix4 = (uint8_t)bits4;
		field->prefix6 = (uint8_t)bits6;
	}
	if ((status = weir_json_string(&name_at, &name, error)) != WEIR_OK)
		return status;
	size_t length = strlen(name);
	if (length == 0 || length > WEIR_FIELD_NAME_MAX_BYTES)
		return weir_json_fail(&name_at, error, "a field's name must have 1 to %d bytes", WEIR_FIELD_NAME_MAX_BYTES);
	field->field = weir_copy(name, length);
	return WEIR_OK;
}

static enum weir_status parse_key(const struct weir_json *object, struct weir_zone *zone, struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, "key");
	size_t count = 0;
	enum weir_status status =
		weir_json_require(&at, "the fields to count by, such as [\"ip\"], or [] to count all together", error);
	if (status == WEIR_OK)
		status = weir_json_list(&at, 0, WEIR_ZONE_KEY_MAX, &count, error);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json element = weir_json_element(&at, i);
		status = parse_key_field(&element, &zone->key[i], error);
		if (status != WEIR_OK)
			return status;
		zone->key_count++;
		for (size_t k = 0; k < i; k++)
			if (strcmp(zone->key[k].field, zone->key[i].field) == 0)
				return weir_json_fail(&element, error, "\"%s\" is in the key twice", zone->key[i].field);
	}
	return status;
}

static enum weir_status parse_limits(const struct weir_json *object, struct weir_zone *zone, struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, "limits");
	size_t count = 0;
	enum weir_status status = weir_json_require(
		&at, "for example [{\"algorithm\": \"sliding_window\", \"rate\": 10, \"window\": \"1m\"}]", error);
	if (status == WEIR_OK)
		status = weir_json_list(&at, 1, WEIR_ZONE_LIMITS_MAX, &count, error);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json element = weir_json_element(&at, i);
		status = weir_limit_parse(&element, &zone->limits[zone->limit_count++], error);
	}
	return status;
}

/* What the n-th block of a key lasts. One that is shorter than the one before it is a mistake. */
static enum weir_status parse_block_list(const struct weir_json *at, struct weir_zone *zone, struct weir_error *error)
{
	size_t count = 0;
	enum weir_status status = weir_json_list(at, 1, WEIR_ZONE_BLOCKS_MAX, &count, error);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json element = weir_json_element(at, i);
		int64_t least_ms = i > 0 ? zone->block_list_ms[i - 1] : 1;
		status = weir_json_duration(&element, 1, WEIR_WINDOW_MAX_MS, &zone->block_list_ms[i], error);
		if (status == WEIR_OK && zone->block_list_ms[i] < least_ms)
			status = weir_json_fail(&element, error, "is shorter than the block before it");
		zone->block_list_count++;
	}
	zone->block_for_ms = zone->block_list_ms[0];
	zone->forgive_after_ms = count > 0 ? zone->block_list_ms[zone->block_list_count - 1] : 0;
	return status;
}

static enum weir_status parse_block_for(const struct weir_json *object, struct weir_zone *zone,
                                        struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, "block_for"), forgive = weir_json_member(object, "forgive_after");
	if (json_is_array(at.value)) {
		enum weir_status status = parse_block_list(&at, zone, error);
		return status != WEIR_OK ? status
		                         : weir_json_duration(&forgive, 1, WEIR_WINDOW_MAX_MS, &zone->forgive_after_ms, error);
	}
	if (weir_json_exists(&forgive))
		return weir_json_fail(&forgive, error,
		                      "needs a list in \"block_for\", such as [\"10m\", \"1h\", \"1d\"]: without one, every "
		                      "block lasts as long as the first");
	return weir_json_duration(&at, 0, WEIR_WINDOW_MAX_MS, &zone->block_for_ms, error);
}

static enum weir_status parse_behaviour(const struct weir_json *object, struct weir_zone *zone,
                                        struct weir_error *error)
{
	static const char *const counts[] = {"passed", "all", NULL};
	static const char *const modes[] = {"enforce", "shadow", NULL};
	struct weir_json count_at = weir_json_member(object, "count"), mode_at = weir_json_member(object, "mode"),
					 history = weir_json_member(object, "history");
	int count = 0, mode = 0;
	enum weir_status status;
	if ((status = weir_json_word(&count_at, counts, &count, error)) != WEIR_OK ||
	    (status = parse_block_for(object, zone, error)) != WEIR_OK ||
	    (status = weir_json_word(&mode_at, modes, &mode, error)) != WEIR_OK ||
	    (status = weir_json_bool(&history, &zone->history, error)) != WEIR_OK)
		return status;
	zone->count_all = count == 1;
	zone->mode = mode == 1 ? WEIR_SHADOW : WEIR_ENFORCE;
	return WEIR_OK;
}

static enum weir_status parse_sources(const struct weir_json *object, struct weir_zone *zone, struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, "sources");
	size_t count = 0;
	if (!weir_json_exists(&at))
		return WEIR_OK;
	enum weir_status status = weir_json_list(&at, 0, WEIR_ZONE_SOURCES_MAX, &count, error);
	zone->sources = weir_alloc(count, sizeof *zone->sources);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json element = weir_json_element(&at, i);
		const char *name = "";
		status = weir_json_string(&element, &name, error);
		if (status == WEIR_OK && *name == '\0')
			status = weir_json_fail(&element, error, "must be the \"name\" of a source");
		if (status == WEIR_OK)
			zone->sources[zone->source_count++] = weir_copy(name, strlen(name));
	}
	return status;
}

static enum weir_status parse_zone(const struct weir_json *at, struct weir_zone *zone, struct weir_error *error)
{
	struct weir_json match = weir_json_member(at, "match"), exempt = weir_json_member(at, "exempt");
	enum weir_status status;
	if ((status = weir_json_only(at, zone_names, error)) != WEIR_OK ||
	    (status = parse_name(at, zone, error)) != WEIR_OK || (status = parse_description(at, zone, error)) != WEIR_OK ||
	    (status = parse_key(at, zone, error)) != WEIR_OK ||
	    (status = weir_match_parse(&match, &zone->match, error)) != WEIR_OK ||
	    (status = weir_exempt_parse(&exempt, zone, error)) != WEIR_OK ||
	    (status = parse_sources(at, zone, error)) != WEIR_OK || (status = parse_limits(at, zone, error)) != WEIR_OK)
		return status;
	return parse_behaviour(at, zone, error);
}

/* 0 where it has none: weir_policy_give_ids() finds one. */
static enum weir_status parse_id(const struct weir_json *at, struct weir_zone *zone, struct weir_error *error)
{
	struct weir_json id = weir_json_member(at, "id");
	int64_t value = 0;
	enum weir_status status = weir_json_int(&id, 1, WEIR_ZONE_ID_MAX, &value, error);
	zone->id = (uint32_t)value;
	zone->id_given = weir_json_exists(&id);
	return status;
}

static enum weir_status check_unique(const struct weir_json *zones, const struct weir_policy *policy,
                                     struct weir_error *error)
{
	const struct weir_zone *newest = &policy->zones[policy->zone_count - 1];
	struct weir_json at = weir_json_element(zones, policy->zone_count - 1);
	for (const struct weir_zone *zone = policy->zones; zone < newest; zone++) {
		bool same_id = newest->id_given && zone->id == newest->id;
		const char *name = same_id ? "id" : "name";
		if (!same_id && strcmp(zone->name, newest->name) != 0)
			continue;
		struct weir_json member = weir_json_member(&at, name);
		return weir_json_fail(&member, error, "zone \"%s\" already has this %s", zone->name, name);
	}
	return WEIR_OK;
}

enum weir_status weir_policy_parse(const struct weir_json *zones, struct weir_policy **policy, struct weir_error *error)
{
	size_t count = 0;
	enum weir_status status =
		weir_json_require(zones, "for example [{\"name\": \"site\", \"key\": [\"ip\"], \"limits\": [...]}]", error);
	if (status == WEIR_OK)
		status = weir_json_list(zones, 1, WEIR_ZONES_MAX, &count, error);
	if (status != WEIR_OK)
		return status;
	struct weir_policy *made = weir_alloc(1, sizeof *made);
	made->zones = weir_alloc(count, sizeof *made->zones);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json at = weir_json_element(zones, i);
		made->zone_count++;
		status = parse_zone(&at, &made->zones[i], error);
		if (status == WEIR_OK)
			status = parse_id(&at, &made->zones[i], error);
		if (status == WEIR_OK)
			status = check_unique(zones, made, error);
	}
	if (status == WEIR_OK)
		status = weir_policy_check_circles(zones, made, error);
	if (status == WEIR_OK)
		status = weir_policy_give_ids(made, NULL, 0, error);
	if (status == WEIR_OK) {
		if (strlen(made->text) > WEIR_POLICY_TEXT_MAX_BYTES)
			status =
				weir_json_fail(zones, error,
			                   "are %zu bytes long with their exempt files included; at most %d fit in a record: a "
			                   "{\"list\": PATH} stays a file that each collector reads",
			                   strlen(made->text), WEIR_POLICY_TEXT_MAX_BYTES);
	}
	if (status != WEIR_OK) {
		weir_policy_free(made);
		return status;
	}
	*policy = made;
	return WEIR_OK;
}
