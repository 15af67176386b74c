/* SPDX-License-Identifier: Apache-2.0 */
/* Zones are joined as canonical text: what files and defaults gave them is in it, so no file is read twice. */
#include "deploy/weir/backtest/policies.h"

#include "collector/follow/inputs.h"
#include "common/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

/* A weir_config_check. */
static enum weir_status check(void *context, struct weir_config *config, struct weir_error *error)
{
	if (config->policy == NULL) {
		struct weir_json root = weir_json_root(config->document), zones = weir_json_member(&root, "zones");
		return weir_json_fail(&zones, error, "is missing: a backtest judges by the zones of each --config");
	}
	return inputs_check_lists(config, context, error);
}

static enum weir_status load(struct backtest_policy *policy, struct weir_exempt_lists *lists)
{
	struct weir_error error;
	enum weir_status status = weir_config_load(policy->path, &policy->config, &error);
	if (status == WEIR_OK)
		status = check(lists, policy->config, &error);
	if (status != WEIR_OK)
		weir_config_print_mistakes("weir: ", policy->path, &(struct weir_config_check){check, lists}, &error);
	return status;
}

/* "policies/strict.json" is "strict". */
static char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
	size_t length = strlen(name);
	if (length > strlen(".json") && strcmp(name + length - strlen(".json"), ".json") == 0)
		length -= strlen(".json");
	return weir_copy(name, length);
}

static bool is_shared_name(const struct backtest_policies *policies, uint32_t policy)
{
	for (uint32_t i = 0; i < policies->count; i++)
		if (i != policy && strcmp(policies->at[i].name, policies->at[policy].name) == 0)
			return true;
	return false;
}

/* Policies in files of the same name are told apart by their paths. The same path twice is no comparison. */
static enum weir_status give_names(struct backtest_policies *policies)
{
	bool *shared = weir_alloc(policies->count, sizeof *shared);
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; i < policies->count; i++)
		policies->at[i].name = name_of(policies->at[i].path);
	for (uint32_t i = 0; i < policies->count; i++)
		shared[i] = is_shared_name(policies, i);
	for (uint32_t i = 0; i < policies->count; i++) {
		for (uint32_t k = 0; k < i; k++)
			if (strcmp(policies->at[i].path, policies->at[k].path) == 0) {
				fprintf(stderr, "weir backtest: --config %s is given twice\n", policies->at[i].path);
				status = WEIR_INVALID;
			}
		if (!shared[i])
			continue;
		free(policies->at[i].name);
		policies->at[i].name = weir_copy(policies->at[i].path, strlen(policies->at[i].path));
	}
	free(shared);
	return status;
}

/*
 * A decision that is counted is a record of its own policy. Judged together, each policy's decisions would be records for
 * the others.
 */
static enum weir_status check_alone(const struct backtest_policies *policies)
{
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; i < policies->count; i++) {
		const struct weir_policy *policy = policies->at[i].config->policy;
		for (uint32_t z = 0; z < policy->zone_count; z++) {
			if (!weir_zone_counts_decisions(&policy->zones[z]))
				continue;
			fprintf(stderr,
			        "weir: %s: zone \"%s\" counts the decisions of zones, which a backtest does not give it: leave "
			        "the zone out, or judge with weir run --once\n",
			        policies->at[i].path, policy->zones[z].name);
			status = WEIR_INVALID;
		}
	}
	return status;
}

/* ---- which zones answer the same question ---- */

static bool is_same_key(const struct weir_zone *a, const struct weir_zone *b)
{
	if (a->key_count != b->key_count)
		return false;
	for (uint32_t i = 0; i < a->key_count; i++) {
		const struct weir_key_field *left = &a->key[i], *right = &b->key[i];
		if (strcmp(left->field, right->field) != 0 || left->grouped != right->grouped ||
		    (left->grouped && (left->prefix4 != right->prefix4 || left->prefix6 != right->prefix6)))
			return false;
	}
	return true;
}

/* The zone of the first policy that a zone is compared with: that of its name; or, of two single ones, the other. */
static const struct weir_zone *counterpart(const struct backtest_policies *policies, uint32_t policy,
                                           const struct weir_zone *zone)
{
	const struct weir_policy *first = policies->at[0].config->policy;
	const struct weir_zone *base = weir_policy_zone_named(first, weir_span_of(zone->name));
	if (base == NULL && first->zone_count == 1 && policies->at[policy].config->policy->zone_count == 1)
		base = &first->zones[0];
	return base != NULL && is_same_key(base, zone) ? base : NULL;
}

static void note_owners(struct backtest_policies *policies)
{
	policies->owners = weir_alloc(policies->zone_count, sizeof *policies->owners);
	for (uint32_t i = 0; i < policies->count; i++)
		for (uint32_t z = 0; z < policies->at[i].config->policy->zone_count; z++)
			policies->owners[policies->at[i].first + z] = i;
}

static void make_pairs(struct backtest_policies *policies)
{
	const struct weir_policy *first = policies->at[0].config->policy;
	policies->pairs = weir_alloc(policies->zone_count, sizeof *policies->pairs);
	for (uint32_t place = first->zone_count; place < policies->zone_count; place++) {
		const struct weir_zone *base = counterpart(policies, policies->owners[place], policies_zone(policies, place));
		if (base != NULL)
			policies->pairs[policies->pair_count++] =
				(struct figures_pair){.base = (uint32_t)(base - first->zones), .zone = place};
	}
}

enum weir_exit policies_load(struct backtest_policies *policies, const char *const *paths, uint32_t count,
                             struct weir_exempt_lists *lists)
{
	enum weir_status status = WEIR_OK;
	policies->at = weir_alloc(count, sizeof *policies->at);
	policies->count = count;
	for (uint32_t i = 0; i < count; i++)
		policies->at[i].path = paths[i];
	if (give_names(policies) != WEIR_OK)
		status = WEIR_INVALID;
	for (uint32_t i = 0; i < count; i++) {
		policies->at[i].first = policies->zone_count;
		if (load(&policies->at[i], lists) != WEIR_OK)
			status = WEIR_INVALID;
		else
			policies->zone_count += policies->at[i].config->policy->zone_count;
	}
	if (status != WEIR_OK || check_alone(policies) != WEIR_OK)
		return WEIR_EXIT_USAGE;
	if (policies->zone_count > WEIR_ZONES_MAX) {
		fprintf(stderr, "weir backtest: the policies have %u zones, and at most %d can be judged together\n",
		        policies->zone_count, WEIR_ZONES_MAX);
		return WEIR_EXIT_USAGE;
	}
	note_owners(policies);
	make_pairs(policies);
	return WEIR_EXIT_NOT_YET;
}

void policies_deinit(struct backtest_policies *policies)
{
	for (uint32_t i = 0; i < policies->count; i++) {
		free(policies->at[i].name);
		weir_config_free(policies->at[i].config);
	}
	free(policies->at);
	free(policies->owners);
	free(policies->pairs);
}

/* ---- as one ---- */

enum weir_status policies_join(const struct backtest_policies *policies, struct weir_policy **joined,
                               struct weir_error *error)
{
	json_t *root = json_object(), *zones = json_array();
	char name[24];
	json_object_set_new(root, "zones", zones);
	for (uint32_t i = 0; i < policies->count; i++) {
		const char *text = policies->at[i].config->policy->text;
		json_t *own = json_loads(text, 0, NULL);
		json_array_extend(zones, json_object_get(own, "zones"));
		json_decref(own);
	}
	for (size_t i = 0; i < json_array_size(zones); i++) {
		json_t *zone = json_array_get(zones, i);
		snprintf(name, sizeof name, "%zu", i);
		json_object_set_new(zone, "name", json_string(name));
		json_object_set_new(zone, "id", json_integer((json_int_t)i + 1));
	}
	char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
	enum weir_status status = weir_policy_decode(0, text, strlen(text), joined, error);
	if (status != WEIR_OK)
		weir_error_prefix(error, "the policies cannot be judged together");
	free(text);
	json_decref(root);
	return status;
}

const struct weir_zone *policies_zone(const struct backtest_policies *policies, uint32_t place)
{
	const struct backtest_policy *policy = &policies->at[policies->owners[place]];
	return &policy->config->policy->zones[place - policy->first];
}
