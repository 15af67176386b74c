/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a run does not write to files that it reads, and what its policy needs of others. */
#ifndef DEPLOY_WEIR_RUN_RUN_CHECK_H
#define DEPLOY_WEIR_RUN_RUN_CHECK_H

#include "common/store/store.h"
#include "deploy/weir/backend/written_files.h"
#include "deploy/weir/run/run_options.h"

/**
 * Refuses an output that is another one, a file which is to be read, the configuration, or a file of the state, by
 * whatever name, and a source without an end for --once. Opens nothing for writing.
 *
 * @param options  of its gateways those that were read
 * @return WEIR_OK; WEIR_INVALID: it would not be what was meant; WEIR_IO
 */
WEIR_MUST_USE enum weir_status run_check(const struct run_options *options, struct weir_error *error);

/** The same for other outputs than those of the options. @param written  all of them */
WEIR_MUST_USE enum weir_status run_check_outputs(const struct run_options *options, const struct written_files *written,
                                                 struct weir_error *error);

/**
 * Refuses what is wrong in a configuration's lists, sources, listeners, outputs and gateways, before anything is made or
 * opened.
 *
 * @param options  its gateways are read
 * @return WEIR_OK; WEIR_INVALID; WEIR_IO
 */
WEIR_MUST_USE enum weir_status run_check_config(struct run_options *options, struct weir_error *error);

/**
 * The same of a configuration that a running process was given anew, and what a start would refuse of it beside its
 * state: partitions, secrets, outputs that cannot be opened. Nothing is changed.
 *
 * @param running  of the process
 * @param store    its state's
 */
WEIR_MUST_USE enum weir_status run_check_next(const struct run_options *running, struct weir_config *next,
                                              struct weir_store *store, struct weir_error *error);

/** The option that names another file than the configuration's; NULL: the configuration does not name this one. */
const char *run_output_option(const struct run_options *options, const char *path);
/** Says in an error of an output that the configuration names which option names another. */
void run_output_fault(const struct run_options *options, const char *path, struct weir_error *error);

/** Whether some "exempt" names a list of another server, whose copy needs a state. */
bool run_names_servers(const struct weir_policy *policy);
/** Whether some "exempt" names robots, which are verified by a name server: a run over a log of the past asks none. */
bool run_names_robots(const struct weir_policy *policy);

#endif
