/* SPDX-License-Identifier: Apache-2.0 */
/* The external sort: its order against a plain sort, in little memory and much, and what is left of it on disk. */
#include "common/base/alloc.h"
#include "common/files/record_sort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

struct expected {
	int64_t time_ms;
	uint32_t rank, number, length;
};

static uint64_t next_random(uint64_t *random)
{
	*random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
	return *random;
}

static int compare(const void *left, const void *right)
{
	const struct expected *a = left, *b = right;
	if (a->time_ms != b->time_ms)
		return a->time_ms < b->time_ms ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

/* A record's bytes say which one it is, as far as there is room, and go on with that. */
static void fill(char *bytes, uint32_t number, uint32_t length)
{
	char words[16];
	int used = snprintf(words, sizeof words, "%u.", number);
	for (uint32_t i = 0; i < length; i++)
		bytes[i] = words[i % (uint32_t)used];
}

static uint32_t some_length(uint64_t random, uint32_t most)
{
	return random % 50 == 0 ? (uint32_t)(random >> 20) % most : (uint32_t)(random >> 8) % 40;
}

struct shape {
	size_t memory_bytes;
	uint32_t count, length_most;
	uint64_t times; /* how many different ones */
	bool on_disk;
};

static void sort_and_compare(const struct shape *shape)
{
	struct weir_error error;
	uint64_t random = 88172645463325252;
	char *bytes = weir_alloc(shape->length_most, 1);
	struct expected *expected = weir_alloc(shape->count, sizeof *expected);
	struct weir_record_sort *sort =
		weir_record_sort_new(&(struct weir_record_sort_options){.memory_bytes = shape->memory_bytes});
	for (uint32_t i = 0; i < shape->count; i++) {
		uint64_t drawn = next_random(&random);
		expected[i] = (struct expected){.time_ms = (int64_t)(drawn % shape->times) - 7,
		                                .rank = (uint32_t)(drawn >> 60) % 3,
		                                .number = i,
		                                .length = some_length(next_random(&random), shape->length_most)};
		fill(bytes, i, expected[i].length);
		struct weir_span span = {.at = bytes, .length = expected[i].length};
		assert_int_equal(weir_record_sort_add(sort, expected[i].time_ms, expected[i].rank, span, &error), WEIR_OK);
	}
	assert_int_equal(weir_record_sort_finish(sort, &error), WEIR_OK);
	assert_int_equal(weir_record_sort_count(sort), shape->count);
	assert_int_equal(weir_record_sort_disk_bytes(sort) > 0, shape->on_disk);
	qsort(expected, shape->count, sizeof *expected, compare);
	struct weir_span got;
	int64_t time_ms;
	for (uint32_t i = 0; i < shape->count; i++) {
		assert_int_equal(weir_record_sort_next(sort, &time_ms, &got, &error), WEIR_OK);
		assert_int_equal(time_ms, expected[i].time_ms);
		assert_int_equal(got.length, expected[i].length);
		fill(bytes, expected[i].number, expected[i].length);
		assert_memory_equal(got.at, bytes, got.length);
	}
	assert_int_equal(weir_record_sort_next(sort, &time_ms, &got, &error), WEIR_END);
	assert_int_equal(weir_record_sort_next(sort, &time_ms, &got, &error), WEIR_END);
	weir_record_sort_free(sort);
	free(expected);
	free(bytes);
}

static void it_sorts_what_fits_and_what_does_not(void **state)
{
	(void)state;
	static const struct shape shapes[] = {
		{1 << 20, 3000, 100, 1000, false},
		{1 << 20, 0, 1, 1, false},
		{1 << 20, 1, 100, 1, false},
		{WEIR_RECORD_SORT_LEAST_BYTES, 3000, 100, 1000, true},
		{WEIR_RECORD_SORT_LEAST_BYTES, 3000, 100, 1, true},       /* equal times alone */
		{WEIR_RECORD_SORT_LEAST_BYTES, 2000, 20000, 50, true},    /* records above the memory */
		{WEIR_RECORD_SORT_LEAST_BYTES, 60000, 200, 100000, true}, /* more runs than are merged at once */
		{1 << 16, 100000, 500, UINT64_C(1) << 40, true},
	};
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		sort_and_compare(&shapes[i]);
}

static uint32_t names_in(const char *directory)
{
	uint32_t count = 0;
	DIR *listing = opendir(directory);
	for (struct dirent *entry; (entry = readdir(listing)) != NULL;)
		count += entry->d_name[0] != '.';
	closedir(listing);
	return count;
}

static enum weir_status add_many(struct weir_record_sort *sort, uint32_t count, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	struct weir_span bytes = weir_span_of("some bytes of a record");
	for (uint32_t i = 0; status == WEIR_OK && i < count; i++)
		status = weir_record_sort_add(sort, 1000000 - i, 0, bytes, error);
	return status;
}

static void its_file_has_no_name(void **state)
{
	(void)state;
	struct weir_error error;
	char directory[] = "/tmp/weir-test-sort-XXXXXX";
	assert_non_null(mkdtemp(directory));
	struct weir_record_sort *sort = weir_record_sort_new(
		&(struct weir_record_sort_options){.memory_bytes = WEIR_RECORD_SORT_LEAST_BYTES, .directory = directory});
	assert_int_equal(add_many(sort, 1000, &error), WEIR_OK);
	assert_true(weir_record_sort_disk_bytes(sort) > 0);
	assert_int_equal(names_in(directory), 0);
	weir_record_sort_free(sort);
	assert_int_equal(rmdir(directory), 0);
}

static void it_says_where_it_cannot_write(void **state)
{
	(void)state;
	struct weir_error error;
	struct weir_record_sort *sort = weir_record_sort_new(&(struct weir_record_sort_options){
		.memory_bytes = WEIR_RECORD_SORT_LEAST_BYTES, .directory = "/nowhere/at/all"});
	assert_int_equal(add_many(sort, 1000, &error), WEIR_IO);
	assert_string_equal(error.text,
	                    "cannot make the temporary file for sorting in /nowhere/at/all: No such file or directory");
	weir_record_sort_free(sort);
}

static void a_file_that_cannot_grow_ends_it(void **state)
{
	(void)state;
	struct weir_error error;
	struct rlimit before, small = {.rlim_cur = 1 << 20};
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	struct weir_record_sort *sort =
		weir_record_sort_new(&(struct weir_record_sort_options){.memory_bytes = 1 << 16, .directory = "/tmp"});
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	enum weir_status status = add_many(sort, 100000, &error);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(status, WEIR_IO);
	assert_string_equal(error.text, "cannot write the temporary file for sorting in /tmp: File too large");
	weir_record_sort_free(sort);
}

static void a_stop_ends_what_takes_long(void **state)
{
	(void)state;
	struct weir_error error;
	_Atomic bool stop = false;
	struct weir_record_sort *sort =
		weir_record_sort_new(&(struct weir_record_sort_options){.memory_bytes = 8 << 20, .stop = &stop});
	assert_int_equal(add_many(sort, 1000, &error), WEIR_OK);
	stop = true;
	assert_int_equal(add_many(sort, 1000000, &error), WEIR_AGAIN);
	weir_record_sort_free(sort);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_sorts_what_fits_and_what_does_not), cmocka_unit_test(its_file_has_no_name),
		cmocka_unit_test(it_says_where_it_cannot_write),        cmocka_unit_test(a_file_that_cannot_grow_ends_it),
		cmocka_unit_test(a_stop_ends_what_takes_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
