/* weir-limiter: judges its share of the events topic, together with its like. */
#include "common/cluster/connect.h"
#include "limiter/daemon/limiter.h"

#include <stdio.h>
#include <unistd.h>

static const char help[] =
	"weir-limiter --config FILE [--state DIR] [--check]\n"
	"\n"
	"Reads frames of events from Kafka, judges them by the policy in force, and\n"
	"publishes decisions; its state lies in MySQL or MariaDB. Any number of limiters\n"
	"share the topic's partitions, which move as limiters come and go.\n"
	"\n"
	"  --config FILE  sections \"bus\", \"store\", \"limiter\", \"listen\", \"log\"\n"
	"  --state DIR    where its lock lies (/var/lib/weir/weir-limiter)\n"
	"  --check        only say whether it could start, and what it would make of topics and tables\n"
	"  --version      say which version it is\n"
	"\n"
	"SIGTERM stores a last checkpoint, leaves the group and ends. SIGHUP reads log.level again.\n"
	"Exits with 0 when asked to end, 1 when it failed, 2 for a wrong command line or configuration.\n";

static enum weir_exit fail(const struct weir_daemon *daemon, enum weir_status status, const struct weir_error *error)
{
	weir_log(&daemon->log, WEIR_LOG_ERROR, "limiter", "%s", error->text);
	return weir_exit_of(status);
}

static enum weir_exit run(struct weir_daemon *daemon, struct limiter *limiter)
{
	struct weir_error error;
	if (weir_daemon_open(daemon, &error) != WEIR_OK)
		return fail(daemon, WEIR_IO, &error);
	if (weir_daemon_serve(daemon, limiter_pages(limiter), &error) != WEIR_OK)
		return fail(daemon, WEIR_IO, &error);
	enum weir_status status = limiter_connect(limiter, &error);
	if (status == WEIR_END)
		return WEIR_EXIT_DONE;
	if (status == WEIR_OK)
		status = limiter_start(limiter, &error);
	if (status != WEIR_OK)
		return fail(daemon, status, &error);
	limiter_watch(limiter);
	return limiter_stop(limiter) ? WEIR_EXIT_DONE : WEIR_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	struct weir_daemon daemon;
	struct weir_error error;
	enum weir_exit code = weir_daemon_begin(&daemon, "weir-limiter", help, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (weir_connect_check(daemon.config, daemon.name, &error) != WEIR_OK)
		return fail(&daemon, WEIR_INVALID, &error);
	struct limiter *limiter = limiter_new(&daemon);
	code = daemon.check ? limiter_check(limiter) : run(&daemon, limiter);
	fflush(stdout);
	_exit(code); /* the servers' libraries may take their time, and everything that counts is stored */
}
