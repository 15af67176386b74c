/* SPDX-License-Identifier: Apache-2.0 */
/* `weir run`: the command line, then one of the two ways to run. */
#include "common/base/stop.h"
#include "common/daemon/heartbeat.h"
#include "common/exempt/exempt_fetch.h"
#include "deploy/weir/command.h"
#include "deploy/weir/run/follow.h"
#include "deploy/weir/run/once.h"
#include "deploy/weir/run/run_check.h"
#include "deploy/weir/run/unmatched.h"

#include <stdio.h>
#include <unistd.h>

/* A weir_config_check. */
static enum weir_status check_again(void *context, struct weir_config *config, struct weir_error *error)
{
	struct run_options again = *(const struct run_options *)context;
	again.config = config;
	again.gateways = (struct gateway_list){0};
	enum weir_status status = run_check_config(&again, error);
	gateway_list_deinit(&again.gateways);
	return status;
}

/* What is wrong in its lists, sources and gateways is refused before anything is made or opened. */
static enum weir_exit check(struct run_options *options)
{
	struct weir_error error;
	if (run_check_config(options, &error) == WEIR_OK)
		return WEIR_EXIT_NOT_YET;
	weir_config_print_mistakes("weir: ", options->config_path,
	                           &(struct weir_config_check){.check = check_again, .context = options}, &error);
	return error.status == WEIR_INVALID ? WEIR_EXIT_USAGE : WEIR_EXIT_FAILED;
}

/* Without a state there is no place for copies of other servers' lists. */
static void open_lists(struct run_options *options, const struct weir_log *log)
{
	struct weir_error ignored; /* a path that is too long is told by who opens the state */
	bool kept = options->state_directory != NULL &&
	            weir_path_format(options->lists_folder, &ignored, "%s/" WEIR_EXEMPT_LISTS_FOLDER,
	                             options->state_directory) == WEIR_OK;
	const struct weir_exempt_kept_options keeping = {.folder = kept ? options->lists_folder : NULL,
	                                                 .interval_ms = options->config->collector.list_interval_ms,
	                                                 .resolver = options->config->collector.resolver,
	                                                 .once = options->once, /* its output depends on its input alone */
	                                                 .log = log};
	weir_exempt_open(&keeping, &options->lists, &options->fetch);
}

static enum weir_exit run(struct run_options *options)
{
	struct progress progress;
	progress_init(&progress, options->quiet);
	struct weir_log log = {.fd = STDERR_FILENO,
	                       .level = (enum weir_log_level)options->config->log.level,
	                       .json = options->config->log.json != 0,
	                       .unfinished = &progress.drawn};
	open_lists(options, &log);
	enum weir_exit code = check(options);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (options->fetch == NULL && run_names_servers(options->config->policy)) {
		fputs("weir run: an \"exempt\" names a list of another server, and its copy needs a place: give --state DIR\n",
		      stderr);
		return WEIR_EXIT_USAGE;
	}
	weir_stop_install();
	if (options->once && options->config->gateway_count > 0)
		weir_log(&log, WEIR_LOG_WARNING, "gateways", "--once judges a log of the past: no gateway's list is written");
	if (options->once && run_names_robots(options->config->policy))
		weir_log(&log, WEIR_LOG_WARNING, "exempt", "--once asks no name server: no robot is exempt as verified");
	unmatched_tell(options->config, options->config->policy, options->lists, NULL, &log);
	if (options->once)
		return run_once(options, &log, &progress);
	gateway_list_tell_misses(&options->gateways, options->config->policy, &log);
	struct weir_heartbeat *heartbeat = weir_heartbeat_start(&log, NULL, NULL);
	code = run_follow(options, &log, &progress);
	weir_heartbeat_stop(heartbeat);
	return code;
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct run_options options;
	enum weir_exit code = run_options_parse(argc, argv, &options);
	if (code == WEIR_EXIT_NOT_YET)
		code = run(&options);
	run_options_deinit(&options);
	return code;
}

const struct command command_run = {&run_line, command_main};
