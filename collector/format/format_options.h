/*
 * What every format's configuration may say, read once: where the time is and how it is written, which of the log's
 * names stand for which fields, the cost, the client's address.
 */
#ifndef COLLECTOR_FORMAT_OPTIONS_H
#define COLLECTOR_FORMAT_OPTIONS_H

#include "collector/format/format.h"
#include "collector/record/time_text.h"

enum { FORMAT_NAME_MAX_BYTES = 256 };

/* Which of the common options a format takes; "type", "time_zone", "cost" and "client_ip" are every format's. */
enum {
	FORMAT_TAKES_FIELDS = 1, /* "fields" */
	FORMAT_TAKES_TIME = 2,   /* "time", "unit" */
	FORMAT_TAKES_YEAR = 4,   /* "year" */
};

struct format_options {
	struct field_table fields;      /* the zones', and behind them what only the cost and client_ip need */
	const char *sources[FIELD_MAX]; /* the log's own name of each wanted field, NULL for the others; owned */
	char *time_name;                /* the log's own name of the time; owned */
	struct time_reader time;
	int cost_field; /* -1: each record costs 1 */
};

/**
 * Reads the common options of a format and refuses unknown ones.
 *
 * @param config     a string (nothing but the format's name) or an object
 * @param takes      FORMAT_TAKES_…
 * @param own_names  the format's own options, NULL-terminated
 * @param format     gets its client_ip and time
 * @param options    to be released by format_options_deinit(), after failure too
 */
WEIR_MUST_USE enum weir_status format_options_init(struct format_options *options, const struct weir_json *config,
                                                   const struct field_table *fields, unsigned takes,
                                                   const char *const *own_names, struct format *format,
                                                   struct weir_error *error);

/** Says where the time is and in which unit, for a format that has no such options. */
void format_options_set_time(struct format_options *options, const char *name, enum time_unit unit);
void format_options_deinit(struct format_options *options);

/** Reads a record's cost from its fields. */
enum format_reason format_finish_cost(const struct format_options *options, struct record *record);

/** Reads a record's time, then its cost: the last step of most parses. */
enum format_reason format_finish(struct format_options *options, struct weir_span time, struct record *record);

static inline bool format_wants(const struct format_options *options, uint32_t field)
{
	return (options->fields.wanted >> field & 1) != 0;
}

/** An empty value is an absent one. */
static inline struct weir_span format_value(const char *at, uint32_t length)
{
	return (struct weir_span){.at = length > 0 ? at : NULL, .length = length};
}

/** The same where a lone '-' stands for nothing. */
static inline struct weir_span format_value_or_dash(const char *at, uint32_t length)
{
	bool absent = length == 0 || (length == 1 && at[0] == '-');
	return absent ? (struct weir_span){0} : (struct weir_span){.at = at, .length = length};
}

/* The constructors of the kinds, for format.c. */
enum weir_status format_combined_new(const struct weir_json *config, const char *type, const struct field_table *fields,
                                     struct format **format, struct weir_error *error);
enum weir_status format_json_new(const struct weir_json *config, const char *type, const struct field_table *fields,
                                 struct format **format, struct weir_error *error);
enum weir_status format_delimited_new(const struct weir_json *config, const char *type,
                                      const struct field_table *fields, struct format **format,
                                      struct weir_error *error);
enum weir_status format_logfmt_new(const struct weir_json *config, const char *type, const struct field_table *fields,
                                   struct format **format, struct weir_error *error);
enum weir_status format_syslog_new(const struct weir_json *config, const char *type, const struct field_table *fields,
                                   struct format **format, struct weir_error *error);
enum weir_status format_journal_new(const struct weir_json *config, const char *type, const struct field_table *fields,
                                    struct format **format, struct weir_error *error);
enum weir_status format_pattern_new(const struct weir_json *config, const char *type, const struct field_table *fields,
                                    struct format **format, struct weir_error *error);

/**
 * What stands behind a head: the head's format gives the time, where the message has none, and the fields that the
 * message leaves absent.
 *
 * @param head  the head's format, "syslog" or "journal", or an object with such a type
 * @param body  the message's
 */
enum weir_status format_message_new(const struct weir_json *head, const struct weir_json *body,
                                    const struct field_table *fields, struct format **format, struct weir_error *error);

/** The same where both are in one object: the message's format is its member "message". */
enum weir_status format_message_split(const struct weir_json *config, const struct field_table *fields,
                                      struct format **format, struct weir_error *error);

#endif
