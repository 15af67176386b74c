/* SPDX-License-Identifier: Apache-2.0 */
/* From the peaks of all keys to the smallest limits that block no more of them than may be. */
#ifndef DEPLOY_WEIR_SUGGEST_LIMITS_H
#define DEPLOY_WEIR_SUGGEST_LIMITS_H

#include "deploy/weir/suggest/peaks.h"

struct peak_table {
	uint32_t window_count;
	uint64_t keys;
	int64_t *peaks[WEIR_ZONE_LIMITS_MAX];  /* by window and key */
	int64_t *sorted[WEIR_ZONE_LIMITS_MAX]; /* the same, the highest first */
	int64_t
		spared[WEIR_ZONE_LIMITS_MAX]; /* the least that a limit may be: the highest peak of a spared key, 1 at least */
};

void peak_table_make(struct peak_table *table, struct peaks *const *peaks, uint32_t count, uint32_t window_count);
void peak_table_deinit(struct peak_table *table);

/** How many keys a limit of one window would ever block. */
uint64_t keys_above(const struct peak_table *table, uint32_t window, int64_t limit);
/** How many keys all of these limits would ever block together. */
uint64_t keys_above_any(const struct peak_table *table, const int64_t *limits);

/** The smallest limit of a window alone that blocks at most so many keys; PEAK_BEYOND: none does. @param least  of it */
int64_t limit_alone(const struct peak_table *table, uint32_t window, uint64_t allowed, int64_t least);

/**
 * The limits of all windows together that block at most so many keys, none of which can be one lower without blocking
 * more than that, or than `least` says. Of the many such sets it is the one that comes of giving each window the same
 * share of the keys, as large as it can be, and then lowering them one after another, the first window first.
 *
 * @param limits  by window; PEAK_BEYOND: there is none
 */
void limits_together(const struct peak_table *table, uint64_t allowed, const int64_t *least, int64_t *limits);

/** The limit behind which the next key is farthest away, as a ratio; 0: there is none. */
int64_t limit_at_knee(const struct peak_table *table, uint32_t window);

#endif
