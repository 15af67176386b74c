/*
 * The collector as a daemon: waits for the brokers and for a policy, then
 * collects until it is told to stop.
 *
 * @thread the program's first: it reads the policy topic and takes signals
 */
#ifndef COLLECTOR_SERVICE_H
#define COLLECTOR_SERVICE_H

#include "collector/daemon/policies.h"
#include "collector/follow/collector.h"
#include "common/daemon/daemon.h"

struct service {
	struct weir_daemon daemon;
	struct source_memory *memory;
	/* NULL until they are there; the pages look at them */
	_Atomic(struct weir_bus *) bus;
	_Atomic(struct policies *) policies;
	_Atomic(struct collector *) collector;
	struct weir_daemon_pages pages;
};

/** Refuses a configuration that no collector can work by: in its bus or its sources. */
WEIR_MUST_USE enum weir_status service_check(struct service *service, struct weir_error *error);

/**
 * --check: whether the brokers answer and there is a policy, within seconds; says what was found on standard output.
 * It makes nothing: topics that are missing are named.
 */
WEIR_MUST_USE enum weir_status service_try(struct service *service, struct weir_error *error);

/** Locks the state directory and serves the pages. */
WEIR_MUST_USE enum weir_status service_open(struct service *service, struct weir_error *error);

/** Waits for the brokers; then opens what needs them. @return WEIR_END: it was told to stop before they answered */
WEIR_MUST_USE enum weir_status service_connect(struct service *service, struct weir_error *error);

/** Hands policies on, from the first one collects, until told to stop or the collector ends. */
WEIR_MUST_USE enum weir_status service_run(struct service *service, struct weir_error *error);

/** Ends the pages, and the collector within a bound of time: what it read is on the bus, or is read again by the next start. */
WEIR_MUST_USE enum weir_status service_stop(struct service *service, struct weir_error *error);

/** Frees everything, whatever was opened. */
void service_close(struct service *service);

/** Of its own metrics: those of policies and collector are on its page, too. */
extern const struct weir_metric_table service_metric_table;

/** Sets the three pages. */
void service_pages(struct service *service);

#endif
