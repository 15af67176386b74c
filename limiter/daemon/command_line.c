/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of weir-limiter: its own file, so that the reference is made from it, too. */
#include "limiter/daemon/limiter.h"

static const struct weir_argument_option options[] = {
	WEIR_DAEMON_OPTIONS("the configuration: sections \"bus\", \"store\", \"limiter\", \"listen\", \"log\"",
                        "the directory of its lock (default /var/lib/weir/weir-limiter)"),
};

static const struct weir_argument_section sections[] = {
	{"Signals", "SIGTERM stores a last checkpoint, leaves the consumer group and stops. SIGHUP rereads log.level."},
	{NULL, NULL},
};

const struct weir_command_line limiter_command_line = {
	.name = "weir-limiter",
	.summary = "judge events and publish decisions",
	.usage = "weir-limiter [--config FILE] [--state DIR] [--check]",
	.about = "Judges events by the policy in force, and publishes decisions.\n"
			 "\n"
			 "It reads frames of events from Kafka and keeps its state in MySQL or MariaDB. Any number of limiters "
			 "share the topic's partitions, which move as limiters come and go.",
	.options = options,
	.sections = sections,
	.examples = "weir-limiter --config /etc/weir/limiter.json --check\n"
				"weir-limiter --config /etc/weir/limiter.json",
	.exits = weir_daemon_exits,
};
