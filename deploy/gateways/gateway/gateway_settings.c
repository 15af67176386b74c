/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the section "gateways": each entry by itself, then that no two keep one list. */
#include "deploy/gateways/gateway/gateway_settings.h"

#include "common/base/alloc.h"
#include "common/base/suggest.h"
#include "deploy/gateways/table/block_table.h"
#include "deploy/gateways/target/kinds/target_kinds.h"

#include <stdlib.h>
#include <string.h>

static enum weir_status refuse_zone(const struct weir_json *at, const char *name, const struct weir_policy *policy,
                                    struct weir_error *error)
{
	const char **names = weir_alloc(policy->zone_count + 1, sizeof *names);
	for (uint32_t i = 0; i < policy->zone_count; i++)
		names[i] = policy->zones[i].name;
	const char *nearest = weir_nearest_name(name, names);
	char known[256];
	weir_list_names(names, "\"", known, sizeof known);
	if (nearest != NULL)
		weir_json_fail(at, error, "there is no zone \"%.80s\"; did you mean \"%s\"?", name, nearest);
	else
		weir_json_fail(at, error, "there is no zone \"%.80s\"; the zones are %s", name, known);
	free(names);
	return WEIR_INVALID;
}

static bool has_zone(const struct weir_policy *policy, const char *name)
{
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (strcmp(policy->zones[i].name, name) == 0)
			return true;
	return false;
}

static enum weir_status read_zones(const struct weir_json *at, const struct weir_policy *policy,
                                   struct gateway_settings *settings, struct weir_error *error)
{
	size_t count = 0;
	if (!weir_json_exists(at))
		return WEIR_OK;
	enum weir_status status = weir_json_list(at, 1, WEIR_ZONES_MAX, &count, error);
	settings->zones = weir_alloc(count > 0 ? count : 1, sizeof *settings->zones);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json zone = weir_json_element(at, i);
		status = weir_json_string(&zone, &settings->zones[i], error);
		if (status == WEIR_OK && policy != NULL && !has_zone(policy, settings->zones[i]))
			status = refuse_zone(&zone, settings->zones[i], policy, error);
		settings->zone_count += status == WEIR_OK;
	}
	return status;
}

static enum weir_status read_object(const struct weir_json *at, const struct weir_policy *policy,
                                    struct gateway_settings *settings, struct weir_error *error)
{
	static const char *const names[] = {"to", "zones", "interval", "reload", "map", "max", NULL};
	struct weir_json to = weir_json_member(at, "to"), zones = weir_json_member(at, "zones");
	struct weir_json interval = weir_json_member(at, "interval"), reload = weir_json_member(at, "reload");
	struct weir_json map = weir_json_member(at, "map"), max = weir_json_member(at, "max");
	enum weir_status status;
	if (!json_is_object(at->value))
		return weir_json_fail(at, error,
		                      "must be a target, such as \"nginx-map:/etc/nginx/weir.map\", or an object, such "
		                      "as {\"to\": \"nft:inet/filter/weir\", \"zones\": [\"ssh\"]}");
	if ((status = weir_json_only(at, names, error)) != WEIR_OK ||
	    (status = weir_json_require(&to, "say where the list is kept, such as \"nft:inet/filter/weir\"", error)) !=
	        WEIR_OK ||
	    (status = weir_json_string(&to, &settings->to, error)) != WEIR_OK ||
	    (status = read_zones(&zones, policy, settings, error)) != WEIR_OK ||
	    (status = weir_json_duration(&interval, 0, GATEWAY_INTERVAL_MOST_MS, &settings->interval_ms, error)) !=
	        WEIR_OK ||
	    (status = weir_json_string(&reload, &settings->reload, error)) != WEIR_OK ||
	    (status = weir_json_string(&map, &settings->map, error)) != WEIR_OK)
		return status;
	return weir_json_int(&max, 1, GATEWAY_BLOCKS_MOST, &settings->max, error);
}

/* Only its words: what it leads to need not be there yet. */
static enum weir_status check_target(const struct gateway_settings *settings, const struct weir_config *config,
                                     struct weir_error *error)
{
	const struct weir_log silent = {.fd = -1, .level = WEIR_LOG_ERROR};
	const struct target_options options = {.zones = settings->zones,
	                                       .zone_count = settings->zone_count,
	                                       .partitions = (uint32_t)config->bus.partitions,
	                                       .reload = settings->reload,
	                                       .map = settings->map,
	                                       .log = &silent};
	struct target *target;
	struct weir_error words;
	if (target_open(settings->to, &options, &target, &words) != WEIR_OK)
		return weir_json_fail(&settings->at, error, "%s", words.text);
	(void)!target->ops->close(target, &words);
	return WEIR_OK;
}

static enum weir_status read_one(const struct weir_config *config, struct gateway_settings *settings,
                                 struct weir_error *error)
{
	settings->interval_ms = -1;
	settings->max = BLOCK_TABLE_MAX_DEFAULT;
	enum weir_status status = json_is_string(settings->at.value)
	                              ? weir_json_string(&settings->at, &settings->to, error)
	                              : read_object(&settings->at, config->policy, settings, error);
	return status == WEIR_OK ? check_target(settings, config, error) : status;
}

enum weir_status gateway_list_read(const struct weir_config *config, struct gateway_list *list,
                                   struct weir_error *error)
{
	list->at = weir_alloc(config->gateway_count > 0 ? config->gateway_count : 1, sizeof *list->at);
	list->count = 0;
	for (size_t i = 0; i < config->gateway_count; i++) {
		struct gateway_settings *settings = &list->at[list->count++];
		settings->at = weir_json_element(&config->gateways, i);
		enum weir_status status = read_one(config, settings, error);
		for (size_t j = 0; status == WEIR_OK && j < i; j++)
			if (strcmp(list->at[j].to, settings->to) == 0)
				status = weir_json_fail(&settings->at, error,
				                        "gateways[%zu] keeps the same list: name it once, with the zones of both", j);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

void gateway_list_deinit(struct gateway_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->at[i].zones);
	free(list->at);
	*list = (struct gateway_list){0};
}

void gateway_name(struct weir_text *text, const char *to)
{
	static const char command[] = "exec:";
	const char *host = strstr(to, "://"), *account = host != NULL ? strrchr(host, '@') : NULL;
	if (account != NULL)
		weir_text_printf(text, "%.*s%s", (int)(host + 3 - to), to, account + 1);
	else if (strncmp(to, command, sizeof command - 1) == 0)
		weir_text_append(text, to, strcspn(to, " \t"));
	else
		weir_text_puts(text, to);
}
