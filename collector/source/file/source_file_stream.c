/*
 * The next lines of one stream.
 *
 * A stream goes through its parts one after another: a part is a stretch of one
 * file under one incarnation (source_memory.h). A part with an end is read to
 * it, after a restart just as before; the last part has none, and when its file
 * has no more lines, source_file_plan.c decides what follows. So the live path
 * and the one after a crash are the same.
 */
#include "collector/source/file/internal.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum {
	STEPS_MAX = 256, /* parts passed in one call: a bound, not a limit that is met */
	ABSENCE_WAIT_MS = 200,
};

/* What a step inside decides: go round again, or leave with a result. */
enum turn { TURN_AGAIN, TURN_LINES, TURN_NOTHING, TURN_END, TURN_FAILED };

/* ---- troubles: stated once, tried again with growing pauses; without follow they end the stream ---- */

static enum turn trouble(struct file_stream *stream, int64_t now_ms, const struct weir_error *error)
{
	file_stream_trouble(stream, now_ms, "%s", error->text);
	return stream->source->follow ? TURN_NOTHING : TURN_FAILED;
}

/* Comes back after a while without a word. */
static enum turn later(struct file_stream *stream, int64_t at_ms)
{
	stream->retry_ms = at_ms;
	return TURN_NOTHING;
}

/* ---- parts ---- */

/* The next part, if there is one; the file of this one is closed unless more is expected of it. */
static void advance(struct file_stream *stream, const struct source_memory_part *part)
{
	struct source_memory_file *file = source_memory_file(stream->record, part->file);
	uint32_t next = part->incarnation + 1;
	bool again = false;
	for (uint32_t i = next; !again && i < stream->record->next_incarnation; i++) {
		const struct source_memory_part *other = source_memory_part(stream->record, i);
		again = other != NULL && other->file == part->file;
	}
	if (!again && file->state == SOURCE_FILE_SETTLED)
		file_stream_close(stream, file_stream_opened(stream, file));
	const struct source_memory_part *following = source_memory_part(stream->record, next);
	stream->incarnation = next;
	stream->offset = following != NULL ? following->from : 0;
	stream->successor_ms = 0;
}

/* The bytes of a part that can no longer be read are lost: it ends where it stands. */
static void give_up_part(struct file_stream *stream, struct source_memory_part *part)
{
	struct source_memory_file *file = source_memory_file(stream->record, part->file);
	uint64_t end = part->to != SOURCE_PART_OPEN ? part->to : file->size;
	file_stream_lost(stream, end > stream->offset ? end - stream->offset : 0);
	if (part->to == SOURCE_PART_OPEN) {
		part->to = stream->offset;
		part->change = ++stream->source->memory->changes;
	}
	file->state = SOURCE_FILE_SETTLED;
	file_stream_close(stream, file_stream_opened(stream, file));
	advance(stream, part);
}

/* The file of a part is not found. Several looks decide: a listing may miss it. */
static enum turn on_absent(struct file_stream *stream, struct source_memory_part *part, enum file_found found,
                           int64_t now_ms)
{
	struct source_memory_file *file = source_memory_file(stream->record, part->file);
	if (!file_given_up(file, found)) {
		int64_t wait_ms = found == FOUND_NO_DIRECTORY ? stream->source->timing.poll : ABSENCE_WAIT_MS;
		return stream->source->follow ? later(stream, now_ms + wait_ms) : TURN_AGAIN;
	}
	if (part->to != SOURCE_PART_OPEN || file_plan_replaced(stream, now_ms)) {
		give_up_part(stream, part);
		return TURN_AGAIN;
	}
	/* It may come back: a directory that is moved or mounted again. */
	struct weir_error error;
	weir_fail(&error, WEIR_IO, "%s is gone", stream->path);
	return trouble(stream, now_ms, &error);
}

/* Opens a part's file where the stream stands. TURN_LINES: *current is it. */
static enum turn open_part(struct file_stream *stream, struct source_memory_part *part, int64_t now_ms,
                           struct open_file **current)
{
	struct source_memory_file *file = source_memory_file(stream->record, part->file);
	struct weir_error error;
	*current = file_stream_opened(stream, file);
	if (*current != NULL) {
		if (input_lines_offset((*current)->lines) == stream->offset)
			return TURN_LINES;
		enum weir_status status = input_lines_seek((*current)->lines, stream->offset, &error);
		if (status == WEIR_OK)
			return TURN_LINES;
		file_stream_close(stream, *current); /* looked for again: it may be a copy that is whole */
	}
	struct open_file *opened;
	enum file_found found = file_find(stream, file, stream->offset, false, &opened, &error);
	if (opened != NULL)
		file_stream_adopt(stream, opened, now_ms);
	switch (found) {
	case FOUND:
	case FOUND_COPY: *current = opened; return TURN_LINES;
	case FOUND_SHORTER:
		if (part->to != SOURCE_PART_OPEN) {
			give_up_part(stream, part);
			return TURN_AGAIN;
		}
		return file_plan_truncated(stream, opened, now_ms) == PLAN_GO_ON ? TURN_AGAIN : TURN_NOTHING;
	case FOUND_NOWHERE:
	case FOUND_NO_DIRECTORY: return on_absent(stream, part, found, now_ms);
	case FOUND_UNKNOWN: break;
	}
	return trouble(stream, now_ms, &error);
}

/* A part's first line is handed out only when the part is on disk. */
static enum turn save_part(struct file_stream *stream, const struct source_memory_part *part, int64_t now_ms)
{
	struct weir_error error;
	if (source_memory_part_saved(stream->source->memory, part) ||
	    source_memory_save(stream->source->memory, &error) == WEIR_OK)
		return TURN_LINES;
	return trouble(stream, now_ms, &error);
}

/* ---- lines ---- */

/* Adds to the first bytes that are kept, and to what the file is known by. */
static void take_note(struct open_file *current, const struct input_lines_chunk *lines)
{
	struct fingerprint *print = &current->file->fingerprint;
	size_t held = current->head_bytes;
	if (held < FINGERPRINT_HEAD_BYTES && lines->offset <= held && held < lines->offset + lines->length) {
		size_t more = (size_t)(lines->offset + lines->length - held), room = FINGERPRINT_HEAD_BYTES - held;
		more = more < room ? more : room;
		memcpy(current->head + held, lines->data + (held - lines->offset), more);
		current->head_bytes += more;
		fingerprint_head(print, current->head, current->head_bytes);
	}
	fingerprint_note(print, lines->offset, lines->data, lines->length);
}

static void hand_out(struct file_stream *stream, const struct source_memory_part *part, struct open_file *current,
                     int64_t now_ms, struct source_chunk *chunk)
{
	struct input_lines_chunk lines;
	input_lines_take(current->lines, &lines);
	take_note(current, &lines);
	*chunk = (struct source_chunk){
		.stream = &stream->stream,
		.data = lines.data,
		.length = lines.length,
		.position = source_position(part->incarnation, lines.offset),
		.before = {.at = stream->before.at, .length = (uint32_t)stream->before.length},
		.last_open = lines.open,
		.too_long = lines.too_long,
		.skipped = lines.skipped,
	};
	stream->before_given = true;
	stream->offset = input_lines_offset(current->lines);
	struct source_memory_file *file = current->file;
	if (file->taken < stream->offset)
		file->taken = stream->offset;
	uint64_t read = input_lines_read_offset(current->lines);
	if (file->size < read)
		file->size = read;
	current->grown_ms = now_ms;
	source_memory_changed(stream->source->memory);
	if (!current->damaged)
		file_stream_well(stream);
	file_stream_note(stream, current, source_position(part->incarnation, stream->offset), false, now_ms);
}

/* A compressed file is damaged or cut: what could be read of it is handed out, an open line too. */
static enum turn on_damage(struct file_stream *stream, const struct source_memory_part *part, struct open_file *current,
                           int64_t now_ms, struct source_chunk *chunk, struct weir_error *error)
{
	weir_error_prefix(error, "%s", current->path);
	if (!stream->source->follow) {
		if (input_lines_fill(current->lines, part->to, true, NULL) != WEIR_OK)
			return trouble(stream, now_ms, error);
		hand_out(stream, part, current, now_ms, chunk);
		return TURN_LINES;
	}
	if (!current->damaged)
		file_stream_trouble(stream, now_ms, "%s", error->text);
	current->damaged = true;
	open_file_end(current);
	return file_plan_next(stream, current, now_ms) == PLAN_GO_ON ? TURN_AGAIN : TURN_NOTHING;
}

static enum turn on_plan(struct file_stream *stream, enum file_plan plan)
{
	if (plan == PLAN_GO_ON)
		return TURN_AGAIN;
	if (stream->source->follow)
		return TURN_NOTHING;
	return plan == PLAN_WAIT ? TURN_END : TURN_FAILED;
}

/* The part's file gives no line just now. */
static enum turn on_no_line(struct file_stream *stream, struct source_memory_part *part, struct open_file *current,
                            int64_t now_ms)
{
	if (part->to != SOURCE_PART_OPEN) {
		give_up_part(stream, part); /* it had more when the part was read first */
		return TURN_AGAIN;
	}
	if (stream->offset >= SOURCE_OFFSET_END - 1) {
		struct weir_error error;
		weir_fail(&error, WEIR_FULL, "%s: is read up to 1 TiB, and no further", current->path);
		return trouble(stream, now_ms, &error);
	}
	if (input_compressed(input_lines_input(current->lines)))
		open_file_end(current);
	stream->repeats = false;
	file_stream_note(stream, current, 0, true, now_ms);
	file_stream_well(stream);
	return on_plan(stream, file_plan_next(stream, current, now_ms));
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
		while (status == WEIR_OK && first.too_long &&
		       (status = input_lines_fill(lines, stream->offset, false, error)) == WEIR_OK)
			input_lines_take(lines, &first);
		if (status == WEIR_OK)
			weir_text_append(&stream->before, first.data, whole_lines(&first));
		if ((status = input_lines_seek(lines, stream->offset, error)) != WEIR_OK)
			return status;
	}
	stream->looked_back = part->incarnation;
	return WEIR_OK;
}

static enum turn read_part(struct file_stream *stream, struct source_memory_part *part, struct open_file *current,
                           int64_t now_ms, struct source_chunk *chunk)
{
	struct weir_error error;
	bool open = part->to == SOURCE_PART_OPEN;
	if (open && stream->source->follow && stream->offset == 0)
		open_file_skip_hole(stream, current);
	uint64_t limit = open ? SOURCE_OFFSET_END - 1 : part->to;
	enum weir_status status = look_back(stream, part, current->lines, &error);
	if (status == WEIR_OK)
		status = input_lines_fill(current->lines, limit, false, &error);
	else if (status == WEIR_END || status == WEIR_INVALID) { /* it is no longer what it was: looked for again */
		file_stream_close(stream, current);
		return TURN_AGAIN;
	}
	switch (status) {
	case WEIR_OK:
		if (open && stream->source->follow && !file_plan_intact(current))
			return on_plan(stream, file_plan_truncated(stream, current, now_ms));
		hand_out(stream, part, current, now_ms, chunk);
		return TURN_LINES;
	case WEIR_END: return on_no_line(stream, part, current, now_ms);
	case WEIR_INVALID: return on_damage(stream, part, current, now_ms, chunk, &error);
	default: break;
	}
	weir_error_prefix(&error, "%s", current->path);
	file_stream_close(stream, current); /* read again from where the stream stands */
	return trouble(stream, now_ms, &error);
}

static enum turn turn_once(struct file_stream *stream, int64_t now_ms, struct source_chunk *chunk)
{
	struct source_memory_part *part = source_memory_part(stream->record, stream->incarnation);
	if (part == NULL)
		return on_plan(stream, file_plan_next(stream, NULL, now_ms));
	if (part->to != SOURCE_PART_OPEN && stream->offset >= part->to) {
		advance(stream, part);
		return TURN_AGAIN;
	}
	enum turn turn = save_part(stream, part, now_ms);
	struct open_file *current;
	if (turn == TURN_LINES)
		turn = open_part(stream, part, now_ms, &current);
	if (turn != TURN_LINES)
		return turn;
	return read_part(stream, part, current, now_ms, chunk);
}

struct open_file *file_stream_current(const struct file_stream *stream)
{
	const struct source_memory_part *part = source_memory_part(stream->record, stream->incarnation);
	return part != NULL ? file_stream_opened(stream, source_memory_file(stream->record, part->file)) : NULL;
}

static struct stat sign_of(const struct file_stream *stream)
{
	struct stat about;
	if (stat(stream->path, &about) != 0)
		memset(&about, 0, sizeof about);
	return about;
}

void file_stream_sign(struct file_stream *stream)
{
	stream->sign = sign_of(stream);
}

bool file_stream_sign_changed(const struct file_stream *stream)
{
	struct stat about = sign_of(stream);
	return about.st_dev != stream->sign.st_dev || about.st_ino != stream->sign.st_ino ||
	       about.st_size != stream->sign.st_size || file_modified_ns(&about) != file_modified_ns(&stream->sign);
}

enum file_step file_stream_step(struct file_stream *stream, int64_t now_ms, struct source_chunk *chunk,
                                struct weir_error *error)
{
	if (stream->done)
		return FILE_STEP_END;
	/* Taken before anything is looked at: a change that comes meanwhile shows. */
	if (file_stream_current(stream) == NULL)
		file_stream_sign(stream);
	enum turn turn = TURN_AGAIN;
	for (int i = 0; i < STEPS_MAX && turn == TURN_AGAIN; i++)
		turn = turn_once(stream, now_ms, chunk);
	switch (turn) {
	case TURN_LINES: return FILE_STEP_LINES;
	case TURN_AGAIN: return FILE_STEP_AGAIN;
	case TURN_NOTHING: return FILE_STEP_NOTHING;
	case TURN_END: break;
	case TURN_FAILED: weir_fail(error, WEIR_IO, "%s", stream->status.problem); break;
	}
	stream->done = true;
	while (stream->open_count > 0)
		file_stream_close(stream, stream->open[0]);
	return turn == TURN_END ? FILE_STEP_END : FILE_STEP_FAILED;
}

enum weir_status file_stream_resume(struct file_stream *stream, uint64_t position, struct weir_error *error)
{
	uint32_t incarnation = source_position_incarnation(position);
	uint64_t offset = source_position_offset(position);
	const struct source_memory_part *part = source_memory_part(stream->record, incarnation);
	if (position == 0 && stream->record->part_count > 0)
		part = &stream->record->parts[0], offset = part->from;
	else if (position == 0)
		return WEIR_OK;
	if (part == NULL || offset < part->from || (part->to != SOURCE_PART_OPEN && offset > part->to))
		return weir_fail(error, WEIR_INVALID, "%s: nothing is known of its position %u:%llu", stream->stream.name,
		                 incarnation, (unsigned long long)offset);
	stream->incarnation = part->incarnation;
	stream->offset = offset;
	stream->repeats = true;
	return WEIR_OK;
}
