/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output among the files that are read would be emptied by --once, and would
 * feed itself forever where it is followed. Names are not enough: a link, or
 * standard output, may lead to the same file, so files are compared.
 */
#include "deploy/weir/run/run_check.h"

#include "collector/follow/inputs.h"
#include "common/bytes/http_address.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The regular file behind a path; "-" is the descriptor's. */
static bool regular_file(const char *path, int standard, struct stat *about)
{
	return (strcmp(path, "-") == 0 ? fstat(standard, about) : stat(path, about)) == 0 && S_ISREG(about->st_mode);
}

enum weir_status run_check_file(const struct run_output *outputs, const char *source, struct weir_error *error)
{
	struct stat read, written;
	if (!regular_file(source, STDIN_FILENO, &read))
		return WEIR_OK;
	for (; outputs != NULL && outputs->option != NULL; outputs++) {
		if (outputs->path == NULL || !regular_file(outputs->path, STDOUT_FILENO, &written))
			continue;
		if (read.st_dev == written.st_dev && read.st_ino == written.st_ino)
			return weir_fail(error, WEIR_INVALID, "%s %s would write into %s, which is also read: choose another file",
			                 outputs->option, outputs->path, strcmp(source, "-") == 0 ? "standard input" : source);
	}
	return WEIR_OK;
}

enum weir_status run_check(const struct run_options *options, struct weir_error *error)
{
	const struct run_output outputs[] = {{"--decisions", options->decisions_path},
	                                     {"--shadow", options->shadow_path},
	                                     {"--judged", options->once ? options->judged_path : NULL},
	                                     {"--dead-letter", options->dead_letters_path},
	                                     {NULL, NULL}};
	return run_check_outputs(options, outputs, error);
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

enum weir_status run_check_outputs(const struct run_options *options, const struct run_output *outputs,
                                   struct weir_error *error)
{
	const struct weir_config *config = options->config;
	/* as --once: the sources list what is there, and wait for nothing */
	struct source_context context = {.once = true, .line_max_bytes = (uint32_t)config->collector.line_max_bytes};
	struct inputs *inputs;
	enum weir_status status = inputs_new(config, config->policy, options->lists, &context, NULL, &inputs, error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; status == WEIR_OK && i < inputs->source_count; i++) {
		struct source_stream **streams;
		size_t count = inputs_streams(inputs, i, &streams);
		if (options->once && inputs->sources[i]->ops->endless) {
			struct weir_json at = weir_json_element(&config->sources, i);
			status = weir_json_fail(&at, error, "has no end: run without --once");
		}
		for (size_t j = 0; status == WEIR_OK && j < count; j++)
			status = run_check_file(outputs, streams[j]->name, error);
	}
	inputs_free(inputs);
	return status;
}
