/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir: the command line tool. Each subcommand has a file of its own; this one
 * finds it by name.
 */
#include "common/base/suggest.h"
#include "common/config/config.h"
#include "deploy/weir/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct weir_argument_option options[] = {
	{.name = "version", .type = WEIR_ARGUMENT_FLAG, .help = "print the version"},
	{.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"Configuration", "A configuration that no --config names is that of WEIR_CONFIG, else\n" WEIR_CONFIG_USUAL "."},
	{NULL, NULL},
};

const struct weir_command_line weir_program = {
	.name = "weir",
	.summary = "limit who does too much, by the logs that services write",
	.usage = "weir COMMAND [OPTION...]",
	.about =
		"Reads the logs that services already write, counts what every user does, and reports who is over the limit.",
	.options = options,
	.sections = sections,
	.examples = "weir run --once --key ip --limit 10/1m --limit 100/1h access.log",
};

static const char *name_of(const struct command *command)
{
	return command->line->name + strlen("weir ");
}

static void print_help(FILE *out)
{
	fprintf(out, "Usage: %s\n\n", weir_program.usage);
	weir_arguments_wrap(weir_program.about, 0, out);
	fputs("\nCommands:\n", out);
	for (int i = 0; weir_commands[i] != NULL; i++)
		fprintf(out, "  %-10s %s\n", name_of(weir_commands[i]), weir_commands[i]->line->summary);
	fprintf(out, "\nTry it on a log, without a configuration:\n  %s\n\n%s\n", weir_program.examples, sections[0].text);
	fputs("\n\"weir COMMAND --help\" explains a command, with examples.\n", out);
}

static enum weir_exit refuse_unknown(const char *written)
{
	const char *names[WEIR_COMMANDS_MAX + 2] = {"help"};
	for (int i = 0; weir_commands[i] != NULL; i++)
		names[i + 1] = name_of(weir_commands[i]);
	const char *near = weir_nearest_name(written, names);
	if (near != NULL) {
		fprintf(stderr, "weir: unknown command \"%s\" (did you mean \"%s\"?)\nTry \"weir --help\".\n", written, near);
		return WEIR_EXIT_USAGE;
	}
	fprintf(stderr, "weir: unknown command \"%s\"\n\n", written);
	print_help(stderr);
	return WEIR_EXIT_USAGE;
}

/*
 * A standard descriptor that is closed would become the first file that is opened, and its lines would go there. It is
 * open the wrong way round instead: whoever needs it hears that it is bad.
 */
static bool open_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return false;
	return true;
}

/* What was printed and did not arrive is not done, whichever command it was of. */
static int finish(int code)
{
	bool flushed = fflush(stdout) == 0;
	if ((flushed && !ferror(stdout)) || code != WEIR_EXIT_DONE)
		return code;
	fprintf(stderr, "weir: cannot write to standard output: %s\n",
	        flushed ? "some of it did not arrive" : weir_errno_words(errno));
	return WEIR_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	if (!open_standard())
		return WEIR_EXIT_FAILED;
	if (argc < 2) {
		print_help(stderr);
		return WEIR_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		print_help(stdout);
		return finish(WEIR_EXIT_DONE);
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("weir " WEIR_VERSION);
		return finish(WEIR_EXIT_DONE);
	}
	for (int i = 0; weir_commands[i] != NULL; i++)
		if (strcmp(argv[1], name_of(weir_commands[i])) == 0)
			return finish(weir_commands[i]->run(argc - 1, argv + 1));
	return refuse_unknown(argv[1]);
}
