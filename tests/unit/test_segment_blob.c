/* SPDX-License-Identifier: Apache-2.0 */
/* A segment's blob as bytes: what is none, is damaged, or comes from a newer version is told apart. */
#include "limiter/shard/segment_blob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { AT_VERSION = 2, AT_ZERO = 3, AT_CHECKSUM = 8, ROOM = 256 };

struct blob {
	char bytes[ROOM];
	size_t length;
};

/* One bucket without anything behind its header. */
static struct blob make_blob(uint32_t buckets)
{
	struct blob blob = {.length = 0};
	struct bucket bucket = {.low = 1, .high = 2, .newest_ms = 1732173600123, .clock_s = 1732173600, .layout = 1};
	char *end = segment_blob_put(blob.bytes + SEGMENT_BLOB_HEAD_BYTES, &bucket, sizeof bucket);
	blob.length = (size_t)(end - blob.bytes);
	assert_int_equal(blob.length, SEGMENT_BLOB_HEAD_BYTES + segment_blob_bucket_bytes(sizeof bucket));
	segment_blob_seal(blob.bytes, blob.length, buckets, 0);
	return blob;
}

static enum weir_status open_blob(const struct blob *blob, struct segment_blob_reader *reader, struct weir_error *error)
{
	struct weir_span span = {.at = blob->bytes, .length = (uint32_t)blob->length};
	return segment_blob_open(reader, span, error);
}

static void assert_refused(const struct blob *blob, enum weir_status expected, const char *words)
{
	struct segment_blob_reader reader;
	struct weir_error error;
	assert_int_equal(open_blob(blob, &reader, &error), expected);
	assert_string_equal(error.text, words);
}

static void a_bucket_comes_back(void **state)
{
	(void)state;
	struct blob blob = make_blob(1);
	struct segment_blob_reader reader;
	struct segment_blob_bucket bucket;
	struct weir_error error;
	assert_int_equal(blob.bytes[AT_VERSION], 1);
	assert_int_equal(open_blob(&blob, &reader, &error), WEIR_OK);
	assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_OK);
	assert_true(bucket.header.low == 1 && bucket.header.high == 2 && bucket.header.newest_ms == 1732173600123);
	assert_int_equal(bucket.body_bytes, 0);
	assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_END);
}

static void a_newer_version_is_no_damage(void **state)
{
	(void)state;
	struct blob blob = make_blob(1);
	blob.bytes[AT_VERSION] = 3;
	assert_refused(&blob, WEIR_NEWER, "segment blob version 3 is newer than this program, which reads up to 2");
	blob.bytes[AT_VERSION] = 0;
	assert_refused(&blob, WEIR_INVALID, "the segment blob has a damaged header");
}

/* What an older program can read keeps the version that it knows. */
static void only_runs_that_lie_apart_need_the_newer_version(void **state)
{
	(void)state;
	char bytes[SEGMENT_BLOB_HEAD_BYTES];
	segment_blob_seal(bytes, sizeof bytes, 0, BUCKET_FORM & ~(unsigned)BUCKET_APART);
	assert_int_equal(bytes[AT_VERSION], 1);
	segment_blob_seal(bytes, sizeof bytes, 0, BUCKET_RUNS | BUCKET_APART);
	assert_int_equal(bytes[AT_VERSION], 2);
}

static void damage_is_said(void **state)
{
	(void)state;
	struct segment_blob_reader reader;
	struct segment_blob_bucket bucket;
	struct weir_error error;
	struct blob blob = make_blob(1);
	blob.bytes[AT_ZERO] = 1;
	assert_refused(&blob, WEIR_INVALID, "the segment blob has a damaged header");
	blob = make_blob(1);
	blob.bytes[0] = 'W';
	assert_refused(&blob, WEIR_INVALID, "not a segment blob");
	blob = make_blob(1);
	blob.length = SEGMENT_BLOB_HEAD_BYTES - 1;
	assert_refused(&blob, WEIR_INVALID, "not a segment blob");
	for (size_t at = AT_CHECKSUM; at < make_blob(1).length; at++) {
		blob = make_blob(1);
		blob.bytes[at] ^= 1;
		assert_refused(&blob, WEIR_INVALID, "the segment blob does not match its checksum");
	}
	blob = make_blob(2); /* and only one is there */
	assert_int_equal(open_blob(&blob, &reader, &error), WEIR_OK);
	assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_OK);
	assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_INVALID);
	assert_string_equal(error.text, "the segment blob ends within a bucket");
	blob = make_blob(0);
	assert_int_equal(open_blob(&blob, &reader, &error), WEIR_OK);
	assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_INVALID);
	assert_string_equal(error.text, "the segment blob has bytes after its last bucket");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_comes_back),
		cmocka_unit_test(a_newer_version_is_no_damage),
		cmocka_unit_test(only_runs_that_lie_apart_need_the_newer_version),
		cmocka_unit_test(damage_is_said),
	};
	return cmocka_run_group_tests_name("segment_blob", tests, NULL, NULL);
}
