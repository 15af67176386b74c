/* SPDX-License-Identifier: Apache-2.0 */
/* Zones whose keys are networks, and gateways that look for the client's own address alone. */
#include "deploy/gateways/gateway/gateway_settings.h"

#include <stdlib.h>
#include <string.h>

/* Of the others it cannot be said: clients of Redis may ask for networks, too, and a map of HAProxy may be one of addresses. */
static bool compares_texts(const struct gateway_settings *settings)
{
	static const char map[] = "nginx-map:";
	return strncmp(settings->to, map, sizeof map - 1) == 0;
}

bool gateway_keeps_zone(const struct gateway_settings *settings, const char *zone)
{
	for (size_t i = 0; i < settings->zone_count; i++)
		if (strcmp(settings->zones[i], zone) == 0)
			return true;
	return settings->zone_count == 0;
}

bool gateway_misses(const struct gateway_settings *settings, const struct weir_zone *zone, struct weir_text *words)
{
	const struct weir_key_field *field = NULL;
	for (uint32_t i = 0; i < zone->key_count && field == NULL; i++)
		if (zone->key[i].prefix4 < 32 || zone->key[i].prefix6 < 128)
			field = &zone->key[i];
	bool told = zone->mode != WEIR_SHADOW; /* of such a zone no gateway hears */
	if (field == NULL || !told || !compares_texts(settings) || !gateway_keeps_zone(settings, zone->name))
		return false;
	char *name = gateway_settings_name(settings);
	bool v4 = field->prefix4 < 32, v6 = field->prefix6 < 128;
	weir_text_printf(words, "zone %s counts ", zone->name);
	if (v4)
		weir_text_printf(words, "IPv4 in networks of /%u%s", field->prefix4, v6 ? ", " : "");
	if (v6)
		weir_text_printf(words, "IPv6 in networks of /%u", field->prefix6);
	weir_text_printf(words, ", and %s finds no members of a network, so it lets %s in: %s", name,
	                 v4 && v6 ? "whom the zone blocks" : (v4 ? "its blocked IPv4 clients" : "its blocked IPv6 clients"),
	                 zone->key_count == 1 ? "use nginx-geo"
	                                      : "take the prefix out of the key (in a zone of a new name)");
	free(name);
	return true;
}

void gateway_tell_misses(const struct gateway_settings *settings, const struct weir_policy *policy,
                         const struct weir_log *log)
{
	struct weir_text words = {0};
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		weir_text_clear(&words);
		if (gateway_misses(settings, &policy->zones[i], &words))
			weir_log(log, WEIR_LOG_WARNING, "gateways", "%.*s", (int)words.length, words.at);
	}
	weir_text_deinit(&words);
}

void gateway_list_tell_misses(const struct gateway_list *list, const struct weir_policy *policy,
                              const struct weir_log *log)
{
	for (size_t i = 0; i < list->count; i++)
		gateway_tell_misses(&list->at[i], policy, log);
}
