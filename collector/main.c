/* SPDX-License-Identifier: Apache-2.0 */
/* weir-collector: from what services write to events on the bus. */
#include "collector/daemon/service.h"

static const struct weir_argument_option options[] = {
	WEIR_DAEMON_OPTIONS("the configuration: sections \"bus\", \"sources\", \"listen\", \"log\"",
                        "what it remembers of its sources, and its lock (default /var/lib/weir/weir-collector)"),
};

static const struct weir_argument_section sections[] = {
	{"Signals", "SIGTERM ends it when what it has read is on the bus. SIGHUP reads log.level again."},
	{NULL, NULL},
};

static const struct weir_command_line line = {
	.name = "weir-collector",
	.summary = "follow logs and put their events on the bus",
	.usage = "weir-collector --config FILE [--state DIR] [--check]",
	.about = "Follows the sources of a configuration and puts their events on the bus.\n"
			 "\n"
			 "Events are matched by the policy that `weir policy apply` has put in force. Each line arrives once, "
			 "through kills and outages of either side.",
	.options = options,
	.sections = sections,
	.examples = "weir-collector --config /etc/weir/collector.json --check\n"
				"weir-collector --config /etc/weir/collector.json",
	.exits = weir_daemon_exits,
};

int main(int argc, char **argv)
{
	return weir_daemon_main(&line, &collector_role, argc, argv);
}
