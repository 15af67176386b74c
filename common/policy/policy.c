/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy as a whole: its life, and finding a zone. Parsing is in policy_zone.c and the files of a zone's parts, the
 * canonical text in policy_text.c, words for people in policy_sentence.c, one policy after others in policy_history.c.
 */
#include "common/policy/policy.h"

#include "common/base/alloc.h"
#include "common/base/suggest.h"
#include "common/bytes/http_address.h"
#include "common/policy/internal.h"

#include <stdlib.h>
#include <string.h>

static void free_zone(struct weir_zone *zone)
{
	for (uint32_t i = 0; i < zone->key_count; i++)
		free(zone->key[i].field);
	for (uint32_t i = 0; i < zone->exempt_word_count; i++)
		free(zone->exempt_words[i]);
	for (uint32_t i = 0; i < zone->limit_count; i++)
		weir_match_free(&zone->limits[i].done);
	weir_match_free(&zone->match);
	for (uint32_t i = 0; i < zone->exempt_match_count; i++)
		weir_match_free(&zone->exempt_matches[i]);
	for (uint32_t i = 0; i < zone->exempt_verified_count; i++)
		weir_verified_free(&zone->exempt_verified[i]);
	for (uint32_t i = 0; i < zone->source_count; i++)
		free(zone->sources[i]);
	for (uint32_t i = 0; i < zone->history_field_count; i++)
		free(zone->history_fields[i]);
	for (uint32_t i = 0; i < zone->exempt_file_count; i++)
		free(zone->exempt_files[i].path);
	for (uint32_t i = 0; i < zone->exempt_list_count; i++)
		free(zone->exempt_lists[i]);
	free(zone->arming.armed);
	free(zone->history_fields);
	free(zone->exempt_verified);
	free(zone->exempt_lists);
	free(zone->exempt_files);
	free(zone->exempt_matches);
	free(zone->sources);
	free(zone->exempt_words);
	free(zone->exempt_networks);
	free(zone->description);
	free(zone->name);
}

void weir_policy_free(struct weir_policy *policy)
{
	if (policy == NULL)
		return;
	for (uint32_t i = 0; i < policy->zone_count; i++)
		free_zone(&policy->zones[i]);
	free(policy->zones);
	free(policy->text);
	free(policy);
}

const struct weir_zone *weir_policy_zone(const struct weir_policy *policy, uint32_t id)
{
	/* Ids given by place are found at their place. */
	if (id >= 1 && id <= policy->zone_count && policy->zones[id - 1].id == id)
		return &policy->zones[id - 1];
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (policy->zones[i].id == id)
			return &policy->zones[i];
	return NULL;
}

enum weir_status weir_policy_decode(uint64_t version, const char *text, size_t length, struct weir_policy **policy,
                                    struct weir_error *error)
{
	static const char *const names[] = {"zones", NULL};
	struct weir_json_document *document;
	enum weir_status status = weir_json_parse("policy record", text, length, &document, error);
	if (status != WEIR_OK)
		return status;
	struct weir_json root = weir_json_root(document);
	struct weir_json zones = weir_json_member(&root, "zones");
	status = weir_json_only(&root, names, error);
	if (status == WEIR_OK)
		status = weir_policy_read(&zones, NULL, true, policy, error);
	if (status == WEIR_OK)
		(*policy)->version = version;
	weir_json_document_free(document);
	return status;
}

const struct weir_zone *weir_policy_zone_named(const struct weir_policy *policy, struct weir_span name)
{
	for (uint32_t i = 0; policy != NULL && i < policy->zone_count; i++)
		if (weir_span_equal(weir_span_of(policy->zones[i].name), name))
			return &policy->zones[i];
	return NULL;
}

void weir_policy_no_zone(const char *const *names, struct weir_span name, struct weir_error *error)
{
	/* Its beginning as words, for a stranger may ask for any bytes. */
	char words[2 * WEIR_ZONE_NAME_MAX_BYTES + 1];
	size_t length = name.length < sizeof words ? name.length : sizeof words - 1;
	for (size_t i = 0; i < length; i++)
		words[i] = name.at[i] != '\0' ? name.at[i] : ' ';
	words[length] = '\0';
	const char *near = weir_nearest_name(words, names);
	char list[256];
	weir_list_names(names, "\"", list, sizeof list);
	(void)weir_fail(error, WEIR_INVALID,
	                near != NULL ? "there is no zone \"%s\" (did you mean \"%s\"?)"
	                             : "there is no zone \"%s\" (known: %s)",
	                words, near != NULL ? near : list);
}

const struct weir_zone *weir_policy_find_zone(const struct weir_policy *policy, struct weir_span name,
                                              struct weir_error *error)
{
	const struct weir_zone *found = weir_policy_zone_named(policy, name);
	if (found != NULL)
		return found;
	const char **names = weir_alloc(policy->zone_count + 1u, sizeof(const char *));
	for (uint32_t i = 0; i < policy->zone_count; i++)
		names[i] = policy->zones[i].name;
	weir_policy_no_zone(names, name, error);
	free(names);
	return NULL;
}

bool weir_policy_has_lists(const struct weir_policy *policy)
{
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (policy->zones[i].exempt_list_count > 0)
			return true;
	return false;
}

enum weir_status weir_zone_takes_checks(const struct weir_zone *zone, struct weir_error *error)
{
	if (zone->feed != WEIR_FEED_LOG)
		return WEIR_OK;
	return weir_fail(
		error, WEIR_INVALID,
		"zone '%s' counts log lines alone (\"feed\": \"log\"): ask in another zone, or give this one the feed "
		"\"check\" or \"both\"",
		zone->name);
}

bool weir_policy_is_extended(const struct weir_policy *policy)
{
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		const struct weir_zone *zone = &policy->zones[i];
		if (zone->exempt_verified_count > 0 || zone->history_field_count > 0 || zone->arming.share_ppm > 0 ||
		    zone->feed != WEIR_FEED_BOTH || zone->durable)
			return true;
		for (uint32_t k = 0; k < zone->exempt_list_count; k++)
			if (weir_http_address_meant(zone->exempt_lists[k]))
				return true;
	}
	return false;
}

bool weir_zone_counts_by(const struct weir_zone *zone, const char *field)
{
	for (uint32_t i = 0; i < zone->key_count; i++)
		if (strcmp(zone->key[i].field, field) == 0)
			return true;
	return false;
}

bool weir_policy_counts_by(const struct weir_policy *policy, const char *field)
{
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (weir_zone_counts_by(&policy->zones[i], field))
			return true;
	return false;
}

bool weir_zone_takes_source(const struct weir_zone *zone, const char *name)
{
	for (uint32_t i = 0; i < zone->source_count; i++)
		if (name != NULL && strcmp(zone->sources[i], name) == 0)
			return true;
	return zone->source_count == 0;
}

bool weir_zone_counts_addresses(const struct weir_zone *zone)
{
	for (uint32_t i = 0; i < zone->key_count; i++)
		if (!weir_key_field_is_address(&zone->key[i]))
			return false;
	return zone->key_count > 0;
}
