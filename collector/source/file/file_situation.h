/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is to see where a stream's lines end: of the file that was read, of what may follow it, and of the files
 * that were left. To observe changes nothing of the stream; what it learned is for file_rotation.c to do.
 */
#ifndef COLLECTOR_SOURCE_FILE_SITUATION_H
#define COLLECTOR_SOURCE_FILE_SITUATION_H

#include "collector/source/file/file_reading.h"

enum file_situation {
	/* whatever the file is */
	SITUATION_NO_ROOM,    /* too many parts are not acknowledged: none can be added */
	SITUATION_UNREADABLE, /* the path, or its directory, cannot be read */
	/* all parts are read */
	SITUATION_NOTHING_THERE, /* and nothing follows yet */
	SITUATION_NEXT_THERE,    /* and another file does */
	/* the file has no more lines, and nothing follows */
	SITUATION_QUIET,           /* it may grow */
	SITUATION_QUIET_OPEN_LINE, /* it may grow, and its last line has no newline */
	SITUATION_PACKED_CUT,      /* it is compressed, and ends in the middle of its data: the rest may come */
	SITUATION_PACKED_READ,     /* it is compressed */
	SITUATION_PACKED_OPEN_LINE,
	SITUATION_REMOVED, /* it has no name any more, and was quiet for long; followed files alone */
	/* the file has no more lines, and another follows */
	SITUATION_OVERLOOKED,       /* it lies at its path: one that was rotated away unseen, or interrupted, comes first */
	SITUATION_COPY_AT_PATH,     /* the other is its own copy */
	SITUATION_PACKED_SUCCEEDED, /* it is compressed */
	SITUATION_PACKED_CUT_SUCCEEDED,
	SITUATION_RETURNING,         /* it lies elsewhere, and the other was begun before */
	SITUATION_SUCCESSOR_SEEN,    /* it lies elsewhere, and a new one has lines: for the first time */
	SITUATION_SUCCESSOR_WAITING, /* ... but this one was written to just now */
	SITUATION_SUCCESSOR_DUE,     /* ... and this one is quiet, or the new one has waited long enough */
	/* the file does not hold any more what was read of it */
	SITUATION_TRUNCATED,            /* in place: cut, or begun anew */
	SITUATION_TRUNCATED_COPIED,     /* in place, and a copy of what it held lies beside it */
	SITUATION_TRUNCATED_UNREADABLE, /* in place, and what it holds cannot be read */
	/* the file is nowhere */
	SITUATION_GONE,
	SITUATION_REPLACED, /* and another is there to continue with */
	/* of a file that was left for its successor */
	SITUATION_LEFT_CLOSED, /* it is to be opened */
	SITUATION_LEFT_QUIET,
	SITUATION_LEFT_LINES,          /* late lines came */
	SITUATION_LEFT_REWRITTEN,      /* it is compressed, and has been written to since it was opened */
	SITUATION_LEFT_OVER,           /* it was quiet for long, or is compressed: nothing more is expected of it */
	SITUATION_LEFT_OVER_OPEN_LINE, /* ... and its last line without newline is one after all */
	SITUATION_LEFT_TRUNCATED,
	SITUATION_LEFT_UNREADABLE, /* it cannot be looked for just now */
	SITUATION_LEFT_ABSENT,     /* it was not found this time */
	SITUATION_LEFT_GONE,       /* it was not found often enough */
	SITUATION_COUNT
};

/* Where the file that is read lies: onward, and back to the first when it does so itself or another is read. */
enum file_phase {
	FILE_AT_PATH,   /* at the path; or none is read */
	FILE_AWAY,      /* elsewhere: renamed or removed */
	FILE_SUCCEEDED, /* elsewhere, and a new one with lines lies at the path, or was rotated away unseen */
};

/* What is known about that from one look to the next. Zero-initialised: nothing. */
struct file_outlook {
	enum file_phase phase;
	int64_t successor_ms; /* monotonic, of FILE_SUCCEEDED: since when */
	int64_t restless_ms;  /* monotonic: since when the directory has been changing; 0: it is at rest */
	bool missed;          /* there may be a file that was rotated away unseen */
	uint32_t looks;       /* how many scans more look for such files */
};

/* What comes next. */
struct file_successor {
	struct source_memory_file *known; /* gone on with */
	struct file_candidate fresh;      /* path set: begun */
	bool moved_in;                    /* the known one has another inode by now: it was synchronised from elsewhere */
	uint64_t device, inode;           /* then: these */
};

struct file_observation {
	enum file_situation situation;
	struct file_outlook outlook; /* as it is from now on */
	bool answered;               /* what kept the stream from beginning is over */
	int64_t again_ms;            /* monotonic: when to look again, whatever happens; 0: that cannot be said */
	struct file_successor next;
	struct file_finding found;      /* a copy, a file that was left, or what a truncated file holds */
	uint64_t from;                  /* of a truncated file: where it is gone on with */
	struct fingerprint fingerprint; /* what is known of it up to there */
	struct weir_error error;        /* what cannot be read */
};

enum { FILE_LOOKS_AFTER = 3 }; /* scans after a rotation that look again for files rotated away unseen */

/**
 * Looks at the file that is read, and at what may follow it.
 *
 * @param reading  what reading came to: FILE_READING_ALL or one below it
 * @param seen     the caller's to deinit
 */
void file_situation_observe(const struct file_stream *stream, const struct file_outlook *outlook,
                            enum file_reading reading, int64_t now_ms, struct file_observation *seen);

/** Looks at a file that was left, reading on in it if it is open. There is no outlook in what is seen. */
void file_situation_observe_left(const struct file_stream *stream, struct source_memory_file *file, int64_t now_ms,
                                 struct file_observation *seen);

void file_observation_deinit(struct file_observation *seen);

#endif
