/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of weir-collector: its own file, so that the reference is made from it, too. */
#include "collector/daemon/service.h"

static const struct weir_argument_option options[] = {
	WEIR_DAEMON_OPTIONS("the configuration: sections \"bus\", \"sources\", \"listen\", \"log\"",
                        "its source positions and its lock (default /var/lib/weir/weir-collector)"),
};

static const struct weir_argument_section sections[] = {
	{"Signals", "SIGTERM stops it once everything it has read is acknowledged. SIGHUP rereads log.level."},
	{NULL, NULL},
};

const struct weir_command_line collector_command_line = {
	.name = "weir-collector",
	.summary = "follow logs and send their events to the bus",
	.usage = "weir-collector [--config FILE] [--state DIR] [--check]",
	.about = "Follows the sources of a configuration and sends their events to the bus.\n"
			 "\n"
			 "Events are matched by the policy that `weir policy apply` has put in force. Each line arrives "
			 "exactly once, even through crashes and outages on either side.",
	.options = options,
	.sections = sections,
	.examples = "weir-collector --config /etc/weir/collector.json --check\n"
				"weir-collector --config /etc/weir/collector.json",
	.exits = weir_daemon_exits,
};
