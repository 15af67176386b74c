/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending whole lines to a file that may be full, rotated, moved or removed
 * at any time.
 *
 * The buffer holds everything that the operating system has not taken. A write
 * may end anywhere in a line; `mid_line` then holds back rotation and reopening
 * until the rest of that line is written behind it.
 */
#include "common/files/line_file.h"

#include "common/base/alloc.h"
#include "common/base/text.h"
#include "common/files/durable_file.h"
#include "common/files/file_owner.h"
#include "common/files/file_place.h"
#include "common/files/line_file_names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PIPE_WAIT_MS = 1000, /* for the reader of a pipe, before a flush gives up for this time */
};

struct weir_line_file {
	char *path; /* what people call it, where the descriptor is adopted */
	int fd;
	bool adopted;
	bool regular;    /* else a pipe or a terminal: no size, nothing to sync */
	bool named_pipe; /* its reader may leave and come back, where that of an adopted pipe is gone for good */
	size_t sent;     /* of a named pipe: so much of the first line in the buffer is written */
	bool mid_line;   /* the file ends within a line whose rest is at the start of the buffer */
	int sync_lost;   /* errno of an fsync that failed, so that what it should have covered may be gone; 0: none did */
	int64_t rotate_bytes;
	uint32_t keep;
	uint64_t written;        /* bytes of the file, without the buffer */
	struct weir_text buffer; /* not yet written: buffer.at + start .. */
	size_t start;
	struct weir_line_file_mark identity; /* of fd, all but the length */
	struct weir_line_file_mark protect;
	bool unmarked; /* the file was cut or removed since: the mark says nothing of what is in it */
	const struct weir_log *log;
	struct weir_fault rotation;
};

static enum weir_status failed(const struct weir_line_file *file, struct weir_error *error, const char *what)
{
	return weir_fail(error, errno == EPIPE ? WEIR_END : WEIR_IO, "cannot %s %s: %s", what, file->path,
	                 weir_errno_words(errno));
}

static size_t pending(const struct weir_line_file *file)
{
	return file->buffer.length - file->start;
}

/* Takes the descriptor's identity and size as the file's own. */
static void inspect(struct weir_line_file *file)
{
	struct stat about;
	file->regular = weir_line_names_identify(file->fd, "", &file->identity);
	file->named_pipe = !file->adopted && fstat(file->fd, &about) == 0 && S_ISFIFO(about.st_mode);
	file->written = file->identity.length;
}

/*
 * Opens the path for appending; the file's old descriptor, if any, stays until this has worked. A named pipe is opened for
 * writing alone: with a read end of our own, what is in the pipe would look as if somebody read it.
 */
static int open_path(const char *path)
{
	struct stat about;
	if (stat(path, &about) == 0 && S_ISFIFO(about.st_mode))
		return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return weir_file_make(path, O_RDWR | O_APPEND, 0640);
}

/* Lines of an earlier run may end in the middle of one: what follows starts on a line of its own. */
static void begin_on_new_line(struct weir_line_file *file)
{
	char last;
	if (file->regular && file->written > 0 && pread(file->fd, &last, 1, (off_t)file->written - 1) == 1 && last != '\n')
		weir_text_append(&file->buffer, "\n", 1);
}

/* Whether a path that could not be opened is a pipe that nobody reads now: whoever does may come later. Keeps errno. */
static bool is_unread_pipe(const char *path)
{
	struct stat about;
	int why = errno;
	bool pipe = why == ENXIO && stat(path, &about) == 0 && S_ISFIFO(about.st_mode);
	errno = why;
	return pipe;
}

static struct weir_line_file *file_new(const char *path, int fd, bool adopted)
{
	struct weir_line_file *file = weir_alloc(1, sizeof *file);
	file->path = weir_copy(path, strlen(path));
	file->fd = fd;
	file->adopted = adopted;
	inspect(file);
	return file;
}

/* Whether a descriptor was open for writing when the program began: those that it opens itself are closed where it runs another. */
static bool is_given(int fd)
{
	int flags = fcntl(fd, F_GETFD), mode = fcntl(fd, F_GETFL);
	return flags >= 0 && (flags & FD_CLOEXEC) == 0 && mode >= 0 && (mode & O_ACCMODE) != O_RDONLY;
}

enum weir_status weir_line_file_open(const struct weir_line_file_options *options, struct weir_line_file **file,
                                     struct weir_error *error)
{
	int standard = weir_file_descriptor_of(options->path);
	const char *name = standard == STDOUT_FILENO ? "standard output" : options->path;
	if (standard >= 0 && !is_given(standard))
		return weir_fail(error, WEIR_IO, "cannot open %s: %s", name, weir_errno_words(EBADF));
	if (standard >= 0) {
		*file = weir_line_file_adopt(standard, name);
		return WEIR_OK;
	}
	int fd = open_path(options->path);
	bool unread = fd < 0 && is_unread_pipe(options->path);
	if (fd < 0 && !unread)
		return weir_file_refused(error, "cannot open", options->path);
	struct weir_line_file *opened = file_new(options->path, fd, false);
	opened->named_pipe |= unread;
	opened->rotate_bytes = opened->regular ? options->rotate_bytes : 0;
	opened->keep = options->keep > 0 ? options->keep : 1;
	opened->log = options->log;
	begin_on_new_line(opened);
	*file = opened;
	return WEIR_OK;
}

enum weir_status weir_line_file_resume(const struct weir_line_file_options *options,
                                       const struct weir_line_file_mark *mark, struct weir_line_file **file,
                                       struct weir_error *error)
{
	uint32_t keep = options->rotate_bytes > 0 ? options->keep > 0 ? options->keep : 1 : 0;
	enum weir_status status = weir_line_names_restore(options->path, keep, mark, error);
	if (status != WEIR_OK)
		return status;
	status = weir_line_file_open(options, file, error);
	if (status == WEIR_OK)
		weir_line_file_protect(*file, mark);
	return status;
}

struct weir_line_file *weir_line_file_adopt(int fd, const char *name)
{
	struct weir_line_file *file = file_new(name, fd, true);
	/* A shell's `>>` writes behind what is there; any other descriptor from where it stands. */
	int flags = fcntl(fd, F_GETFL);
	if (file->regular && (flags < 0 || (flags & O_APPEND) == 0)) {
		off_t at = lseek(fd, 0, SEEK_CUR);
		file->written = at > 0 ? (uint64_t)at : 0;
	}
	return file;
}

/* ---- writing ---- */

/* Whole lines that fit into `room` bytes, at least one line; the rest of a line that the file ends within. */
static size_t chunk_of(const struct weir_line_file *file, uint64_t room)
{
	const char *at = file->buffer.at + file->start;
	size_t length = pending(file);
	if (room < length) {
		const char *last = room > 0 ? memrchr(at, '\n', (size_t)room) : NULL;
		if (last == NULL)
			last = memchr(at, '\n', length);
		if (last != NULL)
			length = (size_t)(last - at) + 1;
	}
	return length;
}

/*
 * Writes to a pipe or a terminal what it takes. A write that blocks would outlast a request to stop, so a blocking one
 * is given only what fits where poll() has seen room.
 */
static int write_polled(int fd, const char *at, size_t length, size_t *written)
{
	int flags = fcntl(fd, F_GETFL);
	size_t most = flags >= 0 && (flags & O_NONBLOCK) != 0 ? SIZE_MAX : PIPE_BUF;
	*written = 0;
	while (*written < length) {
		struct pollfd reader = {.fd = fd, .events = POLLOUT};
		if (poll(&reader, 1, PIPE_WAIT_MS) <= 0) {
			errno = EAGAIN; /* after a signal too: whoever flushes looks whether it is to stop */
			return -1;
		}
		size_t part = length - *written;
		ssize_t count = write(fd, at + *written, part < most ? part : most);
		if (count < 0 && errno != EINTR && errno != EAGAIN)
			return -1;
		*written += count > 0 ? (size_t)count : 0;
	}
	return 0;
}

/* A whole line at a time, or as many as the pipe takes at once: then no reader is left with a part of one. */
static size_t pipe_part(const struct weir_line_file *file)
{
	const char *at = file->buffer.at + file->start + file->sent;
	size_t length = pending(file) - file->sent;
	const char *end = length > PIPE_BUF ? memrchr(at, '\n', PIPE_BUF) : NULL;
	if (end == NULL)
		end = memchr(at, '\n', length);
	return end != NULL ? (size_t)(end - at) + 1 : length;
}

/*
 * Without a reader nothing is taken. The descriptor stays open, as what is in the pipe is then there for the next reader;
 * a line that was cut is written to that one again, from its beginning.
 */
static enum weir_status write_named_pipe(struct weir_line_file *file, struct weir_error *error)
{
	while (pending(file) > 0) {
		size_t part = pipe_part(file), written;
		int result = write_polled(file->fd, file->buffer.at + file->start + file->sent, part, &written);
		int reason = errno;
		file->written += written;
		file->sent += written;
		if (result == 0) {
			file->start += file->sent;
			file->sent = 0;
		}
		file->mid_line = file->sent > 0;
		if (result == 0)
			continue;
		if (reason != EPIPE)
			return weir_fail(error, WEIR_IO, "cannot write %s: %s", file->path, weir_errno_words(reason));
		file->sent = 0;
		file->mid_line = false;
		return weir_fail(error, WEIR_IO, "cannot write %s: nobody reads this pipe", file->path);
	}
	return WEIR_OK;
}

/* Writes a part of the buffer and forgets it there. */
static enum weir_status write_chunk(struct weir_line_file *file, size_t length, struct weir_error *error)
{
	const char *at = file->buffer.at + file->start;
	size_t written;
	int result =
		file->regular ? weir_write_all(file->fd, at, length, &written) : write_polled(file->fd, at, length, &written);
	int reason = errno;
	if (written > 0)
		file->mid_line = at[written - 1] != '\n';
	file->start += written;
	file->written += written;
	errno = reason;
	return result == 0 ? WEIR_OK : failed(file, error, "write");
}

static enum weir_status sync_data(struct weir_line_file *file, struct weir_error *error)
{
	if (!file->regular)
		return WEIR_OK;
	if (file->sync_lost == 0 && fdatasync(file->fd) != 0)
		file->sync_lost = errno;
	if (file->sync_lost != 0)
		return weir_fail(error, WEIR_INVALID,
		                 "cannot sync %s: %s; its last lines may be lost: restart to write them again", file->path,
		                 weir_errno_words(file->sync_lost));
	return WEIR_OK;
}

/* The path's file, made where it is gone, in place of the one so far. */
static enum weir_status switch_file(struct weir_line_file *file, struct weir_error *error)
{
	int fd = open_path(file->path);
	if (fd < 0 && is_unread_pipe(file->path))
		return weir_fail(error, WEIR_IO, "cannot write %s: nobody reads this pipe", file->path);
	if (fd < 0)
		return failed(file, error, "open");
	if (file->fd >= 0)
		close(file->fd);
	file->fd = fd;
	inspect(file);
	return WEIR_OK;
}

/*
 * PATH becomes PATH.1 and a new PATH begins. Where that fails, or waits for the next checkpoint, the file goes on to
 * grow: a line late in its file is better than a line lost.
 */
static enum weir_status rotate(struct weir_line_file *file, bool *grows, struct weir_error *error)
{
	enum weir_status status = sync_data(file, error);
	if (status != WEIR_OK)
		return status;
	struct weir_error failure;
	struct stat about;
	switch (weir_line_names_rotate(file->path, file->keep, &file->protect, &failure)) {
	case WEIR_OK:
		if (file->log != NULL)
			weir_fault_clear(&file->rotation, file->log, "files");
		return switch_file(file, error);
	case WEIR_FULL: break;
	default:
		if (stat(file->path, &about) != 0 && errno == ENOENT) /* the names alone may not be on the disk yet */
			return switch_file(file, error);
		if (file->log != NULL)
			weir_fault_raise(&file->rotation, file->log, "files", "%s; writing continues in %s without a rotation",
			                 failure.text, file->path);
	}
	*grows = true;
	return WEIR_OK;
}

/* Someone removed the file, or cut it (copytruncate): what goes on is a file of its own. */
static enum weir_status follow_path(struct weir_line_file *file, struct weir_error *error)
{
	struct stat about;
	if (!file->regular || fstat(file->fd, &about) != 0)
		return WEIR_OK;
	if (about.st_nlink == 0 && !file->adopted) {
		file->unmarked = true;
		return switch_file(file, error);
	}
	if ((uint64_t)about.st_size < file->written && !file->adopted) {
		file->unmarked = true;
		file->written = (uint64_t)about.st_size;
	}
	return WEIR_OK;
}

enum weir_status weir_line_file_look(struct weir_line_file *file, bool *unmarked, struct weir_error *error)
{
	enum weir_status status = file->mid_line ? WEIR_OK : follow_path(file, error);
	*unmarked = file->unmarked;
	return status;
}

/* Whoever reads a pipe may have made it anew: nobody reads the one that was. */
static bool is_replaced(const struct weir_line_file *file)
{
	struct stat own, now;
	return file->fd >= 0 && fstat(file->fd, &own) == 0 && stat(file->path, &now) == 0 &&
	       (own.st_dev != now.st_dev || own.st_ino != now.st_ino);
}

enum weir_status weir_line_file_flush(struct weir_line_file *file, struct weir_error *error)
{
	bool grows = false;
	/* Lines that are to come would go into a file that nobody finds any more. */
	if (pending(file) > 0 && !file->mid_line) {
		enum weir_status status = follow_path(file, error);
		if (status != WEIR_OK)
			return status;
	}
	if (pending(file) > 0 && file->named_pipe) {
		bool open = file->fd >= 0 && (file->sent > 0 || !is_replaced(file));
		enum weir_status status = open ? WEIR_OK : switch_file(file, error);
		if (status == WEIR_OK && file->named_pipe)
			status = write_named_pipe(file, error);
		if (status != WEIR_OK)
			return status;
	}
	while (pending(file) > 0) {
		uint64_t limit = file->rotate_bytes > 0 ? (uint64_t)file->rotate_bytes : UINT64_MAX;
		uint64_t room = file->written < limit ? limit - file->written : 0;
		size_t chunk = chunk_of(file, room);
		enum weir_status status = WEIR_OK;
		if (chunk > room && file->written > 0 && !file->mid_line && !grows) {
			status = rotate(file, &grows, error);
			if (status != WEIR_OK)
				return status;
			continue;
		}
		status = write_chunk(file, chunk, error);
		if (status != WEIR_OK)
			return status;
	}
	file->start = 0;
	weir_text_clear(&file->buffer);
	return WEIR_OK;
}

enum weir_status weir_line_file_append(struct weir_line_file *file, struct weir_span lines)
{
	if (pending(file) >= WEIR_LINE_FILE_BUFFER_BYTES) {
		/* The next flush of the caller's meets its failure again. */
		enum weir_status status = weir_line_file_flush(file, NULL);
		/* A pipe's reader was waited for, which no further line is to do. */
		size_t bound = file->regular ? WEIR_LINE_FILE_BUFFER_MAX_BYTES : WEIR_LINE_FILE_BUFFER_BYTES;
		if (status != WEIR_OK && pending(file) + lines.length > bound)
			return WEIR_FULL;
	}
	if (file->start > 0) {
		memmove(file->buffer.at, file->buffer.at + file->start, pending(file));
		file->buffer.length -= file->start;
		file->start = 0;
	}
	weir_text_append(&file->buffer, lines.at, lines.length);
	return WEIR_OK;
}

enum weir_status weir_line_file_sync(struct weir_line_file *file, struct weir_error *error)
{
	enum weir_status status = weir_line_file_flush(file, error);
	if (status == WEIR_OK)
		status = sync_data(file, error);
	if (status == WEIR_OK)
		status = follow_path(file, error);
	return status;
}

enum weir_status weir_line_file_reopen(struct weir_line_file *file, struct weir_error *error)
{
	enum weir_status status = weir_line_file_sync(file, error);
	/* A pipe that nobody reads is opened once there is something to write. */
	bool unread = file->named_pipe && (file->fd < 0 || !is_replaced(file));
	if (status == WEIR_OK && !file->adopted && !unread)
		status = switch_file(file, error);
	return status;
}

uint64_t weir_line_file_unwritten(const struct weir_line_file *file)
{
	uint64_t lines = 0;
	if (pending(file) == 0)
		return 0;
	const char *at = file->buffer.at + file->start;
	for (size_t left = pending(file), length; left > 0; left -= length, at += length, lines++) {
		const char *end = memchr(at, '\n', left);
		length = end != NULL ? (size_t)(end - at) + 1 : left;
	}
	return lines;
}

struct weir_line_file_mark weir_line_file_mark(const struct weir_line_file *file)
{
	struct weir_line_file_mark mark = file->identity;
	mark.length = file->written + pending(file);
	return mark;
}

void weir_line_file_protect(struct weir_line_file *file, const struct weir_line_file_mark *mark)
{
	file->protect = *mark;
	file->unmarked = false;
}

enum weir_status weir_line_file_close(struct weir_line_file *file, struct weir_error *error)
{
	if (file == NULL)
		return WEIR_OK;
	enum weir_status status = weir_line_file_sync(file, error);
	if (!file->adopted && file->fd >= 0)
		close(file->fd);
	weir_text_deinit(&file->buffer);
	free(file->path);
	free(file);
	return status;
}
