/*
 * What follows when a file has no more lines: nothing yet, another file, or the
 * same one begun anew.
 *
 * Rename rotation. The file is kept open and read on under its new name until a
 * successor with lines lies at the path: a writer that has begun there writes
 * here no more. Then it is read to its end once again. Several processes may
 * write, and change over one by one: so the successor begins when this file has
 * been quiet for a while, or the successor has waited long enough. What comes
 * later still is not lost: the file is watched on, and late lines are read as a
 * part of their own, after which the successor goes on in another.
 *
 * Truncation in place (copytruncate). The file has fewer bytes than were read,
 * or begins with others. If a copy of what it held lies beside it, the rest is
 * read there, and what is at the path is a successor like any other. Else the
 * rest is lost, and counted as far as it was seen. A file that was merely cut,
 * and begins as it did, goes on at its new end; any other from its beginning.
 *
 * Files rotated away unseen (while stopped, or while the bus was down) lie
 * beside the path under rotated names and are nobody's: they come between, in
 * the order of their last writing.
 */
#include "collector/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Parts are added by up to three at a time. */
enum { PARTS_RESERVED = 4 };

static bool has_room(const struct file_stream *stream)
{
	return stream->record->part_count + PARTS_RESERVED <= SOURCE_MEMORY_PARTS_MAX;
}

static bool is_plain(const struct open_file *opened)
{
	return !input_compressed(input_lines_input(opened->lines));
}

/* Whether the file still has a name. */
static bool is_linked(const struct open_file *opened)
{
	struct stat about;
	return fstat(input_fd(input_lines_input(opened->lines)), &about) != 0 || about.st_nlink > 0;
}

/* The part ends at an offset, and its file is in that state from then on. */
static void end_part(struct file_stream *stream, uint64_t to, enum source_file_state state)
{
	struct source_memory_part *part = source_memory_part(stream->record, stream->incarnation);
	struct source_memory_file *file = source_memory_file(stream->record, part->file);
	part->to = to;
	part->change = ++stream->source->memory->changes;
	file->state = state;
	if (file->taken < to)
		file->taken = to;
}

static enum file_plan blocked(struct file_stream *stream, int64_t now_ms, const struct weir_error *error)
{
	file_stream_trouble(stream, now_ms, "%s", error->text);
	return PLAN_BLOCKED;
}

/* ---- what comes next ---- */

struct successor {
	struct source_memory_file *known; /* gone on with */
	struct file_candidate fresh;      /* path set: begun */
};

static bool has_successor(const struct successor *next)
{
	return next->known != NULL || next->fresh.path != NULL;
}

/* A file that was left for another's late lines. */
static struct source_memory_file *interrupted(const struct file_stream *stream, const struct open_file *current)
{
	const struct source_memory_stream *record = stream->record;
	for (size_t i = 0; i < record->file_count; i++)
		if (record->files[i]->state == SOURCE_FILE_READING && (current == NULL || record->files[i] != current->file))
			return record->files[i];
	return NULL;
}

/* A file that was read to its end goes on: a compressed one when it has changed since. */
static bool has_more(const struct file_stream *stream, const struct source_memory_file *file,
                     const struct file_judgement *judgement)
{
	if (judgement->kind == INPUT_GZIP || judgement->kind == INPUT_ZSTD)
		return file->modified_ns != file_modified_ns(&judgement->about) &&
		       file_judgement_ready(stream->source, judgement);
	return (uint64_t)judgement->about.st_size > file->taken;
}

/* What lies at the path, when that is not the current file. */
static void judge_path(struct file_stream *stream, struct open_file *current, int64_t now_ms, struct successor *next,
                       struct file_judgement *judgement, struct weir_error *error)
{
	file_judge(stream->source, stream->path, judgement, error);
	bool ours = judgement->stream == stream->record;
	struct source_memory_file *file = judgement->file;
	switch (judgement->verdict) {
	case FILE_NEW:
		if (file_judgement_ready(stream->source, judgement))
			file_candidate_of(&next->fresh, stream->path, judgement);
		else if (judgement->about.st_size > 0)
			stream->retry_ms = now_ms + stream->source->timing.poll; /* it may be ready without any change */
		break;
	case FILE_KNOWN:
		if (ours && (current == NULL || file != current->file) && has_more(stream, file, judgement))
			next->known = file;
		break;
	case FILE_COPY:
		if (!ours || (current != NULL && file != current->file) || file->state == SOURCE_FILE_SETTLED)
			break;
		if (current != NULL && current->lines != NULL && is_linked(current)) {
			file_candidate_of(&next->fresh, stream->path, judgement); /* both are there: they only begin alike */
			break;
		}
		/* It took the file's place and has its lines: a log that is synchronised from elsewhere. */
		file->device = judgement->about.st_dev;
		file->inode = judgement->about.st_ino;
		next->known = file;
		break;
	case FILE_UNREADABLE:
	case FILE_ABSENT: break;
	}
}

/*
 * Whether a directory has just changed: then files may be renamed in it while it is read, and one be overlooked. One
 * that never comes to rest is read all the same.
 */
static bool is_restless(struct file_stream *stream, int64_t now_ms)
{
	const struct file_timing *timing = &stream->source->timing;
	int64_t age_ms = file_directory_age_ms(stream->path);
	if (age_ms < 0 || age_ms >= timing->rest) {
		stream->restless_ms = 0;
		return false;
	}
	if (stream->restless_ms == 0)
		stream->restless_ms = now_ms;
	if (now_ms - stream->restless_ms >= timing->patience)
		return false;
	stream->retry_ms = now_ms + timing->rest - age_ms;
	return true;
}

/* @param away  the current file does not lie at the path */
static enum file_plan find_successor(struct file_stream *stream, struct open_file *current, bool away, int64_t now_ms,
                                     struct successor *next, struct weir_error *error)
{
	struct file_judgement judgement = {.verdict = FILE_ABSENT};
	*next = (struct successor){.known = interrupted(stream, current)};
	if (next->known != NULL || (!away && !stream->missed))
		return PLAN_GO_ON;
	struct file_missed missed;
	if (stream->source->follow && is_restless(stream, now_ms))
		return PLAN_GO_ON;
	stream->missed = false;
	enum weir_status listed = file_find_missed(stream, &missed, error);
	if (missed.count > 0 && missed.oldest.ready) {
		next->fresh = missed.oldest;
		stream->missed = missed.count > 1;
		return PLAN_GO_ON;
	}
	if (missed.count > 0) { /* it is being packed: what is younger comes after it */
		file_candidate_deinit(&missed.oldest);
		stream->looks = FILE_LOOKS_AFTER;
		if (away)
			stream->retry_ms = now_ms + stream->source->timing.poll;
		return PLAN_GO_ON;
	}
	if (away)
		judge_path(stream, current, now_ms, next, &judgement, listed == WEIR_OK ? error : NULL);
	if (has_successor(next) || (listed == WEIR_OK && judgement.verdict != FILE_UNREADABLE &&
	                            (judgement.verdict != FILE_ABSENT || stream->record->part_count > 0 || !away)))
		return PLAN_GO_ON;
	return PLAN_BLOCKED;
}

bool file_plan_replaced(struct file_stream *stream, int64_t now_ms)
{
	struct successor next;
	struct source_memory_part *part = source_memory_part(stream->record, stream->incarnation);
	struct open_file gone = {.file = source_memory_file(stream->record, part->file)};
	if (find_successor(stream, &gone, true, now_ms, &next, NULL) != PLAN_GO_ON)
		return false;
	bool found = has_successor(&next);
	file_candidate_deinit(&next.fresh);
	return found;
}

/* ---- rename rotation ---- */

/* Whether the current file can be left for its successor: no more will be written to it, as far as can be known. */
static bool may_leave(struct file_stream *stream, const struct open_file *current, int64_t now_ms)
{
	const struct file_timing *timing = &stream->source->timing;
	if (stream->successor_ms == 0) { /* seen for the first time: what was written here before is read first */
		stream->successor_ms = now_ms;
		stream->retry_ms = 0;
		return false;
	}
	int64_t quiet_ms = current->grown_ms + timing->quiet, patience_ms = stream->successor_ms + timing->patience;
	int64_t leave_ms = quiet_ms < patience_ms ? quiet_ms : patience_ms;
	if (now_ms >= leave_ms)
		return true;
	stream->retry_ms = leave_ms;
	return false;
}

static enum file_plan go_on_with(struct file_stream *stream, struct open_file *current, bool away,
                                 const struct successor *next, int64_t now_ms)
{
	if (next->known != NULL && current != NULL && next->known == current->file) {
		file_stream_close(stream, current); /* found again at the path, where its copy lies */
		return PLAN_GO_ON;
	}
	if (current != NULL && !away) {
		end_part(stream, stream->offset, SOURCE_FILE_READING); /* for one that was missed */
	} else if (current != NULL && (!is_plain(current) || !stream->source->follow)) {
		end_part(stream, input_lines_read_offset(current->lines),
		         is_plain(current) ? SOURCE_FILE_LEFT : SOURCE_FILE_SETTLED);
	} else if (current != NULL && next->known != NULL) {
		end_part(stream, stream->offset, SOURCE_FILE_LEFT);
	} else if (current != NULL) {
		bool first = stream->successor_ms == 0;
		if (!may_leave(stream, current, now_ms))
			return first ? PLAN_GO_ON : PLAN_WAIT;
		end_part(stream, input_lines_read_offset(current->lines), SOURCE_FILE_LEFT);
	}
	stream->looks = FILE_LOOKS_AFTER;
	if (next->known != NULL)
		file_stream_add_part(stream, next->known, next->known->taken);
	else
		file_stream_begin(stream, &next->fresh, false);
	return PLAN_GO_ON;
}

/* ---- the end of a file that has no successor ---- */

/* A last line without newline, in a file that will not grow. What is written behind it after all is another line. */
static enum file_plan hand_out_rest(struct file_stream *stream, struct open_file *current)
{
	uint64_t end = input_lines_read_offset(current->lines);
	end_part(stream, end, SOURCE_FILE_READING);
	file_stream_add_part(stream, current->file, end);
	return PLAN_GO_ON;
}

static enum file_plan without_successor(struct file_stream *stream, struct open_file *current, int64_t now_ms)
{
	bool rest = input_lines_read_offset(current->lines) > stream->offset;
	if (!stream->source->follow || (current->ended && !is_plain(current))) {
		if (rest)
			return hand_out_rest(stream, current);
		if (stream->source->follow) {
			end_part(stream, stream->offset, SOURCE_FILE_SETTLED);
			return PLAN_GO_ON;
		}
		return !stream->source->follow && file_plan_late(stream, now_ms) ? PLAN_GO_ON : PLAN_WAIT;
	}
	if (!is_linked(current) && now_ms - current->grown_ms >= stream->source->timing.grace) {
		end_part(stream, input_lines_read_offset(current->lines), SOURCE_FILE_SETTLED);
		return PLAN_GO_ON;
	}
	return PLAN_WAIT;
}

/* ---- truncation ---- */

/* Whether the file has the bytes that it had at its beginning. */
static bool begins_alike(const struct open_file *current)
{
	char head[FINGERPRINT_HEAD_BYTES];
	ssize_t got = pread(input_fd(input_lines_input(current->lines)), head, current->head_bytes, 0);
	return got == (ssize_t)current->head_bytes && memcmp(head, current->head, current->head_bytes) == 0;
}

/* What is there is the file's that it was: as large as this it has been. */
static void note_size(struct open_file *current, const struct stat *about)
{
	if (current->file->size < (uint64_t)about->st_size)
		current->file->size = (uint64_t)about->st_size;
	current->file->modified_ns = file_modified_ns(about);
}

bool file_plan_intact(struct open_file *current)
{
	struct stat about;
	if (!is_plain(current) || fstat(input_fd(input_lines_input(current->lines)), &about) != 0)
		return true;
	/*
	 * Truncated since the read: what was read came before, for what is there now does not reach so far. It is handed
	 * out, and the truncation met at the file's end.
	 */
	if ((uint64_t)about.st_size < input_lines_read_offset(current->lines))
		return true;
	if (!begins_alike(current))
		return false;
	note_size(current, &about);
	return true;
}

static bool is_truncated(struct open_file *current)
{
	struct stat about;
	if (!is_plain(current) || fstat(input_fd(input_lines_input(current->lines)), &about) != 0)
		return false;
	if ((uint64_t)about.st_size < input_lines_read_offset(current->lines) || !begins_alike(current))
		return true;
	note_size(current, &about);
	return false;
}

/* The rest of what the file held lies in a copy: it is read on there. */
static bool go_on_in_copy(struct file_stream *stream, struct open_file *current, int64_t now_ms)
{
	struct open_file *copy;
	struct source_memory_file *file = current->file;
	if (file_find(stream, file, stream->offset, true, &copy, NULL) != FOUND_COPY)
		return false;
	file_stream_close(stream, current);
	uint64_t size = file->size;
	file_stream_adopt(stream, copy, now_ms);
	if (is_plain(copy)) {
		file->size = (uint64_t)copy->about.st_size;
		file_stream_lost(stream, size > file->size ? size - file->size : 0);
	}
	copy->grown_ms = now_ms - stream->source->timing.grace; /* no one writes to a copy */
	return true;
}

enum file_plan file_plan_truncated(struct file_stream *stream, struct open_file *current, int64_t now_ms)
{
	if (!has_room(stream))
		return PLAN_WAIT;
	if (go_on_in_copy(stream, current, now_ms))
		return PLAN_GO_ON;
	struct source_memory_file *old = current->file;
	struct weir_error error;
	struct file_beginning beginning;
	int fd = fcntl(input_fd(input_lines_input(current->lines)), F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		weir_fail(&error, WEIR_IO, "%s: cannot be opened again: %s", current->path, strerror(errno));
	if (fd < 0 || file_open_fd(fd, current->path, true, &beginning, &error) != FILE_OPENING_DONE) {
		file_stream_close(stream, current);
		return blocked(stream, now_ms, &error);
	}
	uint64_t size = (uint64_t)beginning.about.st_size, from = 0;
	struct fingerprint print = {0};
	if (size < stream->offset &&
	    fingerprint_check(&old->fingerprint, beginning.input, stream->offset, &error) == FINGERPRINT_SHORTER) {
		from = size;
		print = fingerprint_cut(&old->fingerprint, size);
	}
	file_stream_lost(stream, old->size > stream->offset ? old->size - stream->offset : 0);
	end_part(stream, stream->offset, SOURCE_FILE_SETTLED);
	old->device = old->inode = 0;

	struct source_memory_file *file = source_memory_file_add(stream->source->memory, stream->record);
	file->device = beginning.about.st_dev;
	file->inode = beginning.about.st_ino;
	file->fingerprint = print;
	fingerprint_head(&file->fingerprint, beginning.head, beginning.length);
	file->taken = from;
	file_stream_add_part(stream, file, from);
	struct open_file *opened = open_file_new(file, &beginning, current->path, stream->source);
	file_stream_close(stream, current);
	file_stream_adopt(stream, opened, now_ms);
	return PLAN_GO_ON;
}

/* ---- the plan ---- */

static bool lies_at_path(const struct file_stream *stream, const struct source_memory_file *file)
{
	struct stat about;
	return stat(stream->path, &about) == 0 && file_has_inode(file, &about);
}

enum file_plan file_plan_next(struct file_stream *stream, struct open_file *current, int64_t now_ms)
{
	struct weir_error error;
	struct successor next;
	if (!has_room(stream)) {
		if (stream->source->follow)
			return PLAN_WAIT; /* until more is acknowledged */
		weir_fail(&error, WEIR_FULL, "%s: too many rotations are not acknowledged", stream->path);
		return blocked(stream, now_ms, &error);
	}
	if (current != NULL && stream->source->follow && is_truncated(current))
		return file_plan_truncated(stream, current, now_ms);
	bool away = current == NULL || !lies_at_path(stream, current->file);
	stream->away = away && current != NULL;
	enum file_plan plan = find_successor(stream, current, away, now_ms, &next, &error);
	if (plan == PLAN_BLOCKED)
		return blocked(stream, now_ms, &error);
	if (has_successor(&next))
		plan = go_on_with(stream, current, away, &next, now_ms);
	else
		plan = current != NULL ? without_successor(stream, current, now_ms) : PLAN_WAIT;
	file_candidate_deinit(&next.fresh);
	return plan;
}

/* ---- late lines ---- */

/* The stream reads a stretch of a file that it had left, and then goes on where it was. */
static void insert_late(struct file_stream *stream, struct open_file *late)
{
	if (source_memory_part(stream->record, stream->incarnation) != NULL)
		end_part(stream, stream->offset, SOURCE_FILE_READING);
	file_stream_add_part(stream, late->file, input_lines_offset(late->lines));
}

/* Nothing more is expected of a file: its last line without newline is one after all. */
static void settle(struct file_stream *stream, struct source_memory_file *file, struct open_file *late)
{
	if (late != NULL && is_plain(late) && input_lines_read_offset(late->lines) > input_lines_offset(late->lines)) {
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
		if (found == FOUND_UNKNOWN || (found == FOUND_NOWHERE && ++file->absences < FILE_ABSENCES_MAX))
			return;
		if (found == FOUND_NOWHERE || found == FOUND_SHORTER) {
			settle(stream, file, NULL);
			file_stream_close(stream, late);
			return;
		}
		if (late == NULL)
			return;
	}
	enum weir_status status = input_lines_fill(late->lines, SOURCE_OFFSET_END - 1, false, NULL);
	if (is_truncated(late)) {
		file->state = SOURCE_FILE_SETTLED;
		file_stream_close(stream, late);
	} else if (status == WEIR_OK) {
		late->grown_ms = now_ms;
		insert_late(stream, late);
	} else if (!is_plain(late) || now_ms - late->grown_ms >= stream->source->timing.grace) {
		settle(stream, file, late);
	}
}

bool file_plan_late(struct file_stream *stream, int64_t now_ms)
{
	const struct source_memory_stream *record = stream->record;
	const struct source_memory_part *part = source_memory_part(record, stream->incarnation);
	/* Parts that follow already are read first. */
	if (part != NULL && part->to != SOURCE_PART_OPEN)
		return false;
	for (size_t i = 0; i < record->file_count && has_room(stream); i++) {
		if (record->files[i]->state != SOURCE_FILE_LEFT)
			continue;
		uint32_t parts = record->next_incarnation;
		look_at_left(stream, record->files[i], now_ms);
		if (record->next_incarnation != parts)
			return true;
	}
	return false;
}
