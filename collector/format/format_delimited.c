/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `delimited`: values between single separator bytes (TSV, CSV, `|`…), named by a header line, by "columns", or
 * by their number from 1.
 *
 * Naming turns into a list that says for each column, up to the last one wanted, which slot it fills; a line is then
 * split no further than that. Unquoted values stay where they are; what was quoted with doubled quotes is copied.
 *
 * Files in W3C's extended format and Zeek's have directives, which are lines that begin with '#': "#Fields:" names the
 * columns, and may come again with others. A file whose header would be such a directive is taken for one.
 */
#include "collector/format/format_slots.h"
#include "collector/format/line_text.h"
#include "common/base/alloc.h"
#include "common/json/json_shape.h"
#include "common/record/client_ip.h"
#include "common/record/find.h"

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
	const struct format_dialect *dialect; /* NULL: none */
	bool blanks;                          /* any number of blanks and tabs separates, also at the beginning */
	bool has_directives;                  /* of this file, lines that begin with '#' are no records */
	bool tabs_named;                      /* tabs separate the names of its directive */
	bool encoded;            /* of this file, values have '%' and two figures for what is no plain character */
	int date_slot;           /* of a column "date" that stands beside "time"; -1: it cannot matter */
	bool has_date, has_time; /* such columns are there: the time is both */
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
	delimited->has_date = delimited->has_time = delimited->encoded = false;
}

/* The slot that a column fills: that of its name, or of a field that it serves. */
static int slot_of_column(const struct format_delimited *delimited, struct weir_span name)
{
	int slot = format_slots_find(&delimited->slots, name.at, name.length);
	const struct format_alias *alias = delimited->dialect != NULL ? delimited->dialect->aliases : NULL;
	for (; slot < 0 && alias != NULL && alias->field != NULL; alias++)
		if (weir_span_equal(weir_span_of(alias->column), name))
			slot = format_slots_find(&delimited->slots, alias->field, (uint32_t)strlen(alias->field));
	return slot;
}

static void name_column(struct format_delimited *delimited, struct weir_span name)
{
	uint32_t column = delimited->named_count++;
	int slot = slot_of_column(delimited, name);
	const struct format_dialect *dialect = delimited->dialect;
	delimited->encoded |= dialect != NULL && dialect->encoded != NULL && text_begins(name, dialect->encoded);
	delimited->has_date |= slot >= 0 && slot == delimited->date_slot;
	delimited->has_time |= slot == FORMAT_SLOT_TIME && text_is(name, "time"); /* Zeek's "date" is a mail's */
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
	const char *close = weir_find_either(begin, end, delimited->quote, delimited->quote);
	if (close == end)
		return false;
	*value = (struct weir_span){.at = begin, .length = (uint32_t)(close - begin)};
	if (end - close > 1 && close[1] == delimited->quote) {
		value->at = delimited->unquoted + delimited->unquoted_used;
		do {
			keep_bytes(delimited, begin, close + 1);
			begin = close + 2;
			close = weir_find_either(begin, end, delimited->quote, delimited->quote);
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
	*at = weir_find_either(begin, end, delimited->separator, delimited->blanks ? '\t' : delimited->separator);
	*value = (struct weir_span){.at = begin, .length = (uint32_t)(*at - begin)};
	return true;
}

static void make_room(struct format_delimited *delimited, uint32_t length)
{
	delimited->unquoted_used = 0;
	if ((delimited->quoted || delimited->encoded) && delimited->unquoted_capacity < length) {
		free(delimited->unquoted);
		delimited->unquoted = weir_alloc(length, 1);
		delimited->unquoted_capacity = length;
	}
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

/* What stands behind "#Fields:" or "#fields"; absent: the line is another. */
static struct weir_span fields_directive(struct weir_span line)
{
	bool zeek = text_begins(line, "#fields\t"), w3c = text_begins(line, "#Fields:");
	if (!zeek && !w3c)
		return (struct weir_span){0};
	text_skip(&line, (uint32_t)strlen("#fields\t"));
	while (text_take(&line, " ") || text_take(&line, "\t"))
		;
	return line;
}

/* Whether a line where the header should be is a directive of W3C's format or Zeek's. */
static bool is_directive(struct weir_span line)
{
	static const char *const names[] = {"#Fields:",   "#Software:", "#Version:",   "#Date:",  "#Start-Date:",
	                                    "#End-Date:", "#Remark:",   "#separator ", "#fields", NULL};
	for (size_t i = 0; names[i] != NULL; i++)
		if (text_begins(line, names[i]))
			return true;
	return false;
}

/* Names the columns by a directive; those of W3C are separated by blanks, whatever separates the values. */
static void read_fields(struct format_delimited *delimited, struct weir_span line, struct weir_span names)
{
	bool tabs = memchr(names.at, '\t', names.length) != NULL;
	forget_columns(delimited);
	delimited->tabs_named = tabs;
	for (struct weir_span name; names.length > 0;) {
		if (!text_until(&names, tabs ? '\t' : ' ', &name)) {
			name = names;
			names.length = 0;
		}
		if (name.length > 0)
			name_column(delimited, name);
	}
	free(delimited->header);
	delimited->header = weir_copy(line.at, line.length);
	delimited->header_length = line.length;
	delimited->awaits_header = false;
}

/* Takes a line that is a directive, or a remark between them; false: it is none. */
static bool take_directive(struct format_delimited *delimited, struct weir_span line)
{
	(void)text_take(&line, "\xef\xbb\xbf");
	if (line.length == 0 || line.at[0] != '#' || delimited->named || !delimited->has_header)
		return false;
	if (!delimited->has_directives && (!delimited->awaits_header || !is_directive(line)))
		return false;
	delimited->has_directives = true;
	struct weir_span names = fields_directive(line);
	if (names.at != NULL)
		read_fields(delimited, line, names);
	return true;
}

/* Names the columns by a header line; false: it is malformed, and the header is still to come. */
static bool read_header(struct format_delimited *delimited, const char *line, uint32_t length)
{
	const char *at = line, *end = line + length;
	if (take_directive(delimited, (struct weir_span){.at = line, .length = length}))
		return true;
	if (delimited->has_directives) /* their values are worth nothing without names */
		return false;
	if (length >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) /* the byte order mark of some spreadsheets */
		at += 3;
	make_room(delimited, length);
	if (delimited->blanks)
		at = skip_blanks(at, end);
	if (!delimited->named)
		forget_columns(delimited);
	for (;; at++) {
		struct weir_span name;
		if (!take_value(delimited, &at, end, &name))
			return false;
		if (!delimited->named)
			name_column(delimited, name);
		if (delimited->blanks)
			at = skip_blanks(at, end);
		if (at == end)
			break;
		at -= delimited->blanks;
	}
	free(delimited->header);
	delimited->header = weir_copy(line, length);
	delimited->header_length = length;
	delimited->awaits_header = false;
	return true;
}

/*
 * What separates a row's values, where that may be tabs or blanks: tabs if the names have them too, else whichever comes
 * first. A tab further on stands within a value.
 */
static char separator_of(const struct format_delimited *delimited, const char *line, uint32_t length)
{
	const char *tab = memchr(line, '\t', length);
	if (tab == NULL)
		return ' ';
	return delimited->tabs_named || memchr(line, ' ', (size_t)(tab - line)) == NULL ? '\t' : ' ';
}

static uint32_t count_columns(const struct format_delimited *delimited, const char *at, const char *end)
{
	uint32_t count = 1;
	for (; at < end; at++)
		count += *at == delimited->separator;
	return count;
}

/*
 * Where directives name the columns each line has all of them: with more they are those of other names. With fewer the
 * line is cut, and so it is where the last one is empty, as what is absent is written as '-'. A separator may stand
 * behind the last. The cut column is the last that there is.
 */
static bool fits_columns(const struct format_delimited *delimited, const char *begin, const char *end,
                         uint32_t *cut_column, bool *cut)
{
	uint32_t count = count_columns(delimited, begin, end), named = delimited->named_count;
	bool blank_end = end[-1] == delimited->separator;
	*cut_column = count - 1;
	if (count == named + 1 && blank_end)
		return true;
	if (delimited->dialect == NULL && !*cut)
		return count == named;
	*cut |= count < named || (blank_end && named > 1);
	return count <= named;
}

/* Whether a slot's value without its end would be another time, client or cost. */
static bool must_be_whole(const struct format_delimited *delimited, int slot)
{
	const struct format *format = &delimited->format;
	bool of_client =
		format->client_ip != NULL &&
		slot == format_slots_of_field(&delimited->slots, (uint32_t)weir_client_ip_header(format->client_ip));
	bool of_cost = delimited->options.cost_field >= 0 &&
	               slot == format_slots_of_field(&delimited->slots, (uint32_t)delimited->options.cost_field);
	bool of_time = slot == FORMAT_SLOT_TIME || slot == delimited->date_slot ||
	               (delimited->slots.time_second != 0 && slot == (int)delimited->slots.time_second);
	return of_time || of_client || of_cost || slot == format_slots_of_field(&delimited->slots, WEIR_FIELD_IP);
}

/* Says of a cut row whether the proxies' header did not come or may be in what is missing: the one is "-" again. */
static void tell_header(const struct format_delimited *delimited, uint32_t cut_column, struct weir_span *values)
{
	const struct weir_client_ip *client_ip = delimited->format.client_ip;
	int slot =
		client_ip != NULL ? format_slots_of_field(&delimited->slots, (uint32_t)weir_client_ip_header(client_ip)) : -1;
	for (uint32_t column = 0; slot >= 0 && column < delimited->column_count && column < cut_column; column++)
		if (delimited->column_slots[column] == slot && values[slot].at == NULL)
			values[slot] = weir_span_of("-");
}

/* Forgets what a cut row's last column gave, if it must be whole. */
static void drop_cut_column(const struct format_delimited *delimited, uint32_t column, struct weir_span *values)
{
	tell_header(delimited, column, values);
	if (column >= delimited->column_count)
		return;
	int8_t slot = delimited->column_slots[column];
	if (slot >= 0 && must_be_whole(delimited, slot))
		values[slot] = (struct weir_span){0};
}

/* A row that is cut counts if it says when and who. Who is an address: anything else shows that the names are others. */
static enum format_reason finish_cut(const struct format_delimited *delimited, enum format_reason reason,
                                     struct weir_record *record)
{
	struct weir_address address;
	struct weir_span ip = record->fields[WEIR_FIELD_IP];
	record->cut = true;
	if (reason == FORMAT_NO_TIME || ip.at == NULL || !weir_address_read(ip, &address))
		return delimited->format.malformed;
	return reason;
}

static int figure(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* What an encoded value stands for: it is copied where it is not what it says. No longer than it. */
static struct weir_span decoded(struct format_delimited *delimited, struct weir_span value)
{
	if (value.length == 0 || memchr(value.at, '%', value.length) == NULL)
		return value;
	char *copy = delimited->unquoted + delimited->unquoted_used, *to = copy;
	for (uint32_t i = 0; i < value.length; i++) {
		int high = value.at[i] == '%' && value.length - i > 2 ? figure(value.at[i + 1]) : -1;
		int low = high >= 0 ? figure(value.at[i + 2]) : -1;
		*to++ = low >= 0 ? (char)(high << 4 | low) : value.at[i];
		i += low >= 0 ? 2 : 0;
	}
	delimited->unquoted_used += (uint32_t)(to - copy);
	return (struct weir_span){.at = copy, .length = (uint32_t)(to - copy)};
}

/* What is the dialect's: the word for nothing, the date beside the time, how values are encoded. */
static void finish_values(struct format_delimited *delimited, struct weir_span *values)
{
	const struct format_dialect *dialect = delimited->dialect;
	for (uint32_t slot = 0; delimited->encoded && slot < delimited->slots.count; slot++)
		values[slot] = decoded(delimited, values[slot]);
	for (uint32_t slot = 0; dialect != NULL && dialect->absent != NULL && slot < delimited->slots.count; slot++)
		if (values[slot].at != NULL && text_is(values[slot], dialect->absent))
			values[slot] = (struct weir_span){0};
	if (delimited->has_directives && delimited->has_date && delimited->has_time)
		values[FORMAT_SLOT_TIME] =
			format_join_time(&delimited->options, values[delimited->date_slot], values[FORMAT_SLOT_TIME]);
}

/*
 * Fills the slots of the wanted columns; false: not of this format.
 *
 * @param cut_column  of a row that lacks its end: set to the column in which it ends, unless all that are wanted stand before;
 *                    NULL: it is whole
 */
static bool split(struct format_delimited *delimited, const char *at, const char *end, struct weir_span *values,
                  uint32_t *cut_column)
{
	for (uint32_t column = 0;; column++, at++) {
		struct weir_span value;
		bool whole = take_value(delimited, &at, end, &value);
		if (cut_column != NULL && (!whole || at == end))
			*cut_column = column;
		if (!whole) /* the quote that would close it may be missing with the end */
			return cut_column != NULL && column > 0;
		if (column < delimited->column_count && delimited->column_slots[column] >= 0)
			values[delimited->column_slots[column]] = format_value_or_dash(value.at, value.length);
		if (delimited->blanks)
			at = skip_blanks(at, end);
		if (at == end)
			return column > 0 || delimited->named_count < 2;
		at -= delimited->blanks; /* the loop goes past one separator */
		/* Behind the last wanted column only a broken quote could matter. */
		if (!delimited->quoted && column + 1 >= delimited->column_count)
			return true;
	}
}

static enum format_reason parse(struct format *format, const char *line, uint32_t length, struct weir_record *record)
{
	struct format_delimited *delimited = (struct format_delimited *)format;
	if (line[0] == '#' && take_directive(delimited, (struct weir_span){.at = line, .length = length}))
		return FORMAT_SKIP;
	if (delimited->awaits_header)
		return !format->cut && read_header(delimited, line, length) ? FORMAT_SKIP : format->malformed;
	struct weir_span values[FORMAT_SLOTS_MAX];
	memset(values, 0, delimited->slots.count * sizeof values[0]);
	make_room(delimited, length);
	const char *begin = line, *end = line + length;
	if (delimited->dialect != NULL && delimited->dialect->tabs_or_blanks)
		delimited->separator = separator_of(delimited, line, length);
	if (delimited->blanks)
		begin = skip_blanks(begin, end);
	bool cut = format->cut;
	uint32_t cut_column = UINT32_MAX;
	if (delimited->has_directives && !delimited->blanks && !delimited->quoted &&
	    !fits_columns(delimited, begin, end, &cut_column, &cut))
		return format->malformed;
	if (!split(delimited, begin, end, values, cut ? &cut_column : NULL))
		return format->malformed;
	if (cut)
		drop_cut_column(delimited, cut_column, values);
	finish_values(delimited, values);
	enum format_reason reason = format_slots_finish(&delimited->slots, &delimited->options, values, record);
	return cut ? finish_cut(delimited, reason, record) : reason;
}

static void begin_file(struct format *format, struct weir_span header)
{
	struct format_delimited *delimited = (struct format_delimited *)format;
	free(delimited->header);
	delimited->header = NULL;
	delimited->awaits_header = delimited->has_header;
	delimited->has_directives = delimited->dialect != NULL;
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
		return weir_json_fail(&at, error, "must be one byte such as \"\\t\", \",\" or \"|\"%s",
		                      strcmp(name, "separator") == 0 ? ", or \"blanks\"" : "");
	*byte = text[0];
	*present = true;
	return WEIR_OK;
}

/* "blanks", or a byte. */
static enum weir_status read_separator(struct format_delimited *delimited, const struct weir_json *config,
                                       struct weir_error *error)
{
	struct weir_json at = weir_json_member(config, "separator");
	bool given = false;
	delimited->blanks = json_is_string(at.value) && strcmp(json_string_value(at.value), "blanks") == 0;
	if (!delimited->blanks)
		return read_byte(config, "separator", &delimited->separator, &given, error);
	delimited->separator = ' ';
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
                                     const struct format_kind *kind, const struct weir_field_table *fields,
                                     struct weir_error *error)
{
	enum weir_status status = format_options_init(&delimited->options, config, fields, kind, &delimited->format, error);
	if (status != WEIR_OK)
		return status;
	format_slots_init(&delimited->slots, &delimited->options);
	delimited->date_slot = -1;
	if (delimited->options.time_second == NULL && strcmp(delimited->options.time_name, "time") == 0)
		delimited->date_slot = format_slots_add(&delimited->slots, "date");
	if (delimited->dialect != NULL) {
		delimited->awaits_header = delimited->has_directives = true;
		return WEIR_OK;
	}
	if ((status = read_separator(delimited, config, error)) != WEIR_OK)
		return status;
	if ((status = read_byte(config, "quote", &delimited->quote, &delimited->quoted, error)) != WEIR_OK)
		return status;
	struct weir_json at = weir_json_member(config, "quote");
	if (delimited->quoted && delimited->quote == delimited->separator)
		return weir_json_fail(&at, error, "must differ from the separator");
	delimited->awaits_header = delimited->has_header;
	return read_columns(delimited, config, error);
}

enum weir_status format_delimited_new(const struct weir_json *config, const struct format_kind *kind,
                                      const struct format_dialect *dialect, const struct weir_field_table *fields,
                                      struct format **format, struct weir_error *error)
{
	struct format_delimited *delimited = weir_alloc(1, sizeof *delimited);
	delimited->format = (struct format){.parse = parse,
	                                    .free = delimited_free,
	                                    .begin = begin_file,
	                                    .header = header_of,
	                                    .lacks = lacks,
	                                    .takes_cut = true,
	                                    .dash_is_absent = true};
	delimited->dialect = dialect;
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

static enum weir_status create(const struct weir_json *config, const struct format_kind *kind,
                               const struct weir_field_table *fields, struct format **format, struct weir_error *error)
{
	return format_delimited_new(config, kind, NULL, fields, format, error);
}

static json_t *byte_shape(void)
{
	return weir_shape_pattern("^[^\\r\\n]$");
}

static json_t *separator_shape(void)
{
	return weir_shape_pattern("^([^\\r\\n]|blanks)$");
}

static json_t *columns_shape(void)
{
	return weir_shape_list(1, COLUMNS_MAX, weir_shape_text());
}

static const struct weir_json_rule options[] = {
	{.name = "separator", .meaning = "one byte, or \"blanks\"; a tab by default", .shape = separator_shape},
	{.name = "header",
     .kind = WEIR_JSON_FLAG,
     .offset = offsetof(struct format_delimited, has_header),
     .meaning = "whether a file's first line names the columns; true by default"},
	{.name = "columns", .meaning = "the columns' names", .shape = columns_shape},
	{.name = "quote", .meaning = "the byte around values that hold the separator", .shape = byte_shape},
	{.name = NULL},
};

const struct format_kind format_delimited = {
	.name = "delimited",
	.meaning = "TSV, CSV and similar",
	.malformed = "not delimited",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_TIME | FORMAT_TAKES_YEAR | FORMAT_NEEDS_IP,
	.escapes = FORMAT_ESCAPES_BACKSLASHES,
	.options = options,
	.create = create,
};
