/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies that a collector matches by: from the policy topic to the
 * collector, which borrows them for as long as it uses them.
 *
 * @thread one owner, but where said
 */
#ifndef COLLECTOR_POLICIES_H
#define COLLECTOR_POLICIES_H

#include "common/base/text.h"
#include "common/bus/bus.h"
#include "common/config/config.h"
#include "common/log/metrics.h"

struct policies;

/**
 * @param config, bus, log  borrowed
 * @param folder            of the copies of lists that are fetched (common/exempt/exempt_fetch.h); NULL: none is, and no robot
 *                          is verified
 */
WEIR_MUST_USE enum weir_status policies_new(const struct weir_config *config, struct weir_bus *bus, const char *folder,
                                            const struct weir_log *log, struct policies **policies,
                                            struct weir_error *error);
void policies_free(struct policies *policies);

/**
 * Reads on, waiting at most timeout_ms; says once what hinders it, and that there is no policy yet.
 *
 * @return a policy that the sources can be matched by and that is newer than all given before, or the same again where a
 *         list of its "exempt" has changed; or NULL. Borrowed until it is forgotten
 */
const struct weir_policy *policies_poll(struct policies *policies, int timeout_ms);

/** Nobody uses versions below this one any more. */
void policies_forget(struct policies *policies, uint64_t version);

/** The lists of their "exempt", which a policy that was given can be matched with; borrowed. */
struct weir_exempt_lists *policies_lists(const struct policies *policies);

/** Whether the topic was read to its end. */
bool policies_known(const struct policies *policies);

/** Whether there is a policy and it is in use; else why not, in a line. @thread any */
bool policies_ready(const struct policies *policies, struct weir_text *why);

extern const struct weir_metric_table policies_metric_table;

/** Appends its metrics. @thread any */
void policies_metrics(const struct policies *policies, struct weir_text *page);

#endif
