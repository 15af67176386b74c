/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector as a daemon: waits for the brokers and for a policy, then collects until it is told to stop.
 *
 * @thread the program's first: it reads the policy topic and takes signals
 */
#ifndef COLLECTOR_SERVICE_H
#define COLLECTOR_SERVICE_H

#include "common/daemon/daemon.h"

extern const struct weir_daemon_role collector_role;

/** What weir-collector takes. */
extern const struct weir_command_line collector_command_line;

/** Of its own metrics: those of policies and collector are on its page, too. */
extern const struct weir_metric_table service_metric_table;

#endif
