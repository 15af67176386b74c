/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the targets of all formats share: formats made once from a list of configurations, of which an input's first
 * byte takes one; the rest are lines. Whatever the line, a record that is taken must hold what its header promises.
 */
#ifndef TESTS_FUZZ_FORMAT_TARGET_H
#define TESTS_FUZZ_FORMAT_TARGET_H

#include "collector/format/format.h"
#include "tests/fuzz/require.h"

#include <stdio.h>
#include <stdlib.h>

enum { TARGET_FORMATS_MAX = 32 };

struct target {
	struct weir_field_table fields;
	struct format *formats[TARGET_FORMATS_MAX];
	struct format *bare[TARGET_FORMATS_MAX]; /* the same, with no field wanted */
	size_t count;
	const struct format *parsed; /* that of the line which is checked */
};

static inline struct format *target_format(const char *config, const struct weir_field_table *fields)
{
	struct weir_json_document *document;
	struct weir_error error;
	struct format *format;
	if (weir_json_parse("config", config, strlen(config), &document, &error) != WEIR_OK) {
		fprintf(stderr, "%s\n", error.text);
		abort();
	}
	struct weir_json root = weir_json_root(document);
	if (format_new(&root, fields, &format, &error) != WEIR_OK) {
		fprintf(stderr, "%s\n", error.text);
		abort();
	}
	weir_json_document_free(document);
	return format;
}

/* Names and configurations end with NULL. */
static inline void target_init(struct target *target, const char *const *names, const char *const *configs)
{
	struct weir_field_table nothing;
	weir_field_table_init(&target->fields);
	weir_field_table_init(&nothing);
	while (*names != NULL)
		require(weir_field_table_want(&target->fields, *names++) >= 0);
	for (; *configs != NULL; configs++, target->count++) {
		target->formats[target->count] = target_format(*configs, &target->fields);
		target->bare[target->count] = target_format(*configs, &nothing);
	}
	weir_field_table_deinit(&nothing);
}

/* A value that is there has bytes, and all of them can be read. */
static inline void target_check_record(const struct target *target, const struct weir_record *record)
{
	require(record->time_ms >= 0 && record->time_ms < WEIR_TIME_END_MS);
	require(record->cost >= 0 && record->cost <= WEIR_COST_MAX);
	for (uint32_t i = 0; i < target->fields.count; i++) {
		if ((target->fields.wanted >> i & 1) == 0 || record->fields[i].at == NULL)
			continue;
		require(record->fields[i].length > 0);
		char *copy = malloc(record->fields[i].length);
		require(copy != NULL);
		memcpy(copy, record->fields[i].at, record->fields[i].length);
		free(copy);
	}
}

/* What is said of a line is a string that may stand on a terminal. */
static inline void target_check_help(const struct format *format, enum format_reason reason, struct weir_span line)
{
	char words[FORMAT_HELP_BYTES];
	for (int of_client = 0; of_client < 2; of_client++) {
		memset(words, 'x', sizeof words);
		if (of_client)
			format_help_client(format, line, words);
		else
			format_help(format, reason, line, words);
		require(memchr(words, '\0', sizeof words) != NULL);
		for (const char *at = words; *at != '\0'; at++)
			require(*at >= ' ' && *at <= '~');
	}
}

/* The same line as the first bytes of one that is above the limit. */
static inline void target_check_cut(const struct target *target, struct format *format, struct weir_span line)
{
	struct weir_record record;
	if (!format->takes_cut)
		return;
	format->cut = true;
	if (format_parse(format, line.at, line.length, &record) == FORMAT_OK)
		target_check_record(target, &record);
	format->cut = false;
}

/* Calls `check`, which may be NULL, with each line that is a record. */
static inline void target_run(struct target *target, const uint8_t *data, size_t size,
                              void (*check)(struct target *target, const char *line, uint32_t length,
                                            enum format_reason reason, const struct weir_record *record))
{
	if (size == 0)
		return;
	size_t chosen = data[0] % target->count;
	struct format *format = target->formats[chosen], *bare = target->bare[chosen];
	format_begin(format, (struct weir_span){0});
	format_begin(bare, (struct weir_span){0});
	const char *at = (const char *)data + 1, *end = (const char *)data + size;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline != NULL ? newline : end) - at);
		char *line = malloc(length > 0 ? length : 1); /* of just its size: a read past it is seen */
		require(line != NULL);
		memcpy(line, at, length);
		struct weir_record record, other;
		enum format_reason reason = format_parse(format, line, (uint32_t)length, &record);
		require(format_reason_text(reason) != NULL && (reason == FORMAT_SKIP || length > 0));
		if (reason == FORMAT_OK)
			target_check_record(target, &record);
		target->parsed = format;
		if (reason != FORMAT_SKIP)
			target_check_help(format, reason, (struct weir_span){.at = line, .length = (uint32_t)length});
		if (check != NULL)
			check(target, line, (uint32_t)length, reason, &record);
		/* What is wanted of a line does not change what it is. */
		enum format_reason bare_reason = format_parse(bare, line, (uint32_t)length, &other);
		bool timed =
			reason == FORMAT_SEARCH_LIMIT || bare_reason == FORMAT_SEARCH_LIMIT; /* as the machine is busy or not */
		require(timed || bare_reason == reason);
		if (reason == FORMAT_OK && !timed)
			require(other.time_ms == record.time_ms && other.cost == record.cost);
		target_check_cut(target, format, (struct weir_span){.at = line, .length = (uint32_t)length});
		free(line);
		at += length + 1;
	}
}

#endif
