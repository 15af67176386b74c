/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This process's membership of its role's consumer group: a thread that serves it
 * and updates the assignment.
 */
#ifndef WEIR_COMMON_MEMBERSHIP_H
#define WEIR_COMMON_MEMBERSHIP_H

#include "common/bus/bus.h"
#include "common/cluster/assignment.h"
#include "common/log/log.h"

struct weir_membership;

/** @param role  "limiter", "archiver": the group's name after the prefix. All borrowed until weir_membership_leave() */
WEIR_MUST_USE enum weir_status weir_membership_start(struct weir_bus *bus, const char *role,
                                                     struct weir_assignment *assignment, const struct weir_log *log,
                                                     struct weir_membership **membership, struct weir_error *error);

/** Whether it has failed for good: retrying would not help. @thread any */
bool weir_membership_failed(const struct weir_membership *membership);

/**
 * Leaves the group, so that others take the partitions at once; ends the thread and frees. NULL is fine.
 *
 * @return false: the thread has not ended within a bound, and nothing was freed: the process must exit
 */
bool weir_membership_leave(struct weir_membership *membership);

#endif
