/*
 * weir: the command for people. Each subcommand is a file of its own; this one
 * finds it by name.
 */
#include "common/base/suggest.h"
#include "deploy/weir/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command commands[] = {
	{"run", "read logs, judge, write decisions: all of weir in one process", command_run},
	{"validate", "say what a configuration means, or what is wrong with it", command_validate},
	{"generate", "write a synthetic log", command_generate},
	{"policy", "put zones in force in a cluster, show those that are and were", command_policy},
	{"block", "block a key", command_block},
	{"lift", "end the block of a key, and let it start afresh", command_lift},
	{"allow", "let a key pass, whatever its limits say", command_allow},
	{"list", "say who is blocked, until when and why", command_list},
	{"top", "watch who comes most and who is blocked", command_top},
	{"forget", "remove a key everywhere: counts, histories, live state and lists", command_forget},
	{"recover", "let a partition go on behind a gap in its log", command_recover},
	{"override", "multiply the rates of a key, or of a prefix of keys", command_override},
	{"decode", "print the messages of the log as JSON lines", command_decode},
	{"state", "print the buckets of a state directory as JSON lines", command_state},
	{"subscribe", "keep a gateway's list of who is blocked: Redis, nginx, HAProxy, nft, ...", command_subscribe},
};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_help(FILE *out)
{
	fputs("weir reads the logs that services already write, counts what every user does,\n"
	      "and says who is over the limit.\n"
	      "\n"
	      "usage: weir COMMAND [OPTION...]\n"
	      "\n",
	      out);
	for (int i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fputs("\n"
	      "Try it on a log, with no configuration:\n"
	      "  weir run --once --format combined --key ip --limit 10/1m --limit 100/1h access.log\n"
	      "\n"
	      "weir COMMAND --help teaches each one with examples.\n",
	      out);
}

static enum weir_exit refuse_unknown(const char *written)
{
	const char *names[COMMAND_COUNT + 2] = {"help"};
	for (int i = 0; i < COMMAND_COUNT; i++)
		names[i + 1] = commands[i].name;
	const char *near = weir_nearest_name(written, names);
	if (near != NULL) {
		fprintf(stderr, "weir: there is no command \"%s\"; \"%s\" is meant?\nTry \"weir --help\".\n", written, near);
		return WEIR_EXIT_USAGE;
	}
	fprintf(stderr, "weir: there is no command \"%s\"\n\n", written);
	print_help(stderr);
	return WEIR_EXIT_USAGE;
}

/* A standard descriptor that is closed would become the first file that is opened, and its lines would go there. */
static bool open_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd)
			return false;
	return true;
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
		return WEIR_EXIT_DONE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("weir " WEIR_VERSION);
		return WEIR_EXIT_DONE;
	}
	for (int i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	return refuse_unknown(argv[1]);
}
