/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key goes into the first line with a free slot, from its home line on. When a
 * slot of a full line becomes free, it is refilled from the lines after it. So a
 * search may end at the first line that is not full, and no tombstones are needed.
 */
#include "limiter/memory/table.h"

#include "common/base/alloc.h"
#include "limiter/memory/chunk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINE_FILL = 6,   /* average keys per line above which a table grows */
	LOOSE_FILL = 7,  /* of a loose one */
	LINE_SPARSE = 3, /* and below which it shrinks */
};

/* The line of every table without keys. */
static const struct table_line no_line __attribute__((aligned(sizeof(struct table_line))));

/* ---- memory: tables one after the other in chunks ---- */

struct chunk_head {
	uint32_t used, live; /* bytes, including this header */
	bool huge;
};

enum { CHUNK_HEAD_BYTES = sizeof(struct table_line) };

static struct chunk_head *head_of(const void *memory)
{
	return (struct chunk_head *)((uintptr_t)memory & ~(uintptr_t)(CHUNK_BYTES - 1));
}

static bool has_own_chunk(size_t bytes)
{
	return bytes > CHUNK_BYTES / 4;
}

static size_t own_chunk_bytes(size_t bytes)
{
	return (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
}

static struct table_line *lines_alloc(struct table *table, uint32_t count)
{
	size_t bytes = count * sizeof(struct table_line);
	if (table->is_loose) {
		table->bytes += bytes;
		return weir_alloc_aligned(count, sizeof(struct table_line));
	}
	if (has_own_chunk(bytes)) {
		table->bytes += own_chunk_bytes(bytes);
		return chunk_map(own_chunk_bytes(bytes), true);
	}
	struct chunk_head *head = table->chunk_count > 0 ? table->chunks[table->chunk_count - 1] : NULL;
	if (head == NULL || head->used + bytes > CHUNK_BYTES) {
		table->chunks = weir_realloc(table->chunks, table->chunk_count + 1u, sizeof(void *));
		head = chunk_map(CHUNK_BYTES, table->chunk_count > 0);
		head->huge = table->chunk_count > 0;
		head->used = head->live = CHUNK_HEAD_BYTES;
		table->bytes += head->huge ? CHUNK_BYTES : CHUNK_HEAD_BYTES;
		table->chunks[table->chunk_count++] = head;
	}
	struct table_line *lines = (struct table_line *)(void *)((char *)head + head->used);
	head->used += (uint32_t)bytes;
	head->live += (uint32_t)bytes;
	table->live_bytes += bytes;
	if (!head->huge)
		table->bytes += bytes;
	memset(lines, 0, bytes);
	return lines;
}

static void chunk_give_back(struct table *table, struct chunk_head *head)
{
	uint32_t place = 0;
	while (table->chunks[place] != head)
		place++;
	/* The others keep their order, as the last one takes new tables. */
	memmove(&table->chunks[place], &table->chunks[place + 1], (--table->chunk_count - place) * sizeof(void *));
	table->bytes -= head->huge ? CHUNK_BYTES : head->used;
	chunk_unmap(head, CHUNK_BYTES);
}

static void lines_free(struct table *table, struct table_line *lines, uint32_t count)
{
	size_t bytes = count * sizeof *lines;
	if (lines == &no_line)
		return;
	if (table->is_loose) {
		table->bytes -= bytes;
		free(lines);
		return;
	}
	if (has_own_chunk(bytes)) {
		table->bytes -= own_chunk_bytes(bytes);
		chunk_unmap(lines, own_chunk_bytes(bytes));
		return;
	}
	struct chunk_head *head = head_of(lines);
	head->live -= (uint32_t)bytes;
	table->live_bytes -= bytes;
	if (head->live == CHUNK_HEAD_BYTES && head != table->chunks[table->chunk_count - 1])
		chunk_give_back(table, head);
}

/* Moves the tables out of the emptiest chunk, if all chunks exceed what tables need by an eighth and one chunk. */
static void compact(struct table *table)
{
	uint64_t held = (uint64_t)table->chunk_count * CHUNK_BYTES;
	if (held <= table->live_bytes + table->live_bytes / 8 + (uint64_t)CHUNK_BYTES)
		return;
	struct chunk_head *emptiest = table->chunks[0];
	for (uint32_t i = 1; i + 1 < table->chunk_count; i++) {
		struct chunk_head *head = table->chunks[i];
		if (head->live < emptiest->live)
			emptiest = head;
	}
	for (uint32_t i = 0; i < TABLE_SEGMENTS; i++) {
		struct table_segment *segment = &table->segments[i];
		size_t bytes = segment->line_count * sizeof *segment->lines;
		if (segment->lines == &no_line || has_own_chunk(bytes) || head_of(segment->lines) != emptiest)
			continue;
		struct table_line *moved = lines_alloc(table, segment->line_count);
		memcpy(moved, segment->lines, bytes);
		struct table_line *old = segment->lines;
		segment->lines = moved;
		lines_free(table, old, segment->line_count);
	}
}

/* ---- tables ---- */

void table_init(struct table *table)
{
	*table = (struct table){.bytes = sizeof *table};
	for (uint32_t i = 0; i < TABLE_SEGMENTS; i++)
		table->segments[i] = (struct table_segment){.lines = (struct table_line *)&no_line, .line_count = 1};
}

void table_init_loose(struct table *table)
{
	table_init(table);
	table->is_loose = true;
}

void table_deinit(struct table *table)
{
	for (uint32_t i = 0; i < TABLE_SEGMENTS; i++)
		lines_free(table, table->segments[i].lines, table->segments[i].line_count);
	for (uint32_t i = 0; i < table->chunk_count; i++)
		chunk_unmap(table->chunks[i], CHUNK_BYTES);
	free(table->chunks);
}

static uint32_t next_line(const struct table_segment *segment, uint32_t at)
{
	return at + 1 == segment->line_count ? 0 : at + 1;
}

/* Puts a key into its segment, which must have a free slot. */
static void put(struct table_segment *segment, uint32_t tag, uint32_t ref)
{
	uint32_t at = table_home(segment, tag);
	unsigned vacant;
	while ((vacant = table_compare(segment->lines[at].refs, 0)) == 0)
		at = next_line(segment, at);
	unsigned slot = (unsigned)__builtin_ctz(vacant);
	segment->lines[at].tags[slot] = tag;
	segment->lines[at].refs[slot] = ref;
}

static void resize(struct table *table, struct table_segment *segment, uint32_t line_count)
{
	struct table_segment old = *segment;
	segment->lines = lines_alloc(table, line_count);
	segment->line_count = line_count;
	for (uint32_t i = 0; i < old.line_count; i++)
		for (unsigned slot = 0; slot < TABLE_LINE_SLOTS; slot++)
			if (old.lines[i].refs[slot] != 0)
				put(segment, old.lines[i].tags[slot], old.lines[i].refs[slot]);
	lines_free(table, old.lines, old.line_count);
	compact(table);
}

void table_loosen(struct table *table)
{
	struct table tight = *table;
	table->is_loose = true;
	table->chunks = NULL;
	table->chunk_count = 0;
	table->live_bytes = 0;
	table->bytes = sizeof *table;
	for (uint32_t i = 0; i < TABLE_SEGMENTS; i++) {
		struct table_segment *segment = &table->segments[i];
		if (segment->lines == &no_line)
			continue;
		segment->lines = lines_alloc(table, segment->line_count);
		memcpy(segment->lines, tight.segments[i].lines, segment->line_count * sizeof *segment->lines);
	}
	table_deinit(&tight);
}

uint64_t table_unused_bytes(const struct table *table)
{
	uint64_t held = 0;
	for (uint32_t i = 0; i < table->chunk_count; i++) {
		const struct chunk_head *head = table->chunks[i];
		held += head->huge ? CHUNK_BYTES : head->used;
	}
	return held - table->live_bytes;
}

static uint32_t fill_of(const struct table *table)
{
	return table->is_loose ? LOOSE_FILL : LINE_FILL;
}

/* Lines that so many keys need. */
static uint32_t lines_for(const struct table *table, uint32_t keys)
{
	return keys / fill_of(table) + 1;
}

void table_reserve(struct table *table, uint32_t number, uint32_t keys)
{
	struct table_segment *segment = &table->segments[number];
	if (keys > 0 && lines_for(table, keys) > segment->line_count)
		resize(table, segment, lines_for(table, keys));
}

void table_add(struct table *table, uint32_t tag, uint32_t ref)
{
	struct table_segment *segment = &table->segments[table_segment_of(tag)];
	if (segment->lines == &no_line)
		resize(table, segment, 1);
	else if (segment->count + 1 > segment->line_count * fill_of(table))
		resize(table, segment, segment->line_count + segment->line_count / (table->is_loose ? 8 : 4) + 1);
	put(segment, tag, ref);
	segment->count++;
	table->count++;
}

/* The line and slot of a reference, which must be in the table. */
static uint32_t locate(const struct table_segment *segment, uint32_t tag, uint32_t ref, unsigned *slot)
{
	uint32_t at = table_home(segment, tag);
	for (;;) {
		unsigned found = table_compare(segment->lines[at].refs, ref);
		if (found != 0) {
			*slot = (unsigned)__builtin_ctz(found);
			return at;
		}
		assert(table_compare(segment->lines[at].refs, 0) == 0);
		at = next_line(segment, at);
	}
}

void table_replace(struct table *table, uint32_t tag, uint32_t old_ref, uint32_t new_ref)
{
	struct table_segment *segment = &table->segments[table_segment_of(tag)];
	unsigned slot;
	uint32_t at = locate(segment, tag, old_ref, &slot);
	segment->lines[at].refs[slot] = new_ref;
}

/* Whether a key with that home line may move from line `from` to line `to`, an earlier one. */
static bool may_move(const struct table_segment *segment, uint32_t home, uint32_t from, uint32_t to)
{
	uint32_t count = segment->line_count;
	return (to + count - home) % count < (from + count - home) % count;
}

/* Refills a free slot of a line that was full from the lines after it, then the slot that this frees, and so on. */
static void fill_gap(struct table_segment *segment, uint32_t at, unsigned slot)
{
	for (uint32_t from = next_line(segment, at); from != at; from = next_line(segment, from)) {
		struct table_line *line = &segment->lines[from];
		bool full = table_compare(line->refs, 0) == 0;
		for (unsigned i = 0; i < TABLE_LINE_SLOTS; i++) {
			if (line->refs[i] == 0 || !may_move(segment, table_home(segment, line->tags[i]), from, at))
				continue;
			segment->lines[at].tags[slot] = line->tags[i];
			segment->lines[at].refs[slot] = line->refs[i];
			line->tags[i] = line->refs[i] = 0;
			if (!full)
				return;
			at = from;
			slot = i;
			break;
		}
		if (!full)
			return;
	}
}

void table_remove(struct table *table, uint32_t tag, uint32_t ref)
{
	struct table_segment *segment = &table->segments[table_segment_of(tag)];
	unsigned slot;
	uint32_t at = locate(segment, tag, ref, &slot);
	bool full = table_compare(segment->lines[at].refs, 0) == 0;
	segment->lines[at].tags[slot] = segment->lines[at].refs[slot] = 0;
	segment->count--;
	table->count--;
	if (full)
		fill_gap(segment, at, slot);
	if (segment->line_count > 2 && segment->count < segment->line_count * LINE_SPARSE)
		resize(table, segment, segment->line_count / 2 + 1);
}
