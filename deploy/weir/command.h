/* The subcommands of `weir`. */
#ifndef DEPLOY_WEIR_COMMAND_H
#define DEPLOY_WEIR_COMMAND_H

#include "common/base/exit.h"

struct command {
	const char *name;
	const char *summary;
	/** argv[0] is the command's name. Gives the exit code. */
	enum weir_exit (*run)(int argc, char **argv);
};

enum weir_exit command_run(int argc, char **argv);
enum weir_exit command_validate(int argc, char **argv);
enum weir_exit command_generate(int argc, char **argv);
enum weir_exit command_decode(int argc, char **argv);
enum weir_exit command_state(int argc, char **argv);
enum weir_exit command_subscribe(int argc, char **argv);
enum weir_exit command_policy(int argc, char **argv);
enum weir_exit command_top(int argc, char **argv);
enum weir_exit command_list(int argc, char **argv);
enum weir_exit command_recover(int argc, char **argv);
enum weir_exit command_block(int argc, char **argv);
enum weir_exit command_lift(int argc, char **argv);
enum weir_exit command_allow(int argc, char **argv);
enum weir_exit command_override(int argc, char **argv);
enum weir_exit command_forget(int argc, char **argv);

#endif
