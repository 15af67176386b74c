/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that are lines, or JSON values, as they stand: none is looked into further than its end is found. */
#include "collector/source/push/decode/decode.h"

enum weir_status decode_fits(const struct weir_text *lines, size_t most, struct weir_error *error)
{
	if (lines->length <= most)
		return WEIR_OK;
	return weir_fail(
		error, WEIR_FULL,
		"the body becomes more than %zu bytes of lines (what it says of many events is written into each): "
		"send fewer events at once",
		most);
}

enum weir_status decode_lines(struct weir_span body, size_t most, struct weir_text *lines, struct weir_text *answer,
                              struct weir_error *error)
{
	(void)answer;
	weir_text_append(lines, body.at, body.length);
	if (body.length > 0 && body.at[body.length - 1] != '\n')
		weir_text_append(lines, "\n", 1);
	return decode_fits(lines, most, error);
}

static bool is_space(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* Where a walk through values stands. */
struct walk {
	int depth; /* of brackets, without that of the outer array */
	bool in_string, escaped;
	bool in_array; /* the values are the elements of one */
	bool begun;    /* a value has begun, and its line has no end yet */
};

static void end_line(struct walk *walk, struct weir_text *lines)
{
	if (walk->begun)
		weir_text_append(lines, "\n", 1);
	*walk = (struct walk){.in_array = walk->in_array};
}

static void take_in_string(struct walk *walk, char byte, struct weir_text *lines)
{
	/* A line break is no part of a JSON string; here it would end the line. */
	weir_text_append(lines, byte == '\n' ? " " : &byte, 1);
	walk->in_string = byte != '"' || walk->escaped;
	walk->escaped = byte == '\\' && !walk->escaped;
}

static void take_outside(struct walk *walk, char byte, struct weir_text *lines)
{
	bool between = walk->depth == 0;
	if (is_space(byte) || (between && walk->in_array && (byte == ',' || byte == ']'))) {
		if (between)
			end_line(walk, lines);
		walk->in_array &= !between || byte != ']';
		return;
	}
	if (between && walk->begun && (byte == '{' || byte == '['))
		end_line(walk, lines);
	weir_text_append(lines, &byte, 1);
	walk->begun = true;
	walk->in_string = byte == '"';
	walk->depth += (byte == '{' || byte == '[') - (byte == '}' || byte == ']');
	if (walk->depth <= 0 && (byte == '}' || byte == ']'))
		end_line(walk, lines);
}

/* Runs of a string's plain bytes, which are most of a body, are copied at once. */
static size_t plain_bytes(const char *at, const char *end)
{
	const char *stop = at;
	while (stop < end && *stop != '"' && *stop != '\\' && *stop != '\n')
		stop++;
	return (size_t)(stop - at);
}

enum weir_status decode_json(struct weir_span body, size_t most, struct weir_text *lines, struct weir_text *answer,
                             struct weir_error *error)
{
	(void)answer;
	struct walk walk = {0};
	const char *at = body.at, *end = body.at + body.length;
	while (at < end && is_space(*at))
		at++;
	if (at < end && *at == '[') {
		walk.in_array = true;
		at++;
	}
	while (at < end) {
		size_t plain = walk.in_string && !walk.escaped ? plain_bytes(at, end) : 0;
		weir_text_append(lines, at, plain);
		at += plain;
		if (at == end)
			break;
		if (walk.in_string)
			take_in_string(&walk, *at++, lines);
		else
			take_outside(&walk, *at++, lines);
	}
	end_line(&walk, lines);
	return decode_fits(lines, most, error);
}
