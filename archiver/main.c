/* weir-archiver: keeps counts and histories of what its share of the partitions' judged frames say. */
#include "archiver/daemon/process.h"
#include "common/cluster/connect.h"

#include <stdio.h>
#include <unistd.h>

static const char help[] =
	"weir-archiver --config FILE [--state DIR] [--check]\n"
	"\n"
	"Reads judged frames and decisions from Kafka, and keeps in MySQL or MariaDB how\n"
	"often each key came, by hour and by day, passed and blocked; every decision; and\n"
	"every event of zones with \"history\". Any number of archivers share the\n"
	"partitions. Limiters judge for it where \"archiver\": {\"enabled\": true}.\n"
	"\n"
	"  --config FILE  sections \"bus\", \"store\", \"archiver\", \"listen\", \"log\"\n"
	"  --state DIR    where its lock lies (/var/lib/weir/weir-archiver)\n"
	"  --check        only say whether it could start, and what it would make of topics and tables\n"
	"  --version      say which version it is\n"
	"\n"
	"SIGTERM stores what has come, leaves the group and ends. SIGHUP reads log.level again.\n"
	"Exits with 0 when asked to end, 1 when it failed, 2 for a wrong command line or configuration.\n";

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
	enum weir_exit code = weir_daemon_begin(&daemon, "weir-archiver", help, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (weir_connect_check(daemon.config, daemon.name, &error) != WEIR_OK ||
	    process_init(&process, &daemon, &error) != WEIR_OK)
		return fail(&daemon, WEIR_INVALID, &error);
	code = daemon.check ? process_check(&process) : run(&daemon, &process);
	fflush(stdout);
	_exit(code); /* the servers' libraries may take their time, and everything that counts is stored */
}
