/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the collector remembers of its files: which it has read, up to where, and
 * under which incarnation. It is plain data: export and import convert it to text
 * and back, and a memory that was opened in a directory saves that text there
 * (sources.json).
 *
 * A stream is named by the path under which it was first seen. Its files follow
 * one another by rotation. Each section of a file that is read under one
 * incarnation is a part. Usually a file is one part. Lines that come late to a
 * rotated file are read as another part, and the newer file then continues in one
 * more, so that positions increase in the order in which lines are handed out:
 *
 *     incarnation 1   access.log.1   0 .. 1000
 *     incarnation 2   access.log     0 .. 200     (meanwhile the writer adds to access.log.1)
 *     incarnation 3   access.log.1   1000 .. 1050
 *     incarnation 4   access.log     200 ..
 *
 * A journal's stream, or a queue's, or one of decisions, has no files: its low-water mark is enough. A stream of remote files has
 * notes, which only its kind reads.
 *
 * A part is saved before its first line is handed out. So a run after a crash
 * reads the same bytes under the same positions again.
 *
 * @thread that of the sources which share it
 */
#ifndef COLLECTOR_SOURCE_MEMORY_H
#define COLLECTOR_SOURCE_MEMORY_H

#include "collector/source/source.h"
#include "collector/source/source_fingerprint.h"

enum {
	SOURCE_MEMORY_STREAMS_MAX = 16384,
	SOURCE_MEMORY_FILES_MAX = 1024,     /* per stream; above it the oldest settled files are forgotten */
	SOURCE_MEMORY_FILES_ALL = 32768,    /* shared equally by the streams, if that is less per stream */
	SOURCE_MEMORY_FILES_READ = 1 << 20, /* per stream, when importing: a save may come before they are forgotten */
	SOURCE_MEMORY_PARTS_MAX = 1024,     /* per stream, not acknowledged */
};

#define SOURCE_OFFSET_END (UINT64_C(1) << SOURCE_OFFSET_BITS)
#define SOURCE_INCARNATION_MAX ((UINT32_C(1) << 23) - 1) /* positions stay below 2^63 */

/* Names of streams that are no files begin with one of these; a file's path must not. */
#define SOURCE_JOURNAL_PREFIX "journal:"
#define SOURCE_DECISIONS_PREFIX "decisions:"
#define SOURCE_KAFKA_PREFIX "kafka:"
#define SOURCE_NATS_PREFIX "nats:"
#define SOURCE_AMQP_PREFIX "amqp:"
#define SOURCE_REDIS_PREFIX "redis:"
#define SOURCE_REMOTE_PREFIX "remote:"
#define SOURCE_PUSH_PREFIX "push:"

/* The end of a part that is still being read. */
#define SOURCE_PART_OPEN UINT64_MAX

enum source_file_state {
	SOURCE_FILE_READING, /* the newest; or an interrupted one, to be continued after late lines elsewhere */
	SOURCE_FILE_LEFT,    /* read to its end, and its successor was begun; late lines may come */
	SOURCE_FILE_SETTLED, /* no more lines are expected; kept so that the file is recognised */
};

/* A file's content, whatever its name. */
struct source_memory_file {
	uint32_t number; /* unique within its stream, never reused */
	enum source_file_state state;
	uint64_t device, inode; /* 0, 0: it no longer has any (truncated, or replaced by a copy) */
	struct fingerprint fingerprint;
	uint64_t taken;      /* lines up to here were handed out, or are in a part */
	uint64_t size;       /* the largest seen, uncompressed if that is known */
	int64_t modified_ns; /* its modification time in the file system */
	int64_t seen_s;      /* wall clock: when it was last found */
	bool beside;         /* it was beside the stream's file when that began, under a rotated name: it is not read */
	char *home;          /* owned: its directory, if that is not its stream's; or NULL */
	/* not saved */
	char *where;       /* owned: the path at which it was last found, or NULL */
	uint32_t absences; /* how many searches in a row did not find it */
	bool open;         /* a stream has it open: no other file can have its inode */
	/* only for the memory's index */
	struct source_memory_stream *stream;   /* the stream that it belongs to */
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
	uint64_t low_water; /* position: all before it is acknowledged */
	int64_t
		forgotten_ns; /* rotated files last written at or before this are not new; of a journal or queue: when last seen;
	                          of a topic: a hash of the message before low_water */
	uint32_t next_file;        /* the next file's number */
	uint32_t next_incarnation; /* the next part's */
	struct source_memory_file **files;
	size_t file_count;
	struct source_memory_part *parts; /* ascending; from that of low_water on, and at least the last one */
	size_t part_count;
	char *notes; /* a JSON object, in the words of its kind of source (source_memory_note()); NULL: none */
	uint32_t notes_length;
	/* a hash of what it was when it was last written as text, and that text: most of many streams do not change */
	uint64_t written;
	char *text;
	size_t text_length;
	bool claimed;                            /* a source reads it; not saved */
	void *reader;                            /* the file source's reader of it; not saved */
	struct source_memory_stream *next_alike; /* only for the memory's index: with the same hash of the path */
};

/* What a source names, for the others that share the memory: a named file is never taken for another's rotation. */
struct source_memory_names {
	bool (*names)(const void *context, const char *path);
	const void *context;
	struct source_memory_names *next;
};

struct source_memory {
	uint8_t collector_id[SOURCE_ID_BYTES];
	struct source_memory_stream **streams;
	size_t stream_count;
	uint32_t first_incarnation;          /* of a new stream: above those that limiters may know of removed streams */
	char *path;                          /* where it is saved; NULL: nowhere */
	uint64_t changes;                    /* increases with each change */
	uint64_t saved;                      /* the value of `changes` that is on disk */
	struct source_memory_writer *writer; /* NULL: nothing was written in the background yet */
	struct source_memory_names *names;   /* of all sources */
	struct source_memory_index *index;   /* streams by path, files by device and inode */
};

/** An empty memory. @param collector_id  16 bytes; NULL: random ones */
struct source_memory *source_memory_new(const uint8_t *collector_id);
void source_memory_free(struct source_memory *memory);

/** The memory as JSON text, without line breaks. Returned, the caller frees. --once stores it in its checkpoint. */
char *source_memory_export(const struct source_memory *memory, size_t *length);

/**
 * Reads what source_memory_export() wrote.
 *
 * @param name  shown in errors
 * @return WEIR_INVALID; WEIR_NEWER
 */
WEIR_MUST_USE enum weir_status source_memory_import(const char *name, const char *text, size_t length,
                                                    struct source_memory **memory, struct weir_error *error);

/** Reads DIRECTORY/sources.json, and writes nothing. @param memory  NULL: there is none */
WEIR_MUST_USE enum weir_status source_memory_look(const char *directory, struct source_memory **memory,
                                                  struct weir_error *error);
/** Opens DIRECTORY/sources.json. A new one gets a random collector id, and is written at once. */
WEIR_MUST_USE enum weir_status source_memory_open(const char *directory, struct source_memory **memory,
                                                  struct weir_error *error);

/** Saves it, if it was opened in a directory and has changed. It is on disk when this returns. */
WEIR_MUST_USE enum weir_status source_memory_save(struct source_memory *memory, struct weir_error *error);

/**
 * Begins to save it on a thread of its own, so that the reading thread does not wait for a busy disk. Must not be
 * called again before source_memory_save_end() has returned the outcome.
 *
 * @return WEIR_AGAIN: it has begun; WEIR_OK: nothing had changed; if there is no thread, as source_memory_save()
 */
WEIR_MUST_USE enum weir_status source_memory_save_begin(struct source_memory *memory, struct weir_error *error);

/** @return WEIR_AGAIN: still saving; otherwise as source_memory_save(), for the memory as it was at the beginning */
WEIR_MUST_USE enum weir_status source_memory_save_end(struct source_memory *memory, struct weir_error *error);

/** Finishes a write in progress. NULL is fine. */
void source_memory_writer_free(struct source_memory_writer *writer);

/* ---- for sources ---- */

struct source_memory_stream *source_memory_find(const struct source_memory *memory, const char *path);
/** The first file that has this inode; the others follow by source_memory_file_next(). NULL: none has it. */
struct source_memory_file *source_memory_file_with(const struct source_memory *memory, uint64_t device, uint64_t inode);
struct source_memory_file *source_memory_file_next(const struct source_memory_file *file);
/** Sets which inode a file has; 0, 0: it no longer has any. */
void source_memory_file_place(struct source_memory *memory, struct source_memory_file *file, uint64_t device,
                              uint64_t inode);
/** Drops a file that belongs to no part. */
void source_memory_file_drop(struct source_memory *memory, struct source_memory_file *file);

/** @param names  borrowed until source_memory_names_remove() */
void source_memory_names_add(struct source_memory *memory, struct source_memory_names *names);
void source_memory_names_remove(struct source_memory *memory, const struct source_memory_names *names);
/** Whether some source names a path. */
bool source_memory_named(const struct source_memory *memory, const char *path);

/** With which of the prefixes a path begins; NULL: it may be a file's. */
const char *source_memory_prefix(const char *path);

/** Adds a stream. @return NULL: there are SOURCE_MEMORY_STREAMS_MAX already */

struct source_memory_stream *source_memory_add(struct source_memory *memory, const char *path);

/** Removes a stream by its index. If its path comes again, its positions will be higher than any before. */
void source_memory_remove(struct source_memory *memory, size_t index);

/** A stream that belongs to no memory. */
struct source_memory_stream *source_memory_scratch(const char *path);
void source_memory_scratch_free(struct source_memory_stream *stream);

/** The id under which limiters know the stream's positions: a hash of (collector id, path). */
void source_memory_stream_id(const struct source_memory *memory, const char *path, uint8_t id[SOURCE_ID_BYTES]);

struct source_memory_file *source_memory_file(const struct source_memory_stream *stream, uint32_t number);
struct source_memory_file *source_memory_file_add(struct source_memory *memory, struct source_memory_stream *stream);

/** The part of an incarnation, or NULL. */
struct source_memory_part *source_memory_part(const struct source_memory_stream *stream, uint32_t incarnation);
/** The newest part, or NULL. */
struct source_memory_part *source_memory_last_part(const struct source_memory_stream *stream);
/**
 * Adds a part, after the caller has set the end of the last one.
 *
 * @return NULL: the stream has SOURCE_MEMORY_PARTS_MAX, or incarnations are used up
 */
struct source_memory_part *source_memory_part_add(struct source_memory *memory, struct source_memory_stream *stream,
                                                  uint32_t file, uint64_t from);

/** Notes that the caller has changed a stream or file directly. */
void source_memory_changed(struct source_memory *memory);

/** Whether a part has been saved since it was added, or need not be. */
bool source_memory_part_saved(const struct source_memory *memory, const struct source_memory_part *part);

/** Notes that all before the position is acknowledged, and drops earlier parts. Ignores positions that go back. */
void source_memory_acknowledge(struct source_memory *memory, struct source_memory_stream *stream, uint64_t position);

/** Replaces a stream's notes. @param notes  JSON, an object; taken */
void source_memory_note(struct source_memory *memory, struct source_memory_stream *stream, struct weir_text *notes);

/** Drops files that are settled, belong to no part, and were not found for 7 days or are too many. */
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
