/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stream: its place among its parts, its open files, whether it is to be asked, and what is stated about it.
 *
 * A stream goes through its parts one after another: a part is a stretch of one file under one incarnation
 * (source_memory.h). Only the last one may have no end yet.
 */
#ifndef COLLECTOR_SOURCE_FILE_STREAM_H
#define COLLECTOR_SOURCE_FILE_STREAM_H

#include "collector/source/file/file_search.h"
#include "collector/source/file/open_file.h"
#include "common/base/text.h"

enum file_stream_state {
	FILE_STREAM_READY, /* there may be lines: asked once retry_ms is past */
	FILE_STREAM_IDLE,  /* followed, and nothing there: until something changes, or the next scan */
	FILE_STREAM_DONE,  /* not followed, and read to its end or failed: for good */
};

/* Where a stream stands in a plain file. inode 0: nothing is known. */
struct file_place {
	uint64_t device, inode, offset;
};

struct file_stream {
	struct source_stream handle; /* what the pipeline sees: first, it leads back to the stream */
	struct file_shared *shared;
	struct source_memory_stream *record;
	uint64_t zeros_told; /* of handle.zeros */
	char *path;          /* where its newest file is looked for: the path first seen, but for an adopted stream */
	char *real;          /* where that leads, if a link in it leads elsewhere; else NULL */
	enum file_stream_state state;
	bool queued;      /* in the queue of what is to be asked */
	int64_t retry_ms; /* monotonic: not to be asked before */
	int64_t wait_ms;  /* how long the last pause after a failure was; 0: all is well */
	/* reading */
	uint32_t incarnation;    /* of the part being read; one past the last when all are read */
	uint64_t offset;         /* in that part's file: of the next line */
	bool repeats;            /* what is read may have been handed out before, as part of what it is part of now */
	struct open_file **open; /* the part's file, and those that may get late lines */
	size_t open_count;
	uint32_t looked_back;    /* the incarnation that `before` is of */
	struct weir_text before; /* the first lines of its file, until they are given */
	bool before_given;
	/* guarded by shared->mutex */
	struct source_status status;
	int64_t caught_up_ms;    /* when the stream was last at its end */
	struct file_place place; /* the current file: what it has grown by meanwhile is waiting */
};

/** A stream of a record, at its low-water mark. @param path  borrowed */
void file_stream_init(struct file_stream *stream, struct file_shared *shared, struct source_memory_stream *record,
                      const char *path);
void file_stream_deinit(struct file_stream *stream);

static inline struct file_route file_stream_route(const struct file_stream *stream)
{
	return (struct file_route){.path = stream->path, .real = stream->real};
}

/** Looks where the stream's path leads. @return whether that is elsewhere by now */
bool file_stream_resolve(struct file_stream *stream);

/** Goes to a position: WEIR_INVALID where no part has it. */
enum weir_status file_stream_resume(struct file_stream *stream, uint64_t position, struct weir_error *error);

/* ---- whether it is to be asked ---- */

/** There may be lines. */
void file_stream_wake(struct file_stream *stream);
/** Nothing is there: only of one that is followed. */
void file_stream_idle(struct file_stream *stream);
/** No more will be given: only of one that is not followed. */
void file_stream_finish(struct file_stream *stream);

/* ---- open files ---- */

struct open_file *file_stream_opened(const struct file_stream *stream, const struct source_memory_file *file);
/** Takes a file among the stream's open ones. @param beginning  its input is taken */
struct open_file *file_stream_open(struct file_stream *stream, struct source_memory_file *file,
                                   struct file_beginning *beginning, const char *path, int64_t now_ms);
/** Takes note of where a file that is open was moved to: files that were rotated after it may lie there too. */
void file_stream_trace(const struct file_stream *stream, const struct open_file *opened);
/** @param opened  NULL: nothing */
void file_stream_close(struct file_stream *stream, struct open_file *opened);

/* ---- parts ---- */

/** The part being read, or NULL where all are. */
struct source_memory_part *file_stream_part(const struct file_stream *stream);
/** Its file, or NULL. */
struct source_memory_file *file_stream_file(const struct file_stream *stream);
/** That file, if it is open; or NULL. */
struct open_file *file_stream_current(const struct file_stream *stream);

/** Goes to the next part, if there is one; the file of this one is closed unless more is expected of it. */
void file_stream_advance(struct file_stream *stream);
/** The bytes of the part that can no longer be read are lost: it ends where the stream stands. */
void file_stream_give_up_part(struct file_stream *stream, const char *why);
/** The part being read ends at an offset, and its file is in that state from then on. */
void file_stream_end_part(struct file_stream *stream, uint64_t to, enum source_file_state state);
/** Whether parts can be added: false while too many are not acknowledged. */
bool file_stream_has_room(const struct file_stream *stream);
/** Adds a part of a file; the one before has its end. */
bool file_stream_add_part(struct file_stream *stream, struct source_memory_file *file, uint64_t from);
/** Begins a file as the stream's next part. @return false: the stream cannot have more parts just now */
bool file_stream_begin(struct file_stream *stream, const struct file_candidate *candidate, bool from_end);

/* ---- what is stated ---- */

/** States a problem and puts the next try off. @param error  WEIR_END: there is nothing left that could be read */
void file_stream_fail(struct file_stream *stream, int64_t now_ms, const struct weir_error *error);
void file_stream_well(struct file_stream *stream);
/** Tells and counts what of a file can no longer be read, as far as it is known. @param why  "is gone" */
void file_stream_lost(struct file_stream *stream, const struct source_memory_file *file, uint64_t from, uint64_t end,
                      const char *why);
/** Counts bytes that are lost, of which a problem tells. */
void file_stream_count_lost(struct file_stream *stream, uint64_t bytes);
/** Tells of zeros that were passed over in the lines. */
void file_stream_tell_zeros(struct file_stream *stream);
/** States where the stream stands. @param position  0: as before; at_end: all is read that is there */
void file_stream_note(struct file_stream *stream, const struct open_file *current, uint64_t position, bool at_end,
                      int64_t now_ms);
/** States how much there is before anything was read. */
void file_stream_note_size(struct file_stream *stream, uint64_t bytes);
/** What is stated, with what the current file has grown by. The caller holds shared->mutex. */
void file_stream_status(const struct file_stream *stream, int64_t now_ms, struct source_status *status);

#endif
