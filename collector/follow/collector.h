/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running collector: follows its sources, sends their events to the bus, and
 * saves the positions up to which everything is acknowledged.
 *
 * One thread reads, matches, frames and sends. A stream's low-water mark is the
 * position below which every frame of every partition, and every dead letter, is
 * acknowledged. It is saved each second and at the end, and a restart resumes
 * there. What had been sent after it is then sent again, and the limiters drop it.
 *
 * A failed delivery ends its producer: nothing later is accepted from it. A new
 * one is made, and the sources go back to their low-water marks. Sources that
 * cannot go back lose what was in flight, and those lines are counted.
 */
#ifndef COLLECTOR_COLLECTOR_H
#define COLLECTOR_COLLECTOR_H

#include "collector/follow/inputs.h"
#include "collector/source/source_memory.h"
#include "common/bus/bus.h"
#include "common/log/log.h"
#include "common/log/metrics.h"

struct collector;

struct collector_options {
	const struct weir_config *config; /* borrowed, like all that follows */
	struct weir_bus *bus;
	struct source_memory *memory;
	bool dead_topic;                  /* dead letters go to the bus */
	struct weir_line_file *dead_file; /* otherwise to this file; NULL: malformed lines are only counted */
	const struct weir_policy *policy; /* numbered: policy->version */
	struct weir_exempt_lists *lists;  /* of its "exempt"; NULL: each matcher reads its own */
	bool stays; /* it does not end with its sources, or for want of any, but by collector_stop() */
	const struct weir_log *log;
};

WEIR_MUST_USE enum weir_status collector_new(const struct collector_options *options, struct collector **collector,
                                             struct weir_error *error);
WEIR_MUST_USE enum weir_status collector_start(struct collector *collector, struct weir_error *error);

/**
 * Matches by another policy from the next round of chunks on, or by the newest lists of the same. inputs_check_policy() has
 * accepted it.
 *
 * @param policy  borrowed until collector_policy_version() names a later one
 * @thread any
 */
void collector_set_policy(struct collector *collector, const struct weir_policy *policy);

/** The version that it matches by. @thread any */
uint64_t collector_policy_version(const struct collector *collector);

/** Whether the newest lines of every source fit its format; otherwise appends which do not, for people. @thread any */
bool collector_formats_fit(const struct collector *collector, struct weir_text *why);

/** Whether every source can be read, and fits its format; otherwise appends why not, for people. @thread any */
bool collector_ready(struct collector *collector, struct weir_text *why);

/** Reopens the dead-letter file (SIGHUP). @thread any */
void collector_reopen(struct collector *collector);

/** Asks it to stop reading. It sends what it has read, waits for the acknowledgements and saves. @thread any */
void collector_stop(struct collector *collector);

/** Whether it has ended: it was stopped, has failed, or all sources have ended and it does not stay. @thread any */
bool collector_ended(const struct collector *collector);

/** Waits for the end. @return WEIR_OK; otherwise why it failed */
WEIR_MUST_USE enum weir_status collector_join(struct collector *collector, struct weir_error *error);
void collector_free(struct collector *collector);

/** Sums over all streams, at most about a quarter of a second old. @thread any */
void collector_counts(struct collector *collector, struct record_counts *counts);

/** Bytes that the sources know of and have not read yet. @thread any */
uint64_t collector_lag_bytes(struct collector *collector);

/** How many dead letters were written, and how many only counted. @thread any */
void collector_dead_letters(struct collector *collector, uint64_t *written, uint64_t *dropped);

/** The collector's own metrics. Its page also has those of inputs and sender. */
extern const struct weir_metric_table collector_metric_table;

/** Appends the collector's metrics. @thread any */
void collector_metrics(struct collector *collector, struct weir_text *text);

#endif
