/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key has a row, with a number and a state for each window. The states are what a limiter keeps of the times of such a
 * limit, in the form that takes a run of equal times as one; a limiter's bucket lays them out in the same way.
 */
#include "deploy/weir/suggest/peaks.h"

#include "common/algorithm/limit_state.h"
#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <stdlib.h>
#include <string.h>

/* What the algorithm keeps of a key in a window: its fixed part, and behind that the entries of one that keeps times. */
struct window_times {
	uint8_t *bytes; /* NULL: none, or no longer needed */
	size_t size;
	int64_t newest_ms;
};

struct peak_row {
	uint64_t hash;
	uint64_t blocked;
	char *key; /* NULL: it was not blocked; owned */
	uint32_t key_length;
	bool spared;
};

struct peaks {
	struct peaks_options options;
	struct weir_limit_shape shapes[WEIR_ZONE_LIMITS_MAX];
	struct peak_row *rows;
	int64_t *peaks;             /* by row and window */
	struct window_times *times; /* likewise */
	uint32_t count, room;
	uint32_t *table; /* number of a row + 1; 0: free */
	uint32_t mask;   /* places of the table - 1 */
	size_t bytes;    /* of times */
	_Atomic bool full;
	struct peaks_seen seen;
};

struct peaks *peaks_new(const struct peaks_options *options)
{
	struct peaks *peaks = weir_alloc(1, sizeof *peaks);
	peaks->options = *options;
	peaks->seen.first_ms = INT64_MAX;
	peaks->seen.last_ms = INT64_MIN;
	for (uint32_t i = 0; i < options->window_count; i++) {
		struct weir_limit limit = {.algorithm = weir_algorithm_named(options->algorithm),
		                           .rate = WEIR_RATE_MAX,
		                           .window_ms = options->windows_ms[i]};
		peaks->shapes[i] = weir_limit_shape_of(&limit, false);
	}
	return peaks;
}

void peaks_end(struct peaks *peaks)
{
	for (size_t i = 0; peaks->times != NULL && i < (size_t)peaks->count * peaks->options.window_count; i++)
		free(peaks->times[i].bytes);
	free(peaks->times);
	peaks->times = NULL;
}

void peaks_free(struct peaks *peaks)
{
	if (peaks == NULL)
		return;
	peaks_end(peaks);
	for (uint32_t i = 0; i < peaks->count; i++)
		free(peaks->rows[i].key);
	for (uint32_t i = 0; i < WEIR_ZONE_LIMITS_MAX; i++)
		weir_text_deinit(&peaks->seen.spared[i].key);
	free(peaks->rows);
	free(peaks->peaks);
	free(peaks->table);
	free(peaks);
}

/* ---- keys ---- */

static uint32_t *place_of(const struct peaks *peaks, uint64_t hash)
{
	uint32_t at = (uint32_t)(hash >> 32) & peaks->mask;
	while (peaks->table[at] != 0 && peaks->rows[peaks->table[at] - 1].hash != hash)
		at = (at + 1) & peaks->mask;
	return &peaks->table[at];
}

static void grow_table(struct peaks *peaks)
{
	uint32_t places = peaks->table == NULL ? 1024 : 2 * (peaks->mask + 1);
	free(peaks->table);
	peaks->table = weir_alloc(places, sizeof *peaks->table);
	peaks->mask = places - 1;
	for (uint32_t i = 0; i < peaks->count; i++)
		*place_of(peaks, peaks->rows[i].hash) = i + 1;
}

static void grow_rows(struct peaks *peaks)
{
	size_t windows = peaks->options.window_count;
	peaks->room = peaks->room == 0 ? 256 : peaks->room + peaks->room / 2;
	peaks->rows = weir_realloc(peaks->rows, peaks->room, sizeof *peaks->rows);
	peaks->peaks = weir_realloc(peaks->peaks, peaks->room * windows, sizeof *peaks->peaks);
	peaks->times = weir_realloc(peaks->times, peaks->room * windows, sizeof *peaks->times);
}

/* Whether so many bytes more may be kept. The number of rows stays far below what a table of 32 bits can find. */
static bool may_take(struct peaks *peaks, size_t bytes)
{
	size_t windows = peaks->options.window_count;
	size_t row = sizeof *peaks->rows + 3 * sizeof(uint32_t) + windows * (sizeof(int64_t) + sizeof *peaks->times);
	if (peaks->count > UINT32_C(1) << 29 ||
	    peaks->bytes + bytes + (peaks->count + (size_t)1) * row > peaks->options.most_bytes)
		peaks->full = true;
	return !peaks->full;
}

/* @return the row of a key, made where there is none; NULL: there is no more room */
static struct peak_row *row_of(struct peaks *peaks, struct weir_span key)
{
	uint64_t hash = weir_hash64(key.at, key.length);
	size_t windows = peaks->options.window_count;
	if (peaks->table == NULL || peaks->count > peaks->mask / 2)
		grow_table(peaks);
	uint32_t *place = place_of(peaks, hash);
	if (*place != 0)
		return &peaks->rows[*place - 1];
	if (!may_take(peaks, 0))
		return NULL;
	if (peaks->count == peaks->room)
		grow_rows(peaks);
	uint32_t row = peaks->count++;
	*place = row + 1;
	peaks->rows[row] = (struct peak_row){.hash = hash, .spared = spared_has(peaks->options.spared, key)};
	peaks->seen.spared_keys += peaks->rows[row].spared;
	memset(peaks->peaks + row * windows, 0, windows * sizeof *peaks->peaks);
	memset(peaks->times + row * windows, 0, windows * sizeof *peaks->times);
	return &peaks->rows[row];
}

/* ---- times ---- */

static struct weir_limit_view view_of(const struct weir_limit_shape *shape, const struct window_times *times)
{
	return (struct weir_limit_view){.shape = shape,
	                                .fixed = times->bytes,
	                                .entries = times->bytes + shape->fixed_bytes[1],
	                                .newest_ms = times->newest_ms,
	                                .runs = true};
}

static void make_room(struct peaks *peaks, const struct weir_limit_shape *shape, struct window_times *times)
{
	struct window_times grown = {.newest_ms = times->newest_ms, .size = shape->fixed_bytes[1]};
	uint32_t room = 0;
	if (shape->has_times) {
		room = times->bytes == NULL ? 0 : weir_times_room(times->bytes, &shape->times);
		room += 2 + room / 2;
		grown.size += weir_bits_bytes(room, weir_times_stride(&shape->times, true));
	}
	if (!may_take(peaks, grown.size - times->size))
		return;
	grown.bytes = weir_alloc(1, grown.size);
	if (shape->has_times)
		weir_times_set_room(grown.bytes, &shape->times, room);
	if (times->bytes != NULL) {
		struct weir_limit_view from = view_of(shape, times), to = view_of(shape, &grown);
		shape->ops->copy(&to, &from);
	}
	peaks->bytes += grown.size - times->size;
	free(times->bytes);
	*times = grown;
}

static void drop(struct peaks *peaks, struct window_times *times)
{
	peaks->bytes -= times->size;
	free(times->bytes);
	*times = (struct window_times){0};
}

/* What the window holds with one event more; 0: it is late, PEAK_BEYOND: more than any limit can be. */
static int64_t take(struct peaks *peaks, const struct weir_limit_shape *shape, struct window_times *times, int64_t t,
                    int64_t c)
{
	if (times->bytes == NULL) {
		times->newest_ms = t;
		make_room(peaks, shape, times);
	}
	while (!peaks->full) {
		struct weir_limit_view view = view_of(shape, times);
		unsigned judged = shape->ops->judge(&view, t, c);
		if (judged & WEIR_LIMIT_LATE)
			return 0;
		if (judged & WEIR_LIMIT_OVER)
			return PEAK_BEYOND;
		if (shape->ops->record(&view, t, c, false) == WEIR_LIMIT_RECORDED) {
			times->newest_ms = view.newest_ms = t > times->newest_ms ? t : times->newest_ms;
			return shape->ops->held(&view, t);
		}
		make_room(peaks, shape, times);
	}
	return 0;
}

static void note_spared(struct spared_peak *best, int64_t peak, struct weir_span key)
{
	if (peak <= best->peak)
		return;
	best->peak = peak;
	weir_text_clear(&best->key);
	weir_text_append(&best->key, key.at, key.length);
}

static void add_event(struct peaks *peaks, const struct weir_frame_event *event, struct weir_span key)
{
	struct peak_row *row = row_of(peaks, key);
	peaks->seen.requests++;
	peaks->seen.first_ms = event->time_ms < peaks->seen.first_ms ? event->time_ms : peaks->seen.first_ms;
	peaks->seen.last_ms = event->time_ms > peaks->seen.last_ms ? event->time_ms : peaks->seen.last_ms;
	if (row == NULL || event->cost == 0) /* what costs nothing passes, and is not recorded */
		return;
	size_t first = (size_t)(row - peaks->rows) * peaks->options.window_count;
	for (uint32_t i = 0; i < peaks->options.window_count; i++) {
		int64_t *peak = &peaks->peaks[first + i];
		if (*peak == PEAK_BEYOND)
			continue;
		int64_t now = take(peaks, &peaks->shapes[i], &peaks->times[first + i], event->time_ms, event->cost);
		peaks->seen.late[i] += now == 0;
		if (now == PEAK_BEYOND)
			drop(peaks, &peaks->times[first + i]);
		if (now <= *peak)
			continue;
		*peak = now;
		if (row->spared)
			note_spared(&peaks->seen.spared[i], now, key);
	}
}

void peaks_add(struct peaks *peaks, const struct lane_result *result)
{
	const struct weir_frame *frame = result->frame;
	for (uint32_t i = 0; !peaks->full && i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		if (frame->zone_sets[event->zone_set].count > 0)
			add_event(peaks, event, frame->keys[event->key]);
	}
}

/* ---- what is known ---- */

bool peaks_full(const struct peaks *peaks)
{
	return peaks->full;
}

uint32_t peaks_keys(const struct peaks *peaks)
{
	return peaks->count;
}

int64_t peaks_at(const struct peaks *peaks, uint32_t key, uint32_t window)
{
	return peaks->peaks[(size_t)key * peaks->options.window_count + window];
}

const struct peaks_seen *peaks_seen(const struct peaks *peaks)
{
	return &peaks->seen;
}

bool peaks_block(struct peaks *peaks, struct weir_span key)
{
	uint32_t place = peaks->table == NULL ? 0 : *place_of(peaks, weir_hash64(key.at, key.length));
	if (place == 0)
		return false;
	struct peak_row *row = &peaks->rows[place - 1];
	if (row->blocked++ == 0) {
		row->key = weir_copy(key.at, key.length);
		row->key_length = key.length;
	}
	return true;
}

struct blocked_key peaks_blocked(const struct peaks *peaks, uint32_t key)
{
	const struct peak_row *row = &peaks->rows[key];
	return (struct blocked_key){.key = {.at = row->key, .length = row->key_length}, .requests = row->blocked};
}
