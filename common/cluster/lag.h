/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a process is behind the log. A thread of its own measures it, because
 * asking for the log's end may wait for a server.
 */
#ifndef WEIR_COMMON_LAG_H
#define WEIR_COMMON_LAG_H

#include "common/base/text.h"
#include "common/bus/bus.h"
#include "common/log/metrics.h"

#include <stdbool.h>

struct weir_lag;

/* The process's position in a partition of a topic. */
struct weir_lag_place {
	uint64_t next_offset; /* of the next message to process */
	int64_t clock_ms;     /* when the newest processed one was sent, by its sender's clock; 0: not known */
};

struct weir_lag_options {
	struct weir_bus *bus; /* borrowed until the process ends, like all that follows */
	const enum weir_topic *topics;
	size_t topic_count;
	/** Reads the position of a partition. @return false: it is not processed here @thread the lag's */
	bool (*inspect)(void *context, enum weir_topic topic, uint32_t partition, struct weir_lag_place *place);
	void *context;
};

/** Starts the thread, which runs until the process ends. */
WEIR_MUST_USE enum weir_status weir_lag_start(const struct weir_lag_options *options, struct weir_lag **lag,
                                              struct weir_error *error);

/** After this inspect() is not called any more, so its context may be freed. Waits for no server. NULL is fine. */
void weir_lag_leave(struct weir_lag *lag);

/**
 * Reads the lag over the partitions that are processed here, about a second old. For a partition whose server does not
 * answer, the last known end is used.
 *
 * @param messages  set to how many messages in the log are not processed
 * @param seconds   set to how long the oldest message that is not processed has been in the log, of the partition
 *                  furthest behind; 0: none is behind. What was there before this process looked counts by the time of
 *                  the newest processed message
 * @return false: no such partition, or no server has told the end of one for a while; nothing is set
 * @thread any
 */
bool weir_lag_read(const struct weir_lag *lag, uint64_t *messages, double *seconds);

/** Appends both as the role's gauges, or nothing while they are not known. @thread any */
void weir_lag_metrics(const struct weir_lag *lag, struct weir_text *page, const struct weir_metric *messages_gauge,
                      const struct weir_metric *seconds_gauge);

#endif
