/* SPDX-License-Identifier: Apache-2.0 */
/* "zones": from the configuration, or from a policy record's text, to a policy. */
#include "common/base/alloc.h"
#include "common/json/json_shape.h"
#include "common/policy/internal.h"

#include <stdlib.h>
#include <string.h>

#define NAME_NEEDED "a short name for people and decisions, such as \"site\""
#define KEY_NEEDED "the fields to count by, such as [\"ip\"], or [] to count all together"
#define LIMITS_NEEDED "for example [{\"algorithm\": \"sliding_window\", \"rate\": 10, \"window\": \"1m\"}]"

static enum weir_status parse_name(const struct weir_json *object, struct weir_zone *zone, struct weir_error *error)
{
	static const char accepted[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
	struct weir_json at = weir_json_member(object, "name");
	const char *name = "";
	enum weir_status status = weir_json_require(&at, NAME_NEEDED, error);
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

/* The bits of addresses that count. */
struct key_bits {
	int64_t of_ipv4, of_ipv6;
};

static json_t *field_name_shape(void)
{
	return weir_shape_name(WEIR_FIELD_NAME_MAX_BYTES);
}

static const struct weir_json_rule key_members[] = {
	{.name = "field",
     .needed = "the name of a field, such as \"ip\"",
     .meaning = "the field to count by",
     .shape = field_name_shape},
	{.name = "prefix4",
     .kind = WEIR_JSON_NUMBER,
     .offset = offsetof(struct key_bits, of_ipv4),
     .most = 32,
     .meaning = "counts IPv4 networks of this length instead of addresses"},
	{.name = "prefix6",
     .kind = WEIR_JSON_NUMBER,
     .offset = offsetof(struct key_bits, of_ipv6),
     .most = 128,
     .meaning = "counts IPv6 networks of this length instead of addresses; 64 is one customer"},
	{.name = NULL},
};

/* A field's name, or {"field": NAME, "prefix4": N, "prefix6": N}. */
static enum weir_status parse_key_field(const struct weir_json *at, struct weir_key_field *field,
                                        struct weir_error *error)
{
	*field = (struct weir_key_field){.prefix4 = 32, .prefix6 = 128};
	enum weir_status status;
	const char *name = "";
	struct weir_json name_at = *at;
	if (json_is_object(at->value)) {
		struct weir_json prefix4 = weir_json_member(at, "prefix4"), prefix6 = weir_json_member(at, "prefix6");
		struct key_bits bits = {.of_ipv4 = field->prefix4, .of_ipv6 = field->prefix6};
		name_at = weir_json_member(at, "field");
		if ((status = weir_json_known(at, key_members, error)) != WEIR_OK ||
		    (status = weir_json_read(at, key_members, &bits, error)) != WEIR_OK)
			return status;
		field->grouped = weir_json_exists(&prefix4) || weir_json_exists(&prefix6);
		field->prefix4 = (uint8_t)bits.of_ipv4;
		field->prefix6 = (uint8_t)bits.of_ipv6;
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
	enum weir_status status = weir_json_require(&at, KEY_NEEDED, error);
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
	enum weir_status status = weir_json_require(&at, LIMITS_NEEDED, error);
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

/* What a zone does, beside what it counts. */
struct behaviour {
	int count, feed; /* as the words of the rules have them */
	bool durable;
};

static const char *const counts[] = {"passed", "all", NULL};
static const char *const feeds[] = {
	[WEIR_FEED_BOTH] = "both", [WEIR_FEED_LOG] = "log", [WEIR_FEED_CHECK] = "check", NULL};

static json_t *id_shape(void)
{
	return weir_shape_number(1, WEIR_ZONE_ID_MAX);
}

static json_t *description_shape(void)
{
	json_t *shape = weir_shape_text();
	json_object_set_new(shape, "maxLength", json_integer(WEIR_ZONE_DESCRIPTION_MAX_BYTES));
	return shape;
}

static json_t *name_shape(void)
{
	json_t *shape = weir_shape_pattern("^[A-Za-z0-9_.-]+$");
	json_object_set_new(shape, "maxLength", json_integer(WEIR_ZONE_NAME_MAX_BYTES));
	return shape;
}

static json_t *key_shape(void)
{
	return weir_shape_list(0, WEIR_ZONE_KEY_MAX, weir_shape_either(field_name_shape(), weir_shape_object(key_members)));
}

static json_t *match_shape(void)
{
	return weir_shape_named("match");
}

static json_t *sources_shape(void)
{
	return weir_shape_list(1, WEIR_ZONE_SOURCES_MAX, weir_shape_name(0));
}

static json_t *limits_shape(void)
{
	return weir_shape_list(1, WEIR_ZONE_LIMITS_MAX, weir_shape_named("limit"));
}

static json_t *block_for_shape(void)
{
	return weir_shape_either(weir_shape_time(), weir_shape_list(1, WEIR_ZONE_BLOCKS_MAX, weir_shape_time()));
}

static json_t *history_fields_shape(void)
{
	return weir_shape_list(1, WEIR_ZONE_HISTORY_FIELDS_MAX, field_name_shape());
}

static const struct weir_json_rule history_members[] = {
	{.name = "fields",
     .needed = "names of fields, such as [\"path\", \"status\"]",
     .meaning = "fields of the record that are kept with each event, such as path, method, status, agent",
     .shape = history_fields_shape},
	{.name = NULL},
};

static json_t *history_shape(void)
{
	return weir_shape_either(weir_shape_flag(), weir_shape_object(history_members));
}

#define AT(member) offsetof(struct behaviour, member)

static const struct weir_json_rule zone_members[] = {
	{.name = "id",
     .meaning = "its number in the state; without one, the name keeps the number that it has there",
     .shape = id_shape},
	{.name = "name",
     .needed = NAME_NEEDED,
     .meaning = "the name in decisions, metrics and commands",
     .shape = name_shape},
	{.name = "description", .meaning = "a sentence for whoever reads the list of zones", .shape = description_shape},
	{.name = "key",
     .needed = KEY_NEEDED,
     .meaning = "the fields to count by; without any, one bucket for all",
     .shape = key_shape},
	{.name = "match",
     .meaning = "which records: every field must have one of its values; without it, every record",
     .shape = match_shape},
	{.name = "exempt",
     .meaning =
         "who is not counted: networks, ranges, words, records by their fields, or files with one entry per line",
     .shape = weir_exempt_shape},
	{.name = "limits", .needed = LIMITS_NEEDED, .meaning = "one or more limits; each can block", .shape = limits_shape},
	{.name = "count",
     .kind = WEIR_JSON_WORD,
     .offset = AT(count),
     .words = counts,
     .meaning = "whether blocked requests count: \"passed\" (the default): they do not; \"all\": they do"},
	{.name = "block_for",
     .meaning = "the shortest block after a breach; of a list, the n-th block of a key lasts the n-th time",
     .shape = block_for_shape},
	{.name = "forgive_after",
     .meaning = "with a list: how long after the end of a block the next one is a first one again",
     .shape = weir_shape_time},
	{.name = "mode",
     .meaning = "\"enforce\" (the default); \"shadow\": nobody is blocked, and decisions go elsewhere; or shadow until "
                "something holds",
     .shape = weir_mode_shape},
	{.name = "history",
     .meaning = "whether the archiver keeps every event; of an object, with the fields that it names",
     .shape = history_shape},
	{.name = "feed",
     .kind = WEIR_JSON_WORD,
     .offset = AT(feed),
     .words = feeds,
     .meaning = "what counts: \"both\" (the default): log lines and checks; \"log\" or \"check\": these alone"},
	{.name = "durable",
     .kind = WEIR_JSON_FLAG,
     .offset = AT(durable),
     .meaning = "whether its checks are answered after the log has them, so that no crash forgets one"},
	{.name = "sources", .meaning = "names of sources: only their records are in the zone", .shape = sources_shape},
	{.name = NULL},
};

json_t *weir_zone_shape(void)
{
	return weir_shape_object(zone_members);
}

static enum weir_status parse_history_field(const struct weir_json *at, struct weir_zone *zone,
                                            struct weir_error *error)
{
	const char *name = "";
	enum weir_status status = weir_json_string(at, &name, error);
	size_t length = strlen(name);
	if (status == WEIR_OK && (length == 0 || length > WEIR_FIELD_NAME_MAX_BYTES))
		status = weir_json_fail(at, error, "a field's name must have 1 to %d bytes", WEIR_FIELD_NAME_MAX_BYTES);
	for (uint32_t i = 0; status == WEIR_OK && i < zone->history_field_count; i++)
		if (strcmp(zone->history_fields[i], name) == 0)
			status = weir_json_fail(at, error, "\"%s\" is named twice", name);
	if (status == WEIR_OK)
		zone->history_fields[zone->history_field_count++] = weir_copy(name, length);
	return status;
}

/* true, false, or {"fields": [...]}, which is true as well. */
static enum weir_status parse_history(const struct weir_json *object, struct weir_zone *zone, struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, "history"), fields;
	size_t count = 0;
	if (!json_is_object(at.value))
		return weir_json_bool(&at, &zone->history, error);
	fields = weir_json_member(&at, "fields");
	enum weir_status status = weir_json_known(&at, history_members, error);
	if (status == WEIR_OK)
		status = weir_json_require(&fields, history_members[0].needed, error);
	if (status == WEIR_OK)
		status = weir_json_list(&fields, 1, WEIR_ZONE_HISTORY_FIELDS_MAX, &count, error);
	zone->history = true;
	zone->history_fields = weir_alloc(count, sizeof *zone->history_fields);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json element = weir_json_element(&fields, i);
		status = parse_history_field(&element, zone, error);
	}
	return status;
}

static enum weir_status parse_behaviour(const struct weir_json *object, struct weir_zone *zone,
                                        struct weir_error *error)
{
	struct behaviour behaviour = {0};
	enum weir_status status = weir_json_read(object, zone_members, &behaviour, error);
	zone->count_all = behaviour.count == 1;
	zone->feed = (enum weir_zone_feed)behaviour.feed;
	zone->durable = behaviour.durable;
	struct weir_json mode = weir_json_member(object, "mode"), durable = weir_json_member(object, "durable");
	if (status == WEIR_OK && zone->durable && zone->feed == WEIR_FEED_LOG)
		status = weir_json_fail(&durable, error, "is about checks, and with the feed \"log\" the zone takes none");
	if (status == WEIR_OK)
		status = weir_mode_parse(&mode, zone, error);
	return status == WEIR_OK ? parse_block_for(object, zone, error) : status;
}

static enum weir_status parse_sources(const struct weir_json *object, struct weir_zone *zone, struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, "sources");
	size_t count = 0;
	if (!weir_json_exists(&at))
		return WEIR_OK;
	enum weir_status status = weir_json_list(&at, 1, WEIR_ZONE_SOURCES_MAX, &count, error);
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

static enum weir_status parse_zone(const struct weir_json *at, const struct weir_json *shared_exempt, bool record,
                                   struct weir_zone *zone, struct weir_error *error)
{
	struct weir_json match = weir_json_member(at, "match"), exempt = weir_json_member(at, "exempt");
	enum weir_status status;
	if ((status = weir_json_known(at, zone_members, error)) != WEIR_OK ||
	    (status = parse_name(at, zone, error)) != WEIR_OK || (status = parse_description(at, zone, error)) != WEIR_OK ||
	    (status = parse_key(at, zone, error)) != WEIR_OK ||
	    (status = weir_match_parse(&match, &zone->match, error)) != WEIR_OK ||
	    (status = weir_exempt_parse(&exempt, shared_exempt, record, zone, error)) != WEIR_OK ||
	    (status = parse_sources(at, zone, error)) != WEIR_OK || (status = parse_history(at, zone, error)) != WEIR_OK ||
	    (status = parse_limits(at, zone, error)) != WEIR_OK)
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

enum weir_status weir_policy_read(const struct weir_json *zones, const struct weir_json *exempt, bool record,
                                  struct weir_policy **policy, struct weir_error *error)
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
		status = parse_zone(&at, exempt, record, &made->zones[i], error);
		if (status == WEIR_OK)
			status = parse_id(&at, &made->zones[i], error);
		if (status == WEIR_OK)
			status = check_unique(zones, made, error);
	}
	if (status == WEIR_OK)
		status = weir_policy_give_ids(made, NULL, 0, error);
	if (status != WEIR_OK) {
		weir_policy_free(made);
		return status;
	}
	*policy = made;
	return WEIR_OK;
}

enum weir_status weir_policy_parse(const struct weir_json *zones, const struct weir_json *exempt,
                                   struct weir_policy **policy, struct weir_error *error)
{
	struct weir_policy *made;
	struct weir_error words;
	enum weir_status status = weir_policy_read(zones, exempt, false, &made, error);
	if (status != WEIR_OK)
		return status;
	status = weir_policy_check_circles(zones, made, error);
	if (status == WEIR_OK && weir_policy_check_record(made, &words) != WEIR_OK)
		status = weir_json_fail(zones, error, "%s", words.text);
	if (status != WEIR_OK) {
		weir_policy_free(made);
		return status;
	}
	*policy = made;
	return WEIR_OK;
}
