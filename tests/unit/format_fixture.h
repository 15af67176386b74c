/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A format with its configuration and fields, for tests of the formats.
 *
 * Lines are parsed from memory of exactly their size, so that a sanitizer sees a read past the end.
 */
#ifndef TESTS_UNIT_FORMAT_FIXTURE_H
#define TESTS_UNIT_FORMAT_FIXTURE_H

#include "collector/format/format.h"
#include "common/base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
	struct weir_json_document *document;
	struct weir_field_table fields;
	struct format *format;
	char *line; /* the last one */
	struct weir_record record;
};

/* Tries to make a format; false: error says why not. Fields are named in one string, separated by blanks. */
static inline bool fixture_try(struct fixture *fixture, const char *config, const char *fields,
                               struct weir_error *error)
{
	*fixture = (struct fixture){0};
	char names[512], *rest = names;
	snprintf(names, sizeof names, "%s", fields);
	weir_field_table_init(&fixture->fields);
	for (char *name; (name = strtok_r(rest, " ", &rest)) != NULL;)
		assert_true(weir_field_table_want(&fixture->fields, name) >= 0);
	/* A bare name is no JSON document: it stands as a member, as it does in a configuration. */
	char text[2048];
	snprintf(text, sizeof text, "{\"format\": %s}", config);
	if (weir_json_parse("config", text, strlen(text), &fixture->document, error) != WEIR_OK)
		fail_msg("%s", error->text);
	struct weir_json root = weir_json_root(fixture->document), at = weir_json_member(&root, "format");
	return format_new(&at, &fixture->fields, &fixture->format, error) == WEIR_OK;
}

static inline void fixture_deinit(struct fixture *fixture)
{
	format_free(fixture->format);
	weir_field_table_deinit(&fixture->fields);
	weir_json_document_free(fixture->document);
	free(fixture->line);
}

static inline void fixture_init(struct fixture *fixture, const char *config, const char *fields)
{
	struct weir_error error = {0};
	if (!fixture_try(fixture, config, fields, &error))
		fail_msg("%s: %s", config, error.text);
}

static inline enum format_reason fixture_parse_bytes(struct fixture *fixture, const char *line, size_t length)
{
	free(fixture->line);
	fixture->line = weir_alloc(length > 0 ? length : 1, 1);
	memcpy(fixture->line, line, length);
	memset(&fixture->record, 0xa5, sizeof fixture->record); /* what is not filled must not be looked at */
	return format_parse(fixture->format, fixture->line, (uint32_t)length, &fixture->record);
}

/* The same of a line that is above the limit: its first bytes. */
static inline enum format_reason fixture_parse_cut(struct fixture *fixture, const char *line, size_t length)
{
	assert_true(fixture->format->takes_cut);
	fixture->format->cut = true;
	enum format_reason reason = fixture_parse_bytes(fixture, line, length);
	fixture->format->cut = false;
	return reason;
}

static inline enum format_reason fixture_parse(struct fixture *fixture, const char *line)
{
	return fixture_parse_bytes(fixture, line, strlen(line));
}

static inline struct weir_span fixture_field(const struct fixture *fixture, const char *name)
{
	int index = weir_field_table_find(&fixture->fields, weir_span_of(name));
	assert_true(index >= 0 && (fixture->fields.wanted >> index & 1) != 0);
	return fixture->record.fields[index];
}

/* expected NULL: the field is absent */
#define assert_field(fixture, name, expected) assert_span(fixture_field(fixture, name), expected, name)

static inline void assert_span(struct weir_span span, const char *expected, const char *name)
{
	if (span.at == NULL || expected == NULL) {
		if (span.at != NULL)
			fail_msg("%s is \"%.*s\" and should be absent", name, (int)span.length, span.at);
		if (expected != NULL)
			fail_msg("%s is absent and should be \"%s\"", name, expected);
		return;
	}
	if (!weir_span_equal(span, weir_span_of(expected)))
		fail_msg("%s is \"%.*s\" and should be \"%s\"", name, (int)span.length, span.at, expected);
}

#define assert_reason(fixture, line, expected) assert_reason_at(fixture, line, expected, __LINE__)

static inline void assert_reason_at(struct fixture *fixture, const char *line, enum format_reason expected, int place)
{
	enum format_reason reason = fixture_parse(fixture, line);
	if (reason != expected)
		fail_msg("line %d: \"%s\" is \"%s\" and should be \"%s\"", place, line, format_reason_text(reason),
		         format_reason_text(expected));
}

/* A line that is not of its format, under the format's own words. */
#define assert_malformed(fixture, line, words) assert_malformed_at(fixture, line, words, __LINE__)

static inline void assert_malformed_at(struct fixture *fixture, const char *line, const char *words, int place)
{
	enum format_reason reason = fixture_parse(fixture, line);
	if (reason < FORMAT_MALFORMED || strcmp(format_reason_text(reason), words) != 0)
		fail_msg("line %d: \"%s\" is \"%s\" and should be \"%s\"", place, line, format_reason_text(reason), words);
}

/* A configuration that is refused, with these words in the error. */
#define assert_refused(config, words) assert_refused_at(config, words, __LINE__)

static inline void assert_refused_at(const char *config, const char *words, int place)
{
	struct fixture fixture;
	struct weir_error error = {0};
	if (fixture_try(&fixture, config, "ip", &error))
		fail_msg("line %d: %s is taken", place, config);
	if (strstr(error.text, words) == NULL)
		fail_msg("line %d: %s is refused by \"%s\", without \"%s\"", place, config, error.text, words);
	fixture_deinit(&fixture);
}

/* Numbers that are the same in each run. */
static inline uint64_t fixture_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

/* Changes a line here and there; its buffer has room for `capacity` bytes. Gives the new length. */
static inline size_t fixture_mutate(uint64_t *random, char *line, size_t length, size_t capacity, const char *alphabet,
                                    size_t letters)
{
	for (uint64_t changes = fixture_random(random) % 4; changes > 0; changes--) {
		size_t at = length > 0 ? fixture_random(random) % length : 0;
		char letter = alphabet[fixture_random(random) % letters];
		switch (fixture_random(random) % 4) {
		case 0: /* another byte */
			if (length > 0)
				line[at] = letter;
			break;
		case 1: /* one more */
			if (length < capacity) {
				memmove(line + at + 1, line + at, length - at);
				line[at] = letter;
				length++;
			}
			break;
		case 2: { /* some fewer */
			size_t gone = fixture_random(random) % 12;
			gone = gone < length - at ? gone : length - at;
			memmove(line + at, line + at + gone, length - at - gone);
			length -= gone;
			break;
		}
		default: /* cut, now and then */
			if (fixture_random(random) % 16 == 0)
				length = at;
			break;
		}
	}
	return length;
}

#endif
