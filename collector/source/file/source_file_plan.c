/*
 * What follows when a file has no more lines: nothing yet, or another file.
 *
 * Rename rotation. The file is kept open and read on under its new name until a
 * successor with lines lies at the path: a writer that has begun there writes
 * here no more. Then it is read to its end once again. Several processes may
 * write, and change over one by one: so the successor begins when this file has
 * been quiet for a while, or the successor has waited long enough. What comes
 * later still is not lost: source_file_late.c.
 *
 * Files rotated away unseen (while stopped, or while the bus was down) lie
 * beside the path under rotated names and are nobody's: they come between, in
 * the order of their last writing.
 */
#include "collector/source/file/internal.h"

/* Whether the file still has a name. */
static bool is_linked(const struct open_file *opened)
{
	struct stat about;
	return fstat(input_fd(input_lines_input(opened->lines)), &about) != 0 || about.st_nlink > 0;
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
	if (judgement->verdict != FILE_UNREADABLE && judgement->verdict != FILE_ABSENT && stream->record->part_count == 0)
		file_stream_well(stream); /* what kept it from beginning */
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
	enum weir_status listed = file_find_missed(stream, &missed, error);
	/* A directory that was removed with the file has nothing to tell; one that was moved, and the file in it, may come back. */
	if (listed == WEIR_END && (current == NULL || current->lines == NULL || !is_linked(current)))
		listed = WEIR_OK;
	stream->missed = listed != WEIR_OK;
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
		file_stream_end_part(stream, stream->offset, SOURCE_FILE_READING); /* for one that was missed */
	} else if (current != NULL && (!open_file_plain(current) || !stream->source->follow)) {
		file_stream_end_part(stream, input_lines_read_offset(current->lines),
		                     open_file_plain(current) ? SOURCE_FILE_LEFT : SOURCE_FILE_SETTLED);
	} else if (current != NULL && next->known != NULL) {
		file_stream_end_part(stream, stream->offset, SOURCE_FILE_LEFT);
	} else if (current != NULL) {
		bool first = stream->successor_ms == 0;
		if (!may_leave(stream, current, now_ms))
			return first ? PLAN_GO_ON : PLAN_WAIT;
		file_stream_end_part(stream, input_lines_read_offset(current->lines), SOURCE_FILE_LEFT);
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
	file_stream_end_part(stream, end, SOURCE_FILE_READING);
	file_stream_add_part(stream, current->file, end);
	return PLAN_GO_ON;
}

static enum file_plan without_successor(struct file_stream *stream, struct open_file *current, int64_t now_ms)
{
	bool rest = input_lines_read_offset(current->lines) > stream->offset;
	if (!stream->source->follow || (current->ended && !open_file_plain(current))) {
		if (rest)
			return hand_out_rest(stream, current);
		if (stream->source->follow) {
			file_stream_end_part(stream, stream->offset, SOURCE_FILE_SETTLED);
			return PLAN_GO_ON;
		}
		return !stream->source->follow && file_plan_late(stream, now_ms) ? PLAN_GO_ON : PLAN_WAIT;
	}
	if (!is_linked(current) && now_ms - current->grown_ms >= stream->source->timing.grace) {
		file_stream_end_part(stream, input_lines_read_offset(current->lines), SOURCE_FILE_SETTLED);
		return PLAN_GO_ON;
	}
	return PLAN_WAIT;
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
	if (!file_stream_has_room(stream)) {
		if (stream->source->follow)
			return PLAN_WAIT; /* until more is acknowledged */
		weir_fail(&error, WEIR_FULL, "%s: too many rotations are not acknowledged", stream->path);
		return blocked(stream, now_ms, &error);
	}
	if (current != NULL && stream->source->follow && file_plan_is_truncated(current))
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
