/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next lines of one stream.
 *
 * A part with an end is read to it, after a restart just as before; the last
 * part has none. When its file has no more lines, that is all that is said here:
 * file_rotation.c decides what follows. So the live path and the one after a
 * crash are the same.
 */
#include "collector/source/file/file_reading.h"

#include "common/base/clock.h"

#include <string.h>

enum {
	ABSENCE_WAIT_MS = 200,
	UNPACKED_MOST = 8, /* of so many streams all may decompress at once */
};

/* ---- faults: logged once, tried again with growing pauses; without follow they end the stream ---- */

static enum file_reading fail(struct file_stream *stream, int64_t now_ms, const struct weir_error *error)
{
	file_stream_fail(stream, now_ms, error);
	return stream->shared->settings.follow ? FILE_READING_LATER : FILE_READING_FAILED;
}

/* ---- a part's file ---- */

/*
 * It is not found, or a compressed one holds less than was read of it. Several looks decide: a listing may miss it, and
 * what holds less may be being written anew.
 */
static enum file_reading on_absent(struct file_stream *stream, enum file_found found, int64_t now_ms)
{
	const struct file_settings *settings = &stream->shared->settings;
	struct source_memory_file *file = file_stream_file(stream);
	bool last = file_search_is_last(file, found) || (found == FOUND_SHORTER && !settings->follow);
	file->absences++;
	if (last && file_stream_part(stream)->to == SOURCE_PART_OPEN)
		return FILE_READING_GONE;
	if (last)
		file_stream_give_up_part(stream, found == FOUND_SHORTER ? "holds less than it did" : "was deleted");
	else if (settings->follow) { /* comes back after a while without a word */
		stream->retry_ms = now_ms + (found == FOUND_NOWHERE ? ABSENCE_WAIT_MS : settings->timing.poll);
		return FILE_READING_LATER;
	}
	return FILE_READING_AGAIN;
}

/* Its own file, a plain one, has fewer bytes than were read. */
static enum file_reading on_shorter(struct file_stream *stream)
{
	if (file_stream_part(stream)->to == SOURCE_PART_OPEN)
		return FILE_READING_TRUNCATED;
	file_stream_give_up_part(stream, "was truncated");
	return FILE_READING_AGAIN;
}

/* A compressed file that is still written to: it is opened again when that is over. */
static bool is_incomplete(struct file_stream *stream, struct open_file *current, int64_t now_ms)
{
	const struct file_settings *settings = &stream->shared->settings;
	int64_t age_ms = weir_wall_ms() - file_identity_modified_ns(&current->about) / 1000000;
	if (!settings->follow || open_file_plain(current) || age_ms < 0 || age_ms >= settings->timing.complete)
		return false;
	stream->retry_ms = now_ms + settings->timing.complete - age_ms;
	file_stream_close(stream, current);
	return true;
}

/* Opens the file where the stream stands. FILE_READING_LINES: *current is it. */
static enum file_reading open_part(struct file_stream *stream, int64_t now_ms, struct open_file **current)
{
	struct source_memory_file *file = file_stream_file(stream);
	struct file_finding finding;
	struct weir_error error;
	*current = file_stream_opened(stream, file);
	if (*current != NULL) {
		bool changed = (*current)->state != OPEN_FILE_READABLE && open_file_rewritten(*current);
		if (!changed && (input_lines_offset((*current)->lines) == stream->offset ||
		                 input_lines_seek((*current)->lines, stream->offset, &error) == WEIR_OK))
			return FILE_READING_LINES;
		file_stream_close(stream, *current); /* looked for again: it may be a copy that is whole */
	}
	struct file_route route = file_stream_route(stream);
	file_search_find(stream->shared, &route, file, stream->offset, false, &finding, &error);
	enum file_found found = finding.found;
	bool shorter = found == FOUND_SHORTER && input_compressed(finding.beginning.input);
	if (finding.path != NULL && !shorter)
		*current = file_stream_open(stream, file, &finding.beginning, finding.path, now_ms);
	file_finding_deinit(&finding);
	switch (found) {
	case FOUND:
	case FOUND_COPY: return is_incomplete(stream, *current, now_ms) ? FILE_READING_LATER : FILE_READING_LINES;
	case FOUND_SHORTER: return shorter ? on_absent(stream, found, now_ms) : on_shorter(stream);
	case FOUND_NOWHERE:
	case FOUND_NO_DIRECTORY: return on_absent(stream, found, now_ms);
	case FOUND_UNKNOWN: break;
	}
	return fail(stream, now_ms, &error);
}

/* A part's first line is handed out only when the part is on disk. */
static enum file_reading save_part(struct file_stream *stream, const struct source_memory_part *part, int64_t now_ms)
{
	struct weir_error error;
	if (source_memory_part_saved(stream->shared->memory, part) ||
	    source_memory_save(stream->shared->memory, &error) == WEIR_OK)
		return FILE_READING_LINES;
	return fail(stream, now_ms, &error);
}

/* ---- lines ---- */

static void hand_out(struct file_stream *stream, const struct source_memory_part *part, struct open_file *current,
                     int64_t now_ms, struct source_chunk *chunk)
{
	struct input_lines_chunk lines;
	input_lines_take(current->lines, &lines);
	open_file_note(current, &lines);
	if (lines.zeros > 0)
		file_shared_tell(stream->shared, "%s: %llu bytes of 0 before position %llu were passed over", current->path,
		                 (unsigned long long)lines.zeros, (unsigned long long)lines.offset);
	*chunk = (struct source_chunk){
		.stream = &stream->handle,
		.data = lines.data,
		.length = lines.length,
		.position = source_position(part->incarnation, lines.offset),
		.before = {.at = stream->before.at, .length = (uint32_t)stream->before.length},
		.behind = lines.behind,
		.more = lines.more,
		.last_open = lines.open,
		.too_long = lines.too_long,
		.skipped = lines.skipped,
		.tail = lines.tail,
		.written_ms = open_file_modified_ms(current),
	};
	stream->before_given = true;
	/* A merge has a chunk of each stream, and may come back to a packed one much later. */
	if (lines.offset == 0 && !stream->shared->settings.follow && stream->shared->stream_count > UNPACKED_MOST)
		input_lines_park(current->lines);
	stream->offset = input_lines_offset(current->lines);
	struct source_memory_file *file = current->file;
	if (file->taken < stream->offset)
		file->taken = stream->offset;
	uint64_t read = input_lines_read_offset(current->lines);
	if (file->size < read)
		file->size = read;
	current->grown_ms = now_ms;
	source_memory_changed(stream->shared->memory);
	if (current->state == OPEN_FILE_READABLE)
		file_stream_well(stream);
	file_stream_note(stream, current, source_position(part->incarnation, stream->offset), false, now_ms);
}

/* What people should know of a file's form, once. */
static void tell_form(const struct file_stream *stream, struct open_file *current, bool end)
{
	uint64_t zeros = end ? input_lines_zeros(current->lines) : 0;
	if (zeros > 0 && !current->zeros_told)
		file_shared_tell(stream->shared, "%s: its last %llu bytes, from position %llu on, are 0 and hold no line",
		                 current->path, (unsigned long long)zeros,
		                 (unsigned long long)(input_lines_offset(current->lines) - zeros));
	current->zeros_told = current->zeros_told || zeros > 0;
	if (current->returns_told || !input_lines_returns(current->lines))
		return;
	file_shared_tell(stream->shared,
	                 "%s: its lines end in carriage returns alone and are read as one line: convert it first: "
	                 "tr '\\r' '\\n'",
	                 current->path);
	current->returns_told = true;
}

/* A compressed file has come to its end, to a cut or to damage, and was written to meanwhile: it is opened again. */
static bool is_outdated(struct file_stream *stream, struct open_file *current)
{
	if (!stream->shared->settings.follow || !open_file_rewritten(current))
		return false;
	file_stream_close(stream, current);
	return true;
}

/*
 * A compressed file is damaged or cut. One that is cut and followed may grow: it waits as it is. Of any other, what
 * could be read is handed out, an open line too, and the rest is lost.
 */
static enum file_reading on_damage(struct file_stream *stream, const struct source_memory_part *part,
                                   struct open_file *current, int64_t now_ms, struct source_chunk *chunk,
                                   struct weir_error *error)
{
	const struct input *input = input_lines_input(current->lines);
	enum open_file_state state = input_cut(input) ? OPEN_FILE_CUT : OPEN_FILE_DAMAGED;
	bool follow = stream->shared->settings.follow, news = current->state < state;
	weir_error_prefix(error, "%s", current->path);
	if (is_outdated(stream, current))
		return FILE_READING_AGAIN;
	open_file_end(current, state);
	if (news && state == OPEN_FILE_DAMAGED)
		file_stream_count_lost(stream, input_ahead(input));
	if (follow && news)
		file_stream_fail(stream, now_ms, error);
	if (follow)
		return FILE_READING_NO_LINE;
	if (input_lines_fill(current->lines, part->to, true, NULL) != WEIR_OK)
		return fail(stream, now_ms, error);
	tell_form(stream, current, false);
	hand_out(stream, part, current, now_ms, chunk);
	return FILE_READING_LINES;
}

/* The part's file gives no line just now. */
static enum file_reading on_no_line(struct file_stream *stream, const struct source_memory_part *part,
                                    struct open_file *current, int64_t now_ms)
{
	if (part->to != SOURCE_PART_OPEN) {
		file_stream_give_up_part(stream, "holds less than it did");
		return FILE_READING_AGAIN;
	}
	if (is_outdated(stream, current))
		return FILE_READING_AGAIN;
	bool truncated = stream->shared->settings.follow && open_file_truncated(current);
	if (input_lines_read_offset(current->lines) >= SOURCE_OFFSET_END - 1 && !truncated) {
		struct weir_error error;
		weir_fail(&error, WEIR_FULL, "%s: weir reads no further than 1 TiB", current->path);
		return fail(stream, now_ms, &error);
	}
	if (!open_file_plain(current))
		open_file_end(current, OPEN_FILE_ENDED);
	stream->repeats = false;
	file_stream_note(stream, current, 0, true, now_ms);
	file_stream_well(stream);
	return truncated ? FILE_READING_TRUNCATED : FILE_READING_NO_LINE;
}

/* Bytes up to the last newline: a hole, or a cut between two incarnations, ends a line without one. */
static size_t whole_lines(const struct input_lines_chunk *lines)
{
	const char *newline = lines->open ? memrchr(lines->data, '\n', lines->length) : NULL;
	if (!lines->open)
		return lines->length;
	return newline != NULL ? (size_t)(newline - lines->data) + 1 : 0;
}

/*
 * Reads the first lines of a file that the stream goes on in further down, once for each part; then the file stands
 * where it stood. A chunk of them is enough for any header but one behind very many lines that are none.
 */
static enum weir_status look_back(struct file_stream *stream, const struct source_memory_part *part,
                                  struct input_lines *lines, struct weir_error *error)
{
	if (stream->before_given)
		weir_text_deinit(&stream->before);
	if (stream->looked_back == part->incarnation)
		return WEIR_OK;
	weir_text_clear(&stream->before);
	stream->before_given = false;
	if (stream->offset > 0) {
		struct input_lines_chunk first = {.too_long = true};
		enum weir_status status = input_lines_seek(lines, 0, error);
		while ((status == WEIR_OK || status == WEIR_AGAIN) && first.too_long) {
			status = input_lines_fill(lines, stream->offset, false, error);
			if (status == WEIR_OK)
				input_lines_take(lines, &first);
		}
		if (status == WEIR_OK && !first.too_long)
			weir_text_append(&stream->before, first.data, whole_lines(&first));
		if ((status = input_lines_seek(lines, stream->offset, error)) != WEIR_OK)
			return status;
	}
	stream->looked_back = part->incarnation;
	return WEIR_OK;
}

/*
 * Zeros before a line were read past: they are not looked at again, unless something is written there after all. Then the
 * stream goes back to them, but never before the part's beginning.
 */
static enum weir_status fill(struct file_stream *stream, const struct source_memory_part *part,
                             struct open_file *current, uint64_t limit, struct weir_error *error)
{
	enum weir_status status = input_lines_fill(current->lines, limit, false, error);
	if (input_lines_offset(current->lines) < part->from) {
		status = input_lines_seek(current->lines, part->from, error);
		if (status == WEIR_OK)
			status = input_lines_fill(current->lines, limit, false, error);
	}
	if (status == WEIR_AGAIN || status == WEIR_END)
		stream->offset = input_lines_offset(current->lines);
	return status;
}

static enum file_reading read_part(struct file_stream *stream, struct source_memory_part *part,
                                   struct open_file *current, int64_t now_ms, struct source_chunk *chunk)
{
	struct weir_error error;
	bool open = part->to == SOURCE_PART_OPEN;
	uint64_t limit = open ? SOURCE_OFFSET_END - 1 : part->to;
	enum weir_status status = look_back(stream, part, current->lines, &error);
	if (status == WEIR_OK)
		status = fill(stream, part, current, limit, &error);
	else if (status == WEIR_END || status == WEIR_INVALID) { /* it is no longer what it was: looked for again */
		file_stream_close(stream, current);
		return FILE_READING_AGAIN;
	}
	switch (status) {
	case WEIR_OK:
		if (open && stream->shared->settings.follow && !open_file_intact(current))
			return FILE_READING_TRUNCATED;
		tell_form(stream, current, false);
		hand_out(stream, part, current, now_ms, chunk);
		return FILE_READING_LINES;
	case WEIR_AGAIN: return FILE_READING_BUSY;
	case WEIR_END:
		tell_form(stream, current, true);
		if (!open && stream->offset >= part->to)
			return FILE_READING_AGAIN;
		return on_no_line(stream, part, current, now_ms);
	case WEIR_INVALID: return on_damage(stream, part, current, now_ms, chunk, &error);
	default: break;
	}
	weir_error_prefix(&error, "%s", current->path);
	file_stream_close(stream, current); /* read again from where the stream stands */
	return fail(stream, now_ms, &error);
}

enum file_reading file_reading_next(struct file_stream *stream, int64_t now_ms, struct source_chunk *chunk)
{
	struct source_memory_part *part = file_stream_part(stream);
	struct open_file *current;
	if (part == NULL)
		return FILE_READING_ALL;
	if (part->to != SOURCE_PART_OPEN && stream->offset >= part->to) {
		file_stream_advance(stream);
		return FILE_READING_AGAIN;
	}
	enum file_reading reading = save_part(stream, part, now_ms);
	if (reading == FILE_READING_LINES)
		reading = open_part(stream, now_ms, &current);
	return reading == FILE_READING_LINES ? read_part(stream, part, current, now_ms, chunk) : reading;
}
