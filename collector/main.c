/* weir-collector: from what services write to events on the bus. Each step is in service.h. */
#include "collector/daemon/service.h"

static const struct weir_argument_option options[] = {
	WEIR_DAEMON_OPTIONS("the configuration: sections \"bus\", \"sources\", \"listen\", \"log\"",
                        "what it remembers of its sources, and its lock (default /var/lib/weir/weir-collector)"),
};

static const struct weir_argument_section sections[] = {
	{"Signals", "SIGTERM ends it when what it has read is on the bus. SIGHUP reads log.level again."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "stopped by a signal, or with --check: it could start"},
	{WEIR_EXIT_FAILED, "it failed"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong"},
	{WEIR_EXIT_DONE, NULL},
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
	.exits = exits,
};

static enum weir_exit tell(struct service *service, const struct weir_error *error, enum weir_exit code)
{
	weir_log(&service->daemon.log, WEIR_LOG_ERROR, "collector", "%s", error->text);
	return code;
}

static enum weir_exit check(struct service *service)
{
	struct weir_error error;
	enum weir_status status = service_try(service, &error);
	return status == WEIR_OK ? WEIR_EXIT_DONE : tell(service, &error, weir_exit_of(status));
}

/* In order; whatever fails, what was begun is ended. */
static enum weir_exit collect(struct service *service)
{
	struct weir_error error, ending;
	if (service_open(service, &error) != WEIR_OK)
		return tell(service, &error, WEIR_EXIT_FAILED);
	enum weir_status status = service_connect(service, &error);
	if (status == WEIR_END)
		return WEIR_EXIT_DONE;
	if (status != WEIR_OK)
		return tell(service, &error, weir_exit_of(status));
	enum weir_exit code =
		service_run(service, &error) == WEIR_OK ? WEIR_EXIT_DONE : tell(service, &error, WEIR_EXIT_FAILED);
	if (service_stop(service, &ending) != WEIR_OK)
		code = tell(service, &ending, WEIR_EXIT_FAILED);
	return code;
}

int main(int argc, char **argv)
{
	struct service service = {0};
	struct weir_error error;
	enum weir_exit code = weir_daemon_begin(&service.daemon, &line, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (service_check(&service, &error) != WEIR_OK)
		code = tell(&service, &error, WEIR_EXIT_USAGE);
	else
		code = service.daemon.check ? check(&service) : collect(&service);
	service_close(&service);
	return code;
}
