/* SPDX-License-Identifier: Apache-2.0 */
/* A stream through the rotations of its files: what follows where its lines end. */
#ifndef COLLECTOR_SOURCE_FILE_ROTATION_H
#define COLLECTOR_SOURCE_FILE_ROTATION_H

#include "collector/source/file/file_overlap.h"
#include "collector/source/file/file_situation.h"

struct file_rotation {
	struct file_stream stream; /* first: a handle of the pipeline leads to it */
	struct file_outlook outlook;
	uint32_t incarnation; /* that the outlook's phase is of */
	bool away;            /* in the list of those whose file does not lie at the path */
	/* what lay at the path and was to come next, as long as nothing was begun; inode 0: nothing */
	struct file_awaited {
		uint64_t device, inode, size;
	} awaited;
	struct file_tail tail; /* of a file that was closed as nobody writes to it, until another is read */
	struct stat sign;      /* of what lay at the path when no file was open and nothing came next; all 0: nothing */
};

enum file_action {
	ACTION_WAIT,           /* until something changes, or the next look is due */
	ACTION_END,            /* no more lines, ever */
	ACTION_FINISH,         /* the same, unless there are late lines */
	ACTION_FAIL,           /* the problem is stated, and retried later where files are followed */
	ACTION_CLOSE_AND_FAIL, /* the same; then the file is looked for afresh */
	ACTION_READ_ON,        /* to the file's end once more */
	ACTION_REOPEN,         /* the file is looked for afresh */
	ACTION_BEGIN,          /* what comes next begins */
	ACTION_INTERRUPT,      /* ... and the file continues after it */
	ACTION_LEAVE,          /* ... and the file is left with its open line */
	ACTION_LEAVE_AT_LINE,  /* ... and the file is left after its last whole line */
	ACTION_SETTLE,         /* the file ends, with its open line; what comes next begins, if it is there */
	ACTION_HAND_OUT_REST,  /* the open line is given, and the file continues after it */
	ACTION_START_OVER,     /* what the file held is lost; what it holds is another */
	ACTION_GO_ON_IN_COPY,
	ACTION_GIVE_UP, /* what was not read of the file is lost */
	/* with a file that was left */
	ACTION_OPEN_LEFT,
	ACTION_COUNT_ABSENCE,
	ACTION_INSERT_LINES,     /* its late lines are a part of their own */
	ACTION_INSERT_OPEN_LINE, /* so is its last line, and then nothing more is expected of it */
	ACTION_CLOSE_LEFT,       /* it is looked for afresh */
	ACTION_SETTLE_LEFT,      /* nothing more is expected of it */
};

/** What a situation asks for. @param follow  the files are followed, and not read once to their end */
enum file_action file_rotation_decide(enum file_situation situation, bool follow);

enum file_step {
	FILE_STEP_LINES,
	FILE_STEP_AGAIN,   /* it went through many parts, or much of one line, without a line: ask again */
	FILE_STEP_NOTHING, /* not just now */
	FILE_STEP_END,     /* no more, ever */
	FILE_STEP_FAILED,  /* no more, and that is an error; only where nothing is followed */
};

/** The next lines. */
enum file_step file_rotation_next(struct file_rotation *rotation, int64_t now_ms, struct source_chunk *chunk,
                                  struct weir_error *error);

/** Nothing is there to be read: gives back what a stream that waits does not need. */
void file_rotation_rest(struct file_rotation *rotation);

/** With each scan, of a stream that is followed: looks at files that were left, and at whether there may be lines. */
void file_rotation_tick(struct file_rotation *rotation, int64_t now_ms);

/** There may be a file that was rotated away unseen. */
void file_rotation_inspect(struct file_rotation *rotation);

/** Whether the file that is read does not lie at the path. */
bool file_rotation_away(const struct file_rotation *rotation);

#endif
