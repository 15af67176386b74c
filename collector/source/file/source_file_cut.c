/*
 * Truncation in place, as copytruncate does it: the file has fewer bytes than
 * were read, or begins with others.
 *
 * If a copy of what it held lies beside it, the rest is read there, and what is
 * at the path is a successor like any other. Else the rest is lost, and counted
 * as far as it was seen. A file that was merely cut, and begins as it did, goes
 * on at its new end; any other from its beginning.
 */
#include "collector/source/file/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Whether the file has the bytes that it had at its beginning, of the first `upto`. */
static bool begins_alike(const struct open_file *current, uint64_t upto)
{
	char head[FINGERPRINT_HEAD_BYTES];
	size_t length = current->head_bytes < upto ? current->head_bytes : (size_t)upto;
	ssize_t got = pread(input_fd(input_lines_input(current->lines)), head, length, 0);
	return got == (ssize_t)length && memcmp(head, current->head, length) == 0;
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
	if (!open_file_plain(current) || fstat(input_fd(input_lines_input(current->lines)), &about) != 0)
		return true;
	/*
	 * Truncated since the read: what was read came before, for what is there now does not reach so far. It is handed
	 * out, and the truncation met at the file's end.
	 */
	if ((uint64_t)about.st_size < input_lines_read_offset(current->lines))
		return true;
	if (!begins_alike(current, current->head_bytes))
		return false;
	note_size(current, &about);
	return true;
}

bool file_plan_is_truncated(struct open_file *current)
{
	struct stat about;
	if (!open_file_plain(current) || fstat(input_fd(input_lines_input(current->lines)), &about) != 0)
		return false;
	if ((uint64_t)about.st_size < input_lines_read_offset(current->lines) ||
	    !begins_alike(current, current->head_bytes))
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
	if (open_file_plain(copy)) {
		file->size = (uint64_t)copy->about.st_size;
		file_stream_lost(stream, size > file->size ? size - file->size : 0);
	}
	copy->grown_ms = now_ms - stream->source->timing.grace; /* no one writes to a copy */
	return true;
}

enum file_plan file_plan_truncated(struct file_stream *stream, struct open_file *current, int64_t now_ms)
{
	if (!file_stream_has_room(stream))
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
		file_stream_trouble(stream, now_ms, "%s", error.text);
		return PLAN_BLOCKED;
	}
	uint64_t size = (uint64_t)beginning.about.st_size, from = 0;
	struct fingerprint print = {0}, read = fingerprint_cut(&old->fingerprint, stream->offset);
	if (size < stream->offset &&
	    fingerprint_check(&old->fingerprint, beginning.input, stream->offset, &error) == FINGERPRINT_SHORTER) {
		from = size;
		print = fingerprint_cut(&old->fingerprint, size);
	} else if (size >= stream->offset && current->head_bytes > 0 && begins_alike(current, stream->offset) &&
	           fingerprint_check(&read, beginning.input, stream->offset, &error) == FINGERPRINT_SAME) {
		from = stream->offset; /* a writer took back a line that it could not end, as on a full disk */
		print = read;
	}
	file_stream_lost(stream, old->size > stream->offset ? old->size - stream->offset : 0);
	file_stream_end_part(stream, stream->offset, SOURCE_FILE_SETTLED);
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
