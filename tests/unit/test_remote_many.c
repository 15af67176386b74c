/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More objects than are remembered one by one: each is read once, the oldest first, in a run to the end and in one that
 * follows; what is made below the floor of an ordered kind is found.
 */
#include "collector/source/remote/remote.h"

#include "collector/source/remote/remote_plan.h"
#include "collector/source/source_memory.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/json/json.h"
#include "tests/unit/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = REMOTE_OBJECTS_MOST + REMOTE_OBJECTS_MOST / 2, NAME_BYTES = 24, LONG_BYTES = 1024 };
enum { PATIENCE_MS = 300000 };

/* Objects of one line each, whose names and times come in different orders. */
struct store {
	size_t count;
	int64_t first_ms, step_ms;
	size_t name_bytes; /* 0: as many as its number has */
	_Atomic unsigned listings;
	_Atomic bool floored; /* a listing began at a floor */
	_Atomic bool extra;   /* there is one more, named before all others, and new */
};

/* A permutation of 0..count-1, as count is no multiple of the prime. */
static size_t place_of(const struct store *store, size_t name)
{
	return (size_t)((uint64_t)name * 7919 % store->count);
}

static enum weir_status store_list(void *kind, bool whole, struct remote_round *round, struct weir_error *error)
{
	struct store *store = kind;
	(void)whole;
	(void)error;
	char name[LONG_BYTES + 1];
	const char *floor = remote_floor(round, "");
	store->floored |= floor[0] != '\0';
	if (store->extra && floor[0] == '\0') {
		struct remote_object object = {.name = "0000", .id = 1, .size = 10, .modified_ms = weir_wall_ms()};
		remote_found(round, &object);
	}
	for (size_t i = floor[0] == '\0' ? 0 : strtoul(floor, NULL, 10) + 1; i < store->count; i++) {
		int length = snprintf(name, sizeof name, "%09zu", i);
		if (store->name_bytes > 0) {
			memset(name + length, 'x', store->name_bytes - (size_t)length);
			name[store->name_bytes] = '\0';
		}
		struct remote_object object = {.name = name,
		                               .id = (i + 1) * UINT64_C(0x9E3779B97F4A7C15), /* as wide as a hash */
		                               .size = 10,
		                               .modified_ms = store->first_ms + (int64_t)place_of(store, i) * store->step_ms};
		if (store->name_bytes > 0)
			snprintf(object.tag, sizeof object.tag, "\"%032zx\"", i);
		remote_found(round, &object);
	}
	store->listings++;
	return WEIR_OK;
}

static enum weir_status store_read(void *kind, const struct remote_object *object, uint64_t from, uint64_t to, int fd,
                                   uint64_t *got, struct weir_error *error)
{
	char line[NAME_BYTES];
	(void)kind;
	snprintf(line, sizeof line, "%09lu\n", strtoul(object->name, NULL, 10));
	*got = from < 10 ? (to < 10 ? to : 10) - from : 0;
	return write(fd, line + from, *got) == (ssize_t)*got ? WEIR_OK : weir_fail(error, WEIR_IO, "cannot write");
}

static void store_free(void *kind)
{
	(void)kind;
}

static const struct remote_ops ops = {
	.noun = "object", .fixed = true, .ordered = true, .list = store_list, .read = store_read, .free = store_free};

static const struct source_ops source_ops = {.type = "made_up", REMOTE_SOURCE_OPS};

static struct source *open_source(struct store *store, bool once, int64_t late_ms, struct source_memory *memory)
{
	struct remote_settings settings = {
		.name = "many", .follow = !once, .poll_ms = 100, .late_ms = late_ms, .line_max = 65536};
	struct source_context context = {.once = once, .memory = memory};
	struct weir_json config = {0};
	struct source *source;
	struct weir_error error;
	if (remote_source_new(&source_ops, &ops, store, &settings, "many", NULL, &config, &context, &source, &error) !=
	    WEIR_OK)
		fail_msg("%s", error.text);
	return source;
}

/* Reads until so many lines are there, or to the end. @param times  of each name how often it came @return the lines */
static size_t read_lines(struct source *source, size_t most, unsigned char *times, struct store *store, bool sorted)
{
	size_t count = 0, last = 0;
	enum weir_status status;
	struct source_chunk chunk;
	struct weir_error error;
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (count < most && (status = source->ops->collect(source, NULL, &chunk, &error)) != WEIR_END) {
		assert_true(weir_monotonic_ms() < end_ms);
		if (status == WEIR_AGAIN) {
			usleep(1000);
			continue;
		}
		if (status != WEIR_OK)
			fail_msg("%s", error.text);
		for (const char *at = chunk.data; at < chunk.data + chunk.length; at += 10) {
			size_t name = strtoul(at, NULL, 10), place = place_of(store, name);
			times[name]++;
			assert_true(!sorted || count == 0 || place > last);
			last = place;
			count++;
		}
		source->ops->acknowledge(source, chunk.stream, chunk.position + chunk.length);
	}
	return count;
}

static void assert_each_once(const unsigned char *times, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (times[i] != 1)
			fail_msg("object %zu was read %d times", i, times[i]);
}

static void a_run_to_the_end_reads_all_in_order(void **state)
{
	(void)state;
	struct store store = {.count = COUNT, .first_ms = weir_wall_ms() - COUNT, .step_ms = 1}; /* all within "late" */
	unsigned char *times = weir_alloc(COUNT, 1);
	struct source *source = open_source(&store, true, 3600000, NULL);
	assert_int_equal(read_lines(source, SIZE_MAX, times, &store, true), COUNT);
	assert_each_once(times, COUNT);
	source->ops->free(source);
	free(times);
}

static void a_source_that_follows_reads_all(void **state)
{
	(void)state;
	struct store store = {.count = COUNT, .first_ms = 1000, .step_ms = 1}; /* all long ago */
	unsigned char *times = weir_alloc(COUNT + 1, 1);
	struct source *source = open_source(&store, false, 3600000, NULL);
	assert_int_equal(read_lines(source, COUNT, times, &store, true), COUNT);
	assert_each_once(times, COUNT);
	unsigned listings = store.listings;
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (store.listings < listings + 3 && weir_monotonic_ms() < end_ms) {
		struct source_chunk chunk;
		struct weir_error error;
		assert_int_equal(source->ops->collect(source, NULL, &chunk, &error), WEIR_AGAIN); /* nothing comes twice */
		usleep(1000);
	}
	assert_true(store.listings >= listings + 3);
	source->ops->free(source);
	free(times);
}

/* What is saved of a backlog of long names stays within what may be saved. */
static void long_names_are_saved(void **state)
{
	(void)state;
	enum { MANY = 17000 };
	struct store store = {.count = MANY, .first_ms = 1000, .step_ms = 1, .name_bytes = LONG_BYTES};
	unsigned char *times = weir_alloc(MANY, 1);
	struct source_memory *memory;
	struct weir_error error;
	char *directory = scratch_new();
	assert_int_equal(source_memory_open(directory, &memory, &error), WEIR_OK);
	struct source *source = open_source(&store, true, 3600000, memory);
	assert_int_equal(read_lines(source, SIZE_MAX, times, &store, true), MANY);
	assert_each_once(times, MANY);
	source->ops->free(source);
	source_memory_free(memory);
	scratch_remove(directory);
	free(directory);
	free(times);
}

/* Waits for the first lines. @return their position */
static uint64_t first_position(struct source *source)
{
	struct source_chunk chunk;
	struct weir_error error;
	enum weir_status status;
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while ((status = source->ops->collect(source, NULL, &chunk, &error)) == WEIR_AGAIN) {
		assert_true(weir_monotonic_ms() < end_ms);
		usleep(1000);
	}
	assert_int_equal(status, WEIR_OK);
	return chunk.position;
}

/* What is saved of as many objects as are remembered is read again. */
static void a_full_table_is_read_back(void **state)
{
	(void)state;
	struct store store = {.count = REMOTE_OBJECTS_MOST, .first_ms = 1000, .step_ms = 1, .name_bytes = 30};
	struct source_memory *memory;
	struct weir_error error;
	char *directory = scratch_new();
	uint64_t positions[2];
	for (int i = 0; i < 2; i++) {
		if (source_memory_open(directory, &memory, &error) != WEIR_OK)
			fail_msg("%s", error.text);
		struct source *source = open_source(&store, false, 3600000, memory);
		positions[i] = first_position(source);
		source->ops->free(source);
		source_memory_free(memory);
	}
	assert_int_equal(positions[0], positions[1]);
	scratch_remove(directory);
	free(directory);
}

/* Reads without an acknowledgement, until so many lines are there, or nothing more is to be waited for. @return the lines */
static size_t read_unacknowledged(struct source *source, size_t most)
{
	size_t count = 0;
	struct source_chunk chunk;
	struct weir_error error;
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	enum weir_status status;
	do {
		status = source->ops->collect(source, NULL, &chunk, &error);
		if (status == WEIR_OK)
			count += chunk.length / 10;
		else
			assert_int_equal(status, WEIR_AGAIN);
		if (status == WEIR_AGAIN)
			usleep(1000);
	} while (count < most && (status == WEIR_OK || source->ops->fd(source) != -1) && weir_monotonic_ms() < end_ms);
	return count;
}

/* What is not acknowledged is bounded; it is read again at a start, and then the rest. */
static void what_is_not_acknowledged_is_bounded(void **state)
{
	(void)state;
	enum { FIRST = 10, MANY = REMOTE_PIECES_MOST + 8192 };
	struct store store = {.count = FIRST, .first_ms = 1000, .step_ms = 1};
	unsigned char *times = weir_alloc(MANY, 1);
	struct source_memory *memory = source_memory_new(NULL);
	struct source *source = open_source(&store, false, 3600000, memory);
	size_t read = read_unacknowledged(source, FIRST);
	assert_int_equal(read, FIRST);
	source->ops->free(source);
	store = (struct store){.count = MANY, .first_ms = weir_wall_ms(), .step_ms = 1};
	source = open_source(&store, false, 3600000, memory);
	read = read_unacknowledged(source, MANY);
	assert_in_range(read, REMOTE_PIECES_MOST / 2, REMOTE_PIECES_MOST);
	assert_int_equal(source->ops->fd(source), -1); /* that there is more is no reason to ask */
	source->ops->free(source);
	source = open_source(&store, false, 3600000, memory);
	assert_true(read_lines(source, MANY, times, &store, false) == MANY);
	source->ops->free(source);
	source_memory_free(memory);
	free(times);
}

static void what_is_made_below_the_floor_is_found(void **state)
{
	(void)state;
	struct store store = {.count = 10, .first_ms = 0, .step_ms = 1};
	unsigned char times[11] = {0};
	struct source *source = open_source(&store, false, 1000, NULL);
	assert_int_equal(read_lines(source, 10, times, &store, true), 10);
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (!store.floored && weir_monotonic_ms() < end_ms)
		usleep(1000);
	assert_true(store.floored);
	store.extra = true;
	assert_int_equal(read_lines(source, 1, times, &store, false), 1);
	assert_int_equal(times[0], 2); /* its name is read as that of the first */
	source->ops->free(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_to_the_end_reads_all_in_order),
		cmocka_unit_test(a_source_that_follows_reads_all),
		cmocka_unit_test(long_names_are_saved),
		cmocka_unit_test(a_full_table_is_read_back),
		cmocka_unit_test(what_is_not_acknowledged_is_bounded),
		cmocka_unit_test(what_is_made_below_the_floor_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
