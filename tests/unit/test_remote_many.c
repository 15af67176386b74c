/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More objects than are remembered one by one: each is read once, the oldest first, in a run to the end and in one that
 * follows.
 */
#include "collector/source/remote/remote.h"

#include "collector/source/remote/remote_plan.h"
#include "collector/source/source_memory.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/json/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = REMOTE_OBJECTS_MOST + REMOTE_OBJECTS_MOST / 2, NAME_BYTES = 24 };

/* Objects of one line each, whose names and times come in different orders. */
struct store {
	size_t count;
	int64_t first_ms, step_ms;
	_Atomic unsigned listings;
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
	char name[NAME_BYTES];
	const char *floor = remote_floor(round, "");
	for (size_t i = floor[0] == '\0' ? 0 : strtoul(floor, NULL, 10) + 1; i < store->count; i++) {
		snprintf(name, sizeof name, "%09zu", i);
		struct remote_object object = {.name = name,
		                               .id = i + 1,
		                               .size = 10,
		                               .modified_ms = store->first_ms + (int64_t)place_of(store, i) * store->step_ms};
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
	snprintf(line, sizeof line, "%s\n", object->name);
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

static struct source *open_source(struct store *store, bool once, struct source_memory *memory)
{
	struct remote_settings settings = {
		.name = "many", .follow = !once, .poll_ms = 100, .late_ms = 3600000, .line_max = 65536};
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
	int64_t end_ms = weir_monotonic_ms() + 120000;
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
	struct source *source = open_source(&store, true, NULL);
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
	struct source *source = open_source(&store, false, NULL);
	assert_int_equal(read_lines(source, COUNT, times, &store, true), COUNT);
	assert_each_once(times, COUNT);
	unsigned listings = store.listings;
	int64_t end_ms = weir_monotonic_ms() + 60000;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_to_the_end_reads_all_in_order),
		cmocka_unit_test(a_source_that_follows_reads_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
