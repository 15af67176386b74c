/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the collector remembers of its files: which it has read, how far, and
 * under which incarnation. It is data: export and import are its text, and
 * a memory that was opened in a directory writes that text there (sources.json).
 *
 * A stream is a path as it was first seen. Its files follow one another by
 * rotation; each stretch of a file that is read under one incarnation is a part.
 * Mostly a file is one part; where lines come late to a rotated file they are
 * read as a part of their own, and the newer file continues in another, so that
 * positions grow in the order in which lines are handed out:
 *
 *     incarnation 1   access.log.1   0 .. 1000
 *     incarnation 2   access.log     0 .. 200     (read on while the writer finished in access.log.1)
 *     incarnation 3   access.log.1   1000 .. 1050
 *     incarnation 4   access.log     200 ..
 *
 * A journal's stream has no files: its low-water mark says all (source_journal.h).
 *
 * A part is saved before its first line is handed out. So a run that goes on
 * after a crash reads the same bytes under the same positions again.
 *
 * @thread one at a time: that of the sources which share it
 */
#ifndef COLLECTOR_SOURCE_MEMORY_H
#define COLLECTOR_SOURCE_MEMORY_H

#include "collector/source/source.h"
#include "collector/source/source_fingerprint.h"

enum {
	SOURCE_MEMORY_STREAMS_MAX = 16384,
	SOURCE_MEMORY_FILES_MAX = 1024,     /* a stream; past it the oldest settled ones are forgotten, */
	SOURCE_MEMORY_FILES_ALL = 32768,    /* or past its share of these where streams are many; */
	SOURCE_MEMORY_FILES_READ = 1 << 20, /* what is saved before they are is read all the same */
	SOURCE_MEMORY_PARTS_MAX = 1024,     /* a stream, not acknowledged */
};

#define SOURCE_OFFSET_END (UINT64_C(1) << SOURCE_OFFSET_BITS)
#define SOURCE_INCARNATION_MAX ((UINT32_C(1) << 23) - 1) /* positions stay below 2^63 */

/* What the names of a journal's streams begin with; no file's path may. */
#define SOURCE_JOURNAL_PREFIX "journal:"

/* The end of a part that is still read. */
#define SOURCE_PART_OPEN UINT64_MAX

enum source_file_state {
	SOURCE_FILE_READING, /* the newest, or one that was left for late lines elsewhere and is gone on with */
	SOURCE_FILE_LEFT,    /* read to its end, and a successor begun: late lines may come */
	SOURCE_FILE_SETTLED, /* no more is expected of it; remembered to be known again */
};

/* A file's content, under whatever name. */
struct source_memory_file {
	uint32_t number; /* within its stream; never used again */
	enum source_file_state state;
	uint64_t device, inode; /* 0, 0: it has none any more (truncated, or replaced by a copy) */
	struct fingerprint fingerprint;
	uint64_t taken;      /* lines up to here were handed out, or lie in a part */
	uint64_t size;       /* the largest seen, uncompressed where that is known */
	int64_t modified_ns; /* of its last writing, as the file system has it */
	int64_t seen_s;      /* wall clock: when it was last there */
	bool beside;         /* it lay beside the stream's when that began, under a rotated name: it is not read */
	char *home;          /* owned: the directory it lies in, where that is not its stream's; or NULL */
	/* not saved */
	char *where;       /* owned: the path at which it was last found, or NULL */
	uint32_t absences; /* times in a row that it was looked for in vain */
	/* of the memory alone */
	struct source_memory_stream *stream;   /* that it is of */
	struct source_memory_file *next_alike; /* with the same hash of device and inode */
};

struct source_memory_part {
	uint32_t incarnation; /* one more than the part before */
	uint32_t file;
	uint64_t from, to;
	uint64_t change; /* memory->changes when it was added: saved once memory->saved has reached it */
};

struct source_memory_stream {
	char *path;
	uint64_t low_water;   /* position: all before it is acknowledged */
	int64_t forgotten_ns; /* rotated files last written at or before this are not news; of a journal: when last seen */
	uint32_t next_file;   /* the next file's number */
	uint32_t next_incarnation; /* the next part's */
	struct source_memory_file **files;
	size_t file_count;
	struct source_memory_part *parts; /* ascending; from the part of low_water on, but always the last */
	size_t part_count;
	/* what it was when it was last written as text, as a hash, and that text: most of many streams stay as they are */
	uint64_t written;
	char *text;
	size_t text_length;
	bool claimed;                            /* some source reads it; not saved */
	void *reader;                            /* what reads it, of a file source; not saved */
	struct source_memory_stream *next_alike; /* of the memory alone: with the same hash of the path */
};

/* What a source names, for the others that share the memory: what is named is never taken for another's rotation. */
struct source_memory_names {
	bool (*names)(const void *context, const char *path);
	const void *context;
	struct source_memory_names *next;
};

struct source_memory {
	uint8_t collector_id[SOURCE_ID_BYTES];
	struct source_memory_stream **streams;
	size_t stream_count;
	uint32_t first_incarnation; /* a new stream's: past those that limiters know of streams that were removed */
	char *path;                 /* where it is saved; NULL: nowhere */
	uint64_t changes;           /* grows with each change */
	uint64_t saved;             /* changes that are on disk */
	struct source_memory_writer *writer; /* NULL: nothing was written in the background yet */
	struct source_memory_names *names;   /* of all sources */
	struct source_memory_index *index;   /* streams by path, files by device and inode */
};

/** An empty memory. @param collector_id  16 bytes; NULL: random ones */
struct source_memory *source_memory_new(const uint8_t *collector_id);
void source_memory_free(struct source_memory *memory);

/** The memory as JSON text, without line breaks: returned, the caller frees. For --once it goes into its checkpoint. */
char *source_memory_export(const struct source_memory *memory, size_t *length);

/**
 * Reads what export wrote.
 *
 * @param name  shown in errors
 * @return WEIR_INVALID; WEIR_NEWER
 */
WEIR_MUST_USE enum weir_status source_memory_import(const char *name, const char *text, size_t length,
                                                    struct source_memory **memory, struct weir_error *error);

/** Opens DIRECTORY/sources.json; a new one gets a random collector id and is written at once. */
WEIR_MUST_USE enum weir_status source_memory_open(const char *directory, struct source_memory **memory,
                                                  struct weir_error *error);

/** Writes it, if it was opened in a directory and has changed: on disk when this returns. */
WEIR_MUST_USE enum weir_status source_memory_save(struct source_memory *memory, struct weir_error *error);

/**
 * Begins to do so on a thread of its own: who reads for others does not wait for a busy disk. Not to be called again
 * before source_memory_save_end() has said how it went.
 *
 * @return WEIR_AGAIN: it has begun; WEIR_OK: nothing had changed; where no thread is available, as source_memory_save()
 */
WEIR_MUST_USE enum weir_status source_memory_save_begin(struct source_memory *memory, struct weir_error *error);

/** @return WEIR_AGAIN: it is still at it; else as source_memory_save(), of what the memory held when it began */
WEIR_MUST_USE enum weir_status source_memory_save_end(struct source_memory *memory, struct weir_error *error);

/** NULL is fine. What it is writing is written. */
void source_memory_writer_free(struct source_memory_writer *writer);

/* ---- for sources ---- */

struct source_memory_stream *source_memory_find(const struct source_memory *memory, const char *path);
/** The first file that has this inode; the others follow by source_memory_file_next(). NULL: none has it. */
struct source_memory_file *source_memory_file_with(const struct source_memory *memory, uint64_t device, uint64_t inode);
struct source_memory_file *source_memory_file_next(const struct source_memory_file *file);
/** Writes down which inode a file has; 0, 0: none any more. */
void source_memory_file_place(struct source_memory *memory, struct source_memory_file *file, uint64_t device,
                              uint64_t inode);
/** Drops a file that belongs to no part. */
void source_memory_file_drop(struct source_memory *memory, struct source_memory_file *file);

/** @param names  stays the caller's, until it is taken out again */
void source_memory_names_add(struct source_memory *memory, struct source_memory_names *names);
void source_memory_names_remove(struct source_memory *memory, const struct source_memory_names *names);
/** Whether some source names a path. */
bool source_memory_named(const struct source_memory *memory, const char *path);

/** NULL where SOURCE_MEMORY_STREAMS_MAX are there. */
struct source_memory_stream *source_memory_add(struct source_memory *memory, const char *path);

/** Removes a stream by its place. Should its path come again, its positions are higher than they ever were. */
void source_memory_remove(struct source_memory *memory, size_t index);

/** A record that belongs to no memory. */
struct source_memory_stream *source_memory_scratch(const char *path);
void source_memory_scratch_free(struct source_memory_stream *stream);

/** The id that positions of this stream are kept under: a hash of (collector id, path). */
void source_memory_stream_id(const struct source_memory *memory, const char *path, uint8_t id[SOURCE_ID_BYTES]);

struct source_memory_file *source_memory_file(const struct source_memory_stream *stream, uint32_t number);
struct source_memory_file *source_memory_file_add(struct source_memory *memory, struct source_memory_stream *stream);

/** NULL if there is none of that incarnation. */
struct source_memory_part *source_memory_part(const struct source_memory_stream *stream, uint32_t incarnation);
/** The newest, or NULL. */
struct source_memory_part *source_memory_last_part(const struct source_memory_stream *stream);
/** NULL where the stream has SOURCE_MEMORY_PARTS_MAX, or incarnations are used up. The last one's end is set before. */
struct source_memory_part *source_memory_part_add(struct source_memory *memory, struct source_memory_stream *stream,
                                                  uint32_t file, uint64_t from);

/** Takes note that a stream or file was changed by hand. */
void source_memory_changed(struct source_memory *memory);

/** Whether a part, once added, needs no save any more. */
bool source_memory_part_saved(const struct source_memory *memory, const struct source_memory_part *part);

/** All before the position is acknowledged: parts before it are dropped. Positions that go back are ignored. */
void source_memory_acknowledge(struct source_memory *memory, struct source_memory_stream *stream, uint64_t position);

/** Drops files that are settled, belong to no part and were not there for 7 days, or are too many. */
void source_memory_forget(struct source_memory *memory, struct source_memory_stream *stream, int64_t now_s);

static inline uint64_t source_position(uint32_t incarnation, uint64_t offset)
{
	return (uint64_t)incarnation << SOURCE_OFFSET_BITS | offset;
}

static inline uint32_t source_position_incarnation(uint64_t position)
{
	return (uint32_t)(position >> SOURCE_OFFSET_BITS);
}

static inline uint64_t source_position_offset(uint64_t position)
{
	return position & (SOURCE_OFFSET_END - 1);
}

#endif
