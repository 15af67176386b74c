/* weir-limiter: judges its share of the events topic, together with its like. */
#include "common/cluster/connect.h"
#include "limiter/daemon/limiter.h"

#include <stdio.h>
#include <unistd.h>

static const struct weir_argument_option options[] = {
	WEIR_DAEMON_OPTIONS("the configuration: sections \"bus\", \"store\", \"limiter\", \"listen\", \"log\"",
                        "the directory of its lock (default /var/lib/weir/weir-limiter)"),
};

static const struct weir_argument_section sections[] = {
	{"Signals", "SIGTERM stores a last checkpoint, leaves the group and ends it. SIGHUP reads log.level again."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "stopped by a signal, or with --check: it could start"},
	{WEIR_EXIT_FAILED, "it failed"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir-limiter",
	.summary = "judge events and publish decisions",
	.usage = "weir-limiter --config FILE [--state DIR] [--check]",
	.about = "Judges events by the policy in force, and publishes decisions.\n"
			 "\n"
			 "It reads frames of events from Kafka and keeps its state in MySQL or MariaDB. Any number of limiters "
			 "share the topic's partitions, which move as limiters come and go.",
	.options = options,
	.sections = sections,
	.examples = "weir-limiter --config /etc/weir/limiter.json --check\n"
				"weir-limiter --config /etc/weir/limiter.json",
	.exits = exits,
};

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
	enum weir_exit code = weir_daemon_begin(&daemon, &line, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (weir_connect_check(daemon.config, daemon.name, &error) != WEIR_OK)
		return fail(&daemon, WEIR_INVALID, &error);
	struct limiter *limiter = limiter_new(&daemon);
	code = daemon.check ? limiter_check(limiter) : run(&daemon, limiter);
	fflush(stdout);
	_exit(code); /* the servers' libraries may take their time, and everything that counts is stored */
}
