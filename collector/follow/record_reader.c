/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector's inner loop: find the newline, strip a CR, parse. Rare cases
 * (malformed or too long lines, counting by reason) are kept out of it.
 */
#include "collector/follow/record_reader.h"

#include <string.h>

/* Of a long run of malformed lines without a well-formed one, this much is held; the others are only counted. */
enum { DEAD_LETTERS_HELD_MAX_BYTES = 1 << 20 };

void record_counts_add(struct record_counts *sum, const struct record_counts *more)
{
	sum->lines += more->lines;
	sum->bytes += more->bytes;
	sum->records += more->records;
	sum->words += more->words;
	sum->cut += more->cut;
	sum->clamped += more->clamped;
	for (int i = 0; i < FORMAT_REASON_COUNT; i++)
		sum->malformed[i] += more->malformed[i];
	if (sum->unread.help[0] == '\0')
		sum->unread = more->unread;
	if (sum->no_ip.help[0] == '\0')
		sum->no_ip = more->no_ip;
	if (sum->cut_off.help[0] == '\0')
		sum->cut_off = more->cut_off;
	if (sum->forged.help[0] == '\0')
		sum->forged = more->forged;
}

uint64_t record_counts_malformed(const struct record_counts *counts)
{
	uint64_t sum = 0;
	for (int i = 0; i < FORMAT_REASON_COUNT; i++)
		sum += counts->malformed[i];
	return sum;
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
 * An incarnation may begin in the middle of its file: after a restart, or after late lines of another file. The format
 * then finds the header among the file's first lines, as it did when those were read.
 */
static void begin_file(struct format *format, struct weir_span before)
{
	format_begin(format, (struct weir_span){0});
	format_behind(format, NULL, false);
	if (format->header == NULL)
		return;
	struct weir_record ignored;
	format->looks_back = true;
	for (uint32_t at = 0, end; at < before.length && format_header(format).at == NULL; at = end + 1) {
		const char *newline = memchr(before.at + at, '\n', before.length - at);
		end = newline != NULL ? (uint32_t)(newline - before.at) : before.length;
		(void)format_parse(format, before.at + at, lines_trim(before.at, at, end), &ignored);
	}
	format->looks_back = false;
}

/* The end of the line at `at`: its newline, or the end of the chunk. */
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

/* Keeps the beginning of the newest line for people, with a mark for each byte that is not text. */
static void keep_line(const struct record_reader *reader, char kept[HINT_LINE_BYTES + 4])
{
	struct weir_span line = reader->line;
	uint32_t length = line.length < HINT_LINE_BYTES ? line.length : HINT_LINE_BYTES;
	for (uint32_t i = 0; i < length; i++)
		kept[i] = line.at[i] >= ' ' && line.at[i] <= '~' ? line.at[i] : '?';
	static const char more[] = "...";
	memcpy(kept + length, length < line.length ? more : more + sizeof more - 1, length < line.length ? sizeof more : 1);
}

/* Whether another line is looked at for a hint: the first ones tell. */
static bool wants_hint(struct record_reader *reader, const struct record_hint *hint)
{
	return hint->help[0] == '\0' && reader->hint_tries < HINT_TRIES && ++reader->hint_tries > 0;
}

static __attribute__((noinline, cold)) void look_for_client(struct record_reader *reader)
{
	struct record_hint *hint = &reader->counts.no_ip;
	if (!wants_hint(reader, hint))
		return;
	format_help_client(reader->format, reader->line, hint->help);
	keep_line(reader, hint->line);
}

static __attribute__((noinline, cold)) void note_cut(struct record_reader *reader)
{
	struct record_hint *hint = &reader->counts.cut_off;
	reader->ahead.cut = record_reader_is_fresh(reader);
	if (reader->chunk.too_long || hint->line[0] != '\0')
		return;
	format_help_cut(reader->format, hint->help);
	keep_line(reader, hint->line);
}

static void look_for_help(struct record_reader *reader, enum format_reason reason)
{
	struct record_hint *hint = &reader->counts.unread;
	/* What is lost for good before weir sees it is told, whatever else is. */
	bool lost = reason == FORMAT_LEFT_OUT && reader->counts.malformed[reason] + reader->ahead.malformed[reason] <= 1;
	if (!lost && !wants_hint(reader, hint))
		return;
	format_help(reader->format, reason, reader->line, hint->help);
	keep_line(reader, hint->line);
}

static __attribute__((noinline, cold)) void look_at_fields(struct record_reader *reader)
{
	struct record_hint *forged = &reader->counts.forged;
	if (forged->help[0] == '\0' && reader->looked_records < HINT_TRIES) {
		format_help_forged(reader->line, forged->help);
		keep_line(reader, forged->line);
	}
	reader->looked_records++;
	for (uint32_t field = 0; field < WEIR_FIELD_MAX; field++)
		reader->looked_fields |= (uint64_t)(reader->record.fields[field].at != NULL) << field;
}

/* The newest line is a record. */
static void take_record(struct record_reader *reader)
{
	bool fresh = record_reader_is_fresh(reader);
	reader->ahead.records = fresh;
	if (fresh && reader->record.time_ms > reader->newest_ms)
		reader->newest_ms = reader->record.time_ms;
	reader->record.source = reader->source_name;
	reader->record.by_name = reader->by_name;
	if (__builtin_expect(reader->record.cut, 0))
		note_cut(reader);
	reader->ahead.words = fresh && reader->record.ip == WEIR_RECORD_IP_WORD;
	if (__builtin_expect(reader->looked_records < RECORDS_LOOKED_AT, 0))
		look_at_fields(reader);
	if (reader->record.fields[WEIR_FIELD_IP].at == NULL && reader->hint_tries < HINT_TRIES)
		look_for_client(reader);
}

/* Counts a line as malformed, if it is read for the first time, and makes a dead letter of it. */
static void refuse_line(struct record_reader *reader, enum format_reason reason, bool fresh)
{
	reader->ahead.malformed[reason] += fresh;
	reader->ahead_malformed = true;
	if (reader->refused[0] == '\0') {
		keep_line(reader, reader->refused);
		reader->refused_reason = reason;
	}
	look_for_help(reader, reason);
	if (reader->dead == NULL)
		return;
	if (reader->dead_letters.length < DEAD_LETTERS_HELD_MAX_BYTES)
		dead_letter_json(&reader->dead_letters, reader->stream->name, reader->position, format_reason_text(reason),
		                 reader->line);
	else
		dead_letters_drop(reader->dead);
}

/* Refuses the lines whose other parts do not come. */
static void refuse_unfinished(struct record_reader *reader)
{
	/* Its last part may be that of the newest line, which is counted. */
	bool fresh = reader->position >= reader->counted_position;
	for (struct weir_span line; (line = format_unfinished(reader->format)).at != NULL;) {
		reader->line = line;
		refuse_line(reader, reader->format->malformed, fresh);
	}
}

void record_reader_end(struct record_reader *reader)
{
	refuse_unfinished(reader);
	record_reader_take(reader, 0);
}

void record_reader_feed(struct record_reader *reader, const struct source_chunk *chunk)
{
	uint64_t incarnation = chunk->position >> SOURCE_OFFSET_BITS;
	if (chunk->begins) /* another object, perhaps of another log */
		refuse_unfinished(reader);
	if (incarnation != reader->incarnation || chunk->begins)
		begin_file(reader->format, chunk->before);
	reader->incarnation = incarnation;
	if (chunk->positions != NULL) /* each is a message of its own */
		reader->format->lines = FORMAT_LINES_APART;
	else
		format_behind(reader->format, chunk->data + chunk->length + chunk->behind, chunk->more);
	reader->fed_position = reader->position;
	if (chunk->begins)
		reader->begun_position = reader->position;
	if (chunk->written_ms > 0)
		format_set_reference(reader->format, chunk->written_ms);
	/* A partition that was assigned again may begin before the last mark: what is read of it is then marked anew. */
	if (chunk->positions != NULL && chunk->positions[0] <= reader->marked_position)
		reader->marked_position = 0;
	reader->chunk = *chunk;
	reader->newest_ms = -1;
	reader->at = reader->looked = reader->next_end = reader->next_line = reader->ends.count = 0;
}

/* Parses the first part of a line, where the format takes such lines. */
static bool parse_cut(struct record_reader *reader)
{
	struct format *format = reader->format;
	if (!format->takes_cut)
		return false;
	format->cut = true;
	format->tail = reader->chunk.tail;
	enum format_reason reason = format_parse(format, reader->line.at, reader->line.length, &reader->record);
	format->cut = false;
	format->tail = (struct weir_span){0};
	return reason == FORMAT_OK;
}

/* Handles a chunk that is the first part of a line that is too long. @return whether that is enough for a record */
static bool take_long_line(struct record_reader *reader)
{
	const struct source_chunk *chunk = &reader->chunk;
	reader->at = chunk->length;
	reader->position =
		chunk->positions != NULL ? chunk->positions[0] : chunk->position + chunk->length + chunk->skipped;
	reader->line = (struct weir_span){.at = chunk->data, .length = (uint32_t)chunk->length};
	reader->ahead.lines += record_reader_is_fresh(reader);
	reader->ahead.bytes += record_reader_is_fresh(reader) ? chunk->length + chunk->skipped : 0;
	if (parse_cut(reader)) {
		take_record(reader);
		return true;
	}
	refuse_line(reader, FORMAT_LINE_TOO_LONG, record_reader_is_fresh(reader));
	return false;
}

/* Whether a line begins with a byte that no text begins with: 0, or from the first of a byte order mark on. */
static inline bool begins_oddly(struct weir_span line)
{
	return line.length > 0 && (unsigned char)(line.at[0] - 1) >= 0xee;
}

/*
 * A power loss, or a truncation under a writer, leaves zeros before a line, and files that were joined byte order marks:
 * they are none of it.
 */
__attribute__((noinline)) static void cut_beginning(struct record_reader *reader, struct weir_span *line)
{
	static const char mark[] = {'\xef', '\xbb', '\xbf'};
	uint32_t zeros = 0, cut = 0;
	while (cut < line->length) {
		bool zero = line->at[cut] == '\0';
		if (!zero && (line->length - cut < sizeof mark || memcmp(line->at + cut, mark, sizeof mark) != 0))
			break;
		zeros += zero;
		cut += zero ? 1 : (uint32_t)sizeof mark;
	}
	line->at += cut;
	line->length -= cut;
	atomic_fetch_add_explicit(&reader->stream->zeros, zeros, memory_order_relaxed);
}

/* The newest line, which begins there in the chunk, may be the first part of one. */
static void note_part(struct record_reader *reader, uint32_t begin)
{
	const struct source_chunk *chunk = &reader->chunk;
	if (chunk->positions == NULL)
		format_note_part(reader->format, begin > 0 ? chunk->position + begin : reader->fed_position);
	else if (chunk->keeps)
		format_note_part(reader->format, reader->position - 1);
}

enum weir_status record_reader_next(struct record_reader *reader)
{
	const struct source_chunk *chunk = &reader->chunk;
	while (reader->at < chunk->length) {
		if (chunk->too_long) {
			if (take_long_line(reader))
				return WEIR_OK;
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
		if (__builtin_expect(begins_oddly(line), 0))
			cut_beginning(reader, &line);
		if (line.length == 0)
			continue;
		reader->line = line;
		enum format_reason reason = format_parse(reader->format, line.at, line.length, &reader->record);
		if (reason == FORMAT_OK) {
			take_record(reader);
			return WEIR_OK;
		}
		if (reason != FORMAT_SKIP)
			refuse_line(reader, reason, record_reader_is_fresh(reader));
		note_part(reader, begin); /* one that is refused may be a part, too: of a line that is not whole */
	}
	return WEIR_AGAIN;
}

/* The rare part of record_reader_take(): counts malformed lines, and writes their dead letters. */
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
	counts->words += ahead->words;
	counts->cut += ahead->cut;
	counts->clamped += ahead->clamped;
	reader->taken_position = reader->position;
	if (record_reader_is_fresh(reader))
		reader->counted_position = reader->position;
	ahead->lines = ahead->bytes = ahead->records = ahead->words = ahead->cut = ahead->clamped = 0;
	if (reader->ahead_malformed)
		take_malformed(reader, now_ms);
}
