/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output among the files that are read would be emptied by --once, and would
 * feed itself forever where it is followed. One in the configuration, or in the
 * state, is the end of that. Two outputs in one file would cut
 * each other's lines off at the next start.
 */
#include "deploy/weir/run/run_check.h"

#include "archiver/api/api.h"
#include "collector/follow/inputs.h"
#include "common/bytes/http_address.h"
#include "common/cluster/key_hash.h"
#include "common/daemon/daemon.h"
#include "common/files/file_damage.h"
#include "common/files/file_place.h"
#include "common/files/line_file.h"
#include "limiter/daemon/limiter_checks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
	/* Of another file, as the store's, or where no other path would help, it says nothing. */
	if (option != NULL && strstr(why.text, path) != NULL && strstr(why.text, weir_errno_words(EMFILE)) == NULL &&
	    weir_damage_find_remedy(why.text, NULL) == NULL)
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

/* What the listeners of a run that follows ask for. What is said of it, they say when they start. */
static enum weir_status check_listeners(const struct weir_config *config, struct weir_error *error)
{
	const struct weir_http_tls tls = weir_daemon_tls(config);
	struct weir_text doubts = {0};
	enum weir_status status = config->listen.http_host != NULL ? weir_http_tls_check(&tls, &doubts, error) : WEIR_OK;
	if (status == WEIR_OK && config->archiver.enabled)
		status = api_check(config, &doubts, error);
	weir_text_deinit(&doubts);
	return status;
}

enum weir_status run_check_config(struct run_options *options, struct weir_error *error)
{
	enum weir_status status = inputs_check_lists(options->config, options->lists, error);
	if (status == WEIR_OK)
		status = run_check(options, error);
	if (status == WEIR_OK)
		status = limiter_checks_check(options->config, error);
	if (status == WEIR_OK && !options->once)
		status = check_listeners(options->config, error);
	if (status == WEIR_OK && !options->once)
		status = weir_config_check_waiting(options->config, error);
	if (status == WEIR_OK)
		status = inputs_check_policy(options->config, options->config->policy, options->lists, error);
	if (status == WEIR_OK)
		status = gateway_list_read(options->config, &options->gateways, error);
	/* what is wrong with a source is said first: so the outputs are looked at again once the gateways' lists are known */
	return status == WEIR_OK && options->gateways.count > 0 ? run_check(options, error) : status;
}

/* ---- what a start would refuse while another runs ---- */

/* Whether it is there and takes lines, or can be made. A file that is there is not opened: it may be a pipe. */
static enum weir_status check_writable(const char *path, struct weir_error *error)
{
	char folder[WEIR_PATH_BYTES];
	if (path == NULL || weir_file_descriptor_of(path) >= 0 || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0)
		return WEIR_OK;
	int why = errno;
	if (why == ENOENT) {
		const char *slash = strrchr(path, '/');
		enum weir_status status = slash == NULL ? weir_path_format(folder, error, ".")
		                                        : weir_path_format(folder, error, "%.*s/", (int)(slash - path), path);
		if (status != WEIR_OK || faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0)
			return status;
		why = errno;
	}
	return weir_fail(error, WEIR_INVALID, "cannot open %s: %s", path, weir_errno_words(why));
}

static enum weir_status check_opened(const struct run_options *next, struct weir_store *store, struct weir_error *error)
{
	const struct weir_config *config = next->config;
	const char *const written[] = {next->decisions_path, next->shadow_path, next->dead_letters_path};
	enum weir_status status = limiter_checks_check_secrets(config, error);
	for (size_t i = 0; status == WEIR_OK && i < sizeof written / sizeof *written; i++)
		status = check_writable(written[i], error);
	if (status != WEIR_OK || !config->archiver.enabled)
		return status;
	struct weir_key_hash *hash = NULL;
	status = weir_key_hash_open(config->archiver.hash_keys, &hash, error);
	if (status == WEIR_OK)
		status = weir_key_hash_check(hash, store, error);
	weir_key_hash_free(hash);
	return status;
}

enum weir_status run_check_next(const struct run_options *running, struct weir_config *next, struct weir_store *store,
                                struct weir_error *error)
{
	struct run_options again;
	run_options_repeat(running, next, &again);
	enum weir_status status = run_options_check_bus(NULL, next, error);
	if (status == WEIR_OK && next->bus.partitions != running->config->bus.partitions)
		status = weir_fail(error, WEIR_INVALID, "bus.partitions: the state in %s was created with %lld, not %lld",
		                   running->state_directory, (long long)running->config->bus.partitions,
		                   (long long)next->bus.partitions);
	if (status == WEIR_OK)
		status = run_check_config(&again, error);
	if (status == WEIR_OK)
		status = check_opened(&again, store, error);
	gateway_list_deinit(&again.gateways);
	return status;
}
