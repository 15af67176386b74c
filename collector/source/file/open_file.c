/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open file: its lines, and whether it still is the file that it was.
 *
 * A truncation in place, as copytruncate does it, shows in one of two ways: the
 * file has fewer bytes than were read, or begins with others.
 */
#include "collector/source/file/open_file.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct open_file *open_file_new(struct source_memory_file *file, struct file_beginning *beginning, const char *path,
                                size_t line_max, size_t read_bytes)
{
	struct open_file *opened = weir_alloc(1, sizeof *opened);
	opened->file = file;
	opened->about = beginning->about;
	opened->path = weir_copy(path, strlen(path));
	opened->lines = input_lines_new(beginning->input, line_max, read_bytes);
	memcpy(opened->head, beginning->head, beginning->length);
	opened->head_bytes = beginning->length;
	return opened;
}

void open_file_free(struct open_file *opened)
{
	if (opened == NULL)
		return;
	input_lines_free(opened->lines);
	free(opened->path);
	free(opened);
}

bool open_file_plain(const struct open_file *opened)
{
	return !input_compressed(input_lines_input(opened->lines));
}

static int fd_of(const struct open_file *opened)
{
	return input_fd(input_lines_input(opened->lines));
}

int64_t open_file_modified_ms(const struct open_file *opened)
{
	struct stat about;
	return file_identity_modified_ns(fstat(fd_of(opened), &about) == 0 ? &about : &opened->about) / 1000000;
}

bool open_file_linked(const struct open_file *opened)
{
	struct stat about;
	return fstat(fd_of(opened), &about) != 0 || about.st_nlink > 0;
}

void open_file_end(struct open_file *opened, enum open_file_state state)
{
	assert(state != OPEN_FILE_READABLE);
	if (opened->state < state)
		opened->state = state;
}

/* What lines do not show of a beginning: a byte order mark, or zeros. */
static void note_beginning(struct open_file *opened)
{
	char head[FINGERPRINT_HEAD_BYTES];
	ssize_t got = open_file_plain(opened) ? pread(fd_of(opened), head, sizeof head, 0) : 0;
	got = got > 0 ? (ssize_t)file_identity_head(head, (size_t)got) : got;
	if (got <= (ssize_t)opened->head_bytes || memcmp(head, opened->head, opened->head_bytes) != 0)
		return;
	memcpy(opened->head, head, (size_t)got);
	opened->head_bytes = (size_t)got;
	fingerprint_head(&opened->file->fingerprint, opened->head, opened->head_bytes);
}

void open_file_note(struct open_file *opened, const struct input_lines_chunk *lines)
{
	struct fingerprint *print = &opened->file->fingerprint;
	if (lines->offset > opened->head_bytes && opened->head_bytes < FINGERPRINT_HEAD_BYTES)
		note_beginning(opened);
	size_t held = opened->head_bytes;
	if (held < FINGERPRINT_HEAD_BYTES && lines->offset <= held && held < lines->offset + lines->length) {
		size_t more = (size_t)(lines->offset + lines->length - held), room = FINGERPRINT_HEAD_BYTES - held;
		more = more < room ? more : room;
		memcpy(opened->head + held, lines->data + (held - lines->offset), more);
		opened->head_bytes += more;
		fingerprint_head(print, opened->head, opened->head_bytes);
	}
	fingerprint_note(print, lines->offset, lines->data, lines->length);
}

bool open_file_begins_alike(const struct open_file *opened, uint64_t upto)
{
	char head[FINGERPRINT_HEAD_BYTES];
	size_t length = opened->head_bytes < upto ? opened->head_bytes : (size_t)upto;
	ssize_t got = pread(fd_of(opened), head, length, 0);
	return got == (ssize_t)length && memcmp(head, opened->head, length) == 0;
}

/* What is there is the file's that it was: as large as this it has been. */
static void note_size(struct open_file *opened, const struct stat *about)
{
	if (opened->file->size < (uint64_t)about->st_size)
		opened->file->size = (uint64_t)about->st_size;
	opened->file->modified_ns = file_identity_modified_ns(about);
}

bool open_file_intact(struct open_file *opened)
{
	struct stat about;
	if (!open_file_plain(opened) || fstat(fd_of(opened), &about) != 0)
		return true;
	/*
	 * Truncated since the read: what was read came before, for what is there now does not reach so far. It is handed
	 * out, and the truncation met at the file's end.
	 */
	if ((uint64_t)about.st_size < input_lines_read_offset(opened->lines))
		return true;
	if (!open_file_begins_alike(opened, opened->head_bytes))
		return false;
	note_size(opened, &about);
	return true;
}

bool open_file_unchanged(const struct open_file *opened)
{
	struct stat about;
	if (fstat(fd_of(opened), &about) != 0 || about.st_nlink == 0)
		return false;
	if (!open_file_plain(opened))
		return !open_file_rewritten(opened);
	return (uint64_t)about.st_size == input_lines_read_offset(opened->lines) &&
	       file_identity_modified_ns(&about) == opened->file->modified_ns;
}

bool open_file_rewritten(const struct open_file *opened)
{
	struct stat about;
	return !open_file_plain(opened) && fstat(fd_of(opened), &about) == 0 &&
	       (about.st_size != opened->about.st_size ||
	        file_identity_modified_ns(&about) != file_identity_modified_ns(&opened->about));
}

bool open_file_truncated(struct open_file *opened)
{
	struct stat about;
	if (!open_file_plain(opened) || fstat(fd_of(opened), &about) != 0)
		return false;
	if ((uint64_t)about.st_size < input_lines_read_offset(opened->lines) ||
	    !open_file_begins_alike(opened, opened->head_bytes))
		return true;
	note_size(opened, &about);
	return false;
}
