/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector's inner loop: find the newline, take off a CR, parse. All that
 * is rare (malformed, too long, counting by reason) is kept out of it.
 */
#include "collector/follow/record_reader.h"

#include <string.h>

/* A long run of malformed lines without one good record is kept up to here, then only counted. */
enum { DEAD_LETTERS_HELD_MAX_BYTES = 1 << 20 };

void record_counts_add(struct record_counts *sum, const struct record_counts *more)
{
	sum->lines += more->lines;
	sum->bytes += more->bytes;
	sum->records += more->records;
	sum->clamped += more->clamped;
	for (int i = 0; i < FORMAT_REASON_COUNT; i++)
		sum->malformed[i] += more->malformed[i];
}

void record_reader_init(struct record_reader *reader, struct source_stream *stream, struct format *format,
                        struct dead_letters *dead)
{
	*reader = (struct record_reader){.stream = stream, .format = format, .dead = dead};
}

void record_reader_deinit(struct record_reader *reader)
{
	format_free(reader->format);
	reader->format = NULL;
	weir_text_deinit(&reader->dead_letters);
}

/*
 * An incarnation may begin further down in its file: after a restart, or where late lines came between. Which of the
 * lines before is the header is for the format to say, as it was when they were read.
 */
static void begin_file(struct format *format, struct weir_span before)
{
	format_begin(format, (struct weir_span){0});
	if (format->header == NULL)
		return;
	struct record ignored;
	for (uint32_t at = 0, end; at < before.length && format_header(format).at == NULL; at = end + 1) {
		const char *newline = memchr(before.at + at, '\n', before.length - at);
		end = newline != NULL ? (uint32_t)(newline - before.at) : before.length;
		(void)format_parse(format, before.at + at, lines_trim(before.at, at, end), &ignored);
	}
}

void record_reader_feed(struct record_reader *reader, const struct source_chunk *chunk)
{
	uint64_t incarnation = chunk->position >> SOURCE_OFFSET_BITS;
	if (incarnation != reader->incarnation)
		begin_file(reader->format, chunk->before);
	reader->incarnation = incarnation;
	/* A partition that comes back may begin before where it was left: what is read of it is marked afresh. */
	if (chunk->positions != NULL && chunk->positions[0] <= reader->marked_position)
		reader->marked_position = 0;
	reader->chunk = *chunk;
	reader->at = reader->looked = reader->next_end = reader->next_line = reader->ends.count = 0;
}

/* Where the line at `at` ends: at its newline, or with the chunk. */
static inline uint32_t line_end(struct record_reader *reader)
{
	uint32_t length = (uint32_t)reader->chunk.length;
	while (__builtin_expect(reader->next_end == reader->ends.count, 0)) {
		if (reader->looked == length)
			return length;
		reader->looked = lines_find(reader->chunk.data, length, reader->looked, &reader->ends);
		reader->next_end = 0;
	}
	return reader->ends.ends[reader->next_end++];
}

/* The newest line is malformed. */
static void refuse_line(struct record_reader *reader, enum format_reason reason)
{
	reader->ahead.malformed[reason] += record_reader_is_fresh(reader);
	reader->ahead_malformed = true;
	if (reader->dead == NULL)
		return;
	if (reader->dead_letters.length < DEAD_LETTERS_HELD_MAX_BYTES)
		dead_letter_json(&reader->dead_letters, reader->stream->name, reader->position, format_reason_text(reason),
		                 reader->line);
	else
		dead_letters_drop(reader->dead);
}

/* A chunk that is the first part of one line above the limit. */
static void refuse_long_line(struct record_reader *reader)
{
	const struct source_chunk *chunk = &reader->chunk;
	reader->at = chunk->length;
	reader->position =
		chunk->positions != NULL ? chunk->positions[0] : chunk->position + chunk->length + chunk->skipped;
	reader->line = (struct weir_span){.at = chunk->data, .length = (uint32_t)chunk->length};
	reader->ahead.lines += record_reader_is_fresh(reader);
	reader->ahead.bytes += record_reader_is_fresh(reader) ? chunk->length + chunk->skipped : 0;
	refuse_line(reader, FORMAT_LINE_TOO_LONG);
}

/* A power loss, or a truncation under a writer, leaves zeros before a line: they are none of it. */
__attribute__((noinline)) static void cut_zeros(struct record_reader *reader, struct weir_span *line)
{
	uint32_t zeros = 0;
	while (zeros < line->length && line->at[zeros] == '\0')
		zeros++;
	line->at += zeros;
	line->length -= zeros;
	atomic_fetch_add_explicit(&reader->stream->zeros, zeros, memory_order_relaxed);
}

enum weir_status record_reader_next(struct record_reader *reader)
{
	const struct source_chunk *chunk = &reader->chunk;
	while (reader->at < chunk->length) {
		if (chunk->too_long) {
			refuse_long_line(reader);
			break;
		}
		uint32_t begin = (uint32_t)reader->at, end = line_end(reader);
		struct weir_span line = {.at = chunk->data + begin, .length = lines_trim(chunk->data, begin, end)};
		size_t taken = end - begin + (end < chunk->length);
		reader->at += taken;
		reader->position =
			chunk->positions != NULL ? chunk->positions[reader->next_line++] : chunk->position + reader->at;
		bool fresh = record_reader_is_fresh(reader);
		reader->ahead.lines += fresh;
		reader->ahead.bytes += fresh ? taken : 0;
		if (line.length > 0 && __builtin_expect(line.at[0] == '\0', 0))
			cut_zeros(reader, &line);
		if (line.length == 0)
			continue;
		reader->line = line;
		enum format_reason reason = format_parse(reader->format, line.at, line.length, &reader->record);
		if (reason == FORMAT_OK) {
			reader->ahead.records = fresh;
			return WEIR_OK;
		}
		if (reason != FORMAT_SKIP)
			refuse_line(reader, reason);
	}
	return WEIR_AGAIN;
}

/* What is rare: malformed lines go on the books and into the dead letter. */
static void take_malformed(struct record_reader *reader, int64_t now_ms)
{
	for (int i = 0; i < FORMAT_REASON_COUNT; i++)
		reader->counts.malformed[i] += reader->ahead.malformed[i];
	memset(reader->ahead.malformed, 0, sizeof reader->ahead.malformed);
	if (reader->dead_letters.length > 0) {
		struct weir_span dead_letters = {.at = reader->dead_letters.at,
		                                 .length = (uint32_t)reader->dead_letters.length};
		dead_letters_write(reader->dead, dead_letters, now_ms);
		weir_text_clear(&reader->dead_letters);
	}
	reader->ahead_malformed = false;
}

void record_reader_take(struct record_reader *reader, int64_t now_ms)
{
	struct record_counts *counts = &reader->counts, *ahead = &reader->ahead;
	counts->lines += ahead->lines;
	counts->bytes += ahead->bytes;
	counts->records += ahead->records;
	counts->clamped += ahead->clamped;
	reader->taken_position = reader->position;
	if (record_reader_is_fresh(reader))
		reader->counted_position = reader->position;
	ahead->lines = ahead->bytes = ahead->records = ahead->clamped = 0;
	if (reader->ahead_malformed)
		take_malformed(reader, now_ms);
}
