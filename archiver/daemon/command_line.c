/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of weir-archiver: its own file, so that the reference is made from it, too. */
#include "archiver/daemon/process.h"

static const struct weir_argument_option options[] = {
	WEIR_DAEMON_OPTIONS("the configuration: sections \"bus\", \"store\", \"archiver\", \"listen\", \"log\"",
                        "the directory of its lock (default /var/lib/weir/weir-archiver)"),
};

static const struct weir_argument_section sections[] = {
	{"Signals", "SIGTERM stores what was read, leaves the consumer group and stops. SIGHUP rereads log.level."},
	{NULL, NULL},
};

const struct weir_command_line archiver_command_line = {
	.name = "weir-archiver",
	.summary = "keep counts, decisions and histories",
	.usage = "weir-archiver [--config FILE] [--state DIR] [--check]",
	.about = "Archives what limiters have judged, and answers questions about it.\n"
			 "\n"
			 "It reads judged frames and decisions from Kafka. In MySQL or MariaDB it keeps hourly and daily "
			 "counts of passed and blocked requests per key, every decision, and every event of zones with "
			 "\"history\". Decisions of zones in shadow mode, which block nobody, are kept apart. Any number of "
			 "archivers share the partitions. Limiters write judged frames for it if "
			 "\"archiver\": {\"enabled\": true}.",
	.options = options,
	.sections = sections,
	.examples = "weir-archiver --config /etc/weir/archiver.json --check\n"
				"weir-archiver --config /etc/weir/archiver.json",
	.exits = weir_daemon_exits,
};
