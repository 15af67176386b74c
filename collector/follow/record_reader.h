/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one stream's chunks to records, one at a time.
 *
 * Splits lines, strips a CR, parses, counts, and makes dead letters of malformed
 * lines. A malformed line belongs to the next well-formed record of its stream: it
 * is counted and written when that record is taken, so that a cut between records
 * has counted exactly what is before it.
 */
#ifndef COLLECTOR_RECORD_READER_H
#define COLLECTOR_RECORD_READER_H

#include "collector/follow/clock_watch.h"
#include "collector/format/format.h"
#include "collector/input/lines.h"
#include "collector/send/dead_letter.h"
#include "collector/source/source.h"

enum { HINT_LINE_BYTES = 120, HINT_TRIES = 16, RECORDS_LOOKED_AT = 1000 };

/* What would help to read more of the lines, and the first line that shows it: for people. */
struct record_hint {
	char help[FORMAT_HELP_BYTES]; /* in words; "": nothing is known */
	char line[HINT_LINE_BYTES + 4];
};

/* What a reader has seen. The summary shows sums of these. */

struct record_counts {
	uint64_t lines; /* all of them, including empty, header and malformed ones */
	uint64_t bytes;
	uint64_t records; /* well-formed lines */
	uint64_t words;   /* records whose ip is not an address */
	uint64_t cut;     /* records whose line lacks its end */
	uint64_t clamped; /* records whose time was ahead of the clock by more than max_skew */
	uint64_t malformed[FORMAT_REASON_COUNT];
	struct record_hint unread;  /* lines that gave no record; of a sum: the first's */
	struct record_hint no_ip;   /* records without an ip */
	struct record_hint cut_off; /* records whose line lacked its end before it came here */
	struct record_hint forged;  /* records of a log in which lines may be forged as a whole */
};

void record_counts_add(struct record_counts *sum, const struct record_counts *more);
/** Lines that are no records, of whatever reason. */
uint64_t record_counts_malformed(const struct record_counts *counts);

struct record_reader {
	struct source_stream *stream; /* borrowed */
	struct format *format;        /* owned, as a header line belongs to one stream */
	const char *source_name;      /* borrowed from the configuration; NULL: it gives none */
	bool by_name;                 /* its records are for zones that name the source alone */

	struct dead_letters *dead; /* borrowed; NULL: malformed lines are only counted */
	struct source_chunk chunk;
	uint64_t incarnation; /* of the chunk's file: another file begins with its own header line */
	size_t at;            /* offset in the chunk of the first byte not yet read */
	uint32_t looked;      /* offset in the chunk before which newlines were searched */
	uint32_t next_end;    /* index in ends.ends of the next line's end */
	uint32_t next_line;   /* index in the chunk's positions */
	struct lines ends;
	/* the newest record, valid after WEIR_OK until the next call */
	struct weir_record record;
	struct weir_span line;
	uint64_t position;         /* just after its line */
	uint64_t taken_position;   /* after the newest record taken: a cut resumes here, but see format_held() */
	uint64_t fed_position;     /* `position` before the chunk */
	uint64_t begun_position;   /* the same before the newest chunk that `begins`: its source waits for no part before */
	uint64_t counted_position; /* after the furthest record taken: what is read again before it is not counted */
	struct record_counts counts;       /* up to and including the records taken */
	struct record_counts ahead;        /* of the newest record and the lines before it: added when it is taken */
	uint32_t hint_tries;               /* lines that were looked at for a hint */
	char refused[HINT_LINE_BYTES + 4]; /* the first malformed line since its owner emptied this: for people */
	enum format_reason refused_reason;
	bool ahead_malformed;          /* ahead.malformed or dead_letters has something */
	struct weir_text dead_letters; /* dead letters held back until the newest record is taken */
	uint32_t looked_records;       /* of the first records, RECORDS_LOOKED_AT at most */
	uint64_t looked_fields;        /* a bit for each field that one of these had, as the format's table has it */
	/* set by the collector and low_water.c */
	size_t source_place;      /* index of the stream's source in the configuration */
	uint64_t marked_position; /* position of the last mark: everything before it was sent */
	uint64_t safe_position;   /* everything before it is acknowledged; 0: the source was told */
	uint64_t safe_lines;      /* counts.lines at the last safe mark */
	/* of the lines that are read for the first time */
	int64_t newest_ms; /* the latest time in the chunk; -1: it has none */
	struct clock_watch clock;
	uint64_t
		ends_seen; /* how often its source had been read to the end before its last chunk, and 1 more; 0: no chunk */
};

/** Whether the newest line is read for the first time. */
static inline bool record_reader_is_fresh(const struct record_reader *reader)
{
	return reader->position > reader->counted_position;
}

/** @param format  taken: record_reader_deinit() frees it */
void record_reader_init(struct record_reader *reader, struct source_stream *stream, struct format *format,
                        struct dead_letters *dead);
void record_reader_deinit(struct record_reader *reader);

/** Gives it lines to read, once all earlier ones are read. Borrowed until record_reader_next() returns WEIR_AGAIN. */
void record_reader_feed(struct record_reader *reader, const struct source_chunk *chunk);

/** Reads the next well-formed record. @return WEIR_OK; WEIR_AGAIN: the chunk is read, feed another */
WEIR_MUST_USE enum weir_status record_reader_next(struct record_reader *reader);

/**
 * Takes the newest record, once it was used (or the stream has ended): counts it and the malformed lines before it.
 *
 * @param now_ms  for the rate of dead letters; 0 if there is no limit on it
 */
void record_reader_take(struct record_reader *reader, int64_t now_ms);

/** Takes what is left when the stream has ended: lines whose other parts did not come are malformed. */
void record_reader_end(struct record_reader *reader);

#endif
