/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `delimited`: values between single separator bytes (TSV, CSV, `|`…), named by a header line, by "columns", or
 * by their number from 1.
 *
 * Naming turns into a list that says for each column, up to the last one wanted, which slot it fills; a line is then
 * split no further than that. Unquoted values stay where they are; what was quoted with doubled quotes is copied.
 */
#include "collector/format/format_slots.h"
#include "collector/record/find.h"
#include "common/base/alloc.h"

#include <stdlib.h>

enum { COLUMNS_MAX = 1 << 16 };

struct format_delimited {
	struct format format;
	struct format_options options;
	struct format_slots slots;
	char separator;
	bool quoted;
	char quote;
	bool has_header;    /* each file begins with a line of names */
	bool named;         /* the configuration names the columns */
	bool awaits_header; /* the next line is that line */
	char *header;       /* the file's header line as it stands; owned, NULL until there is one */
	uint32_t header_length;
	uint32_t named_count;  /* columns that have a name; 0: they go by number */
	uint32_t column_count; /* up to the last one that is wanted */
	int8_t *column_slots;  /* of that many columns: the slot each fills, or -1; owned */
	char *unquoted;        /* copies of the line's values, all together no longer than it; owned */
	uint32_t unquoted_capacity, unquoted_used;
};

/* Where the columns are, while they get their names. */
static void want_column(struct format_delimited *delimited, uint32_t column, int slot)
{
	/* Of columns of one name the last counts. */
	for (uint32_t i = 0; i < delimited->column_count; i++) {
		if (delimited->column_slots[i] == slot)
			delimited->column_slots[i] = -1;
	}
	if (column >= delimited->column_count) {
		delimited->column_slots = weir_realloc(delimited->column_slots, column + 1, 1);
		memset(delimited->column_slots + delimited->column_count, -1, column + 1 - delimited->column_count);
		delimited->column_count = column + 1;
	}
	delimited->column_slots[column] = (int8_t)slot;
}

static void forget_columns(struct format_delimited *delimited)
{
	delimited->column_count = 0;
	delimited->named_count = 0;
}

static void name_column(struct format_delimited *delimited, struct weir_span name)
{
	uint32_t column = delimited->named_count++;
	int slot = format_slots_find(&delimited->slots, name.at, name.length);
	if (slot >= 0 && column < COLUMNS_MAX)
		want_column(delimited, column, slot);
}

/* Without names, a slot named "3" is the third column's. */
static void number_columns(struct format_delimited *delimited)
{
	for (uint32_t slot = 0; slot < delimited->slots.count; slot++) {
		const char *name = delimited->slots.names[slot].at;
		size_t length = strlen(name);
		if (length == 0 || length > 5 || strspn(name, "0123456789") != length || name[0] == '0')
			continue;
		unsigned long column = strtoul(name, NULL, 10);
		if (column <= COLUMNS_MAX)
			want_column(delimited, (uint32_t)column - 1, (int)slot);
	}
}

/* Appends to the copies of unquoted values. */
static void keep_bytes(struct format_delimited *delimited, const char *begin, const char *end)
{
	memcpy(delimited->unquoted + delimited->unquoted_used, begin, (size_t)(end - begin));
	delimited->unquoted_used += (uint32_t)(end - begin);
}

/* Takes a quoted value from behind its first quote to behind its last one; false: it does not end as it must. */
static bool take_quoted(struct format_delimited *delimited, const char **at, const char *end, struct weir_span *value)
{
	const char *begin = *at;
	const char *close = find_either(begin, end, delimited->quote, delimited->quote);
	if (close == end)
		return false;
	*value = (struct weir_span){.at = begin, .length = (uint32_t)(close - begin)};
	if (end - close > 1 && close[1] == delimited->quote) {
		value->at = delimited->unquoted + delimited->unquoted_used;
		do {
			keep_bytes(delimited, begin, close + 1);
			begin = close + 2;
			close = find_either(begin, end, delimited->quote, delimited->quote);
			if (close == end)
				return false;
		} while (end - close > 1 && close[1] == delimited->quote);
		keep_bytes(delimited, begin, close);
		value->length = (uint32_t)(delimited->unquoted + delimited->unquoted_used - value->at);
	}
	*at = close + 1;
	return close + 1 == end || close[1] == delimited->separator;
}

/* Takes the value at `at` up to its separator or the end; false: a broken quote. */
static inline bool take_value(struct format_delimited *delimited, const char **at, const char *end,
                              struct weir_span *value)
{
	if (delimited->quoted && *at < end && **at == delimited->quote) {
		(*at)++;
		return take_quoted(delimited, at, end, value);
	}
	const char *begin = *at;
	*at = find_either(begin, end, delimited->separator, delimited->separator);
	*value = (struct weir_span){.at = begin, .length = (uint32_t)(*at - begin)};
	return true;
}

static void make_room(struct format_delimited *delimited, uint32_t length)
{
	delimited->unquoted_used = 0;
	if (delimited->quoted && delimited->unquoted_capacity < length) {
		free(delimited->unquoted);
		delimited->unquoted = weir_alloc(length, 1);
		delimited->unquoted_capacity = length;
	}
}

/* Names the columns by a header line; false: it is malformed, and the header is still to come. */
static bool read_header(struct format_delimited *delimited, const char *line, uint32_t length)
{
	const char *at = line, *end = line + length;
	if (length >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) /* the byte order mark of some spreadsheets */
		at += 3;
	make_room(delimited, length);
	if (!delimited->named)
		forget_columns(delimited);
	for (;; at++) {
		struct weir_span name;
		if (!take_value(delimited, &at, end, &name))
			return false;
		if (!delimited->named)
			name_column(delimited, name);
		if (at == end)
			break;
	}
	free(delimited->header);
	delimited->header = weir_copy(line, length);
	delimited->header_length = length;
	delimited->awaits_header = false;
	return true;
}

/* Fills the slots of the wanted columns; false: not of this format. */
static bool split(struct format_delimited *delimited, const char *at, const char *end, struct weir_span *values)
{
	for (uint32_t column = 0;; column++, at++) {
		struct weir_span value;
		if (!take_value(delimited, &at, end, &value))
			return false;
		if (column < delimited->column_count && delimited->column_slots[column] >= 0)
			values[delimited->column_slots[column]] = format_value_or_dash(value.at, value.length);
		if (at == end)
			return column > 0 || delimited->named_count < 2;
		/* Behind the last wanted column only a broken quote could matter. */
		if (!delimited->quoted && column + 1 >= delimited->column_count)
			return true;
	}
}

static enum format_reason parse(struct format *format, const char *line, uint32_t length, struct record *record)
{
	struct format_delimited *delimited = (struct format_delimited *)format;
	if (delimited->awaits_header)
		return read_header(delimited, line, length) ? FORMAT_SKIP : format->malformed;
	struct weir_span values[FORMAT_SLOTS_MAX];
	memset(values, 0, delimited->slots.count * sizeof values[0]);
	make_room(delimited, length);
	if (!split(delimited, line, line + length, values))
		return format->malformed;
	return format_slots_finish(&delimited->slots, &delimited->options, values, record);
}

static void begin_file(struct format *format, struct weir_span header)
{
	struct format_delimited *delimited = (struct format_delimited *)format;
	free(delimited->header);
	delimited->header = NULL;
	delimited->awaits_header = delimited->has_header;
	if (delimited->has_header && header.length > 0)
		read_header(delimited, header.at, header.length);
}

static struct weir_span header_of(const struct format *format)
{
	const struct format_delimited *delimited = (const struct format_delimited *)format;
	return (struct weir_span){.at = delimited->header,
	                          .length = delimited->header != NULL ? delimited->header_length : 0};
}

/* Where a header line names the columns, only the file can tell. */
static bool lacks(const struct format *format, uint32_t field)
{
	const struct format_delimited *delimited = (const struct format_delimited *)format;
	if (delimited->has_header && !delimited->named)
		return false;
	int slot = format_slots_of_field(&delimited->slots, field);
	for (uint32_t i = 0; i < delimited->column_count; i++)
		if (delimited->column_slots[i] == slot)
			return false;
	return true;
}

static void delimited_free(struct format *format)
{
	struct format_delimited *delimited = (struct format_delimited *)format;
	free(delimited->header);
	free(delimited->column_slots);
	free(delimited->unquoted);
	format_options_deinit(&delimited->options);
	free(delimited);
}

/* One byte; *present is left as it is where there is none. */
static enum weir_status read_byte(const struct weir_json *config, const char *name, char *byte, bool *present,
                                  struct weir_error *error)
{
	struct weir_json at = weir_json_member(config, name);
	const char *text = NULL;
	enum weir_status status = weir_json_string(&at, &text, error);
	if (status != WEIR_OK || text == NULL)
		return status;
	if (strlen(text) != 1 || text[0] == '\n' || text[0] == '\r')
		return weir_json_fail(&at, error, "must be one byte such as \"\\t\", \",\" or \"|\"");
	*byte = text[0];
	*present = true;
	return WEIR_OK;
}

static enum weir_status read_columns(struct format_delimited *delimited, const struct weir_json *config,
                                     struct weir_error *error)
{
	struct weir_json columns = weir_json_member(config, "columns");
	if (!weir_json_exists(&columns)) {
		if (!delimited->has_header)
			number_columns(delimited);
		return WEIR_OK;
	}
	size_t count = json_array_size(columns.value); /* 0 for anything but an array */
	if (count == 0 || count > COLUMNS_MAX)
		return weir_json_fail(&columns, error, "must be a list of 1 to %d names, such as [\"time\", \"ip\"]",
		                      COLUMNS_MAX);
	delimited->named = true;
	for (size_t i = 0; i < count; i++) {
		struct weir_json element = weir_json_element(&columns, i);
		const char *name = NULL;
		enum weir_status status = weir_json_string(&element, &name, error);
		if (status != WEIR_OK)
			return status;
		name_column(delimited, weir_span_of(name));
	}
	return WEIR_OK;
}

static enum weir_status read_options(struct format_delimited *delimited, const struct weir_json *config,
                                     const struct format_kind *kind, const struct field_table *fields,
                                     struct weir_error *error)
{
	enum weir_status status = format_options_init(&delimited->options, config, fields, kind, &delimited->format, error);
	if (status != WEIR_OK)
		return status;
	format_slots_init(&delimited->slots, &delimited->options);
	bool given = false;
	if ((status = read_byte(config, "separator", &delimited->separator, &given, error)) != WEIR_OK)
		return status;
	if ((status = read_byte(config, "quote", &delimited->quote, &delimited->quoted, error)) != WEIR_OK)
		return status;
	struct weir_json at = weir_json_member(config, "quote");
	if (delimited->quoted && delimited->quote == delimited->separator)
		return weir_json_fail(&at, error, "must differ from the separator");
	delimited->awaits_header = delimited->has_header;
	return read_columns(delimited, config, error);
}

static enum weir_status create(const struct weir_json *config, const struct format_kind *kind,
                               const struct field_table *fields, struct format **format, struct weir_error *error)
{
	struct format_delimited *delimited = weir_alloc(1, sizeof *delimited);
	delimited->format = (struct format){
		.parse = parse, .free = delimited_free, .begin = begin_file, .header = header_of, .lacks = lacks};
	delimited->separator = '\t';
	delimited->has_header = true;
	enum weir_status status = read_options(delimited, config, kind, fields, error);
	if (status != WEIR_OK) {
		format_free(&delimited->format);
		return status;
	}
	*format = &delimited->format;
	return WEIR_OK;
}

static const struct weir_json_rule options[] = {
	{.name = "separator"},
	{.name = "header", .kind = WEIR_JSON_FLAG, .offset = offsetof(struct format_delimited, has_header)},
	{.name = "columns"},
	{.name = "quote"},
	{.name = NULL},
};

const struct format_kind format_delimited = {
	.name = "delimited",
	.meaning = "TSV, CSV and similar",
	.malformed = "not delimited",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_TIME | FORMAT_TAKES_YEAR,
	.options = options,
	.create = create,
};
