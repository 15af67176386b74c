/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ready formats: each has a reader that takes a line apart from left to right, into parts with fixed names.
 *
 * Readers instead of expressions, for two reasons: a reader knows which parts a stranger can write, so that no text in
 * them becomes the address; and it looks at each byte a fixed number of times, whatever the line.
 *
 * A new one is a file with a read function, its parts and its struct format_kind, which has format_ready_create().
 */
#ifndef COLLECTOR_FORMAT_READY_H
#define COLLECTOR_FORMAT_READY_H

#include "collector/format/format_options.h"
#include "collector/format/line_text.h"
#include "collector/format/repeated_line.h"

enum { READY_PARTS_MAX = 24 };

enum ready_outcome {
	READY_OK,
	READY_NO_MATCH,  /* not a line of this format: "unmatched" says what becomes of it */
	READY_AMBIGUOUS, /* a line of this format in which strangers wrote what may be the address: malformed */
};

/* What is known of the lines behind one, of a reader with record_bytes. */
struct ready_stream {
	const char *end; /* of the piece of memory in which they lie; NULL: nothing is known */
	bool more;       /* of the log, behind that end */
	/* The reader's own. */
	bool seen_in_lines;    /* a record that may have several lines was seen */
	const char *looked_to; /* what it has looked at behind a line, within that piece; NULL: nothing */
};

/* A line taken apart. The reader finds every part absent, `times` 1, and nothing cut. */
struct ready_line {
	struct weir_span parts[READY_PARTS_MAX];
	uint32_t times;  /* for how many records the line stands */
	bool cut;        /* it lacks its end, where the address may have been */
	bool ends_early; /* it lacks its end, behind the address: what is there counts */
	/* Only of a reader with record_bytes. */
	enum format_lines lines;
	struct ready_stream *stream;
	bool opens; /* lines behind it may be of its record */
};

struct ready_reader {
	const char *const *parts; /* names, NULL-terminated; the first is the time */
	const char *const
		*events; /* all that the part "event" can be, NULL-terminated; NULL: others, too, or there is none */
	/*
	 * The most bytes, line feeds included, of a record in which strangers may write line feeds, and which its program
	 * writes at once; 0: each line is a record. What such a line is believed for is the reader's to say. Of the lines that
	 * follow one which opens a record, within so many bytes from its beginning, none is believed: they are ambiguous.
	 */
	uint32_t record_bytes;
	bool dash_is_absent; /* a lone "-" is no value of any part */
	bool escapes;        /* parts are escaped as in an access log: unescape_log() */
	enum ready_outcome (*read)(struct weir_span line, struct ready_line *ready);
	/* The same behind a head that was split off; NULL where a line has none. */
	enum ready_outcome (*read_message)(struct weir_span message, struct ready_line *ready);
};

/* A program's message behind its head. Of one that is repeated it is the message within, for which the line stands so often. */
static inline struct weir_span ready_message(struct weir_span message, struct ready_line *ready)
{
	ready->times = repeated_take(&message, &ready->cut);
	return message;
}

/** The function `create` of a ready kind. */
WEIR_MUST_USE enum weir_status format_ready_create(const struct weir_json *config, const struct format_kind *kind,
                                                   const struct weir_field_table *fields, struct format **format,
                                                   struct weir_error *error);

/** The function `create_inside` of a ready kind whose reader has read_message. */
WEIR_MUST_USE enum weir_status format_ready_create_inside(const struct weir_json *config,
                                                          const struct format_kind *kind,
                                                          const struct weir_field_table *fields, struct format **format,
                                                          struct weir_error *error);

extern const struct weir_json_rule format_ready_options[];

#endif
