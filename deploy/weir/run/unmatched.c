/* SPDX-License-Identifier: Apache-2.0 */
/* Such a run is not an error, but would look like one in which nobody was over a limit. */
#include "deploy/weir/run/unmatched.h"

#include "collector/follow/inputs.h"

enum { VAIN_TOLD = 8 };

struct teller {
	const struct weir_log *log;
};

static void tell(void *context, const struct weir_zone *zone, const char *field)
{
	const struct teller *teller = context;
	weir_log(teller->log, WEIR_LOG_WARNING, "policy", "zone \"%s\" never matches: no source provides the field \"%s\"",
	         zone->name, field);
}

/* Entries of "exempt" that exempt nobody, and sources that no one reads here. */
static void tell_vain(const struct weir_config *config, const struct weir_zone *zone, struct exempt_lists *lists,
                      const struct weir_log *log)
{
	bool addresses = weir_zone_counts_addresses(zone);
	for (uint32_t i = 0; addresses && i < zone->exempt_word_count && i < VAIN_TOLD; i++)
		weir_log(
			log, WEIR_LOG_WARNING, "policy",
			strchr(zone->exempt_words[i], '*') != NULL
				? "zone \"%s\" counts addresses, and \"%.80s\" in its exempt exempts all that look like it as text"
				: "zone \"%s\" counts addresses, so \"%.80s\" in its exempt exempts nobody: names are not resolved",
			zone->name, zone->exempt_words[i]);
	for (uint32_t i = 0; addresses && i < zone->exempt_list_count; i++) {
		struct exempt_list_facts facts = exempt_lists_facts(lists, zone->exempt_lists[i]);
		if (facts.words > 0)
			weir_log(log, WEIR_LOG_WARNING, "policy",
			         "zone \"%s\" counts addresses, so %u entries of %s exempt nobody, such as \"%.80s\": names are "
			         "not resolved",
			         zone->name, facts.words, zone->exempt_lists[i], facts.first_word);
	}
	for (uint32_t i = 0; i < zone->source_count; i++) {
		bool found = false;
		for (size_t k = 0; k < config->source_count && !found; k++) {
			struct weir_json source = weir_json_element(&config->sources, k), name = weir_json_member(&source, "name");
			found = json_is_string(name.value) && strcmp(json_string_value(name.value), zone->sources[i]) == 0;
		}
		if (!found)
			weir_log(log, WEIR_LOG_WARNING, "policy",
			         "zone \"%s\" names the source \"%.80s\", but no source has that name", zone->name,
			         zone->sources[i]);
	}
}

void unmatched_tell(const struct weir_config *config, const struct weir_policy *policy, struct exempt_lists *lists,
                    const struct weir_log *log)
{
	struct teller teller = {.log = log};
	struct weir_error error;
	if (inputs_each_unmatched(config, policy, lists, tell, &teller, &error) != WEIR_OK)
		weir_log(log, WEIR_LOG_WARNING, "policy", "%s", error.text);
	for (uint32_t i = 0; i < policy->zone_count; i++)
		tell_vain(config, &policy->zones[i], lists, log);
}
