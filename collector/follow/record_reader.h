/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one stream's chunks to records, one at a time.
 *
 * Splits lines, takes off a CR, parses, counts, and hands malformed lines to
 * the dead letter. A malformed line belongs to the next good record of its
 * stream: it is counted and kept when that record is taken, so that a cut
 * between records has counted exactly what lies before it.
 */
#ifndef COLLECTOR_RECORD_READER_H
#define COLLECTOR_RECORD_READER_H

#include "collector/format/format.h"
#include "collector/input/lines.h"
#include "collector/send/dead_letter.h"
#include "collector/source/source.h"

/* What a reader has seen. Sums of these are the summary. */
struct record_counts {
	uint64_t lines; /* all of them: empty, header and malformed too */
	uint64_t bytes;
	uint64_t records; /* well-formed */
	uint64_t words;   /* of them: those whose ip is no address */
	uint64_t clamped; /* times that lay ahead of the clock by more than max_skew */
	uint64_t malformed[FORMAT_REASON_COUNT];
};

void record_counts_add(struct record_counts *sum, const struct record_counts *more);

struct record_reader {
	struct source_stream *stream; /* borrowed */
	struct format *format;        /* owned: a header line belongs to one stream */
	const char *source_name;      /* borrowed from the configuration; NULL: it gives none */
	struct dead_letters *dead;    /* borrowed; NULL: malformed lines are only counted */
	struct source_chunk chunk;
	uint64_t incarnation; /* of the chunk's file: another file begins with its own header line */
	size_t at;            /* in the chunk: the first byte not yet read */
	uint32_t looked;      /* in the chunk: newlines before it were found */
	uint32_t next_end;    /* place in ends.ends of the next line's end */
	uint32_t next_line;   /* place in the chunk's positions */
	struct lines ends;
	/* the newest record, valid after WEIR_OK until the next call */
	struct record record;
	struct weir_span line;
	uint64_t position;             /* just after its line */
	uint64_t taken_position;       /* after the newest record taken: where a cut resumes */
	uint64_t counted_position;     /* after the furthest record taken: what is read again up to there counts no more */
	struct record_counts counts;   /* up to and with the records taken */
	struct record_counts ahead;    /* of the newest record and what came before it: added when it is taken */
	bool ahead_malformed;          /* ahead.malformed or dead letters hold something */
	struct weir_text dead_letters; /* dead letters held back with it */
	/* the follower's own */
	size_t source_place;      /* of the stream's source in the configuration */
	uint64_t marked_position; /* up to where it was told that everything is sent */
	uint64_t safe_position;   /* up to where it has arrived; 0: its source knows */
	uint64_t safe_lines;      /* counts.lines up to there */
};

/** Whether the newest line is read for the first time. */
static inline bool record_reader_is_fresh(const struct record_reader *reader)
{
	return reader->position > reader->counted_position;
}

/** Takes the format on success and failure alike: freed by deinit. */
void record_reader_init(struct record_reader *reader, struct source_stream *stream, struct format *format,
                        struct dead_letters *dead);
void record_reader_deinit(struct record_reader *reader);

/** Gives it lines to read; those before are all read. Bytes are borrowed until next() gives WEIR_AGAIN. */
void record_reader_feed(struct record_reader *reader, const struct source_chunk *chunk);

/** The next well-formed record of the chunk: WEIR_OK; WEIR_AGAIN: the chunk is read, feed another. */
WEIR_MUST_USE enum weir_status record_reader_next(struct record_reader *reader);

/**
 * The newest record was used (or the stream has ended): it counts, with the malformed lines before it.
 *
 * @param now_ms  for the dead letter's rate; 0 where no rate is kept
 */
void record_reader_take(struct record_reader *reader, int64_t now_ms);

#endif
