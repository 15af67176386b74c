/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateways of one process that judges: a subscriber for each, on a thread of
 * its own, over the bus of that process.
 */
#ifndef DEPLOY_GATEWAYS_GATEWAY_GATEWAYS_H
#define DEPLOY_GATEWAYS_GATEWAY_GATEWAYS_H

#include "common/bus/bus.h"
#include "deploy/gateways/gateway/gateway_settings.h"
#include "deploy/gateways/subscriber/subscriber.h"

struct gateways;

/** How a subscriber keeps the list of a gateway; who calls it when is for the caller to add. */
struct subscriber_options gateway_subscriber(const struct gateway_settings *settings, uint32_t partitions,
                                             struct target *target);

/**
 * Starts them all.
 *
 * @param list      borrowed, as all here, until gateways_stop()
 * @param bus       its decisions topic holds whatever is in force
 * @param gateways  returned, on failure too: gateways_stop()
 * @return WEIR_OK; WEIR_INVALID: as target_open(); WEIR_IO: no thread
 */
WEIR_MUST_USE enum weir_status gateways_start(const struct gateway_list *list, struct weir_bus *bus,
                                              const struct weir_log *log, struct gateways **gateways,
                                              struct weir_error *error);

/** Waits until each list is in place, most_ms at most. What is not then is logged, and goes on trying. @return all are */
bool gateways_wait(struct gateways *gateways, int64_t most_ms, const _Atomic bool *stop);

/** Each list is to be written again as a whole. @thread any */
void gateways_rewrite(struct gateways *gateways);

/** Whether one has given up, which is told by gateways_stop(). @thread any */
bool gateways_ended(const struct gateways *gateways);

/** Appends their metrics; nothing where there are none. @thread any */
void gateways_metrics(const struct gateways *gateways, struct weir_text *page);
/** Whether each list is what was decided; else a line for each that is not. @thread any */
bool gateways_ready(const struct gateways *gateways, struct weir_text *why);

/** Ends them: the lists stay as they are. @return WEIR_OK; else why one had given up. NULL is fine */
WEIR_MUST_USE enum weir_status gateways_stop(struct gateways *gateways, struct weir_error *error);

#endif
