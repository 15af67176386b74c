/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of lines that are not whole yet: container engines and journald cut long lines.
 *
 * Where a part begins is often a stranger's choice, so a part alone may look like a line with any address in it. Parts
 * are joined by a key, which says whose line it is; a part that fits to none is no line. What is kept has a bound: the
 * line that began first is given up, and then none of it passes for a line.
 */
#ifndef COLLECTOR_LINE_PARTS_H
#define COLLECTOR_LINE_PARTS_H

#include "collector/record/format_reason.h"
#include "common/base/span.h"
#include "common/base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	LINE_PARTS_LINES_MAX = 256,
	LINE_PARTS_LINE_MAX_BYTES = 1 << 20,
	LINE_PARTS_TAIL_BYTES = 64 << 10, /* of a longer one, as of one that its source cuts */
	LINE_PARTS_BYTES_MAX = 16 << 20,
	/* A line whose end has not come when so much came behind its beginning is not waited for: what is read again has a bound. */
	LINE_PARTS_HELD_MOST_BYTES = 16 << 20,
	/* The rest of a part of which it cannot be told whose it is comes within so much: shippers read a file 32 KiB at a time. */
	LINE_PARTS_UNNAMED_BYTES = 1 << 20,
};

/* Whose line a part is of: a hash of what the log says, or a number. */
struct line_key {
	uint64_t low, high;
};

/* What is known of a line that may be a part of one. */
struct line_part {
	struct line_key key;
	bool named;      /* there is a key; false: it cannot be told whose it is */
	bool more;       /* further parts follow */
	bool continues;  /* it is not the first, and so never a line by itself */
	bool lost;       /* its text is not there: neither is the line */
	bool looks_back; /* nothing is kept of it: only whether it is a line by itself is asked */
	uint32_t number; /* from 1; 0: they are not numbered */
};

enum line_parts_state {
	LINE_PARTS_GATHERED, /* all that came is here, or its first bytes and its last */
	LINE_PARTS_REFUSED,  /* a part is missing, or there is too much of others: its end is waited for */
	LINE_PARTS_TOLD,     /* the same, and it was counted with a part without text */
};

struct open_line {
	struct line_key key;
	enum line_parts_state state;
	struct weir_text text; /* LINE_PARTS_LINE_MAX_BYTES, and behind these what came last; empty where it is refused */
	uint32_t next;         /* the number of the part that is waited for; 0: they are not numbered */
	bool noted;            /* `before` is known */
	uint64_t before;       /* the position before the first of its parts */
	uint64_t from;         /* line_parts.bytes at the first of them */
};

/* Owned by one thread; zero-initialised is empty, but for `newest`: line_parts_init(). */
struct line_parts {
	struct open_line *lines;
	uint32_t count, capacity;
	int newest;             /* what the last line is a part of; -1: it is none, or the last one */
	uint64_t bytes;         /* of all lines */
	uint64_t gathered;      /* bytes of all that is here */
	uint64_t unnamed_bytes; /* `bytes` at the newest part of which is not known whose it is; 0: there was none */
	struct weir_text whole; /* what the last line was joined to */
	struct weir_span tail;  /* of the last line: its end, where it is too long to be whole; else absent */
};

void line_parts_init(struct line_parts *parts);
void line_parts_deinit(struct line_parts *parts);

/** Says that a line comes, before anything else is asked about it. @param length  with all that stands around it */
static inline void line_parts_next(struct line_parts *parts, uint32_t length)
{
	parts->bytes += length;
	parts->newest = -1;
	parts->tail = (struct weir_span){0};
}

/** Whether a line without any mark may be the rest of one, so that it has to be told whose it is. */
static inline bool line_parts_wait(const struct line_parts *parts)
{
	return parts->count > 0 || parts->unnamed_bytes > 0;
}

/**
 * Joins a line to the parts before it.
 *
 * @param text  the line; returned: the whole one, valid until line_parts_join() gives another. Of one that is longer than
 *              LINE_PARTS_LINE_MAX_BYTES it is the beginning, and `tail` is its end
 * @return FORMAT_OK: it is whole; FORMAT_SKIP: it is a part of one; FORMAT_LINE_TOO_LONG: with it ends a line of which
 *         not all is here, or there was no room for one; FORMAT_LEFT_OUT: its text is not there, and the line was not
 *         counted yet; FORMAT_AMBIGUOUS: it may be a part, and whose cannot be told
 */
enum format_reason line_parts_join(struct line_parts *parts, const struct line_part *part, struct weir_span *text);

/** See format_unfinished(), format_note_part(), format_held() and format_take_over(). */
struct weir_span line_parts_unfinished(struct line_parts *parts);
/** @return whether the last line is a part */
bool line_parts_note(struct line_parts *parts, uint64_t before);
uint64_t line_parts_held(const struct line_parts *parts);
void line_parts_take_over(struct line_parts *parts, struct line_parts *from);

#endif
