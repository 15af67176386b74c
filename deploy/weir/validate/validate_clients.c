/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a zone says of clients and may not mean: IPv6 addresses that are counted one by one, entries of "exempt" that no
 * client can have, sources that are not there.
 */
#include "deploy/weir/validate/validate_report.h"

#include <stdio.h>

enum { CUSTOMER_PREFIX6 = 64, WORDS_TOLD = 8 };

static void check_grouping(struct validate_report *report, uint32_t number)
{
	const struct weir_zone *zone = report->zones[number].zone;
	for (uint32_t i = 0; i < zone->key_count; i++) {
		const struct weir_key_field *field = &zone->key[i];
		bool address = field->grouped || strcmp(field->field, "ip") == 0;
		if (!address || field->prefix6 <= CUSTOMER_PREFIX6)
			continue;
		struct weir_text words = {0};
		char path[64];
		snprintf(path, sizeof path, "zones[%u].key[%u]", number, i);
		weir_text_printf(&words,
		                 "counts IPv6 addresses by themselves, of which one customer has 2^64: "
		                 "{\"field\": \"%s\", \"prefix6\": 64} counts networks (in a zone of a new name)",
		                 field->field);
		validate_warn(report, path, &words);
	}
}

/* Words against addresses. */
static void check_exempt(struct validate_report *report, uint32_t number)
{
	const struct weir_zone *zone = report->zones[number].zone;
	char path[64];
	snprintf(path, sizeof path, "zones[%u].exempt", number);
	if (!weir_zone_counts_addresses(zone))
		return;
	for (uint32_t i = 0; i < zone->exempt_word_count && i < WORDS_TOLD; i++) {
		struct weir_text words = {0};
		if (strchr(zone->exempt_words[i], '*') != NULL) {
			weir_text_printf(&words,
			                 "\"%.80s\" is compared with addresses as text, so it exempts all that look like it; give "
			                 "networks instead",
			                 zone->exempt_words[i]);
			validate_warn(report, path, &words);
			continue;
		}
		weir_text_printf(
			&words,
			"\"%.80s\" is no address, and the zone counts addresses: names are not resolved, so this exempts "
			"nobody whose address is logged",
			zone->exempt_words[i]);
		validate_warn(report, path, &words);
	}
	for (uint32_t i = 0; i < zone->exempt_list_count; i++) {
		struct exempt_list_facts facts = exempt_lists_facts(report->lists, zone->exempt_lists[i]);
		struct weir_text words = {0};
		if (facts.words == 0)
			continue;
		weir_text_printf(&words,
		                 "%u entries of %s are no addresses, such as \"%.80s\", and the zone counts addresses: names "
		                 "are not resolved, so these exempt nobody whose address is logged",
		                 facts.words, zone->exempt_lists[i], facts.first_word);
		validate_warn(report, path, &words);
	}
}

static bool has_source(const struct weir_config *config, const char *sought)
{
	for (size_t i = 0; i < config->source_count; i++) {
		struct weir_json source = weir_json_element(&config->sources, i), name = weir_json_member(&source, "name");
		if (json_is_string(name.value) && strcmp(json_string_value(name.value), sought) == 0)
			return true;
	}
	return false;
}

static void check_sources(struct validate_report *report, uint32_t number)
{
	const struct weir_zone *zone = report->zones[number].zone;
	for (uint32_t i = 0; i < zone->source_count; i++) {
		if (has_source(report->config, zone->sources[i]))
			continue;
		struct weir_text words = {0};
		char path[64];
		snprintf(path, sizeof path, "zones[%u].sources[%u]", number, i);
		weir_text_printf(&words, "no source here has the \"name\" \"%.80s\"", zone->sources[i]);
		validate_warn(report, path, &words);
	}
}

void validate_clients(struct validate_report *report)
{
	for (uint32_t i = 0; i < report->zone_count; i++) {
		check_grouping(report, i);
		check_exempt(report, i);
		check_sources(report, i);
	}
}
