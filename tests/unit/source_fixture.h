/* SPDX-License-Identifier: Apache-2.0 */
/* A source under test: what it hands out as one text, with its positions checked on the way. */
#ifndef TESTS_UNIT_SOURCE_FIXTURE_H
#define TESTS_UNIT_SOURCE_FIXTURE_H

#include "collector/source/file/file_source.h"
#include "collector/source/kinds/source_kinds.h"
#include "collector/source/source_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "common/base/clock.h"
#include "tests/unit/log_files.h"

#include <poll.h>

#include <cmocka.h>

enum { READER_STREAMS_MAX = 64, READER_WAIT_MS = 60000 };

/* Who hears what sources tell; NULL: nobody. */
static source_tell *reader_tell;
static void *reader_tell_context;

struct reader {
	struct source *source;
	struct weir_json_document *config;
	char *text; /* all lines, in the order in which they came */
	size_t length;
	unsigned failures;
	char failure[WEIR_ERROR_TEXT_BYTES];
	struct {
		struct source_stream *stream;
		uint64_t position; /* behind its newest line */
	} streams[READER_STREAMS_MAX];
	size_t stream_count;
};

/* Short times: tests wait for what happens, not for clocks. */
static inline void reader_hasten(struct reader *reader)
{
	struct file_source *source = file_source_of(reader->source);
	source->shared.settings.timing = (struct file_timing){.poll = 20,
	                                                      .quiet = 5,
	                                                      .patience = 40,
	                                                      .rest = 10,
	                                                      .grace = 1000,
	                                                      .idle = 300000,
	                                                      .complete = 0,
	                                                      .retry_least = 5,
	                                                      .retry_most = 20};
	source->scan_ms = 0;
}

/* A source of the configuration, in which each %s is the directory. */
static inline void reader_open(struct reader *reader, const char *config, bool once, struct source_memory *memory)
{
	struct weir_error error = {.text = ""};
	char text[1024];
	*reader = (struct reader){.text = weir_alloc(1, 1)};
	snprintf(text, sizeof text, config, log_directory, log_directory, log_directory, log_directory);
	if (weir_json_parse("config", text, strlen(text), &reader->config, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	struct weir_json root = weir_json_root(reader->config);
	struct source_context context = {.once = once,
	                                 .line_max_bytes = 1024,
	                                 .memory = memory,
	                                 .forgets = once && memory == NULL,
	                                 .tell = reader_tell,
	                                 .tell_context = reader_tell_context};
	if (source_new(&root, &context, &reader->source, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	if (!once)
		reader_hasten(reader);
}

static inline void reader_close(struct reader *reader)
{
	reader->source->ops->free(reader->source);
	weir_json_document_free(reader->config);
	free(reader->text);
}

static inline void reader_take(struct reader *reader, const struct source_chunk *chunk)
{
	size_t place = 0;
	while (place < reader->stream_count && reader->streams[place].stream != chunk->stream)
		place++;
	assert_true(place < READER_STREAMS_MAX);
	if (place == reader->stream_count) {
		reader->streams[reader->stream_count++].stream = chunk->stream;
		reader->streams[place].position = 0;
	}
	assert_true(chunk->length > 0);
	assert_true(chunk->position >= reader->streams[place].position);
	assert_true(chunk->position >= UINT64_C(1) << SOURCE_OFFSET_BITS);
	reader->streams[place].position = chunk->position + chunk->length + chunk->skipped;
	reader->text = weir_realloc(reader->text, reader->length + chunk->length + 2, 1);
	memcpy(reader->text + reader->length, chunk->data, chunk->length);
	reader->length += chunk->length;
	if (!chunk->too_long)
		assert_int_equal(chunk->last_open, chunk->data[chunk->length - 1] != '\n');
	if (chunk->data[chunk->length - 1] != '\n')
		reader->text[reader->length++] = '$'; /* shows where a line has no newline */
	reader->text[reader->length] = '\0';
}

/* One chunk, if there is one. */
static inline enum weir_status reader_step(struct reader *reader)
{
	struct source_chunk chunk;
	struct weir_error error;
	enum weir_status status = reader->source->ops->collect(reader->source, NULL, &chunk, &error);
	if (status == WEIR_OK)
		reader_take(reader, &chunk);
	if (status == WEIR_IO) {
		reader->failures++;
		memcpy(reader->failure, error.text, sizeof error.text);
	}
	return status;
}

/* Reads for a time, waiting on the descriptor as a pipeline does. */
static inline void reader_run(struct reader *reader, int64_t duration_ms)
{
	int64_t end_ms = weir_monotonic_ms() + duration_ms;
	while (weir_monotonic_ms() < end_ms)
		if (reader_step(reader) == WEIR_AGAIN) {
			struct pollfd ready = {.fd = reader->source->ops->fd(reader->source), .events = POLLIN};
			poll(&ready, 1, 20);
		}
}

/* Reads until there are so many bytes, or the time is over; then a little more, in which nothing may come. */
static inline void reader_expect_length(struct reader *reader, size_t length)
{
	int64_t end_ms = weir_monotonic_ms() + READER_WAIT_MS;
	while (weir_monotonic_ms() < end_ms && reader->length < length)
		reader_run(reader, 2);
	reader_run(reader, 30);
	assert_int_equal(reader->length, length);
}

/* Reads until the one status has this problem (a part of its words), or none for "". */
static inline void reader_expect_problem(struct reader *reader, const char *words)
{
	int64_t end_ms = weir_monotonic_ms() + READER_WAIT_MS;
	struct source_status status;
	do {
		reader_run(reader, 2);
		reader->source->ops->status(reader->source, &status, 1);
	} while (weir_monotonic_ms() < end_ms &&
	         (words[0] == '\0' ? status.problem[0] != '\0' : strstr(status.problem, words) == NULL));
	if (words[0] == '\0' ? status.problem[0] != '\0' : strstr(status.problem, words) == NULL)
		fail_msg("the problem is \"%s\"", status.problem);
}

/* Reads until the memory's one stream has begun this incarnation: until it has noticed what was done to its file. */
static inline void reader_until_incarnation(struct reader *reader, const struct source_memory *memory, uint32_t number)
{
	int64_t end_ms = weir_monotonic_ms() + READER_WAIT_MS;
	while (weir_monotonic_ms() < end_ms && memory->streams[0]->next_incarnation <= number)
		reader_run(reader, 2);
	assert_true(memory->streams[0]->next_incarnation > number);
}

/* Reads until the text is this, or the time is over; and then for a little while more, in which nothing may come. */
static inline void reader_expect(struct reader *reader, const char *text)
{
	int64_t end_ms = weir_monotonic_ms() + READER_WAIT_MS;
	while (weir_monotonic_ms() < end_ms && reader->length < strlen(text))
		reader_run(reader, 2);
	reader_run(reader, 30);
	assert_string_equal(reader->text, text);
}

/* Reads to the end: sources that are not followed. */
static inline void reader_finish(struct reader *reader)
{
	enum weir_status status;
	while ((status = reader_step(reader)) != WEIR_END)
		assert_true(status == WEIR_OK || status == WEIR_IO);
	assert_int_equal(reader_step(reader), WEIR_END);
}

/* Everything that was handed out so far is safe downstream. */
static inline void reader_acknowledge(struct reader *reader)
{
	for (size_t i = 0; i < reader->stream_count; i++)
		reader->source->ops->acknowledge(reader->source, reader->streams[i].stream, reader->streams[i].position);
}

static inline struct source_status reader_status(struct reader *reader, size_t index)
{
	struct source_status statuses[READER_STREAMS_MAX];
	size_t count = reader->source->ops->status(reader->source, statuses, READER_STREAMS_MAX);
	assert_true(index < count);
	return statuses[index];
}

static inline size_t reader_stream_count(struct reader *reader)
{
	struct source_stream **streams;
	return reader->source->ops->streams(reader->source, &streams);
}

/* What a crash leaves of a memory: its text, read again. */
static inline struct source_memory *memory_again(const struct source_memory *memory)
{
	struct weir_error error;
	struct source_memory *again = NULL;
	size_t length;
	char *text = source_memory_export(memory, &length);
	if (source_memory_import("memory", text, length, &again, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	free(text);
	return again;
}

#endif
