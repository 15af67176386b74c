/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each policy is read once, by the worker that first sees it. A zone is described
 * as in the newest policy that has it. All workers share the result.
 */
#include "archiver/api/api_zones.h"

#include "archiver/arming/waiting.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/cluster/shadow_note.h"

#include <pthread.h>
#include <stdlib.h>

enum { FRESH_MS = 1000 }; /* so old may be what is known where a zone is found */

struct known_zone {
	struct api_zone zone;
	uint64_t version;       /* of the newest policy that has it */
	struct weir_text about; /* its object as JSON, but for version, live and shadow_until */
	struct weir_text armed; /* why it waits no more; "": it never did */
};

struct api_zones {
	const struct weir_log *log;
	bool momentary;
	pthread_mutex_t mutex;
	uint64_t version; /* of the newest policy; 0: none */
	int64_t read_ms;  /* monotonic: when policies were last asked for */
	struct known_zone *known;
	size_t count;
	struct waiting waiting; /* of the newest policy */
};

struct api_zones *api_zones_new(const struct weir_log *log, bool momentary)
{
	struct api_zones *zones = weir_alloc(1, sizeof *zones);
	zones->log = log;
	zones->momentary = momentary;
	zones->read_ms = INT64_MIN / 2;
	pthread_mutex_init(&zones->mutex, NULL);
	return zones;
}

static void forget_all(struct api_zones *zones)
{
	for (size_t i = 0; i < zones->count; i++) {
		weir_text_deinit(&zones->known[i].about);
		weir_text_deinit(&zones->known[i].armed);
	}
	free(zones->known);
	waiting_deinit(&zones->waiting);
	zones->known = NULL;
	zones->count = 0;
	zones->version = 0;
}

void api_zones_free(struct api_zones *zones)
{
	if (zones == NULL)
		return;
	forget_all(zones);
	pthread_mutex_destroy(&zones->mutex);
	free(zones);
}

/* ---- a policy ---- */

static void describe_limit(struct weir_json_writer *json, const struct weir_limit *limit)
{
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, "algorithm", limit->algorithm->name);
	weir_json_write_int(json, "rate", limit->rate);
	weir_json_write_int(json, "window_ms", limit->window_ms);
	weir_json_write_int(json, "burst", limit->burst);
	weir_json_write_int(json, "lateness_ms", weir_limit_member(limit, "lateness"));
	weir_json_write_end(json);
}

static void describe_zone(struct weir_text *text, const struct weir_zone *zone)
{
	struct weir_json_writer json = weir_json_writer(text);
	weir_text_clear(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_uint(&json, "id", zone->id);
	weir_json_write_words(&json, "name", zone->name);
	weir_json_write_string(&json, "description", weir_span_of(zone->description));
	weir_json_write_array(&json, "key");
	for (uint32_t i = 0; i < zone->key_count; i++)
		weir_json_write_words(&json, NULL, zone->key[i].field);
	weir_json_write_end(&json);
	weir_json_write_words(&json, "mode", weir_mode_name(zone->mode));
	weir_json_write_words(&json, "count", zone->count_all ? "all" : "passed");
	weir_json_write_bool(&json, "history", zone->history);
	weir_json_write_array(&json, "history_fields");
	for (uint32_t i = 0; i < zone->history_field_count; i++)
		weir_json_write_words(&json, NULL, zone->history_fields[i]);
	weir_json_write_end(&json);
	weir_json_write_int(&json, "block_for_ms", zone->block_for_ms);
	weir_json_write_array(&json, "block_list_ms");
	for (uint32_t i = 0; i < zone->block_list_count; i++)
		weir_json_write_int(&json, NULL, zone->block_list_ms[i]);
	weir_json_write_end(&json);
	weir_json_write_int(&json, "forgive_after_ms", zone->forgive_after_ms);
	weir_json_write_array(&json, "limits");
	for (uint32_t i = 0; i < zone->limit_count; i++)
		describe_limit(&json, &zone->limits[i]);
	weir_json_write_end(&json);
	weir_json_write_end(&json);
}

/* The place of a zone's id, kept in order. */
static struct known_zone *place_of(struct api_zones *zones, uint32_t id)
{
	size_t at = 0;
	while (at < zones->count && zones->known[at].zone.id < id)
		at++;
	if (at < zones->count && zones->known[at].zone.id == id)
		return &zones->known[at];
	zones->known = weir_realloc(zones->known, zones->count + 1, sizeof *zones->known);
	memmove(&zones->known[at + 1], &zones->known[at], (zones->count - at) * sizeof *zones->known);
	zones->count++;
	zones->known[at] = (struct known_zone){.zone = {.id = id}};
	return &zones->known[at];
}

static enum weir_status take_policy(void *context, uint64_t version, struct weir_span text)
{
	struct api_zones *zones = context;
	struct weir_policy *policy;
	struct weir_error error;
	zones->version = version;
	if (weir_policy_decode(version, text.at, text.length, &policy, &error) != WEIR_OK) {
		weir_log(zones->log, WEIR_LOG_WARNING, "api",
		         "policy %llu cannot be read: %s. Zones that only it names are shown by number. Upgrade this archiver "
		         "(runbook: foreign-messages)",
		         (unsigned long long)version, error.text);
		return WEIR_OK;
	}
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct known_zone *known = place_of(zones, policy->zones[i].id);
		size_t length = strlen(policy->zones[i].name);
		memcpy(known->zone.name, policy->zones[i].name, length + 1);
		known->zone.history = policy->zones[i].history;
		known->version = version;
		weir_text_clear(&known->armed);
		if (policy->zones[i].arming.armed != NULL)
			weir_text_puts(&known->armed, policy->zones[i].arming.armed);
		describe_zone(&known->about, &policy->zones[i]);
	}
	waiting_take(&zones->waiting, policy);
	weir_policy_free(policy);
	return WEIR_OK;
}

static enum weir_status refresh(struct api_zones *zones, struct weir_store *store, struct weir_error *error)
{
	if (zones->momentary)
		forget_all(zones);
	enum weir_status status = store->ops->policy_each(store, zones->version + 1, take_policy, zones, error);
	if (status == WEIR_OK)
		zones->read_ms = weir_monotonic_ms();
	return status;
}

/* ---- what is asked ---- */

static const struct known_zone *find(const struct api_zones *zones, struct weir_span name)
{
	const struct known_zone *best = NULL;
	for (size_t i = 0; i < zones->count; i++)
		if (weir_span_equal(weir_span_of(zones->known[i].zone.name), name) &&
		    (best == NULL || zones->known[i].version >= best->version))
			best = &zones->known[i];
	return best;
}

enum weir_status api_zones_find(struct api_zones *zones, struct weir_store *store, struct weir_span name,
                                struct api_zone *found, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	pthread_mutex_lock(&zones->mutex);
	const struct known_zone *known = find(zones, name);
	if (known == NULL || weir_monotonic_ms() - zones->read_ms > FRESH_MS) {
		status = refresh(zones, store, error);
		known = find(zones, name);
	}
	if (status == WEIR_OK && known != NULL)
		*found = known->zone;
	pthread_mutex_unlock(&zones->mutex);
	return status == WEIR_OK && known == NULL ? WEIR_END : status;
}

/* What an archiver found of it since it waits as it does, or why it was armed. */
static enum weir_status write_shadow_until(const struct api_zones *zones, const struct known_zone *known,
                                           struct weir_store *store, struct weir_json_writer *json,
                                           struct weir_error *error)
{
	struct weir_shadow_note note = {0};
	const struct waiting_zone *waits = waiting_find(&zones->waiting, known->zone.id);
	enum weir_status status = waits != NULL ? weir_shadow_note_get(store, waits->id, &note, error) : WEIR_OK;
	if (status != WEIR_OK)
		return status;
	if (waits != NULL)
		weir_json_write_words(json, "shadow_until",
		                      note.version == waits->version ? note.words : WEIR_SHADOW_NOT_LOOKED);
	else
		weir_json_write_string(json, "shadow_until", weir_text_span(&known->armed));
	return WEIR_OK;
}

enum weir_status api_zones_describe(struct api_zones *zones, struct weir_store *store, struct weir_json_writer *json,
                                    struct weir_error *error)
{
	pthread_mutex_lock(&zones->mutex);
	enum weir_status status = refresh(zones, store, error);
	weir_json_write_uint(json, "policy_version", zones->version);
	weir_json_write_array(json, "zones");
	for (size_t i = 0; i < zones->count; i++) {
		const struct known_zone *known = &zones->known[i];
		weir_json_write_object(json, NULL);
		weir_json_write_members(json, (struct weir_span){known->about.at, (uint32_t)known->about.length});
		weir_json_write_uint(json, "policy_version", known->version);
		weir_json_write_bool(json, "live", known->version == zones->version);
		if (status == WEIR_OK)
			status = write_shadow_until(zones, known, store, json, error);
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
	pthread_mutex_unlock(&zones->mutex);
	return status;
}
