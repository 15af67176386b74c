/* The subcommands of `weir`, and the exit codes that all of them keep to. */
#ifndef DEPLOY_WEIR_COMMAND_H
#define DEPLOY_WEIR_COMMAND_H

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,      /* failed, or a source was unreadable (the others are finished) */
	EXIT_USAGE = 2,       /* the command line or the configuration */
	EXIT_INTERRUPTED = 3, /* --once stopped by a signal; its state holds the last cut */
};

struct command {
	const char *name;
	const char *summary;
	/** argv[0] is the command's name. Gives the exit code. */
	int (*run)(int argc, char **argv);
};

int command_run(int argc, char **argv);
int command_validate(int argc, char **argv);
int command_generate(int argc, char **argv);
int command_decode(int argc, char **argv);
int command_state(int argc, char **argv);
int command_subscribe(int argc, char **argv);
int command_policy(int argc, char **argv);
int command_top(int argc, char **argv);
int command_list(int argc, char **argv);
int command_recover(int argc, char **argv);
int command_block(int argc, char **argv);
int command_lift(int argc, char **argv);
int command_allow(int argc, char **argv);
int command_override(int argc, char **argv);
int command_forget(int argc, char **argv);

#endif
