/*
 * A log format: turns one line into a record, or says why it cannot.
 *
 * One file per kind (format_combined.c, format_json.c, ...), found by name in
 * format.c. A format is created from its JSON in the configuration, is const
 * but for scratch that belongs to one thread, and never reads a clock.
 */
#ifndef COLLECTOR_FORMAT_H
#define COLLECTOR_FORMAT_H

#include "collector/record.h"
#include "common/json.h"
#include "common/status.h"

enum { FORMAT_LINE_MAX_BYTES = 1 << 20 };

/* Why a record was refused; format_reason_text() gives the words that counters and the dead letter show. */
enum format_reason {
	FORMAT_OK = 0,
	FORMAT_SKIP, /* no record and nothing wrong: a header, an empty line, a comment */
	FORMAT_NO_TIME,
	FORMAT_BAD_TIME,
	FORMAT_TIME_RANGE,
	FORMAT_LINE_TOO_LONG,
	FORMAT_BAD_COST,
	FORMAT_NOT_COMBINED,
	FORMAT_NOT_COMMON,
	FORMAT_NOT_JSON,
	FORMAT_NOT_DELIMITED,
	FORMAT_NOT_LOGFMT,
	FORMAT_NO_MATCH,
	FORMAT_REASON_COUNT,
};

const char *format_reason_text(enum format_reason reason);

struct format {
	/**
	 * Parses one line (without its newline; a CR before it is removed by the caller).
	 *
	 * @param line    borrowed; the record's spans point into it or into the format's scratch
	 * @param record  filled on FORMAT_OK: time, cost and each wanted field (absent ones have at = NULL)
	 * @thread one thread per format object
	 */
	enum format_reason (*parse)(struct format *format, const char *line, uint32_t length, struct record *record);
	void (*free)(struct format *format);
};

/**
 * Creates a format from its configuration: a name, or an object with "type".
 *
 * @param fields  borrowed, must outlive the format, complete: every wanted field is known
 * @param where   JSON path of config, for errors (weir_json_fail)
 */
WEIR_MUST_USE enum weir_status format_new(const struct weir_json *config, const struct field_table *fields,
                                          struct format **format, struct weir_error *error);

/** Parses a line and applies client_ip: what callers use. */
static inline enum format_reason format_parse(struct format *format, const char *line, uint32_t length,
                                              struct record *record)
{
	return format->parse(format, line, length, record);
}

void format_free(struct format *format);

#endif
