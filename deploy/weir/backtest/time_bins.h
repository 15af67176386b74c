/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts over time whose span is not known beforehand: bins become wider when they would be too many. Each width holds
 * whole bins of the one before, and bins begin at multiples of their width, so the same events give the same bins in any
 * order.
 */
#ifndef DEPLOY_WEIR_BACKTEST_TIME_BINS_H
#define DEPLOY_WEIR_BACKTEST_TIME_BINS_H

#include <stdint.h>

enum { TIME_BINS_MOST = 512 };

/* Owned by one thread. */
struct time_bins {
	uint32_t series;   /* counters of a bin */
	uint32_t most;     /* bins; wider ones come instead of more */
	unsigned width;    /* its place among the widths */
	int64_t first;     /* the first bin begins at first * width */
	uint32_t count;    /* bins from the first to the last that is not empty */
	uint64_t *cells;   /* count rows of `series`; NULL: nothing was counted */
	int64_t row_first; /* the bin of the newest row: events come in the order of time, mostly */
	int64_t row_begin_ms, row_end_ms;
};

void time_bins_init(struct time_bins *bins, uint32_t series);
void time_bins_deinit(struct time_bins *bins);

/** The counters of a moment's bin, valid until the next call. */
uint64_t *time_bins_at(struct time_bins *bins, int64_t time_ms);

/** Adds the counts of others with the same series. */
void time_bins_fold(struct time_bins *into, const struct time_bins *of);

int64_t time_bins_width_ms(const struct time_bins *bins);
/** When the bin begins. @param bin  below count */
int64_t time_bins_begin_ms(const struct time_bins *bins, uint32_t bin);

#endif
