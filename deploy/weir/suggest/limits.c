/* SPDX-License-Identifier: Apache-2.0 */
/* Peaks are sorted once for each window: how many keys a limit blocks, and which limit blocks so many, is then a look. */
#include "deploy/weir/suggest/limits.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

static int descending(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
	return (a < b) - (a > b);
}

static void sort(int64_t *peaks, uint64_t count)
{
	qsort(peaks, count, sizeof *peaks, descending);
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void peak_table_make(struct peak_table *table, struct peaks *const *peaks, uint32_t count, uint32_t window_count)
{
	*table = (struct peak_table){.window_count = window_count};
	for (uint32_t i = 0; i < count; i++)
		table->keys += peaks_keys(peaks[i]);
	for (uint32_t window = 0; window < window_count; window++) {
		int64_t *at = table->peaks[window] = weir_alloc(table->keys + 1, sizeof *at);
		table->spared[window] = 1;
		for (uint32_t i = 0; i < count; i++) {
			for (uint32_t key = 0; key < peaks_keys(peaks[i]); key++)
				*at++ = peaks_at(peaks[i], key, window);
			table->spared[window] = larger(table->spared[window], peaks_seen(peaks[i])->spared[window].peak);
		}
		table->sorted[window] = weir_alloc(table->keys + 1, sizeof *at);
		memcpy(table->sorted[window], table->peaks[window], table->keys * sizeof *at);
		sort(table->sorted[window], table->keys);
	}
}

void peak_table_deinit(struct peak_table *table)
{
	for (uint32_t i = 0; i < table->window_count; i++) {
		free(table->peaks[i]);
		free(table->sorted[i]);
	}
}

uint64_t keys_above(const struct peak_table *table, uint32_t window, int64_t limit)
{
	uint64_t low = 0, high = table->keys;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (table->sorted[window][middle] > limit)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_above(const struct peak_table *table, uint64_t key, const int64_t *limits)
{
	for (uint32_t i = 0; i < table->window_count; i++)
		if (table->peaks[i][key] > limits[i])
			return true;
	return false;
}

uint64_t keys_above_any(const struct peak_table *table, const int64_t *limits)
{
	uint64_t count = 0;
	for (uint64_t key = 0; key < table->keys; key++)
		count += is_above(table, key, limits);
	return count;
}

/* The smallest limit that at most `allowed` of these exceed. */
static int64_t smallest(const int64_t *sorted, uint64_t count, uint64_t allowed, int64_t least)
{
	return allowed < count ? larger(sorted[allowed], least) : least;
}

int64_t limit_alone(const struct peak_table *table, uint32_t window, uint64_t allowed, int64_t least)
{
	return smallest(table->sorted[window], table->keys, allowed, least);
}

/* As low as it goes while the others stay. @param room  for all keys */
static void lower(const struct peak_table *table, uint32_t window, uint64_t allowed, int64_t least, int64_t *limits,
                  int64_t *room)
{
	uint64_t blocked = 0, count = 0;
	limits[window] = INT64_MAX;
	for (uint64_t key = 0; key < table->keys; key++) {
		if (is_above(table, key, limits))
			blocked++;
		else
			room[count++] = table->peaks[window][key];
	}
	sort(room, count);
	limits[window] = smallest(room, count, allowed - blocked, least);
}

void limits_together(const struct peak_table *table, uint64_t allowed, const int64_t *least, int64_t *limits)
{
	uint64_t low = 0, high = allowed;
	while (low < high) {
		uint64_t each = low + (high - low + 1) / 2;
		for (uint32_t i = 0; i < table->window_count; i++)
			limits[i] = limit_alone(table, i, each, least[i]);
		if (keys_above_any(table, limits) <= allowed)
			low = each;
		else
			high = each - 1;
	}
	for (uint32_t i = 0; i < table->window_count; i++)
		limits[i] = limit_alone(table, i, low, least[i]);
	int64_t *room = weir_alloc(table->keys + 1, sizeof *room);
	for (uint32_t i = 0; i < table->window_count; i++)
		lower(table, i, allowed, least[i], limits, room);
	free(room);
}

int64_t limit_at_knee(const struct peak_table *table, uint32_t window)
{
	const int64_t *sorted = table->sorted[window];
	int64_t knee = 0;
	double widest = 1;
	for (uint64_t i = 1; i < table->keys && sorted[i] > 0; i++) {
		double ratio = (double)sorted[i - 1] / (double)sorted[i];
		if (ratio > widest) {
			widest = ratio;
			knee = sorted[i];
		}
	}
	return knee;
}
