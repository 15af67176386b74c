/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key's row has a bit for each zone that saw it, for each that blocked it, and for each pair that differed: so that it
 * is found once for a frame, however many events and zones the key has there.
 *
 * Finding rows costs what waiting for memory costs. So the rows of a frame's keys are looked for before its events are
 * counted, and each is asked for well before its turn.
 */
#include "deploy/weir/backtest/figures.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64, TABLE_LEAST = 64, ROWS_LEAST = 16, NO_ROW = UINT32_MAX };
/* A key's row is asked for so many keys after its place in the table, and looked at so many keys after that place. */
enum { ROW_ASKED_AFTER = 8, ROW_FOUND_AFTER = 16 };

/* The rows of all keys, and a table that finds them by the key's hash. */
struct key_rows {
	uint64_t *at;       /* rows: the hash, and the key's bits */
	uint32_t row_words; /* of a row */
	uint32_t count, room;
	uint32_t *table; /* number of a row + 1; 0: free */
	uint32_t mask;   /* places of the table - 1 */
	bool full;
};

struct figures {
	struct figures_options options;
	struct figures_zone *zones;
	struct figures_difference *differences;
	struct time_bins bins;
	struct key_rows rows;
	uint64_t *blocked;      /* the zones that block the event at hand */
	uint32_t blocked_words; /* of those */
	/* of the frame at hand */
	uint64_t *hashes;   /* of its keys */
	uint32_t *key_rows; /* the keys' rows, or NO_ROW: there is no more room */
	uint32_t key_room;
};

static uint32_t words_of(uint32_t bits)
{
	return (bits + WORD_BITS - 1) / WORD_BITS;
}

struct figures *figures_new(const struct figures_options *options)
{
	struct figures *figures = weir_alloc(1, sizeof *figures);
	figures->options = *options;
	figures->rows.row_words = 1 + words_of(2 * options->zone_count + options->pair_count);
	figures->blocked_words = words_of(options->zone_count);
	figures->zones = weir_alloc(options->zone_count, sizeof *figures->zones);
	figures->differences = weir_alloc(options->pair_count + (size_t)1, sizeof *figures->differences);
	figures->blocked = weir_alloc(figures->blocked_words, sizeof *figures->blocked);
	time_bins_init(&figures->bins, 2 * options->zone_count);
	return figures;
}

void figures_free(struct figures *figures)
{
	if (figures == NULL)
		return;
	for (uint32_t i = 0; i < figures->options.pair_count; i++)
		for (uint32_t k = 0; k < FIGURES_EXAMPLES; k++)
			weir_text_deinit(&figures->differences[i].examples[k].key);
	time_bins_deinit(&figures->bins);
	free(figures->rows.at);
	free(figures->rows.table);
	free(figures->hashes);
	free(figures->key_rows);
	free(figures->blocked);
	free(figures->differences);
	free(figures->zones);
	free(figures);
}

/* ---- keys ---- */

static uint64_t *row_at(const struct key_rows *rows, uint32_t row)
{
	return rows->at + (size_t)row * rows->row_words;
}

static uint32_t home_of(const struct key_rows *rows, uint64_t hash)
{
	return (uint32_t)(hash >> 32) & rows->mask;
}

static uint32_t *place_of(const struct key_rows *rows, uint64_t hash)
{
	uint32_t at = home_of(rows, hash);
	while (rows->table[at] != 0 && row_at(rows, rows->table[at] - 1)[0] != hash)
		at = (at + 1) & rows->mask;
	return &rows->table[at];
}

/* What rows and a table of so many take. */
static bool fits(const struct figures *figures, size_t rows, size_t places)
{
	size_t bytes = rows * figures->rows.row_words * sizeof(uint64_t) + places * sizeof(uint32_t);
	return figures->options.most_bytes == 0 || bytes <= figures->options.most_bytes;
}

/* Of a table, at most half is taken. @return false: there is no more room */
static bool grow_table(struct figures *figures)
{
	struct key_rows *rows = &figures->rows;
	uint32_t places = rows->table == NULL ? TABLE_LEAST : 2 * (rows->mask + 1);
	if (places == 0 || (rows->table != NULL && !fits(figures, rows->room, places)))
		return false;
	free(rows->table);
	rows->table = weir_alloc(places, sizeof *rows->table);
	rows->mask = places - 1;
	for (uint32_t i = 0; i < rows->count; i++)
		*place_of(rows, row_at(rows, i)[0]) = i + 1;
	return true;
}

static bool grow_rows(struct figures *figures)
{
	struct key_rows *rows = &figures->rows;
	uint32_t room = rows->room == 0 ? ROWS_LEAST : rows->room + rows->room / 2;
	while (room > rows->room && !fits(figures, room, rows->mask + (size_t)1))
		room = rows->room + (room - rows->room) / 2;
	if (room == rows->room)
		return false;
	rows->room = room;
	rows->at = weir_realloc(rows->at, room, rows->row_words * sizeof *rows->at);
	return true;
}

static uint32_t find_or_make_row(struct figures *figures, uint64_t hash)
{
	struct key_rows *rows = &figures->rows;
	uint32_t *place = place_of(rows, hash);
	if (*place != 0)
		return *place - 1;
	if (rows->count > rows->mask / 2) {
		rows->full = rows->full || !grow_table(figures);
		place = place_of(rows, hash);
	}
	rows->full = rows->full || (rows->count == rows->room && !grow_rows(figures));
	if (rows->full)
		return NO_ROW;
	memset(row_at(rows, rows->count), 0, rows->row_words * sizeof *rows->at);
	row_at(rows, rows->count)[0] = hash;
	*place = ++rows->count;
	return rows->count - 1;
}

static void make_key_room(struct figures *figures, uint32_t count)
{
	if (count <= figures->key_room)
		return;
	figures->key_room = count + count / 2;
	figures->hashes = weir_realloc(figures->hashes, figures->key_room, sizeof *figures->hashes);
	figures->key_rows = weir_realloc(figures->key_rows, figures->key_room, sizeof *figures->key_rows);
}

static void find_rows(struct figures *figures, const struct weir_frame *frame)
{
	struct key_rows *rows = &figures->rows;
	uint32_t count = frame->key_count;
	make_key_room(figures, count);
	if (rows->table == NULL)
		(void)grow_table(figures);
	for (uint32_t i = 0; i < count + ROW_FOUND_AFTER; i++) {
		if (i < count) {
			figures->hashes[i] = weir_hash64(frame->keys[i].at, frame->keys[i].length);
			__builtin_prefetch(&rows->table[home_of(rows, figures->hashes[i])]);
		}
		if (i >= ROW_ASKED_AFTER && i < count + ROW_ASKED_AFTER) {
			uint32_t row = rows->table[home_of(rows, figures->hashes[i - ROW_ASKED_AFTER])];
			if (row != 0)
				__builtin_prefetch(row_at(rows, row - 1), 1);
		}
		if (i >= ROW_FOUND_AFTER)
			figures->key_rows[i - ROW_FOUND_AFTER] = find_or_make_row(figures, figures->hashes[i - ROW_FOUND_AFTER]);
	}
}

/* The bits of a key of the frame; NULL: it is not known, as there is no more room. */
static uint64_t *bits_of(const struct figures *figures, uint32_t key)
{
	uint32_t row = figures->key_rows[key];
	return row == NO_ROW ? NULL : row_at(&figures->rows, row) + 1;
}

/* ---- bits: whether zones saw the key, then whether they blocked it, then whether pairs differ about it ---- */

static uint32_t blocked_bit(const struct figures *figures, uint32_t place)
{
	return figures->options.zone_count + place;
}

static uint32_t differing_bit(const struct figures *figures, uint32_t pair)
{
	return 2 * figures->options.zone_count + pair;
}

static bool has_bit(const uint64_t *words, uint32_t bit)
{
	return words[bit / WORD_BITS] >> bit % WORD_BITS & 1;
}

static void set_bit(uint64_t *words, uint32_t bit)
{
	words[bit / WORD_BITS] |= UINT64_C(1) << bit % WORD_BITS;
}

/* ---- differences ---- */

static int compare_examples(const struct figures_example *a, const struct figures_example *b)
{
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	size_t shorter = a->key.length < b->key.length ? a->key.length : b->key.length;
	int order = shorter > 0 ? memcmp(a->key.at, b->key.at, shorter) : 0;
	return order != 0 ? order : (a->key.length > b->key.length) - (a->key.length < b->key.length);
}

/* Keeps the first ones. @param example  its key is copied */
static void add_example(struct figures_difference *difference, const struct figures_example *example)
{
	uint32_t at = difference->example_count;
	while (at > 0 && compare_examples(example, &difference->examples[at - 1]) < 0)
		at--;
	if (at == FIGURES_EXAMPLES)
		return;
	if (difference->example_count < FIGURES_EXAMPLES)
		difference->example_count++;
	uint32_t last = difference->example_count - 1;
	struct weir_text key = difference->examples[last].key;
	memmove(&difference->examples[at + 1], &difference->examples[at], (last - at) * sizeof *difference->examples);
	weir_text_clear(&key);
	(void)weir_text_reserve(&key, example->key.length + 1); /* the key of a zone without one is empty, and no NULL */
	weir_text_append(&key, example->key.at, example->key.length);
	difference->examples[at] = *example;
	difference->examples[at].key = key;
}

static void count_differences(struct figures *figures, const struct weir_frame *frame,
                              const struct weir_frame_event *event, uint64_t *bits)
{
	for (uint32_t i = 0; i < figures->options.pair_count; i++) {
		const struct figures_pair *pair = &figures->options.pairs[i];
		bool base_blocks = has_bit(figures->blocked, pair->base);
		if (base_blocks == has_bit(figures->blocked, pair->zone))
			continue;
		struct figures_difference *difference = &figures->differences[i];
		difference->requests++;
		if (bits == NULL || has_bit(bits, differing_bit(figures, i)))
			continue;
		set_bit(bits, differing_bit(figures, i));
		difference->keys++;
		struct weir_span key = frame->keys[event->key];
		struct figures_example example = {
			.order = figures->options.by_position ? event->position : (uint64_t)event->time_ms,
			.at_ms = event->time_ms,
			.base_blocks = base_blocks,
			.key = {.at = (char *)key.at, .length = key.length},
		};
		add_example(difference, &example);
	}
}

/* ---- events ---- */

static void count_event(struct figures *figures, const struct weir_frame *frame, const struct weir_frame_event *event,
                        const struct shard_result *judged, uint32_t pair)
{
	const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
	uint64_t *bins = NULL, *key_bits = bits_of(figures, event->key);
	bool some_block = false;
	for (uint32_t i = 0; i < set->count; i++, pair++) {
		unsigned bits = weir_verdict_of(judged->verdicts, pair);
		uint32_t place = set->zones[i].id - 1;
		if ((bits & WEIR_VERDICT_NONE) || place >= figures->options.zone_count)
			continue;
		if (bins == NULL)
			bins = time_bins_at(&figures->bins, event->time_ms);
		bool blocks = bits & WEIR_VERDICT_BLOCK;
		bins[2 * place + blocks]++;
		figures->zones[place].passed += !blocks;
		figures->zones[place].blocked += blocks;
		figures->zones[place].late += (bits & WEIR_VERDICT_LATE) != 0;
		if (key_bits != NULL)
			set_bit(key_bits, place);
		if (!blocks)
			continue;
		if (key_bits != NULL)
			set_bit(key_bits, blocked_bit(figures, place));
		set_bit(figures->blocked, place);
		some_block = true;
	}
	if (!some_block)
		return;
	count_differences(figures, frame, event, key_bits);
	memset(figures->blocked, 0, figures->blocked_words * sizeof *figures->blocked);
}

void figures_add(struct figures *figures, const struct lane_result *result)
{
	const struct weir_frame *frame = result->frame;
	uint32_t pair = 0;
	find_rows(figures, frame);
	for (uint32_t i = 0; i < frame->event_count; i++) {
		count_event(figures, frame, &frame->events[i], &result->judged, pair);
		pair += frame->zone_sets[frame->events[i].zone_set].count;
	}
	for (uint32_t i = 0; i < result->judged.decision_count; i++) {
		uint32_t place = result->judged.decisions[i].zone->zone->id - 1;
		if (place < figures->options.zone_count)
			figures->zones[place].decisions++;
	}
}

/* ---- sums ---- */

static void sum_keys(struct figures *into, const struct figures *of)
{
	for (uint32_t i = 0; i < of->rows.count; i++) {
		const uint64_t *bits = row_at(&of->rows, i) + 1;
		for (uint32_t place = 0; place < of->options.zone_count; place++) {
			into->zones[place].keys += has_bit(bits, place);
			into->zones[place].blocked_keys += has_bit(bits, blocked_bit(of, place));
		}
	}
	into->rows.full = into->rows.full || of->rows.full;
}

void figures_sum(struct figures *into, const struct figures *of)
{
	for (uint32_t i = 0; i < of->options.zone_count; i++) {
		into->zones[i].passed += of->zones[i].passed;
		into->zones[i].blocked += of->zones[i].blocked;
		into->zones[i].late += of->zones[i].late;
		into->zones[i].decisions += of->zones[i].decisions;
	}
	sum_keys(into, of);
	for (uint32_t i = 0; i < of->options.pair_count; i++) {
		const struct figures_difference *difference = &of->differences[i];
		into->differences[i].requests += difference->requests;
		into->differences[i].keys += difference->keys;
		for (uint32_t k = 0; k < difference->example_count; k++)
			add_example(&into->differences[i], &difference->examples[k]);
	}
	time_bins_fold(&into->bins, &of->bins);
}

const struct figures_zone *figures_zone(const struct figures *figures, uint32_t place)
{
	return &figures->zones[place];
}

const struct figures_difference *figures_difference(const struct figures *figures, uint32_t pair)
{
	return &figures->differences[pair];
}

const struct time_bins *figures_bins(const struct figures *figures)
{
	return &figures->bins;
}

bool figures_lack_keys(const struct figures *figures)
{
	return figures->rows.full;
}

bool figures_know_keys(const struct figures *figures, uint32_t place)
{
	return !figures->rows.full || figures->zones[place].keys > 0;
}

bool figures_know_difference(const struct figures *figures, uint32_t pair)
{
	return !figures->rows.full || figures->differences[pair].keys > 0;
}
