/* SPDX-License-Identifier: Apache-2.0 */
/* A segment's blob as bytes: what is none, is damaged, or comes from a newer version is told apart; that of an older one is read. */
#include "limiter/shard/segment_blob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
	AT_VERSION = 2,
	AT_ZERO = 3,
	AT_COUNT = 4,
	AT_CHECKSUM = 8,
	AT_HIGH = SEGMENT_BLOB_HEAD_BYTES + 1 + 8,
	ROOM = 256
};

struct blob {
	char bytes[ROOM];
	size_t length;
};

/* One bucket without anything behind its header. */
static struct blob make_blob(uint32_t buckets)
{
	struct blob blob = {.length = 0};
	struct bucket bucket = {.low = 1, .high = 0xabc, .newest_ms = 1732173600123, .clock_s = 1732173600, .layout = 1};
	char *end = segment_blob_put(blob.bytes + SEGMENT_BLOB_HEAD_BYTES, &bucket, sizeof bucket);
	blob.length = (size_t)(end - blob.bytes);
	assert_int_equal(blob.length, SEGMENT_BLOB_HEAD_BYTES + segment_blob_bucket_bytes(sizeof bucket));
	segment_blob_seal(blob.bytes, blob.length, buckets);
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
	assert_int_equal(blob.bytes[AT_VERSION], 3);
	assert_int_equal(open_blob(&blob, &reader, &error), WEIR_OK);
	assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_OK);
	assert_true(bucket.header.low == 1 && bucket.header.high == 0xabc && bucket.header.newest_ms == 1732173600123);
	assert_int_equal(bucket.body_bytes, 0);
	assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_END);
}

static void a_newer_version_is_no_damage(void **state)
{
	(void)state;
	struct blob blob = make_blob(1);
	blob.bytes[AT_VERSION] = 4;
	assert_refused(&blob, WEIR_NEWER, "segment blob version 4 is newer than this program, which reads up to 3");
	blob.bytes[AT_VERSION] = 0;
	assert_refused(&blob, WEIR_INVALID, "the segment blob has a damaged header");
}

/* Writes the header of a blob of one bucket as versions 1 and 2 had it. */
static void seal_earlier(struct blob *blob, uint8_t version)
{
	memcpy(blob->bytes, (char[AT_CHECKSUM]){'w', 'S', (char)version, 0, 1}, AT_CHECKSUM);
	weir_bytes_put((uint8_t *)blob->bytes + AT_CHECKSUM, 8,
	               weir_hash64(blob->bytes + SEGMENT_BLOB_HEAD_BYTES, blob->length - SEGMENT_BLOB_HEAD_BYTES));
}

/* One bucket as versions 1 and 2 had it: eight bytes of upper bits, of which the highest twelve are kept. */
static struct blob make_earlier_blob(uint8_t version)
{
	static const uint8_t bucket[] = {
		3,                                                     /* bytes after its header */
		1,           2,    3,    4,    5,    6,    7,    8,    /* the fingerprint's lower half */
		0x11,        0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0xab, /* and its upper one */
		0x10,        0,    0,    0,    0,    0,                /* newest time */
		0x20,        0,    0,    0,                            /* clock */
		0x01,        0x02, 0x03,                               /* layout */
		BUCKET_RUNS,                                           /* form */
		'b',         'o',  'd',
	};
	struct blob blob = {.length = SEGMENT_BLOB_HEAD_BYTES + sizeof bucket};
	memcpy(blob.bytes + SEGMENT_BLOB_HEAD_BYTES, bucket, sizeof bucket);
	seal_earlier(&blob, version);
	return blob;
}

static void what_earlier_versions_wrote_is_read(void **state)
{
	(void)state;
	for (uint8_t version = 1; version <= 2; version++) {
		struct blob blob = make_earlier_blob(version);
		struct segment_blob_reader reader;
		struct segment_blob_bucket bucket;
		struct weir_error error;
		assert_int_equal(open_blob(&blob, &reader, &error), WEIR_OK);
		assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_OK);
		assert_true(bucket.header.low == UINT64_C(0x0807060504030201));
		assert_int_equal(bucket.header.high, 0xab7);
		assert_int_equal(bucket.header.newest_ms, 0x10);
		assert_int_equal(bucket.header.clock_s, 0x20);
		assert_int_equal(bucket.header.layout, 0x030201);
		assert_int_equal(bucket.header.flags, BUCKET_RUNS);
		assert_int_equal(bucket.body_bytes, 3);
		assert_memory_equal(bucket.body, "bod", 3);
		assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_END);
	}
}

/* Puts a blob of one event of a bucket. */
static struct blob make_single(uint64_t low, uint32_t high, int64_t newest_ms)
{
	struct blob blob;
	struct bucket bucket = {.low = low,
	                        .high = high & WEIR_FINGERPRINT_HIGH_MASK,
	                        .newest_ms = (uint64_t)newest_ms & WEIR_TIME_MASK,
	                        .clock_s = 100,
	                        .layout = 1,
	                        .flags = BUCKET_SINGLE};
	blob.length = (size_t)(segment_blob_put(blob.bytes + SEGMENT_BLOB_HEAD_BYTES, &bucket, sizeof bucket) - blob.bytes);
	segment_blob_seal(blob.bytes, blob.length, 1);
	return blob;
}

/* That as version 1 has it: what else the hash had does not matter. */
static struct blob make_earlier(struct blob blob, uint64_t high)
{
	struct blob earlier = {.length = blob.length + 6};
	memcpy(earlier.bytes + SEGMENT_BLOB_HEAD_BYTES, blob.bytes + SEGMENT_BLOB_HEAD_BYTES, 9);
	weir_bytes_put((uint8_t *)earlier.bytes + AT_HIGH, 8, high);
	memcpy(earlier.bytes + AT_HIGH + 8, blob.bytes + AT_HIGH + 2, blob.length - AT_HIGH - 2);
	seal_earlier(&earlier, 1);
	return earlier;
}

static void a_base_of_an_earlier_version_merges_with_newer_deltas(void **state)
{
	(void)state;
	struct weir_zone zone = {.id = 1, .name = "site", .description = "", .limit_count = 1};
	zone.limits[0] =
		(struct weir_limit){.algorithm = weir_algorithm_named("sliding_window"), .rate = 9, .window_ms = 60000};
	struct weir_policy policy = {.version = 1, .zones = &zone, .zone_count = 1};
	const struct weir_policy *policies[] = {&policy};
	struct compiled_policy *compiled = compiled_policy_new(policies, 1);
	struct blob blobs[] = {make_earlier(make_single(7, 0, 1000), UINT64_C(0xabc0123456789abc)),
	                       make_earlier(make_single(8, 0, 1000), UINT64_C(0xabc0123456789abc)),
	                       make_single(7, 0xabc, 2000)};
	struct weir_span spans[3];
	for (size_t i = 0; i < 3; i++)
		spans[i] = (struct weir_span){.at = blobs[i].bytes, .length = (uint32_t)blobs[i].length};
	char *merged;
	size_t length;
	struct weir_error error;
	assert_int_equal(segment_blob_merge(spans, 3, compiled, 0, -1, &merged, &length, &error), WEIR_OK);
	assert_int_equal(merged[AT_VERSION], 3);
	struct segment_blob_reader reader;
	struct segment_blob_bucket bucket;
	assert_int_equal(segment_blob_open(&reader, (struct weir_span){.at = merged, .length = (uint32_t)length}, &error),
	                 WEIR_OK);
	assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_OK);
	assert_true(bucket.header.low == 7 && bucket.header.high == 0xabc && bucket.header.newest_ms == 2000);
	assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_OK);
	assert_true(bucket.header.low == 8 && bucket.header.high == 0xabc && bucket.header.newest_ms == 1000);
	assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_END);
	free(merged);
	compiled_policy_free(compiled);
}

/* Those of one segment have ten bits alike. */
static void each_fingerprint_is_new_once(void **state)
{
	(void)state;
	enum { PRINTS = 50000 };
	struct segment_blob_seen seen = {0};
	for (int turn = 0; turn < 2; turn++)
		for (uint64_t i = 0; i < PRINTS; i++) {
			uint64_t low = UINT64_C(5) << 54 | (i * UINT64_C(0x9e3779b97f4a7c15)) >> 10;
			assert_int_equal(segment_blob_see(&seen, low, (uint32_t)i & WEIR_FINGERPRINT_HIGH_MASK), turn == 0);
		}
	assert_int_equal(seen.count, PRINTS);
	assert_true(segment_blob_see(&seen, 0, 0));
	assert_false(segment_blob_see(&seen, 0, 0));
	segment_blob_seen_deinit(&seen);
}

/* The hash that names a key is the same: an earlier version kept more of it. */
static void a_key_has_the_fingerprint_that_was_stored_of_it(void **state)
{
	(void)state;
	struct weir_span key = weir_span_of("203.0.113.9");
	struct weir_fingerprint print = weir_fingerprint(7, 1, key);
	XXH128_hash_t whole = XXH3_128bits_withSeed(key.at, key.length, 7 ^ UINT64_C(0x9e3779b97f4a7c15));
	assert_true(print.low == whole.low64);
	assert_int_equal(print.high, whole.high64 >> 52);
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
	blob = make_blob(1);
	for (blob.bytes[AT_VERSION] = 1; blob.bytes[AT_VERSION] < 3; blob.bytes[AT_VERSION]++)
		assert_refused(&blob, WEIR_INVALID, "the segment blob does not match its checksum");
	for (size_t at = AT_COUNT; at < make_blob(1).length; at++) {
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
	blob = make_blob(1);
	blob.bytes[AT_HIGH + 1] |= 0x10; /* a thirteenth bit */
	segment_blob_seal(blob.bytes, blob.length, 1);
	assert_int_equal(open_blob(&blob, &reader, &error), WEIR_OK);
	assert_int_equal(segment_blob_next(&reader, &bucket, &error), WEIR_INVALID);
	assert_string_equal(error.text, "the segment blob has a fingerprint of more than 76 bits");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_comes_back),
		cmocka_unit_test(a_newer_version_is_no_damage),
		cmocka_unit_test(what_earlier_versions_wrote_is_read),
		cmocka_unit_test(a_key_has_the_fingerprint_that_was_stored_of_it),
		cmocka_unit_test(a_base_of_an_earlier_version_merges_with_newer_deltas),
		cmocka_unit_test(each_fingerprint_is_new_once),
		cmocka_unit_test(damage_is_said),
	};
	return cmocka_run_group_tests_name("segment_blob", tests, NULL, NULL);
}
