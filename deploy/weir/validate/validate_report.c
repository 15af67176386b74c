/* SPDX-License-Identifier: Apache-2.0 */
/* A report's life, and the warnings that concern the whole configuration. */
#include "deploy/weir/validate/validate_report.h"

#include "collector/follow/inputs.h"
#include "common/base/alloc.h"
#include "common/files/durable_file.h"
#include "common/files/file_place.h"
#include "common/http/listen_socket.h"
#include "deploy/weir/backend/state_directory.h"
#include "deploy/weir/run/run_check.h"
#include "limiter/bucket/compiled_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void validate_warn(struct validate_report *report, const char *path, struct weir_text *words)
{
	if (report->warning_count == VALIDATE_WARNINGS_MAX) {
		report->warnings_left_out++;
		weir_text_deinit(words);
		return;
	}
	weir_text_append(words, "", 1);
	struct validate_warning *warning = &report->warnings[report->warning_count++];
	snprintf(warning->path, sizeof warning->path, "%s", path);
	warning->words = words->at;
	*words = (struct weir_text){0};
}

void validate_report_name_zones(struct validate_report *report)
{
	for (uint32_t i = 0; i < report->zone_count; i++) {
		free(report->zones[i].sentence);
		report->zones[i].sentence = weir_zone_describe(report->zones[i].zone);
	}
}

static void inspect_zones(struct validate_report *report)
{
	const struct weir_policy *policy = report->policy;
	if (policy->zone_count == 0)
		return;
	struct compiled_policy *compiled = compiled_policy_new(&policy, 1);
	report->zone_count = policy->zone_count;
	report->zones = weir_alloc(policy->zone_count, sizeof *report->zones);
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		const struct compiled_zone *zone = compiled_policy_zone_at(compiled, i);
		report->zones[i].zone = zone->zone;
		report->zones[i].footprint = footprint_of(zone->layout);
	}
	compiled_policy_free(compiled);
	validate_report_name_zones(report);
}

/* Whether a file can be made or written there. */
static void check_output(struct validate_report *report, const char *name, const char *path)
{
	char directory[WEIR_PATH_BYTES];
	struct weir_text words = {0};
	if (path == NULL || weir_file_descriptor_of(path) >= 0 || weir_directory_of(path, directory, NULL) != WEIR_OK)
		return;
	if (access(directory, F_OK) != 0)
		weir_text_printf(&words, "the directory %s does not exist", directory);
	else if (access(path, F_OK) == 0 ? access(path, W_OK) != 0 : access(directory, W_OK) != 0)
		weir_text_printf(&words, "this user cannot write %s", path);
	if (words.length > 0)
		validate_warn(report, name, &words);
}

static void check_outputs(struct validate_report *report)
{
	const struct weir_config *config = report->config;
	check_output(report, "decisions.path", config->decisions.path);
	check_output(report, "decisions.shadow_path", config->decisions.shadow_path);
	check_output(report, "deadletter.path", config->deadletter.path);
	for (uint32_t i = 0; i < report->zone_count; i++) {
		if (report->zones[i].zone->mode != WEIR_SHADOW || config->decisions.shadow_path != NULL ||
		    config->archiver.enabled)
			continue;
		struct weir_text words = {0};
		char path[64];
		snprintf(path, sizeof path, "zones[%u].mode", i);
		weir_text_puts(
			&words,
			"is shadow, but \"decisions\" has no \"shadow_path\", and there is no archive: its decisions are only "
			"counted");
		validate_warn(report, path, &words);
	}
	if (config->source_count == 0 && !weir_config_takes_checks(config)) {
		struct weir_text words = {0};
		weir_text_puts(&words, "is empty: nothing will be read");
		validate_warn(report, "sources", &words);
	}
}

void validate_places(struct validate_report *report)
{
	const struct weir_config *config = report->config;
	struct weir_config_place places[WEIR_CONFIG_PLACES];
	weir_config_places(config, places);
	for (size_t i = 0; i < WEIR_CONFIG_PLACES; i++) {
		struct weir_text words = {0};
		struct weir_error error;
		uint16_t bound;
		char path[32];
		int fd;
		if (places[i].host == NULL || config->bus.type != WEIR_BUS_LOCAL)
			continue; /* in a cluster another machine may listen there */
		if (weir_listen_socket(places[i].host, 0, false, &fd, &bound, &error) == WEIR_OK) {
			close(fd);
			continue;
		}
		snprintf(path, sizeof path, "listen.%s", places[i].setting);
		weir_text_printf(&words, "%s; weir run would not start here", error.text);
		validate_warn(report, path, &words);
	}
}

enum weir_status validate_report_begin(const struct weir_config *config, const char *config_path,
                                       const char *state_path, struct validate_report *report, struct weir_error *error)
{
	static const struct weir_policy no_zones;
	*report = (struct validate_report){.config = config,
	                                   .config_path = config_path,
	                                   .state_path = state_path,
	                                   .policy = config->policy != NULL ? config->policy : &no_zones,
	                                   .lists = weir_exempt_lists_new(NULL, NULL)};
	report->warnings = weir_alloc(VALIDATE_WARNINGS_MAX, sizeof *report->warnings);
	return inputs_check_lists(config, report->lists, error);
}

/* An output that is a file; where standard output leads to when it runs is not known here. */
static const char *file_of(const char *path)
{
	return path != NULL && weir_file_descriptor_of(path) < 0 ? path : NULL;
}

/* What a run would refuse to write. */
static enum weir_status check_run(const struct validate_report *report, struct weir_error *error)
{
	const struct weir_config *config = report->config;
	if (config->bus.type != WEIR_BUS_LOCAL)
		return WEIR_OK;
	char state[WEIR_PATH_BYTES], dead_letters[WEIR_PATH_BYTES] = "";
	const char *directory = report->state_path;
	struct weir_error ignored; /* what has no usual state is told by a start */
	if (directory == NULL && state_directory_default(state, &ignored) == WEIR_OK)
		directory = state;
	if (config->deadletter.path == NULL && directory != NULL)
		(void)!weir_path_format(dead_letters, &ignored, "%s/dead-letter.jsonl", directory);
	struct run_options options = {
		.config = (struct weir_config *)(uintptr_t)config,
		.lists = report->lists,
		.gateways = report->gateways,
		.decisions_path = file_of(config->decisions.path),
		.shadow_path = file_of(config->decisions.shadow_path),
		.dead_letters_path = dead_letters[0] != '\0' ? dead_letters : file_of(config->deadletter.path),
		.config_path = report->config_path,
		.state_directory = directory,
	};
	return run_check(&options, error);
}

static void check_gateways(struct validate_report *report)
{
	for (size_t i = 0; i < report->gateways.count; i++)
		for (uint32_t z = 0; z < report->zone_count; z++) {
			struct weir_text words = {0};
			if (gateway_misses(&report->gateways.at[i], report->zones[z].zone, &words))
				validate_warn(report, report->gateways.at[i].at.path, &words);
		}
}

enum weir_status validate_report_make(struct validate_report *report, struct weir_error *error)
{
	inspect_zones(report);
	validate_limits(report);
	validate_checks(report);
	validate_clients(report);
	enum weir_status status = validate_sources(report, error);
	if (status == WEIR_OK)
		status = gateway_list_read(report->config, &report->gateways, error);
	if (status == WEIR_OK)
		status = check_run(report, error);
	if (status == WEIR_OK) {
		check_gateways(report);
		check_outputs(report);
	}
	return status;
}

void validate_report_deinit(struct validate_report *report)
{
	for (uint32_t i = 0; i < report->zone_count; i++)
		free(report->zones[i].sentence);
	for (size_t i = 0; report->sources != NULL && i < report->config->source_count; i++) {
		struct validate_source *source = &report->sources[i];
		for (size_t j = 0; j < source->file_count; j++) {
			free(source->files[j].path);
			free(source->files[j].problem);
		}
		free(source->files);
		free(source->place);
		free(source->manner);
	}
	for (size_t i = 0; i < report->warning_count; i++)
		free(report->warnings[i].words);
	gateway_list_deinit(&report->gateways);
	weir_exempt_lists_free(report->lists);
	weir_text_deinit(&report->changes);
	free(report->zones);
	free(report->sources);
	free(report->warnings);
	weir_text_deinit(&report->secrets);
	*report = (struct validate_report){0};
}
