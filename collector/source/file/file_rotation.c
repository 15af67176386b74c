/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows where a stream's lines end. It is always the same three steps:
 *
 *     observe   what there is to see                    file_situation.c
 *     decide    which action the situation asks for     the table below
 *     do it     to the stream, its parts and files      the rest of this file
 *
 * Late lines: a file that was left for its successor is looked at for a while,
 * in the same steps. What comes there still is read as a part of its own, under
 * an incarnation of its own, and then the file that was interrupted continues in
 * another: positions grow as lines are handed out, so none is taken for one
 * that was seen.
 */
#include "collector/source/file/file_rotation.h"

#include <assert.h>
#include <string.h>

enum { STEPS_MAX = 256 }; /* parts passed in one call: a bound, not a limit that is met */

/* ---- to decide ---- */

static const struct {
	enum file_action followed, once;
} decisions[SITUATION_COUNT] = {
	[SITUATION_NO_ROOM] = {ACTION_WAIT, ACTION_FAIL}, /* followed: until more is acknowledged */
	[SITUATION_UNREADABLE] = {ACTION_FAIL, ACTION_FAIL},

	[SITUATION_NOTHING_THERE] = {ACTION_WAIT, ACTION_END},
	[SITUATION_NEXT_THERE] = {ACTION_BEGIN, ACTION_BEGIN},

	[SITUATION_QUIET] = {ACTION_WAIT, ACTION_FINISH},
	[SITUATION_QUIET_OPEN_LINE] = {ACTION_WAIT, ACTION_HAND_OUT_REST},
	[SITUATION_PACKED_CUT] = {ACTION_WAIT, ACTION_FINISH},
	[SITUATION_PACKED_READ] = {ACTION_SETTLE, ACTION_FINISH},
	[SITUATION_PACKED_OPEN_LINE] = {ACTION_HAND_OUT_REST, ACTION_HAND_OUT_REST},
	[SITUATION_REMOVED] = {ACTION_SETTLE, ACTION_SETTLE},

	[SITUATION_OVERLOOKED] = {ACTION_INTERRUPT, ACTION_INTERRUPT},
	[SITUATION_COPY_AT_PATH] = {ACTION_REOPEN, ACTION_REOPEN},
	[SITUATION_PACKED_SUCCEEDED] = {ACTION_SETTLE, ACTION_SETTLE},
	[SITUATION_PACKED_CUT_SUCCEEDED] = {ACTION_LEAVE_AT_LINE, ACTION_LEAVE},
	[SITUATION_RETURNING] = {ACTION_LEAVE_AT_LINE, ACTION_LEAVE},
	[SITUATION_SUCCESSOR_SEEN] = {ACTION_READ_ON, ACTION_LEAVE},
	[SITUATION_SUCCESSOR_WAITING] = {ACTION_WAIT, ACTION_LEAVE},
	[SITUATION_SUCCESSOR_DUE] = {ACTION_LEAVE, ACTION_LEAVE},

	[SITUATION_TRUNCATED] = {ACTION_START_OVER, ACTION_START_OVER},
	[SITUATION_TRUNCATED_COPIED] = {ACTION_GO_ON_IN_COPY, ACTION_GO_ON_IN_COPY},
	[SITUATION_TRUNCATED_UNREADABLE] = {ACTION_CLOSE_AND_FAIL, ACTION_CLOSE_AND_FAIL},

	[SITUATION_GONE] = {ACTION_FAIL, ACTION_FAIL},
	[SITUATION_REPLACED] = {ACTION_GIVE_UP, ACTION_GIVE_UP},

	[SITUATION_LEFT_CLOSED] = {ACTION_OPEN_LEFT, ACTION_OPEN_LEFT},
	[SITUATION_LEFT_QUIET] = {ACTION_WAIT, ACTION_WAIT},
	[SITUATION_LEFT_LINES] = {ACTION_INSERT_LINES, ACTION_INSERT_LINES},
	[SITUATION_LEFT_REWRITTEN] = {ACTION_CLOSE_LEFT, ACTION_CLOSE_LEFT},
	[SITUATION_LEFT_OVER] = {ACTION_SETTLE_LEFT, ACTION_SETTLE_LEFT},
	[SITUATION_LEFT_OVER_OPEN_LINE] = {ACTION_INSERT_OPEN_LINE, ACTION_INSERT_OPEN_LINE},
	[SITUATION_LEFT_TRUNCATED] = {ACTION_SETTLE_LEFT, ACTION_SETTLE_LEFT},
	[SITUATION_LEFT_UNREADABLE] = {ACTION_WAIT, ACTION_WAIT},
	[SITUATION_LEFT_ABSENT] = {ACTION_COUNT_ABSENCE, ACTION_COUNT_ABSENCE},
	[SITUATION_LEFT_GONE] = {ACTION_SETTLE_LEFT, ACTION_SETTLE_LEFT},
};

enum file_action file_rotation_decide(enum file_situation situation, bool follow)
{
	assert(situation < SITUATION_COUNT);
	return follow ? decisions[situation].followed : decisions[situation].once;
}

/* ---- files that were left ---- */

/* The stream reads a stretch of a file that it had left, and then goes on where it was. */
static void insert_lines(struct file_stream *stream, struct open_file *left)
{
	if (file_stream_part(stream) != NULL)
		file_stream_end_part(stream, stream->offset, SOURCE_FILE_READING);
	file_stream_add_part(stream, left->file, input_lines_offset(left->lines));
}

static void insert_open_line(struct file_stream *stream, struct source_memory_file *file, struct open_file *left)
{
	struct source_memory_file *reading = file_stream_file(stream);
	uint64_t offset = stream->offset;
	insert_lines(stream, left);
	source_memory_last_part(stream->record)->to = file->taken = input_lines_read_offset(left->lines);
	if (reading != NULL)
		file_stream_add_part(stream, reading, offset);
	file->state = SOURCE_FILE_SETTLED;
}

static struct open_file *open_found(struct file_stream *stream, struct source_memory_file *file,
                                    struct file_finding *found, int64_t now_ms)
{
	return file_stream_open(stream, file, &found->beginning, found->path, now_ms);
}

static const char is_cut[] = "ends in the middle of its compressed data";

/* Why the rest of a file that was left cannot be read, if it has any. */
static const char *why_lost(enum file_situation situation, const struct open_file *left)
{
	if (situation == SITUATION_LEFT_GONE)
		return "was deleted";
	if (situation == SITUATION_LEFT_TRUNCATED)
		return "was truncated";
	return left != NULL && left->state == OPEN_FILE_CUT ? is_cut : NULL;
}

static void settle_left(struct file_stream *stream, struct source_memory_file *file, struct open_file *left,
                        enum file_situation situation)
{
	const char *why = why_lost(situation, left);
	if (why != NULL && (file->size > file->taken || situation == SITUATION_LEFT_OVER))
		file_stream_lost(stream, file, file->taken, file->size, why);
	file->state = SOURCE_FILE_SETTLED;
	source_memory_changed(stream->shared->memory);
	file_stream_close(stream, left);
}

static void do_with_left(struct file_stream *stream, struct source_memory_file *file, enum file_action action,
                         struct file_observation *seen, int64_t now_ms)
{
	struct open_file *left = file_stream_opened(stream, file);
	if (seen->found.path != NULL)
		left = open_found(stream, file, &seen->found, now_ms);
	switch (action) {
	case ACTION_INSERT_LINES:
		left->grown_ms = now_ms;
		insert_lines(stream, left);
		break;
	case ACTION_INSERT_OPEN_LINE: insert_open_line(stream, file, left); break;
	case ACTION_SETTLE_LEFT: settle_left(stream, file, left, seen->situation); break;
	case ACTION_CLOSE_LEFT: file_stream_close(stream, left); break;
	case ACTION_COUNT_ABSENCE: file->absences++; break;
	default: assert(action == ACTION_OPEN_LEFT || action == ACTION_WAIT); break;
	}
}

/* @return whether a part was added */
static bool inspect_left(struct file_stream *stream, struct source_memory_file *file, int64_t now_ms)
{
	uint32_t parts = stream->record->next_incarnation;
	enum file_action action;
	do {
		struct file_observation seen;
		file_situation_observe_left(stream, file, now_ms, &seen);
		action = file_rotation_decide(seen.situation, stream->shared->settings.follow);
		do_with_left(stream, file, action, &seen, now_ms);
		file_observation_deinit(&seen);
	} while (action == ACTION_OPEN_LEFT || action == ACTION_CLOSE_LEFT);
	return stream->record->next_incarnation != parts;
}

/* Late lines in files that were left become parts of their own. @return whether there were any */
static bool inspect_all_left(struct file_stream *stream, int64_t now_ms)
{
	const struct source_memory_stream *record = stream->record;
	const struct source_memory_part *part = file_stream_part(stream);
	/* Parts that follow already are read first, and what was handed out before keeps the positions that it had. */
	if (part != NULL && (part->to != SOURCE_PART_OPEN || stream->repeats))
		return false;
	for (size_t i = 0; i < record->file_count && file_stream_has_room(stream); i++)
		if (record->files[i]->state == SOURCE_FILE_LEFT && inspect_left(stream, record->files[i], now_ms))
			return true;
	return false;
}

/* ---- to do it ---- */

/*
 * What comes next lies at the path. If another file was to come that lay there before, and was not begun since, it was
 * moved away before it was read, and nobody knows where to.
 */
static void await(struct file_rotation *rotation, const struct file_candidate *next)
{
	struct file_stream *stream = &rotation->stream;
	struct file_awaited *awaited = &rotation->awaited;
	bool same = awaited->inode == next->inode && awaited->device == next->device;
	if (awaited->inode != 0 && !same &&
	    source_memory_file_with(stream->shared->memory, awaited->device, awaited->inode) == NULL) {
		file_stream_count_lost(stream, awaited->size);
		file_shared_tell(
			stream->shared,
			"%s: a file that lay there was moved away before it was read, and is not found: %llu bytes from "
			"position 0 on are lost",
			stream->path, (unsigned long long)awaited->size);
	}
	*awaited = (struct file_awaited){next->device, next->inode, next->size};
}

static bool lies_at_path(const struct file_rotation *rotation, const struct file_candidate *next)
{
	return next->path != NULL && strcmp(next->path, rotation->stream.path) == 0;
}

/* What was seen is noted, whatever is done about it. */
static void take_note(struct file_rotation *rotation, const struct file_observation *seen)
{
	struct file_stream *stream = &rotation->stream;
	assert(seen->outlook.phase == FILE_AT_PATH || seen->outlook.phase >= rotation->outlook.phase);
	rotation->outlook = seen->outlook;
	if (seen->answered)
		file_stream_well(stream);
	if (seen->again_ms != 0)
		stream->retry_ms = seen->again_ms;
	if (lies_at_path(rotation, &seen->next.fresh))
		await(rotation, &seen->next.fresh);
	if (seen->next.moved_in)
		source_memory_file_place(stream->shared->memory, seen->next.known, seen->next.device, seen->next.inode);
}

static enum file_step fail(struct file_stream *stream, int64_t now_ms, const struct weir_error *error)
{
	file_stream_fail(stream, now_ms, error);
	return stream->shared->settings.follow ? FILE_STEP_NOTHING : FILE_STEP_FAILED;
}

static void begin_next(struct file_rotation *rotation, const struct file_successor *next)
{
	rotation->outlook.looks = FILE_LOOKS_AFTER;
	rotation->awaited = (struct file_awaited){.inode = 0};
	if (next->known != NULL)
		file_stream_add_part(&rotation->stream, next->known, next->known->taken);
	else
		file_stream_begin(&rotation->stream, &next->fresh, false);
}

/* A last line without newline, in a file that will not grow. What is written behind it after all is another line. */
static void hand_out_rest(struct file_stream *stream, const struct open_file *current)
{
	assert(current != NULL);
	uint64_t end = input_lines_read_offset(current->lines);
	file_stream_end_part(stream, end, SOURCE_FILE_READING);
	file_stream_add_part(stream, current->file, end);
}

/* The rest of what a truncated file held is read on in its copy. */
static void go_on_in_copy(struct file_stream *stream, struct open_file *current, struct file_finding *found,
                          int64_t now_ms)
{
	assert(current != NULL);
	struct source_memory_file *file = current->file;
	uint64_t size = file->size;
	file_stream_close(stream, current);
	struct open_file *copy = open_found(stream, file, found, now_ms);
	if (open_file_plain(copy)) {
		file->size = (uint64_t)copy->about.st_size;
		if (size > file->size)
			file_stream_lost(stream, file, stream->offset, stream->offset + (size - file->size),
			                 "was truncated, and its copy is shorter");
	}
	copy->grown_ms = now_ms - stream->shared->settings.timing.grace; /* no one writes to a copy */
}

/* The rest of what a truncated file held is lost, and counted as far as it was seen. */
static void start_over(struct file_stream *stream, struct open_file *current, struct file_observation *seen,
                       int64_t now_ms)
{
	assert(current != NULL);
	struct source_memory_file *old = current->file;
	if (old->size > stream->offset || (seen->from == 0 && stream->offset > 0))
		file_stream_lost(stream, old, stream->offset, old->size, "was truncated");
	file_stream_end_part(stream, stream->offset, SOURCE_FILE_SETTLED);
	source_memory_file_place(stream->shared->memory, old, 0, 0);
	file_stream_close(stream, current);

	struct source_memory_file *file = source_memory_file_add(stream->shared->memory, stream->record);
	file->fingerprint = seen->fingerprint;
	file->taken = seen->from;
	file_stream_add_part(stream, file, seen->from);
	open_found(stream, file, &seen->found, now_ms);
}

/* The file was removed, and the one at the path may be the same, edited: what was read of it is not read again. */
static void pass_over_overlap(const struct file_rotation *rotation, const struct file_tail *tail,
                              struct file_candidate *next)
{
	const struct file_stream *stream = &rotation->stream;
	if (!tail->known || !lies_at_path(rotation, next) || next->compressed)
		return;
	next->from = file_tail_find(tail, next);
	if (next->from > 0)
		file_shared_tell(stream->shared,
		                 "%s: it was edited, so it is another file now. Reading goes on at byte %llu, behind the lines "
		                 "that were read last",
		                 stream->path, (unsigned long long)next->from);
}

static struct file_tail tail_of(const struct file_stream *stream, const struct open_file *current)
{
	struct file_tail tail = {.known = false};
	if (open_file_plain(current))
		file_tail_read(&tail, input_fd(input_lines_input(current->lines)), stream->offset);
	return tail;
}

/* The file ends where the stream stands, or with its open line, and what comes next begins. */
static void end_file(struct file_rotation *rotation, uint64_t to, enum source_file_state state,
                     const struct file_successor *next)
{
	struct file_stream *stream = &rotation->stream;
	const struct open_file *current = file_stream_current(stream);
	/* A file without a name is never found again, and its inode may soon be another's. */
	if (current != NULL && state != SOURCE_FILE_READING && !open_file_linked(current))
		source_memory_file_place(stream->shared->memory, current->file, 0, 0);
	file_stream_end_part(stream, to, state);
	if (next->known != NULL || next->fresh.path != NULL)
		begin_next(rotation, next);
}

static enum file_step do_action(struct file_rotation *rotation, enum file_action action, struct file_observation *seen,
                                int64_t now_ms)
{
	struct file_stream *stream = &rotation->stream;
	struct open_file *current = file_stream_current(stream);
	uint64_t whole = stream->offset, all = current != NULL ? input_lines_read_offset(current->lines) : 0;
	switch (action) {
	case ACTION_WAIT: return FILE_STEP_NOTHING;
	case ACTION_END: return FILE_STEP_END;
	case ACTION_FINISH: return inspect_all_left(stream, now_ms) ? FILE_STEP_AGAIN : FILE_STEP_END;
	case ACTION_CLOSE_AND_FAIL: file_stream_close(stream, current); return fail(stream, now_ms, &seen->error);
	case ACTION_FAIL: return fail(stream, now_ms, &seen->error);
	case ACTION_READ_ON: stream->retry_ms = 0; break;
	case ACTION_REOPEN: file_stream_close(stream, current); break;
	case ACTION_BEGIN:
		pass_over_overlap(rotation, &rotation->tail, &seen->next.fresh);
		begin_next(rotation, &seen->next);
		break;
	case ACTION_INTERRUPT: end_file(rotation, whole, SOURCE_FILE_READING, &seen->next); break;
	case ACTION_LEAVE:
		if (current != NULL && !open_file_linked(current)) {
			struct file_tail tail = tail_of(stream, current);
			pass_over_overlap(rotation, &tail, &seen->next.fresh);
		}
		end_file(rotation, all, SOURCE_FILE_LEFT, &seen->next);
		break;
	case ACTION_LEAVE_AT_LINE: end_file(rotation, whole, SOURCE_FILE_LEFT, &seen->next); break;
	case ACTION_SETTLE:
		if (current != NULL && current->state == OPEN_FILE_CUT)
			file_stream_lost(stream, current->file, all, all, is_cut);
		end_file(rotation, all, SOURCE_FILE_SETTLED, &seen->next);
		break;
	case ACTION_HAND_OUT_REST: hand_out_rest(stream, current); break;
	case ACTION_START_OVER: start_over(stream, current, seen, now_ms); break;
	case ACTION_GO_ON_IN_COPY: go_on_in_copy(stream, current, &seen->found, now_ms); break;
	case ACTION_GIVE_UP: file_stream_give_up_part(stream, "was deleted"); break;
	case ACTION_OPEN_LEFT:
	case ACTION_COUNT_ABSENCE:
	case ACTION_INSERT_LINES:
	case ACTION_INSERT_OPEN_LINE:
	case ACTION_CLOSE_LEFT:
	case ACTION_SETTLE_LEFT: assert(false); break; /* no situation of the file that is read asks for these */
	}
	return FILE_STEP_AGAIN;
}

static enum file_step follow_up(struct file_rotation *rotation, enum file_reading reading, int64_t now_ms)
{
	struct file_observation seen;
	file_situation_observe(&rotation->stream, &rotation->outlook, reading, now_ms, &seen);
	take_note(rotation, &seen);
	enum file_action action = file_rotation_decide(seen.situation, rotation->stream.shared->settings.follow);
	enum file_step step = do_action(rotation, action, &seen, now_ms);
	file_observation_deinit(&seen);
	return step;
}

/* ---- the lines ---- */

static struct stat sign_of(const struct file_stream *stream)
{
	struct stat about;
	if (stat(stream->path, &about) != 0)
		memset(&about, 0, sizeof about);
	return about;
}

static bool sign_changed(const struct file_rotation *rotation)
{
	struct stat about = sign_of(&rotation->stream);
	const struct stat *sign = &rotation->sign;
	return about.st_dev != sign->st_dev || about.st_ino != sign->st_ino || about.st_size != sign->st_size ||
	       file_identity_modified_ns(&about) != file_identity_modified_ns(sign);
}

/* @param busy  set where others are to be asked first */
static enum file_step step_once(struct file_rotation *rotation, int64_t now_ms, struct source_chunk *chunk, bool *busy)
{
	enum file_reading reading = file_reading_next(&rotation->stream, now_ms, chunk);
	if (file_stream_current(&rotation->stream) != NULL)
		rotation->tail.known = false;
	if (rotation->incarnation != rotation->stream.incarnation) {
		rotation->incarnation = rotation->stream.incarnation;
		rotation->outlook.phase = FILE_AT_PATH;
	}
	switch (reading) {
	case FILE_READING_LINES: return FILE_STEP_LINES;
	case FILE_READING_AGAIN: return FILE_STEP_AGAIN;
	case FILE_READING_BUSY: *busy = true; return FILE_STEP_AGAIN;
	case FILE_READING_LATER: return FILE_STEP_NOTHING;
	case FILE_READING_FAILED: return FILE_STEP_FAILED;
	case FILE_READING_ALL:
	case FILE_READING_NO_LINE:
	case FILE_READING_TRUNCATED:
	case FILE_READING_GONE: break;
	}
	return follow_up(rotation, reading, now_ms);
}

enum file_step file_rotation_next(struct file_rotation *rotation, int64_t now_ms, struct source_chunk *chunk,
                                  struct weir_error *error)
{
	struct file_stream *stream = &rotation->stream;
	if (stream->state == FILE_STREAM_DONE)
		return FILE_STEP_END;
	/* Taken before anything is looked at: a change that comes meanwhile shows. */
	if (file_stream_current(stream) == NULL)
		rotation->sign = sign_of(stream);
	enum file_step step = FILE_STEP_AGAIN;
	bool busy = false;
	for (int i = 0; i < STEPS_MAX && step == FILE_STEP_AGAIN && !busy; i++)
		step = step_once(rotation, now_ms, chunk, &busy);
	if (step == FILE_STEP_FAILED)
		weir_fail(error, WEIR_IO, "%s", stream->status.problem);
	if (step == FILE_STEP_FAILED || step == FILE_STEP_END) {
		file_stream_tell_zeros(stream);
		file_stream_finish(stream);
	}
	return step;
}

/*
 * A log that nobody writes to needs no descriptor: should it be renamed meanwhile, its inode finds it. Where many are
 * open, none that is read to its end does.
 */
static bool needs_no_descriptor(const struct file_rotation *rotation, const struct open_file *current, int64_t now_ms)
{
	const struct file_stream *stream = &rotation->stream;
	bool crowded = stream->shared->open_most > 0 && stream->shared->open_count > stream->shared->open_most;
	return (crowded || now_ms - current->grown_ms >= stream->shared->settings.timing.idle) &&
	       open_file_plain(current) && input_lines_zeros(current->lines) == 0 && !file_rotation_away(rotation) &&
	       input_lines_read_offset(current->lines) == stream->offset && stream->offset == current->file->size;
}

/* Whether nothing has happened to a file that was read to its end, and nothing is awaited. */
static bool is_calm(const struct file_rotation *rotation, const struct open_file *current)
{
	const struct file_stream *stream = &rotation->stream;
	return stream->state == FILE_STREAM_IDLE && !file_rotation_away(rotation) && !rotation->outlook.missed &&
	       stream->record->part_count == 1 && open_file_unchanged(current);
}

static void close_quiet(struct file_rotation *rotation, struct open_file *current)
{
	struct file_stream *stream = &rotation->stream;
	rotation->tail = tail_of(stream, current);
	file_stream_close(stream, current);
	rotation->sign = sign_of(stream);
}

void file_rotation_rest(struct file_rotation *rotation)
{
	struct file_stream *stream = &rotation->stream;
	struct open_file *current = file_stream_current(stream);
	if (current == NULL)
		return;
	input_lines_rest(current->lines);
	if (stream->shared->open_most == 0 || stream->shared->open_count <= stream->shared->open_most ||
	    !needs_no_descriptor(rotation, current, current->grown_ms))
		return;
	close_quiet(rotation, current);
}

void file_rotation_tick(struct file_rotation *rotation, int64_t now_ms)
{
	struct file_stream *stream = &rotation->stream;
	file_stream_tell_zeros(stream);
	if (inspect_all_left(stream, now_ms)) {
		file_stream_wake(stream);
		return;
	}
	if (rotation->outlook.looks > 0) {
		rotation->outlook.looks--;
		file_rotation_inspect(rotation);
	}
	struct open_file *current = file_stream_current(stream);
	if (current == NULL) {
		if (sign_changed(rotation))
			file_stream_wake(stream);
		return;
	}
	input_lines_rest(current->lines);
	bool idle = needs_no_descriptor(rotation, current, now_ms), calm = is_calm(rotation, current);
	if (idle) {
		close_quiet(rotation, current);
		idle = (uint64_t)rotation->sign.st_size == stream->offset;
	}
	if (idle)
		file_stream_idle(stream);
	else if (!calm)
		file_stream_wake(stream);
}

void file_rotation_inspect(struct file_rotation *rotation)
{
	rotation->outlook.missed = true;
	file_stream_wake(&rotation->stream);
}

bool file_rotation_away(const struct file_rotation *rotation)
{
	return rotation->outlook.phase != FILE_AT_PATH;
}
