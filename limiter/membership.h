/*
 * This process's membership of the limiters' group: a thread that serves it, and
 * tells the share what the group gives.
 */
#ifndef LIMITER_MEMBERSHIP_H
#define LIMITER_MEMBERSHIP_H

#include "common/bus.h"
#include "common/log.h"
#include "limiter/share.h"

struct membership;

/** Everything is borrowed until membership_leave(). */
WEIR_MUST_USE enum weir_status membership_start(struct weir_bus *bus, struct share *share, const struct weir_log *log,
                                                struct membership **membership, struct weir_error *error);

/** Whether it has ended by itself: no other try would help. @thread any */
bool membership_failed(const struct membership *membership);

/**
 * Leaves the group, so that others take the partitions at once; ends the thread and frees. NULL is fine.
 *
 * @return false: it has not ended within a bound, and is left as it is: the process must end
 */
bool membership_leave(struct membership *membership);

#endif
