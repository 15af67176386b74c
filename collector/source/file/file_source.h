/* SPDX-License-Identifier: Apache-2.0 */
/* The source itself: its logs, and when it looks for more. */
#ifndef COLLECTOR_SOURCE_FILE_SOURCE_H
#define COLLECTOR_SOURCE_FILE_SOURCE_H

#include "collector/source/file/file_index.h"
#include "collector/source/file/file_rotation.h"

struct file_watch;

/* One log that is read: a stream, through the rotations of its files. */
struct file_log {
	struct file_rotation rotation; /* first: a handle of the pipeline leads to it */
	struct file_source *source;    /* that it is of */
	uint32_t pattern;              /* place of its pattern in the configuration */
	uint64_t created_scan;
	bool scratch; /* the record is this log's own: a pattern that names nothing */
};

struct file_source {
	struct source source;
	struct file_shared shared;
	bool memory_owned;
	bool fresh;                     /* the memory held no stream of these patterns: this is the first run */
	struct file_log **logs;         /* shared.stream_count of them */
	struct source_stream **handles; /* theirs, for streams() */
	size_t capacity;                /* of both */
	struct file_index index;        /* logs by path, and by where a link leads */
	struct file_log **away;         /* those whose file does not lie at the path: away_count of them */
	size_t away_count, away_capacity;
	struct source_memory_names names; /* what it names, for other sources */
	struct file_watch *watch;         /* NULL where nothing is followed */
	uint64_t scans;                   /* how many there were */
	int64_t scanned_ms;               /* monotonic: when the last one ended */
	int64_t scan_ms;                  /* when the next is due */
	int64_t house_ms;                 /* when events are looked at next */
	struct file_log *taken;           /* the log of the last chunk, if that was small; or NULL */
	int64_t scan_took_ms;             /* the last one */
	uint64_t watched;                 /* what was there when directories were last watched: listing.changes and logs */
	int64_t forget_ms;                /* when files that are gone are next looked for in the memory */
	/* guarded by shared.mutex */
	bool *names_none; /* a pattern names no file */
	bool full;        /* the memory holds no more streams */
	char *overlap;    /* what is named and another source reads, in words; or NULL */
};

static inline struct file_source *file_source_of(struct source *source)
{
	return (struct file_source *)(void *)source;
}

static inline struct file_log *file_log_of(struct source_stream *handle)
{
	return (struct file_log *)(void *)handle;
}

/** Adds a log for a record that it claims. */
struct file_log *file_source_add(struct file_source *source, struct source_memory_stream *record, const char *path,
                                 uint32_t pattern);

/** The log of a path, or NULL. */
struct file_log *file_source_at(const struct file_source *source, const char *path);
/** Calls for the logs whose file lies at a path: their own, or where a link leads. */
void file_source_each_at(struct file_source *source, const char *path,
                         void (*call)(struct file_source *source, struct file_log *log));
/** Takes note of where a log's link leads by now. */
void file_source_resolve(struct file_source *source, struct file_log *log);
/** Takes note of whether a log's file lies at its path. */
void file_source_note_away(struct file_source *source, struct file_log *log);

/** Frees all logs. */
void file_source_clear(struct file_source *source);

/** The order of ties in a merge: the patterns as configured, a glob's files by path bytes. */
void file_source_put_in_order(struct file_source *source);

#endif
