/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `weir`: each is a command line and what it starts. */
#ifndef DEPLOY_WEIR_COMMAND_H
#define DEPLOY_WEIR_COMMAND_H

#include "common/config/arguments.h"

struct command {
	const struct weir_command_line *line; /* its name is "weir NAME" */
	/** argv[0] is the command's name. */
	enum weir_exit (*run)(int argc, char **argv);
};

extern const struct command command_run, command_validate, command_generate, command_policy, command_block,
	command_lift, command_allow, command_list, command_top, command_forget, command_recover, command_override,
	command_decode, command_state, command_subscribe, command_setup, command_explain, command_serve, command_watch,
	command_doctor, command_backtest, command_suggest, command_import, command_check, command_test, command_reference;

enum { WEIR_COMMANDS_MAX = 63 };

/** All of them, NULL after the last (commands.c); and what is said of `weir` itself: main.c. */
extern const struct command *const weir_commands[WEIR_COMMANDS_MAX + 1];
extern const struct weir_command_line weir_program;

#endif
