/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where lines come from: the collector's one interface to files, standard
 * input, topics, queues, syslog and systemd's journal.
 *
 * A source of some kind (source_file.c, source_stdin.c, ...) has one or more
 * streams; each stream has its own identity and its own increasing positions.
 * `collect` returns whole lines of one stream, in order; `status` reports the state
 * of each stream. A source guarantees that a line is returned once per run, that
 * its position is that of the log, and that after `resume` to a position it
 * continues with the line after it.
 *
 * @thread all calls on the sources that share one memory come from one thread,
 *         except `status`, which may come from any
 */
#ifndef COLLECTOR_SOURCE_H
#define COLLECTOR_SOURCE_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/json/json_rules.h"

#include <stdatomic.h>

struct weir_field_table;
struct source_memory;
struct weir_bus;
struct weir_log;
struct weir_policy;

enum {
	SOURCE_ID_BYTES = 16,
	SOURCE_OFFSET_BITS = 40, /* position = incarnation << 40 | uncompressed byte offset after the line */
};

/*
 * One stream of lines. Owned by its source; the pointer stays valid until the
 * source is freed.
 */
struct source_stream {
	uint8_t id[SOURCE_ID_BYTES]; /* a file's: hash of (collector id, path first seen); other kinds have their own */
	char *name;                  /* for people: a file's path first seen, "-", or as the kind names it */
	bool is_common;              /* the id is the same in every collector, and several may read the stream as one */
	uint32_t order;              /* rank among the source's streams: a glob's files by path bytes */
	void *context;               /* only the caller sets and reads it */
	_Atomic uint64_t lines;      /* for status(): set by the caller, which splits the chunks (relaxed); 0 otherwise */
	_Atomic uint64_t zeros;      /* likewise: bytes of 0 that were cut off at the beginning of lines */
};

/*
 * Whole lines of one stream; borrowed from the source until the next collect() of the same stream, or of any. Each line
 * has at most line_max_bytes, without its newline, except if too_long. A chunk never spans two incarnations.

 */
struct source_chunk {
	struct source_stream *stream;
	const char *data;  /* lines, each ended by '\n', except perhaps the last of a file (then `last_open`) */
	size_t length;     /* 0: nothing now */
	uint64_t position; /* of data[0]; a line's own position is position + the offset of the byte after its newline */
	/* NULL, or each line's own position, if positions do not count bytes: they increase from line to line */
	const uint64_t *positions;
	/* Of lines with such positions: they can be read again from any of them, however much came since. */
	bool keeps;
	/*
	 * In the first chunk of an incarnation that begins in the middle of its file: the file's first whole lines, for
	 * formats with a header. Too long ones are left out; what is between these and data[0] is not here.
	 */
	struct weir_span before;
	bool
		begins; /* another file begins, or is gone on with, though its positions do not tell: with `before`, as above */
	size_t behind;    /* bytes behind data that can be looked at: of lines that come next */
	bool more;        /* what stands behind these may have been written at once with its last lines */
	bool last_open;   /* the last line has no newline: the file ended, or was rotated away */
	bool too_long;    /* data is the first part of one line above the limit */
	uint64_t skipped; /* how many bytes of that line are not in data, including its newline */
	/* Of such a line: its last bytes, SOURCE_TAIL_MOST_BYTES at most, without its newline. Absent: they are not known. */
	struct weir_span tail;
	int64_t written_ms; /* Unix ms: when the lines were written, at the latest, for times without a year; 0: unknown */
};

/* The bounds of "line_max", and what is kept of the end of a longer line. */
enum { SOURCE_TAIL_MOST_BYTES = 64 << 10, SOURCE_LINE_LEAST_BYTES = 1 << 10, SOURCE_LINE_MOST_BYTES = 1 << 20 };

/* How often a line that was there to be read is judged, through crashes of weir and of what it reads from. */
enum source_guarantee {
	SOURCE_AT_MOST_ONCE = 1, /* it cannot be read again: what was not yet acknowledged is lost */
	SOURCE_AT_LEAST_ONCE,    /* it is read again until it is acknowledged, and may be judged again */
	SOURCE_EXACTLY_ONCE,     /* read again under the same position, by which limiters know it */
};

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
	const uint8_t *collector_id; /* 16 bytes, used if memory is NULL (a memory has its own); NULL: zeros */
	bool once;                   /* read to the end and return WEIR_END; never follow */
	bool looks;              /* beside `once`: only whether it can be made; no server is asked, and nothing is read */
	uint32_t line_max_bytes; /* a longer line comes as too_long; 0: 64 KiB. A source's own "line_max" overrides it */
	/*
	 * Which files were read, up to where, and under which incarnation (source_memory.h). All sources share one, so that
	 * no two of them read one file. Borrowed, must outlive them. NULL: each source keeps its own for the run.
	 */
	struct source_memory *memory;
	bool forgets; /* the memory ends with a run that follows nothing: it need not know beginnings of what is not read */
	source_tell *tell; /* NULL: nobody listens */
	void *tell_context;
	/* For the source of decisions; NULL: there is nothing to read. Borrowed; *policy is the one in force. */
	struct weir_bus *bus;
	const struct weir_policy *const *policy;
	const struct weir_log *log; /* of a listener's certificates; NULL: nothing is said */
	bool again;                 /* the source was open before in this run: what was accepted then is not refused now */
};

/* The indexes of `own` that all kinds which read messages have: what has no line in it, what the server gave again. */
enum { SOURCE_OWN_SKIPPED, SOURCE_OWN_AGAIN, SOURCE_OWN_COUNTS = 8 };

/* Counters of one stream, for /metrics, the summary and `status`. */
struct source_status {
	const char *name;
	bool whole;                      /* it is the status of the source as a whole: its problem concerns all streams */
	enum source_guarantee guarantee; /* of the stream, if it is not that of its kind; else 0 */
	uint64_t position;               /* of the newest line handed out */
	uint64_t lag_bytes;              /* bytes known to exist after it; for a .gz file, compressed bytes */
	bool counts_records;             /* lag_records is known */
	uint64_t lag_records;            /* upper bound of the records after it */
	uint64_t size_bytes;             /* the total size, if known: to show progress */
	int64_t lag_ms;                  /* how long unread data has been waiting; 0 at the end */
	bool no_lag_time;                /* lag_ms is not known */
	uint64_t lines;
	uint64_t errors;         /* failed opens and reads */
	uint64_t lost_bytes;     /* truncated or removed before they were read, as far as known */
	uint64_t unknown_losses; /* times that it is not known how much was lost, if anything was */
	uint64_t lost_records;   /* upper bound of the records removed before they were read, if records are counted */
	uint64_t own[SOURCE_OWN_COUNTS]; /* counters of its kind alone; the kind's metrics name them */
	char problem[256];               /* the present problem, for people; "": none */
	bool reads_on;                   /* the problem is a recent loss, and the stream is still being read */
	bool well;                       /* of a kind that tells at once: what it reads was reached, and gives its bytes */
	bool absent;                     /* the problem is that there is nothing to read, and nothing is unread by it */
};

/* What a source that is configured no more has left in the state directory. */
struct source_left {
	int64_t end_ms;           /* set by the caller: when to stop counting, monotonic */
	uint64_t requests, lines; /* that were not read */
	bool more;                /* than these: not all of it could be counted in time */
};

struct source_ops;
struct source_metric;

struct source {
	const struct source_ops *ops;
};

/*
 * A kind of source: its description, and its functions. Users of sources ask here and never compare the names of kinds.
 * A member that does not apply may be NULL or false.
 */
struct source_ops {
	const char *type;                     /* its "type" in a configuration */
	const struct weir_json_rule *members; /* of its configuration, including "type", "name" and "format" */
	bool endless;                         /* it listens, and has no end that --once could read to */
	bool replayable;                      /* lines can be read again, from a position */
	enum source_guarantee guarantee;      /* of its streams; where they differ, the weakest: status() says each's */
	bool tells_at_once;     /* collect() takes nothing away, and soon tells whether it can be read: for --check */
	bool names_files;       /* its streams' names are paths, and reading those files takes nothing away */
	const char *head;       /* the format of the header that each of its lines has */
	const char *own_name;   /* what zones call it, whatever its "name"; only zones that do take its records */
	const char *own_format; /* the format of its lines, with times in ms; a configuration gives none */
	/** "fields" of that format, which lack what keeps its name: returned, json_decref(). Else NULL. */
	json_t *(*own_fields)(const struct weir_field_table *fields);
	const struct source_metric *const *metrics; /* of each stream; NULL-terminated (source_metrics.h) */

	/** @param config  an element of "sources", without unknown members */
	enum weir_status (*create)(const struct weir_json *config, const struct source_context *context,
	                           struct source **source, struct weir_error *error);
	/** Refuses two sources that would provide the same lines under the same ids, or take lines from each other. */
	enum weir_status (*apart)(const struct weir_json *config, const struct weir_json *other, struct weir_error *error);
	/** Refuses a policy of which a zone would take this source's records for what they are not. */
	enum weir_status (*fits)(const struct weir_json *config, const struct weir_policy *policy,
	                         struct weir_error *error);
	/**
	 * Describes a checked configuration for people.
	 *
	 * @param place   appends where lines come from: "/var/log/nginx/access*.log"; "-" is standard input
	 * @param manner  appends how they are read: "read to its end"
	 */
	void (*describe)(const struct weir_json *config, struct weir_text *place, struct weir_text *manner);

	/** Appends what is dangerous in a source's configuration, and what to do. NULL, and nothing appended: nothing is. */
	void (*doubt)(const struct source *source, struct weir_text *words);

	/**
	 * Of a kind that keeps what it takes in "spool-NAME" in the state directory: counts what nobody has read of one.
	 *
	 * @param memory  what is remembered of all sources; nothing is changed
	 * @return WEIR_OK; WEIR_LOCKED: another process has it; otherwise as of reading files
	 */
	enum weir_status (*count_left)(const char *directory, const char *name, const struct source_memory *memory,
	                               struct source_left *left, struct weir_error *error);

	/**
	 * Of the same kinds: whether a source that starts could take such a directory. Takes no lock and changes nothing.
	 *
	 * @return WEIR_OK, also where there is none; otherwise as create()
	 */
	enum weir_status (*check_spool)(const char *directory, struct weir_error *error);

	/* ---- functions of a source ---- */

	/**
	 * Reads the next lines.
	 *
	 * @param stream  NULL: any stream that has lines; otherwise that one (for the merge of --once)
	 * @return WEIR_OK: chunk has lines; WEIR_AGAIN: none now (wait on fd()); WEIR_END: this stream (or, for NULL,
	 *         the whole source) has no more; WEIR_IO: a stream failed for good in --once: error says which;
	 *         in follow mode failures are retried and shown by status
	 */
	enum weir_status (*collect)(struct source *source, struct source_stream *stream, struct source_chunk *chunk,
	                            struct weir_error *error);
	/** Whether a file at this path, which has no links in it, would be read once it is there. NULL: none would. */
	bool (*would_read)(const struct source *source, const char *path);
	/** Streams known so far (the array may grow at collect()). */
	size_t (*streams)(struct source *source, struct source_stream ***streams);
	/** A pollable descriptor that becomes readable when collect() may have more, or -1: ask again in 100 ms. */
	int (*fd)(const struct source *source);
	/** Says that the lines up to this position are safe downstream: it may be saved, and files before it forgotten. */
	void (*acknowledge)(struct source *source, struct source_stream *stream, uint64_t position);
	/**
	 * Sets where to continue: the next collect() of this stream returns the line after this position, which an earlier
	 * line had. Called before the first collect() of the source, for streams that a memory has. Without it a stream
	 * continues at its acknowledged position.
	 *
	 * @return WEIR_OK; WEIR_INVALID: the memory has no such position, or the source cannot replay
	 */
	enum weir_status (*resume)(struct source *source, struct source_stream *stream, uint64_t position,
	                           struct weir_error *error);
	/** Fills up to `count` statuses. Pointers in them last as long as the source. @return how many exist @thread any */
	size_t (*status)(struct source *source, struct source_status *statuses, size_t count);
	void (*free)(struct source *source);
};

#endif
