/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of packed times. Most events come in order and touch the newest end
 * only; one out of order moves the entries that are newer than it, which are
 * few as long as logs are nearly sorted.
 */
#include "common/algorithm/times.h"

struct weir_times_shape weir_times_shape_of(int64_t most, int64_t span, bool runs_only)
{
	/* In the run form no two entries have the same unit. */
	int64_t entries = runs_only && span + 1 < most ? span + 1 : most;
	unsigned time_bits = weir_bits_of((uint64_t)span + 1);
	return (struct weir_times_shape){
		.count_bytes = weir_bytes_for((uint64_t)entries),
		.total_bytes = weir_bytes_for((uint64_t)most),
		.time_bits = (uint8_t)(time_bits < WEIR_TIME_BITS ? time_bits : WEIR_TIME_BITS),
		.sum_bits = (uint8_t)weir_bits_of(2 * (uint64_t)most),
		.entries_max = (uint32_t)entries,
		.most = most,
	};
}

static uint64_t sum_at(const struct weir_times *times, uint32_t i)
{
	return weir_bits_get(times->entries, weir_times_place(times, i) + times->shape->time_bits, times->shape->sum_bits);
}

static void set_sum(struct weir_times *times, uint32_t i, uint64_t sum)
{
	weir_bits_put(times->entries, weir_times_place(times, i) + times->shape->time_bits, times->shape->sum_bits, sum);
}

static uint64_t sum_mask(const struct weir_times *times)
{
	return (UINT64_C(1) << times->shape->sum_bits) - 1;
}

/* The sum before the oldest entry; 0 <= i: up to and with entry i - 1. */
static uint64_t sum_before(const struct weir_times *times, uint32_t i)
{
	if (i > 0)
		return sum_at(times, i - 1);
	return times->length > 0 ? (sum_at(times, times->length - 1) - times->total) & sum_mask(times) : 0;
}

static void set_time(struct weir_times *times, uint32_t i, int64_t unit)
{
	weir_bits_put(times->entries, weir_times_place(times, i), times->shape->time_bits, (uint64_t)unit);
}

uint32_t weir_times_first_above(const struct weir_times *times, int64_t unit)
{
	uint32_t low = 1, high = times->length;
	if (high == 0 || weir_times_at(times, 0) > unit)
		return 0; /* nothing has left the window: what it is asked most */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (weir_times_at(times, middle) > unit)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Times in the entries from i on. */
static uint64_t count_from(const struct weir_times *times, uint32_t i)
{
	if (!times->runs || i == times->length)
		return times->length - i;
	return (sum_at(times, times->length - 1) - sum_before(times, i)) & sum_mask(times);
}

uint64_t weir_times_count_at(const struct weir_times *times, uint32_t i)
{
	return times->runs ? (sum_at(times, i) - sum_before(times, i)) & sum_mask(times) : 1;
}

int64_t weir_times_newest(const struct weir_times *times, uint64_t k)
{
	if (!times->runs)
		return weir_times_at(times, times->length - (uint32_t)k);
	/* The last entry from which on there are k or more. */
	uint32_t low = 0, high = times->length - 1;
	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;
		if (count_from(times, middle) >= k)
			low = middle;
		else
			high = middle - 1;
	}
	return weir_times_at(times, low);
}

uint64_t weir_times_above(const struct weir_times *times, int64_t unit)
{
	return count_from(times, weir_times_first_above(times, unit));
}

/* Takes the oldest `entries` out. The head stays within the room. */
static void drop_entries(struct weir_times *times, uint32_t entries)
{
	if (entries == 0)
		return;
	times->total = count_from(times, entries);
	uint64_t head = (uint64_t)times->head + entries;
	times->head = (uint32_t)(head >= times->room ? head - times->room : head);
	times->length -= entries;
	if (times->length == 0)
		times->head = 0;
}

void weir_times_drop_until(struct weir_times *times, int64_t unit)
{
	drop_entries(times, weir_times_first_above(times, unit));
}

void weir_times_drop_oldest(struct weir_times *times, uint64_t count)
{
	if (!times->runs) {
		drop_entries(times, count < times->length ? (uint32_t)count : times->length);
		return;
	}
	while (count > 0 && times->length > 0) {
		uint64_t oldest = weir_times_count_at(times, 0);
		if (oldest > count) {
			times->total -= count; /* the sums before it rise by themselves */
			return;
		}
		drop_entries(times, 1);
		count -= oldest;
	}
}

void weir_times_drop_entry(struct weir_times *times)
{
	drop_entries(times, 1);
}

/* Takes entries out in the middle, moving the newer ones down. */
static void close_gap(struct weir_times *times, uint32_t i, uint32_t entries)
{
	unsigned bits = weir_times_stride(times->shape, times->runs), time_bits = times->shape->time_bits;
	for (uint32_t j = i; entries > 0 && j + entries < times->length; j++) {
		size_t from = weir_times_place(times, j + entries), to = weir_times_place(times, j);
		weir_bits_put(times->entries, to, time_bits, weir_bits_get(times->entries, from, time_bits));
		if (times->runs)
			weir_bits_put(times->entries, to + time_bits, bits - time_bits,
			              weir_bits_get(times->entries, from + time_bits, bits - time_bits));
	}
	times->length -= entries;
	if (times->length == 0)
		times->head = 0;
}

uint64_t weir_times_take(struct weir_times *times, int64_t unit, uint64_t whole, uint64_t count)
{
	uint32_t i = weir_times_first_above(times, unit - 1), end = weir_times_first_above(times, unit);
	while (whole > 0 && i < end && weir_times_count_at(times, i) != whole)
		i++;
	if (i == end)
		return 0;
	uint64_t held = times->runs ? weir_times_count_at(times, i) : whole > 0 ? 1 : end - i;
	uint64_t taken = count < held ? count : held;
	for (uint32_t j = i; times->runs && j < times->length; j++)
		set_sum(times, j, (sum_at(times, j) - taken) & sum_mask(times));
	close_gap(times, i, !times->runs ? (uint32_t)taken : taken == held ? 1 : 0);
	times->total = times->runs ? times->total - taken : times->length;
	return taken;
}

uint32_t weir_times_wanted(const struct weir_times *times, int64_t count)
{
	uint64_t more = times->runs || count == 1 ? 1 : (uint64_t)count;
	uint64_t wanted = times->length + more;
	return wanted < times->shape->entries_max ? (uint32_t)wanted : times->shape->entries_max;
}

/* Makes place for `entries` new ones before entry i, moving the newer ones up. */
static void open_gap(struct weir_times *times, uint32_t i, uint32_t entries)
{
	times->length += entries;
	for (uint32_t j = times->length; j-- > i + entries;) {
		size_t from = weir_times_place(times, j - entries), to = weir_times_place(times, j);
		unsigned time_bits = times->shape->time_bits, sum_bits = times->shape->sum_bits;
		weir_bits_put(times->entries, to, time_bits, weir_bits_get(times->entries, from, time_bits));
		if (times->runs)
			weir_bits_put(times->entries, to + time_bits, sum_bits,
			              weir_bits_get(times->entries, from + time_bits, sum_bits));
	}
}

/* Where a time belongs: behind those that equal it. Looked for from the newest end, where it nearly always is. */
static uint32_t place_of(const struct weir_times *times, int64_t unit)
{
	uint32_t i = times->length;
	while (i > 0 && weir_times_at(times, i - 1) > unit)
		i--;
	return i;
}

static void add_plain(struct weir_times *times, int64_t unit, int64_t count)
{
	uint32_t i = place_of(times, unit);
	uint32_t more = (uint32_t)(count < times->shape->most ? count : times->shape->most);
	uint64_t spare = (uint64_t)times->shape->most - times->length;
	if (more > spare) {
		/* The oldest go first: of those before it, then of the new ones themselves. */
		uint32_t excess = more - (uint32_t)spare;
		uint32_t dropped = excess < i ? excess : i;
		drop_entries(times, dropped);
		i -= dropped;
		more -= excess - dropped;
	}
	open_gap(times, i, more);
	for (uint32_t j = 0; j < more; j++)
		set_time(times, i + j, unit);
	times->total = times->length;
}

static void add_run(struct weir_times *times, int64_t unit, int64_t count)
{
	uint64_t more = (uint64_t)(count < times->shape->most ? count : times->shape->most);
	uint32_t i = place_of(times, unit);
	uint64_t before = sum_before(times, i);
	if (i > 0 && !times->apart && weir_times_at(times, i - 1) == unit) {
		i--; /* its own sum rises too */
	} else {
		if (times->length == times->shape->entries_max) {
			/* As many times as there may be, and each its own entry: the oldest makes place. */
			if (i == 0)
				return;
			drop_entries(times, 1);
			i--;
		}
		open_gap(times, i, 1);
		set_time(times, i, unit);
		set_sum(times, i, before);
	}
	for (uint32_t j = i; j < times->length; j++)
		set_sum(times, j, sum_at(times, j) + more);
	times->total += more;
	if (times->total > (uint64_t)times->shape->most)
		weir_times_drop_oldest(times, times->total - (uint64_t)times->shape->most);
}

void weir_times_add(struct weir_times *times, int64_t unit, int64_t count)
{
	if (times->runs)
		add_run(times, unit, count);
	else
		add_plain(times, unit, count);
}

/* Plain times of one width: as many at once as a word has bits for. */
static void copy_plain(struct weir_times *to, const struct weir_times *from)
{
	const unsigned bits = from->shape->time_bits;
	const uint32_t most = WEIR_BITS_ENTRY_MAX / bits;
	for (uint32_t i = 0, count; i < from->length; i += count) {
		size_t start = weir_times_place(from, i);
		uint32_t in_row = from->room - (uint32_t)(start / bits), left = from->length - i;
		count = most < in_row ? most : in_row;
		count = count < left ? count : left;
		weir_bits_put(to->entries, (size_t)i * bits, count * bits, weir_bits_get(from->entries, start, count * bits));
	}
	to->length = from->length;
	to->total = from->length;
}

void weir_times_copy(struct weir_times *to, const struct weir_times *from)
{
	to->head = to->length = 0;
	to->total = 0;
	if (!to->runs && !from->runs && to->shape->time_bits == from->shape->time_bits) {
		copy_plain(to, from);
		return;
	}
	uint64_t sum = 0;
	for (uint32_t i = 0; i < from->length; i++) {
		int64_t unit = weir_times_at(from, i);
		uint64_t count = weir_times_count_at(from, i);
		sum += count;
		if (to->runs && !to->apart && to->length > 0 && weir_times_at(to, to->length - 1) == unit) {
			set_sum(to, to->length - 1, sum);
		} else {
			to->length++;
			set_time(to, to->length - 1, unit);
			if (to->runs)
				set_sum(to, to->length - 1, sum);
		}
	}
	to->total = to->runs ? sum : to->length;
}

bool weir_times_check(const struct weir_times *times, int64_t span)
{
	const struct weir_times_shape *shape = times->shape;
	if (times->room > shape->entries_max || times->length > times->room ||
	    (times->head >= times->room && times->head > 0) || times->total > (uint64_t)shape->most ||
	    times->total < times->length)
		return false;
	bool may_equal = !times->runs || times->apart;
	uint64_t rest = times->total;
	int64_t before = -1;
	for (uint32_t i = 0; i < times->length; i++) {
		int64_t unit = weir_times_at(times, i);
		uint64_t count = weir_times_count_at(times, i);
		if (unit < 0 || times->anchor - unit >= span || count == 0 || count > rest)
			return false;
		if (unit < before || (unit == before && !may_equal))
			return false;
		before = unit;
		rest -= count;
	}
	return rest == 0;
}
