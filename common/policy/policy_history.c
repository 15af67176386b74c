/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy among those before it: the ids of its zones, and whether it may follow
 * them. Buckets are stored under a zone's id, so a name keeps its id for as long as
 * the state knows the name, wherever the zone stands in its list.
 */
#include "common/base/alloc.h"
#include "common/policy/internal.h"

#include <stdlib.h>
#include <string.h>

/* The zone of a name in the newest policy that has one. */
static const struct weir_zone *find_named(const struct weir_policy *const *history, size_t count, const char *name)
{
	const struct weir_zone *found = NULL;
	for (size_t i = count; found == NULL && i-- > 0;)
		found = weir_policy_zone_named(history[i], weir_span_of(name));
	return found;
}

struct ids {
	bool used[WEIR_ZONE_ID_MAX + 1];
	uint32_t highest;
};

static void use_id(struct ids *ids, uint32_t id)
{
	ids->used[id] = true;
	if (id > ids->highest)
		ids->highest = id;
}

/* One above all that were ever used; when there is none above, the lowest that is free. 0: all are taken. */
static uint32_t fresh_id(struct ids *ids)
{
	uint32_t id = ids->highest + 1;
	if (ids->highest == WEIR_ZONE_ID_MAX)
		for (id = 1; id <= WEIR_ZONE_ID_MAX && ids->used[id];)
			id++;
	if (id > WEIR_ZONE_ID_MAX)
		return 0;
	use_id(ids, id);
	return id;
}

enum weir_status weir_policy_give_ids(struct weir_policy *policy, const struct weir_policy *const *history,
                                      size_t count, struct weir_error *error)
{
	struct ids *ids = weir_alloc(1, sizeof *ids);
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < history[i]->zone_count; k++)
			use_id(ids, history[i]->zones[k].id);
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct weir_zone *zone = &policy->zones[i];
		const struct weir_zone *known = find_named(history, count, zone->name);
		if (!zone->id_given)
			zone->id = known != NULL ? known->id : 0;
		if (zone->id != 0)
			use_id(ids, zone->id);
	}
	for (uint32_t i = 0; status == WEIR_OK && i < policy->zone_count; i++) {
		struct weir_zone *zone = &policy->zones[i];
		if (zone->id == 0 && (zone->id = fresh_id(ids)) == 0)
			status = weir_fail(error, WEIR_INVALID, "zone \"%s\": all %d ids of zones were used before", zone->name,
			                   WEIR_ZONE_ID_MAX);
	}
	free(ids);
	free(policy->text);
	policy->text = weir_policy_text(policy);
	return status;
}

static bool same_key(const struct weir_zone *a, const struct weir_zone *b)
{
	if (a->key_count != b->key_count)
		return false;
	for (uint32_t i = 0; i < a->key_count; i++) {
		const struct weir_key_field *x = &a->key[i], *y = &b->key[i];
		if (strcmp(x->field, y->field) != 0 || x->grouped != y->grouped ||
		    (x->grouped && (x->prefix4 != y->prefix4 || x->prefix6 != y->prefix6)))
			return false;
	}
	return true;
}

static enum weir_status check_zone(const struct weir_policy *previous, const struct weir_zone *zone,
                                   struct weir_error *error)
{
	unsigned long long version = previous->version;
	const struct weir_zone *before = weir_policy_zone(previous, zone->id);
	const struct weir_zone *named = weir_policy_zone_named(previous, weir_span_of(zone->name));
	if (named != NULL && named->id != zone->id)
		return weir_fail(error, WEIR_INVALID,
		                 "zone \"%s\" has id %u in policy %llu: it cannot become %u; give it \"id\": %u, or no id, or "
		                 "another name",
		                 zone->name, named->id, version, zone->id, named->id);
	if (before != NULL && strcmp(before->name, zone->name) != 0)
		return weir_fail(error, WEIR_INVALID,
		                 "zone %u is \"%s\" in policy %llu and cannot become \"%s\"; leave out the id of \"%s\"",
		                 zone->id, before->name, version, zone->name, zone->name);
	if (before != NULL && !same_key(before, zone))
		return weir_fail(
			error, WEIR_INVALID,
			"zone %u \"%s\" has another key in policy %llu, and a zone's key cannot change; give this zone a "
			"new name%s",
			zone->id, zone->name, version, zone->id_given ? " and no id" : "");
	return WEIR_OK;
}

enum weir_status weir_policy_check_successor(const struct weir_policy *previous, const struct weir_policy *next,
                                             struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; status == WEIR_OK && i < next->zone_count; i++)
		status = check_zone(previous, &next->zones[i], error);
	return status;
}

enum weir_status weir_policy_check_record(const struct weir_policy *policy, struct weir_error *error)
{
	size_t length = strlen(policy->text);
	struct weir_policy *again;
	struct weir_error why;
	if (length > WEIR_POLICY_TEXT_MAX_BYTES)
		return weir_fail(
			error, WEIR_INVALID,
			"are %zu bytes long with their exempt files included; at most %d fit in a record: a {\"list\": "
			"PATH} stays a file that each collector reads",
			length, WEIR_POLICY_TEXT_MAX_BYTES);
	/* What cannot be read again would make the state useless for good. */
	if (weir_policy_decode(policy->version, policy->text, length, &again, &why) != WEIR_OK)
		return weir_fail(error, WEIR_INVALID, "would be stored as what no weir reads, please report this: %s",
		                 why.text);
	bool same = strcmp(again->text, policy->text) == 0;
	weir_policy_free(again);
	return same ? WEIR_OK : weir_fail(error, WEIR_INVALID, "would be stored as other zones, please report this");
}

enum weir_status weir_policy_follow(struct weir_policy *policy, const struct weir_policy *const *history, size_t count,
                                    struct weir_error *error)
{
	enum weir_status status = weir_policy_give_ids(policy, history, count, error);
	for (size_t i = count; status == WEIR_OK && i-- > 0;)
		status = weir_policy_check_successor(history[i], policy, error);
	if (status == WEIR_OK && weir_policy_check_record(policy, error) != WEIR_OK) { /* ids may have grown */
		weir_error_prefix(error, "zones");
		status = WEIR_INVALID;
	}
	return status;
}
