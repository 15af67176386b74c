/* weir-archiver: keeps counts and histories of what its share of the partitions' judged frames say. */
#include "archiver/daemon/process.h"
#include "common/cluster/connect.h"

#include <stdio.h>
#include <unistd.h>

static const struct weir_argument_option options[] = {
	WEIR_DAEMON_OPTIONS("the configuration: sections \"bus\", \"store\", \"archiver\", \"listen\", \"log\"",
                        "the directory of its lock (default /var/lib/weir/weir-archiver)"),
};

static const struct weir_argument_section sections[] = {
	{"Signals", "SIGTERM stores what has come, leaves the group and ends it. SIGHUP reads log.level again."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "stopped by a signal, or with --check: it could start"},
	{WEIR_EXIT_FAILED, "it failed"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir-archiver",
	.summary = "keep counts, decisions and histories",
	.usage = "weir-archiver --config FILE [--state DIR] [--check]",
	.about =
		"Archives what limiters have judged, and answers questions about it.\n"
		"\n"
		"It reads judged frames and decisions from Kafka. In MySQL or MariaDB it keeps how often each key came, by "
		"hour and by day, passed and blocked; every decision; and every event of zones with \"history\". Any number "
		"of archivers share the partitions. Limiters judge for it where \"archiver\": {\"enabled\": true}.",
	.options = options,
	.sections = sections,
	.examples = "weir-archiver --config /etc/weir/archiver.json --check\n"
				"weir-archiver --config /etc/weir/archiver.json",
	.exits = exits,
};

static enum weir_exit fail(const struct weir_daemon *daemon, enum weir_status status, const struct weir_error *error)
{
	weir_log(&daemon->log, WEIR_LOG_ERROR, "archiver", "%s", error->text);
	return weir_exit_of(status);
}

static enum weir_exit run(struct weir_daemon *daemon, struct process *process)
{
	struct weir_error error;
	if (weir_daemon_open(daemon, &error) != WEIR_OK)
		return fail(daemon, WEIR_IO, &error);
	if (weir_daemon_serve(daemon, &process->pages, &error) != WEIR_OK)
		return fail(daemon, WEIR_IO, &error);
	enum weir_status status = process_start(process, &error);
	if (status == WEIR_END)
		return WEIR_EXIT_DONE;
	if (status != WEIR_OK)
		return fail(daemon, status, &error);
	process_watch(process);
	return process_stop(process) ? WEIR_EXIT_DONE : WEIR_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	struct weir_daemon daemon;
	struct process process;
	struct weir_error error;
	enum weir_exit code = weir_daemon_begin(&daemon, &line, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (weir_connect_check(daemon.config, daemon.name, &error) != WEIR_OK ||
	    process_init(&process, &daemon, &error) != WEIR_OK)
		return fail(&daemon, WEIR_INVALID, &error);
	code = daemon.check ? process_check(&process) : run(&daemon, &process);
	fflush(stdout);
	_exit(code); /* the servers' libraries may take their time, and everything that counts is stored */
}
