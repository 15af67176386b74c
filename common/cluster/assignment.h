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

/** Of a group's member. Nothing is given yet: generation 0. */
struct weir_assignment *weir_assignment_new(uint32_t partitions);

/** Of a process that is alone: everything is given, from the beginning to the end. */
struct weir_assignment *weir_assignment_of_all(uint32_t partitions);
void weir_assignment_free(struct weir_assignment *assignment);

/** What the group said. @param given  one for each partition; copied. @thread any */
void weir_assignment_set(struct weir_assignment *assignment, const bool *given, uint64_t generation);

/** The group no longer knows this process: what was given stays until it speaks again, and nothing more is taken. */
void weir_assignment_lose(struct weir_assignment *assignment);

/** Changes whenever the assignment does: cheap enough to be asked in every turn. @thread any */
uint64_t weir_assignment_version(const struct weir_assignment *assignment);

/**
 * @param given  room for one of each partition; may be NULL
 * @param count  how many are given; may be NULL
 * @return the group's generation; 0: it has not spoken, or this process was lost to it
 * @thread any
 */
uint64_t weir_assignment_get(struct weir_assignment *assignment, bool *given, uint32_t *count);

/** Whether a partition is given. @thread any */
bool weir_assignment_has(struct weir_assignment *assignment, uint32_t partition);

#endif
