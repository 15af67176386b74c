/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where lines come from: the collector's one interface to files, standard
 * input, Kafka topics, syslog and systemd's journal.
 *
 * A source of a kind (source_file.c, source_stdin.c, ...) has one or more
 * streams; each stream has its own identity and its own growing positions.
 * `collect` hands out whole lines of one stream, in order; `status` says where
 * each stream stands. What a source promises: a line is handed out once per
 * run, its position is that of the log, and after `resume` to a position it
 * continues with the line after it.
 *
 * @thread all calls on the sources that share one memory come from one thread,
 *         but for `status`, which may come from any
 */
#ifndef COLLECTOR_SOURCE_H
#define COLLECTOR_SOURCE_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/json/json_rules.h"

#include <stdatomic.h>

struct source_memory;

enum {
	SOURCE_ID_BYTES = 16,
	SOURCE_OFFSET_BITS = 40, /* position = incarnation << 40 | uncompressed byte offset after the line */
};

/*
 * One stream of lines. Owned by its source; the pointer stays valid until the
 * source is freed.
 */
struct source_stream {
	uint8_t id[SOURCE_ID_BYTES]; /* hash of (collector id, path first seen) */
	char *name;                  /* the path first seen, or "-": for people */
	uint32_t order;              /* place among the source's streams: a glob's files by path bytes */
	void *context;               /* the pipeline's: set and read by the caller alone */
	_Atomic uint64_t lines;      /* for status(): counted by whoever splits the chunks (relaxed), 0 if nobody does */
	_Atomic uint64_t zeros;      /* likewise: bytes of 0 that were cut off at the beginning of lines */
};

/*
 * Whole lines of one stream; borrowed from the source until the next collect() of the same stream, or of any. Its lines have at
 * most line_max_bytes each, newline not counted, but for too_long. One chunk never spans two incarnations.
 */
struct source_chunk {
	struct source_stream *stream;
	const char *data;  /* lines, each ended by '\n' but perhaps the last of a file (then `last_open`) */
	size_t length;     /* 0: nothing now */
	uint64_t position; /* of data[0]; a line's own position is position + the offset of the byte after its newline */
	/* NULL, or each line's own position, where positions are no bytes: they grow from line to line */
	const uint64_t *positions;
	/*
	 * In the first chunk of an incarnation that begins further down in its file: the file's first lines, whole, for
	 * formats with a header. Those above the limit are left out; what lies before data[0] and behind these is not here.
	 */
	struct weir_span before;
	bool last_open;   /* the last line has no newline: the file ended, or was rotated away */
	bool too_long;    /* data is the first part of one line above the limit; `skipped` further bytes follow it */
	uint64_t skipped; /* bytes of that line that are not in data, its newline included */
};

/* What "line_max" may be. */
enum { SOURCE_LINE_LEAST_BYTES = 1 << 10, SOURCE_LINE_MOST_BYTES = 1 << 20 };
#define SOURCE_LINE_BOUNDS .least = SOURCE_LINE_LEAST_BYTES, .most = SOURCE_LINE_MOST_BYTES

enum source_at_start { SOURCE_FROM_BEGINNING, SOURCE_FROM_END };

/**
 * Takes what people should know and no status shows: a file that is not read and why, bytes that are lost.
 *
 * @param place  of the source in the configuration: "sources[1]"
 * @thread that of the sources
 */
typedef void source_tell(void *context, const char *place, const char *words);

/* What a source needs from its surroundings. */
struct source_context {
	const uint8_t *collector_id; /* 16 bytes, used where memory is NULL (the memory has its own); NULL: zeros */
	bool once;                   /* read to the end and give WEIR_END; never follow */
	uint32_t line_max_bytes;     /* a longer line comes as too_long; 0: 64 KiB. A source's own "line_max" goes before */
	/*
	 * Which files were read, how far and under which incarnation (source_memory.h). One for all sources, so that two
	 * of them never read one file. Borrowed, outlives them. NULL: each source keeps its own for the run.
	 */
	struct source_memory *memory;
	source_tell *tell; /* NULL: nobody listens */
	void *tell_context;
	bool again; /* the source was open before in this run: what was accepted then is not refused now */
};

enum { SOURCE_OWN_COUNTS = 4 };

/* Counters of one stream, for /metrics, the summary and `status`. */
struct source_status {
	const char *name;
	bool whole;           /* of the source as a whole: its problem is that of all its streams */
	uint64_t position;    /* of the newest line handed out */
	uint64_t lag_bytes;   /* known bytes after it; for a .gz compressed bytes */
	bool counts_records;  /* lag_records is known */
	uint64_t lag_records; /* known records after it, at most */
	uint64_t size_bytes;  /* what is there in all, where known: for progress */
	int64_t lag_ms;       /* how long bytes have been waiting: 0 at the end */
	bool no_lag_time;     /* lag_ms is not known */
	uint64_t lines;
	uint64_t errors;                 /* failed opens and reads */
	uint64_t lost_bytes;             /* what was truncated or removed before it was read, as far as known */
	uint64_t lost_records;           /* what was removed before it was read, at most, where records are counted */
	uint64_t own[SOURCE_OWN_COUNTS]; /* what its kind alone counts: its metrics say what */
	char problem[256];               /* "" or what is wrong just now, in words */
	bool reads_on;                   /* the problem is what was lost lately: the stream is read all the same */
};

struct source_ops;
struct source_metric;

struct source {
	const struct source_ops *ops;
};

/*
 * A kind of source: what it says of itself, and what its sources do. Who uses sources asks here; nobody compares names
 * of kinds. What is NULL or false need not be said.
 */
struct source_ops {
	const char *type;                     /* as a configuration names it */
	const struct weir_json_rule *members; /* of its configuration, "type", "name" and "format" among them */
	bool endless;                         /* it listens, and has no end that --once could read to */
	bool replayable;                      /* what was handed out can be had again; else each line is at most once */
	bool names_files;                     /* its streams' names are paths, and looking at them takes nothing away */
	const char *head;                     /* the format of the head that each of its lines has */
	const struct source_metric *const *metrics; /* what is shown of each stream; NULL-terminated (source_metrics.h) */

	/** @param config  an element of "sources", without members that are not known */
	enum weir_status (*create)(const struct weir_json *config, const struct source_context *context,
	                           struct source **source, struct weir_error *error);
	/** Refuses two sources that would give the same lines under the same ids, or take them from each other. */
	enum weir_status (*apart)(const struct weir_json *config, const struct weir_json *other, struct weir_error *error);
	/**
	 * Says for people what a good configuration means.
	 *
	 * @param place   where lines come from is appended: "/var/log/nginx/access*.log"; "-" is standard input
	 * @param manner  how they are read is appended: "read to its end"
	 */
	void (*describe)(const struct weir_json *config, struct weir_text *place, struct weir_text *manner);

	/* ---- of a source ---- */

	/**
	 * The next lines.
	 *
	 * @param stream  NULL: any stream that has lines; else that one (the merge of --once asks so)
	 * @return WEIR_OK: chunk has lines; WEIR_AGAIN: none now (wait on fd()); WEIR_END: this stream (or, for NULL,
	 *         the whole source) will give no more; WEIR_IO: a stream failed for good in --once: error says which;
	 *         in follow mode failures are retried and shown by status
	 */
	enum weir_status (*collect)(struct source *source, struct source_stream *stream, struct source_chunk *chunk,
	                            struct weir_error *error);
	/** Streams known so far (the array may grow at collect()). */
	size_t (*streams)(struct source *source, struct source_stream ***streams);
	/** A pollable descriptor that becomes readable when collect() may have more, or -1: ask again in 100 ms. */
	int (*fd)(const struct source *source);
	/** The stream's lines up to this position are safe downstream: may be remembered (and files after it forgotten). */
	void (*acknowledge)(struct source *source, struct source_stream *stream, uint64_t position);
	/**
	 * Where to go on: the next collect() of this stream gives the line after this position, which it once had. Called
	 * before the first collect() of the source, for streams that a memory knew; without it a stream continues at its
	 * acknowledged position.
	 *
	 * @return WEIR_OK; WEIR_INVALID: the memory knows no such position, or the source cannot replay
	 */
	enum weir_status (*resume)(struct source *source, struct source_stream *stream, uint64_t position,
	                           struct weir_error *error);
	/** Fills up to `count` statuses; gives how many there are. Its pointers live as long as the source. @thread any */
	size_t (*status)(struct source *source, struct source_status *statuses, size_t count);
	void (*free)(struct source *source);
};

#endif
