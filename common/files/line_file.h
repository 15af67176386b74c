/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output file of whole lines: decisions, dead letters.
 *
 * Lines are appended to a buffer and reach the file in large writes. A write
 * that fails or stops short loses nothing and doubles nothing: what was not
 * written stays in the buffer, and the next flush continues after the byte where
 * the last one ended. A file is rotated and reopened between lines only, and
 * where a line begins a new file depends on the lines alone. A rotation that
 * fails is logged, and the file grows until a later one works.
 *
 * @thread one owner
 */
#ifndef WEIR_COMMON_LINE_FILE_H
#define WEIR_COMMON_LINE_FILE_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/log/log.h"

enum {
	WEIR_LINE_FILE_BUFFER_BYTES = 256 * 1024, /* a buffer of this size is written */
	WEIR_LINE_FILE_BUFFER_MAX_BYTES =
		16 * 1024 * 1024, /* while writing fails it grows to this, then append refuses (a pipe: refuses at once) */
};

struct weir_line_file;

struct weir_line_file_options {
	const char *path;           /* made (0640) where it is not there; copied */
	int64_t rotate_bytes;       /* a line that would take the file past this begins a new one, the old becomes PATH.1;
	                         0: never */
	uint32_t keep;              /* rotated files that stay, PATH.1 the newest; at least 1 is kept */
	const struct weir_log *log; /* tells of a rotation that fails, once, and of the one that works again; borrowed; NULL
	                               where nothing rotates */
};

/*
 * What a checkpoint remembers, to go on behind it. A file is known by its inode and the time of its birth, as a removed
 * file's inode is given to another at once, and as the device's number may be another after a restart of the machine;
 * it counts only where the file system does not tell of births.
 */
struct weir_line_file_mark {
	uint64_t device, inode;
	uint64_t born_ns; /* Unix time; 0: not told */
	uint64_t length;  /* of the file with everything that was appended so far */
};

/**
 * Opens for appending; a path that means a descriptor (file_place.h) is adopted; continues at the end, on a line of its own. A named pipe need not have a reader yet: what is
 * written waits for one, and for the next one where that leaves.
 *
 * @return WEIR_OK; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_line_file_open(const struct weir_line_file_options *options,
                                                   struct weir_line_file **file, struct weir_error *error);

/**
 * Opens, and cuts off what was written behind a mark (it will be written again).
 *
 * Rotations since the mark are undone: the marked file gets its name back, younger files are removed. A marked file
 * that someone else renamed (a date or a number behind its name) is cut there, if nothing stands in its place.
 *
 * @return WEIR_OK; WEIR_END: the marked file is gone and nothing stands in its place, or it was cut (copytruncate) and
 *         ends before the mark, or has other lines there: nothing was changed, opening it afresh is the caller's choice;
 *         WEIR_INVALID: another file stands in its place: nothing was changed; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_line_file_resume(const struct weir_line_file_options *options,
                                                     const struct weir_line_file_mark *mark,
                                                     struct weir_line_file **file, struct weir_error *error);

/** Writes to a descriptor that is open already (standard output): no rotation, no reopening; close() leaves it open. */
struct weir_line_file *weir_line_file_adopt(int fd, const char *name);

/**
 * Appends one or more whole lines, each ended by a newline.
 *
 * @return WEIR_OK: taken, though perhaps only into the buffer (a failure shows at the next flush); WEIR_FULL: the
 *         buffer is at its bound because writing fails: nothing was taken, flush and try again
 */
WEIR_MUST_USE enum weir_status weir_line_file_append(struct weir_line_file *file, struct weir_span lines);

/**
 * Hands the buffer to the operating system. A file that was removed since is made again first.
 *
 * @return WEIR_OK: all of it; WEIR_IO: the rest is kept, try again later (a pipe: its reader took
 *         nothing for a second, a named one has no reader, or a signal came); WEIR_END: an adopted pipe that nobody
 *         reads any more (so too from sync, reopen and close)
 */
WEIR_MUST_USE enum weir_status weir_line_file_flush(struct weir_line_file *file, struct weir_error *error);

/**
 * Flushes and puts it on disk (a pipe: flushes). After WEIR_OK everything appended survives a crash.
 *
 * A file that was removed is made again after it.
 *
 * @return WEIR_OK; WEIR_IO, WEIR_END: as from flush; WEIR_INVALID: an fsync failed, so that the operating system may
 *         have dropped what was written: every later sync fails too (so too reopen, close, and a flush that rotates),
 *         and only a resume from the last mark is sure to write it again
 */
WEIR_MUST_USE enum weir_status weir_line_file_sync(struct weir_line_file *file, struct weir_error *error);

/**
 * Closes the file and opens its path afresh (SIGHUP after logrotate has renamed it). All that was appended is in the
 * old file, on disk. Store a mark of the new one before appending to it, so that a resume knows it.
 *
 * @return WEIR_OK; WEIR_IO: nothing was changed but what sync does, try again later; WEIR_INVALID: as from sync
 */
WEIR_MUST_USE enum weir_status weir_line_file_reopen(struct weir_line_file *file, struct weir_error *error);

/** How many lines, whole or their rest, the operating system has not taken. */
uint64_t weir_line_file_unwritten(const struct weir_line_file *file);

/** Where the file stands, to be taken after a sync; for a pipe device and inode are 0. */
struct weir_line_file_mark weir_line_file_mark(const struct weir_line_file *file);

/**
 * Looks whether somebody cut the file (copytruncate) or removed it. A resume with a mark of before would then cut lines
 * that came since, or not know the file: store a mark of now before more is appended.
 *
 * @param unmarked  so it is, since weir_line_file_protect was last called
 * @return WEIR_OK; WEIR_IO: the file is gone and cannot be made again now
 */
WEIR_MUST_USE enum weir_status weir_line_file_look(struct weir_line_file *file, bool *unmarked,
                                                   struct weir_error *error);

/** The stored mark, which a resume would come with: its file is not dropped by rotation (which waits instead). */
void weir_line_file_protect(struct weir_line_file *file, const struct weir_line_file_mark *mark);

/** Syncs once and frees in any case. NULL is fine. @return WEIR_OK; else: not all reached the disk */
WEIR_MUST_USE enum weir_status weir_line_file_close(struct weir_line_file *file, struct weir_error *error);

#endif
