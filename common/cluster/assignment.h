/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The partitions that the consumer group has assigned to this process: set by the
 * membership's thread, read by workers and checkpoint I/O.
 */
#ifndef WEIR_COMMON_ASSIGNMENT_H
#define WEIR_COMMON_ASSIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

struct weir_assignment;

/** The assignment of a group's member. Nothing is assigned yet: generation 0. */
struct weir_assignment *weir_assignment_new(uint32_t partitions);

/** The assignment of a standalone process: all partitions, always. */
struct weir_assignment *weir_assignment_of_all(uint32_t partitions);
void weir_assignment_free(struct weir_assignment *assignment);

/** Sets the group's assignment. @param given  by partition: whether it is assigned; copied @thread any */
void weir_assignment_set(struct weir_assignment *assignment, const bool *given, uint64_t generation);

/** Notes that membership was lost. What was assigned stays until the group assigns again; nothing more may be taken. */
void weir_assignment_lose(struct weir_assignment *assignment);

/** A number that changes whenever the assignment does. Cheap enough to read in every turn. @thread any */
uint64_t weir_assignment_version(const struct weir_assignment *assignment);

/**
 * Reads the assignment.
 *
 * @param given  room for one element per partition; may be NULL
 * @param count  set to how many are assigned; may be NULL
 * @return the group's generation; 0: it has not assigned yet, or membership was lost
 * @thread any
 */
uint64_t weir_assignment_get(struct weir_assignment *assignment, bool *given, uint32_t *count);

/** Whether a partition is assigned. @thread any */
bool weir_assignment_has(struct weir_assignment *assignment, uint32_t partition);

#endif
