/*
 * How far this process is behind the log, measured by a thread of its own: asking
 * for the log's end may wait for a server.
 */
#ifndef LIMITER_LAG_H
#define LIMITER_LAG_H

#include "common/bus.h"
#include "limiter/worker.h"

#include <stdbool.h>

struct lag;

/** Goes on until the process ends, for which everything is borrowed. */
WEIR_MUST_USE enum weir_status lag_start(struct weir_bus *bus, struct worker *const *workers, uint32_t worker_count,
                                         struct lag **lag, struct weir_error *error);

/**
 * As of the last second or so, over the partitions that are live here.
 *
 * @param messages  that are in the log and not judged
 * @param seconds   since the newest judged one was sent, of the partition that is furthest behind; 0 where none is
 * @return false: no partition was live yet, or the log's end has not been known; nothing is set
 * @thread any
 */
bool lag_read(const struct lag *lag, uint64_t *messages, double *seconds);

#endif
