/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's export format, as systemd-journal-upload sends it. An entry is its fields and an empty line. A field is
 * NAME=VALUE and a newline; or NAME, a newline, the value's length in eight bytes, the value and a newline, where it has
 * bytes that no text has.
 *
 * An entry becomes an object as `journalctl -o json` prints it: a field that comes more than once is an array. But bytes
 * that no text has stand as they are, as in a file's line.
 */
#include "collector/source/push/decode/decode.h"

#include <stdint.h>
#include <string.h>

enum { FIELDS_MOST = 256, NAME_MOST_BYTES = 256 };

struct field {
	struct weir_span name, value;
};

/*
 * Reads a field. @return WEIR_OK; WEIR_END: the entry ends here; WEIR_AGAIN: it is not whole; WEIR_INVALID
 */
static enum weir_status next_field(struct weir_span *rest, struct field *field)
{
	const char *newline = rest->length > 0 ? memchr(rest->at, '\n', rest->length) : NULL;
	if (newline == NULL)
		return WEIR_AGAIN;
	uint64_t taken = (uint64_t)(newline - rest->at) + 1;
	const char *equals = memchr(rest->at, '=', (size_t)(taken - 1));
	enum weir_status status = WEIR_OK;
	if (taken == 1) {
		status = WEIR_END;
	} else if (equals != NULL) {
		field->name = (struct weir_span){.at = rest->at, .length = (uint32_t)(equals - rest->at)};
		field->value = (struct weir_span){.at = equals + 1, .length = (uint32_t)(newline - equals - 1)};
	} else {
		uint64_t length = 0;
		field->name = (struct weir_span){.at = rest->at, .length = (uint32_t)(taken - 1)};
		if (rest->length - taken < 8)
			return WEIR_AGAIN;
		for (int i = 0; i < 8; i++)
			length |= (uint64_t)(uint8_t)newline[1 + i] << (8 * i);
		if (length > UINT32_MAX / 2)
			return WEIR_INVALID;
		if (rest->length - taken - 8 < length + 1)
			return WEIR_AGAIN;
		field->value = (struct weir_span){.at = newline + 9, .length = (uint32_t)length};
		taken += 8 + length + 1;
		if (rest->at[taken - 1] != '\n')
			return WEIR_INVALID;
	}
	if (status == WEIR_OK && (field->name.length == 0 || field->name.length > NAME_MOST_BYTES))
		return WEIR_INVALID;
	rest->at += taken;
	rest->length -= (uint32_t)taken;
	return status;
}

/* Whether a field's name is one that a journal can have. */
static bool is_name(struct weir_span name)
{
	for (uint32_t i = 0; i < name.length; i++) {
		char byte = name.at[i];
		if (byte != '_' && !(byte >= 'A' && byte <= 'Z') && !(byte >= '0' && byte <= '9'))
			return false;
	}
	return true;
}

/* As many fields of an entry as are taken, and the entry's end. What no journal would have kept is left out here, too. */
static enum weir_status next_entry(struct weir_span *rest, struct field *fields, size_t *count)
{
	struct field field;
	enum weir_status status;
	*count = 0;
	while ((status = next_field(rest, &field)) == WEIR_OK)
		if (*count < FIELDS_MOST && is_name(field.name))
			fields[(*count)++] = field;
	return status == WEIR_END ? WEIR_OK : status;
}

size_t decode_journal_whole(struct weir_span body)
{
	struct weir_span rest = body;
	struct field field;
	size_t whole = 0;
	enum weir_status status;
	while ((status = next_field(&rest, &field)) == WEIR_OK || status == WEIR_END)
		if (status == WEIR_END)
			whole = body.length - rest.length;
	return status == WEIR_INVALID ? body.length : whole; /* what is wrong with it is said when it is taken apart */
}

static bool is_first(const struct field *fields, size_t place)
{
	for (size_t i = 0; i < place; i++)
		if (weir_span_equal(fields[i].name, fields[place].name))
			return false;
	return true;
}

/* The values of a field: one, or an array of them. */
static void put_values(struct weir_text *lines, const struct field *fields, size_t place, size_t count)
{
	size_t more = 0, begin = lines->length;
	for (size_t i = place; i < count; i++) {
		if (i > place && !weir_span_equal(fields[i].name, fields[place].name))
			continue;
		weir_text_append(lines, more++ > 0 ? "," : "[", 1);
		weir_text_json_bytes(lines, fields[i].value);
	}
	if (more > 1) {
		weir_text_append(lines, "]", 1);
	} else {
		memmove(lines->at + begin, lines->at + begin + 1, lines->length - begin - 1);
		lines->length--;
	}
}

static void put_entry(struct weir_text *lines, const struct field *fields, size_t count)
{
	weir_text_append(lines, "{", 1);
	for (size_t i = 0; i < count; i++) {
		if (!is_first(fields, i))
			continue;
		if (i > 0)
			weir_text_append(lines, ",", 1);
		weir_text_json_bytes(lines, fields[i].name);
		weir_text_append(lines, ":", 1);
		put_values(lines, fields, i, count);
	}
	weir_text_puts(lines, "}\n");
}

enum weir_status decode_journal(struct weir_span body, size_t most, struct weir_text *lines, struct weir_text *answer,
                                struct weir_error *error)
{
	(void)answer;
	struct field fields[FIELDS_MOST];
	size_t count;
	enum weir_status status = WEIR_OK;
	struct weir_span rest = body;
	while (rest.length > 0 && lines->length <= most && (status = next_entry(&rest, fields, &count)) == WEIR_OK)
		if (count > 0)
			put_entry(lines, fields, count);
	/* The empty line behind the last entry is missing where somebody sends a file without its end. */
	if (status == WEIR_AGAIN && rest.length > 0)
		return weir_fail(error, WEIR_INVALID, "the body ends within an entry, behind byte %u",
		                 (unsigned)(body.length - rest.length));
	if (status == WEIR_AGAIN && count > 0)
		put_entry(lines, fields, count);
	if (status == WEIR_INVALID)
		return weir_fail(error, WEIR_INVALID, "the body is not the journal's export format at byte %u",
		                 (unsigned)(body.length - rest.length));
	return decode_fits(lines, most, error);
}
