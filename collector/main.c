/* weir-collector: from what services write to events on the bus. Each step is in service.h. */
#include "collector/daemon/service.h"

static const char help[] =
	"usage: weir-collector --config FILE [--state DIR] [--check]\n"
	"\n"
	"Follows the sources of the configuration and puts their events on the bus, matched by the policy that\n"
	"`weir policy apply` has put there. Each line arrives once, through kills and outages of either side.\n"
	"\n"
	"  --config FILE  the configuration: sections \"bus\" and \"sources\"\n"
	"  --state DIR    what it remembers of its sources, and its lock (/var/lib/weir/weir-collector)\n"
	"  --check        only say whether it could start: configuration, brokers, topics, policy\n"
	"  --version      print the version\n"
	"\n"
	"SIGTERM ends it when what was read is on the bus; SIGHUP reads the configuration again.\n"
	"It leaves with 0 when told to stop, with 1 after a failure, with 2 if the command line or the configuration\n"
	"is wrong.\n";

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
	enum weir_exit code = weir_daemon_begin(&service.daemon, "weir-collector", help, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (service_check(&service, &error) != WEIR_OK)
		code = tell(&service, &error, WEIR_EXIT_USAGE);
	else
		code = service.daemon.check ? check(&service) : collect(&service);
	service_close(&service);
	return code;
}
