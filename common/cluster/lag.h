/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a process is behind the log, measured by a thread of its own: asking
 * for the log's end may wait for a server.
 */
#ifndef WEIR_COMMON_LAG_H
#define WEIR_COMMON_LAG_H

#include "common/base/text.h"
#include "common/bus/bus.h"
#include "common/log/metrics.h"

#include <stdbool.h>

struct weir_lag;

/* How far the process is with a partition of a topic. */
struct weir_lag_place {
	uint64_t next_offset; /* of what is to be done */
	int64_t clock_ms;     /* when the newest that is done was sent; 0: that is not known */
};

struct weir_lag_options {
	struct weir_bus *bus; /* borrowed until the process ends, as all of this is */
	const enum weir_topic *topics;
	size_t topic_count;
	/** false: it is not worked on here. @thread the lag's */
	bool (*inspect)(void *context, enum weir_topic topic, uint32_t partition, struct weir_lag_place *place);
	void *context;
};

/** Goes on until the process ends. */
WEIR_MUST_USE enum weir_status weir_lag_start(const struct weir_lag_options *options, struct weir_lag **lag,
                                              struct weir_error *error);

/** From here on it looks no more, so that what it looked at may go. Waits for no server. NULL is fine. */
void weir_lag_leave(struct weir_lag *lag);

/**
 * As of the last second or so, over the partitions that are worked on here; of one whose server does not answer, as
 * far as its end is known.
 *
 * @param messages  that are in the log and not done
 * @param seconds   since the newest one done was sent, of the partition that is furthest behind; 0 where none is
 * @return false: there is no such partition, or the log's end has not been known; nothing is set
 * @thread any
 */
bool weir_lag_read(const struct weir_lag *lag, uint64_t *messages, double *seconds);

/** Appends both as the role's gauges; nothing while they are not known. @thread any */
void weir_lag_metrics(const struct weir_lag *lag, struct weir_text *page, const struct weir_metric *messages_gauge,
                      const struct weir_metric *seconds_gauge);

#endif
