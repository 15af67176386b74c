/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of service.c, for the file that shows it: service_pages.c. */
#ifndef COLLECTOR_DAEMON_INTERNAL_H
#define COLLECTOR_DAEMON_INTERNAL_H

#include "collector/daemon/policies.h"
#include "collector/follow/collector.h"
#include "common/daemon/daemon.h"

struct service {
	struct weir_daemon *daemon; /* borrowed */
	struct source_memory *memory;
	/* NULL until they are there; the pages look at them */
	_Atomic(struct weir_bus *)
		awaited; /* while it connects: the bus before its topics are there; else NULL, or that bus */
	_Atomic(struct weir_bus *) bus;
	_Atomic(struct policies *) policies;
	_Atomic(struct collector *) collector;
	struct weir_daemon_pages pages;
};

/** Sets the three pages. */
void service_pages(struct service *service);

#endif
