/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is being read, or was and may get late lines. */
#ifndef COLLECTOR_SOURCE_OPEN_FILE_H
#define COLLECTOR_SOURCE_OPEN_FILE_H

#include "collector/input/input_lines.h"
#include "collector/source/file/file_identity.h"

/* Only onward, from each to the ones below it; a plain file stays readable. */
enum open_file_state {
	OPEN_FILE_READABLE,
	OPEN_FILE_CUT, /* a compressed file ends in the middle of its data: it is still written, or what wrote it failed */
	OPEN_FILE_ENDED,   /* a compressed file's end was reached */
	OPEN_FILE_DAMAGED, /* a compressed file cannot be read further, and that was stated */
};

struct open_file {
	struct source_memory_file *file; /* what is remembered of it; borrowed */
	struct input_lines *lines;
	enum open_file_state state;
	struct stat about;                 /* when it was opened */
	char *path;                        /* where it was found, for words */
	char head[FINGERPRINT_HEAD_BYTES]; /* its first bytes: to see a truncation */
	size_t head_bytes;
	int64_t grown_ms;              /* monotonic: when it was last seen to grow */
	bool zeros_told, returns_told; /* people know that it ends in zeros, and that its lines have no newlines */
};

/** @param beginning  its input is taken */
struct open_file *open_file_new(struct source_memory_file *file, struct file_beginning *beginning, const char *path,
                                size_t line_max, size_t read_bytes);
void open_file_free(struct open_file *opened);

/** Not compressed: it may grow, and be truncated. */
bool open_file_plain(const struct open_file *opened);

/** When the file was last written to, Unix ms. */
int64_t open_file_modified_ms(const struct open_file *opened);

/** Whether the file still has a name. */
bool open_file_linked(const struct open_file *opened);

/** A compressed file gives no more just now: its end was reached, or it is cut or damaged there. */
void open_file_end(struct open_file *opened, enum open_file_state state);

/** Takes note of lines that are handed out: of the first bytes that are kept, and of what the file is known by. */
void open_file_note(struct open_file *opened, const struct input_lines_chunk *lines);

/** Whether the file has the bytes that it had at its beginning, of the first `upto`. */
bool open_file_begins_alike(const struct open_file *opened, uint64_t upto);

/** After a read: whether what was read is the file's that it was. */
bool open_file_intact(struct open_file *opened);

/** Whether a file that was read to its end is as it was then, as far as its size and times tell. */
bool open_file_unchanged(const struct open_file *opened);

/** Whether a compressed file has been written to since it was opened: what it holds is then read by opening it again. */
bool open_file_rewritten(const struct open_file *opened);

/** At a file's end: whether it no longer holds what was read of it. */
bool open_file_truncated(struct open_file *opened);

#endif
