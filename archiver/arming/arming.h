/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zones that wait in shadow mode: once a day of the log, whether they would block few enough of their keys to enforce.
 *
 * What decides are the archive's counts of whole days (arming_rule.h). What changes the mode is a policy with the next
 * number, which is put in force as an operator's is: nobody overwrites one that came in between, and limiters switch where
 * the log has it. A process that is killed meanwhile is followed by another that finds the same, or finishes it.
 */
#ifndef ARCHIVER_ARMING_H
#define ARCHIVER_ARMING_H

#include "common/bus/bus.h"
#include "common/log/log.h"
#include "common/log/metrics.h"
#include "common/policy/policy.h"
#include "common/store/store.h"

struct arming;

struct arming_options {
	struct weir_bus *bus;       /* borrowed, like all that follows */
	const struct weir_log *log; /* by whose clock it looks, and tells how long something lasts */
	/* Opens a store for the thread that calls arming_step(), without waiting long. */
	enum weir_status (*open_store)(void *context, struct weir_store **store, struct weir_error *error);
	void *store_context;
	/* Whether this process is to look: one is enough, that which archives partition 0. */
	bool (*is_mine)(void *context);
	/*
	 * Puts a policy in force behind one of this version, or finishes that where it was numbered already. WEIR_AGAIN:
	 * another policy came in between, and stays.
	 */
	enum weir_status (*apply)(void *context, struct weir_store *store, uint64_t behind, struct weir_policy *policy,
	                          struct weir_error *error);
	void *context;
};

extern const struct weir_metric_table arming_metric_table;

/** @param options  copied */
struct arming *arming_new(const struct arming_options *options);
/** NULL is fine. */
void arming_free(struct arming *arming);

/** Looks whether there is something to do, and does a bounded part of it. Returns at once most of the time. @thread one */
void arming_step(struct arming *arming);

/** @thread any */
void arming_metrics(struct arming *arming, struct weir_text *page);

#endif
