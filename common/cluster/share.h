/*
 * A process's share of the partitions: what the group has given it, told by the
 * thread that is its member, asked for by workers and keepers.
 */
#ifndef WEIR_COMMON_SHARE_H
#define WEIR_COMMON_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct weir_share;

/** Nothing is given yet: generation 0. */
struct weir_share *weir_share_new(uint32_t partitions);
void weir_share_free(struct weir_share *share);

/** What the group said. @param given  one for each partition; copied. @thread any */
void weir_share_set(struct weir_share *share, const bool *given, uint64_t generation);

/** The group no longer knows this process: what was given stays until it speaks again, and nothing more is taken. */
void weir_share_lose(struct weir_share *share);

/** Changes whenever the share does: cheap enough to be asked in every turn. @thread any */
uint64_t weir_share_version(const struct weir_share *share);

/**
 * @param given  room for one of each partition; may be NULL
 * @param count  how many are given; may be NULL
 * @return the group's generation; 0: it has not spoken, or this process was lost to it
 * @thread any
 */
uint64_t weir_share_get(struct weir_share *share, bool *given, uint32_t *count);

/** Whether a partition is given. @thread any */
bool weir_share_has(struct weir_share *share, uint32_t partition);

#endif
