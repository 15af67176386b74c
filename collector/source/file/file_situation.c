/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a stream's lines end: what there is to see.
 *
 * Rename rotation. The file is kept open and read on under its new name until a
 * successor with lines lies at the path: a writer that has begun there writes
 * here no more. Then it is read to its end once again. Several processes may
 * write, and change over one by one: so the successor is due when this file has
 * been quiet for a while, or the successor has waited long enough. What comes
 * later still is not lost: the file is left, and looked at for a while.
 *
 * Files rotated away unseen (while stopped, or while the bus was down) lie
 * beside the path under rotated names and are nobody's: they come between, in
 * the order of their last writing.
 *
 * Truncation in place, as copytruncate does it. If a copy of what the file held
 * lies beside it, the rest is read there, and what is at the path is a successor
 * like any other. A file that was merely cut, and begins as it did, continues at
 * its new end; any other from its beginning.
 */
#include "collector/source/file/file_situation.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* ---- what comes next ---- */

static bool has_next(const struct file_successor *next)
{
	return next->known != NULL || next->fresh.path != NULL;
}

/* A file that was left for another's late lines. */
static struct source_memory_file *interrupted(const struct file_stream *stream, const struct source_memory_file *file)
{
	const struct source_memory_stream *record = stream->record;
	for (size_t i = 0; i < record->file_count; i++)
		if (record->files[i]->state == SOURCE_FILE_READING && record->files[i] != file)
			return record->files[i];
	return NULL;
}

/* A file that was read to its end may have more by now: a compressed one when it was written to since. */
static bool has_changed(const struct source_memory_file *file, const struct file_judgement *judgement)
{
	if (file_judgement_compressed(judgement))
		return file->modified_ns != file_identity_modified_ns(&judgement->about) && file->taken != SOURCE_OFFSET_END;
	return (uint64_t)judgement->about.st_size > file->taken;
}

/* What lies at the path may be read once it is no longer written to: then it is looked at again, whatever happens. */
static bool is_ready(const struct file_stream *stream, const struct file_judgement *judgement, int64_t now_ms,
                     struct file_observation *seen)
{
	const struct file_settings *settings = &stream->shared->settings;
	bool ready = file_judgement_ready(judgement, settings);
	if (!ready && judgement->about.st_size > 0)
		seen->again_ms = now_ms + settings->timing.poll;
	return ready;
}

/* A copy of the stream's own file took its place, and has its lines: a log that is synchronised from elsewhere. */
static void on_copy_at_path(const struct file_stream *stream, struct source_memory_file *file,
                            const struct file_judgement *judgement, struct file_successor *next)
{
	const struct open_file *current = file_stream_current(stream);
	const struct source_memory_file *read = file_stream_file(stream);
	if (judgement->stream != stream->record || (read != NULL && file != read) || file->state == SOURCE_FILE_SETTLED)
		return;
	if (current != NULL && open_file_linked(current)) {
		file_candidate_init(&next->fresh, stream->path, judgement); /* both are there: they only begin alike */
		return;
	}
	next->known = file;
	next->moved_in = true;
	next->device = judgement->about.st_dev;
	next->inode = judgement->about.st_ino;
}

/*
 * A compressed file that was read to its end, and is gone, was replaced by one that begins with all of it and may have
 * more: whoever copies files from elsewhere replaces them so.
 */
static bool is_continued(const struct file_stream *stream, const struct file_judgement *judgement,
                         struct file_successor *next)
{
	const struct source_memory_part *last = source_memory_last_part(stream->record);
	if (!file_judgement_compressed(judgement) || last == NULL || file_stream_part(stream) != NULL)
		return false;
	struct source_memory_file *file = source_memory_file(stream->record, last->file);
	if (file->taken == 0 || file->taken == SOURCE_OFFSET_END)
		return false;
	struct file_finding finding;
	struct file_route route = file_stream_route(stream);
	file_search_find(stream->shared, &route, file, file->taken, false, &finding, NULL);
	bool continued = finding.found == FOUND_COPY && strcmp(finding.path, stream->path) == 0;
	file_finding_deinit(&finding);
	if (continued)
		*next = (struct file_successor){
			.known = file, .moved_in = true, .device = judgement->about.st_dev, .inode = judgement->about.st_ino};
	return continued;
}

/* What lies at the path, when that is not the file that is read. */
static enum file_verdict inspect_path(const struct file_stream *stream, int64_t now_ms, struct file_observation *seen,
                                      struct weir_error *error)
{
	struct file_judgement judgement;
	file_identity_judge(&stream->shared->settings, stream->shared->memory, stream->path, stream->record, &judgement,
	                    error);
	bool there = judgement.verdict != FILE_UNREADABLE && judgement.verdict != FILE_ABSENT;
	seen->answered = there && stream->record->part_count == 0;
	switch (judgement.verdict) {
	case FILE_NEW:
		if (is_ready(stream, &judgement, now_ms, seen) && !is_continued(stream, &judgement, &seen->next))
			file_candidate_init(&seen->next.fresh, stream->path, &judgement);
		break;
	case FILE_KNOWN:
		if (judgement.stream == stream->record && judgement.file != file_stream_file(stream) &&
		    has_changed(judgement.file, &judgement) && is_ready(stream, &judgement, now_ms, seen))
			seen->next.known = judgement.file;
		break;
	case FILE_COPY:
		if (is_ready(stream, &judgement, now_ms, seen) && !is_continued(stream, &judgement, &seen->next))
			on_copy_at_path(stream, judgement.file, &judgement, &seen->next);
		break;
	case FILE_UNREADABLE:
	case FILE_ABSENT: break;
	}
	return judgement.verdict;
}

/*
 * Whether a directory has just changed: then files may be renamed in it while it is read, and one be overlooked. One
 * that never comes to rest is read all the same.
 */
static bool is_restless(const struct file_stream *stream, int64_t now_ms, struct file_observation *seen)
{
	const struct file_timing *timing = &stream->shared->settings.timing;
	int64_t age_ms = file_search_directory_age_ms(stream->path);
	if (age_ms < 0 || age_ms >= timing->rest) {
		seen->outlook.restless_ms = 0;
		return false;
	}
	if (seen->outlook.restless_ms == 0)
		seen->outlook.restless_ms = now_ms;
	if (now_ms - seen->outlook.restless_ms >= timing->patience)
		return false;
	seen->again_ms = now_ms + timing->rest - age_ms;
	return true;
}

/*
 * The oldest of those that were rotated away unseen: it comes next, once it can be read. Where there is one, what lies at
 * the path is not looked at.
 */
static bool look_for_missed(const struct file_stream *stream, bool away, int64_t now_ms, struct file_observation *seen,
                            enum weir_status *listed)
{
	const struct open_file *current = file_stream_current(stream);
	struct file_missed missed;
	struct file_route route = file_stream_route(stream);
	*listed = file_search_missed(stream->shared, &route, stream->record, &missed, &seen->error);
	/* A directory that was removed with the file has nothing to tell; one that was moved, and the file in it, may come back. */
	if (*listed == WEIR_END && (current == NULL || !open_file_linked(current)))
		*listed = WEIR_OK;
	seen->outlook.missed = *listed != WEIR_OK;
	if (missed.count == 0)
		return false;
	if (missed.oldest.ready) {
		seen->next.fresh = missed.oldest;
		seen->outlook.missed = missed.count > 1;
		return true;
	}
	/* It is being packed: what is younger comes after it. */
	file_candidate_deinit(&missed.oldest);
	seen->outlook.looks = FILE_LOOKS_AFTER;
	if (away)
		seen->again_ms = now_ms + stream->shared->settings.timing.poll;
	return true;
}

/* @param away  the file that is read does not lie at the path; @return false: it cannot be told, the error says why */
static bool look_for_next(const struct file_stream *stream, bool away, int64_t now_ms, struct file_observation *seen)
{
	enum weir_status listed;
	seen->next.known = interrupted(stream, file_stream_file(stream));
	if (seen->next.known != NULL || (!away && !seen->outlook.missed) ||
	    (stream->shared->settings.follow && is_restless(stream, now_ms, seen)) ||
	    look_for_missed(stream, away, now_ms, seen, &listed))
		return true;
	if (!away)
		return listed == WEIR_OK;
	enum file_verdict verdict = inspect_path(stream, now_ms, seen, listed == WEIR_OK ? &seen->error : NULL);
	return has_next(&seen->next) || (listed == WEIR_OK && verdict != FILE_UNREADABLE &&
	                                 (verdict != FILE_ABSENT || stream->record->part_count > 0));
}

/* ---- a file without more lines ---- */

/* It is renamed, and its successor has lines: whether more will be written to it, as far as can be known. */
static enum file_situation with_successor(const struct file_stream *stream, const struct open_file *current,
                                          int64_t now_ms, struct file_observation *seen)
{
	const struct file_timing *timing = &stream->shared->settings.timing;
	struct file_outlook *outlook = &seen->outlook;
	if (outlook->phase != FILE_SUCCEEDED) { /* what was written here before is read first */
		outlook->phase = FILE_SUCCEEDED;
		outlook->successor_ms = now_ms;
		return SITUATION_SUCCESSOR_SEEN;
	}
	int64_t quiet_ms = current->grown_ms + timing->quiet, patience_ms = outlook->successor_ms + timing->patience;
	int64_t leave_ms = quiet_ms < patience_ms ? quiet_ms : patience_ms;
	if (now_ms >= leave_ms)
		return SITUATION_SUCCESSOR_DUE;
	seen->again_ms = leave_ms;
	return SITUATION_SUCCESSOR_WAITING;
}

static enum file_situation with_next(const struct file_stream *stream, const struct open_file *current, bool away,
                                     int64_t now_ms, struct file_observation *seen)
{
	if (current == NULL)
		return SITUATION_NEXT_THERE;
	if (seen->next.known == current->file)
		return SITUATION_COPY_AT_PATH;
	if (!away)
		return SITUATION_OVERLOOKED;
	if (!open_file_plain(current))
		return current->state == OPEN_FILE_CUT ? SITUATION_PACKED_CUT_SUCCEEDED : SITUATION_PACKED_SUCCEEDED;
	if (seen->next.known != NULL)
		return SITUATION_RETURNING;
	return with_successor(stream, current, now_ms, seen);
}

static enum file_situation without_next(const struct file_stream *stream, const struct open_file *current,
                                        int64_t now_ms)
{
	const struct file_settings *settings = &stream->shared->settings;
	if (current == NULL)
		return SITUATION_NOTHING_THERE;
	bool open_line = input_lines_read_offset(current->lines) > stream->offset;
	if (!open_file_plain(current) && current->state != OPEN_FILE_CUT)
		return open_line ? SITUATION_PACKED_OPEN_LINE : SITUATION_PACKED_READ;
	if (settings->follow && !open_file_linked(current) && now_ms - current->grown_ms >= settings->timing.grace)
		return SITUATION_REMOVED;
	if (!open_file_plain(current))
		return SITUATION_PACKED_CUT;
	return open_line ? SITUATION_QUIET_OPEN_LINE : SITUATION_QUIET;
}

static bool lies_at_path(const struct file_stream *stream, const struct source_memory_file *file)
{
	struct stat about;
	return stat(stream->path, &about) == 0 && file_identity_has_inode(file, &about);
}

/* @param current  NULL: all parts are read */
static void observe_end(const struct file_stream *stream, const struct open_file *current, int64_t now_ms,
                        struct file_observation *seen)
{
	bool away = current == NULL || !lies_at_path(stream, current->file);
	if (current != NULL && away)
		file_stream_trace(stream, current);
	if (current == NULL || !away)
		seen->outlook.phase = FILE_AT_PATH;
	else if (seen->outlook.phase == FILE_AT_PATH)
		seen->outlook.phase = FILE_AWAY;
	if (!look_for_next(stream, away, now_ms, seen))
		seen->situation = SITUATION_UNREADABLE;
	else if (has_next(&seen->next))
		seen->situation = with_next(stream, current, away, now_ms, seen);
	else
		seen->situation = without_next(stream, current, now_ms);
}

/* ---- a file that was truncated ---- */

/* Where a truncated file is gone on with. */
static void read_truncated(const struct file_stream *stream, const struct open_file *current,
                           struct file_observation *seen)
{
	const struct fingerprint *known = &current->file->fingerprint;
	struct file_beginning *beginning = &seen->found.beginning;
	bool packed = input_compressed(beginning->input); /* its size says nothing of what it holds */
	uint64_t size = packed ? UINT64_MAX : (uint64_t)beginning->about.st_size;
	struct fingerprint read = fingerprint_cut(known, stream->offset);
	if (size < stream->offset &&
	    fingerprint_check(known, beginning->input, stream->offset, NULL) == FINGERPRINT_SHORTER) {
		seen->from = size;
		seen->fingerprint = fingerprint_cut(known, size);
	} else if (size >= stream->offset && current->head_bytes > 0 &&
	           (packed || open_file_begins_alike(current, stream->offset)) &&
	           fingerprint_check(&read, beginning->input, stream->offset, NULL) == FINGERPRINT_SAME) {
		seen->from = stream->offset; /* a writer took back a line that it could not end, as on a full disk */
		seen->fingerprint = read;
	}
	fingerprint_head(&seen->fingerprint, beginning->head, beginning->length);
}

static enum file_situation observe_truncated(const struct file_stream *stream, struct file_observation *seen)
{
	const struct open_file *current = file_stream_current(stream);
	struct file_route route = file_stream_route(stream);
	file_search_find(stream->shared, &route, current->file, stream->offset, true, &seen->found, NULL);
	if (seen->found.found == FOUND_COPY)
		return SITUATION_TRUNCATED_COPIED;
	int fd = fcntl(input_fd(input_lines_input(current->lines)), F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		weir_fail(&seen->error, WEIR_IO, "cannot reopen %s: %s", current->path, weir_errno_words(errno));
	if (fd < 0 ||
	    file_identity_open_fd(fd, current->path, true, &seen->found.beginning, &seen->error) != FILE_OPENING_DONE)
		return SITUATION_TRUNCATED_UNREADABLE;
	seen->found.path = weir_copy(current->path, strlen(current->path));
	read_truncated(stream, current, seen);
	return SITUATION_TRUNCATED;
}

/* ---- a file that is gone ---- */

static enum file_situation observe_gone(const struct file_stream *stream, int64_t now_ms, struct file_observation *seen)
{
	if (look_for_next(stream, true, now_ms, seen) && has_next(&seen->next))
		return SITUATION_REPLACED;
	const struct source_memory_file *file = file_stream_file(stream);
	/* It may come back: with a directory that is moved, or when the rest of it is written again. */
	uint64_t unread = file != NULL && file->size > stream->offset ? file->size - stream->offset : 0;
	if (file != NULL && lies_at_path(stream, file))
		weir_fail(&seen->error, WEIR_IO, "%s holds less than was read of it", stream->path);
	else
		weir_fail(&seen->error, unread > 0 ? WEIR_IO : WEIR_END, "%s was deleted; %llu bytes of it had not been read",
		          stream->path, (unsigned long long)unread);
	return SITUATION_GONE;
}

void file_situation_observe(const struct file_stream *stream, const struct file_outlook *outlook,
                            enum file_reading reading, int64_t now_ms, struct file_observation *seen)
{
	*seen = (struct file_observation){.outlook = *outlook};
	if (reading == FILE_READING_GONE) {
		seen->situation = observe_gone(stream, now_ms, seen);
	} else if (!file_stream_has_room(stream)) {
		seen->situation = SITUATION_NO_ROOM;
		weir_fail(&seen->error, WEIR_FULL, "%s: too many rotated files are not acknowledged yet", stream->path);
	} else if (reading == FILE_READING_TRUNCATED) {
		seen->situation = observe_truncated(stream, seen);
	} else {
		observe_end(stream, file_stream_current(stream), now_ms, seen);
	}
}

/* ---- a file that was left ---- */

static enum file_situation observe_left_closed(const struct file_stream *stream, struct source_memory_file *file,
                                               struct file_observation *seen)
{
	struct file_route route = file_stream_route(stream);
	file_search_find(stream->shared, &route, file, file->taken, false, &seen->found, NULL);
	switch (seen->found.found) {
	case FOUND:
	case FOUND_COPY: return SITUATION_LEFT_CLOSED;
	case FOUND_SHORTER: return SITUATION_LEFT_TRUNCATED;
	case FOUND_UNKNOWN: return SITUATION_LEFT_UNREADABLE;
	case FOUND_NOWHERE:
	case FOUND_NO_DIRECTORY: break;
	}
	return file_search_is_last(file, seen->found.found) ? SITUATION_LEFT_GONE : SITUATION_LEFT_ABSENT;
}

/* Whether a compressed file is still written to. */
static bool is_written(const struct open_file *left, const struct file_timing *timing)
{
	int64_t age_ms = weir_wall_ms() - open_file_modified_ms(left);
	return age_ms >= 0 && age_ms < timing->complete;
}

static enum file_situation observe_left_open(const struct file_stream *stream, struct open_file *left, int64_t now_ms)
{
	enum weir_status status = input_lines_fill(left->lines, SOURCE_OFFSET_END - 1, false, NULL);
	bool plain = open_file_plain(left), cut = status == WEIR_INVALID && input_cut(input_lines_input(left->lines));
	if (open_file_truncated(left))
		return SITUATION_LEFT_TRUNCATED;
	if (status == WEIR_OK)
		return SITUATION_LEFT_LINES;
	if (open_file_rewritten(left))
		return is_written(left, &stream->shared->settings.timing) ? SITUATION_LEFT_QUIET : SITUATION_LEFT_REWRITTEN;
	if (cut)
		open_file_end(left, OPEN_FILE_CUT);
	if ((plain || cut) && now_ms - left->grown_ms < stream->shared->settings.timing.grace)
		return SITUATION_LEFT_QUIET;
	bool open_line = plain && input_lines_read_offset(left->lines) > input_lines_offset(left->lines);
	return open_line ? SITUATION_LEFT_OVER_OPEN_LINE : SITUATION_LEFT_OVER;
}

void file_situation_observe_left(const struct file_stream *stream, struct source_memory_file *file, int64_t now_ms,
                                 struct file_observation *seen)
{
	struct open_file *left = file_stream_opened(stream, file);
	*seen = (struct file_observation){.outlook = {.phase = FILE_AT_PATH}};
	seen->situation = left != NULL ? observe_left_open(stream, left, now_ms) : observe_left_closed(stream, file, seen);
}

void file_observation_deinit(struct file_observation *seen)
{
	file_candidate_deinit(&seen->next.fresh);
	file_finding_deinit(&seen->found);
}
