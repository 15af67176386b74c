/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a run does not write to files that it reads, and what its policy needs of others. */
#ifndef DEPLOY_WEIR_RUN_RUN_CHECK_H
#define DEPLOY_WEIR_RUN_RUN_CHECK_H

#include "deploy/weir/run/run_options.h"

/**
 * Refuses an output that is a file which is to be read, by whatever name, and a source without an end for --once.
 * Opens nothing for writing.
 *
 * @return WEIR_OK; WEIR_INVALID: it would not be what was meant; WEIR_IO
 */
WEIR_MUST_USE enum weir_status run_check(const struct run_options *options, struct weir_error *error);

/* What a program writes. */
struct run_output {
	const char *option, *path; /* option NULL ends a list; path NULL: not asked for; "-": standard output */
};

/** Refuses an output that is this file. @param outputs  NULL: there are none @param source  "-": standard input */
WEIR_MUST_USE enum weir_status run_check_file(const struct run_output *outputs, const char *source,
                                              struct weir_error *error);

/** The same for other outputs than those of the options. */
WEIR_MUST_USE enum weir_status run_check_outputs(const struct run_options *options, const struct run_output *outputs,
                                                 struct weir_error *error);

/** Whether some "exempt" names a list of another server, whose copy needs a state. */
bool run_names_servers(const struct weir_policy *policy);
/** Whether some "exempt" names robots, which are verified by a name server: a run over a log of the past asks none. */
bool run_names_robots(const struct weir_policy *policy);

#endif
