/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reading's configuration is the one that was given, with other zones, and with the named logs as its sources: `weir
 * backtest` reads them in the same way.
 */
#include "deploy/weir/suggest/setting.h"

#include "common/base/alloc.h"
#include "deploy/weir/backtest/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum weir_exit refuse(const struct weir_error *error)
{
	fprintf(stderr, "weir suggest: %s\n", error->text);
	return weir_exit_of(error->status);
}

const char *setting_name(const struct setting *setting)
{
	return setting->zone_name != NULL ? setting->zone_name : "suggested";
}

/* "ip,user" as a list. */
static json_t *key_of(const char *text)
{
	json_t *key = json_array();
	char *copy = weir_copy(text, strlen(text)), *rest = copy, *field;
	while ((field = strsep(&rest, ",")) != NULL)
		json_array_append_new(key, json_string(field));
	free(copy);
	return key;
}

/* The configuration's zone of that name, without what is suggested; or an empty one. */
static enum weir_status find_zone(struct setting *setting, struct weir_error *error)
{
	static const char *const suggested[] = {"name", "id", "mode", "limits", NULL};
	const struct weir_policy *policy = setting->given != NULL ? setting->given->policy : NULL;
	const struct weir_zone *known = policy != NULL && setting->zone_name != NULL
	                                    ? weir_policy_zone_named(policy, weir_span_of(setting->zone_name))
	                                    : NULL;
	if (known == NULL) {
		setting->zone = json_object();
		return WEIR_OK;
	}
	if (weir_zone_counts_decisions(known))
		return weir_fail(error, WEIR_INVALID,
		                 "zone \"%s\" counts the decisions of zones: its limits follow from theirs, and cannot be "
		                 "suggested",
		                 known->name);
	struct weir_json root = weir_json_root(setting->given->document), zones = weir_json_member(&root, "zones");
	setting->zone = json_deep_copy(json_array_get(zones.value, (size_t)(known - policy->zones)));
	for (int i = 0; suggested[i] != NULL; i++)
		json_object_del(setting->zone, suggested[i]);
	return WEIR_OK;
}

/* A configuration without zones is one, too: they are what is looked for. */
static enum weir_exit load_config(struct setting *setting)
{
	struct weir_error error;
	if (setting->config_path == NULL)
		return WEIR_EXIT_NOT_YET;
	if (weir_json_load(setting->config_path, &setting->document, &error) != WEIR_OK)
		return refuse(&error);
	struct weir_json root = weir_json_root(setting->document);
	if (json_object_get(root.value, "zones") == NULL ||
	    weir_config_load(setting->config_path, &setting->given, &error) == WEIR_OK)
		return WEIR_EXIT_NOT_YET;
	weir_config_print_mistakes("weir: ", setting->config_path, NULL, &error);
	return weir_exit_of(error.status);
}

enum weir_exit setting_load(struct setting *setting)
{
	struct weir_error error;
	enum weir_exit code = load_config(setting);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (find_zone(setting, &error) != WEIR_OK)
		return refuse(&error);
	if (setting->key != NULL)
		json_object_set_new(setting->zone, "key", key_of(setting->key));
	if (json_object_get(setting->zone, "key") != NULL)
		return WEIR_EXIT_NOT_YET;
	weir_fail(&error, WEIR_INVALID, "give --key FIELD, what is counted by, such as --key ip%s",
	          setting->given != NULL ? "; or --zone with the name of a zone of the configuration" : "");
	return refuse(&error);
}

void setting_deinit(struct setting *setting)
{
	weir_config_free(setting->given);
	weir_json_document_free(setting->document);
	json_decref(setting->zone);
}

json_t *setting_zone(const struct setting *setting, const char *name, json_t *limits)
{
	json_t *zone = json_object();
	json_object_set_new(zone, "name", json_string(name));
	json_object_update(zone, setting->zone);
	json_object_set_new(zone, "limits", limits);
	return zone;
}

/* What gives its lines once. @return what it is; NULL: it can be read again, or there is nothing to be read */
static const char *flow_of(const json_t *source)
{
	const char *type = json_string_value(json_object_get(source, "type"));
	const char *path = json_string_value(json_object_get(source, "path"));
	struct stat about;
	if (type == NULL || strcmp(type, WEIR_SOURCE_DECISIONS) == 0)
		return NULL;
	if (strcmp(type, "file") != 0)
		return type;
	return path != NULL && stat(path, &about) == 0 && S_ISFIFO(about.st_mode) ? path : NULL;
}

/* Everything is read twice, so it must be there twice. */
static enum weir_status check_files(const struct weir_config *config, struct weir_error *error)
{
	for (size_t i = 0; i < config->source_count; i++) {
		const char *flow = flow_of(json_array_get(config->sources.value, i));
		if (flow != NULL)
			return weir_fail(error, WEIR_INVALID,
			                 "the lines are read twice, and %s gives them once: name logs that are files", flow);
	}
	return WEIR_OK;
}

enum weir_status setting_config(const struct setting *setting, json_t *zones, struct weir_config **config,
                                struct weir_error *error)
{
	struct backtest_policy reads = {.path =
	                                    setting->config_path != NULL ? setting->config_path : WEIR_JSON_COMMAND_LINE};
	struct backtest_policies policies = {.at = &reads, .count = 1};
	json_t *root = setting->document != NULL ? json_copy(weir_json_root(setting->document).value) : json_object();
	json_object_set_new(root, "zones", zones);
	char *text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	enum weir_status status = weir_config_parse(WEIR_JSON_COMMAND_LINE, text, strlen(text), &reads.config, error);
	free(text);
	if (status != WEIR_OK)
		return status;
	status = sources_config(&policies, setting->logs, setting->log_count, setting->format, config, error);
	weir_config_free(reads.config);
	if (status == WEIR_OK && check_files(*config, error) != WEIR_OK) {
		weir_config_free(*config);
		*config = NULL;
		return error->status;
	}
	return status;
}
