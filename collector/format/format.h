/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log format: turns one line into a record, or says why it cannot.
 *
 * One file per kind (format_combined.c, format_json.c, ...), listed in
 * format_kinds.h. A format is created from its JSON in the configuration, is const
 * but for scratch that belongs to one thread, and never reads a clock.
 *
 * What a format remembers from line to line is at most the header that names a
 * file's columns, where what is written at once goes on, and the parts of lines that
 * are not whole yet; so each stream has a format object of its own, and a stream that
 * is taken up again in its middle is told that header, and read from before the first
 * of these parts.
 */
#ifndef COLLECTOR_FORMAT_H
#define COLLECTOR_FORMAT_H

#include "collector/record/format_reason.h"
#include "collector/record/unescape.h"
#include "common/base/status.h"
#include "common/bytes/address.h"
#include "common/json/json.h"
#include "common/record/record.h"
#include "common/record/served_host.h"
#include "common/record/served_method.h"
#include "common/record/served_path.h"

enum { FORMAT_LINE_MAX_BYTES = 1 << 20, FORMAT_HELP_BYTES = 320 };

struct weir_client_ip;
struct time_reader;

/* What a line is of what its program wrote at once, which may hold line feeds. */
enum format_lines {
	FORMAT_LINES_IN_ORDER, /* it lies between the others of it, as in a file */
	FORMAT_LINES_APART,    /* others of it may follow, and cannot be seen yet: each line came by itself */
	FORMAT_LINES_WHOLE,    /* it is all of it */
};

/* How the server escapes what a client wrote, where format_settle() is to undo it in the target and client_ip's header. */
enum format_escapes {
	FORMAT_ESCAPES_NONE,        /* not at all, or the format has undone it */
	FORMAT_ESCAPES_BACKSLASHES, /* as access logs do: unescape_log() */
	FORMAT_ESCAPES_HASHES,      /* as HAProxy does: unescape_hashes() */
};

/* The head of every format; what a kind needs comes after it in memory. */
struct format {
	/**
	 * Parses one line that is not empty.
	 *
	 * @param line    borrowed; no byte outside it is read; the record's spans point into it or into scratch
	 * @param record  filled on FORMAT_OK: time, cost and each wanted field (absent ones have at = NULL)
	 * @thread one thread per format object
	 */
	enum format_reason (*parse)(struct format *format, const char *line, uint32_t length, struct weir_record *record);
	void (*free)(struct format *format);
	/* Both NULL where no line depends on an earlier one; see format_begin() and format_header(). */
	void (*begin)(struct format *format, struct weir_span header);
	struct weir_span (*header)(const struct format *format);
	/* NULL where each line ends itself, but for take_over; see format_unfinished(), format_note_part(), format_held(), format_take_over(). */
	struct weir_span (*unfinished)(struct format *format);
	void (*note_part)(struct format *format, uint64_t before);
	uint64_t (*held)(const struct format *format);
	void (*take_over)(struct format *format, struct format *from);
	/* See format_behind(); NULL: what stands behind a line is nothing to it. */
	void (*behind)(struct format *format, const char *end, bool more);
	bool (*lacks)(const struct format *format, uint32_t field); /* see format_lacks(); NULL: it cannot be told */
	const char *const *(*values)(const struct format *format, uint32_t field); /* see format_values(); NULL: any */
	bool dash_is_absent;                                                       /* a lone "-" is no value of any field */
	const char *const *names; /* of all that its lines have, NULL-terminated; NULL: its options or the log name them */
	struct format *inner;     /* of the message after a head; NULL: there is none */
	const char *type;         /* as the configuration names it; NULL: it names the format of the message alone */
	bool has_options;         /* the configuration says more than the type */
	struct weir_client_ip *client_ip; /* owned; NULL: the ip stays as the line has it */
	int cost;                         /* the field with a record's cost, or -1 */
	enum format_reason malformed;     /* what parse() gives for a line that is not of this format */
	uint64_t unmatched;               /* lines that are not of this format, and were skipped as its options say */
	struct time_reader *time;         /* its own: who knows a time for lines that have none says so there */
	/* The group that a pattern lacks for the time: it serves only after a head that has one. NULL: none is missing. */
	const char *missing_time;
	/* Set before a line that lacks its end, as it is above the limit. A format that takes no such lines is not asked. */
	bool cut;
	bool takes_cut;
	struct weir_span tail; /* of such a line: its last bytes; absent where they are not known */
	/* For formats of which a record may have several lines. */
	enum format_lines lines;
	bool other_stream; /* the line is of the second of two streams that are one log, as standard error's */
	/* Set while the first lines of a file are looked at for its header: no parts of lines are kept of them. */
	bool looks_back;
	/* What format_settle() needs: which of the fields below are wanted, and room for what is not in the line. */
	bool settles, settles_ip, settles_path, settles_host, settles_method;
	const char *ip_name; /* the log's own name of the ip, where the options say it; NULL: the format knows it */
	bool reads_objects;  /* lines are objects of JSON */
	int target;          /* the field "target" where it is wanted, or -1 */
	enum format_escapes escapes;
	struct weir_served_path_room path_room;
	struct unescape_scratch escape_room;
	char ip_text[WEIR_ADDRESS_TEXT_BYTES];
	char host_text[WEIR_SERVED_HOST_BYTES];
};

/**
 * Creates a format from its configuration: a name, or an object with "type".
 *
 * @param config  errors name its place in the configuration (weir_json_fail); a cost or a header of "client_ip" that no
 *                line can have is one
 * @param fields  what the zones want; copied, with the fields that only this format needs (cost, client_ip) added
 *                after them
 * @param format  returned: format_free()
 */
WEIR_MUST_USE enum weir_status format_new(const struct weir_json *config, const struct weir_field_table *fields,
                                          struct format **format, struct weir_error *error);
void format_free(struct format *format);

/** What a format's configuration may be (common/json/json_shape.h); the name under which formats name it is "format". */
json_t *format_shape(void);

/** The same for what stands after a head, which has a time: its own may be missing. */
WEIR_MUST_USE enum weir_status format_new_inside(const struct weir_json *config, const struct weir_field_table *fields,
                                                 struct format **format, struct weir_error *error);

/**
 * The format of lines each of which has a head: that of the head itself, or that of the message after it.
 *
 * @param head    the name of the head's format; NULL: lines have none
 * @param config  of the one or the other
 */
WEIR_MUST_USE enum weir_status format_new_behind(const char *head, const struct weir_json *config,
                                                 const struct weir_field_table *fields, struct format **format,
                                                 struct weir_error *error);

/** The words of a reason; NULL for a number that no format has. */
const char *format_reason_text(enum format_reason reason);

/**
 * Gives the fields that mean the same in every format their one form: the client's `ip`, the `path`, the `target`, the
 * `host`, the `method`.
 */
enum format_reason format_settle(struct format *format, struct weir_record *record);

/** Parses a line (without its newline and the CR before it) and settles the record: what callers use. */
static inline enum format_reason format_parse(struct format *format, const char *line, uint32_t length,
                                              struct weir_record *record)
{
	if (length == 0)
		return FORMAT_SKIP;
	record->ip = WEIR_RECORD_IP_UNTOLD;
	record->cut = format->cut;
	record->settled = record->asks = false;
	record->times = 1;
	enum format_reason reason = format->parse(format, line, length, record);
	return reason == FORMAT_OK && format->settles && !record->settled ? format_settle(format, record) : reason;
}

/** Says when the lines that follow were written, at the latest, Unix ms: for times without a year. */
void format_set_reference(struct format *format, int64_t written_ms);

/**
 * Whether the newest time that was read had no zone, so that the source's "time_zone" said which.
 *
 * @param offset_s  returned: how far local times were ahead of UTC by it
 */
bool format_time_is_local(const struct format *format, int32_t *offset_s);

/** Whether the newest time that was read had no zone and exists twice, as the clock is set back; the earlier is meant. */
bool format_time_is_twice(const struct format *format);

/** What would help to read lines like this one, which was the last and gave no record, in words; "": nothing is known. */
void format_help(const struct format *format, enum format_reason reason, struct weir_span line,
                 char words[FORMAT_HELP_BYTES]);
/** The same for a line that gave a record without an `ip`. */
void format_help_client(const struct format *format, struct weir_span line, char words[FORMAT_HELP_BYTES]);
/** The same for a line that gave a record though it lacks its end. */
void format_help_cut(const struct format *format, char words[FORMAT_HELP_BYTES]);
/** For a line that gave a record: why lines of this log may be forged as a whole, by who sends requests; "": not known. */
void format_help_forged(struct weir_span line, char words[FORMAT_HELP_BYTES]);

/** Whether no line of this format can ever give a wanted field: seen from the configuration alone. */
bool format_lacks(const struct format *format, uint32_t field);

/** All values that a wanted field can have, NULL-terminated; NULL: others, too. */
static inline const char *const *format_values(const struct format *format, uint32_t field)
{
	return format->values != NULL ? format->values(format, field) : NULL;
}

/**
 * Says where the next line stands: at the beginning of a file (header absent), or further down in one whose header
 * line is known from before. A new format stands at the beginning of a file.
 *
 * @param header  what format_header() gave for that file; copied
 */
static inline void format_begin(struct format *format, struct weir_span header)
{
	if (format->begin != NULL)
		format->begin(format, header);
}

/** The header line of the file, to be remembered with a position in it; at is NULL if there is none. Borrowed. */
static inline struct weir_span format_header(const struct format *format)
{
	return format->header != NULL ? format->header(format) : (struct weir_span){0};
}

/**
 * Says what stands behind the lines that are parsed next: a format may look at it, so that it does not take a line for a
 * whole record which is a part of one.
 *
 * @param end   of the piece of memory in which these lines lie, with all that is there behind them; borrowed. NULL: nothing
 *              is known of that
 * @param more  what is there does not end here
 */
static inline void format_behind(struct format *format, const char *end, bool more)
{
	if (format->behind != NULL)
		format->behind(format, end, more);
}

/**
 * A line of which only the first parts have come, once no more of the file will: it is forgotten, so that each call gives
 * another. at is NULL if there is none.
 */
static inline struct weir_span format_unfinished(struct format *format)
{
	return format->unfinished != NULL ? format->unfinished(format) : (struct weir_span){0};
}

/**
 * Says where the newest line, which gave no record, stands: if it is the first part of one, format_held() tells.
 *
 * @param before  the position before it: that of the line before
 */
static inline void format_note_part(struct format *format, uint64_t before)
{
	if (format->note_part != NULL)
		format->note_part(format, before);
}

/**
 * The position before the oldest line of which only the first parts have come; UINT64_MAX: there is none, or too much
 * came behind it since. Who goes on behind the newest line without this object must begin there: the last part alone
 * would pass for a line.
 */
static inline uint64_t format_held(const struct format *format)
{
	return format->held != NULL ? format->held(format) : UINT64_MAX;
}

/** Takes the parts of lines that are not whole yet from a format of the same kind, which is to be freed. */
static inline void format_take_over(struct format *format, struct format *from)
{
	if (format->take_over != NULL && format->take_over == from->take_over)
		format->take_over(format, from);
}

#endif
