/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remote files against a store that is made up here: lines of objects that appear, grow, are renamed, truncated, packed
 * and closed come once each and in order, under the same positions again after a crash.
 */
#include "collector/source/remote/remote.h"

#include "collector/source/remote/internal.h"
#include "collector/source/remote/remote_plan.h"
#include "collector/source/source_memory.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/json/json.h"
#include "tests/unit/scratch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { OBJECTS_MAX = 64, LINES_MAX = 20000, WAIT_MS = 20000 };

/* ---- the store ---- */

struct object {
	uint64_t id;
	char name[64];
	char *bytes;
	size_t length, listed; /* listed: what a listing says, as a NameNode's lags */
	int64_t modified_ms;
	bool open, gone;
	bool lags; /* a listing says `listed` though nobody knows that it is open */
};

struct store {
	pthread_mutex_t mutex;
	struct object objects[OBJECTS_MAX];
	size_t count;
	int64_t clock_ms;
	unsigned fail_lists, fail_reads; /* so many of the next ones */
	unsigned fail_heads;             /* and reads of a beginning */
	uint64_t most_asked;             /* the largest range */
	bool asks;                       /* who writes, as the listing does not say it */
	_Atomic unsigned listings;
	_Atomic bool holds; /* what is behind an object's beginning comes later */
};

static enum weir_status store_list(void *kind, bool whole, struct remote_round *round, struct weir_error *error)
{
	struct store *store = kind;
	(void)whole;
	pthread_mutex_lock(&store->mutex);
	bool fails = store->fail_lists > 0;
	store->fail_lists -= fails;
	for (size_t i = 0; i < store->count && !fails; i++) {
		const struct object *at = &store->objects[i];
		struct remote_object object = {.name = at->name,
		                               .id = at->id,
		                               .size = at->open || at->lags ? at->listed : at->length,
		                               .modified_ms = at->modified_ms,
		                               .open = at->open};
		if (store->asks && remote_wants_open(round, &object))
			object.open = at->open;
		if (!at->gone)
			remote_found(round, &object);
	}
	pthread_mutex_unlock(&store->mutex);
	store->listings += !fails;
	return fails ? weir_fail(error, WEIR_IO, "the store is away") : WEIR_OK;
}

static enum weir_status store_read(void *kind, const struct remote_object *asked, uint64_t from, uint64_t to, int fd,
                                   uint64_t *got, struct weir_error *error)
{
	struct store *store = kind;
	enum weir_status status = weir_fail(error, WEIR_END, "gone");
	*got = 0;
	while (from > 0 && store->holds)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	pthread_mutex_lock(&store->mutex);
	store->most_asked = to - from > store->most_asked ? to - from : store->most_asked;
	for (size_t i = 0; i < store->count; i++) {
		const struct object *at = &store->objects[i];
		if (at->id != asked->id || at->gone)
			continue;
		if (store->fail_reads > 0 || (from == 0 && store->fail_heads > 0)) {
			store->fail_reads -= store->fail_reads > 0;
			store->fail_heads -= from == 0 && store->fail_heads > 0;
			status = weir_fail(error, WEIR_IO, "the connection is cut");
		} else if (from > at->length) {
			status = weir_fail(error, WEIR_INVALID, "behind the end");
		} else {
			uint64_t most = at->length - from < to - from ? at->length - from : to - from;
			assert_int_equal(write(fd, at->bytes + from, most), most);
			*got = most;
			status = WEIR_OK;
		}
	}
	pthread_mutex_unlock(&store->mutex);
	return status;
}

static void store_free(void *kind)
{
	(void)kind; /* it outlives its sources, as a server does */
}

static const struct remote_ops store_ops = {
	.noun = "object", .rising = true, .at_once = 4, .list = store_list, .read = store_read, .free = store_free};

static const struct source_ops source_ops = {.type = "store", REMOTE_SOURCE_OPS};

static struct object *put(struct store *store, const char *bytes, size_t length, bool open)
{
	struct object *at = &store->objects[store->count];
	*at = (struct object){.id = 1000 + store->count,
	                      .bytes = weir_copy(bytes, length),
	                      .length = length,
	                      .listed = length / 2,
	                      .modified_ms = weir_wall_ms() - 1000000 + ++store->clock_ms,
	                      .open = open};
	snprintf(at->name, sizeof at->name, "/logs/%zu.log", store->count++);
	return at;
}

static void append(struct object *at, const char *bytes, size_t length)
{
	at->bytes = weir_realloc(at->bytes, at->length + length, 1);
	memcpy(at->bytes + at->length, bytes, length);
	at->length += length;
}

static void store_deinit(struct store *store)
{
	for (size_t i = 0; i < store->count; i++)
		free(store->objects[i].bytes);
	pthread_mutex_destroy(&store->mutex);
}

/* ---- a reader, as the collector and a limiter are ---- */

struct reader {
	struct store *store;
	struct remote_settings settings;
	bool once;
	char *directory;
	struct source_memory *memory;
	struct source *source;
	uint64_t highest; /* position: what comes at or before it again is dropped */
	struct {
		uint64_t position;
		char line[48];
	} lines[LINES_MAX];
	size_t count;
	uint64_t too_long;
};

static void reader_open(struct reader *reader)
{
	struct weir_error error;
	struct weir_json_document *document;
	static const char text[] = "{\"format\": {\"type\": \"delimited\"}}";
	assert_int_equal(weir_json_parse("test", text, sizeof text - 1, &document, &error), WEIR_OK);
	struct weir_json config = weir_json_root(document);
	assert_int_equal(source_memory_open(reader->directory, &reader->memory, &error), WEIR_OK);
	const struct source_context context = {.once = reader->once, .memory = reader->memory};
	assert_int_equal(remote_source_new(&source_ops, &store_ops, reader->store, &reader->settings, "all", NULL, &config,
	                                   &context, &reader->source, &error),
	                 WEIR_OK);
	weir_json_document_free(document);
}

/* As a crash does: nothing is saved. */
static void reader_crash(struct reader *reader)
{
	reader->source->ops->free(reader->source);
	source_memory_free(reader->memory);
	reader->source = NULL;
}

/* The line that ends at a position: new, or the same as before. */
static void take_line(struct reader *reader, uint64_t position, const char *line, size_t length)
{
	if (position <= reader->highest) {
		for (size_t i = reader->count; i-- > 0;)
			if (reader->lines[i].position == position) {
				assert_int_equal(strlen(reader->lines[i].line), length);
				assert_memory_equal(reader->lines[i].line, line, length);
				return;
			}
		fail_msg("a line came again under a position that it did not have");
	}
	assert_true(reader->count < LINES_MAX && length < sizeof reader->lines[0].line);
	reader->highest = reader->lines[reader->count].position = position;
	memcpy(reader->lines[reader->count].line, line, length);
	reader->lines[reader->count++].line[length] = '\0';
}

/* Reads a chunk. @return as collect() */
static enum weir_status reader_step(struct reader *reader, struct weir_error *error)
{
	struct source_chunk chunk;
	enum weir_status status = reader->source->ops->collect(reader->source, NULL, &chunk, error);
	if (status != WEIR_OK)
		return status;
	assert_true(chunk.length > 0);
	if (chunk.too_long) {
		reader->too_long++;
		reader->highest = chunk.position + chunk.length + chunk.skipped;
		return status;
	}
	for (size_t at = 0; at < chunk.length;) {
		const char *newline = memchr(chunk.data + at, '\n', chunk.length - at);
		size_t end = newline != NULL ? (size_t)(newline - chunk.data) : chunk.length;
		take_line(reader, chunk.position + end + (newline != NULL), chunk.data + at, end - at);
		at = end + 1;
	}
	return status;
}

static void reader_acknowledge(struct reader *reader, uint64_t position, bool save)
{
	struct source_stream **streams;
	struct weir_error error;
	reader->source->ops->streams(reader->source, &streams);
	reader->source->ops->acknowledge(reader->source, streams[0], position);
	if (save)
		assert_int_equal(source_memory_save(reader->memory, &error), WEIR_OK);
}

static void reader_init(struct reader *reader, struct store *store, bool once)
{
	*store = (struct store){0};
	pthread_mutex_init(&store->mutex, NULL);
	*reader = (struct reader){.store = store,
	                          .once = once,
	                          .directory = scratch_new(),
	                          .settings = {.follow = !once, .poll_ms = 1, .late_ms = 3600000, .line_max = 4096}};
}

static void reader_deinit(struct reader *reader)
{
	reader_crash(reader);
	store_deinit(reader->store);
	scratch_remove(reader->directory);
	free(reader->directory);
}

/* Reads until so many lines have come. */
static void read_lines(struct reader *reader, size_t count)
{
	int64_t end_ms = weir_monotonic_ms() + WAIT_MS;
	struct weir_error error = {.text = ""};
	while (reader->count < count && weir_monotonic_ms() < end_ms) {
		enum weir_status status = reader_step(reader, &error);
		if (status == WEIR_AGAIN)
			nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
		else
			assert_int_equal(status, WEIR_OK);
	}
	assert_int_equal(reader->count, count);
}

/* Each object's lines "ID.NUMBER" are 0, 1, 2 ..., none is left out or comes twice. */
static void assert_in_order(const struct reader *reader, const size_t written[OBJECTS_MAX])
{
	size_t seen[OBJECTS_MAX] = {0};
	for (size_t i = 0; i < reader->count; i++) {
		size_t object = 0, number = 0;
		assert_int_equal(sscanf(reader->lines[i].line, "%zu.%zu", &object, &number), 2);
		assert_int_equal(number, seen[object]);
		seen[object]++;
	}
	for (size_t i = 0; i < OBJECTS_MAX; i++)
		assert_int_equal(seen[i], written[i]);
}

/* ---- what is read to its end ---- */

static void all_is_read_once(void **state)
{
	(void)state;
	struct store store;
	struct reader *reader = weir_alloc(1, sizeof *reader);
	struct weir_error error;
	unsigned char packed[256];
	reader_init(reader, &store, true);
	put(&store, "0.0\n0.1\n", 8, false);
	z_stream stream = {0};
	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	stream.next_in = (unsigned char *)(void *)"1.0\n1.1\n1.2";
	stream.avail_in = 11;
	stream.next_out = packed;
	stream.avail_out = sizeof packed;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	put(&store, (char *)packed, sizeof packed - stream.avail_out, false);
	deflateEnd(&stream);
	put(&store, "2.0\n2.1", 7, true);
	put(&store, "", 0, false);
	reader_open(reader);
	enum weir_status status;
	while ((status = reader_step(reader, &error)) == WEIR_OK || status == WEIR_AGAIN)
		;
	assert_int_equal(status, WEIR_END);
	const size_t written[OBJECTS_MAX] = {2, 3, 2};
	assert_in_order(reader, written);
	reader_deinit(reader);
	free(reader);
}

static void what_cannot_be_read_is_said(void **state)
{
	(void)state;
	struct store store;
	struct reader *reader = weir_alloc(1, sizeof *reader);
	struct weir_error error = {.text = ""};
	reader_init(reader, &store, true);
	put(&store, "0.0\n", 4, false);
	store.fail_reads = 1000;
	reader_open(reader);
	enum weir_status status;
	while ((status = reader_step(reader, &error)) == WEIR_AGAIN)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(status, WEIR_IO);
	assert_non_null(strstr(error.text, "/logs/0.log: the connection is cut"));
	reader_deinit(reader);
	free(reader);
}

/* A check waits for no more than the first bytes, however large what it reads is. */
static void what_gives_its_first_bytes_is_well(void **state)
{
	(void)state;
	enum { BYTES = 9 << 20 }; /* more than one range */
	struct store store;
	struct source_status status = {0};
	struct reader *reader = weir_alloc(1, sizeof *reader);
	struct weir_error error = {.text = ""};
	char *bytes = weir_alloc(BYTES, 1);
	memset(bytes, '\n', BYTES);
	reader_init(reader, &store, true);
	put(&store, bytes, BYTES, false);
	store.holds = true;
	reader_open(reader);
	for (int64_t end_ms = weir_monotonic_ms() + WAIT_MS; !status.well && weir_monotonic_ms() < end_ms;) {
		assert_int_equal(reader_step(reader, &error), WEIR_AGAIN);
		(void)reader->source->ops->status(reader->source, &status, 1);
	}
	assert_true(status.well);
	assert_string_equal(status.problem, "");
	store.holds = false;
	reader_deinit(reader);
	free(reader);
	free(bytes);
}

/* ---- what is followed ---- */

static void what_could_not_be_read_is_well_again(void **state)
{
	(void)state;
	struct store store;
	struct reader *reader = weir_alloc(1, sizeof *reader);
	struct source_status status;
	int64_t end_ms = weir_monotonic_ms() + WAIT_MS;
	reader_init(reader, &store, false);
	put(&store, "0.0\n", 4, true);
	reader_open(reader);
	read_lines(reader, 1);
	pthread_mutex_lock(&store.mutex);
	store.fail_reads = 2;
	pthread_mutex_unlock(&store.mutex);
	for (int told = 0; told < 2;) {
		assert_true(weir_monotonic_ms() < end_ms);
		reader->source->ops->status(reader->source, &status, 1);
		told += (strstr(status.problem, "the connection is cut") != NULL) == (told == 0);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	reader_deinit(reader);
	free(reader);
}

static void a_line_too_long_comes_as_one(void **state)
{
	(void)state;
	struct store store;
	struct reader *reader = weir_alloc(1, sizeof *reader);
	size_t length = 20 << 20;
	char *line = weir_alloc(length, 1);
	reader_init(reader, &store, false);
	memset(line, 'x', length);
	memcpy(line, "0.0\n", 4);
	memcpy(line + length - 5, "\n0.1\n", 5);
	put(&store, line, length, false);
	reader_open(reader);
	read_lines(reader, 2);
	assert_int_equal(reader->too_long, 1);
	assert_in_order(reader, (const size_t[OBJECTS_MAX]){2});
	assert_true(store.most_asked <= REMOTE_STEP_BYTES);
	reader_deinit(reader);
	free(line);
	free(reader);
}

static void truncated_is_told_and_read_on(void **state)
{
	(void)state;
	struct store store;
	struct reader *reader = weir_alloc(1, sizeof *reader);
	struct source_status status;
	reader_init(reader, &store, false);
	struct object *at = put(&store, "0.0\n0.1\n", 8, false);
	reader_open(reader);
	read_lines(reader, 2);
	pthread_mutex_lock(&store.mutex);
	at->length = 4;
	at->modified_ms++;
	pthread_mutex_unlock(&store.mutex);
	do
		reader->source->ops->status(reader->source, &status, 1);
	while (strstr(status.problem, "truncated from 8 bytes to 4") == NULL);
	assert_true(status.reads_on);
	pthread_mutex_lock(&store.mutex);
	append(at, "0.2\n", 4);
	at->modified_ms++;
	pthread_mutex_unlock(&store.mutex);
	read_lines(reader, 3);
	assert_in_order(reader, (const size_t[OBJECTS_MAX]){3});
	reader_deinit(reader);
	free(reader);
}

/* Nothing more comes while all is listed some times more. */
static void read_nothing(struct reader *reader)
{
	unsigned listings = reader->store->listings;
	struct weir_error error;
	while (reader->store->listings < listings + 4) {
		assert_int_equal(reader_step(reader, &error), WEIR_AGAIN);
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
}

/* As a NameNode does, whose listing tells the length of a file only once it is closed. */
static void an_old_file_that_is_still_written_to_is_read_once(void **state)
{
	(void)state;
	struct store store;
	struct reader *reader = weir_alloc(1, sizeof *reader);
	reader_init(reader, &store, false);
	store.asks = true;
	struct object *open = put(&store, "0.0\n0.1\n", 8, true), *unknown = put(&store, "1.0\n1.1\n", 8, false);
	open->modified_ms = unknown->modified_ms = weir_wall_ms() - 2 * reader->settings.late_ms;
	unknown->lags = true;
	reader_open(reader);
	read_lines(reader, 4);
	read_nothing(reader);
	pthread_mutex_lock(&store.mutex);
	append(open, "0.2\n", 4);
	pthread_mutex_unlock(&store.mutex);
	read_lines(reader, 5);
	pthread_mutex_lock(&store.mutex);
	append(unknown, "1.2\n", 4);
	unknown->lags = false;
	unknown->modified_ms = weir_wall_ms();
	pthread_mutex_unlock(&store.mutex);
	read_lines(reader, 6);
	read_nothing(reader);
	assert_in_order(reader, (const size_t[OBJECTS_MAX]){3, 3});
	reader_deinit(reader);
	free(reader);
}

static void the_end_is_where_it_was(void **state)
{
	(void)state;
	struct store store;
	struct reader *reader = weir_alloc(1, sizeof *reader);
	struct weir_error error;
	reader_init(reader, &store, false);
	reader->settings.start = SOURCE_FROM_END;
	put(&store, "old\nold\n", 8, false);
	struct object *at = put(&store, "old\nol", 6, true);
	at->listed = at->length;
	reader_open(reader);
	struct source_status status;
	do {
		assert_int_equal(reader_step(reader, &error), WEIR_AGAIN);
		reader->source->ops->status(reader->source, &status, 1);
	} while (reader->memory->streams[0]->notes == NULL);
	reader_crash(reader);
	append(at, "d\n1.0\n", 6);
	put(&store, "2.0\n", 4, false);
	reader_open(reader);
	read_lines(reader, 2);
	assert_in_order(reader, (const size_t[OBJECTS_MAX]){0, 1, 1});
	reader_deinit(reader);
	free(reader);
}

/* An old file that is complete, and was made after it, is listed before it. */
static void what_is_open_at_the_end_is_followed(void **state)
{
	(void)state;
	struct store store;
	struct reader *reader = weir_alloc(1, sizeof *reader);
	reader_init(reader, &store, false);
	reader->settings.start = SOURCE_FROM_END;
	store.asks = true;
	struct object *complete = put(&store, "old\n", 4, false), *open = put(&store, "old\nol", 6, true);
	complete->modified_ms = open->modified_ms = weir_wall_ms() - 2 * reader->settings.late_ms;
	complete->id = open->id + 1;
	open->listed = open->length;
	reader_open(reader);
	read_nothing(reader);
	pthread_mutex_lock(&store.mutex);
	append(open, "d\n1.0\n", 6);
	pthread_mutex_unlock(&store.mutex);
	read_lines(reader, 1);
	assert_in_order(reader, (const size_t[OBJECTS_MAX]){0, 1});
	reader_deinit(reader);
	free(reader);
}

/* Also where they cannot be had at first. */
static void goes_on_with_first_lines(bool replays)
{
	struct store store;
	struct reader *reader = weir_alloc(1, sizeof *reader);
	struct source_chunk chunk;
	struct weir_error error;
	enum weir_status status;
	reader_init(reader, &store, false);
	struct object *at = put(&store, "header\n0.0\n0.1\n", 15, true);
	at->listed = at->length;
	reader_open(reader);
	read_lines(reader, 3);
	reader_acknowledge(reader, reader->lines[replays ? 1 : 2].position, true);
	reader_crash(reader);
	append(at, "0.2\n", 4);
	store.fail_heads = 2;
	reader_open(reader);
	for (int i = 0; i < 1 + replays; i++) { /* what is read again, and what is new */
		while ((status = reader->source->ops->collect(reader->source, NULL, &chunk, &error)) == WEIR_AGAIN)
			nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
		assert_int_equal(status, WEIR_OK);
		assert_int_equal(chunk.begins, i == 0);
		assert_int_equal(chunk.length, 4);
		assert_int_equal(chunk.before.length, 19);
		assert_memory_equal(chunk.before.at, "header\n", 7);
	}
	reader_deinit(reader);
	free(reader);
}

static void first_lines_are_given_where_reading_goes_on(void **state)
{
	(void)state;
	goes_on_with_first_lines(false);
	goes_on_with_first_lines(true);
}

/* ---- positions ---- */

static const char *path_of(const char *name)
{
	static char path[64];
	snprintf(path, sizeof path, "%sstore:%s", SOURCE_REMOTE_PREFIX, name);
	return path;
}

static void ranges_are_as_long_as_they_come_fast(void **state)
{
	(void)state;
	struct remote_step step = {.bytes = 0};
	struct remote_fetch fetch = {.range_bytes = REMOTE_RANGE_BYTES, .step = &step};
	for (int i = 0; i < 8; i++)
		remote_range_came(&fetch, remote_range_next(&fetch), remote_range_next(&fetch), 1);
	assert_int_equal(remote_range_next(&fetch), REMOTE_STEP_BYTES);
	step.bytes = REMOTE_STEP_BYTES / 2; /* no more than the step takes */
	assert_int_equal(remote_range_next(&fetch), REMOTE_STEP_BYTES / 2);
	step.bytes = REMOTE_STEP_BYTES;
	assert_int_equal(remote_range_next(&fetch), REMOTE_RANGE_BYTES);
	for (int i = 0; i < 8; i++)
		remote_range_came(&fetch, REMOTE_STEP_BYTES, 1, 10000);
	step.bytes = 0;
	assert_int_equal(remote_range_next(&fetch), REMOTE_RANGE_BYTES);
	remote_range_came(&fetch, REMOTE_RANGE_BYTES, REMOTE_RANGE_BYTES - 1, 1); /* the end came early, not the bytes */
	assert_int_equal(remote_range_next(&fetch), REMOTE_RANGE_BYTES);
}

static void sources_that_are_no_more_are_forgotten(void **state)
{
	(void)state;
	struct store store;
	struct reader *reader = weir_alloc(1, sizeof *reader);
	const int64_t now_ns = weir_wall_ms() * 1000000, day_ns = INT64_C(86400) * 1000000000;
	reader_init(reader, &store, false);
	put(&store, "0.0\n", 4, false);
	reader_open(reader);
	source_memory_add(reader->memory, path_of("old"))->forgotten_ns = now_ns - 8 * day_ns;
	source_memory_add(reader->memory, path_of("new"))->forgotten_ns = now_ns - 6 * day_ns;
	source_memory_find(reader->memory, path_of("all"))->forgotten_ns = now_ns - 8 * day_ns; /* nothing came for long */
	source_memory_add(reader->memory, "/log")->forgotten_ns = 0;
	read_lines(reader, 1);
	assert_null(source_memory_find(reader->memory, path_of("old")));
	assert_non_null(source_memory_find(reader->memory, path_of("new")));
	assert_non_null(source_memory_find(reader->memory, "/log"));
	assert_true(source_memory_find(reader->memory, path_of("all"))->forgotten_ns >= now_ns);
	reader_deinit(reader);
	free(reader);
}

/* What is before a multiple of 2^40 and what is behind it are of two logs. */
static void no_piece_crosses_a_border_of_positions(void **state)
{
	(void)state;
	struct store store;
	struct reader *reader = weir_alloc(1, sizeof *reader);
	struct remote_table table = {0};
	struct weir_text text = {0}, notes = {0};
	struct weir_error error;
	const uint64_t border = UINT64_C(5) << SOURCE_OFFSET_BITS;
	reader_init(reader, &store, false);
	assert_int_equal(source_memory_open(reader->directory, &reader->memory, &error), WEIR_OK);
	remote_table_put(&table, &text);
	remote_notes_put(&notes, weir_text_span(&text), NULL, 0, border - 10);
	source_memory_note(reader->memory, source_memory_add(reader->memory, path_of("all")), &notes);
	assert_int_equal(source_memory_save(reader->memory, &error), WEIR_OK);
	source_memory_free(reader->memory);
	weir_text_deinit(&text);
	put(&store, "0.0\n0.1\n", 8, false);
	put(&store, "1.0\n1.1\n", 8, false);
	reader_open(reader);
	read_lines(reader, 4);
	assert_int_equal(reader->lines[1].position, border - 2);
	assert_int_equal(reader->lines[2].position, border + 4);
	assert_int_equal(reader->lines[3].position, border + 8);
	reader_deinit(reader);
	free(reader);
}

/* ---- at random, with crashes between any two steps ---- */

static void write_some(struct store *store, size_t written[OBJECTS_MAX])
{
	pthread_mutex_lock(&store->mutex);
	unsigned turn = (unsigned)rand();
	struct object *at = store->count > 0 ? &store->objects[turn % store->count] : NULL;
	if (at == NULL || (turn % 11 == 0 && store->count < OBJECTS_MAX)) {
		put(store, "", 0, true);
	} else if (turn % 13 == 1) {
		snprintf(at->name, sizeof at->name, "/logs/renamed.%u", turn);
	} else if (turn % 13 == 2 && at->open) {
		at->open = false; /* whole lines, as what it has is not cut */
		at->modified_ms = weir_wall_ms() - 1000000 + ++store->clock_ms;
	} else if (turn % 17 == 3) {
		store->fail_reads = 1 + turn % 3;
	} else if (turn % 17 == 4) {
		store->fail_lists = 1;
	} else {
		at->open = true; /* also again: an append */
		for (unsigned i = turn % 40; i > 0; i--) {
			char line[64];
			size_t object = (size_t)(at - store->objects);
			int length = snprintf(line, sizeof line, "%zu.%zu\n", object, written[object]++);
			append(at, line, (size_t)length);
		}
		if (turn % 3 == 0)
			at->listed = at->length;
	}
	pthread_mutex_unlock(&store->mutex);
}

static void play(unsigned seed)
{
	struct store store;
	struct reader *reader = weir_alloc(1, sizeof *reader);
	size_t written[OBJECTS_MAX] = {0}, total = 0;
	struct weir_error error;
	srand(seed);
	reader_init(reader, &store, false);
	reader_open(reader);
	for (int step = 0; step < 400; step++) {
		write_some(&store, written);
		for (int i = rand() % 4; i > 0; i--)
			if (reader_step(reader, &error) == WEIR_AGAIN)
				nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
		if (rand() % 8 == 0 && reader->count > 0)
			reader_acknowledge(
				reader,
				reader->lines[reader->count - 1 - (size_t)rand() % (reader->count < 20 ? reader->count : 20)].position,
				rand() % 2 == 0);
		if (rand() % 12 == 0) {
			reader_crash(reader);
			reader_open(reader);
		}
	}
	pthread_mutex_lock(&store.mutex);
	store.fail_reads = store.fail_lists = 0;
	pthread_mutex_unlock(&store.mutex);
	for (size_t i = 0; i < OBJECTS_MAX; i++)
		total += written[i];
	read_lines(reader, total);
	assert_in_order(reader, written);
	reader_deinit(reader);
	free(reader);
}

static void each_line_comes_once(void **state)
{
	(void)state;
	const char *rounds = getenv("WEIR_ROUNDS");
	for (unsigned seed = 1; seed <= (rounds != NULL ? (unsigned)atoi(rounds) : 8); seed++) {
		print_message("seed %u\n", seed);
		play(seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_read_once),
		cmocka_unit_test(what_cannot_be_read_is_said),
		cmocka_unit_test(what_gives_its_first_bytes_is_well),
		cmocka_unit_test(what_could_not_be_read_is_well_again),
		cmocka_unit_test(a_line_too_long_comes_as_one),
		cmocka_unit_test(truncated_is_told_and_read_on),
		cmocka_unit_test(an_old_file_that_is_still_written_to_is_read_once),
		cmocka_unit_test(the_end_is_where_it_was),
		cmocka_unit_test(what_is_open_at_the_end_is_followed),
		cmocka_unit_test(first_lines_are_given_where_reading_goes_on),
		cmocka_unit_test(ranges_are_as_long_as_they_come_fast),
		cmocka_unit_test(sources_that_are_no_more_are_forgotten),
		cmocka_unit_test(no_piece_crosses_a_border_of_positions),
		cmocka_unit_test(each_line_comes_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
