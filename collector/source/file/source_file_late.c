/*
 * Late lines: a file that was left for its successor is watched for a while.
 *
 * What comes there still is read as a part of its own, under an incarnation of
 * its own, and then the file that was interrupted goes on in another: positions
 * grow as lines are handed out, so none is taken for one that was seen.
 */
#include "collector/source/file/internal.h"

/* The stream reads a stretch of a file that it had left, and then goes on where it was. */
static void insert_late(struct file_stream *stream, struct open_file *late)
{
	if (source_memory_part(stream->record, stream->incarnation) != NULL)
		file_stream_end_part(stream, stream->offset, SOURCE_FILE_READING);
	file_stream_add_part(stream, late->file, input_lines_offset(late->lines));
}

/* Nothing more is expected of a file: its last line without newline is one after all. */
static void settle(struct file_stream *stream, struct source_memory_file *file, struct open_file *late)
{
	if (late != NULL && open_file_plain(late) &&
	    input_lines_read_offset(late->lines) > input_lines_offset(late->lines)) {
		struct source_memory_part *reading = source_memory_part(stream->record, stream->incarnation);
		struct source_memory_file *interrupted_file =
			reading != NULL ? source_memory_file(stream->record, reading->file) : NULL;
		uint64_t offset = stream->offset;
		insert_late(stream, late);
		struct source_memory_part *part = source_memory_last_part(stream->record);
		part->to = file->taken = input_lines_read_offset(late->lines);
		if (interrupted_file != NULL)
			file_stream_add_part(stream, interrupted_file, offset);
		file->state = SOURCE_FILE_SETTLED;
		return;
	}
	file->state = SOURCE_FILE_SETTLED;
	source_memory_changed(stream->source->memory);
	file_stream_close(stream, late);
}

static void look_at_left(struct file_stream *stream, struct source_memory_file *file, int64_t now_ms)
{
	struct open_file *late = file_stream_opened(stream, file);
	if (late == NULL) {
		enum file_found found = file_find(stream, file, file->taken, false, &late, NULL);
		if (late != NULL)
			file_stream_adopt(stream, late, now_ms);
		bool absent = found == FOUND_NOWHERE || found == FOUND_NO_DIRECTORY;
		if (found == FOUND_UNKNOWN || (absent && !file_given_up(file, found)))
			return;
		if (absent || found == FOUND_SHORTER) {
			settle(stream, file, NULL);
			file_stream_close(stream, late);
			return;
		}
		if (late == NULL)
			return;
	}
	enum weir_status status = input_lines_fill(late->lines, SOURCE_OFFSET_END - 1, false, NULL);
	if (file_plan_is_truncated(late)) {
		file->state = SOURCE_FILE_SETTLED;
		file_stream_close(stream, late);
	} else if (status == WEIR_OK) {
		late->grown_ms = now_ms;
		insert_late(stream, late);
	} else if (!open_file_plain(late) || now_ms - late->grown_ms >= stream->source->timing.grace) {
		settle(stream, file, late);
	}
}

bool file_plan_late(struct file_stream *stream, int64_t now_ms)
{
	const struct source_memory_stream *record = stream->record;
	const struct source_memory_part *part = source_memory_part(record, stream->incarnation);
	/* Parts that follow already are read first, and what was handed out before keeps the positions that it had. */
	if (part != NULL && (part->to != SOURCE_PART_OPEN || stream->repeats))
		return false;
	for (size_t i = 0; i < record->file_count && file_stream_has_room(stream); i++) {
		if (record->files[i]->state != SOURCE_FILE_LEFT)
			continue;
		uint32_t parts = record->next_incarnation;
		look_at_left(stream, record->files[i], now_ms);
		if (record->next_incarnation != parts)
			return true;
	}
	return false;
}
