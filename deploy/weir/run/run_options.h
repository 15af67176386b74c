/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `weir run` was asked to do: the configuration and the command line as
 * one.
 */
#ifndef DEPLOY_WEIR_RUN_RUN_OPTIONS_H
#define DEPLOY_WEIR_RUN_RUN_OPTIONS_H

#include "common/config/arguments.h"
#include "common/config/config.h"
#include "common/exempt/exempt_list.h"
#include "common/files/durable_file.h"
#include "deploy/gateways/gateway/gateway_settings.h"

extern const struct weir_command_line run_line;

struct once_watch;

struct run_options {
	struct weir_config *config;      /* owned */
	struct weir_exempt_lists *lists; /* owned: of its "exempt" */
	struct weir_exempt_fetch *fetch; /* owned: of those that other servers have; NULL: there is no state */
	struct gateway_list gateways;    /* owned: of its "gateways" */
	const char *config_path;         /* NULL: the command line said it all */
	bool once;
	const char *state_directory;    /* NULL: none is kept (--once without --state) */
	const char *decisions_path;     /* "-": standard output; NULL: none is written (with a watch) */
	const char *shadow_path;        /* NULL: shadow decisions are written to no file */
	const char *judged_path;        /* --once: a line for each verdict; NULL: none */
	const char *dead_letters_path;  /* NULL: malformed lines are only counted */
	bool sort;                      /* --once: judge in the order of times */
	const struct once_watch *watch; /* --once: who looks at what is judged; NULL: nobody; borrowed */
	bool force_json;
	bool summary_json;
	bool memory_set; /* a ceiling was asked for: --once without a state then spills to a temporary one */
	bool quiet;      /* no progress, no summary */
	char state_path[WEIR_PATH_BYTES], lists_folder[WEIR_PATH_BYTES];
	char dead_letters_default[WEIR_PATH_BYTES];
};

/**
 * Reads the command line and the configuration.
 *
 * @return WEIR_EXIT_NOT_YET: continue; else the exit code: help was printed, or what is wrong was said
 */
enum weir_exit run_options_parse(int argc, char **argv, struct run_options *options);
void run_options_deinit(struct run_options *options);

/** Completes the limiter's settings. @param memory_bytes  its ceiling by the command line; -1: it says none */
void run_options_set_limiter(struct run_options *options, int64_t memory_bytes);

/**
 * The options as the same command line makes them of another configuration.
 *
 * @param config  borrowed
 * @param next    set; it owns nothing, and has no gateways
 */
void run_options_repeat(const struct run_options *options, struct weir_config *config, struct run_options *next);

/** A weir_config_check: whether the configuration is one of `weir run`. @param context  not used */
WEIR_MUST_USE enum weir_status run_options_check_bus(void *context, struct weir_config *config,
                                                     struct weir_error *error);

/** Fetches the lists of "exempt" that other servers have, of which there is no copy yet, and goes on with what there is. */
WEIR_MUST_USE enum weir_status run_options_fetch(const struct run_options *options, const struct weir_policy *policy,
                                                 struct weir_error *error);

/** Whether decisions are written as words: to a terminal, unless --json was given. */
bool run_options_words(const struct run_options *options);

#endif
