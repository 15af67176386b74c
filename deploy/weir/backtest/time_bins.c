/* SPDX-License-Identifier: Apache-2.0 */
/* Bins lie in one block of rows, so that a sum is a loop; wider ones are made by adding rows. */
#include "deploy/weir/backtest/time_bins.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)

static const int64_t widths_ms[] = {
	100,
	SECOND_MS,
	5 * SECOND_MS,
	10 * SECOND_MS,
	30 * SECOND_MS,
	MINUTE_MS,
	5 * MINUTE_MS,
	10 * MINUTE_MS,
	30 * MINUTE_MS,
	HOUR_MS,
	3 * HOUR_MS,
	6 * HOUR_MS,
	12 * HOUR_MS,
	DAY_MS,
	10 * DAY_MS,
	100 * DAY_MS,
	1000 * DAY_MS,
	10000 * DAY_MS,
	INT64_C(10000000) * DAY_MS,
};

enum { WIDTHS = sizeof widths_ms / sizeof *widths_ms, CELLS_MOST = 1 << 16 };

/* Rounded down, before 1970 too. */
static int64_t bin_of(int64_t number, int64_t width)
{
	int64_t bin = number / width;
	return bin - (number % width < 0);
}

void time_bins_init(struct time_bins *bins, uint32_t series)
{
	uint32_t most = CELLS_MOST / series;
	*bins = (struct time_bins){.series = series, .most = most > TIME_BINS_MOST ? TIME_BINS_MOST : most < 2 ? 2 : most};
}

void time_bins_deinit(struct time_bins *bins)
{
	free(bins->cells);
	bins->cells = NULL;
}

static void add_row(uint64_t *into, const uint64_t *of, uint32_t series)
{
	for (uint32_t i = 0; i < series; i++)
		into[i] += of[i];
}

static void widen(struct time_bins *bins)
{
	assert(bins->width + 1 < WIDTHS);
	int64_t times = widths_ms[bins->width + 1] / widths_ms[bins->width];
	int64_t first = bin_of(bins->first, times);
	uint64_t *cells = weir_alloc((size_t)bins->most * bins->series, sizeof *cells);
	uint32_t row = 0;
	for (uint32_t i = 0; i < bins->count; i++) {
		row = (uint32_t)(bin_of(bins->first + i, times) - first);
		add_row(cells + (size_t)row * bins->series, bins->cells + (size_t)i * bins->series, bins->series);
	}
	free(bins->cells);
	bins->cells = cells;
	bins->first = first;
	bins->count = row + 1;
	bins->width++;
}

/* Makes room for a bin, with wider bins where they would be too many. @return its row */
static uint32_t reach(struct time_bins *bins, int64_t time_ms)
{
	int64_t bin = bin_of(time_ms, widths_ms[bins->width]);
	for (;;) {
		int64_t first = bin < bins->first ? bin : bins->first;
		int64_t last = bin > bins->first + bins->count - 1 ? bin : bins->first + bins->count - 1;
		if (last - first < bins->most) {
			size_t shift = (size_t)(bins->first - first) * bins->series;
			if (shift > 0) {
				memmove(bins->cells + shift, bins->cells, (size_t)bins->count * bins->series * sizeof *bins->cells);
				memset(bins->cells, 0, shift * sizeof *bins->cells);
			}
			bins->first = first;
			bins->count = (uint32_t)(last - first + 1);
			return (uint32_t)(bin - first);
		}
		widen(bins);
		bin = bin_of(time_ms, widths_ms[bins->width]);
	}
}

uint64_t *time_bins_at(struct time_bins *bins, int64_t time_ms)
{
	if (bins->cells != NULL && time_ms >= bins->row_begin_ms && time_ms < bins->row_end_ms)
		return bins->cells + (size_t)(bins->row_first - bins->first) * bins->series;
	if (bins->cells == NULL) {
		bins->cells = weir_alloc((size_t)bins->most * bins->series, sizeof *bins->cells);
		bins->first = bin_of(time_ms, widths_ms[0]);
		bins->count = 1;
	}
	uint32_t row = reach(bins, time_ms);
	bins->row_first = bins->first + row;
	bins->row_begin_ms = bins->row_first * widths_ms[bins->width];
	bins->row_end_ms = bins->row_begin_ms + widths_ms[bins->width];
	return bins->cells + (size_t)row * bins->series;
}

void time_bins_fold(struct time_bins *into, const struct time_bins *of)
{
	if (of->cells == NULL)
		return;
	assert(into->series == of->series);
	/* both ends first: then the width is that of all, whatever came before */
	(void)time_bins_at(into, time_bins_begin_ms(of, 0));
	(void)time_bins_at(into, time_bins_begin_ms(of, of->count - 1));
	while (into->width < of->width)
		widen(into);
	into->row_end_ms = into->row_begin_ms; /* no row is at hand */
	for (uint32_t i = 0; i < of->count; i++)
		add_row(time_bins_at(into, time_bins_begin_ms(of, i)), of->cells + (size_t)i * of->series, of->series);
}

int64_t time_bins_width_ms(const struct time_bins *bins)
{
	return widths_ms[bins->width];
}

int64_t time_bins_begin_ms(const struct time_bins *bins, uint32_t bin)
{
	return (bins->first + bin) * widths_ms[bins->width];
}
