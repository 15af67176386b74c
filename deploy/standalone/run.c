/* `weir run`: the command line, then one of the two ways to run. */
#include "deploy/standalone/command.h"
#include "deploy/standalone/follow.h"
#include "deploy/standalone/once.h"
#include "deploy/standalone/stop.h"

#include <unistd.h>

int command_run(int argc, char **argv)
{
	struct run_options options;
	int code = run_options_parse(argc, argv, &options);
	if (code == -1) {
		struct weir_log log = {.fd = STDERR_FILENO,
		                       .level = (enum weir_log_level)options.config->log.level,
		                       .json = options.config->log.json != 0};
		stop_install();
		code = options.once ? run_once(&options, &log) : run_follow(&options, &log);
	}
	run_options_deinit(&options);
	return code;
}
