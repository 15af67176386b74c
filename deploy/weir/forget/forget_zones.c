/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which zones a key is forgotten: all that any policy ever had, as rows may
 * be older than the newest one; those whose keys have its values among others;
 * and those of check_velocity, which are the site's own.
 */
#include "deploy/weir/forget/forget.h"

#include "common/base/alloc.h"
#include "deploy/weir/overrides/override_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_wanted(const struct forget *forget, const uint32_t *ids, size_t count, uint32_t id)
{
	bool found = forget->options.zone == NULL;
	for (size_t i = 0; i < count && !found; i++)
		found = ids[i] == id;
	return found;
}

static bool is_known(const struct forget *forget, uint32_t id, const char *name)
{
	for (uint32_t i = 0; i < forget->zone_count; i++)
		if (forget->zones[i].id == id && strcmp(forget->zones[i].name, name) == 0)
			return true;
	return false;
}

static struct forget_zone *add_zone(struct forget *forget, uint32_t id, const char *name, struct weir_span key)
{
	forget->zones = weir_realloc(forget->zones, forget->zone_count + 1u, sizeof *forget->zones);
	struct forget_zone *zone = &forget->zones[forget->zone_count++];
	*zone = (struct forget_zone){.id = id, .key_length = key.length};
	snprintf(zone->name, sizeof zone->name, "%s", name);
	if (key.length > 0)
		memcpy(zone->key, key.at, key.length);
	return zone;
}

bool forget_has(const struct forget *forget, uint32_t id, const char *name, struct weir_span key)
{
	for (uint32_t i = 0; i < forget->zone_count; i++)
		if (forget->zones[i].id == id && strcmp(forget->zones[i].name, name) == 0 &&
		    weir_span_equal(forget_key(&forget->zones[i]), key))
			return true;
	return false;
}

void forget_add(struct forget *forget, const struct weir_zone *zone, struct weir_span key, bool live)
{
	struct forget_zone *added = add_zone(forget, zone->id, zone->name, key);
	added->zone = zone;
	added->live = live;
	added->shared = forget_is_shared(zone, key);
}

/* A zone of a policy, if the key can be one of its. */
static void take_zone(struct forget *forget, const struct weir_policy *policy, const struct weir_zone *zone)
{
	struct override_options options = forget->options;
	struct override_command command = {.kind = OVERRIDE_LIFT};
	if (is_known(forget, zone->id, zone->name) || (options.key_hex == NULL && options.value_count != zone->key_count))
		return;
	options.zone = zone->name;
	if (override_key_make(&options, policy, &command, NULL) != WEIR_OK || command.scope != OVERRIDE_OF_KEY)
		return;
	forget_add(forget, zone, override_key(&command), policy == forget->history.policies[forget->history.count - 1]);
}

/* The ids that --zone names, by any policy. The caller frees. */
static uint32_t *named_ids(const struct forget *forget, size_t *count)
{
	uint32_t *ids = NULL;
	*count = 0;
	for (size_t p = forget->history.count; forget->options.zone != NULL && p > 0; p--) {
		const struct weir_policy *policy = forget->history.policies[p - 1];
		for (uint32_t i = 0; i < policy->zone_count; i++) {
			if (strcmp(policy->zones[i].name, forget->options.zone) != 0 ||
			    (*count > 0 && is_wanted(forget, ids, *count, policy->zones[i].id)))
				continue;
			ids = weir_realloc(ids, *count + 1, sizeof *ids);
			ids[(*count)++] = policy->zones[i].id;
		}
	}
	return ids;
}

static void take_policies(struct forget *forget)
{
	size_t id_count;
	uint32_t *ids = named_ids(forget, &id_count);
	for (size_t p = forget->history.count; p > 0; p--) {
		const struct weir_policy *policy = forget->history.policies[p - 1];
		for (uint32_t i = 0; i < policy->zone_count; i++)
			if (is_wanted(forget, ids, id_count, policy->zones[i].id))
				take_zone(forget, policy, &policy->zones[i]);
	}
	free(ids);
}

/* ---- check_velocity ---- */

struct velocity {
	struct forget *forget;
	struct weir_span key; /* as its callers give it: nothing is joined or escaped */
};

/* Columns: zone_id, name. */
static enum weir_status take_velocity(void *context, const struct weir_sql_value *columns, unsigned count)
{
	const struct velocity *velocity = context;
	char name[WEIR_ZONE_NAME_MAX_BYTES + 1];
	(void)count;
	snprintf(name, sizeof name, "%.*s", (int)columns[1].text.length, columns[1].text.at);
	if (velocity->forget->options.zone != NULL && strcmp(velocity->forget->options.zone, name) != 0)
		return WEIR_OK;
	add_zone(velocity->forget, (uint32_t)columns[0].number, name, velocity->key)->velocity = true;
	return WEIR_OK;
}

static enum weir_status take_velocities(struct forget *forget, struct weir_error *error)
{
	struct velocity velocity = {.forget = forget};
	struct override_command command = {.kind = OVERRIDE_LIFT};
	const struct override_options *options = &forget->options;
	if (options->key_hex != NULL) {
		enum weir_status status = override_key_hex(options->key_hex, &command, error);
		if (status != WEIR_OK)
			return status;
		velocity.key = override_key(&command);
	} else {
		if (options->value_count != 1 || strlen(options->values[0]) > WEIR_KEY_MAX_BYTES)
			return WEIR_OK;
		velocity.key = weir_span_of(options->values[0]);
	}
	return forget->backend.store->ops->query(forget->backend.store,
	                                         "SELECT zone_id, name FROM zone_master WHERE limit_number = 0 ORDER BY 1",
	                                         NULL, 0, take_velocity, &velocity, error);
}

enum weir_status forget_find_zones(struct forget *forget, struct weir_error *error)
{
	struct override_command command = {.kind = OVERRIDE_LIFT};
	take_policies(forget);
	forget->known_count = forget->zone_count;
	enum weir_status status = forget_find_wider(forget, error);
	if (status == WEIR_OK)
		status = take_velocities(forget, error);
	if (status != WEIR_OK || forget->zone_count > 0)
		return status;
	if (forget->history.count == 0)
		return weir_fail(error, WEIR_INVALID, "no policy yet, so no zone has keys");
	/* By the words of weir lift: which zones there are, and what their keys are made of. */
	status = override_key_make(&forget->options, forget->history.policies[forget->history.count - 1], &command, error);
	if (status == WEIR_OK && command.scope == OVERRIDE_OF_NETWORK)
		return weir_fail(error, WEIR_INVALID, "a network is no key, and has no counts: weir lift ends its block");
	return status == WEIR_OK ? weir_fail(error, WEIR_INVALID, "no zone's key takes these values") : status;
}
