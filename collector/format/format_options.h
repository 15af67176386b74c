/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every format's configuration may say, read once: where the time is and how it is written, which of the log's
 * names stand for which fields, the cost, the client's address.
 */
#ifndef COLLECTOR_FORMAT_OPTIONS_H
#define COLLECTOR_FORMAT_OPTIONS_H

#include "collector/format/format_kinds.h"
#include "collector/record/time_text.h"

enum { FORMAT_NAME_MAX_BYTES = 256, FORMAT_TIME_MAX_BYTES = 128 };

struct format_options {
	struct weir_field_table fields;      /* the zones', and after them what only the cost and client_ip need */
	const char *sources[WEIR_FIELD_MAX]; /* the log's own name of each wanted field, NULL for the others; owned */
	char *time_name;                     /* the log's own name of the time; owned */
	char *time_second; /* of its second part, which is joined to the first by a blank; owned; NULL: it has none */
	char joined[FORMAT_TIME_MAX_BYTES];
	struct time_reader time;
	int cost_field; /* -1: each record costs 1 */
};

/**
 * Reads the options of a format and refuses unknown ones.
 *
 * @param config   an object, or anything else: no options
 * @param kind     which options there are
 * @param format   gets its reason, client_ip and time, and the struct that it begins gets the kind's own options
 * @param options  to be released by format_options_deinit(), after failure too
 */
WEIR_MUST_USE enum weir_status format_options_init(struct format_options *options, const struct weir_json *config,
                                                   const struct weir_field_table *fields,
                                                   const struct format_kind *kind, struct format *format,
                                                   struct weir_error *error);

/** The object that a configuration of this kind may be (common/json/json_shape.h). */
json_t *format_options_shape(const struct format_kind *kind);
/** The shapes of options that several kinds have: a name of the log's, and the format of a message. */
json_t *format_name_shape(void);
json_t *format_message_shape(void);

/** Says where the time is and in which unit, for a format that has no such options. */
void format_options_set_time(struct format_options *options, const char *name, enum time_unit unit);
void format_options_deinit(struct format_options *options);

/** Reads a record's cost from its fields. */
enum format_reason format_finish_cost(const struct format_options *options, struct weir_record *record);

/** A time of two parts, with a blank between them; absent where one of them is. Valid until the next. */
struct weir_span format_join_time(struct format_options *options, struct weir_span first, struct weir_span second);

/** Reads a record's time, then its cost: the last step of most parses. */
enum format_reason format_finish(struct format_options *options, struct weir_span time, struct weir_record *record);

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

enum { JSON_NAMES_MAX = 3 };

/* Where a program's objects have a field: the first of these members that is there, and no "-" or empty. */
struct json_place {
	const char *field, *names[JSON_NAMES_MAX];
};

/**
 * The function `create` of a preset: `json` as a program of its own writes it. The time is the place of the field "time",
 * in the unit that its size says; a port is cut off `ip`.
 *
 * @param kind  its places are ended by a NULL; fields that are not among them have the log's names
 */
WEIR_MUST_USE enum weir_status format_json_preset_create(const struct weir_json *config, const struct format_kind *kind,
                                                         const struct weir_field_table *fields, struct format **format,
                                                         struct weir_error *error);

/**
 * Objects of which the wanted members are the fields: `json`, and what has its shape.
 *
 * @param time_name  where the time is, in which unit; NULL: the options say so
 */
WEIR_MUST_USE enum weir_status format_json_members_new(const struct weir_json *config, const struct format_kind *kind,
                                                       const char *time_name, enum time_unit unit,
                                                       const struct weir_field_table *fields, struct format **format,
                                                       struct weir_error *error);

struct json_scan;

/** The scan that a format of format_json_members_new() makes of each line: its owner may look for more names there. */
struct json_scan *format_json_scan(struct format *format);

/** Takes arrays of bytes as what they are (json_scan_take_bytes()), in every member of such a format. */
void format_json_take_bytes(struct format *format);

/**
 * Of the last line, in which a field is absent: why.
 *
 * @return FORMAT_SKIP: its member is empty; FORMAT_LEFT_OUT: null; FORMAT_NO_MESSAGE: there is no such member with a value
 */
enum format_reason format_json_missing(const struct format *format, uint32_t field);

/* A column that serves a field of another name, unless "fields" says which does. The last one that a header has counts. */
struct format_alias {
	const char *field, *column;
};

/* Columns as a program of its own writes them. */
struct format_dialect {
	const struct format_alias *aliases; /* ended by a NULL */
	const char *absent;                 /* a value that says that there is none, besides "-" */
	bool tabs_or_blanks;                /* either separates a line's values; false: tabs do */
	/* Where a column's name begins so, a value that is encoded by '%' stands for what it was; NULL: nowhere. */
	const char *encoded;
};

/** `json` with the option "message": a line of another format stands in a member (format_wrapped.c). */
WEIR_MUST_USE enum weir_status format_json_message_new(const struct weir_json *config, const struct format_kind *kind,
                                                       const struct weir_field_table *fields, struct format **format,
                                                       struct weir_error *error);

/** `delimited`. @param dialect  lines that begin with '#' are its directives; NULL: the options say it all */
WEIR_MUST_USE enum weir_status format_delimited_new(const struct weir_json *config, const struct format_kind *kind,
                                                    const struct format_dialect *dialect,
                                                    const struct weir_field_table *fields, struct format **format,
                                                    struct weir_error *error);

/**
 * What stands after a head: the head's format gives the time, where the message has none, and the fields that the
 * message leaves absent.
 *
 * @param kind    the head's: one that has a message
 * @param config  the head's; without value: no options
 * @param body    the message's
 */
WEIR_MUST_USE enum weir_status format_message_new(const struct format_kind *kind, const struct weir_json *config,
                                                  const struct weir_json *body, const struct weir_field_table *fields,
                                                  struct format **format, struct weir_error *error);

/** The same where both are in one object: the message's format is its member "message". */
WEIR_MUST_USE enum weir_status format_message_split(const struct format_kind *kind, const struct weir_json *config,
                                                    const struct weir_field_table *fields, struct format **format,
                                                    struct weir_error *error);

#endif
