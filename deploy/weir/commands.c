/* SPDX-License-Identifier: Apache-2.0 */
/* Which subcommands there are, in the order in which help lists them. */
#include "deploy/weir/command.h"

/* clang-format off */
const struct command *const weir_commands[WEIR_COMMANDS_MAX + 1] = {
	&command_run,
	&command_validate,
	&command_test,
	&command_import,
	&command_backtest,
	&command_suggest,
	&command_generate,
	&command_policy,
	&command_check,
	&command_block,
	&command_lift,
	&command_allow,
	&command_list,
	&command_explain,
	&command_top,
	&command_serve,
	&command_forget,
	&command_recover,
	&command_override,
	&command_decode,
	&command_state,
	&command_subscribe,
	&command_setup,
	&command_watch,
	&command_doctor,
	&command_reference,
	NULL,
};
/* clang-format on */
