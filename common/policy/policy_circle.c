/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zones that count decisions must not count their own, directly or through others: one block would bring the next, for
 * ever. A zone's `match` on the field zone says whose decisions it counts; what is not certain counts as counted.
 */
#include "common/base/alloc.h"
#include "common/base/text.h"
#include "common/match/wildcard.h"
#include "common/policy/internal.h"

#include <stdlib.h>
#include <string.h>

/* Whether a text is of a pattern, in which '*' is any run of bytes. */
static bool is_like(const char *pattern, const char *text)
{
	struct wildcard wildcard;
	wildcard_init(&wildcard, weir_span_of(pattern));
	bool like = wildcard_match(&wildcard, weir_span_of(text));
	wildcard_deinit(&wildcard);
	return like;
}

static bool has_value(const struct weir_match_field *field, const char *name)
{
	if (field->any_case) /* it may be counted */
		return !field->negated;
	for (uint32_t i = 0; i < field->value_count; i++) {
		const struct weir_match_value *value = &field->values[i];
		if (value->network) { /* a name may look like an address of it; but "not" is certain of that address alone */
			if (!field->negated || strcmp(value->text, name) == 0)
				return true;
			continue;
		}
		if (value->wildcard ? is_like(value->text, name) : strcmp(value->text, name) == 0)
			return true;
	}
	return false;
}

bool weir_zone_counts_decisions(const struct weir_zone *zone)
{
	for (uint32_t i = 0; i < zone->source_count; i++)
		if (strcmp(zone->sources[i], WEIR_SOURCE_DECISIONS) == 0)
			return true;
	return false;
}

bool weir_zone_counts_those_of(const struct weir_zone *zone, const struct weir_zone *other)
{
	if (!weir_zone_counts_decisions(zone))
		return false;
	for (uint32_t i = 0; i < zone->match.field_count; i++) {
		const struct weir_match_field *field = &zone->match.fields[i];
		if (strcmp(field->field, "zone") == 0 && has_value(field, other->name) == field->negated)
			return false;
	}
	return true;
}

struct walk {
	const struct weir_policy *policy;
	uint32_t *path; /* the zones that lead here: each counts the decisions of the one behind it */
	uint32_t length;
	uint8_t *state; /* of each zone */
};

enum { NOT_SEEN, ON_PATH, FREE_OF_CIRCLES };

/* Follows whose decisions a zone counts. @return whether that leads to a zone on the path, which is then its last one */
static bool find_circle(struct walk *walk, uint32_t zone)
{
	walk->state[zone] = ON_PATH;
	walk->path[walk->length++] = zone;
	for (uint32_t i = 0; i < walk->policy->zone_count; i++) {
		if (walk->state[i] == FREE_OF_CIRCLES ||
		    !weir_zone_counts_those_of(&walk->policy->zones[zone], &walk->policy->zones[i]))
			continue;
		if (walk->state[i] == ON_PATH) {
			walk->path[walk->length++] = i;
			return true;
		}
		if (find_circle(walk, i))
			return true;
	}
	walk->state[zone] = FREE_OF_CIRCLES;
	walk->length--;
	return false;
}

static enum weir_status refuse(const struct weir_json *zones, const struct walk *walk, struct weir_error *error)
{
	uint32_t last = walk->path[walk->length - 1], first = 0;
	while (walk->path[first] != last)
		first++;
	struct weir_text words = {0};
	for (uint32_t i = first; i < walk->length; i++)
		weir_text_printf(&words, "%s\"%s\"", i == first ? "" : " counts ", walk->policy->zones[walk->path[i]].name);
	weir_text_append(&words, "", 1);
	struct weir_json zone = weir_json_element(zones, last), at = weir_json_member(&zone, "match");
	enum weir_status status =
		weir_json_fail(&at, error,
	                   "this zone would count its own decisions: %.200s; name the zones that it is about, as in "
	                   "\"match\": {\"zone\": [\"login\"], \"action\": [\"block\"]}",
	                   words.at);
	weir_text_deinit(&words);
	return status;
}

enum weir_status weir_policy_check_circles(const struct weir_json *zones, const struct weir_policy *policy,
                                           struct weir_error *error)
{
	struct walk walk = {.policy = policy,
	                    .path = weir_alloc(policy->zone_count + 1u, sizeof *walk.path),
	                    .state = weir_alloc(policy->zone_count, 1)};
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; i < policy->zone_count && status == WEIR_OK; i++)
		if (walk.state[i] == NOT_SEEN && weir_zone_counts_decisions(&policy->zones[i]) && find_circle(&walk, i))
			status = refuse(zones, &walk, error);
	free(walk.path);
	free(walk.state);
	return status;
}
