/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output among the files that are read would be emptied by --once, and would
 * feed itself forever where it is followed. One in the configuration, or in the
 * state, is the end of that. Two outputs in one file would cut
 * each other's lines off at the next start.
 */
#include "deploy/weir/run/run_check.h"

#include "collector/follow/inputs.h"
#include "common/bytes/http_address.h"

#include <stdio.h>
#include <string.h>

/* An output by the name that it was asked for by. */
static const char *name_of(const char *path, const char *configured, const char *setting, const char *option)
{
	bool set = configured != NULL && path != NULL && strcmp(path, configured) == 0;
	return set && strcmp(path, "-") != 0 ? setting : option; /* standard output is the default */
}

/* All that a run writes. */
static void list_written(const struct run_options *options, struct written_files *written)
{
	const struct weir_config *config = options->config;
	int64_t rotate = options->once ? 0 : config->decisions.rotate_bytes, keep = config->decisions.keep;
	written_files_add_rotated(written,
	                          name_of(options->decisions_path, config->decisions.path, "decisions.path", "--decisions"),
	                          options->decisions_path, rotate, keep);
	written_files_add_rotated(
		written, name_of(options->shadow_path, config->decisions.shadow_path, "decisions.shadow_path", "--shadow"),
		options->shadow_path, rotate, keep);
	written_files_add(written, "--judged", options->once ? options->judged_path : NULL);
	written_files_add_rotated(
		written, name_of(options->dead_letters_path, config->deadletter.path, "deadletter.path", "--dead-letter"),
		options->dead_letters_path, options->once ? 0 : config->deadletter.rotate_bytes, config->deadletter.keep);
	for (size_t i = 0; !options->once && i < options->gateways.count; i++) {
		char name[32];
		snprintf(name, sizeof name, "gateways[%zu]", i);
		written_files_add_lists(written, name, &options->gateways.at[i].lists);
	}
}

const char *run_output_option(const struct run_options *options, const char *path)
{
	const struct weir_config *config = options->config;
	const struct {
		const char *configured, *option;
	} outputs[] = {{config->decisions.path, "--decisions"},
	               {config->decisions.shadow_path, "--shadow"},
	               {config->deadletter.path, "--dead-letter"}};
	for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
		if (outputs[i].configured == path) /* itself: one that was given, and is alike, is another */
			return outputs[i].option;
	return NULL;
}

void run_output_fault(const struct run_options *options, const char *path, struct weir_error *error)
{
	const char *option = run_output_option(options, path);
	const struct weir_error why = *error;
	if (option != NULL)
		(void)weir_fail(error, WEIR_IO, "%s: the configuration names it; %s PATH names another, - is standard output",
		                why.text, option);
}

bool run_names_servers(const struct weir_policy *policy)
{
	for (uint32_t z = 0; z < policy->zone_count; z++)
		for (uint32_t i = 0; i < policy->zones[z].exempt_list_count; i++)
			if (weir_http_address_meant(policy->zones[z].exempt_lists[i]))
				return true;
	return false;
}

bool run_names_robots(const struct weir_policy *policy)
{
	for (uint32_t z = 0; z < policy->zone_count; z++)
		if (policy->zones[z].exempt_verified_count > 0)
			return true;
	return false;
}

static enum weir_status check_written(const struct run_options *options, struct inputs *inputs,
                                      const struct written_files *written, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; status == WEIR_OK && i < inputs->source_count; i++) {
		struct source_stream **streams;
		size_t count = inputs_streams(inputs, i, &streams);
		if (options->once && inputs->sources[i]->ops->endless) {
			struct weir_json at = weir_json_element(&options->config->sources, i);
			status = weir_json_fail(&at, error, "has no end: run without --once");
		}
		for (size_t j = 0; status == WEIR_OK && j < count; j++)
			status = written_files_check_read(written, streams[j]->name, error);
		char name[32];
		snprintf(name, sizeof name, "sources[%zu]", i);
		if (status == WEIR_OK)
			status = written_files_check_source(written, inputs->sources[i], name, error);
	}
	return status == WEIR_OK ? written_files_check(written, error) : status;
}

enum weir_status run_check_outputs(const struct run_options *options, const struct written_files *written,
                                   struct weir_error *error)
{
	const struct weir_config *config = options->config;
	/* as --once: the sources list what is there, and wait for nothing */
	struct source_context context = {.once = true, .line_max_bytes = (uint32_t)config->collector.line_max_bytes};
	struct inputs *inputs;
	enum weir_status status = inputs_new(config, config->policy, options->lists, &context, NULL, &inputs, error);
	if (status != WEIR_OK)
		return status;
	status = check_written(options, inputs, written, error);
	if (status == WEIR_OK)
		status = written_files_check_config(written, config, options->config_path, error);
	if (status == WEIR_OK)
		status = written_files_check_state(written, options->state_directory, error);
	inputs_free(inputs);
	return status;
}

enum weir_status run_check(const struct run_options *options, struct weir_error *error)
{
	struct written_files written = {0};
	list_written(options, &written);
	enum weir_status status = run_check_outputs(options, &written, error);
	written_files_deinit(&written);
	return status;
}
